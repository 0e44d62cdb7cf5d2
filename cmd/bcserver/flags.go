package main

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/server"
)

// sealKeyVariable holds the seal key itself. Unlike all others it belongs to no flag.
const sealKeyVariable = "BC_SEAL_KEY"

// fromEnvironment sets every flag that was not given from BC_<FLAG>.
func fromEnvironment(flags *pflag.FlagSet, getenv func(string) string) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		name := "BC_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value := getenv(name); value != "" && !f.Changed {
			if wrong := flags.Set(f.Name, value); wrong != nil {
				err = usageError{fmt.Errorf("%s: %w", name, wrong)}
			}
		}
	})
	return err
}

// dataFlags are the flags that say where the data is, and the keys to it.
func dataFlags(flags *pflag.FlagSet, config *server.Config) {
	flags.StringVar(&config.Data, "data", "./bettercompute-data", "folder for the embedded database, its seal key and the admin key")
	flags.StringVar(&config.URL, "db", "", "sqlite:<path> or postgres://… (default sqlite:<data>/bettercompute.db)")
	flags.StringVar(&config.SealKeyFile, "seal-key-file", "", "file with the key that seals secrets in the database (default <data>/seal.key on SQLite; Postgres needs one)")
	flags.StringVar(&config.CADir, "ca-dir", "", "folder with a CA of your own: ca.pem, and node-platform, node-tenant and server, each as .pem and .key (default: one that the database keeps)")
}

// completed fills in what no flag says, once the flags are known.
func (p *program) completed(config server.Config, log *slog.Logger) (server.Config, error) {
	if config.URL == "" {
		config.URL = "sqlite:" + filepath.Join(config.Data, "bettercompute.db")
	}
	config.Log, config.Version = log, version()
	if text := p.getenv(sealKeyVariable); text != "" {
		keys, err := seal.ParseKeys(text)
		if err != nil {
			return config, fmt.Errorf("%s: %w", sealKeyVariable, err)
		}
		config.SealKeys = keys
	}
	return config, nil
}

// prefixes is the value of a flag that may be repeated, or list several with commas.
type prefixes struct{ list *[]netip.Prefix }

// Set implements [pflag.Value].
func (p prefixes) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is no CIDR, such as 10.0.0.0/8 or, for one address, 192.0.2.1/32", part)
		}
		*p.list = append(*p.list, prefix.Masked())
	}
	return nil
}

// String implements [pflag.Value].
func (p prefixes) String() string {
	if p.list == nil || len(*p.list) == 0 {
		return ""
	}
	return strings.Trim(fmt.Sprint(*p.list), "[]")
}

// Type implements [pflag.Value].
func (prefixes) Type() string { return "CIDR" }
