//! Parses the lines that a program writes. Pure functions over untrusted bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use windlass_protocol::{QuestionOption, UserQuestion};

/// Bounds the line with which a program answers `describe`.
const MAX_DEFINITION_BYTES: usize = 1 << 20;
/// Bounds progress messages, titles and file names.
const MAX_LABEL_CHARS: usize = 400;
/// Bounds the `metadata` of a result; larger metadata is dropped.
const MAX_METADATA_BYTES: usize = 64 << 10;
/// Bounds the attachments of a result.
const MAX_ATTACHMENTS: usize = 16;
/// Bounds the subjects of a permission request.
const MAX_PERMISSION_SUBJECTS: usize = 100;
/// Bounds the options of a user question.
const MAX_QUESTION_OPTIONS: usize = 12;

/// The `result` of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ToolReply {
    pub(crate) text: String,
    pub(crate) title: String,
    pub(crate) metadata: Map<String, Value>,
    pub(crate) files: Vec<ReplyFile>,
}

/// A file in the `attachments` of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplyFile {
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) bytes: Vec<u8>,
}

/// A line from a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProgramMessage {
    Progress(String),
    Ask(UserQuestion),
    /// A question that the permission rules may answer.
    AskPermission {
        /// The permission key of the rules.
        key: String,
        /// The subjects, which the rules match with their patterns.
        subjects: Vec<String>,
        question: UserQuestion,
        /// True if the user has allowed it for the whole session.
        remembered: bool,
    },
    /// A request for the facts of the session for which the program is called.
    ReadSession,
    Done(Box<ToolReply>),
    Failed(String),
}

#[derive(Deserialize)]
struct ProgramMessageLine {
    progress: Option<String>,
    ask: Option<ProgramQuestion>,
    read: Option<SessionPart>,
    result: Option<Box<RawValue>>,
    error: Option<String>,
}

/// The part of the session that a program reads.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SessionPart {
    Session,
}

#[derive(Deserialize)]
struct ProgramQuestion {
    #[serde(default)]
    header: String,
    question: String,
    #[serde(default)]
    options: Vec<ProgramQuestionOption>,
    #[serde(default)]
    multiple: bool,
    permission: Option<RequestedPermission>,
}

