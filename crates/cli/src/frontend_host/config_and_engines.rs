//! State behind the host's answers: the loaded config, and engines that are built from it on
//! demand.
//!
//! A [`HostState`] never changes. When the config changes, a new one replaces it.

use super::BackgroundTaskResult;
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
use windlass_protocol::{Fault, QueryReply, ReasoningEffort, SessionId, SessionQuery};

/// The loaded config and the engines built from it.
pub(crate) struct HostState {
    pub(crate) setup: LoadedProject,
    pub(super) flags: ConfigFlags,
    /// The agent for new sessions, if the user named one.
    pub(super) agent: Option<String>,
    /// The reasoning effort or variant of the model, if the user chose one.
    pub(super) effort: Option<String>,
    /// Engine without a model, for reading sessions.
    inspect_engine: OnceCell<Arc<Engine>>,
    /// Engine that answers prompts.
    engine: OnceCell<Arc<Engine>>,
    /// Data that outlives this state when a new one replaces it.
    pub(super) memory: Arc<LastTrustReview>,
}

/// Data that lasts as long as the host runs.
#[derive(Default)]
pub(crate) struct LastTrustReview {
    /// The `TrustRequest` that the user saw last.
    shown_trust: Mutex<Option<TrustRequest>>,
    /// Set when the user declined to trust the folder.
    is_trust_declined: AtomicBool,
    /// The favorite models, if the user changed them since the config was loaded.
    pub(super) favorite_models: Mutex<Option<Vec<String>>>,
}

impl HostState {
    /// Loads the config for the current folder.
    pub(crate) fn load(args: &args::TuiArgs, context: ProjectContext) -> anyhow::Result<HostState> {
        let flags = args.mode_args.to_config_flags(args.model.clone());
        let flags = ConfigFlags { small_model: args.small_model.clone(), ..flags };
        let dirs_and_root = LoadedProject::find_dirs()?;
        HostState::load_at(dirs_and_root, flags, args.agent.clone(), Arc::default(), context)
    }

    /// Loads the config from these `Dirs`, for this folder.
    pub(super) fn load_at(
        (dirs, root): (Dirs, PathBuf),
        flags: ConfigFlags,
        agent: Option<String>,
        memory: Arc<LastTrustReview>,
        context: ProjectContext,
    ) -> anyhow::Result<HostState> {
        let setup = LoadedProject::load_config((dirs, root), flags.clone(), context)?;
        Ok(HostState {
            setup,
            flags,
            agent,
            effort: None,
            inspect_engine: OnceCell::new(),
            engine: OnceCell::new(),
            memory,
        })
    }

