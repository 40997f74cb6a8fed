-- Who said what of a key that was in doubt, and why. Kept until somebody
-- deletes it.
CREATE TABLE idem_settlement (
    settled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    tenant bytea NOT NULL,
    scope text NOT NULL,
    key_text text NOT NULL,
    token bigint NOT NULL, -- of the execution that was in doubt
    state text NOT NULL CHECK (state IN ('DONE', 'RELEASED')),
    settled_by text NOT NULL CHECK (settled_by <> ''),
    why text NOT NULL CHECK (why <> '')
);
