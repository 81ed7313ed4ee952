CREATE TABLE chain (
  id     INTEGER PRIMARY KEY,
  used   INTEGER NOT NULL DEFAULT 0,     -- the store's clock at its last copy, new or kept again
  at     INTEGER NOT NULL DEFAULT 0,     -- the same moment in seconds
  stored INTEGER NOT NULL DEFAULT 0      -- what its copies take up
) STRICT;
CREATE INDEX chain_used ON chain (used);

CREATE TABLE copy (
  digest BLOB NOT NULL UNIQUE,           -- SHA-256 of the plain bytes
  chain  INTEGER NOT NULL,
  base   BLOB,                           -- the copy it is a difference to, or none
  size   INTEGER NOT NULL,               -- of the plain bytes
  stored INTEGER NOT NULL,
  body   BLOB NOT NULL                   -- a zstd frame
) STRICT;
CREATE INDEX copy_chain ON copy (chain, digest);

-- One row: a clock that only counts, and the sum of all that is stored.
CREATE TABLE store (
  clock  INTEGER NOT NULL,
  stored INTEGER NOT NULL
) STRICT;
INSERT INTO store VALUES (0, 0);

CREATE TRIGGER copy_added AFTER INSERT ON copy BEGIN
  UPDATE store SET clock = clock + 1, stored = stored + new.stored;
  UPDATE chain SET used = (SELECT clock FROM store), at = unixepoch(), stored = stored + new.stored
  WHERE id = new.chain;
END;
CREATE TRIGGER copy_removed AFTER DELETE ON copy BEGIN
  UPDATE chain SET stored = stored - old.stored WHERE id = old.chain;
  UPDATE store SET stored = stored - old.stored;
END;
