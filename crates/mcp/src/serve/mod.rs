//! Our tools for other programs: a server over standard input and output, or over HTTP.
//!
//! Nothing runs here. Whoever serves brings a [`House`]; a connection is a [`Visit`], and each call
//! goes down the same road as any other. What a client says is bounded before it counts, and it is
//! told of the tools that are served and of nothing else.

mod guest;
mod http;

use crate::serve::guest::Guests;
use async_trait::async_trait;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{BlobRef, Outcome, ToolSummary};
use windlass_toolkit::Failure;

pub use http::{Door, http};

/// The longest message of a client, in bytes.
const LONGEST: usize = 4 << 20;

/// Who serves.
#[async_trait]
pub trait House: Send + Sync + 'static {
    /// The tools that are served; the same for as long as it stands.
    fn tools(&self) -> &[ToolSummary];

    /// Lets a client in, by the name it gives itself. Its calls are made one after the other.
    async fn visit(&self, client: &str) -> Result<Arc<dyn Visit>, Failure>;
}

/// A client that was let in. It leaves when this is dropped.
#[async_trait]
pub trait Visit: Send + Sync {
    /// Makes a call. None if there is nobody to make it any more.
    async fn call(&self, wanted: Wanted) -> Option<Outcome>;

    /// The bytes of something that a call gave.
    async fn blob(&self, blob: &BlobRef) -> Option<Vec<u8>>;
}

/// A call that a client wants.
pub struct Wanted {
    /// The tool.
    pub tool: String,
    /// Its arguments, as JSON.
    pub arguments: String,
    /// What it says of itself while it runs. What finds no room is left out.
    pub progress: mpsc::Sender<String>,
    /// Fires when the client no longer wants it.
    pub cancel: CancellationToken,
}

/// Serves one client until it hangs up, or until somebody stops it.
pub async fn pipe(
    house: Arc<dyn House>,
    (input, output): (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ),
    stop: CancellationToken,
) -> Result<(), Failure> {
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(LONGEST);
    let served = Guests::new(house).guest().serve_with_ct(transport, stop).await;
    // Who hangs up before a word was said wanted nothing.
    let Ok(served) = served else { return Ok(()) };
    match served.waiting().await {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("serving ended unexpectedly: {error}"))),
    }
}
