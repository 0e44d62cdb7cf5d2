package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/seal"
)

// Config is what a server is started with. Only URL and Data have no default
// that works, and on Postgres a seal key.
type Config struct {
	Listen       string    // host:port; without TLS a loopback address
	URL          string    // of the database: sqlite:<path> or postgres://…
	Data         string    // the folder for files of this server
	SealKeyFile  string    // with the keys that seal secrets; or
	SealKeys     seal.Keys // themselves; with neither, SQLite keeps one in Data
	CADir        string    // an operator's own CA (ca.FromFiles); empty: the database keeps one
	TLS          string    // TLSOff, TLSAuto or TLSFiles; empty: TLSFiles with files, else TLSOff
	TLSCert      string    // PEM files; both or none
	TLSKey       string
	TLSHosts     []string   // more names and addresses of a listener with TLSAuto
	PolicyDir    string     // *.cedar files of the operator; empty: none
	Placeholders string     // file with the operator's placeholder rules; empty: the built-in ones alone
	JoinLimits   JoinLimits // zero: none
	Log          *slog.Logger
	Version      string
	Now          func() time.Time // nil: time.Now
	Ready        func(url string) // called once the server listens; nil: nobody asks
	Reload       <-chan os.Signal // look for new keys and certificates at once; nil: only in turn

	placeholders *placeholder.List // what check has read
}

// ErrConfig marks a configuration that cannot work.
var ErrConfig = errors.New("configuration")

func (c *Config) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// check refuses what cannot work, before anything is made, and reads the placeholder rules.
func (c *Config) check(ctx context.Context) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%w: --listen %q must be host:port: %w", ErrConfig, c.Listen, err)
	}
	if err := c.checkTLS(); err != nil {
		return err
	}
	if c.tlsMode() == TLSOff && !loopback(host) {
		return fmt.Errorf("%w: --listen %q is no loopback address, such as 127.0.0.1:8080; beyond loopback the server needs TLS: give --tls auto, or --tls-cert and --tls-key", ErrConfig, c.Listen)
	}
	if err := c.JoinLimits.check(); err != nil {
		return err
	}
	return c.readPlaceholders()
}

func (l *JoinLimits) check() error {
	for flag, value := range map[string]float64{"--join-rate-per-address": l.PerAddress, "--join-rate": l.Overall, "--node-rate": l.PerNode} {
		if math.IsNaN(value) || math.IsInf(value, 0) || value < 0 {
			return fmt.Errorf("%w: %s must be a number a second, or 0 for no limit", ErrConfig, flag)
		}
	}
	if l.PerAddress > 0 && l.Burst < 1 {
		return fmt.Errorf("%w: --join-burst-per-address must be at least 1", ErrConfig)
	}
	return nil
}

func (c *Config) readPlaceholders() error {
	if c.Placeholders == "" {
		c.placeholders = placeholder.Default()
		return nil
	}
	file, err := os.Open(c.Placeholders)
	if err != nil {
		return fmt.Errorf("%w: --placeholders: %w", ErrConfig, err)
	}
	defer file.Close()
	if c.placeholders, err = placeholder.Load(file); err != nil {
		return fmt.Errorf("%w: --placeholders %s: %w", ErrConfig, c.Placeholders, err)
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
