//! A proxy between a client and a server on a Unix socket, which cuts connections.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// A proxy that cuts the connection of the first request with the query parameter `workspace=cut-N`,
/// or with `cut-N` at the end of its value, after N bytes of the response.
pub struct CuttingProxy {
    server: PathBuf,
    seen: Mutex<HashSet<u64>>,
    /// Longest response that was passed on.
    pub longest: AtomicU64,
}

impl CuttingProxy {
    /// Starts a proxy at `path`. It ends when the tasks are dropped.
    pub fn start(server: &Path, path: &Path) -> (Arc<CuttingProxy>, JoinSet<()>) {
        let listener = UnixListener::bind(path).unwrap();
        let (seen, longest) = Default::default();
        let proxy = Arc::new(CuttingProxy { server: server.to_owned(), seen, longest });
        let mut tasks = JoinSet::new();
        let accepting = Arc::clone(&proxy);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let proxy = Arc::clone(&accepting);
                connections.spawn(async move { proxy.pass(stream).await });
                while connections.try_join_next().is_some() {}
            }
        });
        (proxy, tasks)
    }

    /// Returns where to cut the response to a request.
    fn cut_of(&self, request: &[u8]) -> Option<u64> {
        let text = String::from_utf8_lossy(request);
        let head = text.split("\r\n").next()?;
        let rest = head.split("cut-").nth(1)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|cut| self.seen.lock().unwrap().insert(*cut))
    }

    /// Passes the requests of a connection and their responses.
    async fn pass(&self, mut client: UnixStream) -> Option<()> {
        let mut server = UnixStream::connect(&self.server).await.ok()?;
        let (mut from_client, mut to_client) = client.split();
        let (mut from_server, mut to_server) = server.split();
        // Bytes that are left of the response under way.
        let left = Mutex::new(u64::MAX);
        let requests = async {
            let mut buffer = vec![0; 16 << 10];
            loop {
                let read = from_client.read(&mut buffer).await;
                let length = read.ok().filter(|length| *length > 0)?;
                if let Some(cut) = self.cut_of(&buffer[..length]) {
                    *left.lock().unwrap() = cut;
                }
                to_server.write_all(&buffer[..length]).await.ok()?;
            }
        };
        let responses = async {
            let (mut buffer, mut passed) = (vec![0; 16 << 10], 0);
            loop {
                let read = from_server.read(&mut buffer).await;
                let length = read.ok().filter(|length| *length > 0)?;
                let left_before = *left.lock().unwrap();
                let allowed = length.min(usize::try_from(left_before).unwrap_or(usize::MAX));
                to_client.write_all(&buffer[..allowed]).await.ok()?;
                passed += allowed as u64;
                self.longest.fetch_max(passed, Ordering::SeqCst);
                *left.lock().unwrap() = left_before - allowed as u64;
                if left_before == allowed as u64 {
                    return Some(());
                }
            }
        };
        tokio::select! {
            passed = requests => passed,
            passed = responses => passed,
        }
    }
}
