package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
)

// sealKey gives every bcserver of the run a key for its secrets, which it must
// be told on Postgres, and which lets the servers of one database take turns.
func (l *lab) sealKey() error {
	var key [32]byte
	rand.Read(key[:]) // never fails
	file := filepath.Join(l.dir, "seal.key")
	return errors.Join(
		os.WriteFile(file, []byte(base64.StdEncoding.EncodeToString(key[:])+"\n"), 0o600),
		os.Setenv("BC_SEAL_KEY_FILE", file),
	)
}

// serveJoins makes a pool in a database and starts bcserver on it, with TLS of
// its own authority and without limits for joins.
func (l *lab) serveJoins(ctx context.Context, url string) (*target, error) {
	plain, err := l.serve(ctx, url)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(plain.makePool(), plain.stop()); err != nil {
		return nil, err
	}
	return l.startTLS(ctx, l.bcserver, url, plain.key)
}

// startTLS runs a bcserver on a database that is ready, and waits until it listens.
func (l *lab) startTLS(ctx context.Context, binary, url, key string, environment ...string) (*target, error) {
	data, err := l.folder("data")
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(data, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := serveCommand(ctx, binary, "--db", url, "--data", data, "--tls", "auto", "--join-rate", "0", "--join-rate-per-address", "0")
	command.Env = append(os.Environ(), environment...)
	p, err := launch(command, "https", log)
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w\n%s", err, shortened(text))
	}
	p.key = key
	bundle, err := os.ReadFile(filepath.Join(data, "ca.pem"))
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.Join(fmt.Errorf("ca.pem has no certificate: %w", errUnexpected), p.stop())
	}
	return newTarget(p, roots, http.StatusOK), nil
}

// dial is a connection that is kept alive, for calls beside the joins.
func (t *target) dial() (*connection, error) {
	socket, err := tls.Dial("tcp", t.address, t.tls)
	if err != nil {
		return nil, err
	}
	return &connection{socket: socket, answers: bufio.NewReaderSize(socket, 64<<10), host: t.address, key: t.key}, nil
}

// mint makes n join tokens that admit so many machines each.
func (t *target) mint(ctx context.Context, n, uses int) ([]string, error) {
	tokens := make([]string, n)
	var last atomic.Int64
	return tokens, together(min(n, createConnections), func() error {
		c, err := t.dial()
		if err != nil {
			return err
		}
		defer c.close()
		for {
			i := int(last.Add(1)) - 1
			if i >= n || ctx.Err() != nil {
				return ctx.Err()
			}
			status, answer, err := c.post(createPath, fmt.Sprintf(`{"tenantId":%q,"poolId":%q,"maxUses":%d,"ttlSeconds":86400,"idempotencyKey":"join-%d"}`,
				tenant, pool, uses, createKeys.Add(1)))
			var created struct{ Token string }
			if err == nil {
				err = json.Unmarshal(answer, &created)
			}
			if err != nil || status != http.StatusOK || created.Token == "" {
				return fmt.Errorf("joinTokens.create: %d %.200s: %w", status, answer, orUnexpected(err))
			}
			tokens[i] = created.Token
		}
	})
}
