package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

func (p *program) keysCommand() *cobra.Command {
	var config server.Config
	var request server.KeyRequest
	create := &cobra.Command{
		Use: "create", Short: "Create an API key and print it, once", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.completed(config, quietLog(p.stderr))
			if err != nil {
				return err
			}
			key, err := server.CreateKey(cmd.Context(), config, request)
			var violations strictjson.Violations
			if errors.As(err, &violations) {
				return keyFlags(violations)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, key.Reveal())
			return nil
		},
	}
	flags := create.Flags()
	dataFlags(flags, &config)
	flags.StringVar(&request.Tenant, "tenant", "", "tenant that the identity belongs to")
	flags.StringVar(&request.Identity, "identity", "", "name under which the key acts")
	flags.StringVar(&request.Role, "role", "", "platform-admin, tenant-admin, pool-operator or pool-auditor")
	flags.StringVar(&request.Pool, "pool", "", "the only pool that the key reaches; for the pool roles")
	keys := &cobra.Command{Use: "keys", Short: "Work with API keys at the database itself", RunE: unknownCommand}
	keys.AddCommand(create)
	return keys
}

// keyFlags names violations by the flags that they are about.
func keyFlags(violations strictjson.Violations) strictjson.Violations {
	flags := map[string]string{"tenantId": "--tenant", "identity": "--identity", "role": "--role", "poolId": "--pool"}
	for i, v := range violations {
		if flag, known := flags[v.Field]; known {
			violations[i].Field = flag
		}
	}
	return violations
}
