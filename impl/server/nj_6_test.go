package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/ca"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/keyring"
	"github.com/bettercompute/bettercompute/impl/seal"
)

// withNode is a server with pools, a key of acme/ops, a token, and a node of acme/lab.
func (s *running) withNode(t testing.TB) (ops, token string, n *node) {
	t.Helper()
	s.withPools(t)
	ops = s.key(t, "acme/ops", "tenant-admin")
	token, _ = s.bearerOf(t, ops, nil)
	return ops, token, s.confirmed(t, token, newMachine(t, nil))
}

// noNode checks that an answer refuses a certificate, in the one text for that.
func (a answer) noNode(t testing.TB) {
	t.Helper()
	if r := a.refused(t, problem.Unauthenticated); r.Detail != fault.NodeCertificate {
		t.Errorf("it is told %q", r.Detail)
	}
}

// selfMethods are those that a node calls for itself, with bodies for them.
func selfMethods(t testing.TB) map[string]object {
	return map[string]object{"nodes.report": {}, "nodes.confirm": {}, "nodes.renew": {"csr": newMachine(t, nil).csr}}
}

// TestNJ_6_RefusedOnItsOpenConnection holds that what becomes of a node counts
// from its next call on, on the connection that it has open.
func TestNJ_6_RefusedOnItsOpenConnection(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		ops, token, n := s.withNode(t)
		report := func() answer {
			request := s.request(t, "", "nodes.report", object{})
			reused := false
			return s.by(t, n.client, request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
				GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
				WroteRequest: func(httptrace.WroteRequestInfo) {
					if !reused {
						t.Error("another connection was made")
					}
				},
			})))
		}
		as[api.NodesReportOutput](t, report())
		as[api.NodesBanOutput](t, s.call(t, ops, "nodes.ban", n.id().with(object{"note": "odd"})))
		report().refusedFor(t, problem.ReasonNodeBanned)
		for method, body := range selfMethods(t) {
			n.call(t, method, body).refusedFor(t, problem.ReasonNodeBanned)
			want := int64(1)
			if method == "nodes.report" {
				want = 2
			}
			if n := s.denied(t, "node/"+n.NodeID, method, "compute-pool/acme/lab", "node_banned"); n != want {
				t.Errorf("%d refused calls of %s are recorded", n, method)
			}
		}
		as[api.NodesUnbanOutput](t, s.call(t, ops, "nodes.unban", n.id()))
		as[api.NodesReportOutput](t, report())

		// Its former certificate ends when the next one is confirmed.
		next := n.renewed(t)
		as[api.NodesReportOutput](t, report())
		as[api.NodesConfirmOutput](t, next.call(t, "nodes.confirm", object{}))
		report().noNode(t)

		n = next
		as[api.NodesReportOutput](t, report())
		as[api.NodesRemoveOutput](t, s.call(t, ops, "nodes.remove", n.id()))
		report().noNode(t)
		for method, body := range selfMethods(t) {
			n.call(t, method, body).noNode(t)
		}
		s.admitted(t, token, n.reinstalled(t))
	})
}

// TestNJ_6_AnExpiredCertificateRenewsAndNothingElse holds that a certificate
// that has ended is good for its renewal, for seven days.
func TestNJ_6_AnExpiredCertificateRenewsAndNothingElse(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, token, n := s.withNode(t)
		late := s.confirmed(t, token, newMachine(t, nil))
		s.clock.Set(n.NotAfter)
		as[api.NodesReportOutput](t, n.call(t, "nodes.report", object{}))
		s.clock.Advance(time.Microsecond)
		for _, method := range []string{"nodes.report", "nodes.confirm"} {
			n.call(t, method, object{}).noNode(t)
		}
		s.clock.Set(n.NotAfter.Add(7 * 24 * time.Hour))
		next := n.renewed(t)
		if want := s.clock.Now().Add(24 * time.Hour); !next.NotAfter.Equal(want) {
			t.Errorf("it lasts until %v, want %v", next.NotAfter, want)
		}
		as[api.NodesConfirmOutput](t, next.call(t, "nodes.confirm", object{}))
		s.clock.Advance(time.Microsecond)
		late.call(t, "nodes.renew", object{"csr": newMachine(t, nil).csr}).noNode(t)
	})
}

// authority is the CA of the server, as whoever has its keys has it.
func (s *running) authority(t testing.TB) *ca.Authority {
	t.Helper()
	keys, err := keyring.Open(t.Context(), s.db, keyring.Config{SealKeys: func() (seal.Keys, error) { return sealKeys(t), nil }})
	if err != nil {
		t.Fatal(err)
	}
	return keys.Authority()
}

