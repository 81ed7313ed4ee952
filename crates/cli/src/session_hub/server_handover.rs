//! Sessions that move between this process and the server of this machine.
//!
//! Only the hub of a terminal does this: a session is closed in one process before the other opens
//! it, and the claim in the log keeps both from running it at once.

use super::{CALLS_TIMEOUT, SessionHub, SessionPhase};
use windlass_project::ServerFiles;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::OpenSessionState;
use windlass_protocol::{AccessRight, Fault, RequestError, SessionId};
use windlass_server::{Caller, FrontendService, RemoteHost, ServerAddress};

impl SessionHub {
    /// Connects to the server of this machine, unless this is it.
    async fn connect_to_server(&self) -> Result<RemoteHost, RequestError> {
        let unavailable = || RequestError::Unavailable {
            text: "no server runs on this machine. Start one in another terminal: `windlass serve`"
                .to_owned(),
        };
        if self.options.roots.is_some() {
            return Err(unavailable());
        }
        match ServerFiles::new(&self.dirs).running_server() {
            Ok(Some(running)) => RemoteHost::connect(ServerAddress::Socket(running.socket)).await,
            Ok(None) | Err(_) => Err(unavailable()),
        }
    }

    /// Returns the states of the sessions that are open in the server of this machine.
    pub(super) async fn sessions_of_server(&self, caller: &Caller) -> Vec<OpenSessionState> {
        let Ok(server) = self.connect_to_server().await else { return Vec::new() };
        match server.request(caller, FrontendRequest::ListOpenSessions).await {
            Ok(HostResponse::OpenSessions { sessions }) => {
                let in_server = |state| OpenSessionState { is_in_server: true, ..state };
                sessions.into_iter().map(in_server).collect()
            }
            Ok(_) | Err(_) => Vec::new(),
        }
    }

    /// Hands an open session over to the server of this machine, which resumes its turn.
    pub(super) async fn detach_session(
        &self,
        caller: &Caller,
        session: SessionId,
    ) -> Result<HostResponse, RequestError> {
        let Some(open) = self.open_session(session) else {
            let text = format!("session {session} is not open");
            return Err(RequestError::NotFound { text });
        };
        let workspace = open.workspace.name();
        let server = self.connect_to_server().await?;
        let right = AccessRight::Admin;
        let there = Caller { workspace: Some(workspace), right, ..caller.clone() };
        server.request(&there, FrontendRequest::status()).await.map_err(|error| match error {
            RequestError::NotFound { .. } => RequestError::Conflict {
                text: "the server does not work in this folder. Start it here, or with \
                       `windlass serve --root`"
                    .to_owned(),
            },
            error => error,
        })?;
        if open.head().is_none_or(|head| head == 0) {
            let text =
                "this session has no prompt yet, so there is nothing to hand over".to_owned();
            return Err(RequestError::Conflict { text });
        }
        let _state = open.workspace.keep_state().await;
        let engine = self.with_policy(&*open.workspace.state().best_engine().await?);
        let lock = self.session_lock(session);
        let _moving = lock.lock().await;
        let Some(handle) = open.handle() else {
            let text = format!("session {session} was closed in the meantime");
            return Err(RequestError::Conflict { text });
        };
        open.phase.send_replace(SessionPhase::Suspended);
        // The log records how the session ended.
        let _ = handle.close_after_calls(CALLS_TIMEOUT).await;
        let request = FrontendRequest::OpenSession { session, resume: true };
        match server.request(&there, request).await {
            Ok(_) => {
                self.remove(&open, None);
                Ok(HostResponse::Done)
            }
            Err(error) => {
                // The session goes on here instead, and so do the streams of its events.
                self.resume_suspended(&open, &engine).await?;
                Err(error)
            }
        }
    }

    /// Takes a session back that the server of this machine has open, unless a client uses it
    /// there. Returns true if it can be opened here now.
    pub(super) async fn take_session_back(&self, session: SessionId) -> Result<bool, RequestError> {
        let client = crate::local_client(windlass_protocol::ClientKind::Terminal);
        let caller = Caller::new(client, AccessRight::Admin);
        let states = self.sessions_of_server(&caller).await;
        let Some(state) = states.into_iter().find(|state| state.session == session) else {
            return Ok(false);
        };
        if let Some(client) = state.clients.first() {
            let message = format!(
                "session {session} is open in the server, where {client} is attached. To join: \
                 `windlass attach --session {session}`"
            );
            return Err(Fault::Refused { message }.into());
        }
        let server = self.connect_to_server().await?;
        server.request(&caller, FrontendRequest::CloseSession { session }).await?;
        self.send_notice(String::new(), "Took the session back from the server.".to_owned());
        Ok(true)
    }
}
