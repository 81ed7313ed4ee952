//! Claude's permission rules in our form. An allow is carried over only where ours means no more
//! than theirs; a deny and an ask may come to mean more.

use super::Side;
use windlass_protocol::Point;

/// What a rule says, in the order in which ours have to stand: of two that fit, the last counts, and
/// a deny always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Allow,
    Ask,
    Deny,
}

impl Level {
    pub(super) const ALL: [Level; 3] = [Level::Allow, Level::Ask, Level::Deny];

    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Allow => "allow",
            Level::Ask => "ask",
            Level::Deny => "deny",
        }
    }
}

/// Claude's tools and ours.
const TOOLS: [(&str, &[&str]); 18] = [
    ("Bash", &["bash", "job"]),
    ("BashOutput", &["job"]),
    ("KillShell", &["job"]),
    ("Read", &["read"]),
    ("Write", &["write"]),
    ("Edit", &["edit", "apply_patch"]),
    ("MultiEdit", &["edit", "apply_patch"]),
    ("Glob", &["glob"]),
    ("Grep", &["grep"]),
    ("LS", &["glob"]),
    ("Task", &["task"]),
    ("Agent", &["task"]),
    ("TodoWrite", &["todowrite", "todoread"]),
    ("Skill", &["skill"]),
    ("AskUserQuestion", &["question"]),
    ("ExitPlanMode", &["plan_exit"]),
    ("WebFetch", &["webfetch"]),
    ("WebSearch", &["websearch"]),
];

/// What a tool of Claude's is called here, if there is one like it.
pub(super) fn tools(name: &str) -> Option<Vec<String>> {
    if let Some(key) = foreign(name) {
        return Some(vec![key]);
    }
    let row = TOOLS.iter().find(|(theirs, _)| *theirs == name);
    row.map(|(_, ours)| ours.iter().map(|tool| (*tool).to_owned()).collect())
}

/// A server's tool, or all of them.
fn foreign(name: &str) -> Option<String> {
    let rest = name.strip_prefix("mcp__")?;
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '*');
    if !rest.chars().all(plain) {
        return None;
    }
    match rest.split_once("__") {
        Some((server, tool)) => Some(format!("{server}_{tool}")),
        None => Some(format!("{rest}_*")),
    }
}

/// The keys and patterns that mean what a rule does, or why there are none.
pub(super) fn rule(text: &str, level: Level, side: Side) -> Result<Vec<(String, String)>, String> {
    let (tool, inner) = match text.split_once('(') {
        Some((tool, rest)) => {
            let inner = rest.strip_suffix(')').ok_or("it has no closing bracket")?;
            (tool, Some(inner.trim()).filter(|inner| !matches!(*inner, "" | "*")))
        }
        None => (text, None),
    };
    let one = |key: &str, pattern: &str| Ok(vec![(key.to_owned(), pattern.to_owned())]);
    match (tool, inner) {
        ("Bash", None) => one("bash", "*"),
        ("Bash", Some(command)) => one("bash", &command_pattern(command, level)?),
        ("Read", None) => one("read", "*"),
        ("Edit" | "Write" | "MultiEdit", None) => one("edit", "*"),
        ("Read", Some(path)) => named("read", path_patterns(path, level, side)?),
        ("Edit" | "Write" | "MultiEdit", Some(path)) => {
            named("edit", path_patterns(path, level, side)?)
        }
        ("Glob" | "Grep" | "LS", None) if level == Level::Deny => {
            let name = if tool == "Grep" { "grep" } else { "glob" };
            one(name, "*")
        }
        ("Glob" | "Grep" | "LS", _) => Err("looking around falls under `read` here".into()),
        ("Task" | "Agent", inner) => one("task", inner.unwrap_or("*")),
        ("Skill", inner) => one("skill", inner.unwrap_or("*")),
        ("WebFetch", None) => one("webfetch", "*"),
        ("WebFetch", Some(host)) => match host.strip_prefix("domain:") {
            Some(host) if is_host(host) => one("webfetch", host),
            Some(_) | None => Err("rules of `webfetch` name hosts, such as docs.rs".into()),
        },
        ("WebSearch", _) => Err("searching falls under `webfetch` here".into()),
        (name, None) => match foreign(name) {
            Some(key) => one(&key, "*"),
            None => Err(format!("Windlass has no tool `{name}`")),
        },
        (name, Some(_)) => Err(format!("Windlass has no such rule for `{name}`")),
    }
}

