package daemon_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/bettercompute/bettercompute/impl/bearer"
)

// TestToken_AWrongFileIsKnownBeforeAnyCall holds that whatever is wrong with
// the file of a token is said, with its name and without its content, and that
// nobody is called.
func TestToken_AWrongFileIsKnownBeforeAnyCall(t *testing.T) {
	t.Parallel()
	good, _ := bearer.Mint(bearer.JoinToken, tokenID)
	key, _ := bearer.Mint(bearer.APIKey, "ak_0123456789abcdefghjkmnpqrs")
	text := good.Reveal()
	var utf16le bytes.Buffer
	for _, c := range utf16.Encode([]rune("\ufeff" + text)) {
		utf16le.Write([]byte{byte(c), byte(c >> 8)})
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":           {"", "is empty"},
		"blank":           {" \n\n", "is empty"},
		"CRLF":            {text + "\r\n", "Windows line ends (CR LF)"},
		"several lines":   {text + "\n" + text + "\n", "several lines"},
		"empty line":      {text + "\n\n", "several lines"},
		"blanks":          {" " + text + "\n", "blanks around the token"},
		"typo":            {strings.Replace(text, text[40:41], other(text[40:41]), 1), "typo"},
		"cut off":         {text[:len(text)-1], "typo"},
		"something else":  {"hunter2hunter2hunter2", "holds no join token"},
		"API key":         {key.Reveal() + "\n", "holds an API key"},
		"byte order mark": {"\ufeff" + text + "\n", "byte order mark"},
		"UTF-16":          {utf16le.String(), "no text in ASCII"},
		"NUL":             {text + "\x00", "no text in ASCII"},
		"large":           {strings.Repeat(text, 100), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			m := newMachine(t, s)
			m.tokens = append(m.tokens, text)
			if err := os.WriteFile(m.TokenFile, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := m.join()
			wantSays(t, err, m.TokenFile, c.says)
			if secret := text[len(text)-49:]; strings.Contains(err.Error(), secret[:20]) || strings.Contains(err.Error(), secret[20:]) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the token: %v", err)
			}

			m.TokenFile, m.Stdin = "-", strings.NewReader(c.text)
			_, err = m.join()
			wantSays(t, err, "standard input", c.says)
			if len(s.calls) > 0 {
				t.Errorf("%d calls", len(s.calls))
			}
		})
	}
}

func other(c string) string {
	if c == "a" {
		return "b"
	}
	return "a"
}

// TestToken_NoFile holds that a file that is not there, or is none, is named.
func TestToken_NoFile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	for file, says := range map[string]string{filepath.Join(t.TempDir(), "none"): "no such file", t.TempDir(): "is a folder"} {
		m.TokenFile = file
		_, err := m.join()
		wantSays(t, err, file, says)
	}
	m.TokenFile = ""
	_, err := m.join()
	wantSays(t, err, "--token-file is missing")
}

// TestToken_OfStandardInput holds that - reads it, once.
func TestToken_OfStandardInput(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	m.TokenFile, m.Stdin = "-", strings.NewReader(m.tokens[0]) // without a line end
	lose := true
	s.answer = func(c call) any {
		if lose {
			lose = false
			return cut{}
		}
		return nil
	}
	m.joined()
}

// TestToken_AFileThatOthersCanReadIsSaid holds that it is warned of, and works.
func TestToken_AFileThatOthersCanReadIsSaid(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	m := newMachine(t, s)
	if err := os.Chmod(m.TokenFile, 0o640); err != nil {
		t.Fatal(err)
	}
	m.joined()
	if log := m.log.String(); !strings.Contains(log, "others can read the token file") || !strings.Contains(log, "0640") || !strings.Contains(log, m.TokenFile) {
		t.Error("nothing is said")
	}
}
