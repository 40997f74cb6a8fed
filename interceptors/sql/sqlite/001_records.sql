-- The records of keys: minted keys by the day of their minting, opaque keys in
-- a table of their own. Times are milliseconds since 1970 UTC, by the clock of
-- the process that has the file.

-- What the store knows of itself.
CREATE TABLE idem_meta (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The days (since 1970 UTC) whose keys are taken. A key of a day that is not
-- here, or is closed, is refused: its record may have been dropped.
CREATE TABLE idem_day (
    day INTEGER NOT NULL PRIMARY KEY,
    open INTEGER NOT NULL DEFAULT 1 CHECK (open IN (0, 1)),
    max_window INTEGER NOT NULL DEFAULT 0 -- of the keys seen, milliseconds
);

CREATE TABLE idem_record (
    minted_ms INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    state TEXT NOT NULL CHECK (
        state IN ('RUNNING', 'RELEASED', 'DONE', 'DOUBT', 'ABANDONED')),
    token INTEGER NOT NULL CHECK (token > 0),
    executions INTEGER NOT NULL,
    lease_until INTEGER,
    begun INTEGER NOT NULL DEFAULT 1 -- 0: claimed, no step marked yet
        CHECK (begun IN (0, 1)),
    step TEXT, -- the last one that was marked
    first_at INTEGER NOT NULL,
    done_at INTEGER,
    tenant BLOB NOT NULL,
    scope TEXT NOT NULL,
    key BLOB NOT NULL,
    raw BLOB, -- of the request: both hashes; NULL when abandoned unseen
    canonical BLOB,
    version INTEGER,
    status INTEGER,
    message BLOB,
    reason BLOB,
    reply BLOB,
    trailers BLOB,
    PRIMARY KEY (minted_ms, digest),
    CHECK ((state = 'RUNNING') = (lease_until IS NOT NULL)),
    CHECK ((state IN ('DONE', 'ABANDONED')) = (done_at IS NOT NULL)),
    CHECK ((state = 'DONE') = (status IS NOT NULL))
) WITHOUT ROWID;

-- As idem_record; minted_ms is 0.
CREATE TABLE idem_record_opaque (
    minted_ms INTEGER NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    state TEXT NOT NULL CHECK (
        state IN ('RUNNING', 'RELEASED', 'DONE', 'DOUBT', 'ABANDONED')),
    token INTEGER NOT NULL CHECK (token > 0),
    executions INTEGER NOT NULL,
    lease_until INTEGER,
    begun INTEGER NOT NULL DEFAULT 1 CHECK (begun IN (0, 1)),
    step TEXT,
    first_at INTEGER NOT NULL,
    done_at INTEGER,
    tenant BLOB NOT NULL,
    scope TEXT NOT NULL,
    key BLOB NOT NULL,
    raw BLOB,
    canonical BLOB,
    version INTEGER,
    status INTEGER,
    message BLOB,
    reason BLOB,
    reply BLOB,
    trailers BLOB,
    reap_at INTEGER NOT NULL, -- the answer goes; then, at gone_at, the record
    gone_at INTEGER NOT NULL,
    PRIMARY KEY (minted_ms, digest),
    CHECK ((state = 'RUNNING') = (lease_until IS NOT NULL)),
    CHECK ((state IN ('DONE', 'ABANDONED')) = (done_at IS NOT NULL)),
    CHECK ((state = 'DONE') = (status IS NOT NULL))
) WITHOUT ROWID;

CREATE INDEX idem_record_opaque_reap ON idem_record_opaque (reap_at);