// foreignAuthority is a CA of somebody else, with the same names.
func foreignAuthority(t testing.TB) *ca.Authority {
	t.Helper()
	materials, err := ca.Generate(noon)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := ca.New(materials)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// forge certifies the key of a machine.
func (m machine) forge(t testing.TB, by *ca.Authority, nodeID, serial string, from, until time.Time) tls.Certificate {
	t.Helper()
	number, err := ca.ParseSerial(serial)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := by.SignNode(t.Context(), ca.Order{NodeID: nodeID, Public: m.key.Public(), Serial: number, NotBefore: from, NotAfter: until})
	if err != nil {
		t.Fatal(err)
	}
	return pairOf(t, chain, m.key)
}

// TestNJ_6_WhoIsNoNode shows certificates that are not those of a node to each
// method of nodes.
func TestNJ_6_WhoIsNoNode(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, token, n := s.withNode(t)
		other, m := s.confirmed(t, token, newMachine(t, nil)), newMachine(t, nil)
		ours, theirs := s.authority(t), foreignAuthority(t)
		listener, err := ours.SignServer(t.Context(), []string{"localhost"}, m.key.Public(), noon)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := s.caKeys(t)
		if err != nil {
			t.Fatal(err)
		}
		issuer, err := x509.ParsePKCS8PrivateKey(keys[ca.NodeTenant])
		if err != nil {
			t.Fatal(err)
		}
		good, foreign := pairOf(t, n.Certificate, n.key), m.forge(t, theirs, n.NodeID, n.Serial, n.NotBefore, n.NotAfter)
		for what, pair := range map[string]tls.Certificate{
			"self-signed":            selfSigned(t),
			"of a foreign CA":        foreign,
			"in front of a good one": {Certificate: append(foreign.Certificate[:1:1], good.Certificate...), PrivateKey: m.key},
			"of the listener":        {Certificate: listener, PrivateKey: m.key},
			"of the issuer itself":   {Certificate: good.Certificate[1:], PrivateKey: issuer},
			"that is not kept":       m.forge(t, ours, n.NodeID, ca.NewSerial(), n.NotBefore, n.NotAfter),
			"with another's serial":  m.forge(t, ours, n.NodeID, other.Serial, n.NotBefore, n.NotAfter),
			"of no node":             m.forge(t, ours, "nd_"+x26, ca.NewSerial(), n.NotBefore, n.NotAfter),
			"not yet valid":          m.forge(t, ours, n.NodeID, n.Serial, noon.Add(time.Hour), n.NotAfter),
		} {
			t.Run(what, func(t *testing.T) {
				client := s.showing(t, pair)
				for method, body := range selfMethods(t) {
					s.by(t, client, s.request(t, "", method, body)).noNode(t)
				}
			})
		}
		for _, bearer := range []string{"", token, s.admin} { // without a certificate
			for method, body := range selfMethods(t) {
				s.call(t, bearer, method, body).noNode(t)
			}
		}
		as[api.NodesReportOutput](t, n.call(t, "nodes.report", object{}))
	})
}

// TestNJ_6_CertificatesAndBearers holds that each method looks at what it takes
// and at nothing else that a caller shows.
func TestNJ_6_CertificatesAndBearers(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		ops, token, n := s.withNode(t)
		auditor := s.key(t, "acme/eve", "pool-auditor")
		with := func(bearer, method string, body any) answer {
			t.Helper()
			return s.by(t, n.client, s.request(t, bearer, method, body))
		}
		as[api.NodesGetOutput](t, with(ops, "nodes.get", n.id()))
		with(auditor, "nodes.ban", n.id()).refused(t, problem.PermissionDenied)
		for _, bearer := range []string{"", token} {
			if r := with(bearer, "nodes.get", n.id()).refused(t, problem.Unauthenticated); r.Detail != fault.APIKey {
				t.Errorf("it is told %q", r.Detail)
			}
		}
		for _, bearer := range []string{"", ops} {
			if r := with(bearer, "nodes.join", newMachine(t, nil).body()).refused(t, problem.Unauthenticated); r.Detail != fault.JoinToken {
				t.Errorf("it is told %q", r.Detail)
			}
		}
		out := as[api.NodesJoinOutput](t, with(token, "nodes.join", newMachine(t, nil).body()))
		if out.Admitted == nil || out.Admitted.NodeID == n.NodeID {
			t.Errorf("the token makes %+v", out)
		}
		for _, bearer := range []string{token, ops, "x"} {
			if out := as[api.NodesReportOutput](t, with(bearer, "nodes.report", object{})); out.NodeID != n.NodeID {
				t.Errorf("it is taken for %s", out.NodeID)
			}
		}
		if log := s.log.text(t); !logged(log, `"method":"nodes.report","principal":"node/`+n.NodeID) || !logged(log, `"method":"nodes.join","principal":"join-token/jt_`) {
			t.Error("the log does not say who called")
		}
	})
}

// TestNJ_6_NothingInTheClear holds that machines are served over TLS only, and
// that who runs the server is told how.
func TestNJ_6_NothingInTheClear(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		token, id := s.bearerOf(t, s.key(t, "acme/ops", "tenant-admin"), nil)
		for _, bearer := range []string{token, "x", ""} {
			r := s.join(t, bearer, newMachine(t, nil)).refused(t, problem.InvalidState)
			if !strings.Contains(r.Detail, "TLS") || !strings.Contains(r.Detail, "--tls auto") {
				t.Errorf("it is told %q", r.Detail)
			}
		}
		for method, body := range selfMethods(t) {
			s.call(t, "", method, body).noNode(t)
		}
		if n, uses := s.count(t, "nodes"), s.count(t, "join_tokens WHERE uses > 0 AND id = '"+id+"'"); n+uses != 0 {
			t.Errorf("%d nodes, uses: %d", n, uses)
		}
	})
}

// TestNJ_6_NoSessionIsTakenUpAgain holds that a node shows its certificate on
// each of its connections.
func TestNJ_6_NoSessionIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, _, n := s.withNode(t)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			config := s.trustingWith(t, pairOf(t, n.Certificate, n.key))
			config.MinVersion, config.MaxVersion, config.ClientSessionCache = version, version, tls.NewLRUClientSessionCache(8)
			for range 3 {
				client, resumed := clientOf(t, config), false
				request := s.request(t, "", "nodes.report", object{})
				as[api.NodesReportOutput](t, s.by(t, client, request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
					TLSHandshakeDone: func(state tls.ConnectionState, _ error) { resumed = state.DidResume },
				}))))
				if client.CloseIdleConnections(); resumed {
					t.Errorf("%s: a session was taken up again", tls.VersionName(version))
				}
			}
		}
	})
}
