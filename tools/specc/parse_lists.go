package main

import (
	"regexp"
	"strconv"
)

var (
	codeForm   = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	snakeForm  = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	dashedForm = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	typeForm   = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
)

// typesPage reads types.md: the scalars, and a section for each record.
func (p *parser) typesPage(blocks []block) {
	p.builtInScalars()
	_, _, below := p.page("types.md", blocks)
	for _, s := range below {
		if s.title.text == "Scalars" {
			for _, row := range p.table(s.title.at, s.blocks, "Name", "Type", "Constraints", "Notes") {
				p.scalar(row)
			}
			continue
		}
		r := &record{name: s.title.code(), at: s.title.at, prose: proseOf(s.blocks)}
		if p.typeName(s.title) {
			p.spec.records = append(p.spec.records, r)
		}
	}
	for _, s := range below {
		if r, ok := find(p.spec.records, func(r *record) bool { return r.at == s.title.at }); ok {
			r.fields = p.outputFields(p.table(s.title.at, s.blocks, "Field", "Type", "Always", "Notes"))
		}
	}
}

// builtInScalars are lists that stand on other pages. Those of provision.md are
// only there where some page names them, see dropUnnamed.
func (p *parser) builtInScalars() {
	at := position{"types.md", 1, 1}
	var roles, codes []string
	for _, r := range p.spec.roles {
		roles = append(roles, r.name)
	}
	for _, c := range p.spec.codes {
		codes = append(codes, c.name)
	}
	if m := p.spec.machine; m != nil {
		var states, verbs []string
		for _, s := range m.states {
			if s.kind != gone {
				states = append(states, s.name)
			}
		}
		for _, e := range m.events {
			if e.verb {
				verbs = append(verbs, e.name)
			}
		}
		p.spec.scalars = append(p.spec.scalars,
			&scalar{name: provisionState, at: at, kind: kindEnum, limit: limits{enum: states}, notes: "A state of provision.md."},
			&scalar{name: provisionVerb, at: at, kind: kindEnum, limit: limits{enum: verbs}, notes: "A verb of provision.md."},
		)
	}
	p.spec.scalars = append(p.spec.scalars,
		&scalar{name: "Role", at: at, kind: kindEnum, limit: limits{enum: roles}, notes: "A role of roles.md."},
		&scalar{name: "ErrorCode", at: at, kind: kindEnum, limit: limits{enum: codes}, notes: "A code of errors.md."},
	)
}

func (p *parser) scalar(row []cell) {
	s := &scalar{name: row[0].code(), at: row[0].at, notes: row[3].text}
	s.kind, s.limit.enum = p.plainType(row[1])
	if s.kind != kindString && s.kind != kindEnum {
		p.wrong.add(row[1].at, "a scalar is a string or one of a, b; not %q", row[1].text)
		return
	}
	f := &field{kind: s.kind, limit: s.limit}
	p.constraints(row[2], f)
	if s.limit = f.limit; s.limit.hasDefault {
		p.wrong.add(s.limit.defaultAt, "a type has no default; write it at the field that has one")
	}
	if p.typeName(row[0]) {
		p.spec.scalars = append(p.spec.scalars, s)
	}
}

// typeName checks the name of a scalar or record and that it is new.
func (p *parser) typeName(c cell) bool {
	name := c.code()
	if !typeForm.MatchString(name) {
		p.wrong.add(c.at, "%q is no type name; begin with a capital and go on with letters and digits", name)
		return false
	}
	for _, s := range p.spec.scalars {
		if goName(s.name) == goName(name) {
			p.wrong.add(c.at, "the type %s is declared already", s.name)
			return false
		}
	}
	for _, r := range p.spec.records {
		if goName(r.name) == goName(name) {
			p.wrong.add(c.at, "the type %s is declared already", r.name)
			return false
		}
	}
	return true
}

