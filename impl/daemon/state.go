package daemon

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/bettercompute/bettercompute/impl/csr"
)

// The files of a state folder. state.json is what counts; a key belongs to
// what has its public half in state.json, whatever its file is called, since
// two files cannot be replaced at once.
const (
	stateFile    = "state.json"
	keyFile      = "key.pem"       // of the identity
	joinKeyFile  = "join-key.pem"  // of a join without an answer
	renewKeyFile = "renew-key.pem" // of a renewal without an answer
	certFile     = "cert.pem"      // the identity's chain, a copy for other programs
	caFile       = "ca.pem"        // the server's roots, a copy likewise
)

// stateVersion is raised when an older bcd would misread what a newer one wrote.
const stateVersion = 1

// state is what is known of a machine's joining. It holds no secret.
type state struct {
	Version int    `json:"version"`
	Server  string `json:"server,omitempty"`
	Tries   string `json:"tries,omitempty"` // the server that was asked last, where that is another one and did not work
	// CASHA256 is the certificate that the server's was verified against first, where it was pinned.
	CASHA256 string `json:"caSha256,omitempty"`
	// CABundle has the roots that the server named with the certificate; empty
	// where they do not verify the server itself, which may have a public certificate.
	CABundle string    `json:"caBundle,omitempty"`
	Identity *identity `json:"identity,omitempty"`
	Joining  *attempt  `json:"joining,omitempty"`
	Renewing *attempt  `json:"renewing,omitempty"`

	ServerTime   time.Time `json:"serverTime,omitzero"` // of the last answer
	ClockOffset  float64   `json:"clockOffsetSeconds"`  // by which the local clock was behind then
	LastReportAt time.Time `json:"lastReportAt,omitzero"`
	Problem      string    `json:"problem,omitempty"` // why what is due has not been done
}

// identity is a certificate and what the server said with it.
type identity struct {
	NodeID      string    `json:"nodeId"`
	TenantID    string    `json:"tenantId"`
	PoolID      string    `json:"poolId"`
	TokenID     string    `json:"tokenId"` // that it joined with
	Profile     string    `json:"profile"`
	Trust       string    `json:"trust"`
	Serial      string    `json:"serial"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
	RenewAfter  time.Time `json:"renewAfter"`
	Confirmed   bool      `json:"confirmed"`
	Certificate string    `json:"certificate"` // the chain in PEM
	// Refused is how the server has said no since; a new certificate is another identity.
	Refused string `json:"refused,omitempty"`
}

// attempt is a certificate request that may have reached the server. Until it
// is answered, it is sent again and no other: it is the same join then (NJ-3).
type attempt struct {
	TokenID string   `json:"tokenId,omitempty"` // of a join
	CSR     string   `json:"csr"`
	Pending *Pending `json:"pending,omitempty"`
	Refused string   `json:"refused,omitempty"` // how the server has said no
}

// load reads the state, and finishes what a crash has left half done.
func (f *folder) load(log *slog.Logger) (state, error) {
	for _, name := range []string{stateFile, keyFile, joinKeyFile, renewKeyFile, certFile, caFile} {
		if err := f.remove(name + newSuffix); err != nil {
			return state{}, err
		}
	}
	s, err := f.peek()
	if err != nil || s.Identity == nil {
		return s, err
	}
	name, err := f.whole(&s)
	if err != nil {
		return s, err
	}
	if err := f.settle(&s, name); err != nil {
		log.Warn("the state folder could not be put in order; that is tried again", "error", err)
	}
	return s, nil
}

// peek reads the state and changes nothing.
func (f *folder) peek() (state, error) {
	s := state{Version: stateVersion}
	text, err := f.read(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	file := filepath.Join(f.dir, stateFile)
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s is damaged: %w; move the folder away to join anew with a new token", file, err)
	}
	if s.Version > stateVersion {
		return s, fmt.Errorf("%s was written by a newer bcd (version %d; this one knows %d)", file, s.Version, stateVersion)
	}
	return s, nil
}

func (f *folder) save(s *state) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return f.write(stateFile, append(text, '\n'))
}

// settle gives the key of the identity its name, and writes the copies.
func (f *folder) settle(s *state, key string) error {
	if key != keyFile {
		if err := f.rename(key, keyFile); err != nil {
			return err
		}
	}
	return errors.Join(f.copy(certFile, s.Identity.Certificate), f.copy(caFile, s.CABundle))
}

// copy makes a file hold a text, or not be there.
func (f *folder) copy(name, text string) error {
	if text == "" {
		return f.remove(name)
	}
	if has, err := f.read(name); err == nil && string(has) == text {
		return nil
	}
	return f.write(name, []byte(text))
}

// errNoKey marks a certificate whose key is in no file.
var errNoKey = errors.New("the certificate is for another key")

// keyOf finds the key of an identity, in the file where it is.
func (f *folder) keyOf(i *identity) (name string, pair tls.Certificate, err error) {
	for _, name := range []string{keyFile, joinKeyFile, renewKeyFile} {
		text, err := f.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", tls.Certificate{}, err
		}
		if pair, err := tls.X509KeyPair([]byte(i.Certificate), text); err == nil {
			return name, pair, nil
		}
	}
	return "", tls.Certificate{}, errNoKey
}

// request returns the certificate request of an attempt. An attempt that is
// none yet, or has lost its key, becomes one with a new key: key and state are
// on the disk before anybody hears of it.
func (d *daemon) request(of **attempt, name, tokenID string) (string, error) {
	if a := *of; a != nil && a.TokenID == tokenID && d.folder.hasKey(name, a.CSR) {
		return a.CSR, nil
	}
	if err := d.spare(name); err != nil {
		return "", err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	text, err := encodeKey(key)
	if err != nil {
		return "", err
	}
	if err := d.folder.write(name, text); err != nil {
		return "", err
	}
	asks, err := csr.New(key)
	if err != nil {
		return "", err
	}
	before := *of
	*of = &attempt{TokenID: tokenID, CSR: asks}
	if err := d.save(); err != nil {
		*of = before
		return "", err
	}
	return asks, nil
}

// whole checks that an identity that is stored has its key.
func (f *folder) whole(s *state) (key string, err error) {
	if s.Identity == nil {
		return "", nil
	}
	key, _, err = f.keyOf(s.Identity)
	if errors.Is(err, errNoKey) {
		err = fmt.Errorf("the state folder %s has the certificate of %s and not its key; move the folder away to join anew with a new token", f.dir, s.Identity.NodeID)
	}
	return key, err
}

// spare makes sure that a key file is not the one of the identity.
func (d *daemon) spare(name string) error {
	if d.state.Identity == nil {
		return nil
	}
	is, _, err := d.folder.keyOf(d.state.Identity)
	if err != nil || is != name {
		return err
	}
	return d.folder.settle(&d.state, is)
}

// hasKey says whether a file has the key of a certificate request.
func (f *folder) hasKey(name, asks string) bool {
	text, err := f.read(name)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return false
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	request, err := csr.Parse(asks)
	return ok && err == nil && signer.PublicKey.Equal(request.PublicKey)
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}
