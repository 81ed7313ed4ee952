//! A recap of a resumed session: the last prompt and the last `ModelText`.

use super::state::{LinearPendingResponse, LinearUi, MAX_READ_LINES};
use std::collections::BTreeMap;
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::{Fact, FactRecord, SessionId, SessionQuery};

/// The number of records read from the end of the log.
const RECAP_RECORDS: u64 = 400;

impl LinearUi {
    /// Requests the last `RECAP_RECORDS` records of a session.
    pub(super) fn request_recap(&mut self, session: SessionId, head: u64) {
        let after = head.saturating_sub(RECAP_RECORDS);
        let query = SessionQuery::Events { session, after, limit: None };
        self.send_request(FrontendRequest::Query { query }, LinearPendingResponse::Recap);
    }

    /// Prints the last prompt and the last text of the model after it.
    pub(super) fn print_recap(&mut self, events: &[FactRecord]) {
        let (prompt, answer) = last_exchange(events);
        if let Some(prompt) = prompt {
            self.print("your last prompt:");
            self.print_quoted(prompt, MAX_READ_LINES);
        }
        if let Some(answer) = answer {
            self.print("the model's last answer:");
            self.print_quoted(answer.trim_matches('\n'), MAX_READ_LINES);
        }
    }
}

/// Returns the last prompt and the last model text after it, without the records that a `Rewound`
/// fact removed.
fn last_exchange(events: &[FactRecord]) -> (Option<&str>, Option<&str>) {
    let (mut prompts, mut answers) = (BTreeMap::new(), BTreeMap::new());
    for record in events {
        match &record.fact {
            Fact::PromptSubmitted { text, .. } => {
                prompts.insert(record.seq, text.as_str());
            }
            Fact::ModelText { text, .. } if !text.trim().is_empty() => {
                answers.insert(record.seq, text.as_str());
            }
            Fact::Rewound { to } => {
                prompts.split_off(&(to + 1));
                answers.split_off(&(to + 1));
            }
            _ => {}
        }
    }
    let (prompt, answer) = (prompts.pop_last(), answers.pop_last());
    let prompt_seq = prompt.map_or(0, |(seq, _)| seq);
    let answer = answer.filter(|(seq, _)| *seq > prompt_seq);
    (prompt.map(|(_, text)| text), answer.map(|(_, text)| text))
}
