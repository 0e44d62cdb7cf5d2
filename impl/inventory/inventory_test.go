package inventory_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/inventory"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// TestInventory_Import holds that machines are added, replaced and left alone,
// counted, shown as they were given, and published once for each call.
func TestInventory_Import(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		full := item{MachineID: "rack7-u12", Identifiers: identifiers{
			ProductUUID: some(strings.ToUpper(uuid1)), Serial: some("CZ2D1X0QTP"), Macs: []string{mac2, mac1}, GPUUuids: []string{gpu1},
		}}
		s.wantImport(t, 2, 0, 0, full, known("rack7-u13", "CZ2D1X0QTQ"))
		storetest.ClockOf(s.db).Advance(time.Hour)
		s.wantImport(t, 0, 0, 2, full, known("rack7-u13", "CZ2D1X0QTQ"))
		s.wantImport(t, 1, 1, 1, known("rack7-u14", "", "3c:ec:ef:12:34:58"), known("rack7-u13", "CZ2D1X0QTR"), full)
		out, err := s.List(t.Context(), &wire.InventoryListInput{TenantID: "acme", PoolID: "lab", Limit: 200})
		must(t, err)
		if len(out.Machines) != 3 {
			t.Fatalf("%+v", out.Machines)
		}
		m := out.Machines[0]
		if m.MachineID != "rack7-u12" || m.TenantID != "acme" || m.PoolID != "lab" || *m.ProductUUID != strings.ToUpper(uuid1) || *m.Serial != "CZ2D1X0QTP" ||
			!slices.Equal(m.Macs, full.Identifiers.Macs) || !slices.Equal(m.GPUUuids, full.Identifiers.GPUUuids) || !m.CreatedAt.Equal(noon) || !m.UpdatedAt.Equal(noon) || m.CreatedBy != "acme/ops" {
			t.Errorf("%+v", m)
		}
		if m := out.Machines[1]; *m.Serial != "CZ2D1X0QTR" || !m.CreatedAt.Equal(noon) || !m.UpdatedAt.Equal(noon.Add(time.Hour)) || m.ProductUUID != nil {
			t.Errorf("%+v", m)
		}
		if m := out.Machines[2]; m.Serial != nil || len(m.Macs) != 1 || len(m.GPUUuids) != 0 {
			t.Errorf("%+v", m)
		}
		want := []string{
			`{"created":["rack7-u12","rack7-u13"],"importedBy":"acme/ops","updated":[]}`,
			`{"created":["rack7-u14"],"importedBy":"acme/ops","updated":["rack7-u13"]}`,
		}
		if got := s.events(t, "compute.inventory.imported"); !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestInventory_Violations holds that every machine that is wrong is named by
// its place in the call and by the rule, and that nothing is imported then.
func TestInventory_Violations(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		for name, c := range map[string]struct {
			machines []item
			want     []string
		}{
			"a placeholder":              {[]item{known("a", "0123456789")}, []string{"machines[0].identifiers placeholder"}},
			"one of several":             {[]item{known("a", "CZ2D1X0QTP", mac1, "00:00:00:00:00:00", "02:00:00:00:00:01")}, []string{"machines[0].identifiers placeholder", "machines[0].identifiers placeholder"}},
			"a placeholder UUID":         {[]item{known("ok", "CZ2D1X0QTP"), {MachineID: "a", Identifiers: identifiers{ProductUUID: some("03000200-0400-0500-0006-000700080009")}}}, []string{"machines[1].identifiers placeholder"}},
			"no identifier":              {[]item{known("ok", "CZ2D1X0QTP"), known("a", "", []string{}...)}, []string{"machines[1].identifiers at-least-one"}},
			"a machine twice":            {[]item{known("a", "CZ2D1X0QTP"), known("b", "CZ2D1X0QTQ"), known("a", "CZ2D1X0QTR")}, []string{"machines[2].machineId duplicate"}},
			"an identifier twice":        {[]item{known("a", "CZ2D1X0QTP"), known("b", "", mac1), known("c", "cz2d1x0qtp", strings.ToUpper(mac1))}, []string{"machines[2].identifiers duplicate", "machines[2].identifiers duplicate"}},
			"the same machine twice":     {[]item{known("a", "CZ2D1X0QTP"), known("a", "CZ2D1X0QTP")}, []string{"machines[1].identifiers duplicate", "machines[1].machineId duplicate"}},
			"all of it, at several ones": {[]item{known("a", "Default_string"), known("b", ""), known("a", "CZ2D1X0QTQ")}, []string{"machines[0].identifiers placeholder", "machines[1].identifiers at-least-one", "machines[2].machineId duplicate"}},
		} {
			_, err := s.imports(t.Context(), c.machines...)
			told := fault.From(err)
			if err == nil || told.Code != problem.InvalidInput {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var got []string
			for _, v := range told.Violations {
				got = append(got, v.Field+" "+string(v.Rule))
				if v.Message == "" {
					t.Errorf("%s: %+v says nothing", name, v)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		}
		if ids := s.ids(t); len(ids) != 0 {
			t.Errorf("%q were imported", ids)
		}
		s.wantImport(t, 1, 0, 0, known("a", "CZ2D1X0QTP", mac1, strings.ToUpper(mac1))) // twice in one machine is once
	})
}

// TestInventory_VirtualMachines holds that a pool decides whether the addresses of virtual machines identify them.
func TestInventory_VirtualMachines(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		vm := known("vm", "", "52:54:00:ab:cd:ef")
		if _, err := s.imports(t.Context(), vm); !fault.Is(err, problem.InvalidInput) {
			t.Errorf("%v", err)
		}
		must(t, s.db.Write(t.Context(), func(tx *store.Tx) error {
			pool, err := tx.Pool(t.Context(), "acme", "lab")
			if err != nil {
				return err
			}
			pool.AllowVirtualMachines = true
			_, _, err = tx.UpdatePool(t.Context(), pool, "acme/ops")
			return err
		}))
		s.wantImport(t, 1, 0, 0, vm)
	})
}

