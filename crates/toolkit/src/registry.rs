//! The registry: which tools there are, and which a model is offered in one step.

use crate::name;
use crate::slim::slim;
use crate::tool::{AnyTool, Definition, Scene, Tool};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use windlass_permission::Policy;
use windlass_protocol::ToolSummary;

/// All tools of a workspace, by name. Tools may come and go while sessions run. A clone is the same
/// registry.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Arc<RwLock<BTreeMap<String, Arc<dyn AnyTool>>>>,
}

impl Registry {
    /// Adds a tool, or replaces the one of that name.
    pub fn register(&self, tool: impl Tool) {
        let tool: Arc<dyn AnyTool> = Arc::new(tool);
        self.write().insert(tool.name().to_owned(), tool);
    }

    /// Takes a tool away.
    pub fn remove(&self, name: &str) {
        self.write().remove(name);
    }

    /// The names of all tools, sorted.
    pub fn ids(&self) -> Vec<String> {
        self.read().keys().cloned().collect()
    }

    /// What one step works with: every tool, and a description of those a model is offered.
    pub async fn snapshot(&self, scene: &Scene, policy: &Policy) -> Snapshot {
        let tools: Vec<Arc<dyn AnyTool>> = self.read().values().cloned().collect();
        let mut entries = Vec::with_capacity(tools.len());
        for tool in tools {
            let definition = tool.describe(scene).await;
            let denied = [tool.name(), tool.key()].map(|name| policy.denies_outright(name));
            let reachable = tool.offered(scene);
            let offered = reachable && denied == [false, false] && !policy.lacks(tool.name());
            entries.push(Entry { tool, definition, reachable, offered });
        }
        Snapshot { entries: entries.into(), scene: scene.clone() }
    }

    /// True if a tool is still the one a snapshot was taken of.
    pub(crate) fn still_has(&self, tool: &Arc<dyn AnyTool>) -> bool {
        self.read().get(tool.name()).is_some_and(|current| Arc::ptr_eq(current, tool))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<dyn AnyTool>>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<dyn AnyTool>>> {
        self.tools.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tools of one step, in a stable order. What a model was offered is what its calls reach,
/// whatever has changed since.
#[derive(Clone)]
pub struct Snapshot {
    entries: Arc<[Entry]>,
    /// Whom they are for.
    pub(crate) scene: Scene,
}

pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: Definition,
    /// A model may mean it.
    reachable: bool,
    /// It may, and no rule denies the tool outright.
    offered: bool,
}

impl Snapshot {
    /// What a model is offered, sorted by name.
    pub fn offered(&self) -> Vec<ToolSummary> {
        let offered = self.entries.iter().filter(|entry| entry.offered);
        offered
            .map(|entry| ToolSummary {
                name: entry.tool.name().to_owned(),
                description: entry.definition.description.clone(),
                schema: slim(&entry.definition.schema, &entry.definition.description),
            })
            .collect()
    }

    /// The tool a model means by a spelling. One that is denied can be meant only exactly, so that
    /// it is told why it may not.
    pub(crate) fn find(&self, spelled: &str) -> Option<&Entry> {
        let name = name::repair(spelled, &self.names()).unwrap_or(spelled);
        self.exactly(name).filter(|entry| entry.reachable)
    }

    /// The tool of this name, offered or not.
    pub(crate) fn exactly(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.tool.name() == name)
    }

    /// The offered names nearest to a spelling, or all of them if none is near.
    pub(crate) fn nearest(&self, spelled: &str) -> Vec<&str> {
        let names = self.names();
        let near = name::nearest(spelled, &names);
        if near.is_empty() { names } else { near }
    }

    fn names(&self) -> Vec<&str> {
        let offered = self.entries.iter().filter(|entry| entry.offered);
        offered.map(|entry| entry.tool.name()).collect()
    }
}
