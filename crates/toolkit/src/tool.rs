//! The contract of a tool: what it is called with, what it would touch, what it does.

use crate::hook::Firing;
use crate::road::Runtime;
use crate::search;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    Access, Answer, Author, BlobRef, CallId, Change, Inquiry, Output, Repair, SessionId, Todo,
    ToolSummary, TurnEnd,
};
use windlass_sandbox::{Pending, World};

/// Something a model can call.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// What it is called with. The schema a model is sent is derived from this.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// The name a model calls it by.
    fn name(&self) -> &str;

    /// The permission key its calls fall under; a key that is denied outright hides the tool.
    fn key(&self) -> &str {
        self.name()
    }

    /// False for a tool that this model is not offered and cannot call.
    fn offered(&self, _scene: &Scene) -> bool {
        true
    }

    /// False for a tool that cannot be one of several calls in one: it waits for a person, it is
    /// made of calls itself, or nobody here knows what it does.
    fn batched(&self) -> bool {
        true
    }

    /// False for a tool that a model is not told of at once, but finds. It stays the same for as
    /// long as the process runs: what a model was told first is never changed.
    fn listed(&self) -> bool {
        true
    }

    /// The call that a call is another way of writing. Such a tool never runs, and is called with
    /// `{"name": …, "arguments": {…}}`.
    fn stands_for(&self, _input: &Self::Input) -> Option<Part> {
        None
    }

    /// The calls that a call is made of, for a tool that does nothing by itself.
    fn parts(&self, _input: &Self::Input) -> Option<Vec<Part>> {
        None
    }

    /// What a model is told of it. Called at most once a step, so it may look at the scene.
    async fn describe(&self, scene: &Scene) -> Definition;

    /// What a call would touch. Pure: it looks at nothing but the input.
    fn access(&self, input: &Self::Input) -> Vec<Access>;

    /// What a call would do, for the person who is asked. The world is open for reading only. A
    /// call that cannot be done anyway says so here, and nobody is asked.
    async fn preview(&self, _input: &Self::Input, _cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Does it.
    async fn run(&self, input: Self::Input, cx: &Cx<'_>) -> Result<Output, Failure>;
}

/// One of the calls that a call is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The tool, as it was spelled.
    pub tool: String,
    /// The arguments, as JSON.
    pub arguments: String,
}

/// What a description may depend on.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// The model that is going to read it, as `provider/model`.
    pub model: String,
    /// It can be shown PDFs.
    pub pdfs: bool,
    /// The person trusts the project, so that its own instructions count.
    pub trusted: bool,
    /// The skills there are, sorted by name.
    pub skills: Arc<[Skill]>,
    /// The agents that a call can have at work.
    pub agents: Vec<AgentCard>,
    /// Whose tools are found instead of told of, a line each. The registry fills it in, and what it
    /// said first stays for as long as it is there.
    pub elsewhere: Arc<[String]>,
}

/// What somebody wrote down of how to do something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// What it is for, and when.
    pub description: String,
    /// How to do it.
    pub body: String,
    /// Where it is, for people and models.
    pub folder: String,
    /// The tools it says it needs; none if it does not say.
    pub tools: Vec<String>,
}

/// An agent, as a model that may put it to work knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentCard {
    /// Its name.
    pub name: String,
    /// When to use it.
    pub description: String,
}

/// What a model is told of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub schema: Value,
}

impl Definition {
    /// A definition whose schema is derived from the input type.
    pub fn of<Input: JsonSchema>(description: &str) -> Definition {
        let mut schema = schemars::schema_for!(Input);
        // A model gains nothing from these, and pays for every byte.
        for noise in ["$schema", "title", "description"] {
            schema.remove(noise);
        }
        Definition { description: description.trim().to_owned(), schema: schema.to_value() }
    }
}

/// Why a call could not be done. The model reads it and may try otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// What happened, then what to do instead.
    pub text: String,
}

impl Failure {
    /// A failure in these words.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure { text: text.into() }
    }
}

impl From<windlass_sandbox::Error> for Failure {
    fn from(error: windlass_sandbox::Error) -> Failure {
        Failure::new(error.to_string())
    }
}

/// What a running call has at hand. Only the road makes one.
#[non_exhaustive]
pub struct Cx<'a> {
    /// The session it belongs to.
    pub session: SessionId,
    /// Names the call.
    pub call: CallId,
    /// Who made it.
    pub by: Author,
    /// What it may reach.
    pub world: Arc<World>,
    /// Fires when the call should stop.
    pub cancel: CancellationToken,
    /// Whoever made the call.
    pub caller: &'a dyn Caller,
    /// Whom the result is for.
    pub scene: &'a Scene,
    /// What it runs in.
    pub(crate) runtime: &'a Runtime,
}

