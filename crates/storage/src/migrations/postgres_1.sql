CREATE TABLE tenant (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name        text NOT NULL UNIQUE,
  is_disabled boolean NOT NULL DEFAULT false, -- no session of it is claimed as due
  roots       text[] NOT NULL DEFAULT '{}',   -- folders of its sessions; empty: all of a node
  -- Limits; null: none. Costs are in millionths of a dollar.
  max_open_sessions  bigint,
  max_steps_per_day  bigint,
  max_tokens_per_day bigint,
  max_cost_per_day   bigint,
  max_cost_per_month bigint,
  policy             text                      -- a managed policy for its sessions; null: none
);

-- The API keys of tenants, which only nodes with the key file can open.
CREATE TABLE provider_key (
  tenant     uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  provider   text NOT NULL,
  sealed     bytea NOT NULL,                  -- nonce, AES-256-GCM with tenant and provider
  changed_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, provider)
);

-- What a node has used for a tenant on a day.
CREATE TABLE usage (
  tenant      uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  day         date NOT NULL,                  -- in UTC
  node        uuid NOT NULL,
  steps       bigint NOT NULL,
  tokens      bigint NOT NULL,
  cost_micros bigint NOT NULL,
  PRIMARY KEY (tenant, day, node)
);

CREATE TABLE fleet_user (
  tenant       uuid NOT NULL REFERENCES tenant (id) ON DELETE CASCADE,
  name         text NOT NULL,
  access_right text NOT NULL,                 -- read or write
  is_disabled  boolean NOT NULL DEFAULT false,
  PRIMARY KEY (tenant, name)
);

CREATE TABLE access_token (
  digest       bytea PRIMARY KEY,             -- SHA-256 of its text
  tenant       uuid NOT NULL,
  user_name    text NOT NULL,
  name         text NOT NULL,
  access_right text NOT NULL,                 -- at most that of the user counts
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  UNIQUE (tenant, user_name, name),
  FOREIGN KEY (tenant, user_name) REFERENCES fleet_user (tenant, name) ON DELETE CASCADE
);

CREATE TABLE node (
  id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),  -- new at every start of a process
  host        text NOT NULL,                  -- boot id and namespace of process ids
  process_id  bigint NOT NULL,
  address     text NOT NULL,                  -- where other nodes reach it; empty: not at all
  token       text NOT NULL,                  -- with which other nodes send requests to it
  version     text NOT NULL,
  fact_format smallint NOT NULL,              -- the newest format of facts that it reads
  capacity    integer NOT NULL,               -- sessions that it runs at once
  is_draining boolean NOT NULL DEFAULT false, -- claims no more due sessions
  lease       timestamptz NOT NULL            -- valid until then, by the clock of the database
);

CREATE TABLE session (
  tenant        uuid NOT NULL REFERENCES tenant (id),
  id            uuid NOT NULL,                -- version 7: begins with its time
  epoch         bigint NOT NULL,              -- a time; grows with every claim, and appends carry it
  node          uuid,                         -- the node that may write, if its lease is valid
  state         smallint NOT NULL DEFAULT 0,  -- 0 idle, 1 due, 2 claimed, 3 waiting for a user, 4 failed repeatedly
  due           timestamptz,                  -- since when it waits for a node; kept by a claim
  attempts      integer NOT NULL DEFAULT 0,   -- claims since the last progress or release
  head          bigint NOT NULL DEFAULT 0,    -- last position in the log
  head_check    bytea,                        -- `RecordCheck` of the fact at `head`
  used          bigint NOT NULL DEFAULT 0,    -- microseconds of the last prompt: the order of sessions
  fact_format   smallint NOT NULL DEFAULT 1,  -- the newest format among its facts
  workspace     text NOT NULL DEFAULT '',
  title         text NOT NULL DEFAULT '',
  changed_at    bigint NOT NULL DEFAULT 0,
  last_turn_end text,                         -- how the last turn ended, as JSON
  cost_micros   bigint NOT NULL DEFAULT 0,    -- in millionths of a dollar
  parent        uuid,                         -- the session that started it
  forked_from   uuid,                         -- the session that this one is a copy of
  PRIMARY KEY (tenant, id)
) WITH (
  -- Every append updates the row. No index has a column that an append changes, except `used` with a
  -- prompt, so the new version of the row can stay on its page.
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02
);
CREATE INDEX session_used   ON session (tenant, used DESC, id DESC);
CREATE INDEX session_due    ON session (due) WHERE state = 1;
CREATE INDEX session_node   ON session (node) WHERE node IS NOT NULL;
CREATE INDEX session_failed ON session (tenant) WHERE state = 4;
CREATE INDEX session_parent ON session (tenant, parent) WHERE parent IS NOT NULL;

CREATE TABLE event (
  tenant  uuid NOT NULL,
  session uuid NOT NULL,
  seq     bigint NOT NULL,
  epoch   bigint NOT NULL,
  at      bigint NOT NULL,
  kind    text NOT NULL,
  format  smallint NOT NULL,
  -- Text, not jsonb: checks cover bytes, and jsonb refuses \u0000.
  body    text,                               -- the fact as JSON, or
  blob    text,                               -- the blob that contains it
  origin  text,                               -- its `FactOrigin` as JSON, if it has one
  "check" bytea NOT NULL,                     -- `RecordCheck` of the other columns and the fact before
  PRIMARY KEY (tenant, session, seq)
) PARTITION BY RANGE (session);               -- ids begin with a time: a range of ids is a month
CREATE TABLE event_rest PARTITION OF event DEFAULT;

-- Prompts and turn boundaries, so that they can be read without the rest of the log.
CREATE INDEX event_turns ON event (tenant, session, seq)
  WHERE kind IN ('prompt_submitted', 'turn_started', 'turn_ended', 'rewound');

-- Answers of users, for operators.
CREATE INDEX event_answers ON event (at)
  WHERE kind IN ('permission_answered', 'question_answered');

-- Operations for sessions that another node has, or no node: stored before they are acknowledged.
CREATE TABLE inbox (
  tenant     uuid NOT NULL,
  session    uuid NOT NULL,
  number     bigint GENERATED ALWAYS AS IDENTITY,  -- the order of operations
  op         uuid NOT NULL,
  body       text NOT NULL,
  queued_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant, session, op)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX inbox_queued_at ON inbox (queued_at);

CREATE TABLE blob (
  tenant uuid NOT NULL,
  name   text NOT NULL COLLATE "C",           -- SHA-256 of the plain bytes
  size   bigint NOT NULL,                     -- of the plain bytes
  at     timestamptz NOT NULL DEFAULT now(),  -- when it was last stored
  body   bytea,                               -- a zstd frame, or
  object text,                                -- the key of the object that contains it
  PRIMARY KEY (tenant, name)
);
ALTER TABLE blob ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE blob_use (
  tenant  uuid NOT NULL,
  blob    text NOT NULL COLLATE "C",
  session uuid NOT NULL,
  PRIMARY KEY (tenant, blob, session)
);
CREATE INDEX blob_use_session ON blob_use (tenant, session);

-- Objects that are to be removed: those that blobs no longer need, and new ones until their blob is
-- stored. A new one is not removed before that must have happened.
CREATE TABLE object_removal (
  tenant uuid NOT NULL,
  key    text NOT NULL,
  at     timestamptz NOT NULL,                -- when it may be removed
  PRIMARY KEY (tenant, key)
);
