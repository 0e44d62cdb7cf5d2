package main

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// The page of the state table, and the types that it makes.
const (
	provisionPage  = "provision.md"
	provisionState = "ProvisionState"
	provisionVerb  = "ProvisionVerb"
)

// provision reads provision.md: the states, the events, the guards and the table.
func (p *parser) provision(blocks []block) {
	_, _, below := p.page(provisionPage, blocks)
	p.needs(blocks, below, "States", "Events", "Guards", "Transitions")
	m := &machine{}
	p.spec.machine = m
	// The columns of the table are the events, wherever their section stands.
	for _, s := range below {
		if s.title.text == "Events" {
			for _, row := range p.table(s.title.at, s.blocks, "Event", "By", "Meaning") {
				by := p.oneOf(row[1], "verb", "reconciler")
				m.events = append(m.events, &trigger{row[0].code(), row[0].at, by == "verb", row[2].text})
			}
		}
	}
	for _, s := range below {
		switch s.title.text {
		case "Events":
		case "States":
			for _, row := range p.table(s.title.at, s.blocks, "State", "Kind", "Deadline", "Meaning") {
				p.state(m, row)
			}
		case "Guards":
			for _, row := range p.table(s.title.at, s.blocks, "Flag", "Blocks", "Meaning") {
				m.guards = append(m.guards, &guard{row[0].code(), row[0].at, splitCell(row[1], ','), row[2].text})
			}
		case "Transitions":
			columns := []string{"From"}
			for _, e := range m.events {
				columns = append(columns, e.name)
			}
			for _, row := range p.table(s.title.at, s.blocks, columns...) {
				p.moves(m, row)
			}
		default:
			p.wrong.add(s.title.at, "unknown section %q; provision.md has States, Events, Guards and Transitions", s.title.text)
		}
	}
}

func (p *parser) state(m *machine, row []cell) {
	s := &state{name: row[0].code(), at: row[0].at, meaning: row[3].text}
	s.kind = p.oneOf(row[1], stable, transitional, failed, gone)
	if row[2].text != "" {
		s.deadline = p.duration(row[2])
	}
	if (s.kind == transitional) != (row[2].text != "") {
		p.wrong.add(row[2].at, "a transitional state has a deadline, and no other has one")
	}
	m.states = append(m.states, s)
}

// duration reads "60 min" or "4 h".
func (p *parser) duration(c cell) time.Duration {
	number, unit, _ := strings.Cut(c.text, " ")
	n, err := strconv.Atoi(number)
	of, ok := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour}[unit]
	if err != nil || n < 1 || n > 1000 || !ok {
		p.wrong.add(c.at, "%q is no time; write a number and s, min or h, such as 60 min", c.text)
	}
	return time.Duration(n) * of
}

// moves reads a row of the table: a state and, below each event, where it leads.
func (p *parser) moves(m *machine, row []cell) {
	from := row[0].code()
	m.rows = append(m.rows, row[0])
	for i, c := range row[1:] {
		if c.text == "" {
			continue
		}
		to, force := strings.CutSuffix(c.code(), "!")
		m.moves = append(m.moves, &move{from, m.events[i].name, to, force, c.at})
	}
}

// dropUnnamed leaves out the types of provision.md that no page names: a
// document has no types that nothing refers to.
func (s *spec) dropUnnamed() {
	if s.machine == nil {
		return
	}
	named := map[*scalar]bool{}
	see := func(f *field) { named[f.scalar] = true }
	for _, g := range s.groups {
		for _, m := range g.methods {
			walk(m.input, see)
			walk(m.output, see)
		}
	}
	for _, r := range s.records {
		walk(r.fields, see)
	}
	for _, e := range s.events {
		walk(e.fields, see)
	}
	s.scalars = slices.DeleteFunc(s.scalars, func(t *scalar) bool {
		return !named[t] && (t.name == provisionState || t.name == provisionVerb)
	})
}
