//! Agents, commands, skills and tools that are files. What our own readers would leave out is not
//! copied, and what they would not know is taken out of it.

use super::draft::{Content, Draft};
use super::rules;
use super::source::Entry;
use crate::{agents, commands, front, skills};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// No document is longer, and no file that lies beside one.
const LONGEST: u64 = 1 << 20;
const LONGEST_FILE: u64 = 4 << 20;

/// Whose form an agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    OpenCode,
    Claude,
}

/// Carries over the agents of a folder.
pub(super) fn take_agents(draft: &mut Draft<'_>, folder: &str, form: Form) {
    for entry in documents(draft, folder) {
        let from = draft.source.shown(&entry.whole);
        let Some((name, text)) = document(draft, &entry) else { continue };
        let made = match form {
            Form::OpenCode => plain_agent(draft, &name, &from, text),
            Form::Claude => claude_agent(draft, &name, &from, &text),
        };
        let Some((name, text)) = made else { continue };
        if let Some(why) = unfit(&name) {
            draft.leave(from, why);
            continue;
        }
        if agents::is_built_in(&name) {
            draft.leave(from, built_in(&name));
            continue;
        }
        let checked = agents::check(&name, &text);
        let rules = checked.as_ref().ok().and_then(|(settings, _)| settings.get("permission"));
        let wrong = rules.and_then(|rules| draft.sense.rules(rules));
        match (checked, wrong) {
            (Err(why), _) | (Ok(_), Some(why)) => draft.leave(from, why),
            (Ok(_), None) => {
                let (name, bytes) = (format!("agents/{name}.md"), text.into_bytes());
                draft.make(Content { name, from, bytes, is_program: false });
            }
        }
    }
}

/// Why an agent of a name that is built in stays where it is.
pub(super) fn built_in(name: &str) -> String {
    format!(
        "Windlass has an agent `{name}` with bounds of its own, which another would take the place of; \
         give yours another name"
    )
}

/// Why a name cannot be one here.
pub(super) fn unfit(name: &str) -> Option<String> {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let fits = (1..=64).contains(&name.len()) && !name.starts_with('.') && name.chars().all(plain);
    (!fits).then(|| "its name may have letters, digits, `-`, `_` and `.` only, 64 at most".into())
}

/// An agent in OpenCode's form, which is ours but for some keys.
fn plain_agent(
    draft: &mut Draft<'_>,
    name: &str,
    from: &str,
    text: String,
) -> Option<(String, String)> {
    match agents::check(name, &text) {
        Err(why) => {
            draft.leave(from, why);
            None
        }
        Ok((_, unknown)) if unknown.is_empty() => Some((name.to_owned(), text)),
        Ok((_, unknown)) => {
            draft.leave_rest(from, &unknown.iter().map(String::as_str).collect::<Vec<_>>());
            let less = without(&text, &unknown);
            let same = agents::check(name, &less).is_ok_and(|(_, unknown)| unknown.is_empty());
            Some((name.to_owned(), if same { less } else { text }))
        }
    }
}

