package ca

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	rootsFile = "ca.pem"
	pemStart  = "-----BEGIN"
	// tooOpen are the permissions that a key file must not have. Its group may
	// read it: an orchestrator hands a secret to a user who is not root that way.
	tooOpen fs.FileMode = 0o027
)

// FromFiles reads an operator's own CA from a folder: ca.pem with the roots,
// without keys; node-platform.pem and .key, node-tenant.pem and .key; and
// server.pem and .key, unless the listener has its certificate from elsewhere.
//
// The first certificate of an issuer's file is the one that the key belongs to;
// those behind it are former issuers, kept to verify what they signed. Each is
// signed by a certificate of ca.pem itself. An error names the file and the rule.
func FromFiles(dir string, now time.Time) ([]Material, error) {
	all, roots, err := readRoots(filepath.Join(dir, rootsFile), now)
	if err != nil {
		return nil, err
	}
	for _, name := range names[1:] {
		certFile, keyFile := filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
		if name == Server && missing(certFile) && missing(keyFile) {
			continue
		}
		issuers, err := readIssuers(name, certFile, keyFile, roots, now)
		if err != nil {
			return nil, err
		}
		all = append(all, issuers...)
	}
	if _, err := New(all); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return all, nil
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}

func readRoots(file string, now time.Time) (list []Material, roots []*entry, err error) {
	certs, err := readCertificates(file)
	if err != nil {
		return nil, nil, err
	}
	for _, cert := range certs {
		m := materialOf(Root, cert)
		root, err := parse(m)
		if err == nil {
			err = inDate(root, now)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		list, roots = append(list, m), append(roots, root)
	}
	return list, roots, nil
}

func readIssuers(name, certFile, keyFile string, roots []*entry, now time.Time) ([]Material, error) {
	certs, err := readCertificates(certFile)
	if err != nil {
		return nil, err
	}
	key, err := readKey(keyFile)
	if err != nil {
		return nil, err
	}
	var list []Material
	for i, cert := range certs {
		m := materialOf(name, cert)
		e, err := parse(m)
		if err == nil {
			err = e.reach(roots)
		}
		if err == nil && i == 0 { // a former one may have ended
			err = inDate(e, now)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d: %w", certFile, i+1, err)
		}
		if i == 0 {
			m.Key = key
			if _, err := parse(m); err != nil {
				return nil, fmt.Errorf("%s: %w: the first of %s", keyFile, err, certFile)
			}
		}
		list = append(list, m)
	}
	return list, nil
}

func materialOf(name string, cert *x509.Certificate) Material {
	return Material{ID: idOf(cert.Raw), Name: name, Certificate: cert.Raw, CreatedAt: cert.NotBefore}
}

func inDate(e *entry, now time.Time) error {
	if now.Before(e.cert.NotBefore) {
		return fmt.Errorf("the certificate is not valid before %s", e.cert.NotBefore.Format(time.RFC3339))
	}
	if now.After(e.cert.NotAfter) {
		return fmt.Errorf("the certificate has expired on %s", e.cert.NotAfter.Format(time.RFC3339))
	}
	return nil
}

func readCertificates(file string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err // names the file
	}
	blocks, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var certs []*x509.Certificate
	for _, block := range blocks {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: it must hold nothing but certificates", file)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate %d cannot be read: %w", file, len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, fmt.Errorf("%s: there is no certificate in PEM in it", file)
	}
	return certs, nil
}

// readKey reads one private key. Its errors tell nothing of the text.
func readKey(file string) (PrivateKey, error) {
	wrong := func(rule string) (PrivateKey, error) { return PrivateKey{}, fmt.Errorf("%s: %s", file, rule) }
	f, err := os.Open(file)
	if err != nil {
		return PrivateKey{}, err // names the file
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return PrivateKey{}, err
	}
	if info.Mode().Perm()&tooOpen != 0 {
		return wrong(fmt.Sprintf("others may read or change it: its mode is %04o and must be 0600, 0640 or less", info.Mode().Perm()))
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return PrivateKey{}, err
	}
	blocks, err := decode(text)
	if err != nil {
		return wrong(err.Error())
	}
	if len(blocks) > 0 && blocks[0].Type == "EC PARAMETERS" { // which openssl writes before a key
		blocks = blocks[1:]
	}
	if len(blocks) != 1 {
		return wrong("it must hold one private key in PEM")
	}
	var key any
	switch blocks[0].Type {
	case "PRIVATE KEY":
		return NewPrivateKey(blocks[0].Bytes), nil
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(blocks[0].Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(blocks[0].Bytes)
	case "ENCRYPTED PRIVATE KEY":
		return wrong("the key is encrypted; it must be in the clear")
	default:
		return wrong("it must hold one private key in PEM")
	}
	if err != nil {
		return wrong("the key cannot be read")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return wrong("the key is of a kind that cannot sign")
	}
	return NewPrivateKey(der), nil
}

// decode returns every PEM block of a file. The decoder would pass over one that is damaged.
func decode(text []byte) (blocks []*pem.Block, err error) {
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		blocks = append(blocks, block)
	}
	if len(blocks) != bytes.Count(text, []byte(pemStart)) {
		return nil, errors.New("a PEM block in it is damaged")
	}
	return blocks, nil
}
