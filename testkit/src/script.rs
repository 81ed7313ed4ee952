//! What a scripted model says, one reply a section, one thing a line.
//!
//! | line | what it sends |
//! |---|---|
//! | `say TEXT`, `think TEXT` | text, reasoning; `\n` is a line end |
//! | `call TOOL JSON` | a tool call, its arguments in pieces |
//! | `finish REASON` | another finish reason than the usual one |
//! | `usage INPUT OUTPUT` | token counts |
//! | `status CODE BODY` | an HTTP error instead of a stream |
//! | `header NAME VALUE` | a response header |
//! | `raw TEXT` | exactly these bytes; `\n` is a line end |
//! | `late MS` | nothing at all, not even a head, for a while |
//! | `gate NAME` | nothing, until the test opens the gate |
//! | `stall MS` | nothing for a while |
//! | `cut` | the end of the connection, in the middle of the stream |
//! | `split BYTES` | everything after it in pieces of that size |
//! | `once LINE` | that line, but only the first time this reply is asked for |

use crate::case::Case;
use serde_json::Value;
use std::sync::Arc;

/// All replies of a model. Which one it gives depends on how many it has given in the
/// conversation it is shown, so a question asked again after a crash gets the same answer. Where
/// they have no end, a function says what follows a request.
#[derive(Clone)]
pub struct Script {
    replies: Replies,
}

#[derive(Clone)]
enum Replies {
    Listed(Vec<Vec<Line>>),
    Endless(Arc<dyn Fn(&Value) -> String + Send + Sync>),
}

/// One line of a script; the table above says what each does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table above describes every line")]
pub enum Line {
    Say(String),
    Think(String),
    Call(String, String),
    Finish(String),
    Usage(u64, u64),
    Status(u16, String),
    Header(String, String),
    Raw(String),
    Late(u64),
    Gate(String),
    Stall(u64),
    Cut,
    Split(usize),
    Once(Box<Line>),
}

impl Script {
    /// The `== model` sections of a case.
    pub fn of(case: &Case) -> Script {
        Script::new(case.all("model").map(|section| section.body.as_str()))
    }

    /// A script from the text of its replies.
    pub fn new<'a>(replies: impl IntoIterator<Item = &'a str>) -> Script {
        Script { replies: Replies::Listed(replies.into_iter().map(lines).collect()) }
    }

    /// A script without end: the text of a reply for the body of each request. Its model may be
    /// asked for hours, so it keeps no requests.
    pub fn endless(reply: impl Fn(&Value) -> String + Send + Sync + 'static) -> Script {
        Script { replies: Replies::Endless(Arc::new(reply)) }
    }
}

impl Script {
    /// What to do for the reply to a conversation with this many answers, when it is asked for
    /// the `time`th time, counting from 0.
    pub fn reply(&self, answers: usize, time: usize) -> Option<Vec<Line>> {
        let Replies::Listed(replies) = &self.replies else { return None };
        let lines = replies.get(answers)?.iter().filter_map(|line| match line {
            Line::Once(line) if time == 0 => Some((**line).clone()),
            Line::Once(_) => None,
            line => Some(line.clone()),
        });
        Some(lines.collect())
    }

    /// What to do for a request, if the script has no end.
    pub(crate) fn follow(&self, request: &Value) -> Option<Vec<Line>> {
        match &self.replies {
            Replies::Listed(_) => None,
            Replies::Endless(reply) => Some(lines(&reply(request))),
        }
    }
}

fn lines(text: &str) -> Vec<Line> {
    text.lines().filter(|line| !line.is_empty()).map(parse).collect()
}

fn parse(line: &str) -> Line {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let unescaped = || rest.replace("\\n", "\n");
    let pair = || rest.split_once(' ').unwrap_or((rest, ""));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
    match word {
        "say" => Line::Say(unescaped()),
        "think" => Line::Think(unescaped()),
        "call" => Line::Call(pair().0.into(), pair().1.into()),
        "finish" => Line::Finish(rest.into()),
        "usage" => Line::Usage(number(pair().0), number(pair().1)),
        "status" => Line::Status(number(pair().0) as u16, pair().1.into()),
        "header" => Line::Header(pair().0.into(), pair().1.into()),
        "raw" => Line::Raw(unescaped()),
        "late" => Line::Late(number(rest)),
        "gate" => Line::Gate(rest.into()),
        "stall" => Line::Stall(number(rest)),
        "cut" => Line::Cut,
        "once" => Line::Once(Box::new(parse(rest))),
        "split" => Line::Split(number(rest) as usize),
        _ => panic!("a scripted model cannot `{line}`"),
    }
}
