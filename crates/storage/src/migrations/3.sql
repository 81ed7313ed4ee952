-- What was asked and how turns follow each other, without reading all that was done. A query names the
-- same kinds, in the same words, or it is not found.
CREATE INDEX event_landmark ON event (session, seq)
  WHERE kind IN ('prompted', 'turn_started', 'turn_ended', 'reverted');
