//! Claude's hooks, in Claude's words: tools and their arguments have other names there, and an
//! answer says other things. Its `allow` lets pass and grants nothing.
//!
//! Two things differ on purpose: an exit code that is neither 0 nor 2 refuses, and a hook at the end
//! of a turn cannot make it go on.

use super::verdict::{asks_at, hears, misunderstood, object};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;
use windlass_protocol::{Mode, Point};
use windlass_toolkit::{Matter, Moment, Refusal, Said};

/// Our tools and Claude's names for them. One that changes files goes by every name that a guard of
/// files may look for.
const TOOLS: [(&str, &[&str]); 13] = [
    ("bash", &["Bash"]),
    ("read", &["Read"]),
    ("write", &["Write"]),
    ("edit", &["Edit", "MultiEdit"]),
    ("apply_patch", &["apply_patch", "Edit", "MultiEdit", "Write"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("task", &["Task", "Agent"]),
    ("todowrite", &["TodoWrite"]),
    ("question", &["AskUserQuestion"]),
    ("plan_exit", &["ExitPlanMode"]),
    ("skill", &["Skill"]),
    ("job", &["BashOutput", "KillShell"]),
];

/// Arguments that are called otherwise: the tool, our name, Claude's.
const ARGUMENTS: [(&str, &str, &str); 8] = [
    ("read", "filePath", "file_path"),
    ("write", "filePath", "file_path"),
    ("edit", "filePath", "file_path"),
    ("edit", "oldString", "old_string"),
    ("edit", "newString", "new_string"),
    ("edit", "replaceAll", "replace_all"),
    ("grep", "include", "glob"),
    ("bash", "background", "run_in_background"),
];

/// Claude's names for a tool, the one that it is told first.
pub(super) fn names(servers: &[String], tool: &str) -> Vec<String> {
    if let Some((_, names)) = TOOLS.iter().find(|(ours, _)| *ours == tool) {
        return names.iter().map(|name| (*name).to_owned()).collect();
    }
    let of = |server: &String| {
        let name = tool.strip_prefix(server.as_str())?.strip_prefix('_')?;
        Some((server.len(), format!("mcp__{server}__{name}")))
    };
    // One server's name may begin another's; it is said by the longest, and matched by any.
    let mut found: Vec<_> = servers.iter().filter_map(of).collect();
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, name)| name).collect()
}

fn name(servers: &[String], tool: &str) -> String {
    names(servers, tool).into_iter().next().unwrap_or_else(|| tool.to_owned())
}

/// What a hook is told.
pub(super) fn payload(servers: &[String], moment: &Moment<'_>, matter: &Matter) -> Value {
    let mut told = json!({
        "session_id": moment.session,
        "transcript_path": "",
        "cwd": moment.folder,
        "permission_mode": match moment.mode {
            Mode::Plan => "plan",
            Mode::Ask => "default",
            Mode::Auto => "acceptEdits",
            Mode::Full => "bypassPermissions",
        },
        "hook_event_name": event(matter.point()),
    });
    let Some(map) = told.as_object_mut() else { return told };
    if let Some(call) = moment.call {
        map.insert("tool_use_id".into(), json!(call));
    }
    if let Some(tool) = matter.tool() {
        map.insert("tool_name".into(), json!(name(servers, tool)));
    }
    match matter {
        Matter::Before { tool, arguments } => {
            map.insert("tool_input".into(), translated(tool, arguments, moment.folder));
        }
        Matter::After { tool, arguments, output } => {
            map.insert("tool_input".into(), translated(tool, arguments, moment.folder));
            let response = match tool.as_str() {
                "bash" => json!({"stdout": output.text, "stderr": "", "interrupted": false}),
                _ => json!({"content": output.text}),
            };
            map.insert("tool_response".into(), response);
        }
        Matter::Asked { accesses, reason, .. } => {
            map.insert("tool_input".into(), json!({"accesses": accesses}));
            map.insert("reason".into(), json!(reason));
        }
        Matter::Prompt { text } => {
            map.insert("prompt".into(), json!(text));
        }
        Matter::Told { point, what } => {
            map.extend(what.as_object().cloned().unwrap_or_default());
            match point {
                Point::TurnEnd => drop(map.insert("stop_hook_active".into(), json!(false))),
                Point::Compaction => drop(map.insert("custom_instructions".into(), json!(""))),
                Point::SessionEnd => drop(map.insert("reason".into(), json!("other"))),
                _ => {}
            }
        }
        Matter::Definition { .. } | Matter::Params { .. } | Matter::System { .. } => {}
    }
    told
}

/// What Claude calls a point.
fn event(point: Point) -> &'static str {
    match point {
        Point::SessionStart => "SessionStart",
        Point::SessionEnd => "SessionEnd",
        Point::Prompt => "UserPromptSubmit",
        Point::BeforeTool => "PreToolUse",
        Point::AfterTool => "PostToolUse",
        Point::Permission => "PermissionRequest",
        Point::TurnEnd => "Stop",
        Point::Compaction => "PreCompact",
        Point::ToolDefinition | Point::Params | Point::System | Point::Event => point.name(),
    }
}

