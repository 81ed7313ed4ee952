CREATE TABLE session (
  id        BLOB PRIMARY KEY,
  epoch     INTEGER NOT NULL,             -- grows with every claim; appends carry it
  head      INTEGER NOT NULL DEFAULT 0,   -- last position in the log
  workspace TEXT NOT NULL DEFAULT '',
  title     TEXT NOT NULL DEFAULT '',
  changed   INTEGER NOT NULL DEFAULT 0,
  ended     TEXT                          -- how the last turn ended, as JSON
) STRICT;
CREATE INDEX session_changed ON session (changed DESC);

CREATE TABLE event (
  session BLOB NOT NULL REFERENCES session (id),
  seq     INTEGER NOT NULL,
  epoch   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  format  INTEGER NOT NULL,
  body    TEXT,                           -- the fact as JSON, or
  blob    TEXT,                           -- the blob that holds it
  PRIMARY KEY (session, seq)
) STRICT;

CREATE TABLE blob_use (
  blob    TEXT NOT NULL,
  session BLOB NOT NULL REFERENCES session (id),
  PRIMARY KEY (blob, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);
