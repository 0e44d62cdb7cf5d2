// Package inventory serves the group inventory: the machines that are known before they join (spec/inventory.md).
package inventory

import (
	"context"
	"fmt"

	"github.com/bettercompute/bettercompute/gen/api"
	"github.com/bettercompute/bettercompute/gen/problem"
	"github.com/bettercompute/bettercompute/gen/wire"
	"github.com/bettercompute/bettercompute/impl/attest"
	"github.com/bettercompute/bettercompute/impl/fault"
	"github.com/bettercompute/bettercompute/impl/iam"
	"github.com/bettercompute/bettercompute/impl/placeholder"
	"github.com/bettercompute/bettercompute/impl/store"
	"github.com/bettercompute/bettercompute/impl/strictjson"
)

// Inventory implements [api.Inventory].
type Inventory struct {
	db           *store.DB
	placeholders *placeholder.List
}

// New returns the group; placeholders are the identifiers that tell no machine.
func New(db *store.DB, placeholders *placeholder.List) *Inventory {
	return &Inventory{db, placeholders}
}

// Import adds machines, or replaces what is known of them; all or none.
func (i *Inventory) Import(ctx context.Context, in *wire.InventoryImportInput) (*api.InventoryImportOutput, error) {
	var created, updated []string
	err := i.db.Write(ctx, func(tx *store.Tx) error {
		pool, err := tx.Pool(ctx, in.TenantID, in.PoolID)
		if err != nil {
			return err
		}
		machines, violations := i.known(in, pool)
		if len(violations) > 0 {
			return fault.InvalidInput(violations...)
		}
		created, updated, err = tx.ImportMachines(ctx, in.TenantID, in.PoolID, machines, iam.PrincipalFrom(ctx).String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.InventoryImportOutput{
		Created:   int64(len(created)),
		Updated:   int64(len(updated)),
		Unchanged: int64(len(in.Machines) - len(created) - len(updated)),
	}, nil
}

// known reads the machines of a call; each must be told by something, and no
// two by the same.
func (i *Inventory) known(in *wire.InventoryImportInput, pool store.Pool) (machines []store.Known, violations []strictjson.Violation) {
	named, holders := map[string]int{}, map[store.Identifier]int{}
	for at, m := range in.Machines {
		field := fmt.Sprintf("machines[%d]", at)
		if first, twice := named[m.MachineID]; twice {
			violations = append(violations, strictjson.Violation{
				Field: field + ".machineId", Rule: strictjson.RuleDuplicate, Message: fmt.Sprintf("stands in machines[%d], too", first),
			})
		}
		named[m.MachineID] = at
		claims := store.Claims{
			ProductUUID: m.Identifiers.ProductUUID.Value, Serial: m.Identifiers.Serial.Value,
			MACs: m.Identifiers.Macs, GPUUUIDs: m.Identifiers.GPUUuids,
		}
		judged := attest.Judge(i.placeholders, claims, pool.AllowVirtualMachines)
		for _, p := range judged.Placeholders {
			violations = append(violations, strictjson.Violation{
				Field: field + ".identifiers", Rule: problem.RulePlaceholder,
				Message: "has the " + p.Field + " " + p.Value + ", a placeholder that identifies no machine (" + p.Rule + ")",
			})
		}
		if len(judged.Tells)+len(judged.Placeholders) == 0 {
			violations = append(violations, strictjson.Violation{
				Field: field + ".identifiers", Rule: strictjson.RuleAtLeastOne, Message: "must have at least one identifier",
			})
		}
		for _, id := range judged.Tells {
			if first, twice := holders[id]; twice {
				violations = append(violations, strictjson.Violation{
					Field: field + ".identifiers", Rule: strictjson.RuleDuplicate,
					Message: fmt.Sprintf("has the %s %s, which stands in machines[%d], too", id.Kind, id.Value, first),
				})
			}
			holders[id] = at
		}
		machines = append(machines, store.Known{
			Machine: store.InventoryMachine{
				TenantID: in.TenantID, PoolID: in.PoolID, MachineID: m.MachineID,
				ProductUUID: claims.ProductUUID, Serial: claims.Serial, MACs: claims.MACs, GPUUUIDs: claims.GPUUUIDs,
			},
			Identifiers: judged.Tells,
		})
	}
	return machines, violations
}

// List returns a page of a pool's inventory.
func (i *Inventory) List(ctx context.Context, in *wire.InventoryListInput) (*api.InventoryListOutput, error) {
	machines, more, err := i.db.Inventory(ctx, store.InventoryQuery{
		TenantID: in.TenantID, PoolID: in.PoolID, After: in.Cursor.Value, Limit: int(in.Limit),
	})
	if err != nil {
		return nil, err
	}
	out := &api.InventoryListOutput{Machines: make([]api.InventoryMachine, len(machines))}
	for at, machine := range machines {
		out.Machines[at] = view(machine)
	}
	if more {
		out.Cursor = &machines[len(machines)-1].MachineID
	}
	return out, nil
}

// Remove takes a machine out of the inventory.
func (i *Inventory) Remove(ctx context.Context, in *wire.InventoryRemoveInput) (*api.InventoryRemoveOutput, error) {
	var machine store.InventoryMachine
	err := i.db.Write(ctx, func(tx *store.Tx) (err error) {
		machine, err = tx.RemoveMachine(ctx, in.TenantID, in.PoolID, in.MachineID, iam.PrincipalFrom(ctx).String())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &api.InventoryRemoveOutput{Machine: view(machine)}, nil
}

func view(m store.InventoryMachine) api.InventoryMachine {
	return api.InventoryMachine{
		MachineID:   m.MachineID,
		TenantID:    m.TenantID,
		PoolID:      m.PoolID,
		ProductUUID: store.Optional[string](m.ProductUUID),
		Serial:      store.Optional[string](m.Serial),
		Macs:        m.MACs,
		GPUUuids:    m.GPUUUIDs,
		CreatedAt:   m.CreatedAt,
		CreatedBy:   m.CreatedBy,
		UpdatedAt:   m.UpdatedAt,
	}
}
