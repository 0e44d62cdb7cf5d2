package hardware

import (
	"errors"
	"io/fs"
	"syscall"
)

// absent says that a file is not there: also where the driver that would fill
// it says that it has nothing to say.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTDIR)
}
