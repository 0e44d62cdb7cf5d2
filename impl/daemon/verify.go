package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// A bundle is whom to trust; nil: the system's roots.
type bundle []*x509.Certificate

// parseBundle reads the certificates of a PEM text, and wants at least one.
func parseBundle(text []byte) (bundle, error) {
	var found bundle
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	if found == nil {
		return nil, errors.New("holds no certificate in PEM")
	}
	return found, nil
}

func (b bundle) pool() *x509.CertPool {
	if b == nil {
		return nil
	}
	pool := x509.NewCertPool()
	for _, c := range b {
		pool.AddCert(c)
	}
	return pool
}

// A verifier decides whether the other side of a connection is the server. It
// does what crypto/tls does, with one difference: see [verifier.check].
type verifier struct {
	host   string // of the server's URL
	trusts bundle
	clock  *clock
	log    *slog.Logger
	behind func(bool) // told whether the local clock is behind for certain

	mu     sync.Mutex
	server []*x509.Certificate // as presented last, when it was verified
}

// config are the settings of a connection. Tickets are off: a resumed session
// would go on with a certificate that was replaced since (NJ-6).
func (v *verifier) config(pair *tls.Certificate) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, ServerName: v.host,
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection:   func(s tls.ConnectionState) error { return v.verify(s.PeerCertificates) },
	}
	if pair != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return c
}

func (v *verifier) verify(presented []*x509.Certificate) error {
	local := v.clock.local()
	at, err := v.check(presented, v.trusts, local)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: presented, Err: v.advised(err)}
	}
	behind := at.After(local)
	if behind {
		v.clock.atLeast(at)
		v.log.Warn("the clock of this machine is behind: the server's certificate is not valid yet by it; the server's time is used",
			"clock", stamp(local), "validFrom", stamp(presented[0].NotBefore))
	}
	v.behind(behind)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.server = presented
	return nil
}

// advised says what to do about a server that is not the one that was meant,
// as far as is known.
func (v *verifier) advised(err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; if it is the right server, say whom to trust: --ca-sha256 (`bcserver ca show` prints it), or --ca-file", err)
	case errors.As(err, &name):
		has := slices.Clone(name.Certificate.DNSNames)
		for _, ip := range name.Certificate.IPAddresses {
			has = append(has, ip.String())
		}
		return fmt.Errorf("%w; call the server by a name of its certificate (%s), or start it with --tls-host %s", err, strings.Join(has, ", "), v.host)
	default:
		return err
	}
}

// check verifies a chain as of now by the local clock, and returns as of when
// it is valid. Where a certificate of the chain has not begun by that clock,
// the chain is verified as of when it has: no correct clock ever sees it
// before, so this weakens nothing, and a machine whose clock was reset can
// join. The other way round, a certificate that has ended by the local clock
// is refused: to accept it would switch expiry off for everyone.
func (v *verifier) check(presented []*x509.Certificate, trusts bundle, local time.Time) (at time.Time, err error) {
	if len(presented) == 0 {
		return at, errors.New("the server presents no certificate")
	}
	options := x509.VerifyOptions{DNSName: v.host, Roots: trusts.pool(), Intermediates: x509.NewCertPool(), CurrentTime: local}
	for _, c := range presented[1:] {
		options.Intermediates.AddCert(c)
	}
	leaf, known := presented[0], v.clock.lastTold()
	_, err = leaf.Verify(options)
	if err == nil {
		return local, stillValid(presented, options, local, known)
	}
	for _, at := range begins(presented, trusts, local) {
		options.CurrentTime = at
		if _, later := leaf.Verify(options); later != nil {
			continue
		}
		return at, stillValid(presented, options, local, known)
	}
	for _, c := range presented {
		if c.NotAfter.Before(local) {
			return at, ended(c, local, known)
		}
	}
	return at, err
}

// stillValid refuses a chain that has ended by the time that the server told
// last: the clock is behind then, and finds it valid all the same.
func stillValid(presented []*x509.Certificate, options x509.VerifyOptions, local, known time.Time) error {
	if !known.After(options.CurrentTime) {
		return nil
	}
	options.CurrentTime = known
	_, err := presented[0].Verify(options)
	if err == nil {
		return nil
	}
	for _, c := range presented {
		if c.NotAfter.Before(known) {
			return ended(c, local, known)
		}
	}
	return err
}

// begins are the times at which certificates begin that have not begun.
func begins(presented []*x509.Certificate, trusts bundle, local time.Time) (times []time.Time) {
	for _, c := range slices.Concat(presented, trusts) {
		if c.NotBefore.After(local) {
			times = append(times, c.NotBefore)
		}
	}
	return times
}

// errEnded marks a certificate of the server that has ended, by the local clock
// or by the time that the server told last.
var errEnded = errors.New("the server's certificate has ended")

func ended(c *x509.Certificate, local, known time.Time) error {
	text := ""
	if !known.IsZero() {
		text = fmt.Sprintf(" (the server said last that it was %s)", stamp(known))
	}
	return fmt.Errorf("%w: it was valid until %s, and the clock of this machine says %s%s; if the clock is ahead, set it, otherwise the server's certificate must be renewed",
		errEnded, stamp(c.NotAfter), stamp(local), text)
}

// verifiedBy says whether others would vouch for the server, too.
func (v *verifier) verifiedBy(trusts bundle) bool {
	v.mu.Lock()
	presented := v.server
	v.mu.Unlock()
	_, err := v.check(presented, trusts, v.clock.local())
	return err == nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
