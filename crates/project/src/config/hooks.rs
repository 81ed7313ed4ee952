//! Hooks in a config, in our form and in Claude's. They are only read here; what runs them decides
//! what their words mean.

use super::Config;
use crate::file::{File, Layer};
use crate::plugins::Lodging;
use crate::pointer;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::Point;

/// How long a hook may take if it does not say, in our form and in Claude's, and at most.
const OURS: Duration = Duration::from_secs(10);
const CLAUDES: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(60);

/// A program that has its say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSpec {
    /// Its name, for refusals and the record.
    pub name: String,
    /// When it is asked.
    pub point: Point,
    /// The tools it is asked about, as a regular expression; none for all.
    pub matcher: Option<String>,
    /// What is run.
    pub command: HookCommand,
    /// How long it may take.
    pub timeout: Duration,
    /// It may write in the project.
    pub write: bool,
    /// The hosts it may reach.
    pub network: Vec<String>,
    /// Whose words it speaks.
    pub form: Form,
    /// Who brings it.
    pub layer: Layer,
    /// Where the plugin is that brings it, if one does.
    pub plugin: Option<Lodging>,
}

/// What a hook runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookCommand {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A line of shell.
    Shell(String),
}

/// Whose words a hook speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ours.
    Ours,
    /// Those of Claude's hooks.
    Claude,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ours {
    #[serde(rename = "match")]
    matcher: Option<String>,
    command: Written,
    timeout: Option<u32>,
    name: Option<String>,
    write: Option<bool>,
    network: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Line(String),
    Words(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claudes {
    matcher: Option<String>,
    hooks: Vec<Claude>,
}

#[derive(Deserialize)]
struct Claude {
    #[serde(rename = "type")]
    kind: String,
    command: Option<String>,
    timeout: Option<f64>,
}

impl Config {
    /// Takes over the hooks of a file. One that cannot be understood may be there to say no: in the
    /// person's own config nothing starts without it.
    pub(super) fn take_hooks(
        &mut self,
        layer: Layer,
        hooks: BTreeMap<String, Vec<Value>>,
        file: &mut File,
    ) {
        for (name, entries) in hooks {
            let at = pointer::join("/hooks", &name);
            let point = match point(&name) {
                Ok(point) => point,
                Err(why) => {
                    file.fault(&at, &why);
                    continue;
                }
            };
            for (index, entry) in entries.into_iter().enumerate() {
                let at = format!("{at}/{index}");
                match read(entry, point, layer) {
                    Err(why) => file.fault(&at, &why),
                    Ok(read) => {
                        for mut hook in read {
                            if hook.name.is_empty() {
                                hook.name = format!("{point}-{}", self.hooks.len() + 1);
                            }
                            let origin = file.origin(&at).clone();
                            let shown = match &hook.command {
                                HookCommand::Argv(words) => words.join(" "),
                                HookCommand::Shell(line) => line.clone(),
                            };
                            self.show(&format!("hooks.{point}.{}", hook.name), &shown, &origin);
                            self.hooks.push(hook);
                        }
                    }
                }
            }
        }
    }
}

/// The point of this name.
pub(crate) fn point(name: &str) -> Result<Point, String> {
    Point::named(name).ok_or_else(|| {
        let known = Point::ALL.map(Point::name).join(", ");
        format!("there is no hook `{name}`; there is {known}")
    })
}

/// The hooks an entry holds.
pub(crate) fn read(entry: Value, point: Point, layer: Layer) -> Result<Vec<HookSpec>, String> {
    let bounded = |timeout: Duration| timeout.clamp(Duration::from_millis(1), LONGEST);
    if entry.get("hooks").is_some() {
        let entry: Claudes = serde_json::from_value(entry).map_err(|error| error.to_string())?;
        // Claude means every tool by an empty matcher, and by a star.
        let matcher = entry.matcher.filter(|text| !matches!(text.as_str(), "" | "*"));
        let mut hooks = Vec::new();
        for hook in entry.hooks {
            let command = match (hook.kind.as_str(), hook.command) {
                ("command", Some(line)) if !line.trim().is_empty() => HookCommand::Shell(line),
                ("command", _) => return Err("it names no command".into()),
                (kind, _) => return Err(format!("a hook of the kind `{kind}` is not known here")),
            };
            let seconds = hook.timeout.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
            let timeout =
                seconds.map_or(CLAUDES, |s| Duration::from_secs_f64(s.min(LONGEST.as_secs_f64())));
            hooks.push(HookSpec {
                name: String::new(),
                point,
                matcher: matcher.clone(),
                command,
                timeout: bounded(timeout),
                write: false,
                network: Vec::new(),
                form: Form::Claude,
                layer,
                plugin: None,
            });
        }
        return Ok(hooks);
    }
    let entry: Ours = serde_json::from_value(entry).map_err(|error| error.to_string())?;
    if layer == Layer::Project && entry.network.is_some() {
        return Err("a project's hook has no network".into());
    }
    let command = match entry.command {
        Written::Line(line) if !line.trim().is_empty() => HookCommand::Shell(line),
        Written::Words(words) if words.first().is_some_and(|word| !word.trim().is_empty()) => {
            HookCommand::Argv(words)
        }
        Written::Line(_) | Written::Words(_) => return Err("it names no command".into()),
    };
    let timeout = entry.timeout.map_or(OURS, |ms| Duration::from_millis(ms.into()));
    Ok(vec![HookSpec {
        name: entry.name.unwrap_or_default(),
        point,
        matcher: entry.matcher,
        command,
        timeout: bounded(timeout),
        write: entry.write.unwrap_or(false),
        network: entry.network.unwrap_or_default(),
        form: Form::Ours,
        layer,
        plugin: None,
    }])
}
