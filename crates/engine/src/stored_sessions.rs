//! Operations on sessions that are not open: fork, rename and search.

use crate::clock_and_ids::new_stamp;
use crate::engine::Engine;
use crate::faults::{config_fault, storage_fault};
use windlass_protocol::display_text::truncate_chars;
use windlass_protocol::{
    BlobRef, CallOutcome, Fact, FactRecord, Fault, LogSeq, ModelChoice, SessionId,
    SessionSearchHit, SessionSummary, Transcript, UnixMillis,
};
use windlass_storage::{StorageError, read_all};

/// The point at which a session is forked: always the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkPoint {
    /// The last turn that has ended.
    LastTurn,
    /// The turn with this number.
    Turn(u32),
    /// The last turn that ended at or before this log position.
    Position(LogSeq),
}

/// Maximum length of a title, which is shown in lists.
const MAX_TITLE_CHARS: usize = 200;

/// Bounds a search query; real queries have fewer and shorter words.
const MAX_SEARCH_WORDS: usize = 8;
const MAX_WORD_BYTES: usize = 100;

/// Maximum number of `SessionSearchHit`s; users do not read more.
const MAX_SEARCH_HITS: usize = 50;

/// Maximum number of candidate facts checked per session.
const MAX_CANDIDATE_FACTS: usize = 50;

/// Characters of a snippet before the first match, and in total.
const SNIPPET_LEAD_CHARS: usize = 30;
const MAX_SNIPPET_CHARS: usize = 120;

impl Engine {
    /// Starts a session with a copy of another session's log up to `point`, and returns its id.
    pub async fn fork(&self, session: SessionId, point: ForkPoint) -> Result<SessionId, Fault> {
        let records = read_all(&*self.log, session, 0).await.map_err(storage_fault)?;
        if records.is_empty() {
            return Err(storage_fault(StorageError::SessionNotFound { session }));
        }
        let Some(through) = find_turn_end(&records, point) else {
            return Err(fork_point_fault(session, point));
        };
        let stamp = new_stamp();
        let fork = SessionId(stamp.id);
        let copy = fork_records(records, through, stamp.at);
        let claim = self.log.claim(fork).await.map_err(storage_fault)?;
        self.log.append_records(&claim, 0, &copy).await.map_err(storage_fault)?;
        Ok(fork)
    }

    /// Changes the title of a session, which must not be open elsewhere. Returns the cleaned title.
    pub async fn rename(&self, session: SessionId, title: &str) -> Result<String, Fault> {
        let title = truncate_chars(&to_one_line(title), MAX_TITLE_CHARS);
        if title.is_empty() {
            return Err(config_fault("a title needs at least one word"));
        }
        if self.log.read(session, 0).await.map_err(storage_fault)?.is_empty() {
            return Err(storage_fault(StorageError::SessionNotFound { session }));
        }
        let claim = self.log.claim(session).await.map_err(storage_fault)?;
        let renamed = Fact::SessionRenamed { title: title.clone() };
        let at = new_stamp().at;
        self.log.append(&claim, claim.head, at, &[renamed]).await.map_err(storage_fault)?;
        Ok(title)
    }

    /// Reads a blob that a session stores outside its log.
    pub async fn read_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Fault> {
        self.log.get_blob(blob).await.map_err(storage_fault)
    }

    /// Searches sessions for words and returns the first match of each session.
    pub(crate) async fn search_sessions(
        &self,
        words: &str,
        sessions: Vec<SessionSummary>,
    ) -> Result<Vec<SessionSearchHit>, Fault> {
        let mut words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        if words.is_empty() {
            return Err(config_fault("no search words given"));
        }
        if words.len() > MAX_SEARCH_WORDS || words.iter().any(|word| word.len() > MAX_WORD_BYTES) {
            let message = format!(
                "search for at most {MAX_SEARCH_WORDS} words of at most {MAX_WORD_BYTES} bytes \
                 each"
            );
            return Err(config_fault(message));
        }
        let mut hits = Vec::new();
        for row in sessions {
            let candidates = self
                .log
                .search(row.session, &words, MAX_CANDIDATE_FACTS)
                .await
                .map_err(storage_fault)?;
            let hit = candidates.iter().find_map(|record| {
                let snippet = build_snippet(&searchable_text(&record.fact)?, &words)?;
                Some(SessionSearchHit {
                    session: row.session,
                    title: row.title.clone(),
                    workspace: row.workspace.clone(),
                    at: record.at,
                    seq: record.seq,
                    fact_kind: record.fact.kind().to_owned(),
                    snippet,
                })
            });
            hits.extend(hit);
            if hits.len() >= MAX_SEARCH_HITS {
                break;
            }
        }
        Ok(hits)
    }
}

fn fork_point_fault(session: SessionId, point: ForkPoint) -> Fault {
    config_fault(match point {
        ForkPoint::LastTurn => {
            format!("no turn of session {session} has ended yet; nothing to fork")
        }
        ForkPoint::Turn(turn) => format!(
            "turn {turn} of session {session} does not exist or has not ended. Leave out --at to \
             use the last one"
        ),
        ForkPoint::Position(seq) => format!(
            "no turn of session {session} had ended at position {seq}. Choose a later position, \
             or leave out --at"
        ),
    })
}

