//! State behind the host's answers: the loaded config, and engines that are built from it on
//! demand.
//!
//! A [`WorkspaceState`] never changes. When the config changes, a new one replaces it.

use crate::args;
use crate::setup::{EngineOptions, LoadedProject, ProjectContext};
use crate::{session_export, session_lookup};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use windlass_engine::{Engine, ModelHandle};
use windlass_project::{ConfigFlags, Dirs, FolderTrust, TrustDiff, TrustRequest, TrustStore};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{Fault, QueryReply, SessionId, SessionQuery, TrustReview};

/// The loaded config and the engines built from it.
pub(crate) struct WorkspaceState {
    pub(crate) setup: LoadedProject,
    /// The agent for new sessions, if the user named one.
    pub(crate) agent: Option<String>,
    /// Engine without a model, for reading sessions.
    inspect_engine: OnceCell<Arc<Engine>>,
    /// Engine that answers prompts.
    engine: OnceCell<Arc<Engine>>,
    /// Data that outlives this state when a new one replaces it.
    pub(crate) memory: Arc<LastTrustReview>,
}

/// Data that lasts as long as the host runs.
#[derive(Default)]
pub(crate) struct LastTrustReview {
    /// The `TrustRequest` that the user saw last, and the digest of its review.
    shown_trust: Mutex<Option<(TrustRequest, String)>>,
    /// Set when the user declined to trust the folder.
    is_trust_declined: AtomicBool,
    /// The favorite models, if the user changed them since the config was loaded.
    pub(crate) favorite_models: Mutex<Option<Vec<String>>>,
}

impl WorkspaceState {
    /// Loads the config from these `Dirs`, for this folder.
    pub(crate) fn load_at(
        (dirs, root): (Dirs, PathBuf),
        flags: ConfigFlags,
        agent: Option<String>,
        memory: Arc<LastTrustReview>,
        context: ProjectContext,
    ) -> anyhow::Result<WorkspaceState> {
        let setup = LoadedProject::load_config((dirs, root), flags, context)?;
        Ok(WorkspaceState {
            setup,
            agent,
            inspect_engine: OnceCell::new(),
            engine: OnceCell::new(),
            memory,
        })
    }

    /// Loads the same config again.
    pub(crate) fn reload(&self) -> Result<WorkspaceState, Fault> {
        let dirs_and_root = (self.setup.dirs.clone(), self.setup.root.clone());
        let (agent, memory) = (self.agent.clone(), Arc::clone(&self.memory));
        let (flags, context) = (self.setup.flags.clone(), self.setup.context.clone());
        WorkspaceState::load_at(dirs_and_root, flags, agent, memory, context)
            .map_err(|error| to_fault(&error))
    }

    /// Returns the session to resume at start, for `--session` and `--continue`.
    pub(crate) async fn initial_session(
        &self,
        args: &args::TuiArgs,
    ) -> anyhow::Result<Option<SessionId>> {
        match (&args.session, args.r#continue) {
            (Some(id), _) if !id.is_empty() => {
                Ok(Some(session_lookup::find_session(&*self.inspect_engine().await?, id).await?))
            }
            (Some(_), _) | (None, true) => Ok(Some(
                session_lookup::last_session(&*self.inspect_engine().await?, &self.setup).await?,
            )),
            (None, false) => Ok(None),
        }
    }

    /// Returns an engine for reading sessions. It is available immediately.
    pub(crate) async fn inspect_engine(&self) -> Result<Arc<Engine>, Fault> {
        let build = || async { self.setup.build_inspect_engine().await.map(Arc::new) };
        self.inspect_engine.get_or_try_init(build).await.cloned().map_err(|error| to_fault(&error))
    }

    /// Returns an engine that answers prompts, or the reason why there is none. Without a usable
    /// model in the config, it only serves sessions that choose one. The first call takes a while
    /// if there are servers to start.
    pub(crate) async fn engine(&self) -> Result<Arc<Engine>, Fault> {
        if self.is_trusted() && self.is_trust_declined() {
            let message = "this folder is no longer trusted, and its config could not be reloaded";
            return Err(Fault::Config { message: message.to_owned() });
        }
        let build = || async {
            let model = self.default_model().ok();
            let engine_options =
                EngineOptions { agent: self.agent.clone(), ..EngineOptions::default() };
            self.setup.build_session_engine(model, engine_options).await.map(Arc::new)
        };
        let engine = self.engine.get_or_try_init(build).await.map_err(|error| to_fault(&error))?;
        if engine.has_model() {
            return Ok(Arc::clone(engine));
        }
        // Another process may have saved a key since.
        Ok(match (self.default_model(), &self.setup.config.model) {
            (Ok(model), Some((name, _))) => {
                Arc::new(engine.with_models(model, name, self.setup.model_resolver()))
            }
            _ => Arc::clone(engine),
        })
    }