// TestInventory_AllOrNone holds that an identifier of another machine refuses
// the whole call, and that identifiers may move between machines in one.
func TestInventory_AllOrNone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		s.wantImport(t, 2, 0, 0, known("a", "CZ2D1X0QTP", mac1), known("b", "CZ2D1X0QTQ", mac2))
		for _, machines := range [][]item{
			{known("c", "CZ2D1X0QTR"), known("d", "CZ2D1X0QTS", mac1)},
			{known("c", "CZ2D1X0QTR"), known("b", "CZ2D1X0QTQ", strings.ToUpper(mac1))},
			{known("a", "CZ2D1X0QTP", mac1), known("c", "", mac2)},
		} {
			if _, err := s.imports(t.Context(), machines...); !fault.Is(err, problem.Conflict) {
				t.Errorf("%v", err)
			}
			if ids := s.ids(t); !slices.Equal(ids, []string{"a", "b"}) {
				t.Fatalf("%q", ids)
			}
		}
		s.wantImport(t, 0, 2, 0, known("b", "CZ2D1X0QTQ", mac1), known("a", "CZ2D1X0QTP", mac2)) // swapped cables
		s.wantImport(t, 1, 1, 0, known("c", "", mac2), known("a", "CZ2D1X0QTP"))
		if got := s.events(t, "compute.inventory.imported"); len(got) != 3 {
			t.Errorf("%q", got)
		}
		// Another pool and tenant have an inventory of their own.
		for _, of := range []struct{ tenant, pool string }{{"acme", "other"}, {"globex", "lab"}} {
			out, err := s.Import(ops(t.Context()), &wire.InventoryImportInput{TenantID: of.tenant, PoolID: of.pool, Machines: []item{known("a", "CZ2D1X0QTP", mac1)}})
			if err != nil || out.Created != 1 {
				t.Errorf("%+v, %v", out, err)
			}
		}
		if _, err := s.Import(ops(t.Context()), &wire.InventoryImportInput{TenantID: "acme", PoolID: "nowhere", Machines: []item{known("a", "CZ2D1X0QTP")}}); !fault.Is(err, problem.NotFound) {
			t.Errorf("%v", err)
		}
	})
}

