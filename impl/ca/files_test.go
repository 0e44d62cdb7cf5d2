package ca_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/impl/ca"
)

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func certBlock(m ca.Material) string { return block("CERTIFICATE", m.Certificate) }
func keyBlock(m ca.Material) string  { return block("PRIVATE KEY", m.Key.Reveal()) }

// folder are the files of an operator's CA, by name.
type folder map[string]string

// operators returns a CA as an operator keeps it, and its materials.
func operators(t testing.TB) (folder, []ca.Material) {
	t.Helper()
	root := material(t, ca.Root, caTemplate("root"), newKey(t), nil)
	list := []ca.Material{
		root, material(t, ca.NodePlatform, caTemplate("platform", x509.ExtKeyUsageClientAuth), newKey(t), &root),
		material(t, ca.NodeTenant, caTemplate("tenant", x509.ExtKeyUsageClientAuth), newKey(t), &root),
		material(t, ca.Server, caTemplate("server", x509.ExtKeyUsageServerAuth), newKey(t), &root),
	}
	files := folder{"ca.pem": certBlock(root)}
	for _, m := range list[1:] {
		files[m.Name+".pem"], files[m.Name+".key"] = certBlock(m), keyBlock(m)
	}
	return files, list
}

// write puts the files into a fresh folder, as their owner's alone.
func (f folder) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range f {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFromFiles_ReadsACA holds that an operator's CA signs and verifies, with and
// without an issuer for the listener, and has the same ids at every start.
func TestFromFiles_ReadsACA(t *testing.T) {
	t.Parallel()
	files, list := operators(t)
	dir := files.write(t)
	first, err := ca.FromFiles(dir, today)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ca.FromFiles(dir, today.AddDate(0, 0, 1))
	if err != nil || len(first) != 4 || len(second) != 4 {
		t.Fatalf("%d and %d materials: %v", len(first), len(second), err)
	}
	for i, m := range first {
		if m.ID != second[i].ID || m.Name != list[i].Name || !bytes.Equal(m.Certificate, list[i].Certificate) || (m.Key.Reveal() == nil) != (i == 0) || !m.CreatedAt.Equal(second[i].CreatedAt) {
			t.Errorf("%s is read as %s %s, then as %s", list[i].Name, m.Name, m.ID, second[i].ID)
		}
	}
	a := authority(t, first)
	if id, err := a.VerifyNode(signNode(t, a, order(t, true, newKey(t).Public())), today); err != nil || !id.Platform {
		t.Errorf("%+v, %v", id, err)
	}
	if _, err := ca.Rotate(first, today); err == nil {
		t.Error("rotated without the root's key")
	}
	delete(files, "server.pem")
	delete(files, "server.key")
	if bare, err := ca.FromFiles(files.write(t), today); err != nil || len(bare) != 3 {
		t.Errorf("without an issuer for the listener: %d, %v", len(bare), err)
	}
}

// TestFromFiles_FormerIssuers holds that an operator can change issuers and
// roots without a stop: those behind the first still verify.
func TestFromFiles_FormerIssuers(t *testing.T) {
	t.Parallel()
	files, list := operators(t)
	before := authority(t, list)
	old := signNode(t, before, order(t, true, newKey(t).Public()))
	root := material(t, ca.Root, caTemplate("new root"), newKey(t), nil)
	next := material(t, ca.NodePlatform, caTemplate("new platform", x509.ExtKeyUsageClientAuth), newKey(t), &root)
	files["ca.pem"] += certBlock(root)
	files["node-platform.pem"], files["node-platform.key"] = certBlock(next)+certBlock(list[1]), keyBlock(next)
	materials, err := ca.FromFiles(files.write(t), today)
	if err != nil {
		t.Fatal(err)
	}
	a := authority(t, materials)
	young := signNode(t, a, order(t, true, newKey(t).Public()))
	if !bytes.Equal(young[1].Raw, next.Certificate) || len(a.RootSHA256()) != 2 {
		t.Error("another issuer than the first of the file signed, or a root is missing")
	}
	for _, chain := range [][]*x509.Certificate{old, young} {
		if id, err := a.VerifyNode(chain, today); err != nil || !id.Platform {
			t.Errorf("%+v, %v", id, err)
		}
	}
}

// TestFromFiles_KeyForms holds that a key may have each form that openssl writes, and text around.
func TestFromFiles_KeyForms(t *testing.T) {
	t.Parallel()
	files, list := operators(t)
	key := keyOf(t, list[1]).(*ecdsa.PrivateKey)
	sec1, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"SEC 1":            block("EC PRIVATE KEY", sec1),
		"parameters first": block("EC PARAMETERS", []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}) + block("EC PRIVATE KEY", sec1),
		"text around":      "our key\n" + keyBlock(list[1]) + "\nend\n",
		"CRLF":             strings.ReplaceAll(keyBlock(list[1]), "\n", "\r\n"),
	} {
		files["node-platform.key"] = text
		if materials, err := ca.FromFiles(files.write(t), today); err != nil || !keyOf(t, materials[1]).(*ecdsa.PrivateKey).Equal(key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFromFiles_Mistakes holds that every mistake is told by its file and its rule.
func TestFromFiles_Mistakes(t *testing.T) {
	t.Parallel()
	_, foreign := operators(t)
	client := x509.ExtKeyUsageClientAuth
	type mistake struct {
		make func(t *testing.T, f folder, list []ca.Material)
		file string // named by the error
		want string
	}
	// platform replaces the platform's issuer by one that another template makes.
	platform := func(spoil func(*x509.Certificate)) func(*testing.T, folder, []ca.Material) {
		return func(t *testing.T, f folder, list []ca.Material) {
			template := caTemplate("platform", client)
			spoil(template)
			m := material(t, ca.NodePlatform, template, newKey(t), &list[0])
			f["node-platform.pem"], f["node-platform.key"] = certBlock(m), keyBlock(m)
		}
	}
	set := func(file string, text func(f folder, list []ca.Material) string) func(*testing.T, folder, []ca.Material) {
		return func(_ *testing.T, f folder, list []ca.Material) { f[file] = text(f, list) }
	}
	without := func(file string) func(*testing.T, folder, []ca.Material) {
		return func(_ *testing.T, f folder, _ []ca.Material) { delete(f, file) }
	}
	ended := func(c *x509.Certificate) { c.NotBefore, c.NotAfter = today.AddDate(-2, 0, 0), today.AddDate(0, 0, -1) }
	for name, c := range map[string]mistake{
		"no ca.pem":           {without("ca.pem"), "ca.pem", "no such file"},
		"no issuer":           {without("node-tenant.pem"), "node-tenant.pem", "no such file"},
		"no key":              {without("node-tenant.key"), "node-tenant.key", "no such file"},
		"server without key":  {without("server.key"), "server.key", "no such file"},
		"server without cert": {without("server.pem"), "server.pem", "no such file"},
		"empty ca.pem":        {set("ca.pem", func(folder, []ca.Material) string { return "\n" }), "ca.pem", "no certificate"},
		"a key in ca.pem":     {set("ca.pem", func(f folder, l []ca.Material) string { return f["ca.pem"] + keyBlock(l[0]) }), "ca.pem", "nothing but certificates"},
		"damaged ca.pem": {set("ca.pem", func(f folder, _ []ca.Material) string {
			return f["ca.pem"] + strings.Replace(f["ca.pem"], "\nM", "\n*", 1)
		}), "ca.pem", "damaged"},
		"garbage in ca.pem": {set("ca.pem", func(folder, []ca.Material) string { return block("CERTIFICATE", []byte("x")) }), "ca.pem", "cannot be read"},
		"a leaf as root": {set("ca.pem", func(_ folder, l []ca.Material) string {
			return block("CERTIFICATE", signedBy(t, l[0], nodeTemplate(t), newKey(t).Public()).Raw)
		}), "ca.pem", "not a CA's"},
		"a root that has ended": {set("ca.pem", func(f folder, _ []ca.Material) string {
			c := caTemplate("old")
			ended(c)
			return f["ca.pem"] + certBlock(material(t, ca.Root, c, newKey(t), nil))
		}), "ca.pem", "expired on"},
		"a foreign issuer":     {set("node-tenant.pem", func(folder, []ca.Material) string { return certBlock(foreign[2]) }), "node-tenant.pem", "not signed by a root"},
		"the root as issuer":   {set("node-tenant.pem", func(f folder, _ []ca.Material) string { return f["ca.pem"] }), "node-tenant.pem", "extended key usage clientAuth"},
		"profiles swapped":     {set("node-tenant.pem", func(f folder, _ []ca.Material) string { return f["server.pem"] }), "node-tenant.pem", "extended key usage clientAuth"},
		"another key":          {set("node-tenant.key", func(f folder, _ []ca.Material) string { return f["node-platform.key"] }), "node-tenant.key", "does not belong"},
		"a certificate as key": {set("node-tenant.key", func(f folder, _ []ca.Material) string { return f["node-tenant.pem"] }), "node-tenant.key", "one private key"},
		"two keys":             {set("node-tenant.key", func(f folder, _ []ca.Material) string { return f["node-tenant.key"] + f["node-tenant.key"] }), "node-tenant.key", "one private key"},
		"an empty key file":    {set("node-tenant.key", func(folder, []ca.Material) string { return "" }), "node-tenant.key", "one private key"},
		"an encrypted key":     {set("node-tenant.key", func(folder, []ca.Material) string { return block("ENCRYPTED PRIVATE KEY", []byte("x")) }), "node-tenant.key", "encrypted"},
		"garbage as key":       {set("node-tenant.key", func(folder, []ca.Material) string { return block("PRIVATE KEY", []byte("x")) }), "node-tenant.key", "PKCS#8"},
		"garbage as EC key":    {set("node-tenant.key", func(folder, []ca.Material) string { return block("EC PRIVATE KEY", []byte("x")) }), "node-tenant.key", "cannot be read"},
		"a damaged key":        {set("node-tenant.key", func(f folder, _ []ca.Material) string { return strings.Replace(f["node-tenant.key"], "\nM", "\n*", 1) }), "node-tenant.key", "damaged"},
		"one issuer for both": {func(_ *testing.T, f folder, _ []ca.Material) {
			f["node-tenant.pem"], f["node-tenant.key"] = f["node-platform.pem"], f["node-platform.key"]
		}, "node-tenant", "key of node-platform"},
		"a foreign former one":   {set("node-platform.pem", func(f folder, _ []ca.Material) string { return f["node-platform.pem"] + certBlock(foreign[1]) }), "node-platform.pem: certificate 2", "not signed by a root"},
		"an issuer that ended":   {platform(ended), "node-platform.pem", "expired on"},
		"an issuer of tomorrow":  {platform(func(c *x509.Certificate) { c.NotBefore = today.AddDate(0, 0, 1) }), "node-platform.pem", "not valid before"},
		"an issuer, no CA":       {platform(asLeaf), "node-platform.pem", "not a CA's"},
		"an issuer for any":      {platform(forAny), "node-platform.pem", "extended key usage clientAuth"},
		"an issuer for both":     {platform(forTwo), "node-platform.pem", "extended key usage clientAuth"},
		"an issuer, not to sign": {platform(noSigner), "node-platform.pem", "certSign"},
	} {
		files, list := operators(t)
		c.make(t, files, list)
		materials, err := ca.FromFiles(files.write(t), today)
		if err == nil || materials != nil || !strings.Contains(err.Error(), c.file) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s: %q", name, err, c.file, c.want)
		}
	}
}

// TestFromFiles_Permissions holds who may read a key file besides its owner: its group, and nobody else.
func TestFromFiles_Permissions(t *testing.T) {
	t.Parallel()
	files, _ := operators(t)
	dir := files.write(t)
	key := filepath.Join(dir, "node-platform.key")
	for mode, want := range map[os.FileMode]bool{
		0o600: true, 0o400: true, 0o640: true, 0o440: true, 0o644: false, 0o604: false, 0o660: false, 0o620: false, 0o606: false, 0o601: false, 0o666: false, 0o777: false,
	} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		_, err := ca.FromFiles(dir, today)
		if (err == nil) != want || err != nil && (!strings.Contains(err.Error(), "node-platform.key") || !strings.Contains(err.Error(), "others may read")) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// FuzzFromFiles holds that no text of an issuer's files makes another CA than theirs, and no error repeats a key.
func FuzzFromFiles(f *testing.F) {
	files, list := operators(f)
	f.Add(files["node-platform.pem"], files["node-platform.key"])
	f.Add(files["node-platform.pem"]+files["node-platform.pem"], "x\n"+files["node-platform.key"])
	f.Add(files["node-tenant.pem"], files["node-tenant.key"])
	f.Add("", "-----BEGIN PRIVATE KEY-----")
	secret := strings.Split(files["node-platform.key"], "\n")[1]
	f.Fuzz(func(t *testing.T, cert, key string) {
		spoiled := folder{"node-platform.pem": cert, "node-platform.key": key}
		for name, text := range files {
			if spoiled[name] == "" && !strings.HasPrefix(name, "node-platform") {
				spoiled[name] = text
			}
		}
		materials, err := ca.FromFiles(spoiled.write(t), today)
		if err != nil {
			if !strings.Contains(err.Error(), "node-") || strings.Contains(err.Error(), secret) {
				t.Fatal(err)
			}
			return
		}
		for _, m := range materials {
			if m.Name == ca.NodePlatform && !bytes.Equal(m.Certificate, list[1].Certificate) {
				t.Fatalf("another issuer: %x", m.Certificate)
			}
		}
	})
}