/// Finds the log position at which a turn ended. Turns that a rewind removed are found only by
/// `ForkPoint::Turn`, or by a position before the rewind.
pub(crate) fn find_turn_end(records: &[FactRecord], point: ForkPoint) -> Option<LogSeq> {
    let ends = records.iter().filter_map(|record| match record.fact {
        Fact::TurnEnded { turn, .. } => Some((Some(turn), record.seq)),
        Fact::Rewound { .. } => Some((None, record.seq)),
        _ => None,
    });
    // A `Rewound` before the first turn ends no turn.
    let ends: Vec<(Option<u32>, LogSeq)> = ends.skip_while(|(turn, _)| turn.is_none()).collect();
    let matches_point = |(turn, seq): &(Option<u32>, LogSeq)| match point {
        ForkPoint::LastTurn => true,
        ForkPoint::Turn(wanted) => *turn == Some(wanted),
        ForkPoint::Position(wanted) => *seq <= wanted,
    };
    ends.into_iter().rev().find(matches_point).map(|(_, seq)| seq)
}

/// Turns the start of a log, up to `through`, into the log of an independent session with a
/// `SessionForked` fact. It keeps the title, and the model that the user chose.
pub(crate) fn fork_records(
    mut records: Vec<FactRecord>,
    through: LogSeq,
    at: UnixMillis,
) -> Vec<FactRecord> {
    let whole = Transcript::from_log(&records);
    records.retain(|record| record.seq <= through);
    let mut source = None;
    if let Some(FactRecord { session, fact: Fact::SessionOpened { parent, .. }, .. }) =
        records.first_mut()
    {
        source = Some(*session);
        *parent = None;
    }
    let copied = Transcript::from_log(&records);
    let Some(session) = source else { return records };
    let mut facts = vec![Fact::SessionForked { source_session: session, through }];
    if whole.title != copied.title {
        facts.push(Fact::SessionRenamed { title: whole.title });
    }
    if whole.model_choice != copied.model_choice
        && let Some(ModelChoice { model, effort, .. }) = whole.model_choice
    {
        facts.push(Fact::ModelChanged { model, effort });
    }
    let added =
        (through + 1..).zip(facts).map(|(seq, fact)| FactRecord::new(session, seq, at, fact));
    records.extend(added);
    records
}

/// Returns the text of a `Fact` that a search should match.
fn searchable_text(fact: &Fact) -> Option<String> {
    if let Fact::PromptSubmitted { text, .. }
    | Fact::ModelText { text, .. }
    | Fact::SessionRenamed { title: text } = fact
    {
        return Some(text.clone());
    }
    if let Fact::ToolCalled { tool, arguments, .. } = fact {
        return Some(format!("{tool} {arguments}"));
    }
    let Fact::CallSettled { outcome, .. } = fact else { return None };
    // The text of `ResultUnknown` is our own wording, not a result.
    (*outcome != CallOutcome::ResultUnknown).then(|| outcome.text().to_owned())
}

/// Returns the text on one line, without terminal control sequences.
pub(crate) fn to_one_line(text: &str) -> String {
    let plain = windlass_toolkit::truncate_output::strip_controls(text);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the words with their context, if the text contains all of them.
fn build_snippet(text: &str, words: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    let mut first = usize::MAX;
    for word in words {
        first = first.min(lower.find(word)?);
    }
    // A character may have another length in lower case; the snippet then starts slightly earlier
    // or later.
    let position = lower.get(..first).map_or(0, |before| before.chars().count());
    let start = position.saturating_sub(SNIPPET_LEAD_CHARS);
    let tail: String = text.chars().skip(start).take(MAX_SNIPPET_CHARS * 2).collect();
    let line = to_one_line(&tail);
    let lead = if start > 0 { "…" } else { "" };
    Some(format!("{lead}{}", truncate_chars(&line, MAX_SNIPPET_CHARS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_excludes_rewound_turns_unless_a_turn_is_named() {
        let ended =
            |turn| Fact::TurnEnded { turn, end: windlass_protocol::TurnEndReason::Completed };
        let facts = [Fact::session_opened("/w", "0"), ended(1), ended(2), Fact::Rewound { to: 2 }];
        let session = SessionId(uuid::Uuid::nil());
        let records: Vec<FactRecord> = (1..)
            .zip(facts)
            .map(|(seq, fact)| FactRecord::new(session, seq, UnixMillis(0), fact))
            .collect();
        assert_eq!(find_turn_end(&records, ForkPoint::LastTurn), Some(4), "turn 2 was rewound");
        assert_eq!(
            find_turn_end(&records, ForkPoint::Turn(2)),
            Some(3),
            "a named turn is included"
        );
        assert_eq!(find_turn_end(&records, ForkPoint::Position(3)), Some(3));
    }

    #[test]
    fn a_snippet_shows_the_words_at_any_position() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let long =
            format!("{} the Needle\nin\u{1b}[31m hay {}", "x ".repeat(9_000), "y ".repeat(900));
        let found = build_snippet(&long, &words("needle hay")).unwrap();
        assert!(found.contains("the Needle in hay") && found.len() < 500, "{found}");
        assert_eq!(build_snippet(&long, &words("needle pin")), None);
        // Letters that grow or shrink in lower case.
        for odd in ["İ".repeat(500), "ẞ".repeat(500), "\u{212a}".repeat(500)] {
            assert!(build_snippet(&format!("{odd} needle"), &words("needle")).is_some());
        }
    }
}
