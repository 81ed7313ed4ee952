//! Imports `lsp` and `formatter` entries from OpenCode's format.

use super::plan_builder::ImportPlanBuilder;
use super::secret_detection;
use serde_json::{Map, Value, json};

pub(super) fn import_language_server(
    builder: &mut ImportPlanBuilder<'_>,
    name: &str,
    value: Value,
) {
    let setting = format!("lsp.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return builder.set_key(&["lsp", name, "enabled"], false.into(), "false");
    }
    let mut converted = Map::new();
    for key in ["command", "initialization", "env"] {
        match map.shift_remove(key) {
            Some(value) if may_hold_secret(key, &value) => {
                builder.skip(
                    format!("{setting}.{key}"),
                    "values that look like secrets are not copied",
                );
            }
            Some(value) => drop(converted.insert(key.to_owned(), value)),
            None => {}
        }
    }
    if let Some(Value::Array(extensions)) = map.shift_remove("extensions") {
        // OpenCode derives the LSP language ID itself; the file extension is close to it.
        let language_ids = extensions.iter().filter_map(Value::as_str);
        let language_ids = language_ids
            .map(|extension| (extension.to_owned(), json!(extension.trim_start_matches('.'))));
        converted.insert("extensions".into(), language_ids.collect::<Map<_, _>>().into());
    }
    map.retain(|key, _| key != "disabled");
    let unsupported: Vec<String> = map.keys().cloned().collect();
    builder.skip_unsupported(&setting, &unsupported.iter().map(String::as_str).collect::<Vec<_>>());
    for (key, value) in converted {
        let description = value.to_string();
        builder.set_key(&["lsp", name, &key], value, &description);
    }
}

/// Returns `true` if a part of the value looks like a secret or is read from a file.
fn may_hold_secret(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{file:") || secret_detection::is_secret(name, text),
        Value::Array(items) => items.iter().any(|item| may_hold_secret(name, item)),
        Value::Object(map) => map.iter().any(|(name, item)| may_hold_secret(name, item)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// In-place formatters: the program, the options that make it write the file, and the options that
/// make it read standard input.
const STDIN_FORMS: [(&str, &[&str], &[&str]); 12] = [
    ("prettier", &["--write", "-w"], &["--stdin-filepath", "{file}"]),
    ("biome", &["--write"], &["--stdin-file-path={file}"]),
    ("ruff", &[], &["--stdin-filename", "{file}", "-"]),
    ("black", &["-q", "--quiet"], &["-q", "--stdin-filename", "{file}", "-"]),
    ("isort", &[], &["--filename", "{file}", "-"]),
    ("rustfmt", &[], &[]),
    ("gofmt", &["-w"], &[]),
    ("goimports", &["-w"], &[]),
    ("clang-format", &["-i"], &["--assume-filename={file}"]),
    ("shfmt", &["-w"], &["-filename", "{file}"]),
    ("stylua", &[], &["--stdin-filepath", "{file}", "-"]),
    ("terraform", &[], &["-"]),
];

/// Formats a copy of a file in place: the arguments are the name of the file and the command, in
/// which `$FILE` is the copy.
const FORMAT_COPY_SCRIPT: &str = "d=$(mktemp -d) || exit 1; f=\"$d/${1##*/}\"; cat >\"$f\"; shift; \
     for a; do shift; [ \"$a\" = '$FILE' ] && a=$f; set -- \"$@\" \"$a\"; done; \
     \"$@\" >&2 && cat \"$f\"; s=$?; rm -rf \"$d\"; exit $s";

/// Imports a formatter. OpenCode's formatters change a file in place; ours read standard input.
pub(super) fn import_formatter(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("formatter.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    if map.get("disabled") == Some(&Value::Bool(true)) {
        return builder.set_key(&["formatter", name, "enabled"], false.into(), "false");
    }
    map.shift_remove("disabled");
    let command = map.shift_remove("command");
    let words = command.as_ref().and_then(Value::as_array).map(|words| {
        words.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<String>>()
    });
    let Some(words) = words.filter(|words| !words.is_empty()) else {
        return builder.skip(setting, "it has no command");
    };
    let runners = ["npx", "bunx", "pnpm", "exec", "--no-install", "-y", "--yes", "--"];
    let program = words.iter().position(|word| !runners.contains(&word.as_str()));
    let words = words.get(program.unwrap_or(0)..).unwrap_or_default();
    let program = words.first().map_or("", String::as_str);
    let form = STDIN_FORMS.iter().find(|(known, _, _)| *known == program);
    let is_dropped = |word: &str| {
        word == "$FILE" || form.is_some_and(|(_, in_place, _)| in_place.contains(&word))
    };
    let kept: Vec<&str> =
        words.iter().map(String::as_str).filter(|word| !is_dropped(word)).collect();
    let plain = ["format", "fmt"];
    let has_options = kept.iter().skip(1).any(|word| !plain.contains(word));
    if form.is_some() && name == program && !has_options {
        let reason = "built in, and used where the project has a config for it";
        return builder.existing.push((setting, reason.to_owned()));
    }
    let command: Vec<String> = match form {
        Some((_, _, stdin)) => kept.iter().chain(*stdin).map(|word| (*word).to_owned()).collect(),
        None => {
            builder.add_note(format!(
                "the formatter {name} formats a copy of the file, so it does not find settings in \
                 the project"
            ));
            let start = ["sh", "-c", FORMAT_COPY_SCRIPT, "sh", "{file}"];
            start.into_iter().map(str::to_owned).chain(words.iter().cloned()).collect()
        }
    };
    let mut converted = Map::new();
    converted.insert("command".into(), command.into());
    converted.extend(map.shift_remove("extensions").map(|it| ("extensions".to_owned(), it)));
    match map.shift_remove("environment") {
        Some(env) if may_hold_secret("env", &env) => {
            let reason = "values that look like secrets are not copied";
            builder.skip(format!("{setting}.environment"), reason);
        }
        Some(env) => drop(converted.insert("env".into(), env)),
        None => {}
    }
    builder.skip_unsupported(&setting, &map.keys().map(String::as_str).collect::<Vec<_>>());
    let description = words.join(" ");
    builder.set_key(&["formatter", name], converted.into(), &description);
}
