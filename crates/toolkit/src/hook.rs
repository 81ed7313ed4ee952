//! Hooks: other people's say. A hook may refuse, rewrite or have a person asked, never grant; one
//! that fails or takes too long refuses.
//!
//! [`fire`] asks all that want to be heard, one after the other: each sees what the one before it
//! made of the matter, and what each said is told with how long it took.

use crate::tool::Definition;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::{Access, CallId, Mode, Output, Point, SessionId, Verdict};

/// How long a hook may take that does not say.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Whom a hook is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The session.
    pub session: SessionId,
    /// The call it is about, if it is one.
    pub call: Option<CallId>,
    /// The folder the session works in.
    pub folder: &'a str,
    /// The mode it works in.
    pub mode: Mode,
}

/// What a hook is shown, and may give back changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Matter {
    /// A call, before anything is decided: permission decides on what is given back.
    Before {
        /// The tool; it stays.
        tool: String,
        /// The arguments.
        arguments: Value,
    },
    /// What a call gave, before it is bounded.
    After {
        /// The tool; it stays.
        tool: String,
        /// The arguments it ran with; they stay.
        arguments: Value,
        /// What it gave.
        output: Output,
    },
    /// What somebody is about to be asked. All of it stays.
    Asked {
        /// The tool.
        tool: String,
        /// What the call would touch.
        accesses: Vec<Access>,
        /// Why it asks.
        reason: String,
    },
    /// What a person asks for.
    Prompt {
        /// In their words.
        text: String,
    },
    /// What a model is told of a tool.
    Definition {
        /// The tool; it stays.
        tool: String,
        /// Its definition.
        definition: Definition,
    },
    /// What a model is asked with.
    Params {
        /// As options have it.
        params: Value,
    },
    /// What a session's model is told before everything else.
    System {
        /// The brief.
        text: String,
    },
    /// Something that happened. All of it stays.
    Told {
        /// When.
        point: Point,
        /// What.
        what: Value,
    },
}

impl Matter {
    /// When this is shown.
    pub fn point(&self) -> Point {
        match self {
            Matter::Before { .. } => Point::BeforeTool,
            Matter::After { .. } => Point::AfterTool,
            Matter::Asked { .. } => Point::Permission,
            Matter::Prompt { .. } => Point::Prompt,
            Matter::Definition { .. } => Point::ToolDefinition,
            Matter::Params { .. } => Point::Params,
            Matter::System { .. } => Point::System,
            Matter::Told { point, .. } => *point,
        }
    }

    /// The tool it is about, if it is one.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Matter::Before { tool, .. }
            | Matter::After { tool, .. }
            | Matter::Asked { tool, .. }
            | Matter::Definition { tool, .. } => Some(tool),
            Matter::Prompt { .. }
            | Matter::Params { .. }
            | Matter::System { .. }
            | Matter::Told { .. } => None,
        }
    }

    /// True if this can be made of that: what stays has stayed.
    fn follows(&self, before: &Matter) -> bool {
        match (before, self) {
            (Matter::Before { tool, .. }, Matter::Before { tool: kept, .. })
            | (Matter::Definition { tool, .. }, Matter::Definition { tool: kept, .. }) => {
                tool == kept
            }
            (
                Matter::After { tool, arguments, .. },
                Matter::After { tool: kept, arguments: same, .. },
            ) => tool == kept && arguments == same,
            (Matter::Asked { .. }, after) | (Matter::Told { .. }, after) => before == after,
            (Matter::Prompt { .. }, Matter::Prompt { .. })
            | (Matter::Params { .. }, Matter::Params { .. })
            | (Matter::System { .. }, Matter::System { .. }) => true,
            (
                Matter::Before { .. }
                | Matter::After { .. }
                | Matter::Prompt { .. }
                | Matter::Definition { .. }
                | Matter::Params { .. }
                | Matter::System { .. },
                _,
            ) => false,
        }
    }
}

/// What a hook says, if it does not say no.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// Go on, with this.
    Go(Matter),
    /// Go on with this, but have a person asked, because of this.
    Ask(Matter, String),
    /// Go on with this, and tell the model that. It is heard where a session starts, where a person
    /// asks for something, and where a conversation is summed up.
    Context(Matter, String),
}

