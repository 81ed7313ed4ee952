//! What a hook says, in our own words: nothing, or one JSON object. There is no word for yes: a hook
//! lets pass what others then decide on.

use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_protocol::Point;
use windlass_toolkit::{Matter, Refusal, Said};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Reply {
    verdict: Word,
    reason: Option<String>,
    arguments: Option<Map<String, Value>>,
    output: Option<String>,
    prompt: Option<String>,
    description: Option<String>,
    parameters: Option<Map<String, Value>>,
    params: Option<Map<String, Value>>,
    system: Option<String>,
    context: Option<String>,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Word {
    #[default]
    Pass,
    Refuse,
    Ask,
}

/// What a hook makes of a matter by what it said.
pub(super) fn read(said: &str, matter: Matter) -> Result<Said, Refusal> {
    if said.trim().is_empty() {
        return Ok(Said::Go(matter));
    }
    let reply: Map<String, Value> = object(said)?;
    let reply: Reply = serde_json::from_value(Value::Object(reply)).map_err(misunderstood)?;
    let reason = reply.reason.clone();
    let because = || reason.clone().unwrap_or_else(|| "it gave no reason".to_owned());
    if reply.verdict == Word::Refuse {
        return Err(Refusal::said(because()));
    }
    let asks = reply.verdict == Word::Ask;
    let context = reply.context.clone();
    let point = matter.point();
    let matter = rewritten(matter, reply)?;
    match context {
        Some(text) if hears(point) && !asks => Ok(Said::Context(matter, text)),
        Some(_) => Err(misplaced("context", point)),
        None if !asks => Ok(Said::Go(matter)),
        None if asks_at(point) => Ok(Said::Ask(matter, because())),
        None => Err(Refusal::failed(format!("nobody is asked at {point}"))),
    }
}

/// What a hook said, as one JSON object and nothing besides.
pub(super) fn object(said: &str) -> Result<Map<String, Value>, Refusal> {
    serde_json::from_str(said).map_err(misunderstood)
}

pub(super) fn misunderstood(error: serde_json::Error) -> Refusal {
    Refusal::failed(format!("what it said was not understood: {error}"))
}

/// True where a model can be told something besides.
pub(super) fn hears(point: Point) -> bool {
    matches!(point, Point::SessionStart | Point::Prompt | Point::Compaction)
}

/// True where a person can be asked.
pub(super) fn asks_at(point: Point) -> bool {
    matches!(point, Point::BeforeTool | Point::Permission)
}

fn misplaced(field: &str, point: Point) -> Refusal {
    Refusal::failed(format!("`{field}` means nothing at {point}"))
}

/// A matter as a hook wants it. What cannot be changed there is not passed over in silence: its
/// author believes that it was.
fn rewritten(matter: Matter, reply: Reply) -> Result<Matter, Refusal> {
    let point = matter.point();
    let Reply { arguments, output, prompt, description, parameters, params, system, .. } = reply;
    let given = [
        ("arguments", arguments.is_some(), point == Point::BeforeTool),
        ("output", output.is_some(), point == Point::AfterTool),
        ("prompt", prompt.is_some(), point == Point::Prompt),
        ("description", description.is_some(), point == Point::ToolDefinition),
        ("parameters", parameters.is_some(), point == Point::ToolDefinition),
        ("params", params.is_some(), point == Point::Params),
        ("system", system.is_some(), point == Point::System),
    ];
    if let Some((field, ..)) = given.iter().find(|(_, given, fits)| *given && !fits) {
        return Err(misplaced(field, point));
    }
    Ok(match matter {
        Matter::Before { tool, arguments: was } => {
            Matter::Before { tool, arguments: arguments.map_or(was, Value::Object) }
        }
        Matter::After { tool, arguments, output: mut was } => {
            was.text = output.unwrap_or(was.text);
            Matter::After { tool, arguments, output: was }
        }
        Matter::Prompt { text } => Matter::Prompt { text: prompt.unwrap_or(text) },
        Matter::Definition { tool, mut definition } => {
            definition.description = description.unwrap_or(definition.description);
            definition.schema = parameters.map_or(definition.schema, Value::Object);
            Matter::Definition { tool, definition }
        }
        Matter::Params { params: was } => {
            Matter::Params { params: params.map_or(was, Value::Object) }
        }
        Matter::System { text } => Matter::System { text: system.unwrap_or(text) },
        told @ (Matter::Asked { .. } | Matter::Told { .. }) => told,
    })
}
