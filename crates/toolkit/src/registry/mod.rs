//! The tool registry: all tools, and those that a model is offered in one step.
//!
//! Built-in tools are registered directly; external tools are registered under the name of their
//! owner. A built-in tool is never replaced, and a name that two owners use belongs to neither.

pub(crate) mod call_description;
pub(crate) mod compact_schema;
pub(crate) mod definition_budget;
pub(crate) mod tool_name_match;
pub(crate) mod tool_search;
pub mod untrusted_schema;

use crate::registry::compact_schema::{SchemaOrigin, compact};
use crate::tool::{AnyTool, SearchableSource, StepContext, Tool};
use crate::tool_definition::ToolDefinition;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::task::Poll;
use std::time::Duration;
use windlass_permission::Policy;
use windlass_protocol::display_text::pluralize;
use windlass_protocol::{ClaudeToolName, ClaudeToolNames, ModelToolDefinition};

/// Permission keys that are not tools: a tool with such a name would fall under rules that mean
/// something else.
const RESERVED_KEYS: [&str; 6] =
    ["network", "sandbox", "process", "tool_definition", "doom_loop", "task"];

/// Limits the names that the answer to a call of an unknown tool lists.
const MAX_SUGGESTED_NAMES: usize = 40;

/// Limits the name of an external tool.
const MAX_NAME_BYTES: usize = 64;

/// All tools of a workspace, by name. Tools may be added and removed while sessions run. A clone
/// shares the same registry.
#[derive(Clone, Default)]
pub struct Registry {
    state: Arc<RwLock<RegistryState>>,
}

#[derive(Default)]
struct RegistryState {
    built_in: BTreeMap<String, Arc<dyn AnyTool>>,
    /// External tools by name, then by owner.
    external: BTreeMap<String, BTreeMap<String, Arc<dyn AnyTool>>>,
    pending: Vec<Arc<dyn PendingToolSource>>,
    /// The first description of searchable tools; it never changes afterwards.
    searchable_sources: OnceLock<Arc<[SearchableSource]>>,
}

impl RegistryState {
    fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.built_in.get(name).or_else(|| sole_tool(self.external.get(name)?))
    }

    /// Returns all tools that can be called, by name: built-in ones, and external ones with a
    /// `sole_tool`.
    fn callable_tools(&self) -> BTreeMap<&str, &Arc<dyn AnyTool>> {
        let external = self.external.iter();
        let external =
            external.filter_map(|(name, owners)| Some((name.as_str(), sole_tool(owners)?)));
        external.chain(self.built_in.iter().map(|(name, tool)| (name.as_str(), tool))).collect()
    }

    /// Describes the sources of searchable tools: the number and names of the tools, or the
    /// description of a source whose tools are pending.
    fn describe_searchable(&self) -> Vec<SearchableSource> {
        let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let external = self.external.iter().filter(|(name, _)| !self.built_in.contains_key(*name));
        for (owner, tool) in
            external.filter(|(_, owners)| owners.len() == 1).flat_map(|(_, owners)| owners)
        {
            if !tool.is_listed() && !self.pending.iter().any(|source| source.name() == owner) {
                let name = tool.name();
                let short = name.strip_prefix(owner.as_str()).and_then(|it| it.strip_prefix('_'));
                names.entry(owner).or_default().push(short.unwrap_or(name).to_owned());
            }
        }
        let known = names.into_iter().map(|(owner, tool_names)| SearchableSource {
            summary: format!("{owner}: {}", pluralize(tool_names.len(), "tool")),
            tool_names,
        });
        let pending = self.pending.iter().map(|source| SearchableSource {
            summary: source.description(),
            tool_names: Vec::new(),
        });
        known.chain(pending).collect()
    }
}

/// Returns the tool if it has exactly one owner.
fn sole_tool(owners: &BTreeMap<String, Arc<dyn AnyTool>>) -> Option<&Arc<dyn AnyTool>> {
    if owners.len() == 1 { owners.values().next() } else { None }
}

/// A weak reference to a `Registry`.
#[derive(Clone, Default)]
pub struct WeakRegistry {
    state: Weak<RwLock<RegistryState>>,
}

impl WeakRegistry {
    /// Returns the `Registry`, if it still exists.
    pub fn upgrade(&self) -> Option<Registry> {
        Some(Registry { state: self.state.upgrade()? })
    }
}

