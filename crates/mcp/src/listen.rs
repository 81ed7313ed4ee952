//! What a server says to us without being asked, and who hears it: the call it is about, or the
//! newest one under way if it does not say.

use crate::link::Line;
use crate::pipe::lock;
use rmcp::ErrorData;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RequestContext};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// A question of a server.
pub(crate) struct Ask {
    pub(crate) params: ElicitRequestParams,
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// Which calls are under way, oldest first.
#[derive(Default)]
pub(crate) struct Switchboard {
    seats: Mutex<(u64, Vec<Seat>)>,
}

struct Seat {
    number: u64,
    token: Option<ProgressToken>,
    asks: mpsc::Sender<Ask>,
    progress: mpsc::Sender<String>,
}

/// What a call hears while it is under way.
pub(crate) struct Desk {
    board: Arc<Switchboard>,
    number: u64,
    pub(crate) asks: mpsc::Receiver<Ask>,
    pub(crate) progress: mpsc::Receiver<String>,
}

impl Switchboard {
    /// A place for a call that is about to be made.
    pub(crate) fn seat(self: &Arc<Self>) -> Desk {
        let ((ask, asks), (say, progress)) = (mpsc::channel(8), mpsc::channel(32));
        let mut seats = lock(&self.seats);
        seats.0 += 1;
        let number = seats.0;
        seats.1.push(Seat { number, token: None, asks: ask, progress: say });
        Desk { board: Arc::clone(self), number, asks, progress }
    }

    fn asker(&self) -> Option<mpsc::Sender<Ask>> {
        lock(&self.seats).1.last().map(|seat| seat.asks.clone())
    }

    fn teller(&self, token: &ProgressToken) -> Option<mpsc::Sender<String>> {
        let seats = lock(&self.seats);
        let about = seats.1.iter().find(|seat| seat.token.as_ref() == Some(token));
        // It may come before the call knows its own token.
        let newest = || seats.1.last().filter(|seat| seat.token.is_none());
        about.or_else(newest).map(|seat| seat.progress.clone())
    }
}

impl Desk {
    /// The call was made, and is known by this.
    pub(crate) fn known_by(&self, token: ProgressToken) {
        let mut seats = lock(&self.board.seats);
        if let Some(seat) = seats.1.iter_mut().find(|seat| seat.number == self.number) {
            seat.token = Some(token);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        lock(&self.board.seats).1.retain(|seat| seat.number != self.number);
    }
}

/// Our side of a connection.
pub(crate) struct Listener {
    pub(crate) board: Arc<Switchboard>,
    pub(crate) line: Arc<Line>,
}

impl ClientHandler for Listener {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = ElicitResult::new(ElicitationAction::Decline);
        let Some(asker) = self.board.asker() else { return Ok(declined) };
        let (reply, answer) = oneshot::channel();
        if asker.try_send(Ask { params: request, reply }).is_err() {
            return Ok(declined);
        }
        Ok(answer.await.unwrap_or(declined))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(teller) = self.board.teller(&params.progress_token) {
            let _ = teller.try_send(words(&params));
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.line.change();
    }

    fn get_info(&self) -> ClientConfig {
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("windlass", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

/// How far something is, in a line.
fn words(params: &ProgressNotificationParam) -> String {
    let far = match params.total {
        Some(total) => format!("{} of {total}", params.progress),
        None => params.progress.to_string(),
    };
    let line = match &params.message {
        Some(message) => format!("{far}: {message}"),
        None => far,
    };
    let line: String = line.chars().take(500).collect();
    windlass_toolkit::bound::plain(&line)
}
