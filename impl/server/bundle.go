package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// bundleFileName is where tools on this machine find what to trust.
const bundleFileName = "ca.pem"

// A bundleFile is a file that others may read, and that changes at once or not at all.
type bundleFile struct {
	mu   sync.Mutex
	name string
	text string // what it holds
}

func (b *bundleFile) write(text string) (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text == b.text {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(b.name), bundleFileName+".*")
	if err != nil {
		return fmt.Errorf("%w: --data: %w", ErrConfig, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: --data: %w", ErrConfig, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), b.name); err != nil {
		return err
	}
	b.text = text
	return nil
}