    /// Returns the model of sessions that choose none, or the reason why there is none.
    pub(crate) fn default_model(&self) -> anyhow::Result<ModelHandle> {
        self.setup.choose_model(None)?.into_client()
    }

    /// Returns the engine that answers prompts, or an inspect-only engine if it cannot be built.
    pub(crate) async fn best_engine(&self) -> Result<Arc<Engine>, Fault> {
        match self.engine().await {
            Ok(engine) => {
                // Without a model in the config, the user chooses one.
                if !engine.has_model()
                    && self.setup.config.model.is_some()
                    && let Err(error) = self.default_model()
                {
                    let reason = crate::error_chain(&error);
                    self.setup.context.notes.send(&format!("no model is available: {reason}"));
                }
                Ok(engine)
            }
            Err(fault) => {
                self.setup.context.notes.send(&format!("sessions can only be read: {fault}"));
                self.inspect_engine().await
            }
        }
    }

    /// Adopts the engine of another state, with the models of this one, so that no server is started
    /// twice. Returns false if there is no engine to adopt, or no model.
    pub(crate) fn adopt_engine(&self, other: &WorkspaceState) -> Result<bool, Fault> {
        let (Some(engine), Some((name, _))) = (other.engine.get(), &self.setup.config.model) else {
            return Ok(false);
        };
        let resolver = self.setup.model_resolver();
        let model = resolver(name, None)?;
        let engine = engine.with_models(model, name, resolver);
        // This state is new, so no other task has set the engine.
        let _ = self.engine.set(Arc::new(engine));
        self.setup.adopt_running_servers(&other.setup);
        Ok(true)
    }

    /// Returns true if the engine can be built early: the folder is trusted, so no trust question
    /// is pending, and a model is set.
    pub(crate) fn is_ready_to_build(&self) -> bool {
        self.is_trusted() && self.setup.config.model.is_some()
    }

    /// Builds the `engine` before the first prompt needs it. Errors are reported by the first
    /// request that needs it.
    pub(crate) async fn warm_up(&self) {
        let _ = self.engine().await;
    }

    /// Returns true if an engine that answers prompts was built.
    pub(crate) fn has_engine(&self) -> bool {
        self.engine.initialized()
    }

    /// Answers a [`FrontendRequest`] that does not open or close a session.
    pub(crate) async fn answer_request(
        &self,
        request: FrontendRequest,
    ) -> Result<HostResponse, Fault> {
        match request {
            FrontendRequest::Status { model, effort } => self.host_status(model, effort),
            FrontendRequest::Query { query } => self.answer_query(query).await,
            FrontendRequest::PutBlob { name, bytes } => self.put_blob(name, &bytes).await,
            FrontendRequest::PreparePrompt { text, attachments, model } => {
                self.prepare_prompt((&text, &attachments), model.as_deref()).await
            }
            FrontendRequest::GetBlob { blob, .. } => self.get_blob(&blob).await,
            FrontendRequest::Thumbnail { blob, width, height, .. } => {
                self.thumbnail(&blob, (width, height)).await
            }
            FrontendRequest::List { list } => self.list_rows(list).await,
            FrontendRequest::Doctor => {
                let dirs_and_root = (&self.setup.dirs, self.setup.root.as_path());
                let rows =
                    crate::commands::doctor::collect_report(dirs_and_root, Ok(&self.setup)).await;
                Ok(HostResponse::Rows { rows })
            }
            FrontendRequest::RunStatusLine { input } => self.run_status_line(&input).await,
            FrontendRequest::RenderSession { session, format } => {
                self.setup.register_keys();
                let engine = self.inspect_engine().await?;
                let export = session_export::render_session(&engine, session, format).await;
                export.map_err(|error| to_fault(&error))
            }
            FrontendRequest::Report { report, settled } => {
                if settled {
                    self.wait_until_settled(report).await;
                }
                self.report(report).await
            }
            FrontendRequest::RunReportAction { report, item, action } => {
                self.run_report_action(report, &item, action).await
            }
            FrontendRequest::ReviewTrust => self.review_trust(),
            FrontendRequest::DiscoverProviders => {
                Ok(HostResponse::Providers { providers: self.discover_providers().await })
            }
            FrontendRequest::SetConfig { name, value } => self.set_option(&name, &value),
            FrontendRequest::SessionOp { .. }
            | FrontendRequest::NewSession { .. }
            | FrontendRequest::OpenSession { .. }
            | FrontendRequest::CloseSession { .. }
            | FrontendRequest::DetachSession { .. }
            | FrontendRequest::ListOpenSessions
            | FrontendRequest::ExportSession { .. }
            | FrontendRequest::AttachFile { .. }
            | FrontendRequest::ForkSession { .. }
            | FrontendRequest::DeleteSession { .. }
            | FrontendRequest::SetModel { .. }
            | FrontendRequest::SetDefaultModel { .. }
            | FrontendRequest::SetEffort { .. }
            | FrontendRequest::SetTrust { .. }
            | FrontendRequest::ExpandCommand { .. }
            | FrontendRequest::RenameSession { .. }
            | FrontendRequest::AddProvider { .. }
            | FrontendRequest::Login { .. } => Err(Fault::Internal {
                message: "this request is not about the state of a folder".to_owned(),
            }),
        }
    }

