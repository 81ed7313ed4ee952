//! Requests that open, close or delete the session of a front end. They are made one after another.

use super::local_requests::ChosenModel;
use super::{FrontendHost, SessionOwnership, TaskResult};
use futures_util::stream::{self, BoxStream, StreamExt};
use std::sync::Arc;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{ClientInfo, Fault, LogPosition, RequestError, SessionId};
use windlass_server::{Caller, ClientAttendance, FrontendService, WatchOptions};

/// A request that opens, closes or deletes a session, with its number.
pub(super) type SessionChange = (u64, FrontendRequest);

/// The result of a [`SessionChange`].
pub(super) struct OpenedSession {
    response: HostResponse,
    /// The session to watch from now on; `None` to keep the current one.
    watched: Option<WatchedSession>,
}

/// The session that the front end shows.
pub(super) struct WatchedSession {
    pub(super) session: SessionId,
    pub(super) events: BoxStream<'static, SessionStreamItem>,
    /// False if another process runs it.
    pub(super) is_live: bool,
    /// The clients and `is_live`, as the front end was told.
    pub(super) shown: Option<(Vec<ClientInfo>, bool)>,
    /// The end of the stream, while a change is under way that probably ended it.
    pub(super) end: Option<Fault>,
}

impl WatchedSession {
    fn new(
        session: SessionId,
        is_live: bool,
        events: BoxStream<'static, SessionStreamItem>,
    ) -> WatchedSession {
        WatchedSession { session, events, is_live, shown: None, end: None }
    }
}

impl FrontendHost {
    /// Makes a change when those before it are made.
    pub(super) fn push_change(&mut self, id: u64, change: FrontendRequest) {
        self.pending_changes.push_back((id, change));
        if self.pending_changes.len() == 1 {
            self.start_next_change();
        }
    }

    fn start_next_change(&mut self) {
        let Some((id, change)) = self.pending_changes.front().cloned() else { return };
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        let current = self.watched.as_ref().map(|watched| watched.session);
        let owned = current.filter(|_| self.ownership == SessionOwnership::Owned);
        let task = self.background_tasks.spawn(async move {
            TaskResult::Opened(id, change_session((&*service, &caller), change, owned).await)
        });
        self.task_requests.insert(task.id(), id);
    }

    /// Returns true if the change under way ends the watched session.
    pub(super) fn is_closing_watched(&self) -> bool {
        let (Some(watched), Some((_, change))) = (&self.watched, self.pending_changes.front())
        else {
            return false;
        };
        match closed_session(change) {
            Some(closed) => closed == watched.session,
            // It replaces the watched session.
            None => self.ownership == SessionOwnership::Owned,
        }
    }

    /// Applies the result of the first change, and starts the next one.
    pub(super) fn finish_change(&mut self, id: u64, result: Result<OpenedSession, Fault>) {
        let change = self.pending_changes.pop_front().map(|(_, change)| change);
        self.note_end(change.as_ref(), result.as_ref().err());
        let answer = result.map(|opened| {
            if let Some(watched) = opened.watched {
                self.watched = Some(watched);
            } else if let Some(closed) = change.as_ref().and_then(closed_session) {
                self.watched.take_if(|watched| watched.session == closed);
            }
            if let HostResponse::SessionOpened { model, .. } = &opened.response {
                self.session_model = match (model, &change) {
                    (Some(choice), _) => ChosenModel {
                        model: Some(choice.model.clone()),
                        effort: choice.effort.clone(),
                    },
                    (None, Some(FrontendRequest::NewSession { model, effort, .. })) => {
                        ChosenModel { model: model.clone(), effort: effort.clone() }
                    }
                    (None, _) => ChosenModel::default(),
                };
                let wanted = self.model_of_first_session.take();
                let is_other = |model: &_| self.session_model.model.as_ref() != Some(model);
                if let Some(model) = wanted.filter(is_other) {
                    self.apply_choice(ChosenModel { model: Some(model), effort: None });
                }
            }
            opened.response
        });
        self.send_answer(id, answer);
        // The change has not replaced the session whose stream ended.
        let ended =
            self.watched.as_mut().and_then(|watched| Some((watched.session, watched.end.take()?)));
        if let Some((session, fault)) = ended {
            self.end_session(session, fault);
        }
        self.start_next_change();
    }

    /// Notes a change that the caller of the host reports when the front end has ended.
    fn note_end(&mut self, change: Option<&FrontendRequest>, fault: Option<&Fault>) {
        match (change, fault) {
            (Some(FrontendRequest::DetachSession { session }), None) => {
                self.end.detached_session = Some(*session);
            }
            (Some(FrontendRequest::OpenSession { session, .. }), fault) => {
                let required = self.required_session.take_if(|required| required == session);
                self.end.opening_failure = fault.filter(|_| required.is_some()).cloned();
            }
            _ => {}
        }
    }
}

/// Returns the session that a request closes or deletes.
fn closed_session(change: &FrontendRequest) -> Option<SessionId> {
    match change {
        FrontendRequest::CloseSession { session }
        | FrontendRequest::DetachSession { session }
        | FrontendRequest::DeleteSession { session } => Some(*session),
        _ => None,
    }
}

/// Opens, closes or deletes a session. A session that is opened replaces `owned`, which is closed.
async fn change_session(
    (service, caller): (&dyn FrontendService, &Caller),
    change: FrontendRequest,
    owned: Option<SessionId>,
) -> Result<OpenedSession, Fault> {
    let opened_session = match &change {
        FrontendRequest::OpenSession { session, .. } => Some(*session),
        _ => None,
    };
    let opened = match (service.request(caller, change).await, opened_session) {
        (
            Err(
                RequestError::Failed { fault: Fault::SessionBusy { .. } }
                | RequestError::Forbidden { .. },
            ),
            Some(session),
        ) => {
            // Another process runs it, or this client may only read: it can be watched.
            watch_elsewhere((service, caller), session).await?
        }
        (response, _) => {
            let response = response?;
            let HostResponse::SessionOpened { session, head, .. } = response else {
                return Ok(OpenedSession { response, watched: None });
            };
            let after = Some(LogPosition::unchecked(head).into());
            let events = service.watch_session(caller, session, watch_options(after)).await?;
            let watched = Some(WatchedSession::new(session, true, events));
            OpenedSession { response, watched }
        }
    };
    let session = opened.watched.as_ref().map(|watched| watched.session);
    if let Some(previous) = owned.filter(|previous| Some(*previous) != session) {
        // The log records how it ended.
        let request = FrontendRequest::CloseSession { session: previous };
        let _: Result<_, RequestError> = service.request(caller, request).await;
    }
    Ok(opened)
}

fn watch_options(after: Option<windlass_protocol::EventCursor>) -> WatchOptions {
    WatchOptions { after, user: ClientAttendance::Present, without_live_events: false }
}

/// Watches a session that another process runs. Its stream says where the log ends.
async fn watch_elsewhere(
    (service, caller): (&dyn FrontendService, &Caller),
    session: SessionId,
) -> Result<OpenedSession, Fault> {
    let mut events = service.watch_session(caller, session, watch_options(None)).await?;
    let Some(SessionStreamItem::Opened(opening)) = events.next().await else {
        let message = "the host does not show this session".to_owned();
        return Err(Fault::Internal { message });
    };
    let response = HostResponse::SessionOpened { session, head: opening.head, model: None };
    let is_live = opening.is_live;
    let events = stream::iter([SessionStreamItem::Opened(opening)]).chain(events).boxed();
    Ok(OpenedSession { response, watched: Some(WatchedSession::new(session, is_live, events)) })
}