#[derive(Deserialize)]
struct RequestedPermission {
    key: String,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    remembered: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProgramQuestionOption {
    Label(String),
    Detailed {
        label: String,
        #[serde(default)]
        description: String,
    },
}

#[derive(Deserialize)]
struct RawToolResult {
    #[serde(default)]
    text: String,
    #[serde(default)]
    title: String,
    metadata: Option<Box<RawValue>>,
    #[serde(default)]
    attachments: Vec<ResultAttachment>,
}

#[derive(Deserialize)]
struct ResultAttachment {
    #[serde(default)]
    name: String,
    mime: String,
    base64: String,
}

impl ProgramMessage {
    /// Parses a line. The error is a phrase to follow the name of the tool.
    pub(crate) fn parse(line: &[u8]) -> Result<ProgramMessage, String> {
        let line: ProgramMessageLine =
            serde_json::from_slice(line).map_err(|error| malformed_message(&error))?;
        match line {
            ProgramMessageLine { error: Some(text), .. } if text.trim().is_empty() => {
                Ok(ProgramMessage::Failed("The tool failed without giving a reason.".into()))
            }
            ProgramMessageLine { error: Some(text), .. } => Ok(ProgramMessage::Failed(text)),
            ProgramMessageLine { result: Some(result), .. } => {
                Ok(ProgramMessage::Done(Box::new(parse_reply(result.get())?)))
            }
            ProgramMessageLine { ask: Some(mut question), .. } => {
                let permission = question.permission.take();
                let question = to_user_question(question);
                match permission {
                    None => Ok(ProgramMessage::Ask(question)),
                    Some(permission) if permission.patterns.len() > MAX_PERMISSION_SUBJECTS => Err(
                        format!("asks for more than {MAX_PERMISSION_SUBJECTS} patterns at once"),
                    ),
                    Some(RequestedPermission { key, patterns, remembered }) => {
                        let question = UserQuestion { is_permission: true, ..question };
                        let subjects = patterns;
                        Ok(ProgramMessage::AskPermission { key, subjects, question, remembered })
                    }
                }
            }
            ProgramMessageLine { read: Some(SessionPart::Session), .. } => {
                Ok(ProgramMessage::ReadSession)
            }
            ProgramMessageLine { progress: Some(text), .. } => {
                Ok(ProgramMessage::Progress(single_line(&text)))
            }
            ProgramMessageLine { .. } => Err("answered with neither `result` nor `error`".into()),
        }
    }
}

fn malformed_message(error: &serde_json::Error) -> String {
    format!("sent an invalid response: {}", single_line(&error.to_string()))
}

/// Parses a result: a string, or an object with `text`.
fn parse_reply(json: &str) -> Result<ToolReply, String> {
    if json.starts_with('"') {
        let text = serde_json::from_str(json).map_err(|error| malformed_message(&error))?;
        return Ok(ToolReply { text, ..ToolReply::default() });
    }
    let result: RawToolResult =
        serde_json::from_str(json).map_err(|error| malformed_message(&error))?;
    let metadata = match result.metadata {
        Some(raw) if raw.get().len() <= MAX_METADATA_BYTES => serde_json::from_str(raw.get())
            .map_err(|_| "answered with `metadata` that is not an object")?,
        Some(_) | None => Map::new(),
    };
    if result.attachments.len() > MAX_ATTACHMENTS {
        return Err(format!("answered with more than {MAX_ATTACHMENTS} attachments"));
    }
    let files = result.attachments.into_iter().map(decode_attachment).collect::<Result<_, _>>()?;
    Ok(ToolReply { text: result.text, title: single_line(&result.title), metadata, files })
}

fn decode_attachment(attachment: ResultAttachment) -> Result<ReplyFile, String> {
    let name = single_line(&attachment.name);
    let name = if name.is_empty() { "file".to_owned() } else { name };
    let bytes = STANDARD
        .decode(&attachment.base64)
        .map_err(|_| format!("answered with an attachment {name} that is not valid base64"))?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "/+-._".contains(c);
    if !attachment.mime.contains('/')
        || attachment.mime.len() > 100
        || !attachment.mime.chars().all(is_allowed)
    {
        return Err(format!("answered with an attachment {name} without a valid media type"));
    }
    Ok(ReplyFile { name, mime: attachment.mime, bytes })
}

fn to_user_question(question: ProgramQuestion) -> UserQuestion {
    let to_option = |option: ProgramQuestionOption| match option {
        ProgramQuestionOption::Label(label) => {
            QuestionOption { label: single_line(&label), description: String::new() }
        }
        ProgramQuestionOption::Detailed { label, description } => {
            QuestionOption { label: single_line(&label), description: single_line(&description) }
        }
    };
    let options: Vec<QuestionOption> =
        question.options.into_iter().take(MAX_QUESTION_OPTIONS).map(to_option).collect();
    UserQuestion {
        header: single_line(&question.header),
        question: single_line(&question.question),
        allow_custom: options.is_empty(),
        options,
        allow_multiple: question.multiple,
        asker: None,
        is_permission: false,
    }
}

/// Converts text to a single bounded line without control characters, for display to the user.
fn single_line(text: &str) -> String {
    let line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    line.take(MAX_LABEL_CHARS).collect::<String>().trim().to_owned()
}

/// Parses a program's answer to `describe` and removes the request `id`. The error is a phrase to
/// follow the name of the program.
pub(crate) fn parse_description(line: &[u8]) -> Result<Value, String> {
    if line.len() > MAX_DEFINITION_BYTES {
        return Err(format!(
            "sent a description of {} bytes; the limit is {MAX_DEFINITION_BYTES}",
            line.len()
        ));
    }
    let mut description: Map<String, Value> = serde_json::from_slice(line)
        .map_err(|_| "did not answer `describe` with a JSON object".to_owned())?;
    if let Some(Value::String(error)) = description.get("error") {
        return Err(format!("says: {}", single_line(error)));
    }
    description.shift_remove("id");
    Ok(Value::Object(description))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<ProgramMessage, String> {
        ProgramMessage::parse(text.as_bytes())
    }

    #[test]
    fn a_result_is_a_string_or_an_object() {
        let text = |text: &str| {
            ProgramMessage::Done(Box::new(ToolReply { text: text.into(), ..ToolReply::default() }))
        };
        assert_eq!(parse(r#"{"id":1,"result":"x"}"#), Ok(text("x")));
        assert_eq!(parse(r#"{"id":1,"result":{"text":"x"}}"#), Ok(text("x")));
        let Ok(ProgramMessage::Done(reply)) = parse(
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
    fn an_invalid_message_is_an_error() {
        for (line, expected) in [
            (r#"{"id":1}"#, "neither"),
            (r#"{"id":1,"result":7}"#, "invalid response"),
            (r#"{"id":1,"result":{"text":7}}"#, "invalid response"),
            (r#"{"id":1,"result":{"attachments":[{"mime":"image/png","base64":"%%"}]}}"#, "base64"),
            (
                r#"{"id":1,"result":{"attachments":[{"mime":"x\r\ny/z","base64":""}]}}"#,
                "media type",
            ),
            (r#"{"id":1,"result":{"metadata":[1]}}"#, "metadata"),
        ] {
            assert!(parse(line).unwrap_err().contains(expected), "{line}: {:?}", parse(line));
        }
    }

    #[test]
    fn options_are_limited_and_a_question_without_options_allows_any_answer() {
        let many = (0..100).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(",");
        let line = format!(r#"{{"id":1,"ask":{{"question":"Which?","options":[{many}]}}}}"#);
        let Ok(ProgramMessage::Ask(question)) = parse(&line) else { panic!() };
        assert_eq!((question.options.len(), question.allow_custom), (MAX_QUESTION_OPTIONS, false));
        let Ok(ProgramMessage::Ask(question)) = parse(r#"{"ask":{"question":"Who?"}}"#) else {
            panic!()
        };
        assert!(question.allow_custom);
    }

    proptest! {
        #[test]
        fn no_line_causes_a_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = ProgramMessage::parse(&line);
            let _ = parse_description(&line);
        }
    }
}
