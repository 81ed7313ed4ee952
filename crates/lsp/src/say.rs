//! The mouth of a connection: one message after the other, each whole, to a server that may not read.

use crate::talk::{MESSAGE, Wire};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// How long a server may not read what is written to it.
const STUCK: Duration = Duration::from_secs(5);
/// How long it may take until it is known why a server no longer reads.
const WHY: Duration = Duration::from_secs(1);

/// Writes until the connection ends.
pub(crate) async fn write(
    mut writer: impl AsyncWrite + Unpin,
    mut incoming: mpsc::UnboundedReceiver<Vec<u8>>,
    wire: Arc<Wire>,
) {
    while let Some(bytes) = incoming.recv().await {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match tokio::time::timeout(STUCK, writer.write(rest)).await {
                Ok(Ok(count)) if count > 0 => rest = rest.get(count..).unwrap_or_default(),
                Ok(_) => {
                    // Why it ended says more than that it no longer reads.
                    tokio::time::sleep(WHY).await;
                    wire.close("it closed its input".into());
                    return;
                }
                Err(_) => {
                    let after = STUCK.as_secs();
                    wire.close(format!("it did not read what it was sent for {after} s"));
                    return;
                }
            }
        }
        let _ = writer.flush().await;
        wire.queued.fetch_sub(bytes.len() + MESSAGE, Ordering::Relaxed);
    }
}
