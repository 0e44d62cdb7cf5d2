package server_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/bearer"
)

// TestJT_03_NothingIsLeftBehind lives through everything that touches a secret
// and then looks at all that is left: logs at trace level, tables, answers and
// metrics. TestMain does the same for the whole package.
func TestJT_03_NothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		made := s.apiKey(t, "acme/ops", "tenant-admin")
		ops, body := *made.Key, lab()
		st := s.watch(t, ops, object{"tenantId": "acme"})
		token := s.mint(t, ops, body)
		s.mint(t, ops, body) // a replay
		s.call(t, ops, "joinTokens.create", body.with(object{"hosted": "kubernetes"})).refused(t, problem.Conflict)
		s.call(t, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.JoinToken.ID})
		st.next(t)
		st.next(t)
		// A client that puts a secret where it does not belong.
		for _, wrong := range []string{*token.Token, ops} {
			s.call(t, wrong[:len(wrong)-1], "joinTokens.list", object{}).refused(t, problem.Unauthenticated)
			s.call(t, wrong+"x", "joinTokens.list", object{}).refused(t, problem.Unauthenticated)
			for _, field := range []string{"tokenId", wrong} {
				s.call(t, ops, "joinTokens.revoke", object{"tenantId": "acme", "poolId": "lab", "tokenId": token.JoinToken.ID}.with(object{field: wrong}))
			}
			s.call(t, ops, "joinTokens.create", lab().with(object{"expect": object{"serial": wrong + "!"}})).refused(t, problem.InvalidInput)
		}
		joins, _ := s.bearerOf(t, ops, nil)
		n := s.confirmed(t, joins, newMachine(t, nil))
		n.renewed(t)
		s.deferred(t, joins, nobody(t))
		s.join(t, wrongAt(joins, lastOfSecret), newMachine(t, nil)).refused(t, problem.Unauthenticated)
		n.call(t, "nodes.renew", object{"csr": joins}).violates(t, "csr", "csr")
		s.revokeKey(t, "acme", made.APIKey.ID)
		s.call(t, ops, "joinTokens.list", object{}).refused(t, problem.Unauthenticated)
		if err := s.stop(t); err != nil {
			t.Error(err)
		}
		s.dump(t)
		if !logged(s.log.text(t), `"msg":"statement"`, "join_tokens", token.JoinToken.ID) || !logged(s.log.text(t), `"msg":"statement"`, "node_certificates", n.Serial) {
			t.Error("the log has no statements: it is not at trace level")
		}
		found, files, err := left.scan(plainName(t))
		if err != nil || len(found) > 0 || files < 3 {
			t.Errorf("in %d files a secret is at %v (error: %v)", files, found, err)
		}
	})
}

// TestScan_OfFiles holds that a secret in one file among others is found.
func TestScan_OfFiles(t *testing.T) {
	t.Parallel()
	e := &evidence{dir: t.TempDir()}
	minted, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
	e.secret(minted.Reveal())
	for i, text := range []string{"nothing", minted.Reveal(), minted.String()} {
		f := e.open(t, fmt.Sprint("part", i))
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		f.close(t)
	}
	found, files, err := e.scan("")
	if err != nil || files != 3 || len(found) == 0 || !strings.Contains(found[0], "-part1-") {
		t.Errorf("in %d files: %v (error: %v)", files, found, err)
	}
	if found, files, err := e.scan("Other"); err != nil || files != 0 || len(found) != 0 {
		t.Errorf("in %d files of others: %v (error: %v)", files, found, err)
	}
}

// TestScanner_FindsAPlantedSecret holds that the scan after the run would see a
// secret, wherever in a text and in whatever form it stands.
func TestScanner_FindsAPlantedSecret(t *testing.T) {
	t.Parallel()
	minted, _ := bearer.Mint(bearer.JoinToken, "jt_0123456789abcdefghjkmnpqrs")
	secret := minted.Reveal()
	_, half, _ := strings.Cut(secret, ".")
	percent, escaped := "", ""
	for _, b := range []byte(secret) {
		percent += fmt.Sprintf("%%%02X", b)
		escaped += fmt.Sprintf(`\u%04x`, b)
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("oops", "request", []byte(`{"token":"`+secret+`"}`))
	numbers, err := json.Marshal([]any{[]int{1}, bytesAsInts(secret)})
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]string{
		"text":          secret,
		"first half":    half[:24],
		"second half":   half[19:43],
		"a log line":    log.String(),
		"hex":           hex.EncodeToString([]byte(secret)),
		"upper hex":     strings.ToUpper(hex.EncodeToString([]byte(half))),
		"percent":       percent,
		"JSON escapes":  escaped,
		"bytes printed": fmt.Sprint([]byte(secret)),
		"numbers":       string(numbers),
	}
	for before := range 3 {
		text := []byte(strings.Repeat("/", before) + secret + "??")
		planted[fmt.Sprint("base64 ", before)] = base64.StdEncoding.EncodeToString(text)
		planted[fmt.Sprint("base64url ", before)] = base64.RawURLEncoding.EncodeToString(text)
	}
	others := make([]string, 100)
	for i := range others {
		other, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
		others[i] = other.Reveal()
	}
	blind, seeing := newScanner(others), newScanner(append(others, secret))
	for form, text := range planted {
		for _, around := range []string{"", strings.Repeat("0Az", 50)} {
			if found := seeing.find([]byte(around + text + around)); len(found) == 0 {
				t.Errorf("the scan does not see a secret as %s", form)
			}
			if found := blind.find([]byte(around + text + around)); len(found) > 0 {
				t.Errorf("the scan sees a secret that is none: %v", found)
			}
		}
	}
	if found := seeing.find([]byte(secret[:len(secret)-len(half)] + half[:23])); len(found) > 0 {
		t.Errorf("an id and less than a half is no finding: %v", found)
	}
}

// TestScanner_FindsAPrivateKey holds that the scan would see a private key:
// one of the CA in any form, and any at all in PEM.
func TestScanner_FindsAPrivateKey(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil)
	der, err := x509.MarshalPKCS8PrivateKey(m.key)
	if err != nil {
		t.Fatal(err)
	}
	e := &evidence{}
	e.privateKey(der)
	seeing, blind := newScanner(e.secrets), newScanner(nil)
	inPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	inJSON, err := json.Marshal(inPEM)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(inPEM, "\n")
	for form, text := range map[string]string{
		"DER": string(der), "hex": hex.EncodeToString(der), "base64": base64.StdEncoding.EncodeToString(der), "the lines of PEM": body[:strings.Index(body, "-")],
		"printed": fmt.Sprint(der), "its number": m.key.D.Text(16),
	} {
		if len(seeing.find([]byte(text))) == 0 {
			t.Errorf("the scan does not see a key as %s", form)
		}
		if found := blind.find([]byte(text)); len(found) > 0 {
			t.Errorf("the scan sees a key that is none: %v", found)
		}
	}
	for _, text := range []string{inPEM, string(inJSON), base64.StdEncoding.EncodeToString([]byte(inPEM))} {
		if len(blind.find([]byte(text))) == 0 {
			t.Errorf("the scan does not see a key in %s", text)
		}
	}
	if found := seeing.find([]byte(m.csr)); len(found) > 0 {
		t.Errorf("a certificate request is no finding: %v", found)
	}
}

func bytesAsInts(text string) (ints []int) {
	for _, b := range []byte(text) {
		ints = append(ints, int(b))
	}
	return ints
}
