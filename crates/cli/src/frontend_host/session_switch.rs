//! Changes the open session: another session, another model, or a new trust state.
//!
//! Slow work is done first, while the current session keeps running ([`prepare_change`]); then the
//! session is closed and the next one opened in one step ([`PreparedSessionChange::apply`]).

use super::config_and_engines::{HostState, to_fault};
use crate::reports::permissions;
use std::sync::Arc;
use windlass_engine::{Engine, ForkPoint, ModelHandle, SessionHandle, SessionWatcher};
use windlass_protocol::frontend_messages::{
    HostResponse, LoginResult, ModelChoiceScope, ProviderKey,
};
use windlass_protocol::report::ReportKind;
use windlass_protocol::{Event, Fault, SessionId, SessionOp, TrustDecision};

/// A requested change of the open session or of its config.
#[derive(Clone, Debug)]
pub(super) enum SessionChangeRequest {
    NewSession { agent: Option<String> },
    OpenSession { session: SessionId },
    ForkSession { session: SessionId, turn: Option<u32> },
    DeleteSession { session: SessionId },
    SwitchModel { model: String, persist: ModelChoiceScope },
    SetEffort { effort: Option<String> },
    AnswerTrust { decision: TrustDecision },
    Login { provider: String, key: ProviderKey, save_rejected: bool },
    AddProvider { name: String, base_url: String, key: ProviderKey, model: String },
    RevokeApproval { item: String },
}

/// The open session with its event watcher.
pub(super) struct OpenSession {
    pub(super) handle: SessionHandle,
    pub(super) watcher: SessionWatcher,
}

/// A change that is ready to be applied.
pub(super) struct PreparedSessionChange {
    state: Arc<HostState>,
    next_step: SessionChangeStep,
}

enum SessionChangeStep {
    /// Replaces the open session with a new one.
    NewSession(Arc<Engine>, Option<String>),
    OpenSession(Arc<Engine>, SessionId),
    /// Continues the same session with another model of this name.
    SwitchModel(Box<ModelHandle>, String, HostResponse),
    /// Reopens the same session with another engine.
    Reopen(Arc<Engine>, HostResponse),
    /// Ends the approvals that the session remembers. The session continues.
    RevokeApprovals,
    DeleteSession(SessionId),
    /// Closes the open session and reports the fault.
    CloseSession(Fault),
    /// Only answers; the session stays as it is.
    Answer(HostResponse),
}

/// The state after a [`SessionChangeRequest`], and the answer to its request.
pub(super) struct SessionChangeResult {
    pub(super) state: Arc<HostState>,
    pub(super) open_session: Option<OpenSession>,
    /// True if the session was neither closed nor replaced.
    pub(super) keeps_session: bool,
    /// Events of the closed session that were not forwarded yet.
    pub(super) missed_events: Vec<Arc<Event>>,
    pub(super) answer: Result<HostResponse, Fault>,
}

