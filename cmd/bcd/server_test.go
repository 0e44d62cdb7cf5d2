package main_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/client"
)

// platform owns the site and the pool of every test.
const (
	platform = "platform"
	lab      = "lab"
)

// A server is a bcserver on embedded SQLite with a certificate of its own CA.
type server struct {
	*process
	data  string // its folder
	url   string
	pin   string // of its root
	admin *client.Client
}

// serve starts a server with one pool.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	program, err := bcserver()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	args = append([]string{"serve", "--tls", "auto", "--listen", "127.0.0.1:0", "--data", data, "--join-rate-per-address", "0"}, args...)
	s := &server{process: launch(t, program, setting{}, args...), data: data}
	s.url = s.await(t, s.stdout, `listening on (https://\S+)`)[1]
	root := s.root(t)
	sum := sha256.Sum256(root.Raw)
	s.pin = hex.EncodeToString(sum[:])
	pool := x509.NewCertPool()
	pool.AddCert(root)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	key, err := os.ReadFile(filepath.Join(data, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	if s.admin, err = client.New(s.url, client.WithKey(strings.TrimSpace(string(key))), client.WithHTTP(&http.Client{Transport: transport, Timeout: patience})); err != nil {
		t.Fatal(err)
	}
	_, err = s.admin.Sites.Create(t.Context(), client.SitesCreateInput{TenantID: platform, SiteID: "berlin"})
	must(t, err)
	_, err = s.admin.Pools.Create(t.Context(), client.PoolsCreateInput{
		TenantID: platform, PoolID: lab, SiteID: "berlin",
		Policy: &client.PoolsCreateInputPolicy{Kubernetes: &client.PoolsCreateInputPolicyKubernetes{PlatformOperated: ptr(true)}},
	})
	must(t, err)
	return s
}

func ptr[T any](v T) *T { return &v }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// root is the root of a server.
func (s *server) root(t testing.TB) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(s.bundle(t)))
	if block == nil {
		t.Fatal("ca.pem has no certificate")
	}
	root, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return root
}

// bundle is the roots of a server, as it leaves them in a file.
func (s *server) bundle(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.data, "ca.pem"))
	must(t, err)
	return string(text)
}

// mint makes a token and returns its id and text.
func (s *server) mint(t testing.TB, in client.JoinTokensCreateInput) (id, text string) {
	t.Helper()
	in.TenantID, in.PoolID, in.TTLSeconds = platform, lab, 3600
	if in.IdempotencyKey == "" {
		in.IdempotencyKey = "key"
	}
	out, err := s.admin.JoinTokens.Create(t.Context(), in)
	must(t, err)
	return out.JoinToken.ID, *out.Token
}

// uses is how often a token was used.
func (s *server) uses(t testing.TB, tokenID string) int64 {
	t.Helper()
	out, err := s.admin.JoinTokens.List(t.Context(), client.JoinTokensListInput{TenantID: platform, PoolID: lab, IncludeInactive: ptr(true)})
	must(t, err)
	for _, token := range out.JoinTokens {
		if token.ID == tokenID {
			return token.Uses
		}
	}
	t.Fatalf("no token %s", tokenID)
	return 0
}

// nodes are the nodes of the pool.
func (s *server) nodes(t testing.TB) []client.Node {
	t.Helper()
	out, err := s.admin.Nodes.List(t.Context(), client.NodesListInput{TenantID: platform, PoolID: lab})
	must(t, err)
	return out.Nodes
}

// node is the only node of the pool.
func (s *server) node(t testing.TB) client.Node {
	t.Helper()
	all := s.nodes(t)
	if len(all) != 1 {
		t.Fatalf("%d nodes", len(all))
	}
	return all[0]
}

// approve approves the only request of the pool.
func (s *server) approve(t testing.TB) client.JoinRequest {
	t.Helper()
	list, err := s.admin.JoinRequests.List(t.Context(), client.JoinRequestsListInput{TenantID: platform, PoolID: lab})
	must(t, err)
	if len(list.JoinRequests) != 1 {
		t.Fatalf("%d requests", len(list.JoinRequests))
	}
	r := list.JoinRequests[0]
	_, err = s.admin.JoinRequests.Approve(t.Context(), client.JoinRequestsApproveInput{TenantID: platform, PoolID: lab, RequestID: r.ID, CSRSha256: r.CSRSha256})
	must(t, err)
	return r
}
