//! All language servers of a workspace, behind one door.

use crate::house::House;
use crate::{Before, Row, after, ask};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_protocol::SessionId;
use windlass_sandbox::World;
use windlass_toolkit::health::State;
use windlass_toolkit::{Berth, Cx, Failure};

/// What becomes of what servers say besides their answers.
pub trait Keeping: Send + Sync + 'static {
    /// A line of a server, for whoever looks into what went wrong.
    fn journal(&self, server: &str, line: &str);
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until a server has answered `initialize`.
    pub start: Duration,
    /// Until a server has answered a question.
    pub answer: Duration,
    /// After a change, until everything is known that is told with it.
    pub review: Duration,
    /// Until a server that nobody wants is ended.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            start: Duration::from_secs(20),
            answer: Duration::from_secs(10),
            review: Duration::from_secs(3),
            idle: Duration::from_secs(600),
        }
    }
}

/// What the servers of a workspace need.
pub struct Spec {
    /// The rows, preferred ones first.
    pub rows: Vec<Row>,
    /// Where servers are engaged.
    pub berth: Berth,
    /// What becomes of what they say.
    pub keeping: Arc<dyn Keeping>,
    /// How long things may take.
    pub patience: Patience,
}

/// The language servers of a workspace. Cheap to clone; they end with the last clone.
#[derive(Clone)]
pub struct Code(Arc<House>);

/// What servers make of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// What the model is told.
    pub text: String,
    /// How many errors are new.
    pub new: usize,
    /// How many were there before and still are.
    pub left: usize,
}

/// A question about code.
#[derive(Clone, Debug)]
pub enum Question {
    /// About what stands at a place.
    At {
        /// What is asked.
        what: At,
        /// The file.
        path: String,
        /// Its line, from 1.
        line: u32,
        /// The character in that line, from 1.
        character: u32,
    },
    /// The symbols of a file.
    Outline {
        /// The file.
        path: String,
    },
    /// The symbols of the workspace whose names resemble this.
    Symbols {
        /// A file whose server is asked; without one all servers are.
        path: Option<String>,
        /// What is looked for.
        query: String,
    },
}

/// What is asked about a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Where it is defined.
    Definition,
    /// Where it is used.
    References,
    /// What it is.
    Hover,
    /// What implements it.
    Implementation,
    /// What of it can call and be called.
    Calls,
    /// Who calls it.
    Incoming,
    /// Whom it calls.
    Outgoing,
}

/// What servers answered.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// What was found.
    pub found: Vec<Located>,
    /// An answer in prose.
    pub prose: String,
    /// What should be said besides.
    pub notes: Vec<String>,
}

/// Something that stands somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// Relative to the workspace, or a whole path outside of it.
    pub path: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub character: u32,
    /// What it is, such as `fn parse`; empty if only the place is known.
    pub what: String,
    /// The line there, if it may be shown.
    pub source: String,
    /// How deep it lies within others.
    pub depth: usize,
}

impl Code {
    /// The servers of a workspace. Nothing is started.
    pub fn open(spec: Spec) -> Code {
        Code(Arc::new(House::new(spec)))
    }

    /// Somebody looks at a file: its servers are started, and nobody waits.
    pub fn warm(&self, world: &Arc<World>, path: &str) {
        after::warm(&self.0, world, path);
    }

    /// What is known of files that are about to change. Never waits.
    pub fn before(&self, world: &Arc<World>, paths: &[String]) -> Before {
        after::before(&self.0, world, paths)
    }

    /// Tells servers what files hold now, nothing if they are gone, and waits for what they make of
    /// it.
    pub async fn after(
        &self,
        world: &Arc<World>,
        session: SessionId,
        before: Before,
        now: Vec<(String, Option<Arc<str>>)>,
        cancel: &CancellationToken,
    ) -> Option<Review> {
        after::after(&self.0, world, session, before, now, cancel).await
    }

    /// Tells servers what files hold now, and does not wait.
    pub fn changed(&self, world: &Arc<World>, now: Vec<(String, Option<Arc<str>>)>) {
        after::changed(&self.0, world, now);
    }

    /// Asks about code.
    pub async fn ask(&self, cx: &Cx<'_>, question: Question) -> Result<Answer, Failure> {
        ask::ask(&self.0, cx, question).await
    }

    /// How those are doing that somebody has asked for: name, root and state.
    pub fn states(&self) -> Vec<(String, String, State)> {
        self.0.states()
    }

    /// Ends all servers. Nothing of them runs when it returns, and none is started again.
    pub async fn close(&self) {
        self.0.close().await;
    }

    /// Asks the first server of a file anything. For tests.
    #[doc(hidden)]
    pub async fn probe(
        &self,
        world: &World,
        path: &str,
        method: &str,
        params: Value,
        limits: (Duration, Duration),
    ) -> Result<Value, String> {
        let (start, answer) = limits;
        let server = self.0.serving(world, path).into_iter().next();
        let server = server.ok_or_else(|| self.0.absent(world, path).unwrap_or_default())?;
        let link = server.link(start).await?;
        if let Some(method) = method.strip_prefix("notify:") {
            link.notify(method, params);
            return Ok(Value::Null);
        }
        link.request(method, params, answer).await.map_err(|refusal| format!("{refusal:?}"))
    }
}
