//! Imports OpenCode's theme and key bindings into `tui`.

use super::ImportScope;
use super::plan_builder::ImportPlanBuilder;
use serde_json::{Map, Value};

const MAX_THEME_BYTES: u64 = 256 << 10;

/// The colors of an OpenCode theme and the names of the same parts in `tui.colors`.
const COLOR_NAMES: [(&str, &str); 22] = [
    ("text", "text"),
    ("textMuted", "dim"),
    ("primary", "accent"),
    ("secondary", "user"),
    ("success", "success"),
    ("warning", "warning"),
    ("error", "error"),
    ("border", "border"),
    ("diffAdded", "added"),
    ("diffRemoved", "removed"),
    ("diffLineNumber", "line_number"),
    ("markdownHeading", "heading"),
    ("markdownLink", "link"),
    ("markdownBlockQuote", "quote"),
    ("markdownCode", "literal"),
    ("syntaxKeyword", "keyword"),
    ("syntaxString", "string"),
    ("syntaxNumber", "number"),
    ("syntaxComment", "comment"),
    ("syntaxFunction", "function"),
    ("syntaxType", "type"),
    ("syntaxVariable", "variable"),
];

/// OpenCode's names of key bindings and ours.
const KEY_NAMES: [(&str, &str); 35] = [
    ("app_exit", "quit"),
    ("session_new", "new"),
    ("session_list", "sessions"),
    ("session_fork", "fork"),
    ("session_rename", "rename"),
    ("session_compact", "compact"),
    ("session_export", "export"),
    ("session_timeline", "rewind"),
    ("model_list", "model"),
    ("agent_list", "agent"),
    ("theme_list", "theme"),
    ("editor_open", "editor"),
    ("messages_page_up", "page-up"),
    ("messages_page_down", "page-down"),
    ("messages_line_up", "line-up"),
    ("messages_line_down", "line-down"),
    ("messages_first", "top"),
    ("messages_last", "end"),
    ("messages_copy", "copy"),
    ("messages_undo", "undo"),
    ("messages_redo", "redo"),
    ("input_submit", "send"),
    ("input_newline", "newline"),
    ("input_paste", "paste"),
    ("input_move_left", "left"),
    ("input_move_right", "right"),
    ("input_word_backward", "word-left"),
    ("input_word_forward", "word-right"),
    ("input_line_home", "line-start"),
    ("input_line_end", "line-end"),
    ("input_delete", "delete-right"),
    ("input_backspace", "delete-left"),
    ("input_delete_to_line_start", "delete-to-start"),
    ("input_delete_to_line_end", "delete-to-end"),
    ("terminal_suspend", "suspend"),
];

/// Imports the name of a theme: one of ours, or a file with colors.
pub(super) fn import_theme(builder: &mut ImportPlanBuilder<'_>, folder: &str, value: &Value) {
    let Some(name) = value.as_str() else { return builder.skip("theme", "not a string") };
    let setting = format!("theme {name}");
    if builder.scope == ImportScope::Project {
        return builder.skip(setting, "colors and keys are read only from your own config");
    }
    if builder.checks.has_theme(name) {
        return builder.set_key(&["tui", "theme"], name.into(), name);
    }
    let file = format!("{folder}/themes/{name}.json");
    let is_name = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    let theme = if is_name { builder.read_json_object(&file, MAX_THEME_BYTES) } else { None };
    let Some(theme) = theme else {
        return builder.skip(setting, "Windlass has no theme of this name; `/theme` lists its own");
    };
    let colors = theme.get("theme").and_then(Value::as_object).cloned().unwrap_or_default();
    let defs = theme.get("defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut count = 0;
    for (name, role) in COLOR_NAMES {
        if let Some(color) = colors.get(name).and_then(|value| resolve_color(value, &defs)) {
            builder.set_key(&["tui", "colors", role], color.clone().into(), &color);
            count += 1;
        }
    }
    if count == 0 {
        builder.skip(setting, "its file contains no colors that Windlass uses");
    } else if colors.values().any(Value::is_object) {
        builder.add_note(format!("the colors of the theme {name} are those for a dark background"));
    }
}

/// Returns a color as `#rrggbb`; the one for a dark background if there are two.
fn resolve_color(value: &Value, defs: &Map<String, Value>) -> Option<String> {
    let value = match value {
        Value::Object(variants) => variants.get("dark")?,
        value => value,
    };
    let text = value.as_str()?;
    let text = match defs.get(text) {
        Some(definition) => definition.as_str()?,
        None => text,
    };
    let digits = text.strip_prefix('#')?;
    let is_color = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_color.then(|| format!("#{digits}"))
}

/// Imports key bindings. A key after a leader key has no equivalent.
pub(super) fn import_keys(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Value::Object(bindings) = value else { return builder.skip("keybinds", "not an object") };
    if builder.scope == ImportScope::Project {
        return builder.skip("keybinds", "colors and keys are read only from your own config");
    }
    let mut unknown = Vec::new();
    for (name, keys) in bindings {
        let row = KEY_NAMES.iter().find(|(theirs, _)| *theirs == name);
        let (Some((_, command)), Some(keys)) = (row, keys.as_str()) else {
            unknown.push(name);
            continue;
        };
        let setting = format!("keybinds.{name} \"{keys}\"");
        if keys.contains("<leader>") {
            builder.skip(setting, "a key after a leader key is not supported");
            continue;
        }
        let keys: Vec<&str> =
            keys.split(',').map(str::trim).filter(|key| !matches!(*key, "" | "none")).collect();
        let keys = keys.join(" ").replace("return", "enter").replace("escape", "esc");
        match builder.checks.check_keys(command, &keys) {
            Some(reason) => builder.skip(setting, reason),
            None => builder.set_key(&["tui", "keys", command], keys.clone().into(), &keys),
        }
    }
    if !unknown.is_empty() {
        let reason = "Windlass has no such command to bind a key to; `/help` lists its own";
        builder.skip(format!("keybinds: {}", unknown.join(", ")), reason);
    }
}
