package store

import (
	"context"
	"time"
)

// AcquireLease takes the lease of a name for owner until ttl from now, or
// renews it where owner holds it, and reports whether owner holds it now. It is
// free when nobody has it or its time is over. Replicas whose clocks differ
// agree within that difference.
func (db *DB) AcquireLease(ctx context.Context, name, owner string, ttl time.Duration) (held bool, err error) {
	err = db.Write(ctx, func(tx *Tx) error {
		n, err := tx.exec(ctx, "acquire lease", `INSERT INTO leases (name, owner, until) VALUES (?0, ?1, ?2)
			ON CONFLICT (name) DO UPDATE SET owner = EXCLUDED.owner, until = EXCLUDED.until
			WHERE leases.owner = EXCLUDED.owner OR leases.until <= ?3`, name, owner, tx.Now().Add(ttl), tx.Now())
		held = n == 1
		return err
	})
	return held && err == nil, err
}

// ReleaseLease gives the lease up where owner holds it.
func (db *DB) ReleaseLease(ctx context.Context, name, owner string) error {
	return db.Write(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "release lease", "DELETE FROM leases WHERE name = ? AND owner = ?", name, owner)
		return err
	})
}
