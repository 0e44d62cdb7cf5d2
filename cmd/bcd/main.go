// Command bcd is the daemon of a machine: it joins a pool, and keeps the node's certificate fresh.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
	"unicode"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bettercompute/bettercompute/impl/daemon"
	"github.com/bettercompute/bettercompute/impl/hardware"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitPending = 3 // of join: an operator must approve
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// An exit is an error that has its own exit code, and was told already.
type exit int

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type usageError struct{ error }

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	root := &cobra.Command{
		Use:           "bcd",
		Short:         "The daemon of a machine: it joins a pool, and keeps the node's certificate fresh",
		Long:          "The daemon of a machine: it joins a pool, and keeps the node's certificate fresh.\n\nEvery flag can also be given in the environment: --token-file as BCD_TOKEN_FILE. The token itself is read from its file alone.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          unknownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return fromEnvironment(cmd.Flags(), getenv)
		},
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(joinCommand(stdin, stdout, stderr), runCommand(stdin, stderr), statusCommand(stdout), &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(stdout, "bcd", version()) },
	})
	err := root.ExecuteContext(ctx)
	var own exit
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &own):
		return int(own)
	case errors.As(err, &usage), errors.Is(err, daemon.ErrUsage):
		fmt.Fprintf(stderr, "bcd: %s\n", plain(strings.TrimPrefix(err.Error(), daemon.ErrUsage.Error()+": ")))
		return exitUsage
	default:
		fmt.Fprintf(stderr, "bcd: %s\n", plain(err.Error()))
		return exitFailed
	}
}

// plain is a text that does nothing to a terminal; some of it may be a server's.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\n' {
			return r
		}
		return '?'
	}, text)
}

// unknownCommand refuses a call without a command, or with one that there is not.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usageError{fmt.Errorf("name a command of %s; see %s --help", cmd.Name(), cmd.CommandPath())}
	}
	return usageError{fmt.Errorf("%s has no command %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unexpected argument; see %s --help", cmd.CommandPath())} // it may be a token
	}
	return nil
}

// fromEnvironment sets every flag that was not given from BCD_<FLAG>.
func fromEnvironment(flags *pflag.FlagSet, getenv func(string) string) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "BCD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && !f.Changed {
			if wrong := flags.Set(f.Name, value); wrong != nil {
				err = usageError{fmt.Errorf("%s: %w", name, wrong)}
			}
		}
	})
	return err
}

const defaultState = "/var/lib/bcd"

// joinFlags are the flags that join and run have in common.
func joinFlags(flags *pflag.FlagSet, config *daemon.Config, level *string) {
	config.Roots = hardware.Host()
	flags.StringVar(&config.Server, "server", "", "https URL of the server (default the one that was joined)")
	flags.StringVar(&config.TokenFile, "token-file", "", "file with the join token; - for standard input")
	flags.StringVar(&config.CASHA256, "ca-sha256", "", "SHA-256 of a CA certificate of the server, in hexadecimal, as bcserver ca show prints it")
	flags.StringVar(&config.CAFile, "ca-file", "", "PEM file with the CA certificates to trust, and no others (default the system's)")
	flags.StringVar(&config.State, "state", defaultState, "folder for the key and the certificate")
	flags.StringVar(&config.Claims, "claims", "", "JSON file with what to claim of the machine, in place of what it says itself")
	flags.StringVar(&config.Roots.Sys, "sysfs", config.Roots.Sys, "where the machine's sysfs is")
	flags.StringVar(&config.Roots.Proc, "procfs", config.Roots.Proc, "where the machine's procfs is")
	flags.StringVar(level, "log-level", "info", "debug, info, warn or error")
}

func joinCommand(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var config daemon.Config
	var level string
	cmd := &cobra.Command{
		Use: "join", Short: "Join a pool, once", Args: noArgs,
		Long: "Join a pool, once.\n\nIt ends with 0 when the machine is a node, with 3 when an operator must approve it first, with 1 when it was refused or did not work, with 2 when it was called wrongly.",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config, err = complete(config, stdin, stderr, level); err != nil {
				return err
			}
			outcome, err := daemon.Join(cmd.Context(), config)
			if err != nil {
				return err
			}
			fmt.Fprintln(stdout, told(outcome))
			if outcome.Pending != nil {
				return exit(exitPending)
			}
			return nil
		},
	}
	joinFlags(cmd.Flags(), &config, &level)
	cmd.Flags().DurationVar(&config.Timeout, "timeout", 2*time.Minute, "how long to try where the server is busy or cannot be reached; 0: once")
	return cmd
}

// told is the outcome of a join in words.
func told(o daemon.Outcome) string {
	if p := o.Pending; p != nil {
		return fmt.Sprintf("pending: an operator must approve request %s (reason %s)\ncsrSha256 %s\nrun `bcd join` again when it is approved, or leave it to `bcd run`", p.RequestID, p.Reason, p.CSRSHA256)
	}
	how := "joined"
	if o.Already {
		how = "joined before"
	}
	text := fmt.Sprintf("%s: node %s of pool %s/%s, profile %s, trust %s, certificate until %s",
		how, o.NodeID, o.TenantID, o.PoolID, o.Profile, o.Trust, o.NotAfter.UTC().Format(time.RFC3339))
	if o.Stays != "" {
		text += fmt.Sprintf("\nit stays with %s, and the server of --server was not asked: a new token of that one joins there; for another URL of the same server give --server to `bcd run`", o.Stays)
	}
	return text
}

func runCommand(stdin io.Reader, stderr io.Writer) *cobra.Command {
	var config daemon.Config
	var level string
	cmd := &cobra.Command{
		Use: "run", Short: "Join where that is still to do, then renew the certificate and report, for ever", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config, err = complete(config, stdin, stderr, level); err != nil {
				return err
			}
			config.Ready = func(metrics string) {
				config.Log.Info("bcd runs", "version", version(), "state", config.State, "metrics", metrics)
			}
			config.Notify = func(state string) {
				if _, err := systemd.SdNotify(false, state); err != nil {
					config.Log.Warn("systemd cannot be told", "error", err)
				}
			}
			interval, err := systemd.SdWatchdogEnabled(false)
			if err != nil {
				return err
			}
			config.WatchdogEvery = interval / 2
			return daemon.Run(cmd.Context(), config)
		},
	}
	joinFlags(cmd.Flags(), &config, &level)
	cmd.Flags().StringVar(&config.Metrics, "metrics-listen", "", "host:port for Prometheus metrics at /metrics; without a host on loopback (default none)")
	return cmd
}

// complete adds what no flag says.
func complete(config daemon.Config, stdin io.Reader, stderr io.Writer, level string) (daemon.Config, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return config, usageError{fmt.Errorf("--log-level %q is none of debug, info, warn, error", level)}
	}
	config.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: least}))
	config.Stdin, config.Version = stdin, version()
	return config, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
