//! Waits for the diagnostics of a server: pulled by a request, or pushed by the server.

use crate::connection::LspRequestError;
use crate::documents::documents_and_diagnostics::SentDocumentChange;
use crate::documents::lsp_client::LspClient;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) const PULL_METHOD: &str = "textDocument/diagnostic";

/// Interval at which a silent server is checked for newly registered pull support.
const PULL_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until a server has reported on a change, by pull or push.
pub(crate) async fn wait_for_diagnostics(
    connection: &LspClient,
    settle: Duration,
    mark: &SentDocumentChange,
    deadline: Instant,
) -> bool {
    let pushed = async {
        while !connection.supports(PULL_METHOD) {
            tokio::select! {
                pushed = connection.documents().wait_for_push(mark) => return Some(pushed),
                () = sleep(PULL_POLL_INTERVAL) => {}
            }
        }
        None
    };
    match timeout_at(deadline, pushed).await {
        Ok(Some(true)) => {
            if !settle.is_zero() {
                sleep(settle.min(deadline.saturating_duration_since(Instant::now()))).await;
            }
            true
        }
        Ok(Some(false)) | Err(_) => false,
        Ok(None) => pull_diagnostics(connection, &mark.path, deadline).await,
    }
}

/// Pulls the diagnostics of an open document with `textDocument/diagnostic` and stores them.
/// Returns false on failure.
pub(crate) async fn pull_diagnostics(
    connection: &LspClient,
    path: &str,
    deadline: Instant,
) -> bool {
    let mut params = json!({"textDocument": {"uri": connection.documents().uri(path)}});
    let options = connection.method_options(PULL_METHOD).unwrap_or_default();
    if let (Some(identifier), Some(params)) = (options.get("identifier"), params.as_object_mut()) {
        params.insert("identifier".into(), identifier.clone());
    }
    for may_retry in [true, false] {
        let remaining = deadline.saturating_duration_since(Instant::now());
        let requested = connection.documents().document_text(path);
        match connection.request(PULL_METHOD, params.clone(), remaining).await {
            Ok(report) => {
                connection.documents().store_pull_report(path, requested, &report);
                return true;
            }
            Err(LspRequestError::ServerError { code, data, .. })
                if may_retry && is_retryable(code, &data) =>
            {
                sleep(PULL_POLL_INTERVAL.min(remaining)).await;
            }
            Err(
                LspRequestError::ServerError { .. }
                | LspRequestError::TimedOut
                | LspRequestError::ConnectionLost(_),
            ) => return false,
        }
    }
    false
}

/// Returns true for errors that mean the server's state changed meanwhile; the pull is repeated
/// once.
fn is_retryable(code: i64, data: &Value) -> bool {
    const SERVER_CANCELLED: i64 = -32_802;
    const CONTENT_MODIFIED: i64 = -32_801;
    let may_retry = data.get("retriggerRequest").and_then(Value::as_bool).unwrap_or(true);
    code == CONTENT_MODIFIED || (code == SERVER_CANCELLED && may_retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_transient_errors_are_retried() {
        assert!(is_retryable(-32_802, &Value::Null));
        assert!(!is_retryable(-32_802, &json!({"retriggerRequest": false})));
        assert!(is_retryable(-32_801, &Value::Null));
        assert!(!is_retryable(-32_601, &Value::Null));
    }
}
