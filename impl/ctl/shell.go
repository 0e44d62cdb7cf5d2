package ctl

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/bettercompute/bettercompute/gen/cli"
	"github.com/spf13/cobra"
)

// argumentsOf says an input with flags, in the order of the table.
func argumentsOf(m cli.Method, in *node) []string {
	var args []string
	for _, f := range m.Fields {
		n := in.at(f.Path)
		if f.Flag == "" || n == nil || f.Secret {
			continue
		}
		switch {
		case f.Type == cli.Boolean && n.text == "true":
			args = append(args, "--"+f.Flag)
		case f.Type == cli.Boolean:
			args = append(args, "--"+f.Flag+"="+n.plain())
		case f.Type == cli.Array:
			for _, item := range n.children() {
				args = append(args, "--"+f.Flag, item.plain())
			}
		default:
			args = append(args, "--"+f.Flag, n.plain())
		}
	}
	return args
}

// revokeCommand returns how to end the record that a call makes, for the same
// server and with the same key; nil where no method does that.
func (p *program) revokeCommand(c *cobra.Command, g cli.Group, m cli.Method, body *node) func(id string) string {
	if m.Once == nil || m.Once.Revoke == "" {
		return nil
	}
	for _, revoke := range g.Methods {
		if revoke.Name != m.Once.Revoke {
			continue
		}
		return func(id string) string {
			in := newObject()
			for _, f := range revoke.Fields {
				if f.Path == m.Once.ID {
					in.set([]string{f.Path}, stringNode(id))
				} else if n := body.at(f.Path); f.Required && n != nil {
					in.set(strings.Split(f.Path, "."), n)
				}
			}
			args := append([]string{c.Root().Name(), g.Name, revoke.Name}, argumentsOf(revoke, in)...)
			if p.server != "" {
				args = append(args, "--server", p.server)
			}
			if p.caFile != "" {
				args = append(args, "--ca-file", p.caFile)
			}
			if p.keyFile != "" {
				args = append(args, "--key-file", p.keyFile)
			}
			return commandLine(args)
		}
	}
	return nil
}

func commandLine(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = quoted(arg)
	}
	return strings.Join(words, " ")
}

var needsNoQuotes = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word for a shell.
func quoted(word string) string {
	if needsNoQuotes.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printable keeps a text in one line and from steering the terminal.
func printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return text
	}
	escaped := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(escaped[1:len(escaped)-1], `\"`, `"`)
}
