//! The registry: which tools there are, and which a model is offered in one step.
//!
//! Built-in tools are registered; those of others are admitted under the name of whoever brings
//! them. A built-in tool is never pushed aside, and a name that two others bring is nobody's.

use crate::name;
use crate::slim::slim;
use crate::tool::{AnyTool, Definition, Scene, Tool};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::task::Poll;
use std::time::Duration;
use windlass_permission::Policy;
use windlass_protocol::ToolSummary;

/// Keys of permission that are no tools: a tool of such a name would fall under rules that mean
/// something else.
const KEYS: [&str; 6] = ["network", "sandbox", "servant", "definition", "doom_loop", "task"];

/// How long a name may be.
const LONGEST: usize = 64;

/// All tools of a workspace, by name. Tools may come and go while sessions run. A clone is the same
/// registry.
#[derive(Clone, Default)]
pub struct Registry {
    shelf: Arc<RwLock<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    own: BTreeMap<String, Arc<dyn AnyTool>>,
    /// By name, then by whoever brought it.
    admitted: BTreeMap<String, BTreeMap<String, Arc<dyn AnyTool>>>,
    expected: Vec<Arc<dyn Source>>,
    /// What was first said of tools that a model is not told of.
    elsewhere: OnceLock<Arc<[String]>>,
}

impl Shelf {
    fn get(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.own.get(name).or_else(|| only(self.admitted.get(name)?))
    }

    /// Every tool that can be called, by name.
    fn all(&self) -> BTreeMap<&str, &Arc<dyn AnyTool>> {
        let admitted = self.admitted.iter();
        let admitted = admitted.filter_map(|(name, by)| Some((name.as_str(), only(by)?)));
        admitted.chain(self.own.iter().map(|(name, tool)| (name.as_str(), tool))).collect()
    }

    /// Whose tools a model is not told of at once: how many there are, or what is said of them
    /// before they are there.
    fn brief(&self) -> Vec<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let found = self.admitted.iter().filter(|(name, _)| !self.own.contains_key(*name));
        for (owner, tool) in found.filter(|(_, by)| by.len() == 1).flat_map(|(_, by)| by) {
            if !tool.listed() && !self.expected.iter().any(|source| source.name() == owner) {
                *counts.entry(owner).or_default() += 1;
            }
        }
        let counts = counts.into_iter().map(|(owner, count)| match count {
            1 => format!("{owner}: 1 tool"),
            count => format!("{owner}: {count} tools"),
        });
        counts.chain(self.expected.iter().map(|source| source.brief())).collect()
    }
}

/// The tool of the one who brings it, if it is only one.
fn only(by: &BTreeMap<String, Arc<dyn AnyTool>>) -> Option<&Arc<dyn AnyTool>> {
    if by.len() == 1 { by.values().next() } else { None }
}

/// A registry that lives only as long as others hold it.
#[derive(Clone, Default)]
pub struct Loose {
    shelf: Weak<RwLock<Shelf>>,
}

impl Loose {
    /// The registry, if it is still there.
    pub fn get(&self) -> Option<Registry> {
        Some(Registry { shelf: self.shelf.upgrade()? })
    }
}

/// Somebody whose tools are still to come.
#[async_trait]
pub trait Source: Send + Sync {
    /// Who it is.
    fn name(&self) -> &str;

    /// Waits until its tools are there, or says why they are not. It may be asked again.
    async fn arrive(&self) -> Result<(), String>;

    /// What can be said of it before that, for a model.
    fn brief(&self) -> String;
}

/// Why somebody's tool cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Clash {
    /// A built-in tool has that name.
    #[error("{tool} is built in, so that of {owner} is left out")]
    BuiltIn {
        /// The tool.
        tool: String,
        /// Who brings it.
        owner: String,
    },
    /// Others bring it, too.
    #[error("{tool} is brought by {} and by {owner}, so neither is used; rename one of them", others.join(", "))]
    Contested {
        /// The tool.
        tool: String,
        /// Who brings it.
        owner: String,
        /// Who else does.
        others: Vec<String>,
    },
    /// It is no name for a tool.
    #[error("{tool:?} of {owner} is left out: a tool cannot have that name")]
    Unfit {
        /// The tool.
        tool: String,
        /// Who brings it.
        owner: String,
    },
}

impl Registry {
    /// Adds a built-in tool, or replaces the one of that name.
    pub fn register(&self, tool: impl Tool) {
        let tool: Arc<dyn AnyTool> = Arc::new(tool);
        self.write().own.insert(tool.name().to_owned(), tool);
    }

