//! Changes of the config and of trust, and what they mean for the sessions that are open.

use super::workspace_state::{WorkspaceState, to_fault};
use crate::reports::permissions;
use std::sync::Arc;
use windlass_engine::{Engine, ModelResolver};
use windlass_protocol::frontend_messages::{HostResponse, LoginResult, ProviderKey};
use windlass_protocol::{Fault, TrustDecision};

/// A change of the config of a folder.
#[derive(Debug)]
pub(crate) enum ConfigChange {
    AnswerTrust { decision: TrustDecision, seen: Option<String> },
    Login { provider: String, key: ProviderKey, save_rejected: bool },
    AddProvider { name: String, base_url: String, key: ProviderKey, model: String },
    SetDefaultModel { model: String },
    RevokeApproval { item: String },
}

/// The meaning of a change for the open sessions of the folder, and the answer to its request.
pub(crate) struct ConfigChangeResult {
    pub(crate) update: SessionUpdate,
    pub(crate) response: Result<HostResponse, Fault>,
}

/// The meaning of a change for the open sessions of the folder.
pub(crate) enum SessionUpdate {
    /// They go on as they are.
    None,
    /// They get the same models again, such as with another API key.
    ReplaceModels(ModelResolver),
    /// They are opened again with another engine.
    Reopen(Arc<Engine>),
    /// They forget the approvals that they remember.
    RevokeApprovals,
    /// They are closed, because of this fault.
    Close(Fault),
}

impl ConfigChangeResult {
    fn answer(response: HostResponse) -> ConfigChangeResult {
        ConfigChangeResult { update: SessionUpdate::None, response: Ok(response) }
    }
}

/// The state after a change, and its result.
type ChangedState = (Arc<WorkspaceState>, ConfigChangeResult);

/// Makes a change, with all slow work, while the sessions keep running.
pub(super) async fn make_change(
    state: Arc<WorkspaceState>,
    change: ConfigChange,
) -> Result<ChangedState, Fault> {
    match change {
        ConfigChange::AnswerTrust { decision: TrustDecision::Decline, .. } => {
            state.decline_trust()?;
            if state.is_trusted() {
                return Ok(revoke_trust(state).await);
            }
            let response = state.host_status(None, None)?;
            Ok((state, ConfigChangeResult::answer(response)))
        }
        ConfigChange::AnswerTrust {
            decision: decision @ (TrustDecision::Trust | TrustDecision::TrustAndAsk),
            seen,
        } => {
            state.trust_folder(decision == TrustDecision::TrustAndAsk, seen.as_deref())?;
            let next = Arc::new(state.reload()?);
            let update = match state.has_engine() {
                true => SessionUpdate::Reopen(next.engine().await?),
                false => SessionUpdate::None,
            };
            // The states of the servers are those after their start.
            let response = next.host_status(None, None);
            Ok((next, ConfigChangeResult { update, response }))
        }
        ConfigChange::Login { provider, key, save_rejected } => {
            let result = state.check_and_save_key(&provider, &key, save_rejected).await?;
            after_login(state, result)
        }
        ConfigChange::AddProvider { name, base_url, key, model } => {
            let result = state.add_provider(&name, &base_url, &key, &model).await?;
            after_login(state, result)
        }
        ConfigChange::SetDefaultModel { model } => {
            state.save_model(&model)?;
            reload_models(&state, HostResponse::Done)
        }
        ConfigChange::RevokeApproval { item } => {
            if item != permissions::SESSION_APPROVALS_ID {
                permissions::revoke_project_approval(&state.setup, &item)
                    .map_err(|error| to_fault(&error))?;
            }
            // An answer for the project is an approval of the session, too.
            let response = Ok(HostResponse::Done);
            let update = SessionUpdate::RevokeApprovals;
            Ok((state, ConfigChangeResult { update, response }))
        }
    }
}

/// Returns the state after a new API key: open sessions continue with it.
fn after_login(state: Arc<WorkspaceState>, result: LoginResult) -> Result<ChangedState, Fault> {
    let is_rejected = matches!(result, LoginResult::Rejected { .. });
    let response = HostResponse::Login { result };
    if is_rejected {
        return Ok((state, ConfigChangeResult::answer(response)));
    }
    reload_models(&state, response)
}

/// Returns the state with the models of the config as it is now.
fn reload_models(
    state: &Arc<WorkspaceState>,
    response: HostResponse,
) -> Result<ChangedState, Fault> {
    let next = Arc::new(state.reload()?);
    // Without a model, the next request says so.
    let update = match next.adopt_engine(state) {
        Ok(true) => SessionUpdate::ReplaceModels(next.setup.model_resolver()),
        Ok(false) | Err(_) => SessionUpdate::None,
    };
    Ok((next, ConfigChangeResult { update, response: Ok(response) }))
}

/// Returns the state after trust is revoked. If the config cannot be loaded again, the sessions are
/// closed.
async fn revoke_trust(state: Arc<WorkspaceState>) -> ChangedState {
    let reload = async || -> Result<ChangedState, Fault> {
        let next = Arc::new(state.reload()?);
        let update = match state.has_engine() {
            true => SessionUpdate::Reopen(next.best_engine().await?),
            false => SessionUpdate::None,
        };
        let response = next.host_status(None, None);
        Ok((next, ConfigChangeResult { update, response }))
    };
    match reload().await {
        Ok(changed) => changed,
        Err(fault) => {
            let update = SessionUpdate::Close(fault.clone());
            (Arc::clone(&state), ConfigChangeResult { update, response: Err(fault) })
        }
    }
}
