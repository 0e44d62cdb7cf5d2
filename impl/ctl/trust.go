package ctl

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

const envCAFile = "BCCTL_CA_FILE"

// callTimeout is how long one attempt of a call may take; that of the SDK, which
// a transport of our own replaces.
const callTimeout = 30 * time.Second

// trust returns the option that trusts the certificates of --ca-file and no
// others, or none where no file is named.
func (p *program) trust() ([]client.Option, error) {
	file, from := p.caFile, "--ca-file"
	if file == "" {
		file, from = p.getenv(envCAFile), envCAFile
	}
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM", from, printable(file))
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: roots}, TLSHandshakeTimeout: 10 * time.Second}
	return []client.Option{client.WithHTTP(&http.Client{Transport: transport, Timeout: callTimeout})}, nil
}
