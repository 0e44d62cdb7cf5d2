// Package placeholder tells whether a hardware identifier is a vendor's placeholder, which so many machines share that it identifies none.
//
// The rules are data: placeholders.yaml, and any file of the same form that an operator adds (spec: joins, "Placeholders are data").
package placeholder

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"slices"
)

//go:embed placeholders.yaml
var defaults []byte

// Kind says what sort of identifier a value is; it is the `kind` of a rule.
type Kind string

// The kinds of identifiers that a machine presents.
const (
	Serial      Kind = "serial"       // SMBIOS serial of system, board or chassis
	ProductUUID Kind = "product-uuid" // SMBIOS system UUID
	MAC         Kind = "mac"          // hardware address of a network interface
	GPUUUID     Kind = "gpu-uuid"     // NVML or ROCm UUID of a GPU
)

// Option lifts the rules that name it in their `unless`.
type Option string

// VirtualMachines is the option of a pool that admits virtual machines, whose own MACs are locally administered.
// Addresses that many virtual machines share stay bogus.
const VirtualMachines Option = "virtual-machines"

// List is a set of rules in file order. It never changes after it was loaded and is safe for concurrent use.
type List struct {
	rules map[Kind][]rule
	why   map[string]string
}

// rule is one entry of a file: it has either exact values, in normal form, or a pattern.
type rule struct {
	id      string
	kind    Kind
	exact   map[string]struct{}
	pattern *regexp.Regexp
	why     string
	unless  Option // empty: always in force
}

// Default returns the rules that ship with the product. It reads them anew: load once and keep the List.
func Default() *List {
	l, err := Load(nil)
	if err != nil {
		panic(fmt.Sprintf("the embedded rules are broken: %v", err)) // the package's own tests load them
	}
	return l
}

// Load returns the default rules followed by those of extra, which has the form of placeholders.yaml; nil or an
// empty file adds none. It refuses unknown keys and kinds, an id twice (also one of the defaults), a rule without
// exactly one of exact and pattern, unquoted numbers and nulls, and patterns that are not `^…$` as a whole or do not
// compile. The error names the rule and its line.
func Load(extra io.Reader) (*List, error) {
	rules, err := read(bytes.NewReader(defaults))
	if err != nil {
		return nil, err
	}
	if extra != nil {
		more, err := read(extra)
		if err != nil {
			return nil, err
		}
		rules = append(rules, more...)
	}

	l := &List{rules: make(map[Kind][]rule), why: make(map[string]string)}
	for _, r := range rules {
		if _, taken := l.why[r.id]; taken {
			return nil, fmt.Errorf("placeholder rule %q: the id is taken by an earlier rule", r.id)
		}
		l.why[r.id] = r.why
		l.rules[r.kind] = append(l.rules[r.kind], r)
	}
	return l, nil
}

// Match returns the id of the first rule in file order that value falls under, defaults before additions, or "" and
// false when value may identify a machine. Value needs no preparation. A product UUID also falls under a rule with
// its first three fields byte-swapped, as firmware older than SMBIOS 2.6 and careless tools report it.
// A value that is malformed for its kind is not bogus unless a rule says so: validating it is the caller's business.
func (l *List) Match(kind Kind, value string, opts ...Option) (rule string, bogus bool) {
	forms := []string{Normalize(kind, value)}
	if kind == ProductUUID {
		forms = append(forms, SwapUUID(forms[0]))
	}
	for i := range l.rules[kind] {
		r := &l.rules[kind][i]
		if r.unless != "" && slices.Contains(opts, r.unless) {
			continue
		}
		if slices.ContainsFunc(forms, r.covers) {
			return r.id, true
		}
	}
	return "", false
}

// Why returns the reason that the rule with this id gives, for an operator's eyes; "" for an unknown id.
func (l *List) Why(rule string) string { return l.why[rule] }

// covers tells whether a value in normal form falls under the rule.
func (r *rule) covers(normal string) bool {
	if r.pattern != nil {
		return r.pattern.MatchString(normal)
	}
	_, found := r.exact[normal]
	return found
}
