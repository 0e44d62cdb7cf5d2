package iam_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/policy"
	"github.com/bettercompute/bettercompute/impl/iam"
)

var update = flag.Bool("update", false, "write testdata/matrix.golden anew")

const golden = "testdata/matrix.golden"

// A column is a relation between a principal and the thing it acts on.
type column struct {
	name    string
	limited bool // the principal's key is limited to the pool lab
	own     bool // the thing is of the principal's own tenant
	leased  bool // the site of the pool is of the other tenant
	pool    string
}

// Roles whose keys are never limited have the first columns only.
var columns = []column{
	{"own", false, true, false, "lab"},
	{"own, on a foreign site", false, true, true, "lab"},
	{"foreign", false, false, false, "lab"},
	{"foreign, on an own site", false, false, true, "lab"},
	{"own, key for it", true, true, false, "lab"},
	{"own, key for another", true, true, false, "yard"},
	{"foreign, key for that name", true, false, false, "lab"},
}

// names are what the people and things of the matrix are called.
type names struct{ tenant, foreign, identity, lab, yard string }

var plain = names{"acme", "globex", "ops", "lab", "yard"}

// question is one cell: who asks, and about what.
func (n names) question(role policy.Role, kind api.ResourceType, c column) (iam.Principal, iam.Resource) {
	tenant := n.tenant
	if role.Tenant != "" {
		tenant = role.Tenant
	}
	p := iam.Principal{Tenant: tenant, Name: n.identity, Role: role.Name, KeyID: "ak_0"}
	if c.limited {
		p.PoolID = n.lab
	}
	r := iam.Resource{Type: kind, Owner: tenant, SiteOwner: tenant, Agent: "bcd"}
	if !c.own {
		r.Owner = n.foreign
	}
	if c.own == c.leased {
		r.SiteOwner = n.foreign
	}
	switch {
	case kind == api.Tenant:
		r.ID = r.Owner
	case c.pool == "lab":
		r.ID = n.lab
	default:
		r.ID = n.yard
	}
	return p, r
}

var appliesTo = regexp.MustCompile(`action "([^"]+)" appliesTo \{[^}]*resource: \[([^\]]*)\]`)

// kindsOf are the types of things that an action is decided on, as the schema has them.
func kindsOf(t *testing.T) map[string][]api.ResourceType {
	t.Helper()
	kinds := map[string]api.ResourceType{"ComputePool": api.ComputePool, "ComputeSite": api.ComputeSite, "Tenant": api.Tenant}
	of := map[string][]api.ResourceType{}
	for _, found := range appliesTo.FindAllStringSubmatch(string(policy.Schema), -1) {
		for _, name := range strings.Split(found[2], ", ") {
			of[found[1]] = append(of[found[1]], kinds[name])
		}
	}
	if len(of) != len(policy.Actions) {
		t.Fatalf("the schema has %d actions and the spec %d", len(of), len(policy.Actions))
	}
	return of
}

// cells calls fn for every cell of the matrix, row by row.
func cells(t *testing.T, fn func(role policy.Role, action string, kind api.ResourceType, c column)) {
	t.Helper()
	of := kindsOf(t)
	for _, role := range policy.Roles {
		for _, action := range policy.Actions {
			for _, kind := range of[action] {
				for _, c := range columns {
					if !c.limited || role.Pool {
						fn(role, action, kind, c)
					}
				}
			}
		}
	}
}

func builtIn(t testing.TB) *iam.Authority {
	t.Helper()
	a, err := iam.NewAuthority("")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// allowed decides one question; an error of a policy fails the test.
func allowed(t testing.TB, a *iam.Authority, p iam.Principal, action string, r iam.Resource) bool {
	t.Helper()
	d, err := a.Decide(p, action, r)
	if err != nil {
		t.Errorf("%s by %s on %s: %v", action, p, r, err)
	}
	if d.Allowed != (len(d.Policies) > 0) {
		t.Errorf("%s by %s on %s: %v by %v", action, p, r, d.Allowed, d.Policies)
	}
	return d.Allowed
}

// TestIAM_Matrix holds every decision that the built-in roles make: role ×
// action × what it is decided on × whose that is. Run with -update after a
// change of spec/roles.md, and read the difference.
func TestIAM_Matrix(t *testing.T) {
	t.Parallel()
	a := builtIn(t)
	var out strings.Builder
	fmt.Fprintf(&out, "%-15s %-27s %-13s", "role", "action", "on")
	for _, c := range columns {
		fmt.Fprintf(&out, " | %s", c.name)
	}
	row := ""
	cells(t, func(role policy.Role, action string, kind api.ResourceType, c column) {
		if head := fmt.Sprintf("\n%-15s %-27s %-13s", role.Name, action, kind); head != row {
			row = head
			out.WriteString(head)
		}
		p, r := plain.question(role, kind, c)
		says := "no"
		if allowed(t, a, p, action, r) {
			says = "yes"
		}
		fmt.Fprintf(&out, " | %-*s", len(c.name), says)
	})
	text := regexp.MustCompile(` +\n`).ReplaceAllString(out.String()+"\n", "\n")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the matrix differs from %s; go test ./impl/iam -update writes it:\n%s", golden, text)
	}
}

// TestIAM_MatrixIsTheSpec reads the table of spec/roles.md and holds the
// decisions against what its words mean.
func TestIAM_MatrixIsTheSpec(t *testing.T) {
	t.Parallel()
	scopes, a := rolesPage(t), builtIn(t)
	cells(t, func(role policy.Role, action string, kind api.ResourceType, c column) {
		var want bool
		switch scope := scopes[action][role.Name]; scope {
		case "any":
			want = true
		case "own":
			want = c.own
		case "site":
			want = kind == api.ComputePool && c.own != c.leased
		case "pool":
			want = c.own && (!c.limited || kind == api.ComputePool && c.pool == "lab")
		case "":
		default:
			t.Fatalf("scope %q", scope)
		}
		p, r := plain.question(role, kind, c)
		if got := allowed(t, a, p, action, r); got != want {
			t.Errorf("%s may %s on %s (%s): %v, and the page says %v", role.Name, action, kind, c.name, got, want)
		}
	})
}

// rolesPage is the table of actions of spec/roles.md: action → role → scope.
func rolesPage(t *testing.T) map[string]map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../spec/roles.md")
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	table := map[string]map[string]string{}
	for _, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "Action":
			roles = cells[1:]
		case strings.HasPrefix(cells[0], "compute:"):
			table[cells[0]] = map[string]string{}
			for i, role := range roles {
				table[cells[0]][role] = cells[i+1]
			}
		}
	}
	if len(table) != len(policy.Actions) || len(roles) != len(policy.Roles) {
		t.Fatalf("the page has %d actions and %d roles", len(table), len(roles))
	}
	return table
}
