//! Answers to the requests of front ends.

use super::closed_session::watch_closed_session;
use super::command_shell_steps::prompt_of_command;
use super::{OpenSession, SessionHub};
use crate::setup::LoadedProject;
use crate::workspace_host::{
    ConfigChange, ConfigChangeResult, SessionUpdate, WorkspaceState, to_fault,
};
use async_trait::async_trait;
use futures_util::stream::{BoxStream, StreamExt};
use std::sync::Arc;
use std::time::Duration;
use windlass_engine::{ForkPoint, OpSender, SessionHandle, SessionWatcher, UnfinishedTurn};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::report::{ReportAction, ReportKind};
use windlass_protocol::session_stream::{HostStreamItem, OpenSessionState, SessionStreamItem};
use windlass_protocol::{
    Attachment, DEFAULT_AGENT, Fault, ModelChoice, OpError, OpId, OpRequest, OpResult, QueryReply,
    RequestError, SessionId, SessionOp, SessionQuery,
};
use windlass_server::{Caller, FrontendService, WatchOptions};

/// Limit for an operation to be queued behind others.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

#[async_trait]
impl FrontendService for SessionHub {
    async fn request(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        let mut response = match self.options.fleet {
            Some(_) => self.answer_in_fleet(caller, request).await?,
            None => self.answer(caller, request).await?,
        };
        if let HostResponse::Status { status } = &mut response {
            status.client = Some(caller.client.clone());
            status.right = Some(caller.right);
            status.host = self.options.roots.as_ref().map(|_| LoadedProject::host_name());
        }
        Ok(response)
    }

    async fn watch_session(
        &self,
        caller: &Caller,
        session: SessionId,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        if let Some(fleet) = &self.options.fleet {
            return self.watch_in_fleet(fleet, caller, session, options).await;
        }
        if let Some(open) = self.open_session(session) {
            return Ok(open.watch(caller.client.clone(), options));
        }
        let engine = self.workspace_of(session).await?.state().inspect_engine().await?;
        let head = engine.last_position(session).await?;
        let open = self.subscribe_to_open_sessions();
        Ok(watch_closed_session((session, head), (engine, open), (caller.client.clone(), options)))
    }

    async fn watch_host(
        &self,
        caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        let workspace = self.named_workspace(caller.workspace.as_deref()).await.ok();
        let hub = self.own.clone();
        let current = move || {
            let states = hub.upgrade().map(|hub| hub.open_session_states()).unwrap_or_default();
            let sessions = states.into_iter();
            let sessions = sessions.map(|state| HostStreamItem::Session { state: Box::new(state) });
            let servers = workspace.as_ref().map(|workspace| HostStreamItem::Servers {
                workspace: workspace.name(),
                servers: workspace.state().server_status(),
            });
            sessions.chain(servers).collect()
        };
        let stop = self.stop.clone().cancelled_owned();
        Ok(self.events.watch(current).take_until(stop).boxed())
    }
}

