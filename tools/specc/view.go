package main

import (
	"fmt"
	"slices"
	"strings"
)

// templateFuncs are what templates may call.
var templateFuncs = map[string]any{
	"goName":     goName,
	"goConstant": goConstant,
	"kebab":      kebab,
	"comment":    comment,
	"promise":    promise,
	"capitalize": capitalize,
}

// promise makes the prose of a method a Go comment that opens with its name:
// "Mints a token …" becomes "Create mints a token …".
func promise(name, prose string) string {
	return comment(name + " " + strings.ToLower(prose[:1]) + prose[1:])
}

// comment makes a text of several paragraphs a Go comment.
func comment(text string) string {
	var lines []string
	for _, paragraph := range strings.Split(text, "\n\n") {
		if len(lines) > 0 {
			lines = append(lines, "//")
		}
		line := "//"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+len(word) > 100 {
				lines = append(lines, line)
				line = "//"
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// A view is the spec as templates see it: plain values with exported names.
type view struct {
	*emitter
	Runtime string
	Groups  []groupView
	Codes   []codeView
	Rules   []textView
	Reasons []reasonView
	Roles   []roleView
	Actions []string
	Events  []eventView
	Records []recordView
	Streams []streamView
}

type (
	textView   struct{ Name, Text string }
	reasonView struct{ Name, Code, Text string }
	codeView   struct {
		Name, Title, When string
		Status            int
	}
	roleView struct {
		Name, Tenant string
		Pool         bool
		MayGrant     []string
	}
	eventView struct {
		Name, Prose string
		Fields      []fieldView
	}
	recordView struct {
		Name, Prose string
		Fields      []fieldView
	}
	fieldView struct {
		Name, Path, Go, Type, Notes string
		Optional                    bool
	}
	groupView struct {
		Name, Go, Prose string
		Methods         []methodView
	}
	methodView struct {
		*method
		Name, Go, Operation, ID, Path, Kind, Action, Retry, Replay, Denial, Phase, Module, Prose string
		Credential                                                                               string // the name of a constant
		Targets                                                                                  []targetView
		Also                                                                                     []alsoView
		StreamRecord                                                                             string
		HasKey                                                                                   bool
	}
	streamView struct {
		Record     string
		Operations []string
	}
	targetView struct {
		Type, ID, Owner string
		IDOptional      bool
		OwnerOptional   bool
	}
	alsoView struct{ Action, When string }
)

func (e *emitter) view() *view {
	v := &view{emitter: e, Runtime: runtimePath}
	for _, c := range e.spec.codes {
		v.Codes = append(v.Codes, codeView{c.name, c.title, c.when, c.status})
	}
	for _, r := range e.spec.rules {
		v.Rules = append(v.Rules, textView{r.name, r.meaning})
	}
	for _, r := range e.spec.reasons {
		v.Reasons = append(v.Reasons, reasonView{r.name, r.code.text, r.meaning})
	}
	for _, r := range e.spec.roles {
		role := roleView{Name: r.name, Tenant: r.tenant, Pool: r.pool}
		for _, name := range r.mayGrant {
			role.MayGrant = append(role.MayGrant, name.text)
		}
		v.Roles = append(v.Roles, role)
	}
	for _, g := range e.spec.grants {
		v.Actions = append(v.Actions, g.action)
	}
	for _, g := range e.spec.groups {
		group := groupView{Name: g.name, Go: goName(g.name), Prose: g.prose}
		for _, m := range g.methods {
			group.Methods = append(group.Methods, m.view())
			v.addStream(m)
		}
		v.Groups = append(v.Groups, group)
	}
	return v
}

// addStream gathers the methods that stream records of the same type.
func (v *view) addStream(m *method) {
	if m.stream == nil {
		return
	}
	record, operation := goName(m.stream.record.name), goName(m.operation())
	for i, s := range v.Streams {
		if s.Record == record {
			v.Streams[i].Operations = append(s.Operations, operation)
			return
		}
	}
	v.Streams = append(v.Streams, streamView{record, []string{operation}})
}

// credentialNames are the constants of the package api.
var credentialNames = map[credential]string{
	byAction: "CredentialAPIKey", byToken: "CredentialJoinToken", byNode: "CredentialNodeCertificate",
}

func (m *method) view() methodView {
	out := methodView{
		method: m, Name: m.name, Go: goName(m.name), Operation: goName(m.operation()), ID: m.id(), Path: m.path,
		Kind: m.kind, Action: m.action, Retry: m.retry, Replay: m.replay, Denial: m.denial,
		Phase: m.phase, Module: m.module, Prose: m.prose, Credential: credentialNames[m.decides],
		HasKey: fieldNamed(m.input, "idempotencyKey") != nil,
	}
	for _, t := range m.targets {
		out.Targets = append(out.Targets, targetView{
			Type: goName(t.kind), ID: goName(t.id), Owner: goName(t.owner),
			IDOptional:    !fieldNamed(m.input, t.id).required,
			OwnerOptional: !fieldNamed(m.input, t.owner).required,
		})
	}
	for _, a := range m.also {
		out.Also = append(out.Also, alsoView{a.action, a.when})
	}
	if m.stream != nil {
		out.StreamRecord = goName(m.stream.record.name)
	}
	return out
}

// Undecided says that IAM does not decide on some method.
func (g groupView) Undecided() bool {
	return slices.ContainsFunc(g.Methods, func(m methodView) bool { return m.Action == "" })
}

// ServerDoc is what the interface of a group says of a method.
func (m methodView) ServerDoc() string {
	text := m.Prose
	switch m.decides {
	case byToken:
		text += "\n\nNo IAM decision has been taken: the join token that is the bearer decides."
	case byNode:
		text += "\n\nNo IAM decision has been taken: the node whose client certificate was presented decides."
	}
	if m.other != nil {
		text += fmt.Sprintf("\n\nAn output with %s is answered with the status %d.", goName(m.other.when), m.other.status)
	}
	return promise(m.Go, text)
}

// WhenSet is the Go condition under which a further action is needed.
func (m methodView) WhenSet(path string) string {
	at := "in"
	fields := m.input
	for _, part := range strings.Split(path, ".") {
		f := fieldNamed(fields, part)
		at += "." + goName(part)
		if !f.required && !f.limit.hasDefault && !f.defaulted() {
			at += ".Value" // the zero value where it is not set
		}
		fields = f.fields
	}
	return at
}

// PlatformTenant is the one tenant that some role is limited to.
func (v *view) PlatformTenant() string {
	for _, r := range v.Roles {
		if r.Tenant != "any" {
			return r.Tenant
		}
	}
	return ""
}
