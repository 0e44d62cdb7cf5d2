package main

import (
	"fmt"
	"strings"
)

// What the client and the command line need beyond the common view.
type (
	// A lostView says how a secret is recognised as lost, and what ends its record.
	lostView struct{ Record, Secret, Revoke, RevokeID, IDField string }
	// A pagesView says how a list goes on: Next of an answer is the Ask of the next call.
	pagesView struct {
		Method, Items, Item string // Go names
		Ask, Next           string // Go names
		AskField, NextField string
		Always              bool // Next is there on the last page, too
	}
)

// RetryStatuses lists the statuses of those codes that errors.md marks to be
// retried: with reads false for all methods, with reads true for reads alone.
// After INTERNAL nobody knows what became of a mutation.
func (v *view) RetryStatuses(reads bool) (list []int) {
	seen := map[int]bool{}
	for _, c := range v.spec.codes {
		if c.retry && (c.status == 500) == reads && !seen[c.status] {
			seen[c.status] = true
			list = append(list, c.status)
		}
	}
	return list
}

// HasKeys says whether any method takes an idempotency key.
func (v *view) HasKeys() bool {
	for _, g := range v.Groups {
		for _, m := range g.Methods {
			if m.HasKey {
				return true
			}
		}
	}
	return false
}

// Lost is set for a method that answers with a secret once.
func (m methodView) Lost() *lostView {
	secret, ok := find(m.output, func(f *field) bool { return f.once })
	if !ok {
		return nil
	}
	lost := &lostView{Secret: secret.name}
	made, ok := find(m.output, func(f *field) bool { return f.record != nil && f.kind == kindRecord })
	if !ok {
		return lost
	}
	lost.Record = made.name
	revoke, ok := find(m.group.methods, func(o *method) bool { return o.name == "revoke" })
	if !ok {
		return lost
	}
	id := fieldNamed(made.record.fields, "id")
	if id == nil || id.scalar == nil {
		return lost
	}
	takes, ok := find(revoke.input, func(f *field) bool { return f.scalar == id.scalar })
	if !ok {
		return lost
	}
	lost.Revoke, lost.RevokeID, lost.IDField = revoke.name, revoke.id(), takes.name
	return lost
}

// Pages is set for a method that answers page by page.
func (m methodView) Pages() *pagesView {
	next := fieldNamed(m.output, "cursor")
	if next == nil {
		return nil
	}
	items, ok := find(m.output, func(f *field) bool { return f.kind == kindArray && f.record != nil && f.required })
	if !ok {
		return nil
	}
	ask := fieldNamed(m.input, "cursor")
	if ask == nil {
		ask, _ = find(m.input, func(f *field) bool { return f.scalar != nil && f.scalar == next.scalar })
	}
	if ask == nil || ask.required {
		return nil
	}
	pages := &pagesView{
		Method: "All", Items: goName(items.name), Item: goName(items.record.name),
		Ask: goName(ask.name), Next: goName(next.name), AskField: ask.name, NextField: next.name,
		Always: next.required,
	}
	if m.Name != "list" {
		pages.Method = "All" + m.Go
	}
	return pages
}

// OptionalKey says that a method takes an idempotency key and does not need one.
func (m methodView) OptionalKey() bool {
	return m.HasKey && !fieldNamed(m.input, "idempotencyKey").required
}

// Uses says that some method is decided as a credential says: none or self.
func (v *view) Uses(c string) bool { return v.spec.uses(credential(c)) }

// Bare says that a call carries no bearer.
func (m methodView) Bare() bool { return m.decides == byNode }

// Read says that a method changes nothing.
func (m methodView) Read() bool { return m.Kind == "read" }

// Again says that a second call is the same call.
func (m methodView) Again() bool { return m.Retry != "none" }

// ClientDoc is what the SDK says of a method.
func (m methodView) ClientDoc() string {
	text := promise(m.Go, m.Prose)
	if m.HasKey {
		text += "\n//\n" + comment("An empty IdempotencyKey is filled with a random one, which all retries of this call share.")
	}
	switch m.decides {
	case byToken:
		text += "\n//\n" + comment("The key of the client is the join token; see [WithKey].")
	case byNode:
		text += "\n//\n" + comment("The transport presents the node's client certificate; see [WithHTTP]. No key is sent.")
	}
	if m.other != nil {
		text += "\n//\n" + comment(fmt.Sprintf("An output with %s came with the status %d.", goName(m.other.when), m.other.status))
	}
	if lost := m.Lost(); lost != nil {
		text += "\n//\n" + comment(fmt.Sprintf("Where the answer has no %s, since an earlier call made the record, both the output and a [*LostAnswerError] are returned.", goName(lost.Secret)))
	}
	if len(m.errors) > 0 {
		text += "\n//\n// It is refused with"
		for _, e := range m.errors {
			text += "\n//   - " + e.name.text + ": " + strings.TrimSpace(e.when)
		}
	}
	return text
}
