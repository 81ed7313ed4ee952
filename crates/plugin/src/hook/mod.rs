//! A command as a hook: started for each firing, in a cage, and gone when it has spoken.
//!
//! It reads what it is asked about from its standard input and says what it thinks of it on its
//! standard output; an exit code of 2 is a no. Whatever else it does is a failure, and a failure
//! is a no: only what was understood to the last word lets a matter pass. Start reading at
//! [`Program::new`], then at `run`.

mod claude;
mod matcher;
mod run;
mod verdict;

use async_trait::async_trait;
use matcher::Matcher;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use windlass_protocol::Point;
use windlass_sandbox::Servant;
use windlass_toolkit::{Berth, Hook, Matter, Moment, Refusal, Said};

/// What is left for ending a command that took too long, before it is given up on.
const PARTING: Duration = Duration::from_millis(200);

/// What is wrong with the pattern of a hook, if it is none.
pub fn objection(matcher: &str) -> Option<String> {
    Matcher::new(matcher).err()
}

/// Says why a command may not be started now, if that is so.
pub type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A command that has its say.
#[derive(Clone)]
pub struct Spec {
    /// Names it in refusals and on record.
    pub name: String,
    /// When it is asked.
    pub point: Point,
    /// The tools it is asked about, as a regular expression that has to fit the whole name; none
    /// for all.
    pub matcher: Option<String>,
    /// What is started.
    pub servant: Servant,
    /// How long it may take from its start.
    pub timeout: Duration,
    /// Whose words it speaks.
    pub form: Form,
    /// Looks, before each start, whether it may be.
    pub check: Option<Check>,
}

/// Whose words a hook speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ours.
    Ours,
    /// Those of Claude's hooks, to which tools have other names.
    Claude {
        /// The servers there are, because their tools are called after them.
        servers: Vec<String>,
    },
}

/// A command that is a hook.
pub struct Program {
    spec: Spec,
    matcher: Option<Matcher>,
    berth: Berth,
}

impl Program {
    /// A hook that is started at a berth, or what is wrong with it.
    pub fn new(spec: Spec, berth: &Berth) -> Result<Program, String> {
        let matcher = spec.matcher.as_deref().map(Matcher::new).transpose()?;
        Ok(Program { spec, matcher, berth: berth.clone() })
    }

    /// What the command is told on its standard input.
    fn payload(&self, moment: &Moment<'_>, matter: &Matter) -> Value {
        match &self.spec.form {
            Form::Ours => ours(&self.spec.name, moment, matter),
            Form::Claude { servers } => claude::payload(servers, moment, matter),
        }
    }

    /// True if a matcher that is about no tool is about something else than what happened.
    fn is_beside(&self, matter: &Matter) -> bool {
        let Some(matcher) = &self.matcher else { return false };
        let Matter::Told { what, .. } = matter else { return false };
        let kind = ["source", "trigger", "kind"].iter().find_map(|key| what.get(key)?.as_str());
        kind.is_some_and(|kind| !matcher.fits(kind))
    }
}

#[async_trait]
impl Hook for Program {
    fn name(&self) -> &str {
        &self.spec.name
    }

    fn at(&self, point: Point, tool: Option<&str>) -> bool {
        if self.spec.point != point {
            return false;
        }
        let (Some(matcher), Some(tool)) = (&self.matcher, tool) else { return true };
        matcher.fits(tool)
            || match &self.spec.form {
                Form::Ours => false,
                Form::Claude { servers } => {
                    claude::names(servers, tool).iter().any(|name| matcher.fits(name))
                }
            }
    }

    fn patience(&self) -> Duration {
        self.spec.timeout + PARTING
    }

    async fn fire(&self, moment: &Moment<'_>, matter: Matter) -> Result<Said, Refusal> {
        if self.is_beside(&matter) {
            return Ok(Said::Go(matter));
        }
        if let Some(check) = &self.spec.check {
            check().map_err(Refusal::failed)?;
        }
        let payload = self.payload(moment, &matter);
        let mut servant = self.spec.servant.clone();
        if self.spec.form != Form::Ours {
            servant.env.push(("CLAUDE_PROJECT_DIR".into(), moment.folder.into()));
        }
        let berth = self.berth.in_mode(moment.mode);
        let heard = run::ask(&berth, servant, &payload, self.spec.timeout).await?;
        match &self.spec.form {
            Form::Ours => verdict::read(&heard, matter),
            Form::Claude { .. } => claude::read(&heard, &payload, matter),
        }
    }
}

/// What a hook is told in our own words.
fn ours(name: &str, moment: &Moment<'_>, matter: &Matter) -> Value {
    let mut told = json!({
        "windlass": 1,
        "hook": name,
        "point": matter.point(),
        "session": moment.session,
        "folder": moment.folder,
        "mode": moment.mode,
    });
    let mut add = |key: &str, value: Value| {
        if let Some(told) = told.as_object_mut() {
            told.insert(key.to_owned(), value);
        }
    };
    if let Some(call) = moment.call {
        add("call", json!(call));
    }
    if let Some(tool) = matter.tool() {
        add("tool", json!(tool));
    }
    match matter {
        Matter::Before { arguments, .. } => add("arguments", arguments.clone()),
        Matter::After { arguments, output, .. } => {
            add("arguments", arguments.clone());
            add("output", json!(output.text));
        }
        Matter::Asked { accesses, reason, .. } => {
            add("accesses", json!(accesses));
            add("reason", json!(reason));
        }
        Matter::Prompt { text } => add("prompt", json!(text)),
        Matter::Definition { definition, .. } => {
            add("description", json!(definition.description));
            add("parameters", definition.schema.clone());
        }
        Matter::Params { params } => add("params", params.clone()),
        Matter::System { text } => add("system", json!(text)),
        Matter::Told { what, .. } => add("what", what.clone()),
    }
    told
}

#[cfg(test)]
mod tests;
