package iam_test

import (
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/impl/iam"
)

// odd are names that the patterns of the spec allow, and some that they do not
// and that must not matter either.
var odd = []names{
	{".", ":", "ops", "a", "b"},
	{"a::b", "a::", "ops", "b::a", "b"},
	{"a", "a:", "ops", "a", "a:"},
	{"Role", "Action", "platform-admin", "ComputePool", "Tenant"},
	{"acme", "ACME", "OPS", "lab", "LAB"},
	{"platform.", "platform:", "platform/admin", "platform", "core"},
	{"acme", "globex", "globex/ops", "lab", "yard"},
	{"acme", "globex", "a/b@c:d/lab", "lab", "lab.1"},
	{`a"b`, `a\b`, `" || true || "`, `lab"`, `lab\`},
	{"a\n", "a\x00", "ops\xff", "lab\t", "läb"},
	{`Role::"platform-admin"`, "principal", "resource", "permit(principal,action,resource);", "//"},
}

// TestIAM_NamesChangeNothing holds that a decision depends on how the things
// are related, whatever they are called.
func TestIAM_NamesChangeNothing(t *testing.T) {
	t.Parallel()
	a := builtIn(t)
	for _, n := range odd {
		cells(t, func(role policy.Role, action string, kind api.ResourceType, c column) {
			p, r := plain.question(role, kind, c)
			want := allowed(t, a, p, action, r)
			p, r = n.question(role, kind, c)
			if got := allowed(t, a, p, action, r); got != want {
				t.Errorf("%s by %+v on %+v (%s): %v, with plain names %v", action, p, r, c.name, got, want)
			}
		})
	}
}

// TestIAM_NamesDoNotMeet holds that pools whose tenant and id read alike when
// put together stay apart.
func TestIAM_NamesDoNotMeet(t *testing.T) {
	t.Parallel()
	a := builtIn(t)
	key := iam.Principal{Tenant: "a:b", Name: "bot", Role: policy.RolePoolOperator, PoolID: "c"}
	for _, r := range []iam.Resource{
		{Type: api.ComputePool, Owner: "a", ID: "b:c"},
		{Type: api.ComputePool, Owner: "a:b", ID: ":c"},
		{Type: api.ComputePool, Owner: "a:b", ID: "C"},
		{Type: api.ComputePool, Owner: "a", ID: "b/c"}, // no pool can be called that
		{Type: api.ComputePool, Owner: "a:b:c", ID: "c"},
		{Type: api.Tenant, Owner: "a:b", ID: "a:b"},
	} {
		if allowed(t, a, key, "compute:pools:read", r) {
			t.Errorf("a key for a:b/c reads %s", r)
		}
	}
	if !allowed(t, a, key, "compute:pools:read", iam.Resource{Type: api.ComputePool, Owner: "a:b", ID: "c"}) {
		t.Error("a key for a:b/c does not read its pool")
	}
}

// TestIAM_UnknownRolesAndActions holds that what nobody declared is refused.
func TestIAM_UnknownRolesAndActions(t *testing.T) {
	t.Parallel()
	a := builtIn(t)
	tenant := iam.Resource{Type: api.Tenant, Owner: "acme", ID: "acme"}
	for _, role := range []string{"", "admin", "platform-admin ", "Platform-Admin", "tenant-admin/own"} {
		for _, action := range policy.Actions {
			if allowed(t, a, iam.Principal{Tenant: "acme", Name: "ops", Role: role}, action, tenant) {
				t.Errorf("role %q may %s", role, action)
			}
		}
	}
	for _, action := range []string{"", "compute:pools", "compute:pools:READ", "compute:pools:delete"} {
		if allowed(t, a, iam.Principal{Tenant: "platform", Name: "admin", Role: policy.RolePlatformAdmin}, action, tenant) {
			t.Errorf("the platform may %q", action)
		}
	}
}
