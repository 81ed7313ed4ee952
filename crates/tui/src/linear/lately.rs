//! What was said last in a session that is opened again.

use super::talk::{Awaited, Linear, MOST};
use std::collections::BTreeMap;
use windlass_protocol::wire::Request;
use windlass_protocol::{Fact, Query, Record, SessionId};

/// So many entries of its end are looked at.
const LOOKED_AT: u64 = 400;

impl Linear {
    /// Asks for the end of a session.
    pub(super) fn look_back(&mut self, session: SessionId, head: u64) {
        let after = head.saturating_sub(LOOKED_AT);
        let query = Query::Events { session, after, most: None };
        self.ask(Request::Query { query }, Awaited::Lately);
    }

    /// Reads out what was asked last, and the last of what the model said to it.
    pub(super) fn lately(&mut self, events: &[Record]) {
        let (asked, said) = last(events);
        if let Some(asked) = asked {
            self.say("you asked last:");
            self.quote(asked, MOST);
        }
        if let Some(said) = said {
            self.say("the model said last:");
            self.quote(said.trim_matches('\n'), MOST);
        }
    }
}

/// The last prompt, and the last that was said after it. What was stepped back over is not there.
fn last(events: &[Record]) -> (Option<&str>, Option<&str>) {
    let (mut asked, mut said) = (BTreeMap::new(), BTreeMap::new());
    for record in events {
        match &record.fact {
            Fact::Prompted { text, .. } => {
                asked.insert(record.seq, text.as_str());
            }
            Fact::Said { text, .. } if !text.trim().is_empty() => {
                said.insert(record.seq, text.as_str());
            }
            Fact::Reverted { to } => {
                asked.split_off(&(to + 1));
                said.split_off(&(to + 1));
            }
            _ => {}
        }
    }
    let (asked, said) = (asked.pop_last(), said.pop_last());
    let since = asked.map_or(0, |(seq, _)| seq);
    (asked.map(|(_, text)| text), said.filter(|(seq, _)| *seq > since).map(|(_, text)| text))
}
