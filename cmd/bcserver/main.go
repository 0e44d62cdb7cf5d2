// Command bcserver is the control plane: it serves the API on SQLite or Postgres.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	// The live heap is a few megabytes: collecting it less often costs little
	// memory and saves an eighth of the time of a call.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &program{stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// A program is one execution.
type program struct {
	stdout, stderr io.Writer
	getenv         func(string) string
}

// run returns the exit code: 0 done, 1 failed, 2 usage.
func (p *program) run(ctx context.Context, args []string) int {
	root := &cobra.Command{
		Use:   "bcserver",
		Short: "The control plane for bare-metal and GPU machines",
		Long: "The control plane for bare-metal and GPU machines.\n\n" +
			"Every flag can also be given in the environment: --policy-dir as BC_POLICY_DIR. The seal key itself can be given as BC_SEAL_KEY, in place of --seal-key-file; it is never an argument, since others can read those.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags(), p.getenv)
		},
	}
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(p.serveCommand(), p.migrateCommand(), p.keysCommand(), p.caCommand(), p.sealCommand(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(p.stdout, "bcserver", version()) },
	})
	err := root.ExecuteContext(ctx)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(p.stderr, "bcserver: %v\n", err)
		return 2
	default:
		fmt.Fprintf(p.stderr, "bcserver: %v\n", err)
		return 1
	}
}

type usageError struct{ error }

// unknownCommand refuses a call without a command, or with one that there is not.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("name a command of %s; see %s --help", cmd.Name(), cmd.CommandPath())}
	}
	return usageError{fmt.Errorf("%s has no command %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument %q; see %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
