//! Converts Claude's permission rules into ours. An `allow` is imported only if our rule allows no
//! more than the original; a `deny` or an `ask` may cover more.

use windlass_protocol::HookPoint;

/// The level of a rule, in the order our rules need: the last match counts, and a deny always wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClaudeRuleLevel {
    Allow,
    Ask,
    Deny,
}

impl ClaudeRuleLevel {
    pub(crate) const ALL: [ClaudeRuleLevel; 3] =
        [ClaudeRuleLevel::Allow, ClaudeRuleLevel::Ask, ClaudeRuleLevel::Deny];

    pub(crate) fn name(self) -> &'static str {
        match self {
            ClaudeRuleLevel::Allow => "allow",
            ClaudeRuleLevel::Ask => "ask",
            ClaudeRuleLevel::Deny => "deny",
        }
    }
}

/// Converts the name of an MCP server's tool (`mcp__server__tool`), or of all its tools
/// (`mcp__server`).
pub(crate) fn map_mcp_tool(name: &str) -> Option<String> {
    let rest = name.strip_prefix("mcp__")?;
    let is_tool_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*');
    if !rest.chars().all(is_tool_char) {
        return None;
    }
    match rest.split_once("__") {
        Some((server, tool)) => Some(format!("{server}_{tool}")),
        None => Some(format!("{rest}_*")),
    }
}

/// Converts a rule into our `permission` keys and patterns, or returns the reason why it has no
/// equivalent. `is_project` tells if the rule comes from a project, whose paths may begin with `/`.
pub(crate) fn convert_rule(
    text: &str,
    level: ClaudeRuleLevel,
    is_project: bool,
) -> Result<Vec<(String, String)>, String> {
    let (tool, inner) = match text.split_once('(') {
        Some((tool, rest)) => {
            let inner = rest.strip_suffix(')').ok_or("missing closing parenthesis")?;
            (tool, Some(inner.trim()).filter(|inner| !matches!(*inner, "" | "*")))
        }
        None => (text, None),
    };
    let single = |key: &str, pattern: &str| Ok(vec![(key.to_owned(), pattern.to_owned())]);
    match (tool, inner) {
        ("Bash", None) => single("bash", "*"),
        ("Bash", Some(command)) => single("bash", &command_pattern(command, level)?),
        ("Read", None) => single("read", "*"),
        ("Edit" | "Write" | "MultiEdit", None) => single("edit", "*"),
        ("Read", Some(path)) => with_key("read", path_patterns(path, level, is_project)?),
        ("Edit" | "Write" | "MultiEdit", Some(path)) => {
            with_key("edit", path_patterns(path, level, is_project)?)
        }
        ("Glob" | "Grep" | "LS", None) if level == ClaudeRuleLevel::Deny => {
            let name = if tool == "Grep" { "grep" } else { "glob" };
            single(name, "*")
        }
        ("Glob" | "Grep" | "LS", _) => Err("covered by `read` rules".into()),
        ("Task" | "Agent", inner) => single("task", inner.unwrap_or("*")),
        ("Skill", inner) => single("skill", inner.unwrap_or("*")),
        ("WebFetch", None) => single("webfetch", "*"),
        ("WebFetch", Some(host)) => match host.strip_prefix("domain:") {
            Some(host) if is_host_pattern(host) => single("webfetch", host),
            Some(_) | None => Err("`webfetch` rules name hosts, such as docs.rs".into()),
        },
        ("WebSearch", _) => Err("covered by `webfetch` rules".into()),
        (name, None) => match map_mcp_tool(name) {
            Some(key) => single(&key, "*"),
            None => Err(format!("Windlass has no tool `{name}`")),
        },
        (name, Some(_)) => Err(format!("Windlass does not support such a rule for `{name}`")),
    }
}

/// Returns `true` for one host, or for all hosts below one.
fn is_host_pattern(text: &str) -> bool {
    let host = text.strip_prefix("*.").unwrap_or(text);
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    !host.is_empty() && host.chars().all(is_host_char)
}