impl SessionHub {
    /// Answers a request.
    pub(super) async fn answer(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        match request {
            FrontendRequest::SessionOp { session, id, op } => {
                let result = self.submit(session, (id, op), caller).await?;
                Ok(match result {
                    Ok(seq) => HostResponse::OpAccepted { seq },
                    Err(error) => HostResponse::OpRejected { error },
                })
            }
            FrontendRequest::ListOpenSessions => {
                let mut sessions = self.open_session_states();
                sessions.extend(self.sessions_of_server(caller).await);
                Ok(HostResponse::OpenSessions { sessions })
            }
            FrontendRequest::NewSession { agent, model, effort } => {
                let open = self.start_session(caller, agent, (model, effort)).await?;
                opened_response(&open)
            }
            FrontendRequest::OpenSession { session, resume } => {
                let open = self.open(session, resume).await?;
                opened_response(&open)
            }
            FrontendRequest::DetachSession { session } => {
                self.detach_session(caller, session).await
            }
            FrontendRequest::CloseSession { session } => {
                self.workspace_of(session).await?;
                self.close_session(session).await;
                Ok(HostResponse::Done)
            }
            FrontendRequest::ForkSession { session, turn } => {
                let point = turn.map_or(ForkPoint::LastTurn, ForkPoint::Turn);
                opened_response(&*self.fork_session(session, point).await?)
            }
            FrontendRequest::DeleteSession { session } => {
                self.delete_session(session).await?;
                Ok(HostResponse::Done)
            }
            FrontendRequest::RenameSession { session, title } => {
                let workspace = self.workspace_of(session).await?;
                if self.open_session(session).is_some() {
                    let op = SessionOp::RenameSession { title };
                    let result = self.submit(session, (None, op), caller).await?;
                    result.map_err(|error| Fault::Config { message: error.to_string() })?;
                } else {
                    workspace.state().inspect_engine().await?.rename(session, &title).await?;
                }
                Ok(HostResponse::Done)
            }
            FrontendRequest::ExpandCommand { session, name, arguments } => {
                let open = session.and_then(|session| self.open_session(session));
                let workspace = match &open {
                    Some(open) => Arc::clone(&open.workspace),
                    None => self.named_workspace(caller.workspace.as_deref()).await?,
                };
                let agent = open.as_ref().and_then(|open| open.handle());
                let agent = agent.map(|handle| handle.activity().borrow().agent.clone());
                let agent = agent.as_deref().unwrap_or(DEFAULT_AGENT);
                let command = workspace.state().expand_command(&name, &arguments, agent).await?;
                let sender = OpSender { client: caller.client.clone(), right: caller.right };
                Ok(prompt_of_command(command, open.as_deref(), &sender).await?)
            }
            FrontendRequest::SetTrust { decision, seen } => {
                self.change_config(caller, ConfigChange::AnswerTrust { decision, seen }).await
            }
            FrontendRequest::Login { provider, key, save_rejected } => {
                self.change_config(caller, ConfigChange::Login { provider, key, save_rejected })
                    .await
            }
            FrontendRequest::AddProvider { name, base_url, key, model } => {
                let change = ConfigChange::AddProvider { name, base_url, key, model };
                self.change_config(caller, change).await
            }
            FrontendRequest::SetDefaultModel { model } => {
                self.change_config(caller, ConfigChange::SetDefaultModel { model }).await
            }
            FrontendRequest::RunReportAction {
                report: ReportKind::Permissions { .. },
                item,
                action: ReportAction::Revoke,
            } => {
                self.change_config(caller, ConfigChange::RevokeApproval { item }).await?;
                let workspace = self.named_workspace(caller.workspace.as_deref()).await?;
                // No approval of a session is left.
                Ok(workspace.state().report(ReportKind::Permissions { session: None }).await?)
            }
            FrontendRequest::Query { query } => self.answer_query(caller, query).await,
            FrontendRequest::RenderSession { session, .. }
            | FrontendRequest::Report {
                report: ReportKind::Permissions { session: Some(session) },
                ..
            } => {
                let workspace = self.workspace_of(session).await?;
                Ok(workspace.state().answer_request(request).await?)
            }
            FrontendRequest::GetBlob { session, ref blob }
            | FrontendRequest::Thumbnail { session, ref blob, .. } => {
                let blob = blob.clone();
                self.answer_blob_request(caller, (session, blob), request).await
            }
            request => self.answer_in_workspace(caller, request).await,
        }
    }

    /// Answers a request about the folder of the client.
    async fn answer_in_workspace(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        let workspace = self.named_workspace(caller.workspace.as_deref()).await?;
        let state = workspace.state();
        if matches!(request, FrontendRequest::Status { .. }) && state.is_ready_to_build() {
            // The answer does not wait for the servers; they start in the background.
            let state = Arc::clone(&state);
            self.spawn_until_stopped(async move { state.warm_up().await });
        }
        let response = state.answer_request(request).await?;
        self.note_sent_blobs(caller, &response);
        Ok(response)
    }

    /// Starts a session in the folder of the client, with the model and effort that the user chose.
    async fn start_session(
        &self,
        caller: &Caller,
        agent: Option<String>,
        (model, effort): (Option<String>, Option<String>),
    ) -> Result<Arc<OpenSession>, RequestError> {
        let mut workspace = self.named_workspace(caller.workspace.as_deref()).await?;
        let room = self.reserve_room().await?;
        let project = workspace.state().setup.root.clone();
        let checkout = self.create_checkout(&project).await?;
        if let Some(folder) = &checkout {
            workspace = self.workspace(folder).await?;
        }
        let _state = workspace.keep_state().await;
        let state = workspace.state();
        let started = self.start_in(&state, agent, (model, effort)).await;
        if let (Err(_), Some(folder)) = (&started, &checkout) {
            self.remove_checkout(folder).await;
        }
        let open = self.insert(Arc::clone(&workspace), started?, room);
        if checkout.is_some() && !self.save_checkout(&open, 0).await {
            // No other node could go on with it.
            self.close_session(open.session).await;
            let message = "the checkout of the session could not be saved; see the notices";
            return Err(Fault::Refused { message: message.to_owned() }.into());
        }
        Ok(open)
    }

