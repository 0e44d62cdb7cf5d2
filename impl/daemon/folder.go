package daemon

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// newSuffix marks a file that is being written; what a crash leaves of it means nothing.
const newSuffix = ".new"

// A folder holds what must survive: nobody else can read it, and one bcd works
// on it at a time.
type folder struct {
	dir  string
	root *os.Root
	held *os.File // the folder itself, whose lock is ours; nil: only reading
}

// openFolder makes the state folder where it is missing, refuses one that
// others can reach, and takes its lock.
func openFolder(dir string) (*folder, error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("the state folder cannot be made: %w", err)
		}
		if err := syncFolder(filepath.Dir(dir)); err != nil {
			return nil, err
		}
	}
	f, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	if f.held, err = f.root.Open("."); err == nil {
		err = syscall.Flock(int(f.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another bcd works on the state folder %s; stop it first (systemctl stop bcd)", dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// readFolder opens a state folder without its lock, for a look at it.
func readFolder(dir string) (*folder, error) {
	link, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("the state folder %s: %w", dir, cause(err))
	}
	if link.Mode()&fs.ModeSymlink != 0 && !ours(link) && !roots(link) {
		return nil, fmt.Errorf("the state folder %s is a symlink that belongs to another user", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("the state folder %s: %w", dir, cause(err))
	}
	info, err := root.Stat(".")
	if err == nil {
		err = private(info, "the state folder "+dir)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &folder{dir: dir, root: root}, nil
}

// private refuses what others can read, or could have put there.
func private(info fs.FileInfo, what string) error {
	switch {
	case !ours(info):
		return fmt.Errorf("%s does not belong to the user that runs bcd", what)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be reached by others (mode %04o); its mode must be 0700, and that of its files 0600", what, info.Mode().Perm())
	}
	return nil
}

func ours(info fs.FileInfo) bool  { return owner(info) == os.Geteuid() }
func roots(info fs.FileInfo) bool { return owner(info) == 0 }

func owner(info fs.FileInfo) int {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}

func (f *folder) close() error {
	var err error
	if f.held != nil {
		err = f.held.Close() // and with it goes the lock
	}
	return errors.Join(err, f.root.Close())
}

// read returns a file of the folder, which must be a private one.
func (f *folder) read(name string) ([]byte, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(f.dir, name)
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", file)
	}
	if err := private(info, file); err != nil {
		return nil, err
	}
	open, err := f.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	return io.ReadAll(open)
}

// write replaces a file as a whole. When it returns nil, the new content
// outlives a crash; otherwise the old one is untouched.
func (f *folder) write(name string, text []byte) error {
	fresh := name + newSuffix
	err := f.writeNew(fresh, text)
	if err == nil {
		err = f.rename(fresh, name)
	}
	if err != nil {
		_ = f.root.Remove(fresh) // the error that counts is the one before
		return fmt.Errorf("%s cannot be written: %w", filepath.Join(f.dir, name), cause(err))
	}
	return nil
}

func (f *folder) writeNew(name string, text []byte) (err error) {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

// rename moves a file over another one, for good.
func (f *folder) rename(from, to string) error {
	if err := f.root.Rename(from, to); err != nil {
		return err
	}
	return f.held.Sync()
}

// remove removes files that may be there.
func (f *folder) remove(names ...string) error {
	for _, name := range names {
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s cannot be removed: %w", filepath.Join(f.dir, name), cause(err))
		}
	}
	return nil
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
