-- The session that this one is a copy of. Part of `row_check` if it is set.
ALTER TABLE session ADD COLUMN forked_from BLOB;
