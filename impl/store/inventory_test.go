package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
)

// known is a machine of the inventory with a serial and addresses.
func known(id, serial string, macs ...string) store.Known {
	k := store.Known{Machine: store.InventoryMachine{MachineID: id, Serial: serial, MACs: macs}}
	if serial != "" {
		k.Identifiers = append(k.Identifiers, store.Identifier{Kind: "serial", Value: strings.ToLower(serial)})
	}
	for _, mac := range macs {
		k.Identifiers = append(k.Identifiers, store.Identifier{Kind: "mac", Value: mac})
	}
	return k
}

func importMachines(t testing.TB, db *store.DB, machines ...store.Known) (created, updated []string, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		created, updated, err = tx.ImportMachines(t.Context(), "acme", "lab", machines, "acme/ops")
		return err
	})
	return created, updated, err
}

func removeMachine(t testing.TB, db *store.DB, id string) (machine store.InventoryMachine, err error) {
	t.Helper()
	err = db.Write(t.Context(), func(tx *store.Tx) error {
		machine, err = tx.RemoveMachine(t.Context(), "acme", "lab", id, "acme/ops")
		return err
	})
	return machine, err
}

func matches(t testing.TB, db *store.DB, identifiers ...store.Identifier) string {
	t.Helper()
	machines, err := db.InventoryMatches(t.Context(), "acme", "lab", identifiers)
	must(t, err)
	var names []string
	for _, machine := range machines {
		names = append(names, machine.MachineID)
	}
	return strings.Join(names, " ")
}

func TestInventory_ImportListMatchRemove(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		clock := atNoon(db)
		withLab(t, db)
		eventsSince(t, db)
		step := func(wantCreated, wantUpdated string, machines ...store.Known) {
			t.Helper()
			clock.Advance(time.Minute)
			created, updated, err := importMachines(t, db, machines...)
			if must(t, err); fmt.Sprint(created)+fmt.Sprint(updated) != wantCreated+wantUpdated {
				t.Errorf("created %v, updated %v; want %s%s", created, updated, wantCreated, wantUpdated)
			}
			var want []string
			if wantCreated+wantUpdated != "[][]" {
				list := func(text string) string {
					if text == "[]" {
						return text
					}
					return `["` + strings.ReplaceAll(strings.Trim(text, "[]"), " ", `","`) + `"]`
				}
				want = []string{`compute.inventory.imported lab {"created":` + list(wantCreated) + `,"importedBy":"acme/ops","updated":` + list(wantUpdated) + `}`}
			}
			if got := eventsSince(t, db); !slices.Equal(got, want) {
				t.Errorf("events %v, want %v", got, want)
			}
		}
		b := known("b", "S2", "m2", "m3")
		b.Machine.ProductUUID, b.Machine.GPUUUIDs = "U", []string{"g"}
		step("[b a]", "[]", b, known("a", "S1"))
		step("[]", "[]", known("a", "S1"), b)
		step("[c]", "[a]", known("a", "S1", "m1"), known("c", "", "m4"), b)
		unchanged(t, db, "importing nothing", func() { step("[]", "[]") })

		page, more, err := db.Inventory(t.Context(), store.InventoryQuery{TenantID: "acme", PoolID: "lab", Limit: 2})
		must(t, err)
		want := []store.InventoryMachine{
			{TenantID: "acme", PoolID: "lab", MachineID: "a", Serial: "S1", MACs: []string{"m1"}, GPUUUIDs: []string{}, CreatedAt: noon.Add(time.Minute), CreatedBy: "acme/ops", UpdatedAt: noon.Add(3 * time.Minute)},
			{TenantID: "acme", PoolID: "lab", MachineID: "b", ProductUUID: "U", Serial: "S2", MACs: []string{"m2", "m3"}, GPUUUIDs: []string{"g"}, CreatedAt: noon.Add(time.Minute), CreatedBy: "acme/ops", UpdatedAt: noon.Add(time.Minute)},
		}
		if !reflect.DeepEqual(page, want) || !more {
			t.Errorf("listed %+v, more %v\nwant %+v", page, more, want)
		}
		page, more, err = db.Inventory(t.Context(), store.InventoryQuery{TenantID: "acme", PoolID: "lab", Limit: 2, After: "b"})
		if must(t, err); len(page) != 1 || more || page[0].MachineID != "c" {
			t.Errorf("next page %+v, more %v", page, more)
		}
		if page, _, err := db.Inventory(t.Context(), store.InventoryQuery{TenantID: "umbrella", PoolID: "lab", Limit: 2}); len(page) != 0 || err != nil {
			t.Errorf("another tenant has %+v, error %v", page, err)
		}

		serial := func(value string) store.Identifier { return store.Identifier{Kind: "serial", Value: value} }
		mac := func(value string) store.Identifier { return store.Identifier{Kind: "mac", Value: value} }
		for _, c := range []struct {
			identifiers []store.Identifier
			want        string
		}{
			{nil, ""}, {[]store.Identifier{serial("s9"), mac("s1")}, ""}, {[]store.Identifier{serial("s1")}, "a"},
			{[]store.Identifier{mac("m3"), mac("m2"), serial("s2")}, "b"}, {[]store.Identifier{mac("m4"), serial("s2"), mac("m1")}, "a b c"},
		} {
			if got := matches(t, db, c.identifiers...); got != c.want {
				t.Errorf("%v matches %q, want %q", c.identifiers, got, c.want)
			}
		}
		if machines, err := db.InventoryMatches(t.Context(), "acme", "other", []store.Identifier{serial("s1")}); len(machines) != 0 || err != nil {
			t.Errorf("another pool has %v, error %v", machines, err)
		}

		gone, err := removeMachine(t, db, "b")
		if must(t, err); !reflect.DeepEqual(gone, want[1]) {
			t.Errorf("removed %+v", gone)
		}
		if got, want := eventsSince(t, db), []string{`compute.inventory.removed b {"machineId":"b","removedBy":"acme/ops"}`}; !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		if got := matches(t, db, serial("s2"), mac("m2")); got != "" {
			t.Errorf("a removed machine matches: %s", got)
		}
		unchanged(t, db, "removing it again", func() { _, err := removeMachine(t, db, "b"); wantCode(t, err, problem.NotFound) })
		step("[d]", "[]", known("d", "S2", "m2")) // its identifiers are free
	})
}

