package iam_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/impl/iam"
)

// folder makes an operator's policy folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies [of ops]")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var (
	auditor = iam.Principal{Tenant: "acme", Name: "eve", Role: policy.RolePoolAuditor}
	acmeLab = iam.Resource{Type: api.ComputePool, Owner: "acme", ID: "lab", SiteOwner: "platform", Agent: "bcd"}
)

const auditorsRevoke = `@id("auditors-revoke")
permit (principal in Role::"pool-auditor", action == Action::"compute:join-tokens:revoke", resource)
when { resource.owner == principal.tenant && resource.siteOwner == "platform" };
`

// TestPolicies_AnExtraPermitWorks holds that an operator's permit adds to the
// roles, is named in the decision, and touches nothing else.
func TestPolicies_AnExtraPermitWorks(t *testing.T) {
	t.Parallel()
	a, err := iam.NewAuthority(folder(t, map[string]string{"extra.cedar": "// ours\n" + auditorsRevoke, "README.md": "forbid (", "empty.cedar": ""}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.Decide(auditor, "compute:join-tokens:revoke", acmeLab)
	if err != nil || !d.Allowed || !slices.Equal(d.Policies, []string{"auditors-revoke"}) {
		t.Errorf("decided %+v (error: %v)", d, err)
	}
	elsewhere := acmeLab
	elsewhere.SiteOwner = "acme"
	if allowed(t, a, auditor, "compute:join-tokens:revoke", elsewhere) || allowed(t, a, auditor, "compute:join-tokens:create", acmeLab) {
		t.Error("the permit allows more than it says")
	}
	if allowed(t, builtIn(t), auditor, "compute:join-tokens:revoke", acmeLab) {
		t.Error("auditors revoke without it")
	}
}

// TestPolicies_WithoutAnID holds that a policy is then known by its file and place.
func TestPolicies_WithoutAnID(t *testing.T) {
	t.Parallel()
	text := `permit (principal in Role::"pool-auditor", action == Action::"compute:pools:update", resource);`
	a, err := iam.NewAuthority(folder(t, map[string]string{"a.cedar": text + "\n" + text, "b.cedar": text}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.Decide(auditor, "compute:pools:update", acmeLab)
	if err != nil || !slices.Equal(d.Policies, []string{"a.cedar#1", "a.cedar#2", "b.cedar#1"}) {
		t.Errorf("decided %+v (error: %v)", d, err)
	}
}

// TestPolicies_Refused holds what keeps a server from starting, and that the
// message names the place.
func TestPolicies_Refused(t *testing.T) {
	t.Parallel()
	permit := func(when string) string {
		return "\n\npermit (principal, action == Action::\"compute:pools:update\", resource)\nwhen { " + when + " };\n"
	}
	for what, c := range map[string]struct {
		text string
		says []string
	}{
		"a forbid":                         {`forbid (principal, action, resource);`, []string{"x.cedar:1", "forbids", "positively"}},
		"a forbid further down":            {auditorsRevoke + "\n@id(\"no\")\nforbid (principal, action, resource);", []string{"x.cedar:5", "policy no"}},
		"no such attribute":                {permit(`resource.colour == "red"`), []string{"x.cedar:3", "colour"}},
		"another type":                     {permit(`resource.owner == 1`), []string{"x.cedar:3"}},
		"no Boolean":                       {permit(`resource.owner`), []string{"x.cedar:3"}},
		"an attribute that may be missing": {permit(`principal.pool == resource`), []string{"x.cedar:3", "pool"}},
		"no such action":                   {`permit (principal, action == Action::"compute:pools:delete", resource);`, []string{"x.cedar:1"}},
		"no such entity type":              {`permit (principal in Group::"x", action, resource);`, []string{"x.cedar:1"}},
		"a context":                        {permit(`context.ip == "x"`), []string{"x.cedar:3"}},
		"the id of a role's":               {`@id("tenant-admin/own") permit (principal, action == Action::"compute:pools:update", resource);`, []string{"x.cedar:1", "tenant-admin/own"}},
		"an id twice":                      {auditorsRevoke + auditorsRevoke, []string{"x.cedar:4", "auditors-revoke"}},
		"no Cedar":                         {"permit (principal, action\n\nwhen", []string{"x.cedar"}},
		"no end":                           {"permit (principal, action, resource)", []string{"x.cedar"}},
		"a template":                       {`permit (principal == ?principal, action, resource);`, []string{"x.cedar"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, err := iam.NewAuthority(folder(t, map[string]string{"x.cedar": c.text}))
			if err == nil || a != nil {
				t.Fatal("it was taken")
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, err)
				}
			}
		})
	}
	if _, err := iam.NewAuthority(folder(t, map[string]string{"a.cedar": auditorsRevoke, "b.cedar": auditorsRevoke})); err == nil || !strings.Contains(err.Error(), "b.cedar:1") {
		t.Errorf("an id in two files: %v", err)
	}
	if _, err := iam.NewAuthority(filepath.Join(t.TempDir(), "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a folder that is not there: %v", err)
	}
	dir := folder(t, nil)
	if err := os.Mkdir(filepath.Join(dir, "x.cedar"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := iam.NewAuthority(dir); err == nil || !strings.Contains(err.Error(), "x.cedar") {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestPolicies_AnErrorDenies holds that one policy that cannot be evaluated
// denies what others allow. This one passes the validator and overflows.
func TestPolicies_AnErrorDenies(t *testing.T) {
	t.Parallel()
	a, err := iam.NewAuthority(folder(t, map[string]string{"x.cedar": `@id("overflows")
permit (principal, action == Action::"compute:join-tokens:read", resource)
when { resource.owner == "acme" && 9223372036854775807 + 1 > 0 };`}))
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.Decide(auditor, "compute:join-tokens:read", acmeLab)
	if err == nil || d.Allowed || !strings.Contains(err.Error(), "overflows") {
		t.Errorf("decided %+v (error: %v)", d, err)
	}
	// Where it has nothing to say it does no harm.
	other := auditor
	other.Tenant = "globex"
	globexLab := acmeLab
	globexLab.Owner = "globex"
	if !allowed(t, a, other, "compute:join-tokens:read", globexLab) || !allowed(t, a, auditor, "compute:pools:read", acmeLab) {
		t.Error("a policy that fails elsewhere denies here")
	}
}