// TestInventory_Remove holds that a removed machine is returned, is gone, and frees what it had.
func TestInventory_Remove(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		s.wantImport(t, 2, 0, 0, known("a", "CZ2D1X0QTP", mac1), known("b", "CZ2D1X0QTQ"))
		remove := func(tenant, pool, id string) (*api.InventoryRemoveOutput, error) {
			return s.Remove(ops(t.Context()), &wire.InventoryRemoveInput{TenantID: tenant, PoolID: pool, MachineID: id})
		}
		for _, of := range [][3]string{{"acme", "other", "a"}, {"globex", "lab", "a"}, {"acme", "lab", "c"}} {
			if _, err := remove(of[0], of[1], of[2]); !fault.Is(err, problem.NotFound) {
				t.Errorf("%v: %v", of, err)
			}
		}
		out, err := remove("acme", "lab", "a")
		must(t, err)
		if m := out.Machine; m.MachineID != "a" || *m.Serial != "CZ2D1X0QTP" || !slices.Equal(m.Macs, []string{mac1}) {
			t.Errorf("%+v", m)
		}
		if _, err := remove("acme", "lab", "a"); !fault.Is(err, problem.NotFound) {
			t.Errorf("%v", err)
		}
		s.wantImport(t, 0, 1, 0, known("b", "CZ2D1X0QTQ", mac1))
		if got, want := s.events(t, "compute.inventory.removed"), []string{`{"machineId":"a","removedBy":"acme/ops"}`}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestInventory_List holds that machines are listed page by page in the order of their ids.
func TestInventory_List(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		var all []item
		for i := range 7 {
			all = append(all, known(fmt.Sprintf("rack%d", 6-i), fmt.Sprintf("CZ2D1X0QT%d", i)))
		}
		s.wantImport(t, 7, 0, 0, all...)
		in := &wire.InventoryListInput{TenantID: "acme", PoolID: "lab", Limit: 3}
		var got []string
		for page := 0; ; page++ {
			out, err := s.List(t.Context(), in)
			must(t, err)
			for _, m := range out.Machines {
				got = append(got, m.MachineID)
			}
			if out.Cursor == nil {
				if page != 2 {
					t.Errorf("%d pages", page+1)
				}
				break
			}
			in.Cursor = some(*out.Cursor)
		}
		if want := []string{"rack0", "rack1", "rack2", "rack3", "rack4", "rack5", "rack6"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if out, err := s.List(t.Context(), &wire.InventoryListInput{TenantID: "acme", PoolID: "other", Limit: 3}); err != nil || len(out.Machines) != 0 || out.Cursor != nil {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// TestInventory_AtOnce holds that imports at once, by two servers, of machines
// with one identifier leave it with one of them, and never fail otherwise.
func TestInventory_AtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *shop) {
		servers := []*shop{s, {inventory.New(storetest.Replica(t, s.db), placeholder.Default()), nil}}
		for round := range 10 {
			serial := fmt.Sprintf("CZ2D1X%04d", round)
			var wg sync.WaitGroup
			var mu sync.Mutex
			var created int64
			var errs []error
			start := make(chan struct{})
			for i := range 6 {
				wg.Go(func() {
					<-start
					out, err := servers[i%2].imports(t.Context(), known(fmt.Sprintf("m%d-%d", round, i%3), serial))
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						created += out.Created
					case !fault.Is(err, problem.Conflict):
						errs = append(errs, err)
					}
				})
			}
			close(start)
			wg.Wait()
			if err := errors.Join(errs...); err != nil || created != 1 {
				t.Fatalf("%d machines have one serial: %v", created, err)
			}
		}
		if ids := s.ids(t); len(ids) != 10 {
			t.Errorf("%q", ids)
		}
	})
}
