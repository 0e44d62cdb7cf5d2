package main

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// cellPool is what edits put into cells: all that has a meaning somewhere.
var cellPool = []string{
	"", "yes", "once", "string", "integer", "boolean", "time", "object", "array of string", "array of integer",
	"array of Widget", "array of Color", "Widget", "Part", "Message", "Color", "Title", "Cursor", "Path", "Marks", "Role", "ErrorCode",
	"array of object", "things", "things.name", "things.parts", "pins.tail", "claims.tails", "none", "self", "at least one of its fields; 1-2 items",
	"one of a, b", "one of 1.0, 10", "array of one of a", "at most 5 characters", "at most 5 characters; matches `^[a-c]{1,9}$`",
	"matches `^(?:a\\|bc)*[x-z]$`; at most 70 characters", "1-9", "-3--1", "1-9; default 4", "default true", "default red", "at most 3 items",
	"0-3 items", "1-2; 1-2 items", "at least one of its fields", "secret", "secret; of it", "default `x`; at most 4 characters",
	"tenantId", "poolId", "a", "a.b", "a.b.c", "options.fast", "pin.extra", "cursor", "type", "id", "idempotencyKey",
	"matches `^[0-9]{0,3}[a-z]{0,3}$`; at most 6 characters", "at most 40 characters; matches `^a{3}(?:-[0-9]{2}){1,4}$`",
	"at most 9 characters; matches `^[]-a\\[^-]{1,3}$`", "at most 9 characters; matches `^-?[0-9]+$`", "9,223,372,036,854,775,807-9,223,372,036,854,775,807",
}

// edit changes cells and rows of pages as a script says, four bytes a change.
func edit(pages map[string]string, names []string, script []byte) {
	for ; len(script) >= 4; script = script[4:] {
		name := names[int(script[0])%len(names)]
		lines := strings.Split(pages[name], "\n")
		rows := rowsOf(lines)
		at := rows[int(script[1])%len(rows)]
		cells := strings.Split(strings.ReplaceAll(lines[at], `\|`, "\x00"), "|")
		switch column := int(script[2]) % (len(cells) + 2); {
		case column == 0 && lines[at+1] != "": // the row stands there twice, under a name of its own
			cells[1] = " " + string('a'+rune(script[3]%26)) + "x "
			lines[at+1] += "\n" + strings.Join(cells, "|")
		case column <= len(cells)-2 && column > 0:
			cells[column] = " " + cellPool[int(script[3])%len(cellPool)] + " "
			lines[at] = strings.Join(cells, "|")
		case column == len(cells):
			lines = append(lines[:at], lines[at+1:]...)
		default:
			from := rows[int(script[3])%len(rows)]
			lines[at] = lines[at] + "\n" + lines[from]
		}
		pages[name] = strings.ReplaceAll(strings.Join(lines, "\n"), "\x00", `\|`)
	}
}

// rowsOf are the lines that are rows of tables.
func rowsOf(lines []string) (rows []int) {
	for i, line := range lines {
		if strings.HasPrefix(line, "| ") && i > 1 && strings.HasPrefix(lines[i-1], "|") {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return []int{0}
	}
	return rows
}

// FuzzEditPages edits the tables of testdata/good, so that much of what comes out
// is a spec without mistakes, of a kind that nobody wrote by hand.
func FuzzEditPages(f *testing.F) {
	good, err := readPages("testdata/good")
	if err != nil {
		f.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 30 {
		script := make([]byte, 4*(1+i%4))
		for j := range script {
			script[j] = byte(random.Uint32())
		}
		f.Add(script)
	}
	names := []string{"widgets.md", "types.md", "widgets.md", "yards.md", "vaults.md", "vaults.md"}
	f.Fuzz(func(t *testing.T, script []byte) {
		pages := maps.Clone(good)
		edit(pages, names, script[:min(len(script), 40)])
		compileAny(t, pages)
	})
}
