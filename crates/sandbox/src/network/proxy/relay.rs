//! Copies bytes between two streams in pieces, until one side closes or the connection is idle too
//! long.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Buffer size per direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// Time of the last activity in either direction.
pub(super) struct ActivityClock {
    start: Instant,
    last_activity: AtomicU64,
}

impl ActivityClock {
    pub(super) fn new() -> ActivityClock {
        ActivityClock { start: Instant::now(), last_activity: AtomicU64::new(0) }
    }

    pub(super) fn touch(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_activity.store(now, Ordering::Relaxed);
    }

    /// Waits until there has been no activity for `idle`, then returns a `TimedOut` error.
    pub(super) async fn wait_until_idle(&self, idle: Duration) -> io::Error {
        loop {
            let last = Duration::from_millis(self.last_activity.load(Ordering::Relaxed));
            let end = self.start + last + idle;
            if Instant::now() >= end {
                return io::ErrorKind::TimedOut.into();
            }
            sleep_until(end).await;
        }
    }
}

/// Copies until end of file, then shuts down the writer.
pub(super) async fn copy_to_end(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    activity: &ActivityClock,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        activity.touch();
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown().await;
        };
        to.write_all(bytes).await?;
        activity.touch();
    }
}

/// Copies exactly `length` bytes.
pub(super) async fn copy_exactly(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: u64,
    activity: &ActivityClock,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut remaining = length;
    while remaining > 0 {
        let chunk_bytes = usize::try_from(remaining).unwrap_or(BUFFER_BYTES).min(BUFFER_BYTES);
        let count = from.read(buffer.get_mut(..chunk_bytes).unwrap_or_default()).await?;
        activity.touch();
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        to.write_all(bytes).await?;
        activity.touch();
        remaining -= count as u64;
    }
    Ok(())
}

/// Copies in both directions. Sends the client's `early` bytes first.
pub(super) async fn tunnel(
    mut client: TcpStream,
    mut host: TcpStream,
    early: &[u8],
    idle: Duration,
) -> io::Result<()> {
    let activity = ActivityClock::new();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = host.split();
    let upload = async {
        to_host.write_all(early).await?;
        copy_to_end(&mut from_client, &mut to_host, &activity).await
    };
    let download = copy_to_end(&mut from_host, &mut to_client, &activity);
    tokio::select! {
        result = async { tokio::try_join!(upload, download) } => result.map(|_| ()),
        error = activity.wait_until_idle(idle) => Err(error),
    }
}
