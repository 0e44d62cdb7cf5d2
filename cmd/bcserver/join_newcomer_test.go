package main_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/impl/csr"
)

// A newcomer is a machine that wants to join: a key, and the request for its certificate.
type newcomer struct {
	key    *ecdsa.PrivateKey
	csr    string
	serial string // of its hardware
}

var newcomers atomic.Int64

func newNewcomer(t testing.TB) newcomer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := csr.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return newcomer{key, request, fmt.Sprintf("CZ3K%06d", newcomers.Add(1))}
}

// joinable starts a server to which machines may come as fast as they like.
func joinable(t testing.TB, data, db string) *server {
	t.Helper()
	s := autoTLS(t, setting{}, data, db, "--join-rate", "0", "--join-rate-per-address", "0")
	s.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	return s
}

// tryJoin calls nodes.join. An error means that there was no whole answer.
func (s *server) tryJoin(ctx context.Context, token string, n newcomer) (answer, error) {
	return s.try(ctx, token, "nodes.join", object{"csr": n.csr, "claims": object{"serial": n.serial}})
}

// joined lets a machine join that will be admitted.
func (s *server) joined(t testing.TB, token string, n newcomer) api.Admission {
	t.Helper()
	a, err := s.tryJoin(t.Context(), token, n)
	if err != nil {
		t.Fatal(err)
	}
	return admission(t, a)
}

// admission reads the answer to a join that went well.
func admission(t testing.TB, a answer) api.Admission {
	t.Helper()
	out := ok[api.NodesJoinOutput](t, a)
	if out.Admitted == nil {
		t.Fatalf("the machine is not admitted: %s", a.body)
	}
	return *out.Admitted
}

// joinToken mints a token of acme/lab for some machines.
func (s *server) joinToken(t testing.TB, ops string, maxUses int) (token, id string) {
	t.Helper()
	in := mint(fmt.Sprint("token-", newcomers.Add(1)))
	in["maxUses"] = maxUses
	m := ok[minted](t, s.call(t, ops, "joinTokens.create", in))
	return m.Token, m.id(t)
}

// A ledger is what the database has of a token that was used once.
type ledger struct {
	db    *sql.DB
	epoch string // an expression of SQL: whole seconds since 1970
	token string // its id

	nodeID, serial      string
	notBefore, notAfter int64
	chain               sql.NullString // unless it is still to be signed
}

func newLedger(db *sql.DB, token, url string) *ledger {
	l := &ledger{db: db, epoch: "CAST(extract(epoch FROM %s) AS BIGINT)", token: token}
	if strings.HasPrefix(url, "sqlite:") {
		l.epoch = "unixepoch(%s)"
	}
	return l
}

// claimed and stored are whether there is a certificate of the token, and
// whether its chain is there.
func (l *ledger) claimed(t testing.TB) bool { return l.certificates(t, "") == 1 }
func (l *ledger) stored(t testing.TB) bool  { return l.certificates(t, "AND chain IS NOT NULL") == 1 }

func (l *ledger) certificates(t testing.TB, more string) int {
	t.Helper()
	return number(t, l.db, "SELECT count(*) FROM node_certificates WHERE node_id IN (SELECT node_id FROM join_uses WHERE token_id = '"+l.token+"') "+more)
}

// read reads it.
func (l *ledger) read(t testing.TB) {
	t.Helper()
	query := "SELECT u.node_id, u.serial, " + fmt.Sprintf(l.epoch, "c.not_before") + ", " + fmt.Sprintf(l.epoch, "c.not_after") +
		", c.chain FROM join_uses AS u JOIN node_certificates AS c ON c.serial = u.serial WHERE u.token_id = '" + l.token + "'"
	if err := l.db.QueryRowContext(t.Context(), query).Scan(&l.nodeID, &l.serial, &l.notBefore, &l.notAfter, &l.chain); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// usedOnce checks that a token was used once, for one node with one certificate, said once.
func (l *ledger) usedOnce(t testing.TB) {
	t.Helper()
	node := "IN (SELECT node_id FROM join_uses WHERE token_id = '" + l.token + "')"
	for query, want := range map[string]int{
		"SELECT uses FROM join_tokens WHERE id = '" + l.token + "'":                                    1,
		"SELECT count(*) FROM join_uses WHERE token_id = '" + l.token + "'":                            1,
		"SELECT count(*) FROM nodes WHERE token_id = '" + l.token + "'":                                1,
		"SELECT count(*) FROM nodes WHERE id " + node:                                                  1,
		"SELECT count(*) FROM node_certificates WHERE node_id " + node:                                 1,
		"SELECT count(*) FROM events WHERE type = 'security.node.joined' AND subject " + node:          1,
		"SELECT count(*) FROM events WHERE type <> 'security.node.joined' AND subject " + node:         0,
		"SELECT count(*) FROM denials WHERE principal = 'join-token/" + l.token + "'":                  0,
		"SELECT count(*) FROM node_identifiers WHERE holder = '' AND node_id " + node:                  1,
		"SELECT count(*) FROM events WHERE type LIKE 'security.join%' AND subject = '" + l.token + "'": 1, // created
	} {
		wantNumber(t, l.db, want, query)
	}
}

// repeats checks that an admission is the one that was claimed, said again, and
// that the certificate is the kept one, of the machine's key, and opens the door.
func (l *ledger) repeats(t testing.TB, s *server, n newcomer, got api.Admission) {
	t.Helper()
	if !got.Replayed || got.NodeID != l.nodeID || got.Serial != l.serial || got.NotBefore.Unix() != l.notBefore || got.NotAfter.Unix() != l.notAfter {
		t.Errorf("the repeated call is answered with %+v, want %+v", got, l)
	}
	if l.chain.Valid && got.Certificate != l.chain.String {
		t.Error("the repeated call has another certificate than the stored one")
	}
	var kept string
	if err := l.db.QueryRowContext(t.Context(), "SELECT chain FROM node_certificates WHERE serial = '"+l.serial+"'").Scan(&kept); err != nil || kept != got.Certificate {
		t.Errorf("the answer has another certificate than the database (error: %v)", err)
	}
	leaf := leafOf(t, got.Certificate)
	if leaf.Subject.CommonName != l.nodeID || hex.EncodeToString(leaf.SerialNumber.Bytes()) != l.serial ||
		leaf.NotBefore.Unix() != l.notBefore || leaf.NotAfter.Unix() != l.notAfter || !n.key.PublicKey.Equal(leaf.PublicKey) {
		t.Errorf("the certificate is of %s, %x, from %v to %v", leaf.Subject.CommonName, leaf.SerialNumber, leaf.NotBefore, leaf.NotAfter)
	}
	if s != nil {
		ok[object](t, s.confirm(t, n, got))
	}
}

func leafOf(t testing.TB, chain string) *x509.Certificate {
	t.Helper()
	leaf, err := parseLeaf(chain)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func parseLeaf(chain string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(chain))
	if block == nil {
		return nil, errors.New("no PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

// confirm calls nodes.confirm with the certificate.
func (s *server) confirm(t testing.TB, n newcomer, a api.Admission) answer {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(n.key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(a.Certificate), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots(t, s.bundle()), Certificates: []tls.Certificate{pair}}}}
	defer client.CloseIdleConnections()
	response, err := client.Post(s.url+pathOf("nodes.confirm"), "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAnswer(response)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// soon polls without a pause, for what is true but for a moment.
func soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting until %s", what)
		}
	}
}