/// A source whose tools are not available yet.
#[async_trait]
pub trait PendingToolSource: Send + Sync {
    /// Returns the name of the source.
    fn name(&self) -> &str;

    /// Waits until the tools are registered, or returns why they are not. May be called again.
    async fn wait_until_ready(&self) -> Result<(), String>;

    /// Returns a description for the model until the tools are available.
    fn description(&self) -> String;
}

/// The reason why a tool from `register_external` cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolNameError {
    /// A built-in tool has the same name.
    #[error("{tool} of {owner} is skipped: a built-in tool has this name")]
    BuiltIn {
        tool: String,
        /// The source of the rejected tool.
        owner: String,
    },
    /// Another owner has a tool with the same name.
    #[error("{tool} is provided by {} and by {owner}, so neither is used; rename one of them", others.join(", "))]
    Duplicate {
        tool: String,
        /// The source that registered it last.
        owner: String,
        /// The other sources of the name.
        others: Vec<String>,
    },
    /// The name is not valid for a tool.
    #[error("{tool:?} of {owner} is skipped: invalid tool name")]
    InvalidName {
        tool: String,
        /// The source of the rejected tool.
        owner: String,
    },
}

impl Registry {
    /// Adds a built-in tool, or replaces the one with that name.
    pub fn register(&self, tool: impl Tool) {
        let tool: Arc<dyn AnyTool> = Arc::new(tool);
        self.write().built_in.insert(tool.name().to_owned(), tool);
    }

    /// Adds an external tool, or replaces the one that this owner registered under that name. A
    /// name that is built in, or that two owners use, cannot be called.
    pub fn register_external(&self, owner: &str, tool: impl Tool) -> Result<(), ToolNameError> {
        let (name, owner) = (Tool::name(&tool).to_owned(), owner.to_owned());
        let is_valid_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let has_valid_length = (1..=MAX_NAME_BYTES).contains(&name.len());
        if !has_valid_length
            || !name.bytes().all(is_valid_byte)
            || RESERVED_KEYS.contains(&name.as_str())
        {
            return Err(ToolNameError::InvalidName { tool: name, owner });
        }
        let mut state = self.write();
        let owners = state.external.entry(name.clone()).or_default();
        owners.insert(owner.clone(), Arc::new(tool));
        let others: Vec<String> = owners.keys().filter(|other| **other != owner).cloned().collect();
        if state.built_in.contains_key(&name) {
            return Err(ToolNameError::BuiltIn { tool: name, owner });
        }
        match others.is_empty() {
            true => Ok(()),
            false => Err(ToolNameError::Duplicate { tool: name, owner, others }),
        }
    }

    /// Removes an external tool. If one other owner has a tool with that name, that tool becomes
    /// available.
    pub fn unregister(&self, owner: &str, name: &str) {
        let mut state = self.write();
        if let Some(owners) = state.external.get_mut(name) {
            owners.remove(owner);
            if owners.is_empty() {
                state.external.remove(name);
            }
        }
    }

    /// Adds a `PendingToolSource` source.
    pub fn add_pending(&self, source: Arc<dyn PendingToolSource>) {
        self.write().pending.push(source);
    }

    /// Returns the descriptions of all `PendingToolSource` sources.
    pub fn pending_descriptions(&self) -> Vec<String> {
        self.read().pending.iter().map(|source| source.description()).collect()
    }

    /// Waits for all pending sources in parallel, at most for `timeout`. Returns the sources that
    /// are not ready, with the reason; they may become ready later.
    pub async fn wait_for_pending(&self, timeout: Duration) -> Vec<String> {
        let sources = self.read().pending.clone();
        let futures: Vec<_> = sources
            .iter()
            .map(|source| async move {
                match tokio::time::timeout(timeout, source.wait_until_ready()).await {
                    Ok(result) => result,
                    Err(_) => Err("it is not ready yet".to_owned()),
                }
            })
            .collect();
        let results = join_all(futures).await;
        let mut unavailable = Vec::new();
        for (source, result) in sources.iter().zip(results) {
            match result {
                Ok(()) => self.write().pending.retain(|other| !Arc::ptr_eq(other, source)),
                // Some reasons begin with the name.
                Err(reason) if reason.starts_with(source.name()) => unavailable.push(reason),
                Err(reason) => unavailable.push(format!("{}: {reason}", source.name())),
            }
        }
        unavailable
    }

