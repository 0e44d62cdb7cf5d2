package daemon

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strings"
)

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUsage, fmt.Sprintf(format, args...))
}

// check refuses what cannot work, before anything is read or made.
func (c *Config) check() error {
	if c.State == "" {
		return usage("--state must name a folder")
	}
	if c.CAFile != "" && c.CASHA256 != "" {
		return usage("--ca-file and --ca-sha256 exclude each other")
	}
	if c.CASHA256 != "" {
		pin, ok := parsePin(c.CASHA256)
		if !ok {
			return usage("--ca-sha256 must be the SHA-256 of a certificate in hexadecimal, 64 digits; `bcserver ca show` prints it")
		}
		c.CASHA256 = pin
	}
	if c.Server != "" {
		server, err := parseServer(c.Server)
		if err != nil {
			return err
		}
		c.Server = server
	}
	if c.Metrics != "" {
		host, port, err := net.SplitHostPort(c.Metrics)
		if err != nil {
			return usage("--metrics-listen must be host:port, or :port for loopback: %v", err)
		}
		if host == "" {
			host = "127.0.0.1"
		}
		c.Metrics = net.JoinHostPort(host, port)
	}
	return nil
}

// parseServer returns the URL of a server without a slash at its end. Tokens
// go over TLS alone.
func parseServer(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Hostname() == "":
		return "", usage("--server is no URL of the form https://host:port")
	case u.Scheme == "http":
		return "", usage("--server %q is not encrypted: a token and a certificate go over https only", u.Redacted())
	case u.Scheme != "https":
		return "", usage("--server %q is no https URL", u.Redacted())
	case u.User != nil:
		return "", usage("--server holds credentials; a machine joins with a token file")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", usage("--server %q has a query or a fragment", u.Redacted())
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// parsePin reads a fingerprint, also as openssl writes it: AB:CD:…
func parsePin(text string) (string, bool) {
	pin := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	sum, err := hex.DecodeString(pin)
	return pin, err == nil && len(sum) == 32
}
