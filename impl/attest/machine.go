package attest

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
)

// What stands in place of a placeholder rule.
const (
	SharedRule    = "shared"    // two nodes of a pool have presented the value: it tells neither of them
	MalformedRule = "malformed" // a product UUID that is none
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// A Machine is what a machine claims, judged: what may tell it from others, and
// what does not.
type Machine struct {
	Tells        []store.Identifier // in normal form, sorted, each once
	Placeholders []store.PlaceholderMatch
}

// kinds of identifiers, by their names in the spec.
var kinds = map[wire.IdentifierField]placeholder.Kind{
	wire.IdentifierFieldProductUUID: placeholder.ProductUUID,
	wire.IdentifierFieldSerial:      placeholder.Serial,
	wire.IdentifierFieldMAC:         placeholder.MAC,
	wire.IdentifierFieldGPUUUID:     placeholder.GPUUUID,
}

// Normal is an identifier in the form in which two are compared.
func Normal(field wire.IdentifierField, value string) store.Identifier {
	return store.Identifier{Kind: string(field), Value: placeholder.Normalize(kinds[field], value)}
}

// Judge sorts the claims of a machine into what tells it and what does not. In
// a pool that allows virtual machines their own addresses do.
func Judge(list *placeholder.List, claims store.Claims, virtualMachines bool) Machine {
	var options []placeholder.Option
	if virtualMachines {
		options = append(options, placeholder.VirtualMachines)
	}
	var m Machine
	each(claims, func(field wire.IdentifierField, value string) {
		if rule, bogus := list.Match(kinds[field], value, options...); bogus {
			m.Placeholders = append(m.Placeholders, store.PlaceholderMatch{Field: string(field), Value: value, Rule: rule})
			return
		}
		id := Normal(field, value)
		if field == wire.IdentifierFieldProductUUID && !uuidForm.MatchString(id.Value) {
			m.Placeholders = append(m.Placeholders, store.PlaceholderMatch{Field: string(field), Value: value, Rule: MalformedRule})
			return
		}
		m.Tells = append(m.Tells, id)
	})
	slices.SortFunc(m.Tells, byKindAndValue)
	m.Tells = slices.Compact(m.Tells)
	return m
}

func byKindAndValue(a, b store.Identifier) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Value, b.Value))
}

func each(claims store.Claims, visit func(wire.IdentifierField, string)) {
	if claims.ProductUUID != "" {
		visit(wire.IdentifierFieldProductUUID, claims.ProductUUID)
	}
	if claims.Serial != "" {
		visit(wire.IdentifierFieldSerial, claims.Serial)
	}
	for _, mac := range claims.MACs {
		visit(wire.IdentifierFieldMAC, mac)
	}
	for _, gpu := range claims.GPUUUIDs {
		visit(wire.IdentifierFieldGPUUUID, gpu)
	}
}

// WithoutShared takes out what several nodes have presented, and returns who
// holds what is left.
func (m Machine) WithoutShared(holdings []store.Holding) (Machine, []store.Holding) {
	shared := map[store.Identifier]bool{}
	for _, h := range holdings {
		if h.Shared {
			shared[h.Identifier] = true
		}
	}
	left := Machine{Placeholders: slices.Clone(m.Placeholders)}
	for _, id := range m.Tells {
		if shared[id] {
			left.Placeholders = append(left.Placeholders, store.PlaceholderMatch{Field: id.Kind, Value: id.Value, Rule: SharedRule})
		} else {
			left.Tells = append(left.Tells, id)
		}
	}
	held := slices.DeleteFunc(slices.Clone(holdings), func(h store.Holding) bool { return shared[h.Identifier] })
	return left, held
}

// LooksFor is what others may hold of the machine: what tells it, and its
// product UUID as a tool that swaps the first three fields reads it.
func (m Machine) LooksFor() []store.Identifier {
	all := slices.Clone(m.Tells)
	for _, id := range m.Tells {
		if id.Kind == string(wire.IdentifierFieldProductUUID) {
			all = append(all, store.Identifier{Kind: id.Kind, Value: placeholder.SwapUUID(id.Value)})
		}
	}
	return all
}

// SHA256 is the same for machines that nothing tells apart; empty where nothing
// tells the machine at all.
func (m Machine) SHA256() string {
	if len(m.Tells) == 0 {
		return ""
	}
	var parts []string
	for _, id := range m.Tells {
		parts = append(parts, id.Kind, id.Value)
	}
	return digest(parts)
}

// Pinned is what a token expects, in normal form.
func Pinned(expect store.Expect) []store.Identifier {
	claims := store.Claims{ProductUUID: expect.ProductUUID, Serial: expect.Serial}
	if expect.MAC != "" {
		claims.MACs = []string{expect.MAC}
	}
	if expect.GPUUUID != "" {
		claims.GPUUUIDs = []string{expect.GPUUUID}
	}
	return identifiersOf(claims)
}

func identifiersOf(claims store.Claims) (all []store.Identifier) {
	each(claims, func(field wire.IdentifierField, value string) { all = append(all, Normal(field, value)) })
	return all
}

// Pin holds a machine against what its token expects: every identifier must
// match, an address any of the machine's addresses (NJ-4). The reason is empty
// where it does.
func Pin(expect store.Expect, m Machine) problem.Reason {
	var reason problem.Reason
	for _, pinned := range Pinned(expect) {
		if slices.Contains(m.Tells, pinned) {
			continue
		}
		swapped := store.Identifier{Kind: pinned.Kind, Value: placeholder.SwapUUID(pinned.Value)}
		if pinned.Kind != string(wire.IdentifierFieldProductUUID) || !slices.Contains(m.Tells, swapped) {
			return problem.ReasonHardwareMismatch
		}
		reason = problem.ReasonUUIDByteOrder
	}
	return reason
}

// ClaimsSHA256 is the same for claims that are the same, in whatever order.
func ClaimsSHA256(claims store.Claims) string {
	parts := []string{"hostname=" + claims.Hostname, "environment=" + claims.Environment}
	each(claims, func(field wire.IdentifierField, value string) {
		parts = append(parts, string(field)+"="+value)
	})
	slices.Sort(parts)
	return digest(parts)
}

// digest hashes each part behind its length, so that no two lists meet.
func digest(parts []string) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil))
}