    /// Returns a `WeakRegistry`, for tools in the registry: it keeps nothing alive.
    pub fn downgrade(&self) -> WeakRegistry {
        WeakRegistry { state: Arc::downgrade(&self.state) }
    }

    /// Removes a built-in tool.
    pub fn remove(&self, name: &str) {
        self.write().built_in.remove(name);
    }

    /// Returns the names of all tools, sorted.
    pub fn names(&self) -> Vec<String> {
        self.read().callable_tools().into_keys().map(str::to_owned).collect()
    }

    /// Returns the names of the tools that a subagent has only if its agent lists them.
    pub(crate) fn names_not_for_subagents(&self) -> Vec<String> {
        let state = self.read();
        let tools = state.callable_tools().into_iter();
        tools.filter(|(_, tool)| !tool.is_for_subagents()).map(|(name, _)| name.into()).collect()
    }

    /// Returns the permission key of a built-in tool.
    pub fn permission_key(&self, tool: &str) -> Option<String> {
        self.read().built_in.get(tool).map(|tool| tool.permission_key().to_owned())
    }

    /// Returns the names of the built-in tools in Claude Code.
    pub fn claude_names(&self) -> ClaudeToolNames {
        let state = self.read();
        let rows = state.built_in.iter().map(|(name, tool)| ClaudeToolName {
            tool: name.clone(),
            claude_names: tool.claude_names(),
            arguments: tool.claude_arguments(),
        });
        ClaudeToolNames::new(rows.filter(|row| !row.claude_names.is_empty()).collect())
    }

    /// Returns the tools of one step: all of them, with the definitions of those that the model is
    /// offered.
    pub async fn snapshot(&self, step: &StepContext, policy: &Policy) -> ToolSnapshot {
        let (tools, searchable_sources) = {
            let state = self.read();
            let tools = state.callable_tools().into_iter().map(|(name, tool)| {
                let origin = match state.built_in.contains_key(name) {
                    true => SchemaOrigin::BuiltIn,
                    false => SchemaOrigin::External,
                };
                (Arc::clone(tool), origin)
            });
            let tools: Vec<(Arc<dyn AnyTool>, SchemaOrigin)> = tools.collect();
            (
                tools,
                Arc::clone(
                    state.searchable_sources.get_or_init(|| state.describe_searchable().into()),
                ),
            )
        };
        let step = &StepContext { searchable_sources, ..step.clone() };
        let mut entries = Vec::with_capacity(tools.len());
        for (tool, origin) in tools {
            let definition = tool.describe(step).await;
            let denied =
                [tool.name(), tool.permission_key()].map(|name| policy.denies_outright(name));
            let reachable = tool.is_offered(step);
            let offered = reachable && denied == [false, false] && !policy.is_removed(tool.name());
            entries.push(ToolSnapshotEntry { tool, definition, origin, reachable, offered });
        }
        ToolSnapshot { entries: entries.into(), step: step.clone() }
    }

    /// Returns true if the registry still contains this same tool.
    pub(crate) fn is_current(&self, tool: &Arc<dyn AnyTool>) -> bool {
        self.read().get(tool.name()).is_some_and(|current| Arc::ptr_eq(current, tool))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, RegistryState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, RegistryState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Polls all futures concurrently and returns their results in order.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<(Pin<Box<_>>, Option<T>)> =
        futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        let mut done = true;
        for (future, result) in futures.iter_mut().filter(|(_, result)| result.is_none()) {
            match future.as_mut().poll(cx) {
                Poll::Ready(value) => *result = Some(value),
                Poll::Pending => done = false,
            }
        }
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    futures.into_iter().filter_map(|(_, result)| result).collect()
}

/// The tools of one step, in a stable order. Calls reach the tools that the model was offered,
/// whatever has changed since.
#[derive(Clone)]
pub struct ToolSnapshot {
    entries: Arc<[ToolSnapshotEntry]>,
    /// The step that the snapshot is for, with `searchable_sources` filled in.
    pub(crate) step: StepContext,
}

#[derive(Clone)]
pub(crate) struct ToolSnapshotEntry {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: ToolDefinition,
    origin: SchemaOrigin,
    /// True if a model may name the tool.
    reachable: bool,
    /// True if `reachable` and no rule denies the tool outright.
    offered: bool,
}

impl ToolSnapshotEntry {
    fn summary(&self) -> ModelToolDefinition {
        ModelToolDefinition {
            name: self.tool.name().to_owned(),
            description: self.definition.description.clone(),
            schema: compact(&self.definition.schema, &self.definition.description, self.origin),
        }
    }
}

impl ToolSnapshot {
    /// Returns the listed tools with compact schemas, sorted by name.
    pub fn listed_summaries(&self) -> Vec<ModelToolDefinition> {
        let offered = self.entries.iter().filter(|entry| entry.offered && entry.tool.is_listed());
        offered.map(ToolSnapshotEntry::summary).collect()
    }

