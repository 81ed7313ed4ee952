CREATE TABLE session (
  id            BLOB PRIMARY KEY,
  epoch         INTEGER NOT NULL,             -- grows with every claim; appends carry it
  head          INTEGER NOT NULL DEFAULT 0,   -- last position in the log
  head_check    BLOB,                         -- `RecordCheck` of the fact at `head`
  used          INTEGER NOT NULL DEFAULT 0,   -- `log.clock` at the last prompt: the order of sessions
  workspace     TEXT NOT NULL DEFAULT '',
  title         TEXT NOT NULL DEFAULT '',
  changed_at    INTEGER NOT NULL DEFAULT 0,
  last_turn_end TEXT,                         -- how the last turn ended, as JSON
  cost_micros   INTEGER NOT NULL DEFAULT 0,   -- in millionths of a dollar
  parent        BLOB,                         -- the session that started it
  forked_from   BLOB,                         -- the session that this one is a copy of
  row_check     BLOB                          -- digest of the columns above except `epoch`
) STRICT, WITHOUT ROWID;

-- Sessions in their order of use, page by page.
CREATE INDEX session_used ON session (used, id) WHERE head > 0;

CREATE TABLE event (
  session BLOB NOT NULL REFERENCES session (id),
  seq     INTEGER NOT NULL,
  epoch   INTEGER NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  format  INTEGER NOT NULL,
  body    TEXT,                           -- the fact as JSON, or
  blob    TEXT,                           -- the blob that contains it
  origin  TEXT,                           -- its `FactOrigin` as JSON, if it has one
  "check" BLOB NOT NULL,                  -- `RecordCheck` of the other columns and the fact before
  PRIMARY KEY (session, seq)
) STRICT;

CREATE TABLE blob_use (
  blob    TEXT NOT NULL,
  session BLOB NOT NULL REFERENCES session (id),
  PRIMARY KEY (blob, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_use_session ON blob_use (session);

-- Prompts and turn boundaries, so that they can be read without the rest of the log. SQLite uses this
-- index only for queries that list the same kinds in the same order.
CREATE INDEX event_turns ON event (session, seq)
  WHERE kind IN ('prompt_submitted', 'turn_started', 'turn_ended', 'rewound');

-- One row: a clock that only counts. Sessions are ordered by it, because the clock of the machine can
-- be set back.
CREATE TABLE log (
  clock INTEGER NOT NULL
) STRICT;
INSERT INTO log VALUES (0);