    /// Adds somebody's tool, or replaces the one they brought under that name. A name that is built
    /// in, or that two bring, is nobody's.
    pub fn admit(&self, owner: &str, tool: impl Tool) -> Result<(), Clash> {
        let (name, owner) = (Tool::name(&tool).to_owned(), owner.to_owned());
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'_' | b'-');
        let sized = (1..=LONGEST).contains(&name.len());
        if !sized || !name.bytes().all(fits) || KEYS.contains(&name.as_str()) {
            return Err(Clash::Unfit { tool: name, owner });
        }
        let mut shelf = self.write();
        let by = shelf.admitted.entry(name.clone()).or_default();
        by.insert(owner.clone(), Arc::new(tool));
        let others: Vec<String> = by.keys().filter(|other| **other != owner).cloned().collect();
        if shelf.own.contains_key(&name) {
            return Err(Clash::BuiltIn { tool: name, owner });
        }
        match others.is_empty() {
            true => Ok(()),
            false => Err(Clash::Contested { tool: name, owner, others }),
        }
    }

    /// Takes away what somebody brought. If one other brings the same name, it is theirs now.
    pub fn retract(&self, owner: &str, name: &str) {
        let mut shelf = self.write();
        if let Some(by) = shelf.admitted.get_mut(name) {
            by.remove(owner);
            if by.is_empty() {
                shelf.admitted.remove(name);
            }
        }
    }

    /// Somebody's tools are still to come.
    pub fn expect(&self, source: Arc<dyn Source>) {
        self.write().expected.push(source);
    }

    /// What can be said of those whose tools are still to come.
    pub fn awaited(&self) -> Vec<String> {
        self.read().expected.iter().map(|source| source.brief()).collect()
    }

    /// Waits for all whose tools are still to come, at the same time and not for longer than this.
    /// Says who is not there, and why; they may come later.
    pub async fn arrivals(&self, patience: Duration) -> Vec<String> {
        let expected = self.read().expected.clone();
        let waits: Vec<_> = expected
            .iter()
            .map(|source| async move {
                match tokio::time::timeout(patience, source.arrive()).await {
                    Ok(arrived) => arrived,
                    Err(_) => Err("it is not there yet".to_owned()),
                }
            })
            .collect();
        let came = all(waits).await;
        let mut missing = Vec::new();
        for (source, came) in expected.iter().zip(came) {
            match came {
                Ok(()) => self.write().expected.retain(|other| !Arc::ptr_eq(other, source)),
                Err(why) => missing.push(format!("{}: {why}", source.name())),
            }
        }
        missing
    }

    /// The same registry, for what is in it: it keeps nothing alive.
    pub fn loosely(&self) -> Loose {
        Loose { shelf: Arc::downgrade(&self.shelf) }
    }

    /// Takes a built-in tool away.
    pub fn remove(&self, name: &str) {
        self.write().own.remove(name);
    }

    /// The names of all tools, sorted.
    pub fn ids(&self) -> Vec<String> {
        self.read().all().into_keys().map(str::to_owned).collect()
    }

    /// What one step works with: every tool, and a description of those a model is offered.
    pub async fn snapshot(&self, scene: &Scene, policy: &Policy) -> Snapshot {
        let (tools, elsewhere) = {
            let shelf = self.read();
            let tools: Vec<Arc<dyn AnyTool>> = shelf.all().into_values().cloned().collect();
            (tools, Arc::clone(shelf.elsewhere.get_or_init(|| shelf.brief().into())))
        };
        let scene = &Scene { elsewhere, ..scene.clone() };
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

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Shelf> {
        self.shelf.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Shelf> {
        self.shelf.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for all of them at the same time.
async fn all<T>(waits: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut waits: Vec<(Pin<Box<_>>, Option<T>)> =
        waits.into_iter().map(|wait| (Box::pin(wait), None)).collect();
    std::future::poll_fn(|cx| {
        let mut done = true;
        for (wait, came) in waits.iter_mut().filter(|(_, came)| came.is_none()) {
            match wait.as_mut().poll(cx) {
                Poll::Ready(value) => *came = Some(value),
                Poll::Pending => done = false,
            }
        }
        if done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    waits.into_iter().filter_map(|(_, came)| came).collect()
}

/// The tools of one step, in a stable order. What a model was offered is what its calls reach,
/// whatever has changed since.
#[derive(Clone)]
pub struct Snapshot {
    entries: Arc<[Entry]>,
    /// Whom they are for.
    pub(crate) scene: Scene,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) definition: Definition,
    /// A model may mean it.
    reachable: bool,
    /// It may, and no rule denies the tool outright.
    offered: bool,
}

impl Entry {
    fn summary(&self) -> ToolSummary {
        ToolSummary {
            name: self.tool.name().to_owned(),
            description: self.definition.description.clone(),
            schema: slim(&self.definition.schema, &self.definition.description),
        }
    }
}

impl Snapshot {
    /// What a model is told of at once, sorted by name.
    pub fn offered(&self) -> Vec<ToolSummary> {
        let offered = self.entries.iter().filter(|entry| entry.offered && entry.tool.listed());
        offered.map(Entry::summary).collect()
    }

    /// What a model is told of at once, whole.
    pub fn told(&self) -> impl Iterator<Item = (&str, &Definition)> {
        let told = self.entries.iter().filter(|entry| entry.offered && entry.tool.listed());
        told.map(|entry| (entry.tool.name(), &entry.definition))
    }

    /// The same with other definitions. A tool that is to have none is not there for a model.
    pub fn revised(&self, definitions: &BTreeMap<String, Option<Definition>>) -> Snapshot {
        let revise = |entry: &Entry| match definitions.get(entry.tool.name()) {
            None => entry.clone(),
            Some(Some(definition)) => Entry { definition: definition.clone(), ..entry.clone() },
            Some(None) => Entry { reachable: false, offered: false, ..entry.clone() },
        };
        let entries = self.entries.iter().map(revise).collect();
        Snapshot { entries, scene: self.scene.clone() }
    }

    /// What a model may call besides, once it has found it.
    pub(crate) fn unlisted(&self) -> Vec<ToolSummary> {
        let offered = self.entries.iter().filter(|entry| entry.offered && !entry.tool.listed());
        offered.map(Entry::summary).collect()
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

    /// The offered names nearest to a spelling, or all that a model was told of if none is near.
    pub(crate) fn nearest(&self, spelled: &str) -> Vec<&str> {
        let near = name::nearest(spelled, &self.names());
        let told = self.entries.iter().filter(|entry| entry.offered && entry.tool.listed());
        if near.is_empty() { told.map(|entry| entry.tool.name()).collect() } else { near }
    }

    fn names(&self) -> Vec<&str> {
        let offered = self.entries.iter().filter(|entry| entry.offered);
        offered.map(|entry| entry.tool.name()).collect()
    }
}
