package ctl

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// maxKey is more than any key has.
const maxKey = 4096

// key returns the API key, or "" where none is given, and says where it is from.
func (p *program) key() (key, from string, err error) {
	if p.keyFile == "" {
		return strings.TrimSpace(p.getenv(envKey)), envKey, nil
	}
	from = "--key-file"
	file, err := os.Open(p.keyFile)
	if err != nil {
		return "", from, fmt.Errorf("--key-file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", from, fmt.Errorf("--key-file: %w", err)
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		fmt.Fprintf(p.stderr, "warning: others than you may read or write the key file %s (mode %04o); run: chmod 600 %s\n",
			printable(p.keyFile), mode.Perm(), quoted(p.keyFile))
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	switch key = strings.TrimSpace(string(text)); {
	case err != nil:
		return "", from, fmt.Errorf("--key-file: %w", err)
	case len(text) > maxKey:
		return "", from, fmt.Errorf("--key-file: %s holds more than a key has", printable(p.keyFile))
	case key == "":
		return "", from, fmt.Errorf("--key-file: %s is empty", printable(p.keyFile))
	}
	return key, from, nil
}

// version is that of the module, or the revision that was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}
