//! Replies of a scripted model: one reply a section, one action a line.
//!
//! | line | effect |
//! |---|---|
//! | `say TEXT`, `think TEXT` | text, reasoning; `\n` is a line break |
//! | `call TOOL JSON` | a tool call, its arguments in pieces |
//! | `finish REASON` | another finish reason than the usual one |
//! | `usage INPUT OUTPUT` | token counts |
//! | `status CODE BODY` | an HTTP error instead of a stream |
//! | `header NAME VALUE` | a response header |
//! | `raw TEXT` | exactly these bytes; `\n` is a line break |
//! | `late MS` | a pause before the response headers |
//! | `gate NAME` | a pause until the test opens the gate |
//! | `stall MS` | a pause in the stream |
//! | `cut` | the end of the connection, in the middle of the stream |
//! | `split BYTES` | everything after it in pieces of that size |
//! | `once LINE` | that line, but only the first time this reply is asked for |

use crate::case_file::Case;
use serde_json::Value;
use std::sync::Arc;

/// All replies of a model. The number of answers in the conversation of a request selects the
/// reply, so a request that is repeated after a crash gets the same one. For an endless script, a
/// function returns the reply to each request.
#[derive(Clone)]
pub struct ModelScript {
    replies: Replies,
}

#[derive(Clone)]
enum Replies {
    Listed(Vec<Vec<ScriptLine>>),
    Endless(Arc<dyn Fn(&Value) -> String + Send + Sync>),
}

/// One line of a script; the table above describes each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table above describes every line")]
pub enum ScriptLine {
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
    Once(Box<ScriptLine>),
}

impl ModelScript {
    /// Creates a script from the `== model` sections of a case.
    pub fn from_case(case: &Case) -> ModelScript {
        ModelScript::new(case.all("model").map(|section| section.body.as_str()))
    }

    /// Creates a script from the text of its replies.
    pub fn new<'a>(replies: impl IntoIterator<Item = &'a str>) -> ModelScript {
        ModelScript { replies: Replies::Listed(replies.into_iter().map(parse_lines).collect()) }
    }

    /// Creates an endless script: `reply` returns the text of the reply to the body of a request.
    /// Its model may run for hours, so it records no requests.
    pub fn endless(reply: impl Fn(&Value) -> String + Send + Sync + 'static) -> ModelScript {
        ModelScript { replies: Replies::Endless(Arc::new(reply)) }
    }
}

impl ModelScript {
    /// Returns the reply to a conversation with this many answers, on this attempt, counted from 0.
    pub fn reply(&self, answers: usize, attempt: usize) -> Option<Vec<ScriptLine>> {
        let Replies::Listed(replies) = &self.replies else { return None };
        let lines = replies.get(answers)?.iter().filter_map(|line| match line {
            ScriptLine::Once(line) if attempt == 0 => Some((**line).clone()),
            ScriptLine::Once(_) => None,
            line => Some(line.clone()),
        });
        Some(lines.collect())
    }

    /// Returns the reply to a request if the script is endless.
    pub(crate) fn endless_reply(&self, request: &Value) -> Option<Vec<ScriptLine>> {
        match &self.replies {
            Replies::Listed(_) => None,
            Replies::Endless(reply) => Some(parse_lines(&reply(request))),
        }
    }
}

fn parse_lines(text: &str) -> Vec<ScriptLine> {
    text.lines().filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line(line: &str) -> ScriptLine {
    let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
    let unescape = || rest.replace("\\n", "\n");
    let pair = || rest.split_once(' ').unwrap_or((rest, ""));
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("not a number: {line}"));
    match command {
        "say" => ScriptLine::Say(unescape()),
        "think" => ScriptLine::Think(unescape()),
        "call" => ScriptLine::Call(pair().0.into(), pair().1.into()),
        "finish" => ScriptLine::Finish(rest.into()),
        "usage" => ScriptLine::Usage(number(pair().0), number(pair().1)),
        "status" => ScriptLine::Status(number(pair().0) as u16, pair().1.into()),
        "header" => ScriptLine::Header(pair().0.into(), pair().1.into()),
        "raw" => ScriptLine::Raw(unescape()),
        "late" => ScriptLine::Late(number(rest)),
        "gate" => ScriptLine::Gate(rest.into()),
        "stall" => ScriptLine::Stall(number(rest)),
        "cut" => ScriptLine::Cut,
        "once" => ScriptLine::Once(Box::new(parse_line(rest))),
        "split" => ScriptLine::Split(number(rest) as usize),
        _ => panic!("unknown line in a script: `{line}`"),
    }
}