/// Does all slow work for a change, before the session is touched.
pub(super) async fn prepare_change(
    state: Arc<HostState>,
    change: SessionChangeRequest,
) -> Result<PreparedSessionChange, Fault> {
    let next_step = match change {
        SessionChangeRequest::NewSession { agent } => {
            SessionChangeStep::NewSession(state.engine().await?, agent)
        }
        SessionChangeRequest::OpenSession { session } => {
            SessionChangeStep::OpenSession(best_engine(&state).await?, session)
        }
        SessionChangeRequest::ForkSession { session, turn } => {
            let point = turn.map_or(ForkPoint::LastTurn, ForkPoint::Turn);
            let fork = state.inspect_engine().await?.fork(session, point).await?;
            SessionChangeStep::OpenSession(best_engine(&state).await?, fork)
        }
        SessionChangeRequest::DeleteSession { session } => {
            SessionChangeStep::DeleteSession(session)
        }
        SessionChangeRequest::SwitchModel { model, persist } => {
            let next = Arc::new(state.with_model(&model)?);
            let model_handle = next.configured_model()?;
            if state.has_engine() {
                next.adopt_engine(&state, model_handle.clone()).await?;
            }
            if persist == ModelChoiceScope::Config {
                state.save_model(&model)?;
            }
            let answer = next.host_status();
            return Ok(PreparedSessionChange {
                state: next,
                next_step: SessionChangeStep::SwitchModel(Box::new(model_handle), model, answer),
            });
        }
        SessionChangeRequest::SetEffort { effort } => {
            let next = Arc::new(state.with_effort(effort)?);
            let model_handle = next.configured_model()?;
            if state.has_engine() {
                next.adopt_engine(&state, model_handle.clone()).await?;
            }
            let name = next.setup.config.model.as_ref().map(|(name, _)| name.clone());
            let answer = next.host_status();
            let name = name.unwrap_or_default();
            return Ok(PreparedSessionChange {
                state: next,
                next_step: SessionChangeStep::SwitchModel(Box::new(model_handle), name, answer),
            });
        }
        SessionChangeRequest::AnswerTrust { decision: TrustDecision::Decline } => {
            state.decline_trust()?;
            if state.is_trusted() {
                return Ok(prepare_revoked(state).await);
            }
            SessionChangeStep::Answer(state.host_status())
        }
        SessionChangeRequest::AnswerTrust {
            decision: decision @ (TrustDecision::Trust | TrustDecision::TrustAndAsk),
        } => {
            state.trust_folder(decision == TrustDecision::TrustAndAsk)?;
            return prepare_reloaded(&state, Arc::new(state.reload(state.flags.clone())?)).await;
        }
        SessionChangeRequest::Login { provider, key, save_rejected } => {
            let result = state.check_and_save_key(&provider, &key, save_rejected).await?;
            return prepare_login(state, result).await;
        }
        SessionChangeRequest::AddProvider { name, base_url, key, model } => {
            let result = state.add_provider(&name, &base_url, &key, &model).await?;
            return prepare_login(state, result).await;
        }
        SessionChangeRequest::RevokeApproval { item } => {
            if item != permissions::SESSION_APPROVALS_ID {
                permissions::revoke_project_approval(&state.setup, &item)
                    .map_err(|error| to_fault(&error))?;
            }
            SessionChangeStep::RevokeApprovals
        }
    };
    Ok(PreparedSessionChange { state, next_step })
}

/// Prepares the state after a new API key: the open session continues with it.
async fn prepare_login(
    state: Arc<HostState>,
    result: LoginResult,
) -> Result<PreparedSessionChange, Fault> {
    let answer = HostResponse::Login { result: result.clone() };
    if matches!(result, LoginResult::Rejected { .. }) {
        return Ok(PreparedSessionChange { state, next_step: SessionChangeStep::Answer(answer) });
    }
    let next = Arc::new(state.reload(state.flags.clone())?);
    let (Ok(model_handle), true) = (next.configured_model(), state.has_engine()) else {
        let next_step = SessionChangeStep::Answer(answer);
        return Ok(PreparedSessionChange { state: next, next_step });
    };
    next.adopt_engine(&state, model_handle.clone()).await?;
    let name = next.setup.config.model.as_ref().map(|(name, _)| name.clone());
    let next_step =
        SessionChangeStep::SwitchModel(Box::new(model_handle), name.unwrap_or_default(), answer);
    Ok(PreparedSessionChange { state: next, next_step })
}

/// Prepares the state after trust is revoked. If the config cannot be reloaded, `CloseSession` ends
/// the session.
async fn prepare_revoked(state: Arc<HostState>) -> PreparedSessionChange {
    let prepare = async || -> Result<PreparedSessionChange, Fault> {
        let next = Arc::new(state.reload(state.flags.clone())?);
        let answer = next.host_status();
        let next_step = match state.has_engine() {
            true => SessionChangeStep::Reopen(best_engine(&next).await?, answer),
            false => SessionChangeStep::Answer(answer),
        };
        Ok(PreparedSessionChange { state: next, next_step })
    };
    match prepare().await {
        Ok(prepared) => prepared,
        Err(fault) => PreparedSessionChange {
            state: Arc::clone(&state),
            next_step: SessionChangeStep::CloseSession(fault),
        },
    }
}

/// Prepares a reloaded [`HostState`]; rebuilds the engine if there was one.
async fn prepare_reloaded(
    state: &HostState,
    next: Arc<HostState>,
) -> Result<PreparedSessionChange, Fault> {
    let answer = next.host_status();
    let next_step = match state.has_engine() {
        true => SessionChangeStep::Reopen(next.engine().await?, answer),
        false => SessionChangeStep::Answer(answer),
    };
    Ok(PreparedSessionChange { state: next, next_step })
}

/// Returns the engine that answers prompts, or an inspect-only engine if no model is available.
pub(super) async fn best_engine(state: &HostState) -> Result<Arc<Engine>, Fault> {
    match state.engine().await {
        Ok(engine) => Ok(engine),
        Err(fault) => {
            state.setup.context.notes.send(&format!("no model is available: {fault}"));
            state.inspect_engine().await
        }
    }
}

