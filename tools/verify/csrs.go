//go:build ignore

// Command csrs prints certificate requests as a JSON array: csrs COUNT. They
// are of every kind of key that a node may have, in PEM and in base64 DER;
// nobody keeps the keys.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"strconv"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "csrs:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("say how many")
	}
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	all := make([]string, count)
	for i := range all {
		key, err := newKey(i % 3)
		if err != nil {
			return err
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
		if err != nil {
			return err
		}
		if i%2 == 0 {
			all[i] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
		} else {
			all[i] = base64.StdEncoding.EncodeToString(der)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

func newKey(kind int) (crypto.Signer, error) {
	switch kind {
	case 0:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case 1:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	default:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
}
