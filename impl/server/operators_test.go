package server_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/store"
)

// things are one of each that operators of acme/lab have to do with: a node, a
// join request, and a machine of the inventory.
type things struct {
	node    *node
	request api.Deferral
	machine string
}

func (s *running) things(t testing.TB, ops string) things {
	t.Helper()
	token, _ := s.bearerOf(t, ops, nil)
	made := things{s.confirmed(t, token, newMachine(t, nil)), s.deferred(t, token, nobody(t)), "rack-" + rand.Text()}
	as[api.InventoryImportOutput](t, s.call(t, ops, "inventory.import", made.calls("acme", "lab")["inventory.import"]))
	return made
}

// calls are the calls of operators about these things, as if they were of some pool.
func (made things) calls(tenant, pool string) map[string]object {
	about := func(more object) object { return object{"tenantId": tenant, "poolId": pool}.with(more) }
	node, request := object{"nodeId": made.node.NodeID}, object{"requestId": made.request.RequestID}
	return map[string]object{
		"nodes.list":           about(nil),
		"nodes.get":            about(node),
		"nodes.ban":            about(node),
		"nodes.unban":          about(node),
		"nodes.remove":         about(node),
		"joinRequests.list":    about(nil),
		"joinRequests.get":     about(request),
		"joinRequests.approve": about(request).with(object{"csrSha256": made.request.CSRSha256}),
		"joinRequests.deny":    about(request),
		"inventory.list":       about(nil),
		"inventory.import":     about(object{"machines": []object{{"machineId": made.machine, "identifiers": object{"serial": made.machine}}}}),
		"inventory.remove":     about(object{"machineId": made.machine}),
	}
}

// ofOneThing are the methods about one thing that is there already.
func ofOneThing(method string) bool {
	return !strings.HasSuffix(method, ".list") && method != "inventory.import"
}

// TestOperators_ElsewhereIsNowhere holds that a node, a join request or a
// machine is NOT_FOUND in any pool but its own, also for whoever may act there,
// and that nothing is changed or recorded then.
func TestOperators_ElsewhereIsNowhere(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops, globex := s.key(t, "acme/ops", "tenant-admin"), s.key(t, "globex/ops", "tenant-admin")
		made := s.things(t, ops)
		s.position(t)
		before := s.tables(t)
		for _, c := range []struct {
			who, key, tenant, pool string
			emptyLists             bool
		}{
			{"the tenant, in another pool", ops, "acme", "yard", true},
			{"the tenant, in no pool", ops, "acme", "missing", false},
			{"another tenant, in its pool of that name", globex, "globex", "lab", true},
			{"another tenant", globex, "acme", "lab", false},
			{"the platform, in its pool of that name", s.admin, "platform", "lab", true},
		} {
			for method, body := range made.calls(c.tenant, c.pool) {
				if !ofOneThing(method) && c.emptyLists {
					continue
				}
				t.Run(c.who+" "+method, func(t *testing.T) { s.call(t, c.key, method, body).refused(t, problem.NotFound) })
			}
			for _, list := range []string{"nodes", "joinRequests", "inventory"} {
				if c.emptyLists {
					a := s.call(t, c.key, list+".list", object{"tenantId": c.tenant, "poolId": c.pool})
					if out := as[map[string][]any](t, a); len(out) != 1 || !strings.HasSuffix(string(a.body), "[]}\n") {
						t.Errorf("%s: %s.list has %s", c.who, list, a.body)
					}
				}
			}
		}
		for table, rows := range s.tables(t) {
			if !ofTheServer(table) && !slices.Equal(rows, before[table]) {
				t.Errorf("%s became %v, and was %v", table, rows, before[table])
			}
		}
	})
}

// operatorsOrder are the methods of operators in an order in which each of them
// can be called.
var operatorsOrder = []string{
	"nodes.list", "nodes.get", "joinRequests.list", "joinRequests.get", "inventory.list",
	"nodes.ban", "nodes.unban", "joinRequests.approve", "joinRequests.deny", "inventory.remove", "inventory.import", "nodes.remove",
}

