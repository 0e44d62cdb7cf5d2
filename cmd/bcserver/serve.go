package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bettercompute/bettercompute/impl/server"
)

func (p *program) serveCommand() *cobra.Command {
	var config server.Config
	var level, format string
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the API", Args: noArgs,
		Long: "Serve the API until SIGTERM or SIGINT. On SIGHUP look for changed certificates and keys at once.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(p.stderr, level, format)
			if err != nil {
				return usageError{err}
			}
			config, err := p.completed(config, log)
			if err != nil {
				return err
			}
			config.Ready = func(url string) { fmt.Fprintln(p.stdout, "listening on", url) }
			hangup := make(chan os.Signal, 1)
			signal.Notify(hangup, syscall.SIGHUP)
			defer signal.Stop(hangup)
			config.Reload = hangup
			s, err := server.New(cmd.Context(), config)
			if err != nil {
				return err
			}
			return errors.Join(s.Run(cmd.Context()), s.Close())
		},
	}
	flags := cmd.Flags()
	dataFlags(flags, &config)
	flags.StringVar(&config.Listen, "listen", "127.0.0.1:8080", "host:port; without TLS a loopback address")
	flags.StringVar(&config.TLS, "tls", "", "off, on loopback only; auto, with a certificate of the server's own CA; or files (default files where --tls-cert is given, otherwise off)")
	flags.StringVar(&config.TLSCert, "tls-cert", "", "PEM file with the certificate chain; taken anew when it changes")
	flags.StringVar(&config.TLSKey, "tls-key", "", "PEM file with the private key")
	flags.StringSliceVar(&config.TLSHosts, "tls-host", nil, "DNS name or IP address under which the server is called, for --tls auto; may be repeated")
	flags.StringVar(&config.PolicyDir, "policy-dir", "", "folder with *.cedar files that permit more")
	flags.StringVar(&config.Placeholders, "placeholders", "", "YAML file with more rules for serials, UUIDs and addresses that tell no machine")
	flags.Float64Var(&config.JoinLimits.PerAddress, "join-rate-per-address", 1, "joins a second from one address; 0: no limit")
	flags.IntVar(&config.JoinLimits.Burst, "join-burst-per-address", 5, "joins at once from one address")
	flags.Float64Var(&config.JoinLimits.Overall, "join-rate", 50, "joins a second in all, on this server; 0: no limit")
	flags.Float64Var(&config.JoinLimits.PerNode, "node-rate", 2, "calls a second of one node, in bursts of ten times that; 0: no limit")
	flags.Var(prefixes{&config.JoinLimits.TrustedProxies}, "trusted-proxy", "network of proxies whose X-Forwarded-For is believed; may be repeated")
	flags.StringVar(&level, "log-level", "info", "trace, debug, info, warn or error")
	flags.StringVar(&format, "log-format", "text", "text or json")
	return cmd
}

func (p *program) migrateCommand() *cobra.Command {
	var config server.Config
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database up to date, and create keys, CA and admin key of an empty one", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.completed(config, quietLog(p.stderr))
			if err != nil {
				return err
			}
			db, err := server.OpenMigrated(cmd.Context(), config)
			if err != nil {
				return err
			}
			fmt.Fprintln(p.stdout, "the database is up to date")
			return db.Close()
		},
	}
	dataFlags(cmd.Flags(), &config)
	return cmd
}
