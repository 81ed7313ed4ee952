//! The host: opens sessions and answers questions about them.

use crate::agents::{self, Begun, Worker};
use crate::brief::Brief;
use crate::changes;
use crate::driver::{self, Base, Handle};
use crate::nursery::Family;
use crate::purse::{Purse, spent};
use crate::session::{Limits, Looping, Session, Terms, Window};
use crate::watch::Watcher;
use async_trait::async_trait;
use std::sync::Arc;
use windlass_llm::Client;
use windlass_llm::catalog::Model;
use windlass_protocol::event::BUILD;
use windlass_protocol::files::UNDO;
use windlass_protocol::{
    Answer, Approval, Author, BlobRef, CallId, Fact, Fault, Files, JobRow, Options, Outcome, Query,
    Record, Reply, Scope, SessionId, SessionSummary, Transcript, Undo, View,
};
use windlass_storage::{Error, Log, PAGE, read_all};
use windlass_toolkit::{Call, Caller, Failure, Intent, Permit, Runtime, Scene, Skill};

/// What all sessions of a host share besides their workspace.
#[derive(Clone)]
pub struct Settings {
    /// Whom to ask.
    pub model: Option<Asked>,
    /// The model as it is recorded, `provider/model`.
    pub model_name: Arc<str>,
    /// What the model is told before the conversation.
    pub system: Arc<str>,
    /// Bounds on a turn.
    pub limits: Limits,
    /// What becomes of a model that goes in circles.
    pub looping: Looping,
    /// The person trusts the project, so that its own instructions count.
    pub trusted: bool,
    /// The skills there are, sorted by name.
    pub skills: Arc<[Skill]>,
    /// Keeps what the person allowed for the whole project.
    pub remember: Memory,
    /// The agents there are.
    pub agents: Arc<[Arc<Worker>]>,
    /// The one that works in a new session.
    pub agent: String,
    /// A session's model is asked for a title when the first turn has ended well. For front ends that
    /// stay and show lists of sessions; the sessions that calls begin are never named so.
    pub titles: bool,
}

/// What keeps approvals.
pub type Memory = Arc<dyn Fn(&[Approval]) + Send + Sync>;

/// Whom to ask, and how.
#[derive(Clone)]
pub struct Asked {
    /// The way there.
    pub client: Arc<Client>,
    /// The model.
    pub model: Arc<Model>,
    /// How it is to answer.
    pub options: Arc<Options>,
}

impl Asked {
    /// A model nothing more is known of.
    pub fn plainly(client: Client, model: &str) -> Asked {
        let model = Arc::new(Model::assumed(model));
        Asked { client: Arc::new(client), model, options: Arc::default() }
    }

    /// The same without a shape that its answer has to have.
    pub(crate) fn freely(mut self) -> Asked {
        if self.options.answer.is_some() {
            Arc::make_mut(&mut self.options).answer = None;
        }
        self
    }
}

impl Settings {
    /// Settings with the brief for a workspace of which nothing more is known.
    pub fn new(workspace: &str, model: Option<Asked>, model_name: &str) -> Settings {
        let brief = Brief { folder: workspace.to_owned(), ..Brief::default() };
        let (system, limits) = (brief.text().into(), Limits::default());
        let model_name = model_name.into();
        let remember: Memory = Arc::new(|_: &[Approval]| {});
        let looping = Looping::default();
        let (agents, agent) = (Arc::new([]), BUILD.to_owned());
        let (trusted, skills) = (false, Arc::default());
        Settings {
            model,
            model_name,
            system,
            limits,
            looping,
            trusted,
            skills,
            remember,
            agents,
            agent,
            titles: false,
        }
    }
}

impl Settings {
    pub(crate) fn terms(&self) -> Terms {
        let asked = self.model.as_ref().map(|asked| &asked.model);
        let known = |tokens: Option<u64>| tokens.unwrap_or_default();
        let window = asked
            .map(|model| Window { context: known(model.context), output: known(model.output) });
        Terms {
            model: self.model_name.to_string(),
            window: window.unwrap_or_default(),
            price: asked.map(|model| model.price).unwrap_or_default(),
            limits: self.limits,
            looping: self.looping,
            brief: Arc::clone(&self.system),
        }
    }

    pub(crate) fn scene(&self) -> Scene {
        let pdfs = self.model.as_ref().is_none_or(|asked| asked.model.pdfs);
        let (skills, agents) = (Arc::clone(&self.skills), self.cards());
        let (model, trusted) = (self.model_name.to_string(), self.trusted);
        Scene { model, pdfs, trusted, skills, agents, ..Scene::default() }
    }
}

/// Everything needed to run the sessions of one workspace.
pub struct Engine {
    pub(crate) log: Arc<dyn Log>,
    runtime: Arc<Runtime>,
    pub(crate) settings: Arc<Settings>,
}

