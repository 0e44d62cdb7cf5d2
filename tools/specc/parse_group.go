package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	actionForm     = regexp.MustCompile(`^[a-z]+:[a-z]+(-[a-z]+)*:[a-z]+(-[a-z]+)*$`)
	targetForm     = regexp.MustCompile(`^([a-z]+(?:-[a-z]+)*)/\{([A-Za-z0-9]+)\}(?: of \{([A-Za-z0-9]+)\})?$`)
	alsoForm       = regexp.MustCompile("^`([^`]+)` when `([^`]+)`$")
	streamForm     = regexp.MustCompile("^([A-Za-z0-9]+) after `([^`]+)`$")
	statusForm     = regexp.MustCompile(`^(v[0-9]+\.[0-9]+) \(([a-z]+)\)$`)
	eventNameForm  = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+$`)
	allowedTargets = []string{"compute-pool", "compute-site", "tenant"}
	tableSections  = map[string][]string{
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

// methodHead reads what stands between a method's heading and its tables.
func (p *parser) methodHead(m *method, at position, blocks []block) {
	want := "POST /api/compute/" + m.group.name + "/" + m.name
	m.path = strings.TrimPrefix(want, "POST ")
	prose := blocks
	if len(blocks) > 0 {
		first, ok := blocks[0].(paragraph)
		if !ok || first.code() != want {
			p.wrong.add(blocks[0].position(), "the section must open with `%s`, the path that follows from group and method", want)
		} else {
			prose = blocks[1:]
		}
	}
	m.prose = proseOf(prose)
	m.summary = firstSentence(m.prose)
	if m.prose == "" {
		p.wrong.add(at, "the method %s does not say what it promises", m.name)
	}
	seen := map[string]bool{}
	for _, b := range blocks {
		if fact, ok := b.(bullet); ok {
			if seen[fact.key.text] {
				p.wrong.add(fact.key.at, "%q stands there twice", fact.key.text)
			}
			seen[fact.key.text] = true
			p.fact(m, fact)
		}
	}
	for _, key := range []string{"Kind", "Authorization", "Module", "Phase", "Retry", "Denial"} {
		if !seen[key] {
			p.wrong.add(at, "the method %s does not say its %s; add a line \"- %s: …\"", m.name, key, key)
		}
	}
}

func (p *parser) fact(m *method, b bullet) {
	value := b.value.span()
	switch b.key.text {
	case "Kind":
		m.kind = p.oneOf(value, "mutation", "read")
		m.facts.kind = value
	case "Authorization":
		m.facts.authorization = value
		p.authorization(m, value)
	case "Module":
		m.module = value.text
	case "Phase":
		if parts := statusForm.FindStringSubmatch(value.text); parts == nil {
			p.wrong.add(value.at, "%q is no phase; write it as v0.1 (registered)", value.text)
		} else {
			m.phase = parts[1]
			m.facts.phase, m.facts.status = value.part(0, parts[1]), value.part(len(parts[1])+2, parts[2])
		}
	case "Retry":
		m.retry = p.oneOf(value, "key", "natural", "none")
	case "Replay":
		m.replay, _, _ = strings.Cut(p.oneOf(value, "before the decision", "after the decision"), " ")
	case "Denial":
		m.denial = p.oneOf(value, "hidden", "shown")
	case "Also":
		if parts := alsoForm.FindStringSubmatch(b.value.text); parts == nil {
			p.wrong.add(value.at, "write the further action as `action` when `field`, not %q", value.text)
		} else {
			m.also = append(m.also, also{parts[1], parts[2], value.at})
		}
	case "Stream":
		p.streamFact(m, b.value)
	default:
		p.wrong.add(b.key.at, "unknown fact %q; a method has Kind, Authorization, Also, Module, Phase, Retry, Replay, Denial and Stream", b.key.text)
	}
}

func (p *parser) streamFact(m *method, value cell) {
	parts := streamForm.FindStringSubmatch(value.text)
	if parts == nil {
		p.wrong.add(value.at, "write the stream as Record after `field`, not %q", value.text)
		return
	}
	r, ok := find(p.spec.records, func(r *record) bool { return r.name == parts[1] })
	if !ok {
		p.wrong.add(value.at, "unknown record %q", parts[1])
	}
	m.stream = &stream{r, parts[2]}
}

// authorization reads "action @ kind/{id} of {owner} or kind/{id}".
func (p *parser) authorization(m *method, c cell) {
	action, places, ok := strings.Cut(c.text, " @ ")
	if !ok || !actionForm.MatchString(action) {
		p.wrong.add(c.at, "write the authorization as `module:things:verb @ kind/{id}`, not %q", c.text)
		return
	}
	m.action = action
	behind := len(action) + len(" @ ")
	for _, text := range strings.Split(places, " or ") {
		place := c.part(behind, text)
		behind += utf8.RuneCountInString(text) + len(" or ")
		parts := targetForm.FindStringSubmatch(text)
		if parts == nil {
			p.wrong.add(place.at, "write the resource as kind/{id}, where id is an input field, not %q", text)
			continue
		}
		t := target{parts[1], parts[2], parts[3], place.at}
		if t.owner == "" {
			t.owner = "tenantId"
		}
		p.oneOf(place.part(0, t.kind), allowedTargets...)
		m.targets = append(m.targets, t)
	}
}

func (p *parser) oneOf(c cell, values ...string) string {
	for _, value := range values {
		if c.text == value {
			return value
		}
	}
	p.wrong.add(c.at, "%q is none of: %s", c.text, strings.Join(values, ", "))
	return ""
}