func TestInventory_ConflictOrUnknownPool_ChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		_, _, err := importMachines(t, db, known("a", "S1", "m1"), known("b", "S2"))
		must(t, err)
		for name, machines := range map[string][]store.Known{
			"of another machine":     {known("c", "S3"), known("d", "S1")},
			"moved to one that has":  {known("a", "S1", "m1"), known("b", "S1")},
			"twice in one import":    {known("c", "S3"), known("d", "S3")},
			"taken by one, and back": {known("a", "S2"), known("c", "S1")},
		} {
			unchanged(t, db, name, func() {
				_, _, err := importMachines(t, db, machines...)
				wantCode(t, err, problem.Conflict)
				if err != nil && !strings.Contains(err.Error(), "serial s") {
					t.Errorf("%s: %v does not say which", name, err)
				}
			})
		}
		unchanged(t, db, "an unknown pool", func() {
			wantCode(t, db.Write(t.Context(), func(tx *store.Tx) error {
				_, _, err := tx.ImportMachines(t.Context(), "acme", "nowhere", []store.Known{known("c", "S3")}, "acme/ops")
				return err
			}), problem.NotFound)
			wantCode(t, db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.RemoveMachine(t.Context(), "acme", "nowhere", "a", "acme/ops")
				return err
			}), problem.NotFound)
		})
	})
}

func TestInventory_IdentifiersMoveBetweenMachines(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		_, _, err := importMachines(t, db, known("a", "S1", "m1"), known("b", "S2", "m2"))
		must(t, err)
		for _, machines := range [][]store.Known{
			{known("a", "S2", "m1"), known("b", "S1", "m2")}, // swapped
			{known("a", "S2"), known("c", "", "m1")},         // to a new one
		} {
			if _, _, err := importMachines(t, db, machines...); err != nil {
				t.Error(err)
			}
		}
		for value, want := range map[string]string{"s1": "b", "s2": "a"} {
			if got := matches(t, db, store.Identifier{Kind: "serial", Value: value}); got != want {
				t.Errorf("%s is %s's, want %s", value, got, want)
			}
		}
		if got := matches(t, db, store.Identifier{Kind: "mac", Value: "m1"}); got != "c" {
			t.Errorf("m1 is %s's", got)
		}
	})
}

func TestInventory_ReplicasAtOnce_OneHolderEach(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		withLab(t, db)
		handles := replicas(t, db)
		steps := 12
		if !isPostgres(db) {
			steps = 3
		}
		together(6, func(i int) {
			for n := range steps {
				one, another := fmt.Sprint("machine", (n+i)%3), fmt.Sprint("machine", (n+i+1)%3)
				var err error
				if (n+i)%4 == 0 {
					_, err = removeMachine(t, handles[i%2], one)
				} else {
					_, _, err = importMachines(t, handles[i%2], known(one, fmt.Sprint("S", n%3), "m1"), known(another, fmt.Sprint("S", (n+1)%3)))
				}
				if code := fault.From(err).Code; err != nil && code != problem.Conflict && code != problem.NotFound {
					t.Error(err)
				}
			}
		})
		if n := count(t, db, `inventory_machines AS m WHERE serial IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inventory_identifiers AS i
			WHERE i.machine_id = m.machine_id AND i.kind = 'serial' AND i.value = lower(m.serial))`); n != 0 {
			t.Errorf("%d machines do not have the identifier that they were imported with", n)
		}
		machines, identifiers := count(t, db, "inventory_machines"), count(t, db, "inventory_identifiers WHERE kind = 'serial'")
		if machines != identifiers {
			t.Errorf("%d machines have %d serials", machines, identifiers)
		}
	})
}
