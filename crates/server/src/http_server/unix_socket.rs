//! The Unix socket of the server, which only our own user can open.
#![allow(clippy::disallowed_types, reason = "this module accepts the connections of clients")]

use super::ApiServer;
use super::connection::Connection;
use super::connection_loop::serve_connection;
use super::listeners::{Listener, accept_until_stopped};
use crate::request_checks::Transport;
use rustix::fs::Mode;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

/// A Unix socket to serve.
pub struct SocketEndpoint {
    listener: UnixListener,
}

impl SocketEndpoint {
    /// Listens on a socket that only our user can open. The folder must belong to our user alone,
    /// and the path must be free.
    pub fn bind(path: &Path) -> io::Result<SocketEndpoint> {
        let listener = UnixListener::bind(path)?;
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
        Ok(SocketEndpoint { listener })
    }
}

impl ApiServer {
    /// Serves clients of the Unix socket until `stop` fires. Processes of other users are refused.
    pub async fn serve_socket(self: Arc<Self>, endpoint: SocketEndpoint, stop: CancellationToken) {
        let own_user = rustix::process::geteuid().as_raw();
        let listener = endpoint.listener;
        let serve = move |stream: UnixStream, connection: Connection| async move {
            let is_own_user = stream.peer_cred().is_ok_and(|peer| peer.uid() == own_user);
            if is_own_user {
                serve_connection(stream, connection).await;
            }
        };
        accept_until_stopped(self, Transport::Socket, stop, listener, serve).await;
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept_stream(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}
