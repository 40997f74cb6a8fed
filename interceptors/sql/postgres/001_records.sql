-- The records of keys: minted keys in partitions by the day of their minting,
-- opaque keys in a table of their own. The clock is the database's.

-- What the store knows of itself: one row. A restore from a backup adds one to
-- generation, so that no cache answers from before it.
CREATE TABLE idem_meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version int NOT NULL,
    generation bigint NOT NULL DEFAULT 1
);
INSERT INTO idem_meta (version) VALUES (0);

-- The days (since 1970 UTC) that have or had a partition. A day is never opened
-- a second time: its records may have been dropped.
CREATE TABLE idem_day (
    day int PRIMARY KEY,
    open boolean NOT NULL DEFAULT true,
    max_window_ms bigint NOT NULL DEFAULT 0 -- of the keys seen
);

-- key: 48 bits of the minting's milliseconds, 80 bits of the digest; so the
-- index grows at its end, and the partition is a range of the key. There is no
-- DEFAULT partition, on purpose: a key of a day that is not there is refused.
CREATE TABLE idem_record (
    key uuid PRIMARY KEY,
    state text NOT NULL CHECK (
        state IN ('RUNNING', 'RELEASED', 'DONE', 'DOUBT', 'ABANDONED')),
    token bigint NOT NULL CHECK (token > 0),
    executions int NOT NULL,
    owner bigint, -- who claimed, to know one's own claim again
    lease_until timestamptz,
    begun boolean NOT NULL DEFAULT true, -- false: claimed, no step marked yet
    step text, -- the last one that was marked
    first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    done_at timestamptz,
    tenant bytea NOT NULL,
    scope text NOT NULL,
    key_text text NOT NULL,
    raw bytea, -- of the request: both hashes; NULL when abandoned unseen
    canonical bytea,
    version int,
    status int,
    message bytea,
    reason bytea,
    reply bytea,
    trailers bytea,
    CHECK ((state = 'RUNNING') = (lease_until IS NOT NULL)),
    CHECK ((state IN ('DONE', 'ABANDONED')) = (done_at IS NOT NULL)),
    CHECK ((state = 'DONE') = (status IS NOT NULL))
) PARTITION BY RANGE (key);

-- As idem_record; key: 128 bits of the digest. The answer goes at reap_at,
-- which then is gone_at, and there the record goes. Neither changes while a
-- call runs, so the index forbids no HOT update.
CREATE TABLE idem_record_opaque (
    LIKE idem_record INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
    reap_at timestamptz NOT NULL,
    gone_at timestamptz NOT NULL,
    PRIMARY KEY (key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX idem_record_opaque_reap ON idem_record_opaque (reap_at);
