//! Care for sessions that nobody works in right now: a fork, another title, a search.

use crate::driver;
use crate::host::{Engine, refused, storage};
use windlass_protocol::text::beginning;
use windlass_protocol::{
    BlobRef, Fact, Fault, Hit, Millis, Outcome, Record, Seq, SessionId, SessionSummary, Transcript,
};
use windlass_storage::{Error, read_all};

/// Where a session is forked: always at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Of the last one that has ended.
    Last,
    /// Of this one.
    Turn(u32),
    /// Of the last one that had ended at this position of the log.
    At(Seq),
}

/// A title is read in a list.
const LONGEST_TITLE: usize = 200;

/// More words than this, or longer ones, nobody looks for.
const MOST_WORDS: usize = 8;
const LONGEST_WORD: usize = 100;

/// So many sessions are named; more would not be read.
const MOST_HITS: usize = 50;

/// So many facts of a session are looked at closer.
const MOST_LOOKS: usize = 50;

/// How much of a text is shown before the words, and all in all.
const LEAD: usize = 30;
const SNIPPET: usize = 120;

impl Engine {
    /// Begins a session with a copy of another one's beginning, and gives its name.
    pub async fn fork(&self, session: SessionId, point: Point) -> Result<SessionId, Fault> {
        let records = read_all(&*self.log, session, 0).await.map_err(storage)?;
        if records.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let Some(through) = cut(&records, point) else { return Err(no_such_end(session, point)) };
        let stamp = driver::stamp();
        let fork = SessionId(stamp.id);
        let copy = beginning_of(records, through, stamp.at);
        let claim = self.log.claim(fork).await.map_err(storage)?;
        self.log.restore(&claim, &copy).await.map_err(storage)?;
        Ok(fork)
    }

    /// Gives a session another title. It must not be open elsewhere.
    pub async fn rename(&self, session: SessionId, title: &str) -> Result<String, Fault> {
        let title = beginning(&one_line(title), LONGEST_TITLE);
        if title.is_empty() {
            return Err(refused("a title needs at least one word"));
        }
        if self.log.read(session, 0).await.map_err(storage)?.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let claim = self.log.claim(session).await.map_err(storage)?;
        let renamed = Fact::renamed(title.clone());
        let at = driver::stamp().at;
        self.log.append(&claim, claim.head, at, &[renamed]).await.map_err(storage)?;
        Ok(title)
    }

    /// Bytes that a session keeps outside its log.
    pub async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, Fault> {
        self.log.get_blob(blob).await.map_err(storage)
    }

    /// Where words were said: the first place in each session.
    pub(crate) async fn find(
        &self,
        words: &str,
        sessions: Vec<SessionSummary>,
    ) -> Result<Vec<Hit>, Fault> {
        let mut words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        words.sort_unstable_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        if words.is_empty() {
            return Err(refused("say which words to look for"));
        }
        if words.len() > MOST_WORDS || words.iter().any(|word| word.len() > LONGEST_WORD) {
            let message = format!(
                "look for at most {MOST_WORDS} words, none longer than {LONGEST_WORD} bytes"
            );
            return Err(refused(message));
        }
        let mut hits = Vec::new();
        for row in sessions {
            let found = self.log.search(row.session, &words, MOST_LOOKS).await.map_err(storage)?;
            let hit = found.iter().find_map(|record| {
                let snippet = snippet(&said(&record.fact)?, &words)?;
                let (seq, at, kind) = (record.seq, record.at, record.fact.kind().to_owned());
                let (title, workspace) = (row.title.clone(), row.workspace.clone());
                Some(Hit { session: row.session, title, workspace, at, seq, kind, snippet })
            });
            hits.extend(hit);
            if hits.len() >= MOST_HITS {
                break;
            }
        }
        Ok(hits)
    }
}

fn no_such_end(session: SessionId, point: Point) -> Fault {
    refused(match point {
        Point::Last => {
            format!("no turn of session {session} has ended yet; there is nothing to fork")
        }
        Point::Turn(turn) => format!(
            "turn {turn} of session {session} has not ended, or there is none. Leave out --at for \
             the last one"
        ),
        Point::At(seq) => format!(
            "no turn of session {session} had ended at position {seq}. Choose a later one, or leave \
             out --at"
        ),
    })
}