fn with_key(key: &str, patterns: Vec<String>) -> Result<Vec<(String, String)>, String> {
    Ok(patterns.into_iter().map(|pattern| (key.to_owned(), pattern)).collect())
}

/// Converts a command pattern. Our patterns match one simple command at a time.
fn command_pattern(command: &str, level: ClaudeRuleLevel) -> Result<String, String> {
    if command.contains(['|', ';', '&', '\n', '`', '<', '>']) || command.contains("$(") {
        return Err("a rule can match only one command".into());
    }
    if command.contains('?') && level == ClaudeRuleLevel::Allow {
        return Err("`?` matches any character here, so it would allow more".into());
    }
    let pattern = match command.strip_suffix(":*") {
        Some(prefix) => format!("{} *", prefix.trim_end()),
        None => command.to_owned(),
    };
    let words: Vec<&str> = pattern.split_whitespace().collect();
    Ok(words.join(" "))
}

/// Converts a path pattern into patterns relative to the project. Claude's patterns follow
/// `.gitignore`: a name without `/` matches at any depth, and `*` does not match `/`.
fn path_patterns(
    path: &str,
    level: ClaudeRuleLevel,
    is_project: bool,
) -> Result<Vec<String>, String> {
    let outside_error =
        "file rules only match paths in the project; they cannot allow paths outside it";
    let path = match (path, is_project) {
        (path, _) if path.starts_with("//") || path.starts_with('~') => {
            return Err(outside_error.into());
        }
        (path, true) => path.strip_prefix('/').unwrap_or(path),
        (path, false) if path.starts_with('/') => return Err(outside_error.into()),
        (path, false) => path,
    };
    let (is_anchored, path) = match path.strip_prefix("./") {
        Some(rest) => (true, rest),
        None => (false, path),
    };
    if path.split('/').any(|part| part == "..") || path.contains(['[', '!', '{', '\\']) {
        return Err("unsupported pattern".into());
    }
    if level == ClaudeRuleLevel::Allow {
        let folder = path.strip_suffix("/**").or_else(|| path.strip_suffix('/'));
        let (stem, tail) = match folder {
            Some(stem) => (stem, "/*"),
            None => (path, ""),
        };
        if path == "**" {
            return Ok(vec!["*".into()]);
        }
        // Without a `/`, Claude's pattern matches more than one path; ours matches only that path.
        if stem.is_empty() || stem.contains(['*', '?']) {
            return Err("`*` also matches `/` here, so it would allow more".into());
        }
        return Ok(vec![format!("{stem}{tail}")]);
    }
    let (path, is_folder) = match path.strip_suffix('/') {
        Some(path) => (path, true),
        None => (path, false),
    };
    let any_depth = path.strip_prefix("**/");
    let bare = any_depth.unwrap_or(path);
    // A name that may be a folder includes everything in it.
    let last = bare.rsplit('/').next().unwrap_or(bare);
    let tail = if is_folder || !last.contains(['.', '*']) { "/*" } else { "" };
    let matches_any_depth = any_depth.is_some() || !is_anchored && !path.contains('/');
    let mut patterns = Vec::new();
    for bare in [bare.to_owned(), bare.replace("/**/", "/")] {
        let bare = format!("{}{tail}", bare.replace("**", "*"));
        let nested = format!("*/{bare}");
        let nested = (matches_any_depth && !bare.starts_with('*')).then_some(nested);
        for pattern in std::iter::once(bare).chain(nested) {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    Ok(patterns)
}

/// Returns our `HookPoint` for one of Claude's events, if hooks run there.
pub(crate) fn hook_point(event: &str) -> Option<HookPoint> {
    let point = HookPoint::from_name(event)?;
    let is_unsupported = matches!(
        point,
        HookPoint::Command
            | HookPoint::ToolDefinition
            | HookPoint::Params
            | HookPoint::Messages
            | HookPoint::System
    );
    (!is_unsupported).then_some(point)
}
