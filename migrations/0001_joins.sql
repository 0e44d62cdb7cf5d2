-- Sites, pools, join tokens, API keys, and the trail that every change leaves.

CREATE TABLE sites (
    tenant_id  TEXT /*postgres COLLATE "C" */ NOT NULL,
    site_id    TEXT /*postgres COLLATE "C" */ NOT NULL,
    custom     BOOLEAN NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (tenant_id, site_id)
);

CREATE TABLE pools (
    tenant_id              TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id                TEXT /*postgres COLLATE "C" */ NOT NULL,
    site_tenant_id         TEXT /*postgres COLLATE "C" */ NOT NULL,
    site_id                TEXT /*postgres COLLATE "C" */ NOT NULL,
    agent                  TEXT NOT NULL,
    attestor               TEXT NOT NULL,
    platform_operated      BOOLEAN NOT NULL,
    allow_virtual_machines BOOLEAN NOT NULL,
    erase                  TEXT NOT NULL,
    created_at             TIMESTAMPTZ NOT NULL,
    created_by             TEXT NOT NULL,
    updated_at             TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (tenant_id, pool_id),
    FOREIGN KEY (site_tenant_id, site_id) REFERENCES sites (tenant_id, site_id)
);

-- Only the hash of a token's secret is here (JT-03). Liveness is judged by the
-- row itself; ended_at only keeps rows that have ended out of join_tokens_live.
CREATE TABLE join_tokens (
    id                  TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    tenant_id           TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id             TEXT /*postgres COLLATE "C" */ NOT NULL,
    secret_sha256       BYTEA NOT NULL,
    max_uses            BIGINT NOT NULL,
    uses                BIGINT NOT NULL CHECK (uses >= 0 AND uses <= max_uses),
    expect_product_uuid TEXT,
    expect_serial       TEXT,
    expect_mac          TEXT,
    expect_gpu_uuid     TEXT,
    allow_reclaim       BOOLEAN NOT NULL,
    hosted              TEXT,
    created_at          TIMESTAMPTZ NOT NULL,
    created_by          TEXT NOT NULL,
    expires_at          TIMESTAMPTZ NOT NULL,
    revoked_at          TIMESTAMPTZ,
    ended_at            TIMESTAMPTZ,
    FOREIGN KEY (tenant_id, pool_id) REFERENCES pools (tenant_id, pool_id)
);
CREATE INDEX join_tokens_live ON join_tokens (tenant_id, pool_id, id) WHERE ended_at IS NULL;
CREATE INDEX join_tokens_all ON join_tokens (tenant_id, pool_id, id);
-- For the sweep: what expires next, and what has ended for another reason. The
-- difference tells Postgres that this is rare; it takes uses >= max_uses for a third of all.
-- max_uses > 0 is always so; a list does not say it, so that Postgres cannot
-- take this index for a page of live tokens and read and sort all of them.
CREATE INDEX join_tokens_expiring ON join_tokens (expires_at) WHERE ended_at IS NULL AND max_uses > 0;
CREATE INDEX join_tokens_spent ON join_tokens (id) WHERE ended_at IS NULL AND (max_uses - uses = 0 OR revoked_at IS NOT NULL);

CREATE TABLE api_keys (
    id            TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    secret_sha256 BYTEA NOT NULL,
    tenant_id     TEXT /*postgres COLLATE "C" */ NOT NULL,
    identity      TEXT NOT NULL,
    role          TEXT NOT NULL,
    pool_id       TEXT /*postgres COLLATE "C" */,
    created_at    TIMESTAMPTZ NOT NULL,
    created_by    TEXT NOT NULL,
    revoked_at    TIMESTAMPTZ
);
CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, id);

-- The outbox. A row is written with the change and has no position; the
-- sequencer gives positions to committed rows, so that readers miss none.
CREATE TABLE events (
    id        TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    position  BIGINT,
    type      TEXT NOT NULL,
    tenant_id TEXT /*postgres COLLATE "C" */ NOT NULL,
    pool_id   TEXT /*postgres COLLATE "C" */,
    source    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    time      TIMESTAMPTZ NOT NULL,
    data      JSONB NOT NULL
);
CREATE UNIQUE INDEX events_position ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_unpositioned ON events (time, id) WHERE position IS NULL;
CREATE INDEX events_of_tenant ON events (tenant_id, position) WHERE position IS NOT NULL;
CREATE INDEX events_of_pool ON events (tenant_id, pool_id, position) WHERE position IS NOT NULL;

-- One row: the last position given.
CREATE TABLE event_position (
    id   INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    last BIGINT NOT NULL
);
INSERT INTO event_position (id, last) VALUES (1, 0);

-- What was allowed, and by which policies; written with the change it allowed.
CREATE TABLE decisions (
    id         TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    at         TIMESTAMPTZ NOT NULL,
    request_id TEXT NOT NULL,
    principal  TEXT NOT NULL,
    action     TEXT NOT NULL,
    resource   TEXT NOT NULL,
    policies   JSONB NOT NULL
);

-- What was refused, one row for all refusals that are alike.
CREATE TABLE denials (
    principal TEXT /*postgres COLLATE "C" */ NOT NULL,
    action    TEXT /*postgres COLLATE "C" */ NOT NULL,
    resource  TEXT /*postgres COLLATE "C" */ NOT NULL,
    reason    TEXT /*postgres COLLATE "C" */ NOT NULL,
    count     BIGINT NOT NULL,
    first_at  TIMESTAMPTZ NOT NULL,
    last_at   TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (principal, action, resource, reason)
);
CREATE INDEX denials_recent ON denials (last_at);

CREATE TABLE leases (
    name  TEXT /*postgres COLLATE "C" */ NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL
);