/// A document without some keys of its head.
fn without(text: &str, keys: &[String]) -> String {
    let (mut kept, mut fences, mut skipping) = (Vec::new(), 0, false);
    for line in text.lines() {
        if fences < 2 && line.trim_end() == "---" {
            fences += 1;
            skipping = false;
        } else if fences == 1 && !line.starts_with([' ', '\t', '-', '#']) && !line.is_empty() {
            let key = line.split(':').next().unwrap_or_default().trim();
            skipping = keys.iter().any(|known| known == key.trim_matches(['"', '\'']));
        }
        if !(skipping && fences == 1) {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

/// An agent in Claude's form, written in ours.
fn claude_agent(
    draft: &mut Draft<'_>,
    stem: &str,
    from: &str,
    text: &str,
) -> Option<(String, String)> {
    let front = match front::read(text) {
        Ok(front) => front,
        Err(unread) => {
            draft.leave(from, format!("line {}: {}", unread.line, unread.message));
            return None;
        }
    };
    let mut settings = front.settings;
    let text_of = |settings: &mut Map<String, Value>, key: &str| {
        settings
            .shift_remove(key)
            .and_then(|value| value.as_str().map(|text| text.trim().to_owned()))
    };
    let name = text_of(&mut settings, "name").unwrap_or_else(|| stem.to_owned());
    let description = text_of(&mut settings, "description").unwrap_or_default();
    let mut head = vec!["---".to_owned(), format!("description: {}", quoted(&description))];
    head.push("mode: subagent".to_owned());
    match text_of(&mut settings, "model").as_deref() {
        None | Some("inherit") => {}
        Some(model) if model.starts_with("claude-") => {
            head.push(format!("model: {}", quoted(&format!("anthropic/{model}"))));
        }
        Some(model) => draft.leave(
            format!("{from}: model {model}"),
            "a model has its provider and whole name here; it works with yours until you set \
             `model: PROVIDER/MODEL`",
        ),
    }
    let (only, never) = (settings.shift_remove("tools"), settings.shift_remove("disallowedTools"));
    let lists = [(listed(only), "true"), (listed(never), "false")];
    let mut lines: Vec<String> = Vec::new();
    for (tools, has) in lists {
        if has == "true" && !tools.is_empty() && !tools.iter().any(|tool| tool == "*") {
            lines.push("  \"*\": false".to_owned());
        }
        for tool in tools.iter().filter(|tool| *tool != "*") {
            let (bare, part) =
                tool.split_once('(').map_or((tool.as_str(), false), |it| (it.0, true));
            match rules::tools(bare) {
                Some(_) if part && has == "true" => draft.leave(
                    format!("{from}: {tool}"),
                    "a part of a tool cannot be given, and the whole would be more; use `permission`",
                ),
                Some(ours) => {
                    lines.extend(ours.iter().map(|ours| format!("  {}: {has}", quoted(ours))));
                }
                None => draft.leave(format!("{from}: {tool}"), "Windlass has no such tool"),
            }
        }
    }
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    if !lines.is_empty() {
        head.push("tools:".to_owned());
        head.append(&mut lines);
    }
    draft.leave_rest(from, &settings.keys().map(String::as_str).collect::<Vec<_>>());
    Some((name, format!("{}\n---\n\n{}\n", head.join("\n"), front.body)))
}

/// A list of names, in either way of writing it.
fn listed(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::String(names)) => {
            // A bracket may hold a comma.
            let (mut names_found, mut depth, mut name) = (Vec::new(), 0_u32, String::new());
            for sign in names.chars().chain([',']) {
                match sign {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if sign == ',' && depth == 0 {
                    names_found.push(std::mem::take(&mut name));
                } else {
                    name.push(sign);
                }
            }
            let names = names_found.into_iter().map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect()
        }
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(|name| name.trim().to_owned()).collect()
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    }
}

/// A text as the head of a document takes it.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            sign if sign.is_control() => {}
            sign => quoted.push(sign),
        }
    }
    quoted + "\""
}

/// Carries over the commands of a folder.
pub(super) fn take_commands(draft: &mut Draft<'_>, folder: &str) {
    for entry in documents(draft, folder) {
        let from = draft.source.shown(&entry.whole);
        let Some((name, text)) = document(draft, &entry) else { continue };
        take_command(draft, &name, from, text);
    }
}

/// Carries over a command.
pub(super) fn take_command(draft: &mut Draft<'_>, name: &str, from: String, text: String) {
    if let Some(why) = unfit(name) {
        return draft.leave(from, why);
    }
    let file = format!("commands/{name}.md");
    if let Err((_, why)) = commands::read(Path::new(&file), &text) {
        return draft.leave(from, why);
    }
    let settings = front::read(&text).map(|front| front.settings).unwrap_or_default();
    let rest = settings.keys().map(String::as_str).filter(|key| *key != "description");
    draft.leave_rest(&from, &rest.collect::<Vec<_>>());
    draft.make(Content { name: file, from, bytes: text.into_bytes(), is_program: false });
}