    async fn answer_query(&self, query: SessionQuery) -> Result<HostResponse, Fault> {
        // Most queries read from disk; these need the engine that runs the session.
        let engine = match &query {
            SessionQuery::Tools | SessionQuery::Context { .. } | SessionQuery::Jobs { .. } => {
                match self.engine().await {
                    Ok(engine) => engine,
                    Err(_) => self.inspect_engine().await?,
                }
            }
            SessionQuery::Sessions { .. }
            | SessionQuery::Events { .. }
            | SessionQuery::Transcript { .. }
            | SessionQuery::Changes { .. }
            | SessionQuery::Prompts { .. }
            | SessionQuery::FindText { .. }
            | SessionQuery::SearchSessions { .. } => self.inspect_engine().await?,
        };
        let reply: QueryReply = engine.query(query).await?;
        Ok(HostResponse::Reply { reply })
    }

    fn review_trust(&self) -> Result<HostResponse, Fault> {
        let prepare = || -> anyhow::Result<TrustRequest> {
            LoadedProject::check_root(&self.setup.dirs, &self.setup.root)?;
            Ok(TrustStore::read(&self.setup.dirs)?.prepare_request(&self.setup.root)?)
        };
        let request = prepare().map_err(|error| to_fault(&error))?;
        let mut review = self.setup.trust_review(&request);
        review.digest = review_digest(&review);
        let response = HostResponse::TrustReview { review: Box::new(review.clone()) };
        *self.shown_trust() = Some((request, review.digest));
        Ok(response)
    }

    fn shown_trust(&self) -> std::sync::MutexGuard<'_, Option<(TrustRequest, String)>> {
        self.memory.shown_trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trusts the folder in the state that `review_trust` showed to the user, who names it by its
    /// digest.
    pub(crate) fn trust_folder(&self, keeps_asking: bool, seen: Option<&str>) -> Result<(), Fault> {
        let shown = self.shown_trust().take();
        let Some((request, _)) = shown.filter(|(_, digest)| Some(digest.as_str()) == seen) else {
            let message = "review what Windlass would run or follow in this folder first";
            return Err(Fault::Config { message: message.to_owned() });
        };
        let trust = || TrustStore::read(&self.setup.dirs)?.add(request, keeps_asking);
        trust().map_err(|error| Fault::Config { message: error.to_string() })?;
        self.memory.is_trust_declined.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Declines trust, and revokes it if the folder was trusted.
    pub(crate) fn decline_trust(&self) -> Result<(), Fault> {
        self.memory.is_trust_declined.store(true, Ordering::Relaxed);
        let is_shown_as_trusted = self
            .shown_trust()
            .as_ref()
            .is_some_and(|(request, _)| request.diff == TrustDiff::Unchanged);
        // The trusted content stays on record, so that the next question can show the changes.
        if self.setup.config.trust == FolderTrust::Changed && !is_shown_as_trusted {
            return Ok(());
        }
        let revoke = || TrustStore::read(&self.setup.dirs)?.decline(&self.setup.root);
        revoke().map(drop).map_err(|error| Fault::Config { message: error.to_string() })
    }

    /// Returns true if the user declined to trust the folder, now or at an earlier start.
    pub(crate) fn is_trust_declined(&self) -> bool {
        self.memory.is_trust_declined.load(Ordering::Relaxed) || self.setup.config.is_trust_declined
    }

    /// Returns true if the folder was trusted when its config was loaded.
    pub(crate) fn is_trusted(&self) -> bool {
        self.setup.config.trust == FolderTrust::Trusted
    }
}

/// Converts an error to a [`Fault`] for the front end.
pub(crate) fn to_fault(error: &anyhow::Error) -> Fault {
    match error.downcast_ref::<Fault>() {
        Some(fault) => fault.clone(),
        None => Fault::Config { message: crate::error_chain(error) },
    }
}

/// Returns the digest that a decision about this review names.
fn review_digest(review: &TrustReview) -> String {
    let review = TrustReview { digest: String::new(), ..review.clone() };
    let json = serde_json::to_vec(&review).unwrap_or_default();
    let digest = windlass_protocol::BlobRef::for_bytes(&json);
    digest.as_str().to_owned()
}
