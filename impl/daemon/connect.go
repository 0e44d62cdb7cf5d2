package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/bettercompute/bettercompute/gen/client"
)

const (
	callTimeout = 30 * time.Second // of one call, with its connection
	dialTimeout = 10 * time.Second
	maxBundle   = 1 << 20 // bytes
)

// A connection calls the server, verified, as somebody.
type connection struct {
	*client.Client
	verifier *verifier
	http     *http.Transport
}

func (c *connection) close() {
	if c != nil {
		c.http.CloseIdleConnections()
	}
}

func (n *nodeClient) close() {
	if n != nil {
		n.connection.close()
	}
}

// transport makes one connection after the other, none of which outlives it.
func transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConns: 1, IdleConnTimeout: 2 * reportEvery,
	}
}

// connect returns a connection to the server with a token, or a certificate.
func (d *daemon) connect(ctx context.Context, t *token, pair *tls.Certificate) (*connection, error) {
	trusts, err := d.trusts(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(d.server)
	if err != nil {
		return nil, err
	}
	v := &verifier{host: u.Hostname(), trusts: trusts, clock: d.clock, log: d.log, behind: d.metrics.setBehind}
	c := &connection{verifier: v, http: transport(v.config(pair))}
	options := []client.Option{
		client.WithHTTP(&http.Client{Transport: c.http, Timeout: callTimeout}),
		client.WithRetries(1, 0), // the loop does that, and knows more
		client.WithUserAgent("bcd/" + d.config.Version),
	}
	if t != nil {
		options = append(options, client.WithKey(t.reveal()))
	}
	c.Client, err = client.New(d.server, options...)
	return c, err
}

// self returns the connection that calls with the node's certificate.
func (d *daemon) self(ctx context.Context) (*connection, error) {
	i := d.state.Identity
	if d.node != nil && d.node.serial == i.Serial {
		return d.node.connection, nil
	}
	d.hangUp()
	_, pair, err := d.folder.keyOf(i)
	if err != nil {
		return nil, err
	}
	c, err := d.connect(ctx, nil, &pair)
	if err != nil {
		return nil, err
	}
	d.node = &nodeClient{c, i.Serial}
	return c, nil
}

// hangUp ends the connection of the node; the next call makes another one.
func (d *daemon) hangUp() {
	d.node.close()
	d.node = nil
}

// trusts says whom to trust: the given file and nobody else; or what was pinned
// and has followed from that; or the system's.
func (d *daemon) trusts(ctx context.Context) (bundle, error) {
	switch pin := d.config.CASHA256; {
	case d.config.CAFile != "":
		text, err := os.ReadFile(d.config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		trusts, err := parseBundle(text)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %s: %w", d.config.CAFile, err)
		}
		return trusts, nil
	case d.state.CABundle != "" && (pin == "" || pin == d.state.CASHA256):
		return parseBundle([]byte(d.state.CABundle))
	case pin != "":
		return d.pinned(ctx, pin)
	default:
		return nil, nil
	}
}

// errPin marks that nothing at the server has the fingerprint.
var errPin = errors.New("the pin of --ca-sha256 does not match")

// errFetch marks that the certificates to pin could not be had.
var errFetch = errors.New("the server's certificates cannot be fetched")

// pinned fetches the server's bundle from somebody who is not known yet, and
// without telling them anything, and takes from it what the pin proves.
func (d *daemon) pinned(ctx context.Context, pin string) (bundle, error) {
	from := d.server + "/ca.pem"
	text, err := fetch(ctx, from, d.config.Version)
	if err != nil {
		return nil, fmt.Errorf("%w; no token was sent: %w", errFetch, err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		sum := sha256.Sum256(block.Bytes)
		if block.Type != "CERTIFICATE" || hex.EncodeToString(sum[:]) != pin {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the pinned certificate of %s: %w", from, err)
		}
		return bundle{c}, nil
	}
	return nil, fmt.Errorf("%w: no certificate of %s has this SHA-256; no token was sent. Compare it with `bcserver ca show` on the server", errPin, from)
}

// fetch reads a URL over a connection that nobody vouches for, with no credential.
func fetch(ctx context.Context, from, version string) ([]byte, error) {
	t := transport(&tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, InsecureSkipVerify: true})
	t.DisableKeepAlives = true
	c := &http.Client{Transport: t, Timeout: callTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "bcd/"+version)
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %d %s", from, response.StatusCode, http.StatusText(response.StatusCode))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBundle+1))
	if err == nil && len(text) > maxBundle {
		err = fmt.Errorf("%s answers more than %d bytes", from, maxBundle)
	}
	return text, err
}
