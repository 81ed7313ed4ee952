//! The host: opens sessions and answers questions about them.

use crate::changes;
use crate::driver::{self, Handle};
use crate::session::{Limits, Session};
use crate::watch::Watcher;
use async_trait::async_trait;
use std::sync::Arc;
use windlass_llm::Client;
use windlass_llm::catalog::Model;
use windlass_protocol::files::UNDO;
use windlass_protocol::{
    Answer, Approval, Author, BlobRef, CallId, Fact, Fault, Files, Options, Outcome, Query, Record,
    Reply, Scope, SessionId, Transcript, Undo, View,
};
use windlass_storage::{Error, Log, read_all};
use windlass_toolkit::{Call, Caller, Failure, Intent, Permit, Runtime, Scene};

/// What all sessions of a host share besides their workspace.
pub struct Settings {
    /// Whom to ask.
    pub model: Option<Asked>,
    /// The model as it is recorded, `provider/model`.
    pub model_name: Arc<str>,
    /// What the model is told before the conversation.
    pub system: Arc<str>,
    /// Bounds on a turn.
    pub limits: Limits,
    /// The person trusts the project, so that its own instructions count.
    pub trusted: bool,
    /// Keeps what the person allowed for the whole project.
    pub remember: Memory,
}

/// What keeps approvals.
pub type Memory = Box<dyn Fn(&[Approval]) + Send + Sync>;

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
}

impl Settings {
    /// Settings with the system prompt for a workspace.
    pub fn new(workspace: &str, model: Option<Asked>, model_name: &str) -> Settings {
        let system = format!("{}\nWorkspace: {workspace}\n", include_str!("prompt/system.md"));
        let (system, limits) = (system.into(), Limits::default());
        let model_name = model_name.into();
        let remember = Box::new(|_: &[Approval]| {});
        Settings { model, model_name, system, limits, trusted: false, remember }
    }
}

impl Settings {
    pub(crate) fn scene(&self) -> Scene {
        let pdfs = self.model.as_ref().is_none_or(|asked| asked.model.pdfs);
        Scene { model: self.model_name.to_string(), pdfs, trusted: self.trusted }
    }
}

/// Everything needed to run the sessions of one workspace.
pub struct Engine {
    log: Arc<dyn Log>,
    runtime: Arc<Runtime>,
    settings: Arc<Settings>,
}

fn storage(error: Error) -> Fault {
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

    fn workspace(&self) -> String {
        self.runtime.workspace.root().display().to_string()
    }

    /// Begins a new session. The watcher sees it from its first fact.
    pub async fn create(&self) -> Result<(Handle, Watcher), Fault> {
        let opening = Fact::Opened {
            workspace: self.workspace(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let session = SessionId(driver::stamp().id);
        let claim = self.log.claim(session).await.map_err(storage)?;
        let (model, limits) = (self.settings.model_name.to_string(), self.settings.limits);
        Ok(self.start(claim, Session::new(opening, model, limits)))
    }

    /// Opens an existing session; whatever was under way in it goes on.
    pub async fn open(&self, session: SessionId) -> Result<(Handle, Watcher), Fault> {
        let claim = self.log.claim(session).await.map_err(storage)?;
        let log = read_all(&*self.log, session, 0).await.map_err(storage)?;
        if log.is_empty() {
            return Err(storage(Error::NoSession { session }));
        }
        let (model, limits) = (self.settings.model_name.to_string(), self.settings.limits);
        let state = Session::replay(&log, model, limits);
        self.check_place(session, state.transcript())?;
        Ok(self.start(claim, state))
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

    fn start(&self, claim: windlass_storage::Claim, session: Session) -> (Handle, Watcher) {
        let (log, runtime) = (Arc::clone(&self.log), Arc::clone(&self.runtime));
        driver::start(log, claim, session, runtime, Arc::clone(&self.settings))
    }

    /// Answers a question. Nothing is opened or changed.
    pub async fn query(&self, query: Query) -> Result<Reply, Fault> {
        Ok(match query {
            Query::Sessions { workspace } => {
                let mut sessions = self.log.list().await.map_err(storage)?;
                sessions.retain(|row| workspace.as_ref().is_none_or(|w| row.workspace == *w));
                Reply::Sessions { sessions }
            }
            Query::Events { session, after } => {
                let events = self.log.read(session, after).await.map_err(storage)?;
                if events.is_empty() && after == 0 {
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
            Query::Tools => {
                let snapshot = self.runtime.snapshot(&self.settings.scene()).await;
                Reply::Tools { tools: snapshot.offered() }
            }
        })
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

    /// Keeps the bytes of a file that is to go with a prompt.
    pub async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Fault> {
        self.log.put_blob(bytes).await.map_err(storage)
    }

    /// Removes a session for good.
    pub async fn delete(&self, session: SessionId) -> Result<(), Fault> {
        self.log.delete(session).await.map_err(storage)
    }
}

/// A caller that looks at what a call would do, and does nothing.
struct Onlooker<'a>(&'a dyn Log);

#[async_trait]
impl Caller for Onlooker<'_> {
    async fn permit(&self, _intent: Intent) -> Permit {
        Permit::Answer(Answer::No { reason: None })
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        Answer::No { reason: None }
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        changes::version(self.0, copy).await
    }
}
