package ctl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/gen/cli"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const helpWidth = 100 // columns

// writeHelp is the help of a method: what it does, its fields with their
// limits, the other flags and an example.
func writeHelp(c *cobra.Command, m cli.Method) {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\nUsage:\n  %s\n\nFields:\n", wrap(m.Long, helpWidth), usageLine(c))
	var rows [][2]string
	for _, f := range m.Fields {
		if says := fieldHelp(f); says != "" || f.Flag != "" {
			rows = append(rows, [2]string{flagOf(c, f), says})
		}
	}
	writeRows(&out, rows)
	out.WriteString("\nFlags:\n")
	rows = nil
	other := func(f *pflag.Flag) {
		if _, isField := f.Value.(*value); !isField && !f.Hidden {
			rows = append(rows, [2]string{otherFlag(f), f.Usage})
		}
	}
	c.LocalNonPersistentFlags().VisitAll(other)
	c.InheritedFlags().VisitAll(other)
	writeRows(&out, rows)
	if example, err := parseJSON([]byte(m.Example)); err == nil {
		fmt.Fprintf(&out, "\nExample:\n  %s", c.CommandPath())
		for _, arg := range argumentsOf(m, example) {
			if strings.HasPrefix(arg, "--") {
				out.WriteString(" \\\n   ")
			}
			out.WriteString(" " + quoted(arg))
		}
		out.WriteByte('\n')
	}
	fmt.Fprint(c.OutOrStdout(), out.String())
}

// flagOf is the flag of a field with the type of its value.
func flagOf(c *cobra.Command, f cli.Field) string {
	if f.Flag == "" {
		return "--" + f.Path + ".*"
	}
	return "--" + f.Flag + " " + c.Flags().Lookup(f.Flag).Value.Type()
}

func otherFlag(f *pflag.Flag) string {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	if f.Value.Type() != "bool" {
		name += " " + f.Value.Type()
	}
	return name
}

func fieldHelp(f cli.Field) string {
	var says []string
	switch {
	case f.Path == idempotencyPath:
		says = append(says, "made where it is not given")
	case f.Required:
		says = append(says, "required")
	}
	if f.Type == cli.Array {
		says = append(says, "may be repeated")
	}
	if f.Element == cli.Object {
		says = append(says, "one JSON object each time")
	}
	if f.Limits != "" {
		says = append(says, f.Limits)
	}
	text := strings.Join(says, "; ")
	if f.Notes != "" {
		text = strings.TrimPrefix(text+"\n"+plain(f.Notes), "\n")
	}
	for _, member := range f.Members {
		text += "\n" + memberHelp(member)
	}
	return text
}

// memberHelp is a member of the objects that a flag takes.
func memberHelp(f cli.Field) string {
	says := []string{string(f.Type)}
	if f.Type == cli.Array {
		says[0] += " of " + string(f.Element)
	}
	if f.Required {
		says = append(says, "required")
	}
	if f.Limits != "" {
		says = append(says, f.Limits)
	}
	return f.Path + ": " + strings.Join(says, "; ")
}

// writeRows writes flags and what is said of them, one below the other.
func writeRows(out *strings.Builder, rows [][2]string) {
	widest := 0
	for _, row := range rows {
		widest = max(widest, utf8.RuneCountInString(row[0]))
	}
	indent := strings.Repeat(" ", widest+4)
	for _, row := range rows {
		text := strings.ReplaceAll(row[1], "\n", "\n"+indent)
		line := fmt.Sprintf("  %s  %s", padded(row[0], widest), text)
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// usageLine is a command with the flags that it cannot do without.
func usageLine(c *cobra.Command) string {
	line := c.CommandPath()
	if c.HasAvailableSubCommands() {
		return line + " <command>"
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if v, ok := f.Value.(*value); ok && v.field.Required && v.field.Path != idempotencyPath && !strings.Contains(v.field.Path, ".") {
			line += fmt.Sprintf(" --%s %s", f.Name, v.Type())
		}
	})
	return line + " [flags]"
}

// plain is a text of the spec without its Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// wrap breaks the lines of a text of paragraphs.
func wrap(text string, width int) string {
	var paragraphs []string
	for _, paragraph := range strings.Split(plain(text), "\n\n") {
		var lines []string
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
				lines = append(lines, line)
				line = ""
			}
			line = strings.TrimPrefix(line+" "+word, " ")
		}
		paragraphs = append(paragraphs, strings.Join(append(lines, line), "\n"))
	}
	return strings.Join(paragraphs, "\n\n")
}

// padded fills a text up to a number of columns.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}
