package daemon_test

import (
	"bytes"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/bearer"
	"github.com/bettercompute/bettercompute/impl/daemon"
)

// FuzzReadToken holds that only one line with a token is taken, whatever else
// is in a file, and that an error never has a part of it.
func FuzzReadToken(f *testing.F) {
	good, _ := bearer.Mint(bearer.JoinToken, tokenID)
	for _, text := range []string{"", "\n", good.Reveal(), good.Reveal() + "\n", good.Reveal() + "\r\n", "\ufeff" + good.Reveal(), good.Reveal() + "\n\n", "bck_ak_0.x", "\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id, revealed, err := daemon.ReadToken(bytes.NewReader(text))
		if err != nil {
			if line := strings.TrimSpace(string(text)); len(line) > 12 && strings.Contains(err.Error(), line) {
				t.Fatalf("the error tells what was read: %v", err)
			}
			return
		}
		if strings.TrimSuffix(string(text), "\n") != revealed {
			t.Fatalf("%q is taken for %q", text, revealed)
		}
		if is, _, ok := bearer.Parse(bearer.JoinToken, revealed); !ok || is != id {
			t.Fatalf("%q is taken for a token", text)
		}
	})
}

// FuzzParseBundle holds that what is read as a bundle has certificates, all of
// which can verify.
func FuzzParseBundle(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := daemon.ParseBundle(text)
		if (err == nil) != (len(found) > 0) {
			t.Fatalf("%d certificates, %v", len(found), err)
		}
		pool := x509.NewCertPool()
		for _, c := range found {
			pool.AddCert(c)
		}
	})
}
