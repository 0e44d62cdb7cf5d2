-- Nodes and how they join: the ledger of a token's uses, certificates, the
-- approval queue, the inventory; and the sealed keys of the node CA.

-- One row: the data keys, themselves encrypted under the operator's seal key.
CREATE TABLE seal_keysets (
    id         INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    wrapped    BYTEA NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE ca_keys (
    id          TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    name        TEXT NOT NULL,
    certificate BYTEA NOT NULL,
    sealed_key  BYTEA NOT NULL,
    created_at  TIMESTAMPTZ NOT NULL
);

CREATE TABLE nodes (
    id            TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    tenant_id     TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id       TEXT /*postgres COLLATE "C" */ NOT NULL,
    trust         TEXT NOT NULL,
    hosted        TEXT,
    claims        JSONB NOT NULL,
    agent_version TEXT,
    token_id      TEXT /*postgres COLLATE "C" */ NOT NULL,
    created_at    TIMESTAMPTZ NOT NULL,
    joined_at     TIMESTAMPTZ NOT NULL,
    confirmed_at  TIMESTAMPTZ,
    last_seen_at  TIMESTAMPTZ,
    banned_at     TIMESTAMPTZ,
    banned_by     TEXT,
    note          TEXT,
    removed_at    TIMESTAMPTZ,
    FOREIGN KEY (tenant_id, pool_id) REFERENCES pools (tenant_id, pool_id)
);
CREATE INDEX nodes_live ON nodes (tenant_id, pool_id, id) WHERE removed_at IS NULL;
CREATE INDEX nodes_all ON nodes (tenant_id, pool_id, id);
CREATE INDEX nodes_removed ON nodes (removed_at) WHERE removed_at IS NOT NULL;

-- What tells a node, in normal form. A value has one holder in a pool: holder
-- is empty. One that two machines have presented tells none of them: then
-- holder is the node (NJ-5).
CREATE TABLE node_identifiers (
    tenant_id TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id   TEXT /*postgres COLLATE "C" */ NOT NULL,
    kind      TEXT /*postgres COLLATE "C" */ NOT NULL,
    value     TEXT /*postgres COLLATE "C" */ NOT NULL,
    holder    TEXT /*postgres COLLATE "C" */ NOT NULL,
    node_id   TEXT /*postgres COLLATE "C" */ NOT NULL,
    PRIMARY KEY (tenant_id, pool_id, kind, value, holder),
    FOREIGN KEY (node_id) REFERENCES nodes (id)
);
CREATE INDEX node_identifiers_of_node ON node_identifiers (node_id);

-- A certificate is valid for a call when it is here, signed, not revoked and in
-- time. Without a chain it was claimed and is still to be signed (NJ-3).
CREATE TABLE node_certificates (
    serial       TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    node_id      TEXT /*postgres COLLATE "C" */ NOT NULL,
    csr_sha256   TEXT /*postgres COLLATE "C" */ NOT NULL,
    key_sha256   TEXT /*postgres COLLATE "C" */ NOT NULL,
    new_key      BOOLEAN NOT NULL,
    trust        TEXT NOT NULL,
    not_before   TIMESTAMPTZ NOT NULL,
    not_after    TIMESTAMPTZ NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    chain        TEXT,
    confirmed_at TIMESTAMPTZ,
    revoked_at   TIMESTAMPTZ,
    FOREIGN KEY (node_id) REFERENCES nodes (id)
);
-- A public key belongs to one node: its first certificate holds it.
CREATE UNIQUE INDEX node_certificates_key ON node_certificates (key_sha256) WHERE new_key;
CREATE UNIQUE INDEX node_certificates_csr ON node_certificates (node_id, csr_sha256);
CREATE INDEX node_certificates_unsigned ON node_certificates (created_at) WHERE chain IS NULL;
CREATE INDEX node_certificates_ended ON node_certificates (not_after) WHERE NOT new_key;

-- The ledger: one row for each use of a token (NJ-2).
CREATE TABLE join_uses (
    token_id   TEXT /*postgres COLLATE "C" */ NOT NULL,
    csr_sha256 TEXT /*postgres COLLATE "C" */ NOT NULL,
    node_id    TEXT /*postgres COLLATE "C" */ NOT NULL,
    serial     TEXT /*postgres COLLATE "C" */ NOT NULL,
    reclaimed  BOOLEAN NOT NULL,
    claimed_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (token_id, csr_sha256),
    FOREIGN KEY (token_id) REFERENCES join_tokens (id)
);
CREATE INDEX join_uses_serial ON join_uses (serial);

CREATE TABLE join_requests (
    id               TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    tenant_id        TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id          TEXT /*postgres COLLATE "C" */ NOT NULL,
    token_id         TEXT /*postgres COLLATE "C" */ NOT NULL,
    status           TEXT NOT NULL,
    reason           TEXT NOT NULL,
    attestor         TEXT NOT NULL,
    csr_sha256       TEXT /*postgres COLLATE "C" */ NOT NULL,
    key_sha256       TEXT /*postgres COLLATE "C" */ NOT NULL,
    claims           JSONB NOT NULL,
    claims_sha256    TEXT NOT NULL,
    machine_sha256   TEXT NOT NULL,
    placeholders     JSONB NOT NULL,
    hosted           TEXT,
    reclaims_node_id TEXT,
    source_address   TEXT NOT NULL,
    seen             BIGINT NOT NULL,
    created_at       TIMESTAMPTZ NOT NULL,
    last_seen_at     TIMESTAMPTZ NOT NULL,
    expires_at       TIMESTAMPTZ NOT NULL,
    decided_at       TIMESTAMPTZ,
    decided_by       TEXT,
    note             TEXT,
    node_id          TEXT,
    ended_at         TIMESTAMPTZ,
    waived           JSONB, -- what operators have waived before, for the same CSR and claims
    FOREIGN KEY (token_id) REFERENCES join_tokens (id)
);
CREATE UNIQUE INDEX join_requests_csr ON join_requests (token_id, csr_sha256) WHERE status IN ('pending', 'approved', 'denied');
CREATE INDEX join_requests_key ON join_requests (key_sha256) WHERE ended_at IS NULL;
CREATE INDEX join_requests_of_token ON join_requests (token_id, csr_sha256);
CREATE INDEX join_requests_live ON join_requests (tenant_id, pool_id, id) WHERE ended_at IS NULL;
CREATE INDEX join_requests_all ON join_requests (tenant_id, pool_id, id);
-- seen > 0 is always so; the count of a pool's queue does not say it, so that
-- Postgres cannot take this index for it and look at every pool's.
CREATE INDEX join_requests_expiring ON join_requests (expires_at) WHERE ended_at IS NULL AND seen > 0;
CREATE INDEX join_requests_ended ON join_requests (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE inventory_machines (
    tenant_id    TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id      TEXT /*postgres COLLATE "C" */ NOT NULL,
    machine_id   TEXT /*postgres COLLATE "C" */ NOT NULL,
    product_uuid TEXT,
    serial       TEXT,
    macs         JSONB NOT NULL,
    gpu_uuids    JSONB NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL,
    created_by   TEXT NOT NULL,
    updated_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, pool_id, machine_id),
    FOREIGN KEY (tenant_id, pool_id) REFERENCES pools (tenant_id, pool_id)
);

-- An identifier belongs to one machine of a pool.
CREATE TABLE inventory_identifiers (
    tenant_id  TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id    TEXT /*postgres COLLATE "C" */ NOT NULL,
    kind       TEXT /*postgres COLLATE "C" */ NOT NULL,
    value      TEXT /*postgres COLLATE "C" */ NOT NULL,
    machine_id TEXT /*postgres COLLATE "C" */ NOT NULL,
    PRIMARY KEY (tenant_id, pool_id, kind, value),
    FOREIGN KEY (tenant_id, pool_id, machine_id) REFERENCES inventory_machines (tenant_id, pool_id, machine_id)
);
CREATE INDEX inventory_identifiers_of_machine ON inventory_identifiers (tenant_id, pool_id, machine_id);