    async fn start_in(
        &self,
        state: &WorkspaceState,
        agent: Option<String>,
        (model, effort): (Option<String>, Option<String>),
    ) -> Result<(SessionHandle, SessionWatcher), RequestError> {
        let engine = self.with_policy(&*state.engine().await?);
        let default = || state.setup.config.model.as_ref().map(|(name, _)| name.clone());
        let model = model.or_else(|| effort.as_ref().and_then(|_| default()));
        if model.is_none() && !engine.has_model() {
            state.default_model().map_err(|error| to_fault(&error))?;
        }
        let model = model.map(|model| ModelChoice { model, effort, precedes_agent: false });
        Ok(engine.start_session(agent.as_deref(), model).await?)
    }

    /// Returns the states of the open sessions, those that wait for the user first.
    pub(crate) fn open_session_states(&self) -> Vec<OpenSessionState> {
        let mut states: Vec<OpenSessionState> =
            self.open_sessions().iter().filter_map(|open| open.state()).collect();
        states.sort_by_key(|state| {
            (state.open_questions.is_empty(), !state.is_busy, std::cmp::Reverse(state.session))
        });
        states
    }

    /// Sends an operation to an open session, and returns its answer.
    pub(super) async fn submit(
        &self,
        session: SessionId,
        (id, op): (Option<OpId>, SessionOp),
        caller: &Caller,
    ) -> Result<OpResult, RequestError> {
        let Some(open) = self.open_session(session) else {
            self.workspace_of(session).await?;
            return Ok(Err(OpError::Stopped));
        };
        if let Err(error) = self.check_attachments(caller, session, &op).await? {
            return Ok(Err(error));
        }
        let Some(handle) = open.running_handle().await else { return Ok(Err(OpError::Stopped)) };
        let sender = Some(OpSender { client: caller.client.clone(), right: caller.right });
        let queued = match id {
            Some(id) => {
                let queueing = handle.queue(OpRequest { id, op }, sender);
                tokio::time::timeout(QUEUE_TIMEOUT, queueing).await
            }
            None => tokio::time::timeout(QUEUE_TIMEOUT, handle.queue_op(op, sender)).await,
        };
        let Ok(answer) = queued else {
            let text = format!("session {session} has too many operations to do. Try again later");
            return Err(RequestError::Unavailable { text });
        };
        // A session that ends answers nothing more.
        Ok(answer.await.unwrap_or(Err(OpError::Stopped)))
    }

    /// Checks that a client may use the files that it attaches. Another node that sends the request
    /// has checked it.
    pub(super) async fn check_attachments(
        &self,
        caller: &Caller,
        session: SessionId,
        op: &SessionOp,
    ) -> Result<Result<(), OpError>, RequestError> {
        let SessionOp::Prompt { attachments, .. } = op else { return Ok(Ok(())) };
        for Attachment { name, blob, .. } in attachments {
            if !caller.through_node && !self.may_read_blob(caller, session, blob).await? {
                let text = format!("`{name}` is no longer in the server. Attach it again");
                return Ok(Err(OpError::Invalid { text }));
            }
        }
        Ok(Ok(()))
    }

