package main

import (
	"regexp"
	"strings"
)

var (
	eventNameForm = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$`)
	tableSections = map[string][]string{
		"Input":  {"Field", "Type", "Required", "Constraints"},
		"Output": {"Field", "Type", "Always", "Notes"},
		"Errors": {"Code", "When"},
		"Events": {"Event", "When"},
	}
)

// groupPage reads one page of methods.
func (p *parser) groupPage(file string, blocks []block) {
	prose, rest, below := p.page(file, blocks)
	if len(blocks) == 0 {
		return
	}
	g := &group{name: strings.TrimSuffix(file, ".md"), at: blocks[0].position(), prose: prose}
	if !nameForm.MatchString(g.name) {
		p.wrong.add(g.at, "%q is no group name; begin with a lower-case letter and go on with letters and digits", g.name)
	}
	for _, row := range p.table(g.at, rest, "Method", "Kind", "Authorization", "Phase", "Status") {
		m := &method{group: g, name: row[0].code(), at: row[0].at, row: methodFacts{row[1], row[2], row[3], row[4]}}
		if !nameForm.MatchString(m.name) {
			p.wrong.add(m.at, "%q is no method name; begin with a lower-case letter and go on with letters and digits", m.name)
		}
		if _, twice := find(g.methods, func(o *method) bool { return o.name == m.name }); twice {
			p.wrong.add(m.at, "the method %s has a row already", m.name)
			continue
		}
		g.methods = append(g.methods, m)
	}
	for _, s := range below {
		if s.title.text == "Events" {
			p.eventsSection(s)
			continue
		}
		m, ok := find(g.methods, func(m *method) bool { return m.name == s.title.code() })
		switch {
		case !ok:
			p.wrong.add(s.title.at, "the method %s has a section and no row in the group's table", s.title.code())
		case m.described:
			p.wrong.add(s.title.at, "the method %s has a section already", m.name)
		default:
			m.described = true
			p.methodSection(m, s)
		}
	}
	for _, m := range g.methods {
		if !m.described {
			p.wrong.add(m.at, "the method %s has a row and no section \"## %s\"", m.name, m.name)
		}
	}
	p.spec.groups = append(p.spec.groups, g)
}

func (p *parser) eventsSection(s section) {
	_, below := sections(s.blocks, 3)
	for _, sub := range below {
		e := &event{name: sub.title.code(), at: sub.title.at, prose: proseOf(sub.blocks)}
		if other, twice := find(p.spec.events, func(o *event) bool { return o.name == e.name }); twice {
			p.wrong.add(e.at, "the event %s is declared already", other.name)
			continue
		}
		if !eventNameForm.MatchString(e.name) {
			p.wrong.add(e.at, "%q is no event name; write lower-case words joined by dots and dashes, such as security.join-token.created", e.name)
		}
		e.fields = p.outputFields(p.table(sub.title.at, sub.blocks, tableSections["Output"]...))
		p.spec.events = append(p.spec.events, e)
	}
}

func (p *parser) methodSection(m *method, s section) {
	head, below := sections(s.blocks, 3)
	p.methodHead(m, s.title.at, head)
	seen := map[string]bool{}
	for _, sub := range below {
		name := sub.title.text
		if seen[name] {
			p.wrong.add(sub.title.at, "the section %q stands there twice", name)
			continue
		}
		seen[name] = true
		columns := tableSections[name]
		switch name {
		case "Input":
			m.input = p.inputFields(p.table(sub.title.at, sub.blocks, columns...))
		case "Output":
			m.output = p.outputFields(p.table(sub.title.at, sub.blocks, columns...))
		case "Errors":
			m.errors = cases(p.table(sub.title.at, sub.blocks, columns...))
		case "Events":
			m.events = cases(p.table(sub.title.at, sub.blocks, columns...))
		case "Example":
			p.examples(m, sub)
		default:
			p.wrong.add(sub.title.at, "unknown section %q; a method has Input, Output, Errors, Events and Example", name)
		}
	}
	for _, name := range []string{"Input", "Errors", "Example"} {
		if !seen[name] {
			p.wrong.add(s.title.at, "the method %s has no section \"### %s\"", m.name, name)
		}
	}
	switch {
	case !seen["Output"] && m.stream == nil:
		p.wrong.add(s.title.at, "the method %s has no section \"### Output\"", m.name)
	case seen["Output"] && m.stream != nil:
		p.wrong.add(s.title.at, "the method %s answers with a stream; drop the section \"### Output\"", m.name)
	}
}

func cases(rows [][]cell) (list []caseOf) {
	for _, row := range rows {
		list = append(list, caseOf{row[0].span(), row[1].text})
	}
	return list
}

func (p *parser) examples(m *method, s section) {
	for _, b := range s.blocks {
		f, ok := b.(fence)
		switch {
		case !ok:
		case f.info == "json request" && m.request.text == "":
			m.request = example{f.body, f.at}
		case f.info == "json response" && m.answer.text == "":
			m.answer = example{f.body, f.at}
		case f.info == "json request", f.info == "json response":
			p.wrong.add(f.at, "a second block %q is read by nobody; drop one", f.info)
		default:
			p.wrong.add(f.at, "an example is marked \"json request\" or \"json response\", not %q", f.info)
		}
	}
	if m.request.text == "" {
		p.wrong.add(s.title.at, "the example has no block \"json request\"")
	}
	switch {
	case m.answer.text == "" && m.stream == nil:
		p.wrong.add(s.title.at, "the example has no block \"json response\"")
	case m.answer.text != "" && m.stream != nil:
		p.wrong.add(m.answer.at, "the method %s answers with a stream; drop the block \"json response\"", m.name)
	}
}