// TestOperators_Roles holds what each role may do with nodes, join requests and
// the inventory of a pool; that the platform does not approve for others, but
// can look, and can stop what goes wrong; and that each change records its
// decision, and who took it.
func TestOperators_Roles(t *testing.T) {
	t.Parallel()
	methods := map[string]*api.Method{}
	for _, m := range api.Methods {
		methods[m.ID] = m
	}
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		ops := s.key(t, "acme/ops", "tenant-admin")
		const may, no, nowhere = problem.Code(""), problem.PermissionDenied, problem.NotFound
		for _, c := range []struct {
			who, role, pool              string
			read, change, approve, vouch problem.Code // what is said to it
			policy, vouches              string       // that let it change, and vouch
		}{
			{"acme/eve", "pool-auditor", "", may, no, no, no, "", ""},
			{"acme/eva", "pool-auditor", "lab", may, no, no, no, "", ""},
			{"acme/yves", "pool-auditor", "yard", no, no, no, no, "", ""},
			{"acme/yan", "pool-operator", "yard", no, no, no, no, "", ""},
			{"globex/eve", "pool-auditor", "", nowhere, nowhere, nowhere, nowhere, "", ""},
			{"globex/ops", "tenant-admin", "", nowhere, nowhere, nowhere, nowhere, "", ""},
			{"acme/bot", "pool-operator", "lab", may, may, may, no, "pool-operator/one-pool", ""},
			{"acme/boss", "tenant-admin", "", may, may, may, may, "tenant-admin/own", "tenant-admin/own-sites"},
			{"platform/root", "platform-admin", "", may, may, nowhere, may, "platform-admin/any", "platform-admin/any"},
		} {
			key, made := s.key(t, c.who, c.role, slices.DeleteFunc([]string{c.pool}, func(p string) bool { return p == "" })...), s.things(t, ops)
			for _, method := range operatorsOrder {
				t.Run(c.who+" "+method, func(t *testing.T) {
					want, policy := c.change, c.policy
					switch {
					case !methods[method].Mutation:
						want = c.read
					case method == "joinRequests.approve":
						want = c.approve
					case strings.HasPrefix(method, "inventory."):
						want, policy = c.vouch, c.vouches
					}
					a := s.call(t, key, method, made.calls("acme", "lab")[method])
					if want != may {
						a.refused(t, want)
					} else if a.status != http.StatusOK {
						t.Errorf("%d %s", a.status, a.body)
					}
					var recorded []store.Decision
					if want == may && methods[method].Mutation {
						recorded = []store.Decision{{Principal: c.who, Action: methods[method].Action, Resource: "compute-pool/acme/lab", Policies: []string{policy}}}
					}
					got := s.decisionsOf(t, a.header.Get("X-Request-Id"))
					if !slices.EqualFunc(got, recorded, func(a, b store.Decision) bool {
						return a.Principal == b.Principal && a.Action == b.Action && a.Resource == b.Resource && slices.Equal(a.Policies, b.Policies)
					}) {
						t.Errorf("recorded is %+v, want %+v", got, recorded)
					}
				})
			}
		}
		for event, who := range map[string]string{
			"security.node.banned": "bannedBy", "security.node.unbanned": "unbannedBy", "security.node.removed": "removedBy",
			"security.join-request.denied": "deniedBy", "compute.inventory.removed": "removedBy",
		} {
			want := []string{"acme/boss", "acme/bot", "platform/root"}
			if event == "compute.inventory.removed" {
				want = []string{"acme/boss", "platform/root"}
			}
			var by []string
			for _, e := range s.published(t, "acme", event) {
				var data map[string]any
				if err := json.Unmarshal(e.Data, &data); err != nil {
					t.Fatal(err)
				}
				by = append(by, fmt.Sprint(data[who]))
			}
			if slices.Sort(by); !slices.Equal(by, want) { // the clock stands still, and so they have no order
				t.Errorf("%s is published of %v", event, by)
			}
		}
	})
}

// TestOperators_TheInventoryIsTheSiteOwners holds that a tenant that was given a
// pool on the platform's machines does not vouch for machines there.
func TestOperators_TheInventoryIsTheSiteOwners(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *running) {
		s.withPools(t)
		s.pool(t, "acme", "rented", "platform/core", object{"policy": object{"attestor": "discovery"}})
		ops, pool := s.key(t, "acme/ops", "tenant-admin"), object{"tenantId": "acme", "poolId": "rented"}
		imports := pool.with(object{"machines": []object{{"machineId": "r1", "identifiers": object{"serial": "R1"}}}})
		removes := pool.with(object{"machineId": "r1"})
		s.call(t, ops, "inventory.import", imports).refused(t, problem.PermissionDenied)
		as[api.InventoryImportOutput](t, s.call(t, s.admin, "inventory.import", imports))
		as[api.InventoryListOutput](t, s.call(t, ops, "inventory.list", pool))
		s.call(t, ops, "inventory.remove", removes).refused(t, problem.PermissionDenied)
		as[api.InventoryRemoveOutput](t, s.call(t, s.admin, "inventory.remove", removes))
	})
}

// TestOperators_ThePlatformApprovesItsOwn holds that the platform approves for
// its own pools.
func TestOperators_ThePlatformApprovesItsOwn(t *testing.T) {
	t.Parallel()
	eachTLS(t, func(t *testing.T, s *running) {
		s.withPools(t)
		token := *s.mint(t, s.admin, lab().with(object{"tenantId": "platform"})).Token
		m := nobody(t)
		request := s.deferred(t, token, m)
		about := object{"tenantId": "platform", "poolId": "lab", "requestId": request.RequestID, "csrSha256": request.CSRSha256}
		s.call(t, s.key(t, "acme/ops", "tenant-admin"), "joinRequests.approve", about).refused(t, problem.NotFound)
		as[api.JoinRequestsApproveOutput](t, s.call(t, s.admin, "joinRequests.approve", about))
		if n := s.confirmed(t, token, m); n.Trust != "platform" || n.Profile != "node-platform" {
			t.Errorf("the node is trusted as %s, profile %s", n.Trust, n.Profile)
		}
	})
}
