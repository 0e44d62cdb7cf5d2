package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// These tests hold the compiled joinTokens against the rows of the reference page
// (testdata/seed/joinTokens.rows, facts only, in the form in which its dump lost
// empty cells and leading pipes). Each is named after the rule that it serves.

// seedField is a row of an input table of the reference page.
type seedField struct {
	path, kind, chars, pattern, span, deflt, enum string
	required                                      bool
}

func (f seedField) String() string {
	return fmt.Sprintf("%s: type %s, required %t, at most %s characters, matches %s, range %s, default %s, one of %s",
		f.path, f.kind, f.required, f.chars, f.pattern, f.span, f.deflt, f.enum)
}

// seedRows are the rows of one table of the reference page, without empty cells.
func seedRows(t *testing.T, table string) (rows [][]string) {
	t.Helper()
	for _, part := range strings.Split(strings.TrimSpace(read(t, "testdata/seed/joinTokens.rows")), "\n\n") {
		title, body, _ := strings.Cut(part, "\n")
		if title != table {
			continue
		}
		for _, line := range strings.Split(body, "\n") {
			var cells []string
			for _, cell := range strings.Split(line, "|") {
				if cell = strings.TrimSpace(cell); cell != "" {
					cells = append(cells, cell)
				}
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("the reference page has no table %s", table)
	}
	return rows
}

var (
	seedChars = regexp.MustCompile(`^at most (\d+) characters$`)
	seedRange = regexp.MustCompile(`^\d+-\d+$`)
)

// seedFields reads an input table of the reference page.
func seedFields(t *testing.T, method string) (fields []seedField) {
	t.Helper()
	for _, row := range seedRows(t, method) {
		f := seedField{path: row[0], kind: row[1]}
		if enum, ok := strings.CutPrefix(f.kind, "one of "); ok {
			f.kind, f.enum = "one of", enum
		}
		rest := row[2:]
		if f.required = len(rest) > 0 && rest[0] == "yes"; f.required {
			rest = rest[1:]
		}
		for _, says := range strings.Split(strings.Join(rest, ""), "; ") {
			switch {
			case says == "":
			case seedChars.MatchString(says):
				f.chars = seedChars.FindStringSubmatch(says)[1]
			case strings.HasPrefix(says, "matches "):
				f.pattern = strings.TrimPrefix(says, "matches ")
			case strings.HasPrefix(says, "default "):
				f.deflt = strings.TrimPrefix(says, "default ")
			case seedRange.MatchString(says):
				f.span = says
			default:
				t.Fatalf("%s: what is %q?", f.path, says)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// compiledFields are the fields of a method as the compiler has them.
func compiledFields(m *method) (fields []seedField) {
	walk(m.input, func(f *field) {
		out := seedField{path: f.path, kind: f.kind.String(), required: f.required, deflt: f.limit.deflt, enum: strings.Join(f.limit.enum, ", ")}
		if f.limit.maxChars > 0 {
			out.chars = fmt.Sprint(f.limit.maxChars)
		}
		if f.limit.pattern != nil {
			out.pattern = f.limit.pattern.String()
		}
		if f.limit.hasRange {
			out.span = rangeText(&f.limit)
		}
		fields = append(fields, out)
	})
	return fields
}

func joinTokens(t *testing.T, name string) *method {
	t.Helper()
	m := methodsOf(t, specDir)["joinTokens."+name]
	if m == nil {
		t.Fatalf("joinTokens has no method %s", name)
	}
	return m
}

// sameFields holds fields of create against the reference page.
func sameFields(t *testing.T, method string, paths ...string) {
	t.Helper()
	is, want := compiledFields(joinTokens(t, method)), seedFields(t, method)
	for _, path := range paths {
		has := func(f seedField) bool { return f.path == path }
		i, j := slices.IndexFunc(is, has), slices.IndexFunc(want, has)
		if i < 0 || j < 0 {
			t.Errorf("%s stands in place %d of the spec and in %d of the reference page", path, i, j)
		} else if is[i] != want[j] {
			t.Errorf("compiled  %s\nreference %s", is[i], want[j])
		}
	}
}

// sameTable holds a whole input against the reference page, with its order.
func sameTable(t *testing.T, method string) {
	t.Helper()
	is, want := compiledFields(joinTokens(t, method)), seedFields(t, method)
	if !slices.Equal(is, want) {
		t.Errorf("%s: compiled\n%v\nreference\n%v", method, is, want)
	}
}

func TestJT_01(t *testing.T) {
	t.Parallel()
	s := parsed(t, specDir)
	g, _ := find(s.groups, func(g *group) bool { return g.name == "joinTokens" })
	rows := seedRows(t, "methods")
	if g == nil || len(g.methods) != len(rows) {
		t.Fatalf("the reference page has %d methods", len(rows))
	}
	for i, m := range g.methods {
		row := rows[i]
		is := []string{m.name, m.kind, m.action + " @ " + m.targets[0].kind, m.phase, m.facts.status.text}
		if !slices.Equal(is, row) {
			t.Errorf("compiled %v, reference %v", is, row)
		}
		if want := "/api/compute/joinTokens/" + row[0]; m.path != want {
			t.Errorf("the path is %s, not %s", m.path, want)
		}
		if m.module != "server" || m.phase != "v0.1" {
			t.Errorf("%s is served by module %s in phase %s", m.name, m.module, m.phase)
		}
	}
}

func TestJT_02(t *testing.T) {
	t.Parallel()
	for _, row := range seedRows(t, "methods") {
		m := joinTokens(t, row[0])
		action, kind, _ := strings.Cut(row[2], " @ ")
		if m.action != action || len(m.targets) != 1 || m.targets[0].kind != kind || m.targets[0].id != "poolId" || m.targets[0].owner != "tenantId" {
			t.Errorf("%s is decided by %s on %v, not by %s on %s/{poolId}", m.name, m.action, m.targets, action, kind)
		}
	}
}

func TestJT_10(t *testing.T) { t.Parallel(); sameFields(t, "create", "tenantId") }
func TestJT_11(t *testing.T) { t.Parallel(); sameFields(t, "create", "poolId") }
func TestJT_12(t *testing.T) { t.Parallel(); sameFields(t, "create", "maxUses") }
func TestJT_13(t *testing.T) { t.Parallel(); sameFields(t, "create", "ttlSeconds") }

func TestJT_14(t *testing.T) {
	t.Parallel()
	sameFields(t, "create", "expect", "expect.productUuid", "expect.serial", "expect.mac", "expect.gpuUuid")
	if f := fieldNamed(joinTokens(t, "create").input, "expect"); !f.limit.atLeastOne || len(f.fields) != 4 {
		t.Errorf("expect needs at least one of its four fields; it has %d", len(f.fields))
	}
}

func TestJT_15(t *testing.T) { t.Parallel(); sameFields(t, "create", "allowReclaim") }
func TestJT_16(t *testing.T) { t.Parallel(); sameFields(t, "create", "hosted") }

func TestJT_17(t *testing.T) {
	t.Parallel()
	sameFields(t, "create", "idempotencyKey")
	sameTable(t, "create")
}

func TestJT_30(t *testing.T) { t.Parallel(); sameTable(t, "list") }
func TestJT_31(t *testing.T) { t.Parallel(); sameTable(t, "revoke") }
