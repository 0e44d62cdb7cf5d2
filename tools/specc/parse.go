package main

import (
	"strings"
)

// A parser turns the blocks of the pages into a spec. It goes on after a
// mistake, so that one run reports them all.
type parser struct {
	spec  *spec
	wrong *mistakes
}

// parseSpec reads pages (file name → text) into a spec. The spec is only
// complete when wrong stays empty.
func parseSpec(pages map[string]string, wrong *mistakes) *spec {
	p := &parser{spec: &spec{}, wrong: wrong}
	blocks := map[string][]block{}
	for _, name := range sortedKeys(pages) {
		if name != "README.md" {
			blocks[name] = readPage(name, pages[name], wrong)
		}
	}
	if found, ok := blocks[provisionPage]; ok { // before the types, which have its states
		p.provision(found)
	}
	whole := true
	for _, page := range []struct {
		name string
		read func([]block)
	}{
		{"errors.md", p.errorsPage},
		{"roles.md", p.rolesPage},
		{"types.md", p.typesPage},
	} {
		if found, ok := blocks[page.name]; ok {
			page.read(found)
		} else {
			whole = false
			wrong.add(position{page.name, 1, 1}, "the page is missing; every spec has errors.md, roles.md and types.md")
		}
	}
	for _, name := range sortedKeys(blocks) {
		switch name {
		case "errors.md", "roles.md", "types.md", provisionPage:
		default:
			p.groupPage(name, blocks[name])
		}
	}
	if whole {
		check(p.spec, wrong)
	}
	p.spec.dropUnnamed()
	return p.spec
}

// A section is a heading and the blocks below it, up to the next heading that is as high.
type section struct {
	title  cell
	blocks []block
}

// sections splits blocks at the headings of one level. What stands before the first is returned apart.
func sections(blocks []block, level int) (before []block, below []section) {
	for _, b := range blocks {
		if h, ok := b.(heading); ok && h.level == level {
			below = append(below, section{title: h.title})
		} else if len(below) == 0 {
			before = append(before, b)
		} else {
			last := &below[len(below)-1]
			last.blocks = append(last.blocks, b)
		}
	}
	return before, below
}

// page checks that a page opens with "# name" and returns its prose and second-level sections.
func (p *parser) page(name string, blocks []block) (prose string, rest []block, below []section) {
	if len(blocks) == 0 {
		p.wrong.add(position{name, 1, 1}, "the page is empty")
		return "", nil, nil
	}
	title, ok := blocks[0].(heading)
	want := strings.TrimSuffix(name, ".md")
	if !ok || title.level != 1 || title.title.text != want {
		p.wrong.add(blocks[0].position(), "the page must open with \"# %s\", the name of its file", want)
	}
	if ok && title.level == 1 {
		blocks = blocks[1:]
	}
	for _, b := range blocks {
		if h, ok := b.(heading); ok && h.level != 2 && h.level != 3 {
			p.wrong.add(h.title.at, "a heading below the first is one of two or three #, not %d", h.level)
		}
	}
	rest, below = sections(blocks, 2)
	return proseOf(rest), rest, below
}

func proseOf(blocks []block) string {
	var paragraphs []string
	for _, b := range blocks {
		if para, ok := b.(paragraph); ok {
			paragraphs = append(paragraphs, para.text)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// table finds the one table among blocks and checks its columns. It returns nil rows where there is none.
func (p *parser) table(at position, blocks []block, columns ...string) [][]cell {
	var tables []table
	for _, b := range blocks {
		if t, ok := b.(table); ok {
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		p.wrong.add(at, "a table with the columns %s is missing", strings.Join(columns, ", "))
		return nil
	}
	for _, t := range tables[1:] {
		p.wrong.add(t.at, "a second table is read by nobody; add its rows to the one in line %d", tables[0].at.line)
	}
	t := tables[0]
	for i, c := range t.head {
		if i >= len(columns) || c.text != columns[i] {
			p.wrong.add(c.at, "unknown column %q; the columns are %s", c.text, strings.Join(columns, ", "))
			return nil
		}
	}
	if len(t.head) < len(columns) {
		p.wrong.add(t.at, "the column %q is missing; the columns are %s", columns[len(t.head)], strings.Join(columns, ", "))
		return nil
	}
	return t.rows
}

// needs refuses a page that lacks one of its sections.
func (p *parser) needs(blocks []block, below []section, titles ...string) {
	for _, title := range titles {
		if _, ok := find(below, func(s section) bool { return s.title.text == title }); !ok && len(blocks) > 0 {
			p.wrong.add(blocks[0].position(), "the page has no section \"## %s\"", title)
		}
	}
}

// yes reads a cell that is "yes" or empty.
func (p *parser) yes(c cell) bool {
	if c.text != "" && c.text != "yes" {
		p.wrong.add(c.at, "write yes or leave the cell empty, not %q", c.text)
	}
	return c.text == "yes"
}

func firstSentence(prose string) string {
	first, _, _ := strings.Cut(prose, "\n\n")
	if i := strings.Index(first, ". "); i >= 0 {
		return first[:i+1]
	}
	return first
}
