package ctl

import (
	"bytes"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bettercompute/bettercompute/gen/cli"
)

// A table shows records in rows below the names of the columns: poolId is
// POOL-ID. Its columns never become narrower, so that rows that come later
// stand below those before them.
type table struct {
	paths  []string
	widths []int
	begun  bool // the names have been written
}

func newTable(columns []cli.Column) *table {
	t := &table{}
	for _, c := range columns {
		if c.Row {
			t.paths = append(t.paths, c.Path)
		}
	}
	t.widths = make([]int, len(t.paths))
	return t
}

// add writes a row for each record.
func (t *table) add(out *bytes.Buffer, records []*node) {
	var rows [][]string
	if !t.begun {
		t.begun = true
		rows = append(rows, t.cells(heading))
	}
	for _, record := range records {
		rows = append(rows, t.cells(func(path string) string { return cell(record.at(path)) }))
	}
	for _, cells := range rows {
		t.row(out, cells)
	}
}

// cells are the texts of one row; the columns become wide enough for them.
func (t *table) cells(of func(path string) string) []string {
	cells := make([]string, len(t.paths))
	for i, path := range t.paths {
		cells[i] = of(path)
		t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cells[i]))
	}
	return cells
}

func (t *table) row(out *bytes.Buffer, cells []string) {
	var line strings.Builder
	for i, text := range cells {
		line.WriteString(padded(text, t.widths[i]) + "  ")
	}
	out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

func heading(path string) string {
	var out strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			out.WriteByte('-')
		}
		out.WriteRune(unicode.ToUpper(r))
	}
	return out.String()
}

// writeRecord shows one record with a line for each column.
func writeRecord(out *bytes.Buffer, columns []cli.Column, record *node) {
	widest := 0
	for _, c := range columns {
		widest = max(widest, utf8.RuneCountInString(c.Path))
	}
	for _, c := range columns {
		out.WriteString(padded(c.Path, widest) + "  " + cell(record.at(c.Path)) + "\n")
	}
}

// cell is a value for people: yes and no, - for what is not there.
func cell(n *node) string {
	switch {
	case n.isNull():
		return "-"
	case n.kind == arrayNode:
		var items []string
		for _, item := range n.items {
			items = append(items, cell(item))
		}
		return strings.Join(items, ",")
	case n.text == "true":
		return "yes"
	case n.text == "false":
		return "no"
	}
	return printable(n.plain())
}

// A tableList writes rows as they come, below one head.
type tableList struct {
	out   io.Writer
	table *table
	ask   string // the flag that goes on behind the list
}

func (l *tableList) add(records []*node) error {
	var text bytes.Buffer
	l.table.add(&text, records)
	return writeAll(l.out, text.Bytes())
}

func (l *tableList) end(next *node) error {
	if next.isNull() {
		return nil
	}
	return writeAll(l.out, []byte("next: --"+l.ask+" "+cell(next)+"\n"))
}