    /// Opens a session, unless it is open.
    pub(crate) async fn open(
        &self,
        session: SessionId,
        resume: bool,
    ) -> Result<Arc<OpenSession>, RequestError> {
        if let Some(open) = self.open_session(session) {
            return Ok(open);
        }
        if let Some(folder) = self.checkout_to_open(session).await? {
            let unfinished_turn =
                if resume { UnfinishedTurn::Resume } else { UnfinishedTurn::Pause };
            return self.open_in_checkout((session, &folder), None, unfinished_turn).await;
        }
        let workspace = self.workspace_of(session).await?;
        let _state = workspace.keep_state().await;
        let engine = self.with_policy(&*workspace.state().best_engine().await?);
        let lock = self.session_lock(session);
        let _opening = lock.lock().await;
        if let Some(open) = self.open_session(session) {
            return Ok(open);
        }
        let room = self.reserve_room().await?;
        let open = async || match resume {
            true => engine.open(session).await,
            false => engine.open_paused(session).await,
        };
        let opened = match open().await {
            Err(Fault::SessionBusy { .. }) if self.take_session_back(session).await? => {
                open().await?
            }
            opened => opened?,
        };
        Ok(self.insert(Arc::clone(&workspace), opened, room))
    }

    async fn answer_query(
        &self,
        caller: &Caller,
        query: SessionQuery,
    ) -> Result<HostResponse, RequestError> {
        let workspace = match &query {
            SessionQuery::Events { session, .. }
            | SessionQuery::Prompts { session: Some(session), .. }
            | SessionQuery::Context { session }
            | SessionQuery::Jobs { session }
            | SessionQuery::Transcript { session }
            | SessionQuery::Changes { session, .. }
            | SessionQuery::FindText { session, .. } => self.workspace_of(*session).await?,
            SessionQuery::Prompts { session: None, .. }
            | SessionQuery::Sessions { .. }
            | SessionQuery::SearchSessions { .. }
            | SessionQuery::Tools => self.named_workspace(caller.workspace.as_deref()).await?,
        };
        let response = workspace.state().answer_request(FrontendRequest::Query { query }).await?;
        Ok(match response {
            HostResponse::Reply { reply: QueryReply::Sessions { mut sessions } } => {
                sessions.retain(|row| self.is_visible(&row.workspace));
                HostResponse::Reply { reply: QueryReply::Sessions { sessions } }
            }
            HostResponse::Reply { reply: QueryReply::SearchHits { mut hits } } => {
                hits.retain(|hit| self.is_visible(&hit.workspace));
                HostResponse::Reply { reply: QueryReply::SearchHits { hits } }
            }
            response => response,
        })
    }

    /// Changes the config of a folder, and updates its open sessions.
    async fn change_config(
        &self,
        caller: &Caller,
        change: ConfigChange,
    ) -> Result<HostResponse, RequestError> {
        let workspace = self.named_workspace(caller.workspace.as_deref()).await?;
        let sessions = || {
            let open = self.open_sessions().into_iter();
            open.filter(|open| Arc::ptr_eq(&open.workspace, &workspace))
        };
        let apply = async |result: ConfigChangeResult| {
            match result.update {
                SessionUpdate::None => {}
                SessionUpdate::ReplaceModels(resolver) => {
                    for handle in sessions().filter_map(|open| open.handle()) {
                        // A stopped session ignores this; its end is reported anyway.
                        handle.replace_models(Arc::clone(&resolver)).await;
                    }
                }
                SessionUpdate::Reopen(engine) => {
                    let engine = self.with_policy(&engine);
                    let mut first_fault = None;
                    for open in sessions() {
                        if let Err(fault) = self.reopen(&open, &engine).await {
                            // The others must not keep the engine of the state before.
                            first_fault.get_or_insert(fault);
                        }
                    }
                    if let Some(fault) = first_fault {
                        return Err(fault);
                    }
                }
                SessionUpdate::RevokeApprovals => {
                    for handle in sessions().filter_map(|open| open.handle()) {
                        handle.send(SessionOp::RevokeApprovals).await;
                    }
                }
                SessionUpdate::Close(fault) => {
                    for open in sessions() {
                        let lock = self.session_lock(open.session);
                        let _closing = lock.lock().await;
                        self.close_locked(open.session, Some(fault.clone()), Duration::ZERO).await;
                    }
                }
            }
            result.response
        };
        Ok(workspace.change(change, apply).await?)
    }
}

fn opened_response(open: &OpenSession) -> Result<HostResponse, RequestError> {
    let Some(handle) = open.handle() else {
        let text = format!("session {} was closed in the meantime", open.session);
        return Err(RequestError::Conflict { text });
    };
    let activity = handle.activity().borrow().clone();
    let (session, head, model) = (open.session, activity.head, activity.model);
    Ok(HostResponse::SessionOpened { session, head, model })
}
