//! Events of the host and of the watched session, on their way to the front end.

use super::local_requests::ChosenModel;
use super::{FrontendHost, SessionOwnership, TaskResult};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use windlass_protocol::frontend_messages::{FrontendRequest, HostMessage};
use windlass_protocol::session_stream::{
    HostStreamItem, SessionStreamItem, StreamClosingReason, StreamOpening,
};
use windlass_protocol::{AccessRight, ClientInfo, Event, Fact, Fault, SessionId};

/// Notices that are remembered, so that none is shown again after a lost connection.
const MAX_SHOWN_NOTICES: usize = 1000;

impl FrontendHost {
    pub(super) fn handle_host_item(&mut self, item: Option<HostStreamItem>) {
        let own = self.caller.workspace.as_deref();
        let is_own =
            |workspace: &str| workspace.is_empty() || own.is_none_or(|own| own == workspace);
        match item {
            Some(HostStreamItem::Notice { workspace, text }) if is_own(&workspace) => {
                if self.shown_notices.len() >= MAX_SHOWN_NOTICES {
                    self.shown_notices.clear();
                }
                if self.shown_notices.insert(text.clone()) {
                    self.note(text);
                }
            }
            Some(HostStreamItem::Servers { workspace, servers }) if is_own(&workspace) => {
                self.outbox.push_back(HostMessage::Servers { servers });
            }
            Some(HostStreamItem::Session { state }) => {
                let is_watched = |session| state.session == session;
                if let Some(watched) = self.watched.as_ref()
                    && is_watched(watched.session)
                {
                    let is_live = watched.is_live;
                    self.show_clients(state.clients, is_live);
                }
            }
            Some(
                HostStreamItem::Notice { .. }
                | HostStreamItem::Servers { .. }
                | HostStreamItem::SessionClosed { .. },
            ) => {}
            None => self.host_events = None,
        }
    }

    /// Tells the front end who watches the session, unless it knows.
    fn show_clients(&mut self, clients: Vec<ClientInfo>, is_live: bool) {
        let Some(watched) = &mut self.watched else { return };
        watched.is_live = is_live;
        let current = Some((clients, is_live));
        if watched.shown == current {
            return;
        }
        watched.shown = current;
        let session = watched.session;
        if let Some((clients, is_live)) = watched.shown.clone() {
            self.outbox.push_back(HostMessage::Clients { session, clients, is_live });
        }
    }

    pub(super) fn handle_session_item(&mut self, item: Option<SessionStreamItem>) {
        let Some(watched) = &mut self.watched else { return };
        let session = watched.session;
        match item {
            Some(SessionStreamItem::Fact(record, _)) => {
                if let (Fact::ModelChanged { model, effort }, true) =
                    (&record.fact, record.session == session)
                {
                    let (model, effort) = (Some(model.clone()), effort.clone());
                    self.session_model = ChosenModel { model, effort };
                }
                let event = Box::new(Event::Fact(*record));
                self.outbox.push_back(HostMessage::Event { event });
            }
            Some(SessionStreamItem::Live(record)) => {
                let event = Box::new(Event::Live(*record));
                self.outbox.push_back(HostMessage::Event { event });
            }
            Some(SessionStreamItem::Opened(opening)) => self.handle_opening(opening),
            Some(SessionStreamItem::Disconnected(reason)) => {
                // Attempts that fail are not worth a message.
                if !std::mem::replace(&mut self.is_disconnected, true) {
                    self.outbox.push_back(HostMessage::Disconnected { reason });
                }
            }
            // The facts follow; live events only show what they will say.
            Some(SessionStreamItem::Lagged(_)) => {}
            Some(SessionStreamItem::Reset(reset)) => {
                let message = format!(
                    "the server lost facts of this session after position {}. Open it again",
                    reset.to.seq
                );
                self.end_session(session, Fault::Storage { message });
            }
            Some(SessionStreamItem::Stopped(fault)) => self.end_session(session, fault),
            Some(SessionStreamItem::Closing(closing)) => {
                let message = match closing.reason {
                    StreamClosingReason::TokenRevoked => {
                        "the server no longer accepts this client: its token was revoked or has \
                         expired. Attach with another token"
                    }
                    StreamClosingReason::ServerStopping => {
                        "the server stops. Attach again when it runs"
                    }
                    StreamClosingReason::SessionClosed | StreamClosingReason::TurnEnded => {
                        "the session was closed by another client. `/sessions` opens it again"
                    }
                };
                self.end_stream(Fault::Refused { message: message.to_owned() });
            }
            None => {
                let message = "the session stopped unexpectedly".to_owned();
                self.end_stream(Fault::Internal { message });
            }
        }
    }

    /// Handles the first item of a connection.
    fn handle_opening(&mut self, opening: StreamOpening) {
        let was_disconnected = std::mem::take(&mut self.is_disconnected);
        if was_disconnected {
            self.outbox.push_back(HostMessage::Reconnected);
        }
        let records = opening.open_questions;
        if !records.is_empty() {
            self.outbox.push_back(HostMessage::OpenQuestions { records });
        }
        let reopens = was_disconnected
            && !opening.is_live
            && self.ownership == SessionOwnership::Shared
            && self.caller.right >= AccessRight::Write;
        if reopens {
            self.reopen_session(opening.session);
        }
        // Until the answer says otherwise, it can be used: prompts open it, too.
        self.show_clients(opening.clients, opening.is_live || reopens);
    }

    /// Opens the watched session in a server that started again. Its stream goes on by itself.
    fn reopen_session(&mut self, session: SessionId) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        self.background_tasks.spawn(async move {
            let request = FrontendRequest::OpenSession { session, resume: true };
            TaskResult::Reopened(
                session,
                match service.request(&caller, request).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(error.into()),
                },
            )
        });
    }

    pub(super) fn handle_reopened(&mut self, session: SessionId, result: Result<(), Fault>) {
        let Err(fault) = result else { return };
        if let Some(watched) = self.watched.as_ref().filter(|watched| watched.session == session) {
            let clients = watched.shown.as_ref().map(|(clients, _)| clients.clone());
            self.show_clients(clients.unwrap_or_default(), false);
        }
        match fault {
            // Another process runs it: it can be watched.
            Fault::SessionBusy { .. } => {}
            fault => self.note(format!("The session is not open in the server again: {fault}")),
        }
    }

    /// Ends the session because its stream has ended. If a change under way probably did that, its
    /// result says what becomes of the session.
    fn end_stream(&mut self, fault: Fault) {
        let is_closing = self.is_closing_watched();
        let Some(watched) = &mut self.watched else { return };
        if is_closing {
            watched.end = Some(fault);
            watched.events = stream::pending().boxed();
        } else {
            let session = watched.session;
            self.end_session(session, fault);
        }
    }

    pub(super) fn end_session(&mut self, session: SessionId, fault: Fault) {
        self.watched = None;
        self.is_disconnected = false;
        self.outbox.push_back(HostMessage::SessionStopped { session, fault });
    }
}

/// Waits for the next event of the session; never resolves without one.
pub(super) async fn next_session_item(
    watched: &mut Option<super::session_changes::WatchedSession>,
) -> Option<SessionStreamItem> {
    match watched {
        Some(watched) => watched.events.next().await,
        None => std::future::pending().await,
    }
}

/// Waits for the next event of the host; never resolves without a stream.
pub(super) async fn next_host_item(
    events: &mut Option<BoxStream<'static, HostStreamItem>>,
) -> Option<HostStreamItem> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}
