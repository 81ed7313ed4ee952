//! Writes queued messages one by one, each whole, to a server that may not read them.

use crate::connection::{ConnectionShared, MESSAGE_OVERHEAD_BYTES};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Time in which a server must read some of its input.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for the reason why a server closed its input.
const CLOSE_REASON_TIMEOUT: Duration = Duration::from_secs(1);

/// Writes `incoming` messages until the connection closes.
pub(crate) async fn write_messages(
    mut writer: impl AsyncWrite + Unpin,
    mut incoming: mpsc::UnboundedReceiver<Vec<u8>>,
    shared: Arc<ConnectionShared>,
) {
    while let Some(bytes) = incoming.recv().await {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match tokio::time::timeout(WRITE_TIMEOUT, writer.write(rest)).await {
                Ok(Ok(count)) if count > 0 => rest = rest.get(count..).unwrap_or_default(),
                Ok(_) => {
                    // The exit reason, if the reader finds one meanwhile, says more than a closed
                    // input.
                    tokio::time::sleep(CLOSE_REASON_TIMEOUT).await;
                    shared.close("it closed its input".into());
                    return;
                }
                Err(_) => {
                    let seconds = WRITE_TIMEOUT.as_secs();
                    shared.close(format!("it did not read its input for {seconds} s"));
                    return;
                }
            }
        }
        let _ = writer.flush().await;
        shared.queued_bytes.fetch_sub(bytes.len() + MESSAGE_OVERHEAD_BYTES, Ordering::Relaxed);
    }
}
