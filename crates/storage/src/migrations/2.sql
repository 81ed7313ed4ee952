ALTER TABLE session ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;  -- in millionths of a dollar
ALTER TABLE session ADD COLUMN parent BLOB;                       -- the session that began it