/// Tools that were looked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Those that fit, best first.
    pub tools: Vec<ToolSummary>,
    /// How many more fit.
    pub more: usize,
    /// Who is not there, and why: their tools could not be looked through.
    pub missing: Vec<String>,
}

/// How long tools that are still to come are waited for.
const ARRIVAL: Duration = Duration::from_secs(5);

impl Cx<'_> {
    /// Looks for tools that the model was not told of, by what they say of themselves.
    pub async fn find_tools(&self, query: &str, limit: usize) -> Found {
        let missing = self.runtime.registry.arrivals(ARRIVAL).await;
        let there = self.runtime.snapshot(self.scene).await.unlisted();
        let ranked = search::rank(query, &there);
        let more = ranked.len().saturating_sub(limit);
        let tools = ranked.into_iter().take(limit).cloned().collect();
        Found { tools, more, missing }
    }

    /// Runs file work where it holds nobody up.
    pub async fn blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&World) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let world = Arc::clone(&self.world);
        match tokio::task::spawn_blocking(move || job(&world)).await {
            Ok(result) => result,
            Err(_) => Err(Failure::new("the tool failed unexpectedly")),
        }
    }
}

/// What a call is about to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// What it would touch, resolved.
    pub accesses: Vec<Access>,
    /// True if running it again changes nothing.
    pub read_only: bool,
    /// Why somebody must be asked first, if so.
    pub asking: Option<String>,
    /// The kind of command it is, where a yes can be given to all of that kind.
    pub offer: Option<String>,
    /// A yes that was given to the same before may answer for it.
    pub coverable: bool,
    /// What it means, where that is not what was written.
    pub repaired: Option<Repair>,
}

/// What a call that said what it is about to do hears.
#[derive(Clone, Debug, PartialEq)]
pub enum Permit {
    /// Somebody is going to be asked: what would it do? Everything before it is done.
    Look,
    /// This.
    Answer(Answer),
}

/// Whoever makes a call: a session, or a person through one.
#[async_trait]
pub trait Caller: Send + Sync {
    /// Records what is about to happen. A yes comes back only once the start of the call is on
    /// record, and on the disk if the call changes something.
    async fn permit(&self, intent: Intent) -> Permit;

    /// Asks, with what would happen in front of whoever is asked.
    async fn ask(&self, preview: Option<String>) -> Answer;

    /// Puts on record that a hook had its say.
    async fn hooked(&self, _firing: Firing) {}

    /// Shows what a running call says of itself.
    fn progress(&self, _text: String) {}

    /// Shows a piece of what a running command prints, as it printed it.
    fn output(&self, _text: String) {}

    /// Shows that a command wanted to reach a host, and why it could not, if so.
    fn reached(&self, _host: String, _refused: Option<String>) {}

    /// Keeps bytes for later. A caller that keeps nothing says so, and so below.
    async fn keep(&self, _bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        Err(Failure::new(NOT_KEPT))
    }

    /// Gives them back.
    async fn recall(&self, _blob: &BlobRef) -> Result<Vec<u8>, Failure> {
        Err(Failure::new(NOT_KEPT))
    }

    /// Puts changes on record, with what is needed to take them back. They are made once this
    /// returns; what is not recorded is not made.
    async fn record(&self, _batch: Vec<Pending>) -> Result<(), Failure> {
        Err(Failure::new(NOT_KEPT))
    }

    /// Puts on record that they were not made after all.
    async fn withdraw(&self) {}

    /// Gives back the bytes of a file's version as it was recorded.
    async fn version(&self, _copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        Err(Failure::new(NOT_KEPT))
    }

    /// Puts questions to a person and waits for what they say: one list for each question.
    async fn inquire(
        &self,
        _inquiries: Vec<Inquiry>,
        _stake: Stake,
    ) -> Result<Vec<Vec<String>>, Failure> {
        Err(Failure::new(NOBODY))
    }

    /// The list of what is to be done, as it was last written.
    fn todos(&self) -> Vec<Todo> {
        Vec::new()
    }

    /// What the caller last saw at a path, or left there.
    fn seen(&self, _path: &str) -> Option<Seen> {
        None
    }

    /// The call shows the caller what a file holds.
    fn show(&self, _path: &str, _bytes: &Arc<[u8]>) {}

