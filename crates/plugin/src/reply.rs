//! What a program says, line by line: pure, from bytes that anybody may have written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_protocol::{Inquiry, Suggestion};

/// How long a definition may be, in bytes.
const DEFINITION: usize = 256 << 10;
/// How long what is told of a call's progress, its title and its name for a file may be.
const SHORT: usize = 400;
/// How many bytes of facts for programs are kept.
const METADATA: usize = 64 << 10;
/// How many files may come with an answer.
const FILES: usize = 16;
/// How many answers a question may offer.
const OPTIONS: usize = 12;

/// What a call gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) title: String,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) files: Vec<File>,
}

/// A file that comes with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) bytes: Vec<u8>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Progress(String),
    Ask(Inquiry),
    Done(Box<Reply>),
    Failed(String),
}

#[derive(Deserialize)]
struct Line {
    progress: Option<String>,
    ask: Option<Question>,
    result: Option<Box<RawValue>>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    header: String,
    question: String,
    #[serde(default)]
    options: Vec<Choice>,
    #[serde(default)]
    multiple: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Choice {
    Label(String),
    Whole {
        label: String,
        #[serde(default)]
        description: String,
    },
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    text: String,
    #[serde(default)]
    title: String,
    metadata: Option<Box<RawValue>>,
    #[serde(default)]
    attachments: Vec<Attached>,
}

#[derive(Deserialize)]
struct Attached {
    #[serde(default)]
    name: String,
    mime: String,
    base64: String,
}

impl Said {
    /// Reads a line, or says what is wrong with it behind the name of a tool.
    pub(crate) fn read(line: &[u8]) -> Result<Said, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| unknown(&error))?;
        match line {
            Line { error: Some(text), .. } if text.trim().is_empty() => {
                Ok(Said::Failed("It failed, and does not say why.".into()))
            }
            Line { error: Some(text), .. } => Ok(Said::Failed(text)),
            Line { result: Some(answer), .. } => Ok(Said::Done(Box::new(reply(answer.get())?))),
            Line { ask: Some(question), .. } => Ok(Said::Ask(inquiry(question))),
            Line { progress: Some(text), .. } => Ok(Said::Progress(plain(&text))),
            Line { .. } => Err("answered with neither `result` nor `error`".into()),
        }
    }
}

fn unknown(error: &serde_json::Error) -> String {
    format!("answered in a form that is not understood: {}", plain(&error.to_string()))
}

/// An answer: a text, or an object with one.
fn reply(answer: &str) -> Result<Reply, String> {
    if answer.starts_with('"') {
        let text = serde_json::from_str(answer).map_err(|error| unknown(&error))?;
        return Ok(Reply { text, ..Reply::default() });
    }
    let whole: Whole = serde_json::from_str(answer).map_err(|error| unknown(&error))?;
    let metadata = match whole.metadata {
        Some(raw) if raw.get().len() <= METADATA => serde_json::from_str(raw.get())
            .map_err(|_| "answered with `metadata` that is no object")?,
        Some(_) | None => Map::new(),
    };
    if whole.attachments.len() > FILES {
        return Err(format!("answered with more than {FILES} attachments"));
    }
    let files = whole.attachments.into_iter().map(file).collect::<Result<_, _>>()?;
    Ok(Reply { text: whole.text, title: plain(&whole.title), metadata, files })
}

fn file(attached: Attached) -> Result<File, String> {
    let name = plain(&attached.name);
    let name = if name.is_empty() { "file".to_owned() } else { name };
    let bytes = STANDARD
        .decode(&attached.base64)
        .map_err(|_| format!("answered with an attachment {name} that is not base64"))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    if !attached.mime.contains('/') || attached.mime.len() > 100 || !attached.mime.chars().all(fits)
    {
        return Err(format!("answered with an attachment {name} without a media type"));
    }
    Ok(File { name, mime: attached.mime, bytes })
}

fn inquiry(question: Question) -> Inquiry {
    let choice = |choice: Choice| match choice {
        Choice::Label(label) => Suggestion { label: plain(&label), description: String::new() },
        Choice::Whole { label, description } => {
            Suggestion { label: plain(&label), description: plain(&description) }
        }
    };
    let options: Vec<Suggestion> = question.options.into_iter().take(OPTIONS).map(choice).collect();
    Inquiry {
        header: plain(&question.header),
        question: plain(&question.question),
        custom: options.is_empty(),
        options,
        multiple: question.multiple,
    }
}

/// One line for a person.
fn plain(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(SHORT).collect::<String>().trim().to_owned()
}

/// What a program says of itself, without the number of the request; or what is wrong with it,
/// behind the name of the program.
pub(crate) fn described(line: &[u8]) -> Result<Value, String> {
    if line.len() > DEFINITION {
        return Err(format!("describes itself in {} bytes; {DEFINITION} are the most", line.len()));
    }
    let mut said: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|_| "did not answer `describe` with a JSON object".to_owned())?;
    if let Some(Value::String(why)) = said.get("error") {
        return Err(format!("says: {}", plain(why)));
    }
    said.shift_remove("id");
    Ok(Value::Object(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Said, String> {
        Said::read(text.as_bytes())
    }

    #[test]
    fn an_answer_is_a_text_or_more() {
        let text =
            |text: &str| Said::Done(Box::new(Reply { text: text.into(), ..Reply::default() }));
        assert_eq!(read(r#"{"id":1,"result":"x"}"#), Ok(text("x")));
        assert_eq!(read(r#"{"id":1,"result":{"text":"x"}}"#), Ok(text("x")));
        let Ok(Said::Done(reply)) = read(
            r#"{"id":1,"result":{"text":"x","title":"a\nb","metadata":{"n":1},
            "attachments":[{"name":"p.png","mime":"image/png","base64":"aGk="}]}}"#,
        ) else {
            panic!()
        };
        assert_eq!(
            (reply.title.as_str(), reply.files.first().unwrap().bytes.as_slice()),
            ("a b", &b"hi"[..])
        );
        assert_eq!(reply.metadata.get("n"), Some(&Value::from(1)));
    }

    #[test]
    fn what_is_no_answer_says_so() {
        for (line, says) in [
            (r#"{"id":1}"#, "neither"),
            (r#"{"id":1,"result":7}"#, "not understood"),
            (r#"{"id":1,"result":{"text":7}}"#, "not understood"),
            (r#"{"id":1,"result":{"attachments":[{"mime":"image/png","base64":"%%"}]}}"#, "base64"),
            (
                r#"{"id":1,"result":{"attachments":[{"mime":"x\r\ny/z","base64":""}]}}"#,
                "media type",
            ),
            (r#"{"id":1,"result":{"metadata":[1]}}"#, "metadata"),
        ] {
            assert!(read(line).unwrap_err().contains(says), "{line}: {:?}", read(line));
        }
    }

    #[test]
    fn a_question_is_bounded_and_one_without_options_is_answered_freely() {
        let many = (0..100).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(",");
        let line = format!(r#"{{"id":1,"ask":{{"question":"Which?","options":[{many}]}}}}"#);
        let Ok(Said::Ask(inquiry)) = read(&line) else { panic!() };
        assert_eq!((inquiry.options.len(), inquiry.custom), (OPTIONS, false));
        let Ok(Said::Ask(inquiry)) = read(r#"{"ask":{"question":"Who?"}}"#) else { panic!() };
        assert!(inquiry.custom);
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Said::read(&line);
            let _ = described(&line);
        }
    }
}
