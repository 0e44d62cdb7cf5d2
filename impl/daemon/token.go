package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

const maxToken = 4 << 10 // bytes of a file; a token has less than 128

// A token is a join token in the clear. It is in a function, where no printing
// finds it, and leaves it for the header of one call alone.
type token struct {
	id     string // no secret
	reveal func() string
}

// readToken reads the file of a join token, or standard input for "-", and
// knows a typo by the checksum (JT-03). No error holds what was read.
func readToken(name string, stdin io.Reader, log *slog.Logger) (*token, error) {
	from, text, err := "the token on standard input", []byte(nil), error(nil)
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(stdin, maxToken+1))
	} else {
		from = "the token file " + name
		text, err = readTokenFile(name, log)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", from, cause(err))
	}
	line, wrong := oneLine(text)
	if wrong != "" {
		err := fmt.Errorf("%s %s", from, wrong)
		if isAbsent(text) {
			return nil, absent{err}
		}
		return nil, err
	}
	id, _, ok := bearer.Parse(bearer.JoinToken, line)
	if !ok {
		return nil, fmt.Errorf("%s holds no join token, or one with a typo: it has the form %s<id>.<secret>, and its last characters are a checksum", from, bearer.JoinToken)
	}
	return &token{id, func() string { return line }}, nil
}

func readTokenFile(name string, log *slog.Logger) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("it is a folder")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		log.Warn("others can read the token file; give it the mode 0600", "file", name, "mode", fmt.Sprintf("%04o", mode))
	}
	return io.ReadAll(io.LimitReader(f, maxToken+1))
}

// absent is the error of a token file that stands for no token.
type absent struct{ error }

// noToken is what bcd.service hands on where the file of the token is not there.
const noToken = "none"

func isAbsent(text []byte) bool {
	line := string(bytes.TrimSpace(text))
	return line == "" || line == noToken
}

// oneLine returns the one line of a text, or what is wrong with it.
func oneLine(text []byte) (line, wrong string) {
	switch whole := string(text); {
	case len(bytes.TrimSpace(text)) == 0:
		return "", "is empty"
	case isAbsent(text):
		return "", "says `none`: there is no token; where systemd gives it, /etc/bcd/join-token is not there"
	case len(text) > maxToken:
		return "", fmt.Sprintf("is larger than %d bytes, so it holds no token", maxToken)
	case strings.HasPrefix(whole, "\ufeff"):
		return "", "starts with a byte order mark; save it as plain ASCII"
	case !utf8.ValidString(whole) || strings.Contains(whole, "\x00"):
		return "", "is no text in ASCII; a UTF-16 editor may have saved it"
	case strings.Contains(whole, "\r"):
		return "", "has Windows line ends (CR LF); save it with LF"
	case strings.Contains(strings.TrimSuffix(whole, "\n"), "\n"):
		return "", "has several lines, and must hold one token"
	case strings.TrimSpace(whole) != strings.TrimSuffix(whole, "\n"):
		return "", "has blanks around the token"
	case strings.HasPrefix(whole, bearer.APIKey):
		return "", "holds an API key; a machine joins with a join token"
	default:
		return strings.TrimSuffix(whole, "\n"), ""
	}
}

// joinToken returns the token to join with.
func (d *daemon) joinToken() (*token, error) {
	if d.token != nil {
		return d.token, nil
	}
	t, err := readToken(d.config.TokenFile, d.config.Stdin, d.log)
	if err == nil && d.config.TokenFile == "-" {
		d.token = t
	}
	return t, err
}

// cause is an error without the path that the message has already.
func cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
