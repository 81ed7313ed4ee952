//! Hooks: other people's say in a call. A hook may refuse or rewrite, never grant; one that fails
//! or takes too long refuses.

use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use windlass_protocol::Output;

/// How long a hook may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Something that sees every call before and after it runs.
#[async_trait]
pub trait Hook: Send + Sync {
    /// Names it in refusals.
    fn name(&self) -> &str;

    /// Sees the arguments before anything is decided, and may replace them: permission decides on
    /// what it returns.
    async fn before(&self, _tool: &str, arguments: Value) -> Result<Value, Refusal> {
        Ok(arguments)
    }

    /// Sees the output before it is bounded, and may replace it.
    async fn after(&self, _tool: &str, output: Output) -> Result<Output, Refusal> {
        Ok(output)
    }
}

/// A hook's no.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// Why, for the model.
    pub reason: String,
}

/// What a hook says, if it says it in time.
pub(crate) async fn patiently<T>(
    hook: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    match tokio::time::timeout(PATIENCE, hook).await {
        Ok(result) => result,
        Err(_) => Err(Refusal { reason: "it did not answer in time".into() }),
    }
}
