package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/server"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestTLS_Refused holds what a listener is not started with, and that the flag is named.
func TestTLS_Refused(t *testing.T) {
	t.Parallel()
	cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
	writePair(t, cert, key)
	for what, c := range map[string]struct {
		change func(*server.Config)
		says   string
	}{
		"another kind":          {func(c *server.Config) { c.TLS = "yes" }, "--tls"},
		"off beyond loopback":   {func(c *server.Config) { c.TLS, c.Listen = "off", "0.0.0.0:0" }, "--tls auto"},
		"nothing said":          {func(c *server.Config) { c.Listen = "0.0.0.0:0" }, "--tls auto"},
		"files without files":   {func(c *server.Config) { c.TLS = "files" }, "--tls-cert"},
		"off with files":        {func(c *server.Config) { c.TLS, c.TLSCert, c.TLSKey = "off", cert, key }, "--tls-cert"},
		"auto with files":       {func(c *server.Config) { c.TLS, c.TLSCert = "auto", cert }, "--tls-cert"},
		"a name without TLS":    {func(c *server.Config) { c.TLSHosts = []string{"a.example"} }, "--tls-host"},
		"a name with files":     {func(c *server.Config) { c.TLSHosts, c.TLSCert, c.TLSKey = []string{"a.example"}, cert, key }, "--tls-host"},
		"a name that is none":   {func(c *server.Config) { c.TLS, c.TLSHosts = "auto", []string{"a b"} }, `"a b"`},
		"an empty name":         {func(c *server.Config) { c.TLS, c.TLSHosts = "auto", []string{""} }, "--tls-host"},
		"a name and a port":     {func(c *server.Config) { c.TLS, c.TLSHosts = "auto", []string{"a.example:443"} }, "--tls-host"},
		"an address with zone":  {func(c *server.Config) { c.TLS, c.TLSHosts = "auto", []string{"fe80::1%eth0"} }, "--tls-host"},
		"a folder without a CA": {func(c *server.Config) { c.TLS, c.CADir = "auto", "/no/such/folder" }, "--ca-dir"},
		"no placeholder file":   {func(c *server.Config) { c.Placeholders = "/no/such/file" }, "--placeholders"},
		"no placeholder rules":  {func(c *server.Config) { c.Placeholders = cert }, "--placeholders"},
		"a negative rate":       {func(c *server.Config) { c.JoinLimits.Overall = -1 }, "--join-rate"},
		"no burst":              {func(c *server.Config) { c.JoinLimits.PerAddress = 1 }, "--join-burst-per-address"},
	} {
		config := configFor(t, storetest.SQLite)
		c.change(&config)
		s, err := server.New(t.Context(), config)
		if err == nil {
			t.Errorf("started with %s", what)
			s.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(config.Data); err == nil {
			t.Errorf("with %s it made a folder", what)
		}
	}
}
