package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// What step-ca's own tool would write at "step ca init".
const (
	rootFile            = "root.crt"
	intermediateFile    = "intermediate.crt"
	intermediateKeyFile = "intermediate.key"

	signPath        = "/1.0/sign"
	provisionerName = "bench"
	tokenLife       = time.Hour
)

// writeAuthority makes a root and an intermediate with P-256 keys, and writes
// what step-ca needs of them into a folder.
func writeAuthority(dir string) (roots *x509.CertPool, err error) {
	rootKey, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	key, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	root := authority(1, "bench root", 1)
	rootDER, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, authority(2, "bench intermediate", 0), root, &key.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pemOf("CERTIFICATE", rootDER))
	return roots, errors.Join(
		os.WriteFile(filepath.Join(dir, rootFile), pemOf("CERTIFICATE", rootDER), 0o600),
		os.WriteFile(filepath.Join(dir, intermediateFile), pemOf("CERTIFICATE", der), 0o600),
		os.WriteFile(filepath.Join(dir, intermediateKeyFile), pemOf("EC PRIVATE KEY", keyDER), 0o600),
	)
}

func authority(serial int64, name string, below int) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Minute),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLen:            below,
		MaxPathLenZero:        below == 0,
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// A provisioner is whose one-time tokens a step-ca takes: JWTs with ES256.
type provisioner struct {
	key      *ecdsa.PrivateKey
	jwk      map[string]string // the public key
	audience string            // URL of the sign operation
}

func newProvisioner(audience string) (*provisioner, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return nil, err
	}
	jwk := map[string]string{"crv": "P-256", "kty": "EC", "x": base64url(point[1:33]), "y": base64url(point[33:])}
	canonical, err := json.Marshal(jwk) // the thumbprint of RFC 7638 is over just these, in order
	if err != nil {
		return nil, err
	}
	thumbprint := sha256.Sum256(canonical)
	jwk["alg"], jwk["use"], jwk["kid"] = "ES256", "sig", base64url(thumbprint[:])
	return &provisioner{key, jwk, audience}, nil
}

// config is the provisioner in step-ca's configuration.
func (p *provisioner) config() map[string]any {
	return map[string]any{"type": "JWK", "name": provisionerName, "key": p.jwk}
}

// token is a one-time token that certifies one name.
func (p *provisioner) token(name string) (string, error) {
	now := time.Now()
	header, err1 := json.Marshal(map[string]string{"alg": "ES256", "kid": p.jwk["kid"], "typ": "JWT"})
	claims, err2 := json.Marshal(map[string]any{
		"iss": provisionerName, "aud": p.audience, "sub": name, "sans": []string{name}, "jti": rand.Text(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(tokenLife).Unix(),
	})
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	text := base64url(header) + "." + base64url(claims)
	hash := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, hash[:])
	if err != nil {
		return "", err
	}
	var signature [64]byte
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64url(signature[:]), nil
}

func base64url(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// prepare is the request of a machine with a key, a CSR and a token of its own.
func (ca *stepCA) prepare(i int) (*http.Request, error) {
	name := fmt.Sprintf("machine-%d.bench.test", i)
	csr, err := newCSR(name)
	if err != nil {
		return nil, err
	}
	token, err := ca.provisioner.token(name)
	if err != nil {
		return nil, err
	}
	return postJSON("https://"+ca.address+signPath, map[string]string{"csr": csr, "ott": token})
}
