-- Who said what of a key that was in doubt, and why. Kept until somebody
-- deletes it.
CREATE TABLE idem_settlement (
    settled_at INTEGER NOT NULL,
    tenant BLOB NOT NULL,
    scope TEXT NOT NULL,
    key BLOB NOT NULL,
    token INTEGER NOT NULL, -- of the execution that was in doubt
    state TEXT NOT NULL CHECK (state IN ('DONE', 'RELEASED')),
    settled_by TEXT NOT NULL CHECK (settled_by <> ''),
    why TEXT NOT NULL CHECK (why <> '')
);