    /// Returns the listed tools that other programs may call.
    pub fn served_summaries(&self) -> Vec<ModelToolDefinition> {
        let is_served = |entry: &&ToolSnapshotEntry| {
            entry.offered && entry.tool.is_listed() && entry.tool.is_served()
        };
        self.entries.iter().filter(is_served).map(ToolSnapshotEntry::summary).collect()
    }

    /// Returns the full definitions of the listed tools.
    pub fn listed_definitions(&self) -> impl Iterator<Item = (&str, &ToolDefinition)> {
        let listed = self.entries.iter().filter(|entry| entry.offered && entry.tool.is_listed());
        listed.map(|entry| (entry.tool.name(), &entry.definition))
    }

    /// Returns a snapshot with replaced definitions. A tool whose new definition is `None` is
    /// hidden from the model.
    pub fn with_definitions(
        &self,
        definitions: &BTreeMap<String, Option<ToolDefinition>>,
    ) -> ToolSnapshot {
        let replace = |entry: &ToolSnapshotEntry| match definitions.get(entry.tool.name()) {
            None => entry.clone(),
            Some(Some(definition)) => {
                ToolSnapshotEntry { definition: definition.clone(), ..entry.clone() }
            }
            Some(None) => ToolSnapshotEntry { reachable: false, offered: false, ..entry.clone() },
        };
        let entries = self.entries.iter().map(replace).collect();
        ToolSnapshot { entries, step: self.step.clone() }
    }

    /// Returns the tools that a model may call after it has found them by a search.
    pub(crate) fn searchable(&self) -> Vec<ModelToolDefinition> {
        let offered = self.entries.iter().filter(|entry| entry.offered && !entry.tool.is_listed());
        offered.map(ToolSnapshotEntry::summary).collect()
    }

    /// Finds the tool that a model means by a spelling. A denied tool matches only by its exact
    /// name, so that the model learns why it is denied.
    pub(crate) fn find_by_spelling(&self, spelling: &str) -> Option<&ToolSnapshotEntry> {
        let name =
            tool_name_match::match_tool_name(spelling, &self.offered_names()).unwrap_or(spelling);
        self.get(name).filter(|entry| entry.reachable)
    }

    /// Returns the tool with this name, offered or not.
    pub(crate) fn get(&self, name: &str) -> Option<&ToolSnapshotEntry> {
        self.entries.iter().find(|entry| entry.tool.name() == name)
    }

    /// Returns the offered tool that does what a tool of this name does in other agents.
    pub(crate) fn equivalent_tool(&self, spelling: &str) -> Option<&str> {
        tool_name_match::equivalent_tool(spelling, &self.offered_names())
    }

    /// Returns the offered names that a spelling is probably a typo of, or the listed names, at
    /// most `MAX_SUGGESTED_NAMES`, if there is none.
    pub(crate) fn suggested_names(&self, spelling: &str) -> Vec<&str> {
        let likely = tool_name_match::likely_names(spelling, &self.offered_names());
        let listed = self.entries.iter().filter(|entry| entry.offered && entry.tool.is_listed());
        let listed = listed.map(|entry| entry.tool.name()).take(MAX_SUGGESTED_NAMES);
        if likely.is_empty() { listed.collect() } else { likely }
    }

    fn offered_names(&self) -> Vec<&str> {
        let offered = self.entries.iter().filter(|entry| entry.offered);
        offered.map(|entry| entry.tool.name()).collect()
    }
}
