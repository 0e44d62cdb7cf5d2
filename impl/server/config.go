package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"
)

// Config is what a server is started with. Only URL and Data have no default
// that works.
type Config struct {
	Listen    string // host:port; without TLS a loopback address
	URL       string // of the database: sqlite:<path> or postgres://…
	Data      string // the folder for files of this server
	TLSCert   string // PEM files; both or none
	TLSKey    string
	PolicyDir string // *.cedar files of the operator; empty: none
	Log       *slog.Logger
	Version   string
	Now       func() time.Time // nil: time.Now
	Ready     func(url string) // called once the server listens; nil: nobody asks
}

// ErrConfig marks a configuration that cannot work.
var ErrConfig = errors.New("configuration")

// check refuses what cannot be listened on, before anything is made.
func (c *Config) check(ctx context.Context) error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%w: --listen %q must be host:port: %w", ErrConfig, c.Listen, err)
	}
	settings, err := c.tls()
	if err != nil {
		return err
	}
	if settings == nil && !loopback(host) {
		return fmt.Errorf("%w: --listen %q is no loopback address, such as 127.0.0.1:8080; beyond loopback the server needs --tls-cert and --tls-key", ErrConfig, c.Listen)
	}
	return nil
}

// tls returns the settings of the listener; nil: no TLS.
func (c *Config) tls() (*tls.Config, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return nil, fmt.Errorf("%w: --tls-cert and --tls-key go together", ErrConfig)
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("%w: --tls-cert and --tls-key must be PEM files that belong together: %w", ErrConfig, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
