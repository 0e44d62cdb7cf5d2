package server_test

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/server"
)

// halfSent is a call of which the server has read the head and awaits the body.
type halfSent struct {
	conn net.Conn
	in   *bufio.Reader
	body string
}

// halfSend sends the head of a call over TLS.
func (s *running) halfSend(t testing.TB, config *tls.Config, method, bearer, body string) halfSent {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: bc\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n", pathOf(method), len(body))
	if bearer != "" {
		fmt.Fprintf(conn, "Authorization: Bearer %s\r\n", bearer)
	}
	io.WriteString(conn, "\r\n")
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // sent once the caller is known and the body is wanted
		t.Fatalf("%q %v", line, err)
	}
	in.ReadString('\n')
	return halfSent{conn, in, body}
}

// rest sends the body.
func (h halfSent) rest(t testing.TB) answer {
	t.Helper()
	io.WriteString(h.conn, h.body)
	response, err := http.ReadResponse(h.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// TestJoin_AHalfSentCallDoesNotOutliveWhatItShows begins calls of machines,
// takes away what they have shown while their bodies are awaited, and then
// sends the rest.
func TestJoin_AHalfSentCallDoesNotOutliveWhatItShows(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		ops, token, n := s.withNode(t)
		lost, id := s.bearerOf(t, ops, nil)
		banned := s.confirmed(t, token, newMachine(t, nil))
		m := newMachine(t, nil)
		body := fmt.Sprintf(`{"csr": %q, "claims": {"serial": "HALF"}}`, m.csr)
		begin := func(n *node) halfSent {
			return s.halfSend(t, s.trustingWith(t, pairOf(t, n.Certificate, n.key)), "nodes.report", "", "{}")
		}
		stays, joins, reports, bans := begin(n), s.halfSend(t, s.trusting(t), "nodes.join", lost, body), begin(n), begin(banned)
		as[api.NodesReportOutput](t, stays.rest(t))
		as[api.JoinTokensRevokeOutput](t, s.call(t, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": id}))
		as[api.NodesRemoveOutput](t, s.call(t, ops, "nodes.remove", n.id()))
		as[api.NodesBanOutput](t, s.call(t, ops, "nodes.ban", banned.id()))
		joins.rest(t).refused(t, problem.Unauthenticated)
		reports.rest(t).noNode(t)
		bans.rest(t).refusedFor(t, problem.ReasonNodeBanned)
		if n := s.denied(t, "join-token/"+id, "nodes.join", "compute-pool/acme/lab", "revoked"); n != 1 {
			t.Errorf("%d refusals are recorded", n)
		}
	}, func(s *setup) { s.adjust = func(server *server.Server) { server.SetBodyTimeout(0) } })
}

// TestJoin_BodiesAreBounded holds the limits of a body and of what is in it,
// for a machine that has a good token, and that nothing is spent for what is refused.
func TestJoin_BodiesAreBounded(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		token, id := s.bearerOf(t, s.key(t, "acme/ops", "tenant-admin"), nil)
		m := newMachine(t, nil)
		list := func(n int, format string) (list []string) {
			for i := range n {
				list = append(list, fmt.Sprintf(format, i/256, i%256))
			}
			return list
		}
		const mac, gpu = "3c:ec:ef:12:%02x:%02x", "GPU-%04x%04x"
		with := func(claims object) object { return object{"csr": m.csr, "claims": claims} }
		s.call(t, token, "nodes.join", with(object{"macs": list(10_000, mac)})).refused(t, problem.PayloadTooLarge)
		s.call(t, token, "nodes.join", object{"csr": strings.Repeat("a", 70<<10), "claims": object{}}).refused(t, problem.PayloadTooLarge)
		for _, c := range []struct {
			body        any
			field, rule string
		}{
			{with(object{"macs": list(2500, mac)}), "claims.macs", "items"},
			{with(object{"macs": list(65, mac)}), "claims.macs", "items"},
			{with(object{"gpuUuids": list(65, gpu)}), "claims.gpuUuids", "items"},
			{with(object{"macs": []string{"3c:ec:ef:12:34:5g"}}), "claims.macs[0]", "pattern"},
			{with(object{"serial": "a\tb"}), "claims.serial", "pattern"},
			{with(object{"serial": "a\x1b[2J"}), "claims.serial", "pattern"},
			{with(object{"serial": "a\u202eb"}), "claims.serial", "pattern"},
			{with(object{"hostname": "a\nb"}), "claims.hostname", "pattern"},
			{with(object{"serial": "a\x00b"}), "claims.serial", "encoding"},
			{with(object{"serial": strings.Repeat("a", 129)}), "claims.serial", "length"},
			{object{"csr": strings.Repeat("a", 8193), "claims": object{}}, "csr", "length"},
			{with(object{"token": "x"}), "claims.token", "unknown"},
			{fmt.Sprintf(`{"csr": %q, "csr": %q, "claims": {}}`, m.csr, m.csr), "csr", "duplicate"},
			{object{"csr": m.csr}, "claims", "required"},
		} {
			s.call(t, token, "nodes.join", c.body).violates(t, c.field, c.rule)
		}
		if n, uses := s.count(t, "join_uses"), s.count(t, "join_tokens WHERE uses > 0 AND id = '"+id+"'"); n+uses != 0 {
			t.Errorf("%d uses, counted: %d", n, uses)
		}
		out := as[api.NodesJoinOutput](t, s.call(t, token, "nodes.join", with(object{"macs": list(64, mac), "gpuUuids": list(64, gpu)})))
		if out.Admitted == nil {
			t.Error("as many as may be are not admitted")
		}
	})
}

