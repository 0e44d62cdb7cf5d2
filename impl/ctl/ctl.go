// Package ctl is the command line of Better Compute: it turns the command
// table of gen/cli into commands, sends what their flags say, and shows the answers.
package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/bettercompute/bettercompute/gen/cli"
	"github.com/bettercompute/bettercompute/gen/client"
	"github.com/spf13/cobra"
)

// The exit codes of bcctl.
const (
	exitDone        = 0
	exitRefused     = 1 // the server, or something before it, answered and said no
	exitUsage       = 2 // the command cannot be sent as it is
	exitUnreachable = 3 // no answer came
)

// What stands in the environment, and what holds where nothing is said.
const (
	envServer     = "BCCTL_SERVER"
	envKey        = "BCCTL_KEY"
	defaultServer = "http://127.0.0.1:8080"
)

// Run executes one command line, without the program's name, and returns the
// exit code: 0 done, 1 refused, 2 usage, 3 unreachable. A stream goes on until
// ctx ends, which is its success. The API key comes from the environment or a
// file, never from args.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	p := &program{groups: cli.Commands, stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv}
	return p.run(ctx, args)
}

// A program is one execution.
type program struct {
	groups []cli.Group
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	getenv func(string) string
	client []client.Option // beside those that the flags give

	server  string
	caFile  string
	keyFile string
	format  string
	hasKey  bool // calls carry a key
}

func (p *program) run(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(append([]string{}, args...)) // never nil, which would mean those of the process
	command, err := root.ExecuteContextC(ctx)
	return p.report(command, err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bcctl",
		Short: "The command line of Better Compute",
		Long: wrap("bcctl calls the methods of a Better Compute server: one command for each method, one flag for each field.\n\n"+
			"The server is --server or "+envServer+", and "+defaultServer+" without either. With --ca-file or "+envCAFile+" it must show a certificate of that file; otherwise one that the system trusts. The API key is the content of --key-file, or "+envKey+"; it is never an argument, since others can read those.\n\n"+
			"It exits with 0 when it is done, 1 when it was refused, 2 when the command cannot be sent as it is, and 3 when no answer came.", helpWidth),
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs, // so that an unknown command is ours to refuse
		RunE:                       unknownCommand,
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&p.server, "server", "", "URL of the server")
	flags.StringVar(&p.caFile, "ca-file", "", "PEM file with the only certificates to trust, such as ca.pem of the server's data folder")
	flags.StringVar(&p.keyFile, "key-file", "", "file that holds the API key")
	flags.StringVarP(&p.format, "output", "o", formatTable, "form of the answer: table, json or yaml")
	complete(root, "output", formats)
	complete(root, "server", nil)
	root.SetFlagErrorFunc(flagError)
	general := root.HelpFunc()
	methods := map[*cobra.Command]cli.Method{}
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if m, ok := methods[c]; ok {
			writeHelp(c, m)
			return
		}
		general(c, args)
	})
	for _, g := range p.groups {
		group := &cobra.Command{
			Use: g.Name, Short: plain(g.Short), Long: wrap(g.Long, helpWidth),
			RunE: unknownCommand, SuggestionsMinimumDistance: 1,
			// What is wrong with an unknown command is not its flags.
			FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		}
		for _, m := range g.Methods {
			command := p.methodCommand(g, m)
			methods[command] = m
			group.AddCommand(command)
		}
		root.AddCommand(group)
	}
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Says which version this is", Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(p.stdout, "bcctl", version())
			return err
		},
	})
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.RunE = unknownCommand
	}
	return root
}

// unknownCommand refuses a group without a command, or with one that it does not have.
func unknownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return misuse(c, "name a command of %s", c.Name())
	}
	text := fmt.Sprintf("%s has no command %q", c.Name(), args[0])
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		text += fmt.Sprintf("; did you mean %s?", near[0])
	}
	return misuse(c, "%s", text)
}

// complete offers values for a flag, and no files.
func complete(c *cobra.Command, flag string, values []string) {
	// It fails for an unknown flag or a second call alone.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
