-- The tables of payments, for SQLite and PostgreSQL alike.
CREATE TABLE IF NOT EXISTS account (
    name    TEXT   NOT NULL PRIMARY KEY,
    balance BIGINT NOT NULL CHECK (balance >= 0),
    entries BIGINT NOT NULL DEFAULT 0 -- the number of the last entry
);

CREATE TABLE IF NOT EXISTS entry (
    account  TEXT   NOT NULL REFERENCES account (name),
    number   BIGINT NOT NULL,
    amount   BIGINT NOT NULL, -- below 0: taken from the account
    order_id TEXT   UNIQUE,   -- an order is paid once; NULL: no order
    memo     TEXT   NOT NULL,
    PRIMARY KEY (account, number)
);
