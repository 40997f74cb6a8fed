-- Up to which number the calls of a session were acknowledged: those below are
-- refused, and their records have gone. The row goes when no key of the session
-- is taken any more.
CREATE TABLE idem_session (
    session bytea PRIMARY KEY, -- a digest of tenant and name
    acked bigint NOT NULL CHECK (acked > 0),
    gone_at timestamptz NOT NULL
) WITH (fillfactor = 50);