/// Something that has its say.
#[async_trait]
pub trait Hook: Send + Sync {
    /// Names it in refusals and on record.
    fn name(&self) -> &str;

    /// True if it wants to be heard there, about this tool if it is about one.
    fn at(&self, point: Point, tool: Option<&str>) -> bool;

    /// How long it may take.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Has its say.
    async fn fire(&self, moment: &Moment<'_>, matter: Matter) -> Result<Said, Refusal>;
}

/// A hook's no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It said so.
    #[error("{reason}")]
    Said {
        /// Why, for the model.
        reason: String,
    },
    /// It did not work.
    #[error("{reason}")]
    Failed {
        /// What went wrong.
        reason: String,
    },
}

impl Refusal {
    /// A no with a reason.
    pub fn said(reason: impl Into<String>) -> Refusal {
        Refusal::Said { reason: reason.into() }
    }

    /// A hook that did not work, and why.
    pub fn failed(reason: impl Into<String>) -> Refusal {
        Refusal::Failed { reason: reason.into() }
    }
}

/// That a hook was asked, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// The hook.
    pub hook: String,
    /// When it was asked.
    pub point: Point,
    /// How long it took.
    pub took: Duration,
    /// What it said.
    pub verdict: Verdict,
}

/// The no that ended it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The hook {hook} refused: {reason}")]
pub struct Stopped {
    /// The hook.
    pub hook: String,
    /// Why.
    pub reason: String,
}

/// What all hooks together made of a matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// What is left of it.
    pub matter: Matter,
    /// Why a person is to be asked, if somebody wants that.
    pub ask: Option<String>,
    /// What the model is to be told besides.
    pub context: Vec<String>,
}

/// Asks the hooks, in order, until one says no. Where nothing hangs on what they say, a no is only
/// told of.
pub async fn fire(
    hooks: &[Arc<dyn Hook>],
    moment: &Moment<'_>,
    matter: Matter,
) -> (Vec<Firing>, Result<Heard, Stopped>) {
    let point = matter.point();
    let mut firings = Vec::new();
    let mut heard = Heard { matter, ask: None, context: Vec::new() };
    for hook in hooks {
        if !hook.at(point, heard.matter.tool()) {
            continue;
        }
        let since = Instant::now();
        let said = hook.fire(moment, heard.matter.clone());
        let said = match tokio::time::timeout(hook.patience(), said).await {
            Ok(said) => said,
            Err(_) => Err(Refusal::failed("it did not answer in time")),
        };
        let took = since.elapsed();
        let (verdict, stops) = match said.and_then(|said| heard.take(hook.name(), said)) {
            Ok(verdict) => (verdict, None),
            Err(Refusal::Said { reason }) => {
                (Verdict::Refused { reason: reason.clone() }, Some(reason))
            }
            Err(Refusal::Failed { reason }) => {
                (Verdict::Failed { reason: reason.clone() }, Some(reason))
            }
        };
        let name = hook.name().to_owned();
        firings.push(Firing { hook: name.clone(), point, took, verdict });
        if let Some(reason) = stops.filter(|_| point.decides()) {
            return (firings, Err(Stopped { hook: name, reason }));
        }
    }
    (firings, Ok(heard))
}

impl Heard {
    /// Takes in what a hook said.
    fn take(&mut self, hook: &str, said: Said) -> Result<Verdict, Refusal> {
        let (matter, ask, context) = match said {
            Said::Go(matter) => (matter, None, None),
            Said::Ask(matter, reason) => (matter, Some(reason), None),
            Said::Context(matter, text) => (matter, None, Some(text)),
        };
        if !matter.follows(&self.matter) {
            return Err(Refusal::failed("it changed what it may not change"));
        }
        let rewrote = matter != self.matter;
        self.matter = matter;
        self.context.extend(context);
        Ok(match ask {
            Some(reason) => {
                let asks = format!("the hook {hook} asks: {reason}");
                self.ask = Some(match self.ask.take() {
                    None => asks,
                    Some(before) => format!("{before}; {asks}"),
                });
                Verdict::Asks { reason }
            }
            None if rewrote => Verdict::Rewrote,
            None => Verdict::Passed,
        })
    }
}