/// True for one host, or all below one.
fn is_host(text: &str) -> bool {
    let host = text.strip_prefix("*.").unwrap_or(text);
    let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_' | ':');
    !host.is_empty() && host.chars().all(plain)
}

fn named(key: &str, patterns: Vec<String>) -> Result<Vec<(String, String)>, String> {
    Ok(patterns.into_iter().map(|pattern| (key.to_owned(), pattern)).collect())
}

/// The words of a command. Ours are matched against one simple command at a time.
fn command_pattern(command: &str, level: Level) -> Result<String, String> {
    if command.contains(['|', ';', '&', '\n', '`', '<', '>']) || command.contains("$(") {
        return Err("a rule is for one command at a time here".into());
    }
    if command.contains('?') && level == Level::Allow {
        return Err("`?` is any character here, so it would allow more".into());
    }
    let pattern = match command.strip_suffix(":*") {
        Some(prefix) => format!("{} *", prefix.trim_end()),
        None => command.to_owned(),
    };
    let words: Vec<&str> = pattern.split_whitespace().collect();
    Ok(words.join(" "))
}

/// Paths from the project's folder. Theirs are those of `.gitignore`: a name without `/` means it
/// at any depth, and a star stays within a name.
fn path_patterns(path: &str, level: Level, side: Side) -> Result<Vec<String>, String> {
    let outside =
        "rules for files name paths within a project; what lies outside is not opened by them";
    let path = match (path, side) {
        (path, _) if path.starts_with("//") || path.starts_with('~') => return Err(outside.into()),
        (path, Side::Project) => path.strip_prefix('/').unwrap_or(path),
        (path, Side::Own) if path.starts_with('/') => return Err(outside.into()),
        (path, Side::Own) => path,
    };
    let (fixed, path) = match path.strip_prefix("./") {
        Some(rest) => (true, rest),
        None => (false, path),
    };
    if path.split('/').any(|part| part == "..") || path.contains(['[', '!', '{', '\\']) {
        return Err("its pattern has no form here".into());
    }
    if level == Level::Allow {
        let folder = path.strip_suffix("/**").or_else(|| path.strip_suffix('/'));
        let (stem, tail) = match folder {
            Some(stem) => (stem, "/*"),
            None => (path, ""),
        };
        if path == "**" {
            return Ok(vec!["*".into()]);
        }
        // Without a slash theirs means more than the one path; ours the one.
        if stem.is_empty() || stem.contains(['*', '?']) {
            return Err("`*` also means `/` here, so it would allow more".into());
        }
        return Ok(vec![format!("{stem}{tail}")]);
    }
    let (path, slash) = match path.strip_suffix('/') {
        Some(path) => (path, true),
        None => (path, false),
    };
    let anywhere = path.strip_prefix("**/");
    let bare = anywhere.unwrap_or(path);
    // What may be a folder is meant with everything in it.
    let last = bare.rsplit('/').next().unwrap_or(bare);
    let tail = if slash || !last.contains(['.', '*']) { "/*" } else { "" };
    let deep = anywhere.is_some() || !fixed && !path.contains('/');
    let mut patterns = Vec::new();
    for bare in [bare.to_owned(), bare.replace("/**/", "/")] {
        let bare = format!("{}{tail}", bare.replace("**", "*"));
        let below = format!("*/{bare}");
        let below = (deep && !bare.starts_with('*')).then_some(below);
        for pattern in std::iter::once(bare).chain(below) {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
    }
    Ok(patterns)
}

/// The point of ours that an event of Claude's is, if hooks are asked there.
pub(super) fn point(event: &str) -> Option<Point> {
    let point = Point::named(event)?;
    let later = matches!(point, Point::ToolDefinition | Point::Params | Point::System);
    (!later).then_some(point)
}