    /// Loads the same config again, with changed flags.
    pub(super) fn reload(&self, flags: ConfigFlags) -> Result<HostState, Fault> {
        let dirs_and_root = (self.setup.dirs.clone(), self.setup.root.clone());
        let (agent, memory) = (self.agent.clone(), Arc::clone(&self.memory));
        let context = self.setup.context.clone();
        let state = HostState::load_at(dirs_and_root, flags, agent, memory, context)
            .map_err(|error| to_fault(&error))?;
        Ok(HostState { effort: self.effort.clone(), ..state })
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
    pub(super) async fn inspect_engine(&self) -> Result<Arc<Engine>, Fault> {
        let build = || async { self.setup.build_inspect_engine().await.map(Arc::new) };
        self.inspect_engine.get_or_try_init(build).await.cloned().map_err(|error| to_fault(&error))
    }

    /// Returns an engine that answers prompts, or the reason why there is none. The first call
    /// takes a while if there are servers to start.
    pub(super) async fn engine(&self) -> Result<Arc<Engine>, Fault> {
        if self.is_trusted() && self.is_trust_declined() {
            let message = "this folder is no longer trusted, and its config could not be reloaded";
            return Err(Fault::Config { message: message.to_owned() });
        }
        let build = || async {
            let model = self.configured_model()?;
            let engine_options = EngineOptions {
                agent: self.agent.clone(),
                is_interactive: true,
                ..EngineOptions::default()
            };
            self.setup.build_model_engine(model, engine_options).await.map(Arc::new)
        };
        self.engine.get_or_try_init(build).await.cloned().map_err(|error| to_fault(&error))
    }

    /// Creates a client for the configured model.
    pub(super) fn configured_model(&self) -> Result<ModelHandle, Fault> {
        let name = self.setup.config.model.as_ref().map(|(name, _)| name.as_str());
        let variants = name.map(|name| self.setup.model_variants(name)).unwrap_or_default();
        let is_variant = |effort: &&String| variants.contains(effort);
        let variant = self.effort.as_ref().filter(is_variant);
        let choose = || self.setup.choose_model(variant.map(String::as_str))?.into_client(None);
        let mut model = choose().map_err(|error| to_fault(&error))?;
        if let (None, Some(effort)) = (variant, &self.effort) {
            Arc::make_mut(&mut model.options).effort = ReasoningEffort::from_name(effort);
        }
        Ok(model)
    }

    /// Adopts the engine of another state with this one's model, so that no server is started
    /// twice.
    pub(super) async fn adopt_engine(
        &self,
        other: &HostState,
        model: ModelHandle,
    ) -> Result<(), Fault> {
        let name = self.setup.config.model.as_ref().map(|(name, _)| name.as_str());
        let engine = other.engine().await?.with_model(model, name.unwrap_or_default());
        // This state is new, so no other task has set the engine.
        let _ = self.engine.set(Arc::new(engine));
        self.setup.adopt_running_servers(&other.setup);
        Ok(())
    }

    /// Returns true if the engine can be built early: the folder is trusted, so no trust question
    /// is pending, and a model is set.
    pub(super) fn is_ready_to_build(&self) -> bool {
        self.is_trusted() && self.setup.config.model.is_some()
    }

    /// Builds the `engine` before the first prompt needs it. Errors are reported by the first
    /// request that needs it.
    pub(super) async fn warm_up(&self) -> BackgroundTaskResult {
        let _ = self.engine().await;
        BackgroundTaskResult::Nothing
    }

    /// Returns true if an engine that answers prompts was built.
    pub(super) fn has_engine(&self) -> bool {
        self.engine.initialized()
    }

    /// Answers a [`FrontendRequest`] that does not open or close a session.
    pub(super) async fn answer_request(
        &self,
        request: FrontendRequest,
    ) -> Result<HostResponse, Fault> {
        match request {
            FrontendRequest::Status => Ok(self.host_status()),
            FrontendRequest::Query { query } => self.answer_query(query).await,
            FrontendRequest::PutBlob { name, bytes } => self.put_blob(name, &bytes).await,
            FrontendRequest::AttachFile { path } => self.attach_file(&path).await,
            FrontendRequest::PreparePrompt { text, attachments } => {
                self.prepare_prompt(&text, &attachments).await
            }
            FrontendRequest::GetBlob { blob } => self.get_blob(&blob).await,
            FrontendRequest::Thumbnail { blob, width, height } => {
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
            FrontendRequest::ExportSession { session, file } => {
                self.setup.register_keys();
                let engine = self.inspect_engine().await?;
                let written = session_export::export_to_file(&engine, session, &file).await;
                let (path, _) = written.map_err(|error| to_fault(&error))?;
                Ok(HostResponse::Path { path })
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
            | FrontendRequest::ForkSession { .. }
            | FrontendRequest::DeleteSession { .. }
            | FrontendRequest::SetModel { .. }
            | FrontendRequest::SetEffort { .. }
            | FrontendRequest::SetTrust { .. }
            | FrontendRequest::ExpandCommand { .. }
            | FrontendRequest::RenameSession { .. }
            | FrontendRequest::AddProvider { .. }
            | FrontendRequest::Login { .. } => Err(Fault::Internal {
                message: "this request must be handled by the host loop".to_owned(),
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
        let review = Box::new(self.setup.trust_review(&request));
        *self.shown_trust() = Some(request);
        Ok(HostResponse::TrustReview { review })
    }

    fn shown_trust(&self) -> std::sync::MutexGuard<'_, Option<TrustRequest>> {
        self.memory.shown_trust.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Trusts the folder in the state that `review_trust` showed to the user.
    pub(super) fn trust_folder(&self, keeps_asking: bool) -> Result<(), Fault> {
        let Some(request) = self.shown_trust().take() else {
            let message = "review what Windlass would run or follow in this folder first";
            return Err(Fault::Config { message: message.to_owned() });
        };
        let trust = || TrustStore::read(&self.setup.dirs)?.add(request, keeps_asking);
        trust().map_err(|error| Fault::Config { message: error.to_string() })?;
        self.memory.is_trust_declined.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Declines trust, and revokes it if the folder was trusted.
    pub(super) fn decline_trust(&self) -> Result<(), Fault> {
        self.memory.is_trust_declined.store(true, Ordering::Relaxed);
        let is_shown_as_trusted =
            self.shown_trust().as_ref().is_some_and(|request| request.diff == TrustDiff::Unchanged);
        // The trusted content stays on record, so that the next question can show the changes.
        if self.setup.config.trust == FolderTrust::Changed && !is_shown_as_trusted {
            return Ok(());
        }
        let revoke = || TrustStore::read(&self.setup.dirs)?.decline(&self.setup.root);
        revoke().map(drop).map_err(|error| Fault::Config { message: error.to_string() })
    }

    /// Returns true if the user declined to trust the folder, now or at an earlier start.
    pub(super) fn is_trust_declined(&self) -> bool {
        self.memory.is_trust_declined.load(Ordering::Relaxed) || self.setup.config.is_trust_declined
    }

    /// Returns true if the folder was trusted when its config was loaded.
    pub(super) fn is_trusted(&self) -> bool {
        self.setup.config.trust == FolderTrust::Trusted
    }
}

/// Converts an error to a [`Fault`] for the front end.
pub(super) fn to_fault(error: &anyhow::Error) -> Fault {
    match error.downcast_ref::<Fault>() {
        Some(fault) => fault.clone(),
        None => Fault::Config { message: crate::error_chain(error) },
    }
}