// errorsPage reads errors.md: the codes, the rules, and the reasons if there are any.
func (p *parser) errorsPage(blocks []block) {
	_, _, below := p.page("errors.md", blocks)
	p.needs(blocks, below, "Codes", "Rules")
	for _, s := range below {
		switch s.title.text {
		case "Codes":
			for _, row := range p.table(s.title.at, s.blocks, "Code", "Status", "Title", "Retry", "When") {
				p.code(row)
			}
		case "Rules":
			for _, row := range p.table(s.title.at, s.blocks, "Rule", "Meaning") {
				r := &rule{name: row[0].code(), at: row[0].at, meaning: row[1].text}
				if _, twice := find(p.spec.rules, func(o *rule) bool { return o.name == r.name }); twice || !dashedForm.MatchString(r.name) {
					p.wrong.add(r.at, "the rule %q must be a new name of lower-case words joined by dashes", r.name)
					continue
				}
				p.spec.rules = append(p.spec.rules, r)
			}
		case "Reasons":
			for _, row := range p.table(s.title.at, s.blocks, "Reason", "Code", "Meaning") {
				r := &reason{name: row[0].code(), at: row[0].at, code: row[1].span(), meaning: row[2].text}
				if _, twice := find(p.spec.reasons, func(o *reason) bool { return o.name == r.name }); twice || !snakeForm.MatchString(r.name) {
					p.wrong.add(r.at, "the reason %q must be a new name of lower-case words joined by underscores", r.name)
					continue
				}
				p.spec.reasons = append(p.spec.reasons, r)
			}
		default:
			p.wrong.add(s.title.at, "unknown section %q; errors.md has Codes, Rules and Reasons", s.title.text)
		}
	}
}

func (p *parser) code(row []cell) {
	c := &code{name: row[0].code(), at: row[0].at, title: row[2].text, when: row[4].text}
	status, err := strconv.Atoi(row[1].text)
	if err != nil || status < 400 || status > 599 {
		p.wrong.add(row[1].at, "%q is no status of an error; it lies in 400-599", row[1].text)
	}
	c.status = status
	switch row[3].text {
	case "yes", "no":
		c.retry = row[3].text == "yes"
	default:
		p.wrong.add(row[3].at, "write yes or no, not %q", row[3].text)
	}
	if _, twice := find(p.spec.codes, func(o *code) bool { return o.name == c.name }); twice || !codeForm.MatchString(c.name) {
		p.wrong.add(c.at, "the code %q must be a new name of capitals joined by underscores", c.name)
		return
	}
	p.spec.codes = append(p.spec.codes, c)
}

// rolesPage reads roles.md: the roles, and the table of actions.
func (p *parser) rolesPage(blocks []block) {
	_, _, below := p.page("roles.md", blocks)
	p.needs(blocks, below, "Roles", "Actions")
	for _, s := range below {
		switch s.title.text {
		case "Roles":
			for _, row := range p.table(s.title.at, s.blocks, "Role", "Tenant", "Pool", "May grant") {
				p.role(row)
			}
		case "Actions":
			columns := []string{"Action"}
			for _, r := range p.spec.roles {
				columns = append(columns, r.name)
			}
			for _, row := range p.table(s.title.at, s.blocks, columns...) {
				p.grant(row)
			}
		default:
			p.wrong.add(s.title.at, "unknown section %q; roles.md has Roles and Actions", s.title.text)
		}
	}
	for _, r := range p.spec.roles {
		for _, name := range r.mayGrant {
			if _, ok := find(p.spec.roles, func(o *role) bool { return o.name == name.text }); !ok {
				p.wrong.add(name.at, "unknown role %q", name.text)
			}
		}
	}
}

func (p *parser) role(row []cell) {
	r := &role{name: row[0].code(), at: row[0].at, tenant: row[1].code()}
	switch row[2].text {
	case "no", "optional":
		r.pool = row[2].text == "optional"
	default:
		p.wrong.add(row[2].at, "write no or optional, not %q", row[2].text)
	}
	if row[3].text != "" {
		r.mayGrant = splitCell(row[3], ',')
	}
	if _, twice := find(p.spec.roles, func(o *role) bool { return o.name == r.name }); twice || !dashedForm.MatchString(r.name) {
		p.wrong.add(r.at, "the role %q must be a new name of lower-case words joined by dashes", r.name)
		return
	}
	p.spec.roles = append(p.spec.roles, r)
}

func (p *parser) grant(row []cell) {
	g := &grant{action: row[0].code(), at: row[0].at}
	if !actionForm.MatchString(g.action) {
		p.wrong.add(g.at, "%q is no action; write module:things:verb in lower case", g.action)
	}
	if _, twice := find(p.spec.grants, func(o *grant) bool { return o.action == g.action }); twice {
		p.wrong.add(g.at, "the action %s has a row already", g.action)
	}
	for _, c := range row[1:] {
		switch c.text {
		case "", "any", "own", "site", "pool":
		default:
			p.wrong.add(c.at, "unknown scope %q; write any, own, site, pool, or leave the cell empty", c.text)
		}
		g.scopes = append(g.scopes, c.text)
	}
	p.spec.grants = append(p.spec.grants, g)
}
