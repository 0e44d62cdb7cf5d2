package main_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bettercompute/bettercompute/impl/seal"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestSecrets_AreNowhereInTheClear holds that the seal key and the keys of the CA
// are in no output, even with every statement logged, in no file of the data
// folder but seal.key, and in no table.
func TestSecrets_AreNowhereInTheClear(t *testing.T) {
	t.Parallel()
	storetest.EachKind(t, func(t *testing.T, kind storetest.Kind) {
		data, url := t.TempDir(), storetest.EmptyURL(t, kind)
		if kind == storetest.SQLite {
			url = "sqlite:" + filepath.Join(data, "bc.db")
		}
		file, next := filepath.Join(data, "seal.key"), filepath.Join(t.TempDir(), "next.key")
		with := setting{bare: true}
		if kind == storetest.Postgres {
			file = filepath.Join(t.TempDir(), "seal.key")
			writeFile(t, file, seal.NewKeyText())
			with.env = []string{"BC_SEAL_KEY_FILE=" + file}
		}
		s := autoTLS(t, with, data, url, "--log-level", "trace")
		withLab(t, s, s.admin(t))
		secrets := [][]byte{}
		keysOf := func(file string) seal.Keys {
			keys, err := seal.ParseKeys(string(readFile(t, file)))
			mustBeNil(t, err)
			return keys
		}
		secrets = append(secrets, rawKey(t, file))
		secrets = append(secrets, caKeys(t, url, keysOf(file))...)

		writeFile(t, next, seal.NewKeyText()+string(readFile(t, file)))
		secrets = append(secrets, rawKey(t, next))
		places := map[string][]byte{}
		run := func(with setting, args ...string) {
			e := runWith(t, with, append(args, "--db", url, "--data", data)...)
			places[fmt.Sprint("output of ", args, len(places))] = []byte(e.stdout + e.stderr)
		}
		rotated := setting{bare: true, env: []string{"BC_SEAL_KEY_FILE=" + next}}
		run(rotated, "ca", "rotate")
		run(rotated, "seal", "rotate")
		run(rotated, "ca", "show")
		run(with, "ca", "show") // refused: it is the former key
		run(setting{bare: true, env: []string{"BC_SEAL_KEY=" + strings.TrimSpace(string(readFile(t, file))) + "="}}, "migrate")
		s.signal(t, syscall.SIGHUP)
		s.await(t, s.stderr, "the keys stay as they are")
		writeFile(t, file, string(readFile(t, next)))
		s.signal(t, syscall.SIGHUP)
		s.issuer(t)
		secrets = append(secrets, caKeys(t, url, keysOf(next))...)

		places["/ca.pem"], places["/metrics"] = s.get(t, "/ca.pem").body, s.get(t, "/metrics").body
		if kind == storetest.Postgres {
			places["the tables"] = dump(t, url)
		}
		for turn := range 2 { // while it runs, with its WAL, and afterwards
			files, err := os.ReadDir(data)
			mustBeNil(t, err)
			for _, f := range files {
				if f.Name() != "seal.key" {
					places[fmt.Sprint(f.Name(), len(places))] = readFile(t, filepath.Join(data, f.Name()))
				}
			}
			if turn == 0 {
				s.stops(t, syscall.SIGTERM)
			}
		}
		places["stdout"], places["stderr"] = []byte(s.stdout.String()), []byte(s.stderr.String())
		if !bytes.Contains(places["stderr"], []byte("seal_keysets")) || len(secrets) != 2+4+7 {
			t.Errorf("the test looks for %d secrets in a log without statements", len(secrets))
		}
		for place, text := range places {
			for i, secret := range secrets {
				for form, needle := range formsOf(secret) {
					if bytes.Contains(text, needle) {
						t.Errorf("secret %d is in %s as %s", i, place, form)
					}
				}
			}
		}
		// The same search finds what is there.
		if !bytes.Contains(readFile(t, file), formsOf(secrets[0])["base64 after 0"]) {
			t.Error("the search does not see a key in its own file")
		}
	})
}

// rawKey is the first key of a file.
func rawKey(t testing.TB, file string) []byte {
	t.Helper()
	line, _, _ := strings.Cut(string(readFile(t, file)), "\n")
	raw, err := base64.StdEncoding.DecodeString(line)
	mustBeNil(t, err)
	return raw
}

// caKeys are the private scalars of all keys of the CA.
func caKeys(t testing.TB, url string, keys seal.Keys) (scalars [][]byte) {
	t.Helper()
	db := connect(t, url)
	var wrapped []byte
	mustBeNil(t, db.QueryRow("SELECT wrapped FROM seal_keysets").Scan(&wrapped))
	box, err := seal.Open(keys, wrapped)
	mustBeNil(t, err)
	rows, err := db.Query("SELECT id, sealed_key FROM ca_keys")
	mustBeNil(t, err)
	defer rows.Close()
	for rows.Next() {
		var id string
		var sealed []byte
		mustBeNil(t, rows.Scan(&id, &sealed))
		der, err := box.Open(sealed, "ca_keys/"+id)
		mustBeNil(t, err)
		key, err := x509.ParsePKCS8PrivateKey(der)
		mustBeNil(t, err)
		scalar, err := key.(*ecdsa.PrivateKey).Bytes()
		mustBeNil(t, err)
		scalars = append(scalars, scalar)
	}
	mustBeNil(t, rows.Err())
	return scalars
}

// formsOf are the ways in which a part of a secret may have been written.
func formsOf(secret []byte) map[string][]byte {
	part := secret[:24] // most of it is too much already
	forms := map[string][]byte{
		"bytes": part,
		"hex":   []byte(hex.EncodeToString(part)),
		"HEX":   []byte(strings.ToUpper(hex.EncodeToString(part))),
		"Go":    []byte(strings.Trim(fmt.Sprintf("%q", part), `"`)),
		"list":  []byte(strings.Trim(fmt.Sprint(part), "[]")),
	}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), part...))
		forms[fmt.Sprint("base64 after ", before)] = []byte(text[(before*8+5)/6 : (before+len(part))*8/6]) // the ends hold bits of neighbours
	}
	return forms
}