/// Arguments under Claude's names. Its paths are whole ones.
fn translated(tool: &str, arguments: &Value, folder: &str) -> Value {
    let Some(arguments) = arguments.as_object() else { return arguments.clone() };
    let rename = |(key, value): (&String, &Value)| {
        let known = ARGUMENTS.iter().find(|(of, ours, _)| *of == tool && ours == key);
        let key = known.map_or(key.as_str(), |(_, _, theirs)| theirs).to_owned();
        let path = value.as_str().filter(|_| key == "file_path");
        let value = path.map_or_else(
            || value.clone(),
            |path| json!(Path::new(folder).join(path).display().to_string()),
        );
        (key, value)
    };
    Value::Object(arguments.iter().map(rename).collect())
}

/// Arguments that came back under Claude's names, in ours. A path that was not touched stays as it
/// was written.
fn restored(
    tool: &str,
    came: Map<String, Value>,
    went: Option<&Value>,
    was: &Value,
) -> Map<String, Value> {
    let restore = |(key, value): (String, Value)| {
        let known = ARGUMENTS.iter().find(|(of, _, theirs)| *of == tool && *theirs == key);
        let ours = known.map_or(key.as_str(), |(_, ours, _)| ours).to_owned();
        let same = went.and_then(|went| went.get(&key)) == Some(&value);
        let value = was.get(&ours).filter(|_| same).cloned().unwrap_or(value);
        (ours, value)
    };
    came.into_iter().map(restore).collect()
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Reply {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    hook_specific_output: Option<Specific>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Specific {
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Map<String, Value>>,
    additional_context: Option<String>,
    decision: Option<Behavior>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Behavior {
    behavior: String,
    message: Option<String>,
}

/// What an answer comes to.
enum Word {
    Pass,
    Ask(String),
    Refuse(String),
}

/// What a hook makes of a matter by what it said.
pub(super) fn read(said: &str, went: &Value, matter: Matter) -> Result<Said, Refusal> {
    let point = matter.point();
    let said = said.trim();
    if !said.starts_with('{') {
        // Words that are no JSON are for the model where it is told things, and else for nobody.
        let told = !said.is_empty() && matches!(point, Point::Prompt | Point::SessionStart);
        return Ok(match told {
            true => Said::Context(matter, said.to_owned()),
            false => Said::Go(matter),
        });
    }
    let reply = object(said)?;
    // A list would be taken for the values of the fields, and an empty one for nothing said.
    let specific = reply.get("hookSpecificOutput").unwrap_or(&Value::Null);
    if !specific.is_object() && !specific.is_null() {
        return Err(Refusal::failed("`hookSpecificOutput` is no object"));
    }
    let reply: Reply = serde_json::from_value(Value::Object(reply)).map_err(misunderstood)?;
    let word = word(&reply)?;
    let specific = reply.hook_specific_output.unwrap_or_default();
    if let Word::Refuse(reason) = word {
        return Err(Refusal::said(reason));
    }
    let context = specific.additional_context;
    let matter = match (matter, specific.updated_input) {
        (Matter::Before { tool, arguments }, Some(input)) => {
            let input = restored(&tool, input, went.get("tool_input"), &arguments);
            Matter::Before { tool, arguments: Value::Object(input) }
        }
        (_, Some(_)) => {
            return Err(Refusal::failed(format!("`updatedInput` means nothing at {point}")));
        }
        (Matter::After { tool, arguments, mut output }, None) => {
            if let Some(text) = &context {
                output.text = format!("{}\n\n{text}", output.text);
            }
            Matter::After { tool, arguments, output }
        }
        (matter, None) => matter,
    };
    match (word, context) {
        (Word::Ask(reason), _) if asks_at(point) => Ok(Said::Ask(matter, reason)),
        (Word::Ask(_), _) => Err(Refusal::failed(format!("nobody is asked at {point}"))),
        (_, Some(text)) if hears(point) => Ok(Said::Context(matter, text)),
        (_, _) => Ok(Said::Go(matter)),
    }
}

/// The strictest of what an answer says in its several places.
fn word(reply: &Reply) -> Result<Word, Refusal> {
    let because =
        |reason: Option<&String>| reason.cloned().unwrap_or_else(|| "it gave no reason".to_owned());
    let unknown =
        |word: &str| Err(Refusal::failed(format!("it decided `{word}`, which is not known here")));
    if reply.goes_on == Some(false) {
        return Ok(Word::Refuse(because(reply.stop_reason.as_ref().or(reply.reason.as_ref()))));
    }
    match reply.decision.as_deref() {
        Some("block" | "deny") => return Ok(Word::Refuse(because(reply.reason.as_ref()))),
        None | Some("approve" | "allow") => {}
        Some(word) => return unknown(word),
    }
    let Some(specific) = &reply.hook_specific_output else { return Ok(Word::Pass) };
    if let Some(decision) = &specific.decision {
        match decision.behavior.as_str() {
            "deny" => return Ok(Word::Refuse(because(decision.message.as_ref()))),
            "allow" => {}
            word => return unknown(word),
        }
    }
    let reason = || because(specific.permission_decision_reason.as_ref());
    match specific.permission_decision.as_deref() {
        Some("deny") => Ok(Word::Refuse(reason())),
        Some("ask" | "defer") => Ok(Word::Ask(reason())),
        None | Some("allow") => Ok(Word::Pass),
        Some(word) => unknown(word),
    }
}
