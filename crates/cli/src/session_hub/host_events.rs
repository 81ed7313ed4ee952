//! The events of a host: the states of its open sessions, and the notices and servers of its folders.

use futures_util::stream::{self, BoxStream, StreamExt};
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast;
use windlass_protocol::SessionId;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::HostStreamItem;

/// Events that a client may fall behind before it misses some.
const CHANNEL_CAPACITY: usize = 1024;
/// Notices that a new client gets.
const MAX_REMEMBERED_NOTICES: usize = 100;

/// Sends events to all clients, and remembers notices for those that come later.
pub(super) struct HostEvents {
    sender: broadcast::Sender<HostStreamItem>,
    notices: Mutex<VecDeque<HostStreamItem>>,
}

impl HostEvents {
    pub(super) fn new() -> HostEvents {
        HostEvents { sender: broadcast::channel(CHANNEL_CAPACITY).0, notices: Mutex::default() }
    }

    /// Sends an event; a notice only once, because building an engine twice produces it twice.
    pub(super) fn send(&self, item: HostStreamItem) {
        let mut notices = lock(&self.notices);
        if matches!(item, HostStreamItem::Notice { .. }) {
            if notices.contains(&item) {
                return;
            }
            notices.push_back(item.clone());
            if notices.len() > MAX_REMEMBERED_NOTICES {
                notices.pop_front();
            }
        }
        // Without clients there are no receivers.
        let _ = self.sender.send(item);
    }

    /// Returns the texts of the notices so far.
    pub(super) fn notices(&self) -> Vec<String> {
        let text = |item: &HostStreamItem| match item {
            HostStreamItem::Notice { text, .. } => Some(text.clone()),
            _ => None,
        };
        lock(&self.notices).iter().filter_map(text).collect()
    }

    /// Returns the earlier notices, the items of `current`, and the events from now on. A client
    /// that falls too far behind gets them again, and the end of each session that it missed.
    pub(super) fn watch(
        self: &Arc<Self>,
        current: impl Fn() -> Vec<HostStreamItem> + Send + 'static,
    ) -> BoxStream<'static, HostStreamItem> {
        let (pending, receiver) = self.begin(&current);
        let (events, known) = (Arc::clone(self), BTreeSet::new());
        let watch = HostEventWatch { events, receiver, pending, known, current };
        stream::unfold(watch, |mut watch| async move {
            watch.next_item().await.map(|item| (item, watch))
        })
        .boxed()
    }

    /// Returns what a client must know at first, and a receiver of the events from then on.
    fn begin(
        &self,
        current: impl Fn() -> Vec<HostStreamItem>,
    ) -> (VecDeque<HostStreamItem>, broadcast::Receiver<HostStreamItem>) {
        let notices = lock(&self.notices);
        let receiver = self.sender.subscribe();
        (notices.iter().cloned().chain(current()).collect(), receiver)
    }
}

/// The state of a client's stream.
struct HostEventWatch<F> {
    events: Arc<HostEvents>,
    receiver: broadcast::Receiver<HostStreamItem>,
    /// Items before those of `receiver`.
    pending: VecDeque<HostStreamItem>,
    /// The sessions that are open, as far as the client knows.
    known: BTreeSet<SessionId>,
    current: F,
}

impl<F: Fn() -> Vec<HostStreamItem>> HostEventWatch<F> {
    async fn next_item(&mut self) -> Option<HostStreamItem> {
        let item = loop {
            if let Some(item) = self.pending.pop_front() {
                break item;
            }
            match self.receiver.recv().await {
                Ok(item) => break item,
                Err(broadcast::error::RecvError::Lagged(_)) => self.begin_again(),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        };
        match &item {
            HostStreamItem::Session { state } => {
                self.known.insert(state.session);
            }
            HostStreamItem::SessionClosed { session } => {
                self.known.remove(session);
            }
            HostStreamItem::Notice { .. } | HostStreamItem::Servers { .. } => {}
        }
        Some(item)
    }

    fn begin_again(&mut self) {
        let (current, receiver) = self.events.begin(&self.current);
        let is_open = |session: &SessionId| {
            let is_it = |item: &HostStreamItem| matches!(item, HostStreamItem::Session { state } if state.session == *session);
            current.iter().any(is_it)
        };
        let closed = self.known.iter().filter(|session| !is_open(session));
        let closed = closed.map(|session| HostStreamItem::SessionClosed { session: *session });
        self.pending = closed.chain(current.iter().cloned()).collect();
        self.receiver = receiver;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::session_stream::OpenSessionState;

    fn session(number: u128) -> SessionId {
        SessionId(uuid::Uuid::from_u128(number))
    }

    fn state(session: SessionId, head: u64) -> HostStreamItem {
        let state = OpenSessionState {
            session,
            workspace: "/w".to_owned(),
            title: String::new(),
            is_busy: false,
            open_questions: Vec::new(),
            background_count: 0,
            head,
            clients: Vec::new(),
            is_in_server: false,
        };
        HostStreamItem::Session { state: Box::new(state) }
    }

    #[tokio::test]
    async fn a_client_that_fell_behind_learns_which_sessions_are_closed() {
        let events = Arc::new(HostEvents::new());
        let open = Arc::new(Mutex::new(vec![state(session(1), 1), state(session(2), 1)]));
        let of_client = Arc::clone(&open);
        let mut items = events.watch(move || lock(&of_client).clone());
        for number in 1..=2 {
            assert_eq!(items.next().await, Some(state(session(number), 1)));
        }
        let closed = HostStreamItem::SessionClosed { session: session(1) };
        events.send(closed.clone());
        let number_of_events = CHANNEL_CAPACITY as u64 + 1;
        (2..=number_of_events).for_each(|head| events.send(state(session(2), head)));
        *lock(&open) = vec![state(session(2), number_of_events)];
        assert_eq!(items.next().await, Some(closed));
        assert_eq!(items.next().await, Some(state(session(2), number_of_events)));
        events.send(state(session(2), 0));
        assert_eq!(items.next().await, Some(state(session(2), 0)));
    }
}