/// The position at which a turn ended. What was stepped back over counts again only for whoever names
/// one of its turns.
pub(crate) fn cut(records: &[Record], point: Point) -> Option<Seq> {
    let ends = records.iter().filter_map(|record| match record.fact {
        Fact::TurnEnded { turn, .. } => Some((Some(turn), record.seq)),
        Fact::Reverted { .. } => Some((None, record.seq)),
        _ => None,
    });
    // A step back before there was a turn ends none.
    let ends: Vec<(Option<u32>, Seq)> = ends.skip_while(|(turn, _)| turn.is_none()).collect();
    let meant = |(turn, seq): &(Option<u32>, Seq)| match point {
        Point::Last => true,
        Point::Turn(wanted) => *turn == Some(wanted),
        Point::At(wanted) => *seq <= wanted,
    };
    ends.into_iter().rev().find(meant).map(|(_, seq)| seq)
}

/// The beginning of a log as the log of a session of its own. It keeps its title.
pub(crate) fn beginning_of(mut records: Vec<Record>, through: Seq, at: Millis) -> Vec<Record> {
    let title = Transcript::of(&records).title;
    records.retain(|record| record.seq <= through);
    let mut from = None;
    if let Some(Record { session, fact: Fact::Opened { parent, .. }, .. }) = records.first_mut() {
        (from, *parent) = (Some(*session), None);
    }
    let named = Transcript::of(&records).title;
    let Some(session) = from else { return records };
    let mut facts = vec![Fact::Forked { from: session, through }];
    if title != named {
        facts.push(Fact::renamed(title));
    }
    let more = (through + 1..).zip(facts).map(|(seq, fact)| Record { session, seq, at, fact });
    records.extend(more);
    records
}

/// What a fact says, as far as somebody would look for it.
fn said(fact: &Fact) -> Option<String> {
    if let Fact::Prompted { text, .. }
    | Fact::Said { text, .. }
    | Fact::Renamed { title: text, .. } = fact
    {
        return Some(text.clone());
    }
    if let Fact::Called { tool, arguments, .. } = fact {
        return Some(format!("{tool} {arguments}"));
    }
    let Fact::Settled { outcome, .. } = fact else { return None };
    // What is said of a lost result are words of ours.
    (*outcome != Outcome::Unknown).then(|| outcome.text().to_owned())
}

/// A text that takes up one line and steers no terminal.
pub(crate) fn one_line(text: &str) -> String {
    let plain = windlass_toolkit::bound::plain(text);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words and what stands around them, if all of them are there.
fn snippet(text: &str, words: &[String]) -> Option<String> {
    let lower = text.to_lowercase();
    let mut first = usize::MAX;
    for word in words {
        first = first.min(lower.find(word)?);
    }
    // A letter may have another length in lower case; then a little more or less is shown.
    let place = lower.get(..first).map_or(0, |before| before.chars().count());
    let start = place.saturating_sub(LEAD);
    let tail: String = text.chars().skip(start).take(SNIPPET * 2).collect();
    let line = one_line(&tail);
    let lead = if start > 0 { "…" } else { "" };
    Some(format!("{lead}{}", beginning(&line, SNIPPET)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_has_what_counts_unless_a_turn_is_named() {
        let ended = |turn| Fact::TurnEnded { turn, end: windlass_protocol::TurnEnd::Done };
        let facts = [Fact::opened("/w", "0"), ended(1), ended(2), Fact::Reverted { to: 2 }];
        let session = SessionId(uuid::Uuid::nil());
        let records: Vec<Record> = (1..)
            .zip(facts)
            .map(|(seq, fact)| Record { session, seq, at: Millis(0), fact })
            .collect();
        assert_eq!(cut(&records, Point::Last), Some(4), "turn 2 stays out");
        assert_eq!(cut(&records, Point::Turn(2)), Some(3), "and is brought back");
        assert_eq!(cut(&records, Point::At(3)), Some(3));
    }

    #[test]
    fn a_snippet_shows_the_words_wherever_they_stand() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let long =
            format!("{} the Needle\nin\u{1b}[31m hay {}", "x ".repeat(9_000), "y ".repeat(900));
        let found = snippet(&long, &words("needle hay")).unwrap();
        assert!(found.contains("the Needle in hay") && found.len() < 500, "{found}");
        assert_eq!(snippet(&long, &words("needle pin")), None);
        // Letters that grow or shrink in lower case.
        for odd in ["İ".repeat(500), "ẞ".repeat(500), "\u{212a}".repeat(500)] {
            assert!(snippet(&format!("{odd} needle"), &words("needle")).is_some());
        }
    }
}
