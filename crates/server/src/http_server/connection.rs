//! A connection of a client: its timeouts, and its end when it is stopped or revoked.

use super::ApiServer;
use crate::limits::UnlimitedWrites;
use crate::request_checks::{ClientIdentity, Transport};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, SetOnce};
use tokio_util::sync::CancellationToken;
use windlass_protocol::mutex_lock::lock;

/// Limit for the head of the first request of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a client to read the reason why its stream ends; then the connection is cut.
const CLOSING_TIMEOUT: Duration = Duration::from_millis(700);

/// The state of a connection that its requests share.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) server: Arc<ApiServer>,
    pub(super) transport: Transport,
    pub(super) stop: CancellationToken,
    state: Arc<ConnectionState>,
}

struct ConnectionState {
    /// Place among the connections of the listener.
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    /// Cancelled when the first request has come.
    first_request: CancellationToken,
    /// True while the client may stop reading.
    has_unlimited_writes: Arc<AtomicBool>,
    /// The client of the event stream.
    stream_client: SetOnce<ClientIdentity>,
}

impl Connection {
    pub(super) fn new(
        server: &Arc<ApiServer>,
        transport: &Transport,
        stop: &CancellationToken,
        slot: OwnedSemaphorePermit,
    ) -> Connection {
        let state = ConnectionState {
            slot: Mutex::new(Some(slot)),
            first_request: CancellationToken::new(),
            has_unlimited_writes: Arc::default(),
            stream_client: SetOnce::new(),
        };
        Connection {
            server: Arc::clone(server),
            transport: transport.clone(),
            stop: stop.clone(),
            state: Arc::new(state),
        }
    }

    /// Makes the connection an event stream, which is no longer counted as a connection and ends
    /// with the token of its client.
    pub(super) fn become_stream(&self, client: &ClientIdentity) -> UnlimitedWrites {
        let _ = self.state.stream_client.set(client.clone());
        *lock(&self.state.slot) = None;
        UnlimitedWrites::new(Arc::clone(&self.state.has_unlimited_writes))
    }

    /// Waits until the connection must be cut, because it sends no request, or because the
    /// token of its stream is valid no longer and its client does not read.
    pub(super) async fn until_cut(&self) {
        let first_request = self.state.first_request.cancelled();
        if tokio::time::timeout(HEAD_TIMEOUT, first_request).await.is_err() {
            return;
        }
        let client = self.state.stream_client.wait().await;
        let server = Arc::clone(&self.server);
        tokio::select! {
            () = client.revoked.cancelled() => {}
            () = server.until_expired(client.name.clone(), client.expires_at) => {}
        }
        tokio::time::sleep(CLOSING_TIMEOUT).await;
    }

    /// Notes that a request has come.
    pub(super) fn note_request(&self) {
        self.state.first_request.cancel();
    }

    /// Returns the flag that is true while the client may stop reading.
    pub(super) fn unlimited_writes(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.state.has_unlimited_writes)
    }
}