    /// Has an agent work in a session of its own. It ends with the call unless it works in the
    /// background.
    async fn spawn(&self, _spawn: Spawn) -> Result<Report, Failure> {
        Err(Failure::new("No agent can be put to work here. Do it yourself."))
    }
}

/// Work for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The agent.
    pub agent: String,
    /// What it is about, in a few words.
    pub description: String,
    /// What it is asked.
    pub prompt: String,
    /// The session to go on with.
    pub session: Option<SessionId>,
    /// Nobody waits for it: its end is told to the session that began it.
    pub background: bool,
}

/// What an agent's work gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The session it worked in.
    pub session: SessionId,
    /// What it said last.
    pub text: String,
    /// How its turn ended; none while it is at work in the background.
    pub end: Option<TurnEnd>,
}

/// What stood at a path before a change and after it, where there was a file.
pub type Ends = [Option<Arc<[u8]>>; 2];

impl dyn Caller + '_ {
    /// Both versions of a change as they were recorded: before, and after.
    pub async fn versions(&self, change: &Change) -> Result<Ends, Failure> {
        let mut ends = [None, None];
        for (end, version) in ends.iter_mut().zip([&change.before, &change.after]) {
            if let Some(version) = version {
                *end = Some(self.version(&version.copy).await?.into());
            }
        }
        Ok(ends)
    }
}

const NOT_KEPT: &str = "nothing is kept here";

/// What a model hears if its questions reach nobody.
pub const NOBODY: &str = "Nobody is here to answer. Decide yourself, and say what you decided.";

/// What hangs on the replies to questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stake {
    /// Nothing but what the model makes of them.
    #[default]
    Words,
    /// The mode of the session: a reply that names one changes it.
    Mode,
}

/// What was seen of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The digest of its bytes.
    pub digest: BlobRef,
    /// The bytes, while they are still at hand.
    pub bytes: Option<Arc<[u8]>>,
}

/// A tool whose input type is no longer visible.
#[async_trait]
pub(crate) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn key(&self) -> &str;
    fn offered(&self, scene: &Scene) -> bool;
    fn batched(&self) -> bool;
    fn listed(&self) -> bool;
    /// The call that a call with these arguments is another way of writing.
    fn stands_for(&self, arguments: &Value) -> Option<Part>;
    async fn describe(&self, scene: &Scene) -> Definition;
    fn prepare(self: Arc<Self>, arguments: Value) -> Result<Box<dyn Prepared>, Failure>;
}

/// A call whose arguments have been understood.
#[async_trait]
pub(crate) trait Prepared: Send + Sync {
    fn access(&self) -> Vec<Access>;
    /// The calls it is made of, if it is made of calls.
    fn parts(&self) -> Option<Vec<Part>> {
        None
    }
    async fn preview(&self, cx: &Cx<'_>) -> Result<Option<String>, Failure>;
    async fn run(self: Box<Self>, cx: &Cx<'_>) -> Result<Output, Failure>;
}

struct Ready<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

#[async_trait]
impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn key(&self) -> &str {
        Tool::key(self)
    }

    fn offered(&self, scene: &Scene) -> bool {
        Tool::offered(self, scene)
    }

    fn batched(&self) -> bool {
        Tool::batched(self)
    }

    fn listed(&self) -> bool {
        Tool::listed(self)
    }

    fn stands_for(&self, arguments: &Value) -> Option<Part> {
        let input = T::Input::deserialize(arguments).ok()?;
        Tool::stands_for(self, &input)
    }

    async fn describe(&self, scene: &Scene) -> Definition {
        Tool::describe(self, scene).await
    }

    fn prepare(self: Arc<Self>, arguments: Value) -> Result<Box<dyn Prepared>, Failure> {
        match serde_json::from_value(arguments) {
            Ok(input) => Ok(Box::new(Ready { tool: self, input })),
            Err(error) => Err(Failure::new(format!("the arguments do not fit: {error}"))),
        }
    }
}

#[async_trait]
impl<T: Tool> Prepared for Ready<T> {
    fn access(&self) -> Vec<Access> {
        self.tool.access(&self.input)
    }

    fn parts(&self) -> Option<Vec<Part>> {
        self.tool.parts(&self.input)
    }

    async fn preview(&self, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        self.tool.preview(&self.input, cx).await
    }

    async fn run(self: Box<Self>, cx: &Cx<'_>) -> Result<Output, Failure> {
        self.tool.run(self.input, cx).await
    }
}