// TestJoin_CertificateRequestsThatAreNone sends what is no certificate request
// that can be signed, in joins and in renewals.
func TestJoin_CertificateRequestsThatAreNone(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		_, token, n := s.withNode(t)
		good := newMachine(t, nil)
		block, _ := pem.Decode([]byte(good.csr))
		weak, err := rsa.GenerateKey(rand.Reader, 1024)
		if err != nil {
			t.Fatal(err)
		}
		weakDER, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, weak)
		if err != nil {
			t.Fatal(err)
		}
		broken := append([]byte(nil), block.Bytes...)
		broken[len(broken)-1] ^= 1
		for what, text := range map[string]string{
			"empty":                "",
			"nothing like one":     "hello",
			"a certificate":        n.Certificate,
			"two blocks":           good.csr + good.csr,
			"text before":          "x" + good.csr,
			"bytes behind":         base64.StdEncoding.EncodeToString(append(block.Bytes[:len(block.Bytes):len(block.Bytes)], 0)),
			"another's signature":  base64.StdEncoding.EncodeToString(broken),
			"a weak key":           base64.StdEncoding.EncodeToString(weakDER),
			"another kind of PEM":  strings.ReplaceAll(good.csr, "CERTIFICATE REQUEST", "CERTIFICATE"),
			"a block with headers": strings.Replace(good.csr, "\n", "\nProc-Type: 4\n\n", 1),
		} {
			t.Run(what, func(t *testing.T) {
				s.call(t, token, "nodes.join", object{"csr": text, "claims": object{"serial": "X"}}).violates(t, "csr", "csr")
				n.call(t, "nodes.renew", object{"csr": text}).violates(t, "csr", "csr")
			})
		}
		if n := s.count(t, "node_certificates"); n != 1 {
			t.Errorf("%d certificates", n)
		}
	})
}

// TestJoin_OnlyTheKeyOfARequestCounts holds that nothing that a certificate
// request asks for is in the certificate.
func TestJoin_OnlyTheKeyOfARequestCounts(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		token, _ := s.bearerOf(t, s.key(t, "acme/ops", "tenant-admin"), nil)
		m := newMachine(t, nil)
		authority, err := asn1.Marshal(struct{ CA bool }{true})
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			Subject:         pkix.Name{CommonName: "nd_" + x26, Organization: []string{"platform"}},
			DNSNames:        []string{"bc.example.org"},
			ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: authority}},
		}, m.key)
		if err != nil {
			t.Fatal(err)
		}
		m.csr = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
		n := s.admitted(t, token, m)
		leaf := certificatesOf(t, n.Certificate)[0]
		if leaf.Subject.String() != "CN="+n.NodeID || len(leaf.DNSNames) != 0 || len(leaf.URIs) != 1 || leaf.URIs[0].String() != "spiffe://bettercompute/node/"+n.NodeID || leaf.IsCA {
			t.Errorf("the certificate is of %v, for %v and %v, a CA: %v", leaf.Subject, leaf.DNSNames, leaf.URIs, leaf.IsCA)
		}
		if !m.key.PublicKey.Equal(leaf.PublicKey) || !leaf.NotAfter.Equal(noon.Add(24*time.Hour)) || !leaf.NotBefore.Equal(noon.Add(-5*time.Minute)) {
			t.Errorf("the certificate is from %v to %v, for %v", leaf.NotBefore, leaf.NotAfter, leaf.PublicKey)
		}
		as[api.NodesConfirmOutput](t, n.call(t, "nodes.confirm", object{}))
	})
}
