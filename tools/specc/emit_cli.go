package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The names that bcctl has for itself, beside what the pages declare.
var (
	cliFlags    = []string{"all", "help", "json", "key-file", "output", "server"}
	cliCommands = []string{"completion", "help", "version"}
)

// cli writes the table of commands.
func (e *emitter) cli() error {
	var groups []cliGroup
	for _, g := range e.spec.groups {
		group := cliGroup{Name: kebab(g.name), Short: firstSentence(g.prose), Long: g.prose}
		for _, m := range g.methods {
			if m.decides != byAction {
				continue // a daemon calls it, with what no person has
			}
			command, err := cliCommand(m)
			if err != nil {
				return err
			}
			group.Methods = append(group.Methods, command)
		}
		switch {
		case len(group.Methods) == 0:
			continue
		case slices.Contains(cliCommands, group.Name):
			return fmt.Errorf("%s: the group cannot be called %s, since the command line has a command of this name", g.at, g.name)
		}
		groups = append(groups, group)
	}
	return e.goFile("cli/commands.gen.go", "cli.tmpl", groups)
}

type (
	cliGroup struct {
		Name, Short, Long string
		Methods           []cliMethod
	}
	cliMethod struct {
		methodView
		Command, Short, Long, Example string
		Fields                        []cliField
		Member                        string // of an answer: the record or the records
		List                          bool
		Columns, Rest                 []cliColumn
	}
	cliField struct {
		Path, Flag, Type, Element, Limits, Default, Notes string
		Values                                            []string
		Required, Secret                                  bool
		Members                                           []cliField
	}
	cliColumn struct {
		Path string
		Row  bool
	}
)

// LongText is a Go expression with a line for each paragraph.
func (g cliGroup) LongText() string { return goParagraphs(g.Long) }

// LongText is a Go expression with a line for each paragraph.
func (m cliMethod) LongText() string { return goParagraphs(m.Long) }

// ExampleText is a Go expression that keeps the lines of the JSON where it can.
func (m cliMethod) ExampleText() string {
	if strings.Contains(m.Example, "`") {
		return strconv.Quote(m.Example)
	}
	return "`" + m.Example + "`"
}

func goParagraphs(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if i < len(paragraphs)-1 {
			p += "\n\n"
		}
		paragraphs[i] = strconv.Quote(p)
	}
	return strings.Join(paragraphs, " +\n")
}

func cliCommand(m *method) (cliMethod, error) {
	command := cliMethod{
		methodView: m.view(), Command: kebab(m.name), Short: m.summary, Long: m.prose,
		Example: strings.TrimSpace(m.request.text),
	}
	var err error
	walk(m.input, func(f *field) {
		view := cliFieldOf(f)
		switch {
		case f.inItems():
			return // it stands among the members of the array
		case slices.Contains(cliFlags, view.Flag):
			err = fmt.Errorf("%s: the field %s cannot have the flag --%s, which the command line has for itself; rename it", f.at, f.path, view.Flag)
		}
		command.Fields = append(command.Fields, view)
	})
	command.output(m)
	return command, err
}

// cliFieldOf is a field as a flag; the flags of an object are those of its fields.
// The flag of an array of objects takes a whole item, of which no part may be
// among the arguments of a process where one is secret.
func cliFieldOf(f *field) cliField {
	view := cliField{
		Path: f.path, Type: cliType(f, f.kind), Limits: limitText(f), Default: f.limit.deflt,
		Values: f.limit.enum, Required: f.required, Secret: f.limit.secret,
	}
	if f.kind == kindArray {
		view.Element = cliType(f, f.element)
		walk(f.fields, func(inner *field) {
			member := cliFieldOf(inner)
			member.Path, member.Flag = strings.TrimPrefix(inner.path, f.path+"."), ""
			view.Secret = view.Secret || member.Secret
			view.Members = append(view.Members, member)
		})
	}
	if f.scalar != nil {
		view.Notes = f.scalar.notes
	}
	if view.Type != "Object" {
		var parts []string
		for _, part := range strings.Split(f.path, ".") {
			parts = append(parts, kebab(part))
		}
		view.Flag = strings.Join(parts, ".")
	}
	return view
}

func cliType(f *field, k kind) string {
	switch k {
	case kindInteger:
		return "Integer"
	case kindBoolean:
		return "Boolean"
	case kindArray:
		return "Array"
	case kindObject:
		if len(f.fields) > 0 {
			return "Object"
		}
		return "JSON"
	case kindRecord:
		return "JSON"
	}
	return "String"
}

// output says what of an answer is shown as a table: the record or the list of
// records that the answer is about, and what stands beside it.
func (c *cliMethod) output(m *method) {
	if m.stream != nil {
		c.List = true
		c.columns("", m.stream.record.fields, nil)
		return
	}
	main, ok := find(m.output, func(f *field) bool { return f.record != nil && f.required })
	if ok {
		c.Member, c.List = main.name, main.kind == kindArray
		c.columns("", main.record.fields, []*record{main.record})
	}
	beside := cliMethod{}
	for _, f := range m.output {
		isCursor := c.Pages() != nil && f.name == c.Pages().NextField
		if f.once || f.name == c.Member || isCursor {
			continue
		}
		beside.columns("", []*field{f}, nil)
	}
	c.Rest = beside.Columns
}

// columns are the scalars of a record and of what is inside it. A list shows
// those that its page names, or else those of the record itself, except for
// those that can have one value only: by their type, or because the call asks for it.
func (c *cliMethod) columns(prefix string, fields []*field, inside []*record) {
	for _, f := range fields {
		switch {
		case f.kind == kindObject && len(f.fields) > 0:
			c.columns(prefix+f.name+".", f.fields, inside)
		case f.kind == kindRecord && !slices.Contains(inside, f.record):
			c.columns(prefix+f.name+".", f.record.fields, append(slices.Clone(inside), f.record))
		default:
			c.Columns = append(c.Columns, cliColumn{prefix + f.name, c.inRows(prefix+f.name, f)})
		}
	}
}

func (c *cliMethod) inRows(path string, f *field) bool {
	if c.List && len(c.method.columns) > 0 {
		_, named := find(c.method.columns, func(column cell) bool { return column.text == path })
		return named
	}
	scalar := f.kind != kindArray && f.kind != kindObject && f.kind != kindRecord
	constant := f.required && len(f.limit.enum) == 1
	return scalar && path == f.name && !constant && !c.asked(f)
}

// asked reports whether all records of a list have the value that the call
// gives: those of a pool have its id.
func (c *cliMethod) asked(f *field) bool {
	if !c.List || !f.required {
		return false
	}
	given := fieldNamed(c.input, f.name)
	return given != nil && given.required && given.scalar == f.scalar
}
