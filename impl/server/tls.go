package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/bettercompute/bettercompute/impl/ca"
)

// How a listener speaks TLS.
const (
	TLSOff   = "off"   // not at all; on loopback only
	TLSAuto  = "auto"  // with a certificate of the own CA
	TLSFiles = "files" // with TLSCert and TLSKey
)

func (c *Config) tlsMode() string {
	switch {
	case c.TLS != "":
		return c.TLS
	case c.TLSCert != "" || c.TLSKey != "":
		return TLSFiles
	default:
		return TLSOff
	}
}

func (c *Config) checkTLS() error {
	mode, files := c.tlsMode(), c.TLSCert != "" || c.TLSKey != ""
	if !slices.Contains([]string{TLSOff, TLSAuto, TLSFiles}, mode) {
		return fmt.Errorf("%w: --tls %q is none of off, auto, files", ErrConfig, c.TLS)
	}
	if files && mode != TLSFiles {
		return fmt.Errorf("%w: --tls %s takes no --tls-cert and --tls-key", ErrConfig, mode)
	}
	if len(c.TLSHosts) > 0 && mode != TLSAuto {
		return fmt.Errorf("%w: --tls-host goes with --tls auto alone; other certificates have their names already", ErrConfig)
	}
	for _, host := range c.TLSHosts {
		if !isHost(host) {
			return fmt.Errorf("%w: --tls-host %q is neither a DNS name nor an IP address", ErrConfig, host)
		}
	}
	if mode != TLSFiles {
		return nil
	}
	if c.TLSCert == "" || c.TLSKey == "" {
		return fmt.Errorf("%w: --tls-cert and --tls-key go together", ErrConfig)
	}
	_, err := c.fromFiles()(context.Background())
	return err
}

// settings are those of the listener. Who a caller is, and whether its
// certificate is good, is for each request to find out (NJ-6): so any is taken
// here, and none is remembered in a session.
func (l *listenerCertificate) settings() *tls.Config {
	return &tls.Config{
		GetCertificate:         l.get,
		ClientAuth:             tls.RequestClientCert,
		SessionTicketsDisabled: true,
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"http/1.1"},
	}
}

// filesPause is how long the files of a certificate are not looked at again.
const filesPause = time.Minute

// fromFiles reads the files again and again.
func (c *Config) fromFiles() maker {
	return func(context.Context) (*shown, error) {
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("%w: --tls-cert and --tls-key must be PEM files that belong together: %w", ErrConfig, err)
		}
		return &shown{pair: &pair, until: c.now().Add(filesPause)}, nil
	}
}

// fromAuthority has the CA of the moment certify a new key, which is nowhere but
// in memory: at half of the certificate's life, or when there is another CA.
func (c *Config) fromAuthority(current func() *ca.Authority) maker {
	hosts := c.hosts()
	return func(ctx context.Context) (*shown, error) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		authority, now := current(), c.now()
		chain, err := authority.SignServer(ctx, hosts, key.Public(), now)
		if err != nil {
			return nil, fmt.Errorf("%w: --tls auto: %w", ErrConfig, err)
		}
		leaf, err := x509.ParseCertificate(chain[0])
		if err != nil {
			return nil, fmt.Errorf("--tls auto: %w", err)
		}
		half := leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
		return &shown{pair: &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, until: half, by: authority}, nil
	}
}

// hosts are the names and addresses under which the listener may be called.
func (c *Config) hosts() (all []string) {
	listen, _, _ := net.SplitHostPort(c.Listen) // check has seen to it
	name, _ := os.Hostname()                    // without one there are the others
	if address, err := netip.ParseAddr(listen); err == nil && address.IsUnspecified() {
		listen = ""
	}
	for _, host := range slices.Concat(c.TLSHosts, []string{listen, name, "localhost", "127.0.0.1", "::1"}) {
		if isHost(host) && !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all
}

var dnsName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9])?)*$`)

func isHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Zone() == ""
	}
	return len(host) <= 253 && dnsName.MatchString(host)
}
