package store

import (
	"context"
	"slices"
	"time"

	"github.com/bettercompute/bettercompute/gen/events"
	"github.com/bettercompute/bettercompute/impl/fault"
)

// InventoryMachine is a row of inventory_machines; see InventoryMachine in spec/types.md.
type InventoryMachine struct {
	TenantID    string   `bun:",pk"`
	PoolID      string   `bun:",pk"`
	MachineID   string   `bun:",pk"`
	ProductUUID string   `bun:"product_uuid,nullzero"`
	Serial      string   `bun:",nullzero"`
	MACs        []string `bun:"macs"`
	GPUUUIDs    []string `bun:"gpu_uuids"`
	CreatedAt   time.Time
	CreatedBy   string
	UpdatedAt   time.Time
}

func (m *InventoryMachine) times() []*time.Time { return []*time.Time{&m.CreatedAt, &m.UpdatedAt} }

func (m *InventoryMachine) same(other InventoryMachine) bool {
	return m.ProductUUID == other.ProductUUID && m.Serial == other.Serial &&
		slices.Equal(m.MACs, other.MACs) && slices.Equal(m.GPUUUIDs, other.GPUUUIDs)
}

// inventoryIdentifier is a row of inventory_identifiers.
type inventoryIdentifier struct {
	TenantID  string `bun:",pk"`
	PoolID    string `bun:",pk"`
	Kind      string `bun:",pk"`
	Value     string `bun:",pk"`
	MachineID string
}

// InventoryQuery selects a page of a pool's inventory.
type InventoryQuery struct {
	TenantID, PoolID string
	After            string // the last id of the page before
	Limit            int
}

// Inventory returns up to Limit machines in the order of their ids, and whether there are more.
func (r Reader) Inventory(ctx context.Context, q InventoryQuery) ([]InventoryMachine, bool, error) {
	return page[InventoryMachine](ctx, r, "inventory", q.Limit, r.sql.NewSelect().
		Where("tenant_id = ? AND pool_id = ? AND machine_id > ?", q.TenantID, q.PoolID, q.After).Order("machine_id"))
}

// InventoryMatches returns the machines of a pool's inventory that have any of
// the identifiers, in the order of their ids; up to a hundred.
func (r Reader) InventoryMatches(ctx context.Context, tenantID, poolID string, identifiers []Identifier) ([]InventoryMachine, error) {
	if len(identifiers) == 0 {
		return nil, nil
	}
	const most = 100 // more than one decides already
	found, args := findIdentifiers("inventory_identifiers", tenantID, poolID, identifiers)
	machines, _, err := page[InventoryMachine](ctx, r, "inventory", most, r.sql.NewSelect().
		Where("tenant_id = ? AND pool_id = ?", tenantID, poolID).
		Where("machine_id IN (SELECT machine_id FROM ("+found+") AS known)", args...).Order("machine_id"))
	return machines, err
}

// Known is a machine for the inventory, and what tells it, in normal form.
type Known struct {
	Machine     InventoryMachine
	Identifiers []Identifier
}

