// Command bcctl is the command line of Better Compute.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/bettercompute/bettercompute/impl/ctl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(ctl.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