/// Something a person wants that cannot be.
pub(crate) fn refused(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

pub(crate) fn storage(error: Error) -> Fault {
    let message = error.to_string();
    match error {
        Error::NoSession { .. } | Error::Busy { .. } => Fault::Config { message },
        _ => Fault::Storage { message },
    }
}

impl Engine {
    /// A host over a log, a workspace's tools, and settings.
    pub fn new(log: Arc<dyn Log>, runtime: Arc<Runtime>, settings: Settings) -> Engine {
        Engine { log, runtime, settings: Arc::new(settings) }
    }

    /// The same host with another model for what is begun or opened from now on. What is open goes on
    /// with its own: see [`Handle::ask_another`].
    #[must_use]
    pub fn asking(&self, asked: Asked, name: &str) -> Engine {
        let (log, runtime) = (Arc::clone(&self.log), Arc::clone(&self.runtime));
        let settings = Settings { model: Some(asked), ..(*self.settings).clone() };
        let settings = Arc::new(Settings { model_name: name.into(), ..settings });
        Engine { log, runtime, settings }
    }

    pub(crate) fn workspace(&self) -> String {
        self.runtime.workspace.root().display().to_string()
    }

    /// Begins a new session. The watcher sees it from its first fact.
    pub async fn create(&self) -> Result<(Handle, Watcher), Fault> {
        self.begin(None).await
    }

    /// Begins a new session in which another agent works, if one is named.
    pub async fn begin(&self, agent: Option<&str>) -> Result<(Handle, Watcher), Fault> {
        let agent = agent.unwrap_or(&self.settings.agent);
        let base = self.base(agent, Begun::ByPerson)?;
        let opening = Fact::Opened {
            workspace: self.workspace(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            agent: agent.to_owned(),
            parent: None,
        };
        let session = SessionId(driver::stamp().id);
        let claim = self.log.claim(session).await.map_err(storage)?;
        let session = Session::new(opening, base.settings.terms());
        Ok(driver::start(base, claim, session))
    }

    /// Opens an existing session; whatever was under way in it goes on.
    pub async fn open(&self, session: SessionId) -> Result<(Handle, Watcher), Fault> {
        let claim = self.log.claim(session).await.map_err(storage)?;
        let page = self.log.read(session, 0).await.map_err(storage)?;
        if page.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let opened = Transcript::of(page.get(..1).unwrap_or_default());
        self.check_place(session, &opened)?;
        let begun = opened.parent.map_or(Begun::ByPerson, |_| Begun::ByCall);
        let base = self.base(&opened.agent, begun)?;
        let state = self.replay(session, page, base.settings.terms()).await.map_err(storage)?;
        if state.busy() {
            let log = read_all(&*self.log, session, 0).await.map_err(storage)?;
            if let Some((since, spent)) = spent(&*self.log, &log).await.map_err(storage)? {
                base.family.purse.resume(since, spent);
            }
        }
        Ok(driver::start(base, claim, state))
    }

    /// What a session needs in which this agent works.
    pub(crate) fn base(&self, agent: &str, begun: Begun) -> Result<Base, Fault> {
        let worker = self.settings.worker(agent).cloned();
        let usual = || (agent == BUILD || agent.is_empty()).then(agents::usual);
        let Some(worker) = worker.or_else(usual) else {
            let known: Vec<&str> = self.settings.agents.iter().map(|it| it.name.as_str()).collect();
            let message = format!("there is no agent {agent}; there is {}", known.join(", "));
            return Err(Fault::Config { message });
        };
        let limits = self.settings.limits;
        Ok(Base {
            log: Arc::clone(&self.log),
            runtime: agents::narrowed(&self.runtime, &worker, begun),
            settings: Arc::new(self.settings.suited(&worker, limits)),
            family: Family::of(Purse::new(limits)),
        })
    }

    /// A session as its log tells it. The next page is fetched while one is taken in, and no more
    /// than two are held.
    pub(crate) async fn replay(
        &self,
        session: SessionId,
        mut page: Vec<Record>,
        terms: Terms,
    ) -> Result<Session, Error> {
        let mut state = Session::replay(&[], terms);
        while let Some(last) = page.last().map(|record| record.seq) {
            let next = self.log.read(session, last);
            let (next, ()) = tokio::join!(next, async { state.read_on(&page) });
            page = next?;
        }
        Ok(state)
    }

    /// A session's paths mean nothing in another folder.
    fn check_place(&self, session: SessionId, transcript: &Transcript) -> Result<(), Fault> {
        let (theirs, ours) = (&transcript.workspace, self.workspace());
        if *theirs == ours {
            return Ok(());
        }
        let message = format!("session {session} works in {theirs}, not in {ours}");
        Err(Fault::Config { message })
    }

    /// Answers a question. Nothing is opened or changed.
    pub async fn query(&self, query: Query) -> Result<Reply, Fault> {
        Ok(match query {
            Query::Sessions { workspace } => {
                Reply::Sessions { sessions: self.list(workspace.as_deref()).await? }
            }
            Query::Search { words, workspace } => {
                let sessions = self.list(workspace.as_deref()).await?;
                Reply::Found { hits: self.find(&words, sessions).await? }
            }
            Query::Events { session, after, most } => {
                let most = most.map_or(PAGE, |most| most as usize);
                let events = self.log.read_some(session, after, most).await.map_err(storage)?;
                if events.is_empty() && after == 0 && most > 0 {
                    return Err(storage(Error::NoSession { session }));
                }
                Reply::Events { events }
            }
            Query::Transcript { session } => {
                let log = read_all(&*self.log, session, 0).await.map_err(storage)?;
                if log.is_empty() {
                    return Err(storage(Error::NoSession { session }));
                }
                Reply::Transcript { transcript: Box::new(Transcript::of(&log)) }
            }
            Query::Changes { session, scope, view } => {
                let log = read_all(&*self.log, session, 0).await.map_err(storage)?;
                if log.is_empty() {
                    return Err(storage(Error::NoSession { session }));
                }
                self.changes(session, &log, scope, view).await?
            }
            Query::Prompts { session, most } => {
                Reply::Prompts { prompts: self.prompts(session, most).await? }
            }
            Query::Find { session, text } => self.places(session, &text).await?,
            Query::Context { session } => self.context(session).await?,
            Query::Jobs { session } => {
                let (jobs, now) = (self.runtime.workspace.jobs(session), driver::stamp().at);
                let row =
                    |job: &Arc<windlass_toolkit::Task>| JobRow { tail: job.said(), ..job.row(now) };
                Reply::Jobs { jobs: jobs.iter().map(row).collect() }
            }
            Query::Tools => {
                let snapshot = self.runtime.snapshot(&self.settings.scene()).await;
                Reply::Tools { tools: snapshot.offered() }
            }
        })
    }

    /// All sessions, or those of a folder, newest first.
    pub(crate) async fn list(&self, workspace: Option<&str>) -> Result<Vec<SessionSummary>, Fault> {
        let mut sessions = self.log.list().await.map_err(storage)?;
        sessions.retain(|row| workspace.is_none_or(|wanted| row.workspace == wanted));
        Ok(sessions)
    }

    /// What a session changed, or what taking it back would change.
    async fn changes(
        &self,
        session: SessionId,
        log: &[Record],
        scope: Scope,
        view: View,
    ) -> Result<Reply, Fault> {
        self.check_place(session, &Transcript::of(log))?;
        let mut files = Files::default();
        for record in log {
            files.push(record.seq, &record.fact);
        }
        let facts = files.undoable(scope);
        let Some(undo) = files.undo(&facts) else {
            return Ok(Reply::Changes { facts: Vec::new(), diff: String::new() });
        };
        let arguments = serde_json::to_string(&Undo { view, ..undo })
            .map_err(|error| Fault::Internal { message: error.to_string() })?;
        let (id, by, tool) = (CallId(driver::stamp().id), Author::Person, UNDO.to_owned());
        let snapshot = self.runtime.snapshot(&self.settings.scene()).await;
        let call = Call { session, id, by, tool, arguments };
        let preview = self.runtime.preview(&snapshot, call, &Onlooker(&*self.log)).await;
        let refused = |outcome: Outcome| Fault::Config { message: outcome.text().to_owned() };
        let diff = preview.map_err(refused)?.unwrap_or_default();
        Ok(Reply::Changes { facts, diff })
    }

    /// Calls a tool for the person, to look at something: what is asked about is not done, and nothing
    /// is recorded.
    pub async fn look(&self, tool: &str, arguments: String) -> Outcome {
        let (id, tool) = (CallId(driver::stamp().id), tool.to_owned());
        let snapshot = self.runtime.snapshot(&self.settings.scene()).await;
        let (session, by) = (SessionId(id.0), Author::Person);
        let call = Call { session, id, by, tool, arguments };
        let cancel = tokio_util::sync::CancellationToken::new();
        self.runtime.travel(&snapshot, call, &Onlooker(&*self.log), cancel).await
    }

    /// Gives back bytes that were kept.
    pub async fn recall(&self, blob: &BlobRef) -> Result<Vec<u8>, Fault> {
        self.log.get_blob(blob).await.map_err(storage)
    }

    /// Keeps the bytes of a file that is to go with a prompt.
    pub async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Fault> {
        self.log.put_blob(bytes).await.map_err(storage)
    }

    /// Removes a session for good, and those that it began.
    pub async fn delete(&self, session: SessionId) -> Result<(), Fault> {
        self.log.delete(session).await.map_err(storage)
    }
}

/// A caller that looks, or looks at what a call would do, and changes nothing.
struct Onlooker<'a>(&'a dyn Log);

#[async_trait]
impl Caller for Onlooker<'_> {
    async fn permit(&self, intent: Intent) -> Permit {
        let looks = intent.read_only && intent.asking.is_none();
        let reason = || intent.asking.map(|asking| format!("nobody was asked, and {asking}"));
        Permit::Answer(if looks { Answer::Once } else { Answer::No { reason: reason() } })
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::No { reason: None }
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        changes::version(self.0, copy).await
    }
}
