package main

// machine holds the state table against itself: no row or name is missing or
// there twice, nothing is a dead end or cannot be reached, and work that goes on
// can always end.
func (c *checker) provision(m *machine) {
	taken := map[string]position{}
	name := func(what, name string, at position) {
		if earlier, twice := taken[goName(name)]; twice {
			c.wrong.add(at, "the %s %q has the name of what stands in line %d; no name is there twice, also not as a state and an event", what, name, earlier.line)
		}
		taken[goName(name)] = at
	}
	for _, s := range m.states {
		name("state", s.name, s.at)
		if !dashedForm.MatchString(s.name) {
			c.wrong.add(s.at, "%q is no state; write lower-case words joined by dashes", s.name)
		}
		if len(m.rows) > 0 { // else the table was refused as a whole
			c.row(m, s)
		}
	}
	for _, r := range m.rows {
		if m.state(r.code()) == nil {
			c.wrong.add(r.at, "%q is no state", r.code())
		}
	}
	for _, e := range m.events {
		name("event", e.name, e.at)
		if !nameForm.MatchString(e.name) {
			c.wrong.add(e.at, "%q is no event; write it as a method, such as exitRescue", e.name)
		}
		if _, used := find(m.moves, func(v *move) bool { return v.event == e.name }); !used && len(m.rows) > 0 {
			c.wrong.add(e.at, "the event %s leads nowhere", e.name)
		}
	}
	for _, g := range m.guards {
		name("flag", g.flag, g.at)
		for _, verb := range g.blocks {
			if e := m.event(verb.text); e == nil || !e.verb {
				c.wrong.add(verb.at, "%q is no verb of this page", verb.text)
			}
		}
	}
	for _, v := range m.moves {
		c.move(m, v)
	}
	c.reachable(m)
}

func (m *machine) state(name string) *state {
	s, _ := find(m.states, func(s *state) bool { return s.name == name })
	return s
}

func (m *machine) event(name string) *trigger {
	e, _ := find(m.events, func(e *trigger) bool { return e.name == name })
	return e
}

func (c *checker) row(m *machine, s *state) {
	var rows []cell
	leaves := map[string]bool{}
	for _, r := range m.rows {
		if r.code() == s.name {
			rows = append(rows, r)
		}
	}
	for _, v := range m.moves {
		if v.from == s.name {
			leaves[v.event] = true
		}
	}
	switch {
	case s.kind == gone && len(rows) > 0:
		c.wrong.add(rows[0].at, "%s is gone: it has no row", s.name)
	case s.kind != gone && len(rows) == 0:
		c.wrong.add(s.at, "the state %s has no row in the table", s.name)
	case len(rows) > 1:
		c.wrong.add(rows[1].at, "the state %s has a row already, in line %d", s.name, rows[0].at.line)
	case s.kind != gone && len(leaves) == 0:
		c.wrong.add(rows[0].at, "%s is a dead end", s.name)
	case s.kind == transitional:
		for _, needed := range []string{"abort", "done", "fail"} {
			if !leaves[needed] {
				c.wrong.add(rows[0].at, "the transitional state %s has no %s: work must be able to end", s.name, needed)
			}
		}
	}
}

func (c *checker) move(m *machine, v *move) {
	from, to, event := m.state(v.from), m.state(v.to), m.event(v.event)
	if to == nil {
		c.wrong.add(v.at, "%q is no state", v.to)
	}
	if from == nil || to == nil {
		return
	}
	if !event.verb && from.kind != transitional {
		c.wrong.add(v.at, "only work reports %s, and there is none in %s", v.event, v.from)
	}
	if !event.verb && to.kind == transitional {
		c.wrong.add(v.at, "%s ends work and cannot begin any, in %s", v.event, v.to)
	}
	if v.from == v.to {
		c.wrong.add(v.at, "%s leads from %s to itself", v.event, v.from)
	}
}

// reachable refuses states that nothing leads to from the first one.
func (c *checker) reachable(m *machine) {
	if len(m.states) == 0 || len(m.rows) == 0 {
		return
	}
	reached := map[string]bool{m.states[0].name: true}
	for grown := true; grown; {
		grown = false
		for _, v := range m.moves {
			if reached[v.from] && !reached[v.to] {
				reached[v.to], grown = true, true
			}
		}
	}
	for _, s := range m.states {
		if !reached[s.name] {
			c.wrong.add(s.at, "nothing leads to %s", s.name)
		}
	}
}
