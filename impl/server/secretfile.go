package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const maxSecret = 64 << 10 // bytes of a file

// tooOpen are the permissions that a file with a secret must not have. Its group
// may read it: an orchestrator hands a secret to a user who is not root that way.
const tooOpen fs.FileMode = 0o027

// readSecret reads a file that others than its owner and group cannot read.
func readSecret(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not keep anybody waiting
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", cause(err)
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	if mode := info.Mode().Perm(); mode&tooOpen != 0 {
		return "", fmt.Errorf("others may read or change it: its mode is %04o and must be 0600, 0640 or less", mode)
	}
	return readAll(f)
}

// errNotOwn says that somebody else may have put a file there, or may read it.
var errNotOwn = errors.New("it is not a file that only its owner, who runs this server, can read")

// readOwn reads a file that nobody else can have put there.
func readOwn(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) {
		return "", errNotOwn
	}
	if err != nil {
		return "", cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", cause(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || !ok || int(owner.Uid) != os.Geteuid() {
		return "", errNotOwn
	}
	return readAll(f)
}

func readAll(f *os.File) (string, error) {
	text, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", cause(err)
	}
	if len(text) > maxSecret {
		return "", errors.New("it is too long to be a secret")
	}
	return string(text), nil
}

// cause leaves out the operation and path of a file error: the path is said already.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// writeNew writes a file that nobody else can read and that was not there
// before; when it returns nil, the file outlives a crash.
func writeNew(file, text string) (err error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(file)
		}
	}()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
