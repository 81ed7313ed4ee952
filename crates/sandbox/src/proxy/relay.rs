//! Carrying bytes between two ends, in pieces, until one end or the patience ends.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// How much is held of each direction.
const PIECE: usize = 16 * 1024;

/// When something last moved, in either direction.
pub(super) struct Pulse {
    start: Instant,
    last: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse { start: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(super) fn beat(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Ends when nothing has moved for so long.
    pub(super) async fn stop(&self, idle: Duration) -> io::Error {
        loop {
            let last = Duration::from_millis(self.last.load(Ordering::Relaxed));
            let end = self.start + last + idle;
            if Instant::now() >= end {
                return io::ErrorKind::TimedOut.into();
            }
            sleep_until(end).await;
        }
    }
}

/// Carries everything, then says that there is no more.
pub(super) async fn pour(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    pulse: &Pulse,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await?;
        pulse.beat();
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return to.shutdown().await;
        };
        to.write_all(bytes).await?;
        pulse.beat();
    }
}

/// Carries so many bytes and not one more.
pub(super) async fn measure(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    length: u64,
    pulse: &Pulse,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut left = length;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        let read = from.read(piece.get_mut(..most).unwrap_or_default()).await?;
        pulse.beat();
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        to.write_all(bytes).await?;
        pulse.beat();
        left -= read as u64;
    }
    Ok(())
}

/// Carries both ways. What the client sent early goes first.
pub(super) async fn tunnel(
    mut client: TcpStream,
    mut host: TcpStream,
    early: &[u8],
    idle: Duration,
) -> io::Result<()> {
    let pulse = Pulse::new();
    let (mut from_client, mut to_client) = client.split();
    let (mut from_host, mut to_host) = host.split();
    let out = async {
        to_host.write_all(early).await?;
        pour(&mut from_client, &mut to_host, &pulse).await
    };
    let back = pour(&mut from_host, &mut to_client, &pulse);
    tokio::select! {
        done = async { tokio::try_join!(out, back) } => done.map(|_| ()),
        late = pulse.stop(idle) => Err(late),
    }
}