// ImportMachines adds machines to a pool's inventory, or replaces what is known
// of them, and publishes compute.inventory.imported where something changed.
// An identifier of another machine is CONFLICT; a pool that is missing is
// NOT_FOUND. It returns the ids of new and of changed machines.
func (tx *Tx) ImportMachines(ctx context.Context, tenantID, poolID string, machines []Known, by string) (created, updated []string, err error) {
	// Imports of a pool wait for each other: identifiers may move between machines.
	if _, err := tx.PoolForUpdate(ctx, tenantID, poolID); err != nil {
		return nil, nil, err
	}
	var changed []Known
	for _, known := range machines {
		m := known.Machine
		m.TenantID, m.PoolID = tenantID, poolID
		if m.MACs == nil {
			m.MACs = []string{}
		}
		if m.GPUUUIDs == nil {
			m.GPUUUIDs = []string{}
		}
		m.CreatedAt, m.CreatedBy, m.UpdatedAt = tx.Now(), by, tx.Now()
		fresh, err := tx.insert(ctx, "inventory machine", &m)
		if err != nil {
			return nil, nil, err
		}
		if fresh {
			created, changed = append(created, m.MachineID), append(changed, known)
			continue
		}
		stored, err := tx.inventoryMachine(ctx, tenantID, poolID, m.MachineID)
		if err != nil {
			return nil, nil, err
		}
		if stored.same(m) {
			continue
		}
		m.CreatedAt, m.CreatedBy = stored.CreatedAt, stored.CreatedBy
		if _, err := tx.sql.NewUpdate().Model(&m).WherePK().Exec(ctx); err != nil {
			return nil, nil, tx.failed(ctx, "update inventory machine", err)
		}
		updated, changed = append(updated, m.MachineID), append(changed, known)
	}
	if len(changed) == 0 {
		return nil, nil, nil
	}
	if err := tx.replaceIdentifiers(ctx, tenantID, poolID, changed); err != nil {
		return nil, nil, err
	}
	return created, updated, tx.publish(ctx, poolSubject(tenantID, poolID, poolID), events.ComputeInventoryImported{
		Created: append([]string{}, created...), Updated: append([]string{}, updated...), ImportedBy: by,
	})
}

// replaceIdentifiers frees what the machines had before it writes any, so that
// an identifier can move from one to another in one import.
func (tx *Tx) replaceIdentifiers(ctx context.Context, tenantID, poolID string, machines []Known) error {
	for _, known := range machines {
		if err := tx.forgetIdentifiers(ctx, tenantID, poolID, known.Machine.MachineID); err != nil {
			return err
		}
	}
	for _, known := range machines {
		for _, id := range known.Identifiers {
			fresh, err := tx.insert(ctx, "inventory identifier", &inventoryIdentifier{tenantID, poolID, id.Kind, id.Value, known.Machine.MachineID})
			if err != nil {
				return err
			}
			if !fresh {
				return fault.Conflict("the " + id.Kind + " " + id.Value + " of machine " + known.Machine.MachineID + " belongs to another machine of the pool's inventory")
			}
		}
	}
	return nil
}

func (tx *Tx) forgetIdentifiers(ctx context.Context, tenantID, poolID, machineID string) error {
	_, err := tx.exec(ctx, "free inventory identifiers", "DELETE FROM inventory_identifiers WHERE tenant_id = ? AND pool_id = ? AND machine_id = ?",
		tenantID, poolID, machineID)
	return err
}

func (tx *Tx) inventoryMachine(ctx context.Context, tenantID, poolID, machineID string) (InventoryMachine, error) {
	return one[InventoryMachine](ctx, tx.Reader, "machine", tx.sql.NewSelect().
		Where("tenant_id = ? AND pool_id = ? AND machine_id = ?", tenantID, poolID, machineID))
}

// RemoveMachine takes a machine out of the inventory and publishes
// compute.inventory.removed. One that is not there is NOT_FOUND.
func (tx *Tx) RemoveMachine(ctx context.Context, tenantID, poolID, machineID, by string) (InventoryMachine, error) {
	// An import of the machine would add identifiers while they are freed here.
	if _, err := tx.PoolForUpdate(ctx, tenantID, poolID); err != nil {
		return InventoryMachine{}, err
	}
	machine, err := tx.inventoryMachine(ctx, tenantID, poolID, machineID)
	if err != nil {
		return InventoryMachine{}, err
	}
	if err := tx.forgetIdentifiers(ctx, tenantID, poolID, machineID); err != nil {
		return InventoryMachine{}, err
	}
	_, err = tx.exec(ctx, "remove inventory machine", "DELETE FROM inventory_machines WHERE tenant_id = ? AND pool_id = ? AND machine_id = ?",
		tenantID, poolID, machineID)
	if err != nil {
		return InventoryMachine{}, err
	}
	return machine, tx.publish(ctx, poolSubject(tenantID, poolID, machineID), events.ComputeInventoryRemoved{MachineID: machineID, RemovedBy: by})
}

func (*inventoryIdentifier) times() []*time.Time { return nil }
