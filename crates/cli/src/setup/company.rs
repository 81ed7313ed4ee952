//! What others bring: the one place where servers, custom tools, plugins and hooks join a session's
//! tools. Each is read from the config here, and nothing of it is started before it is wanted.

use super::Setup;
use std::sync::Arc;
use windlass_toolkit::{Hook, Runtime};

/// What others bring besides tools, which are put into the registry.
pub(super) struct Company {
    /// Their hooks, in the order they are asked: the person's own, those of plugins, the project's.
    pub(super) hooks: Vec<Arc<dyn Hook>>,
}

impl Setup {
    /// Lets them join. What is wrong with one of them is told, and keeps none of the others away.
    #[allow(
        clippy::unused_async,
        reason = "custom tools are asked what they are before a session starts"
    )]
    pub(super) async fn company(&self, runtime: &Runtime) -> anyhow::Result<Company> {
        let hooks = self.hooks(runtime)?;
        Ok(Company { hooks })
    }
}
