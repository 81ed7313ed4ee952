//! Both ways to learn what a server finds: it is asked, or it says so by itself.

use crate::desk::Mark;
use crate::talk::{Link, Refusal};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) const PULL: &str = "textDocument/diagnostic";

/// How often it is looked whether a server that says nothing has begun to answer pulls.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until a server has spoken of a change, by whichever way it has.
pub(crate) async fn speaks(link: &Link, settle: Duration, mark: &Mark, deadline: Instant) -> bool {
    let pushed = async {
        while !link.offers(PULL) {
            tokio::select! {
                pushed = link.desk().pushed(mark) => return Some(pushed),
                () = sleep(LOOK) => {}
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
        Ok(None) => pull(link, &mark.path, deadline).await,
    }
}

/// Asks what a server finds in an open document, and keeps it.
pub(crate) async fn pull(link: &Link, path: &str, deadline: Instant) -> bool {
    let mut params = json!({"textDocument": {"uri": link.desk().uri(path)}});
    let options = link.options(PULL).unwrap_or_default();
    if let (Some(identifier), Some(params)) = (options.get("identifier"), params.as_object_mut()) {
        params.insert("identifier".into(), identifier.clone());
    }
    for again in [true, false] {
        let left = deadline.saturating_duration_since(Instant::now());
        let asked = link.desk().document(path);
        match link.request(PULL, params.clone(), left).await {
            Ok(report) => {
                link.desk().pulled(path, asked, &report);
                return true;
            }
            Err(Refusal::Error { code, data, .. }) if again && is_passing(code, &data) => {
                sleep(LOOK.min(left)).await;
            }
            Err(Refusal::Error { .. } | Refusal::Late | Refusal::Lost(_)) => return false,
        }
    }
    false
}

/// A server that has changed its mind in between is asked once more.
fn is_passing(code: i64, data: &Value) -> bool {
    const CANCELLED: i64 = -32_802;
    const MODIFIED: i64 = -32_801;
    let again = data.get("retriggerRequest").and_then(Value::as_bool).unwrap_or(true);
    code == MODIFIED || (code == CANCELLED && again)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_passes_is_asked_again() {
        assert!(is_passing(-32_802, &Value::Null));
        assert!(!is_passing(-32_802, &json!({"retriggerRequest": false})));
        assert!(is_passing(-32_801, &Value::Null));
        assert!(!is_passing(-32_601, &Value::Null));
    }
}