impl PreparedSessionChange {
    /// Applies the change. If the new session cannot be opened, the current one stays open.
    pub(super) async fn apply(self, open: Option<OpenSession>) -> SessionChangeResult {
        let PreparedSessionChange { state, next_step } = self;
        let mut missed_events = Vec::new();
        let keeps_session = matches!(
            next_step,
            SessionChangeStep::Answer(_)
                | SessionChangeStep::SwitchModel(..)
                | SessionChangeStep::RevokeApprovals
        );
        let (open, answer) = match next_step {
            SessionChangeStep::Answer(answer) => (open, Ok(answer)),
            SessionChangeStep::NewSession(engine, agent) => {
                match engine.start_session(agent.as_deref()).await {
                    Ok(next) => switch_session(next, open).await,
                    Err(fault) => (open, Err(fault)),
                }
            }
            SessionChangeStep::OpenSession(engine, session) => match split_if_open(open, session) {
                (Some(open), _) => reopen_session(&engine, open).await,
                (None, open) => match engine.open_paused(session).await {
                    Ok(next) => switch_session(next, open).await,
                    Err(fault) => (open, Err(fault)),
                },
            },
            SessionChangeStep::SwitchModel(model_handle, name, answer) => {
                if let Some(open) = &open {
                    // A stopped session ignores this; its end is reported anyway.
                    open.handle.switch_model(*model_handle, &name).await;
                }
                (open, Ok(answer))
            }
            SessionChangeStep::Reopen(engine, answer) => match open {
                None => (None, Ok(answer)),
                Some(open) => {
                    let session = open.handle.session;
                    missed_events = close_session(open).await;
                    match engine.open(session).await {
                        Ok((handle, watcher)) => {
                            (Some(OpenSession { handle, watcher }), Ok(answer))
                        }
                        Err(fault) => (None, Err(fault)),
                    }
                }
            },
            SessionChangeStep::RevokeApprovals => {
                if let Some(open) = &open {
                    // An answer for the project is an approval of the session, too.
                    open.handle.send(SessionOp::RevokeApprovals).await;
                }
                // No approval of the session is left.
                (open, state.report(ReportKind::Permissions { session: None }).await)
            }
            SessionChangeStep::CloseSession(fault) => {
                if let Some(open) = open {
                    missed_events = close_session(open).await;
                }
                (None, Err(fault))
            }
            SessionChangeStep::DeleteSession(session) => match split_if_open(open, session) {
                (Some(open), _) => {
                    close_session(open).await;
                    (None, delete_session(&state, session).await)
                }
                (None, open) => (open, delete_session(&state, session).await),
            },
        };
        SessionChangeResult { state, open_session: open, keeps_session, missed_events, answer }
    }
}

async fn delete_session(state: &HostState, session: SessionId) -> Result<HostResponse, Fault> {
    state.inspect_engine().await?.delete(session).await?;
    Ok(HostResponse::Done)
}

/// Splits off the open session: first if it is `session`, otherwise second.
fn split_if_open(
    open: Option<OpenSession>,
    session: SessionId,
) -> (Option<OpenSession>, Option<OpenSession>) {
    match open {
        Some(open) if open.handle.session == session => (Some(open), None),
        open => (None, open),
    }
}

/// Makes another session the open one, and closes the previous one.
async fn switch_session(
    (handle, watcher): (SessionHandle, SessionWatcher),
    previous: Option<OpenSession>,
) -> (Option<OpenSession>, Result<HostResponse, Fault>) {
    if let Some(previous) = previous {
        // The log records how the session ended.
        let _ = previous.handle.close().await;
    }
    let answer =
        HostResponse::SessionOpened { session: handle.session, head: handle.initial_head() };
    (Some(OpenSession { handle, watcher }), Ok(answer))
}

/// Reopens the same session from its beginning, for a front end that no longer has its events.
async fn reopen_session(
    engine: &Engine,
    open: OpenSession,
) -> (Option<OpenSession>, Result<HostResponse, Fault>) {
    let session = open.handle.session;
    close_session(open).await;
    match engine.open(session).await {
        Ok(next) => switch_session(next, None).await,
        Err(fault) => (None, Err(fault)),
    }
}

/// Closes a session and returns its events that were not forwarded yet.
async fn close_session(open: OpenSession) -> Vec<Arc<Event>> {
    let OpenSession { handle, mut watcher } = open;
    // The log records how the session ended.
    let _ = handle.close().await;
    let mut missed_events = Vec::new();
    while let Ok(Some(event)) = watcher.next().await {
        missed_events.push(event);
    }
    missed_events
}
