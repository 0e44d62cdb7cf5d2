package inventory_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/inventory"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/store/storetest"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	uuid1 = "4c4c4544-0042-3510-8052-b3c04f4b4e32"
	mac1  = "3c:ec:ef:12:34:56"
	mac2  = "3c:ec:ef:12:34:57"
	gpu1  = "GPU-8f6b1c2d-03e4-4b5a-9c7d-1e2f3a4b5c6d"
)

type (
	item        = wire.InventoryImportInputMachinesItem
	identifiers = wire.InventoryImportInputMachinesItemIdentifiers
)

// A shop is the group and its database.
type shop struct {
	*inventory.Inventory
	db *store.DB
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// each runs fn at noon, with the pools lab and other of acme, and lab of globex.
func each(t *testing.T, fn func(t *testing.T, s *shop)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		storetest.ClockOf(db).Set(noon)
		storetest.Yard(t, db, "discovery")
		fn(t, &shop{inventory.New(db, placeholder.Default()), db})
	})
}

func ops(ctx context.Context) context.Context {
	return iam.WithPrincipal(ctx, iam.Principal{Tenant: "acme", Name: "ops"})
}

func some(text string) strictjson.Optional[string] { return strictjson.Some(text) }

// known is a machine with a serial and addresses.
func known(id, serial string, macs ...string) item {
	m := item{MachineID: id, Identifiers: identifiers{Macs: macs}}
	if serial != "" {
		m.Identifiers.Serial = some(serial)
	}
	return m
}

func (s *shop) imports(ctx context.Context, machines ...item) (*api.InventoryImportOutput, error) {
	return s.Import(ops(ctx), &wire.InventoryImportInput{TenantID: "acme", PoolID: "lab", Machines: machines})
}

func (s *shop) wantImport(t testing.TB, created, updated, unchanged int64, machines ...item) {
	t.Helper()
	out, err := s.imports(t.Context(), machines...)
	if want := (api.InventoryImportOutput{Created: created, Updated: updated, Unchanged: unchanged}); err != nil || *out != want {
		t.Fatalf("%+v, %v, want %+v", out, err, want)
	}
}

// ids lists a pool's machines.
func (s *shop) ids(t testing.TB) (ids []string) {
	t.Helper()
	out, err := s.List(t.Context(), &wire.InventoryListInput{TenantID: "acme", PoolID: "lab", Limit: 200})
	must(t, err)
	for _, m := range out.Machines {
		ids = append(ids, m.MachineID)
	}
	return ids
}

// events returns the data of all events of a type.
func (s *shop) events(t testing.TB, kind string) (data []string) {
	t.Helper()
	for n := -1; n != 0; {
		var err error
		n, err = s.db.PositionEvents(t.Context(), 1000)
		must(t, err)
	}
	page, err := s.db.Events(t.Context(), store.EventQuery{TenantID: "acme", Types: []string{kind}, Limit: 1000})
	must(t, err)
	for _, e := range page.Events {
		var read any
		must(t, json.Unmarshal(e.Data, &read))
		text, err := json.Marshal(read)
		must(t, err)
		data = append(data, string(text))
	}
	return data
}
