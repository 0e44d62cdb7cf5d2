package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/server"
)

func (p *program) sealCommand() *cobra.Command {
	group := &cobra.Command{Use: "seal", Short: "Work with the keys that seal secrets in the database", RunE: unknownCommand}
	group.AddCommand(p.sealNewKeyCommand(), p.sealRotateCommand())
	return group
}

func (p *program) sealNewKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "new-key", Short: "Print a new seal key, as --seal-key-file takes it", Args: noArgs,
		Long: "Print a new seal key, as --seal-key-file takes it. It is a secret:\n\n  (umask 077; bcserver seal new-key > seal.key)",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(p.stdout, seal.NewKeyText())
			return err
		},
	}
}

func (p *program) sealRotateCommand() *cobra.Command {
	var config server.Config
	cmd := &cobra.Command{
		Use: "rotate", Short: "Seal every secret of the database anew", Args: noArgs,
		Long: "Seal every secret of the database anew, under a fresh data key, and that under the first key of --seal-key-file. " +
			"To replace a seal key, put the new one on a line above it in the file of every server, rotate, and take the old line away.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.completed(config, quietLog(p.stderr))
			if err != nil {
				return err
			}
			if err := server.RotateSeal(cmd.Context(), config); err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, "every secret is sealed anew, under the first of the seal keys")
			return nil
		},
	}
	dataFlags(cmd.Flags(), &config)
	return cmd
}