/// Carries over the skills of a folder, each with everything that lies in it.
pub(super) fn take_skills(draft: &mut Draft<'_>, folder: &str) {
    let entries = entries(draft, folder);
    let names: BTreeSet<&str> =
        entries.iter().filter_map(|entry| Some(entry.name.split_once('/')?.0)).collect();
    for entry in entries.iter().filter(|entry| !entry.name.contains('/')) {
        draft.leave(draft.source.shown(&entry.whole), "a skill is a folder with a SKILL.md");
    }
    for name in names {
        let (file, from) = (format!("{folder}/{name}/SKILL.md"), format!("{folder}/{name}"));
        let from = draft.source.shown(&from);
        let why = match draft.source.text(&file, LONGEST) {
            Err(why) => Some(why),
            Ok(None) => Some("it has no SKILL.md".to_owned()),
            Ok(Some(text)) => {
                let place = Path::new("skills").join(name).join("SKILL.md");
                skills::read(&place, &text).err().map(|(_, why)| why)
            }
        };
        match why {
            Some(why) => draft.leave(from, why),
            None => {
                let inner = |entry: &&Entry| entry.name.split('/').next() == Some(name);
                for entry in entries.iter().filter(inner) {
                    copy(draft, entry, "skills");
                }
            }
        }
    }
}

/// Carries over the tools of a folder, with what lies beside them.
pub(super) fn take_tools(draft: &mut Draft<'_>, folder: &str) {
    for entry in entries(draft, folder) {
        copy(draft, &entry, "tools");
    }
}

fn copy(draft: &mut Draft<'_>, entry: &Entry, into: &str) {
    let from = draft.source.shown(&entry.whole);
    match draft.source.bytes(&entry.whole, LONGEST_FILE) {
        Err(why) => draft.leave(from, why),
        Ok(None) => {}
        Ok(Some(found)) => {
            let name = format!("{into}/{}", entry.name);
            let (bytes, is_program) = (found.bytes, found.is_program);
            draft.make(Content { name, from, bytes, is_program });
        }
    }
}

/// The files of a folder. What cannot be read is said.
fn entries(draft: &mut Draft<'_>, folder: &str) -> Vec<Entry> {
    match draft.source.files(folder) {
        Ok(None) => Vec::new(),
        Err(why) => {
            draft.found.push(draft.source.shown(folder));
            draft.leave(draft.source.shown(folder), why);
            Vec::new()
        }
        Ok(Some((entries, faults))) => {
            draft.found.push(draft.source.shown(folder));
            for (name, why) in faults {
                draft.leave(draft.source.shown(&name), why);
            }
            entries
        }
    }
}

/// The Markdown files of a folder. Others are said.
fn documents(draft: &mut Draft<'_>, folder: &str) -> Vec<Entry> {
    let (documents, others): (Vec<Entry>, Vec<Entry>) = entries(draft, folder)
        .into_iter()
        .partition(|entry| Path::new(&entry.name).extension().is_some_and(|end| end == "md"));
    for entry in others {
        draft.leave(draft.source.shown(&entry.whole), "it is no Markdown file");
    }
    documents
}

/// The name and the text of a document. One in a folder gets the folder's name in front.
fn document(draft: &mut Draft<'_>, entry: &Entry) -> Option<(String, String)> {
    match draft.source.text(&entry.whole, LONGEST) {
        Ok(text) => {
            let name = entry.name.strip_suffix(".md").unwrap_or(&entry.name).replace('/', "-");
            Some((name, text?))
        }
        Err(why) => {
            draft.leave(draft.source.shown(&entry.whole), why);
            None
        }
    }
}
