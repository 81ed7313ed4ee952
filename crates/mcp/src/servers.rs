//! All servers of a session.
//!
//! What they had the last time is registered at once, so that nobody waits for a server before it is
//! called; only one that nobody knows anything of is started beforehand, on the side.

use crate::call::{Broke, told};
use crate::pipe::lock;
use crate::prompt::{self, PromptCard};
use crate::resource::{Holders, Kind, ListResources, ReadResource};
use crate::server::Server;
use crate::spec::{Keeping, Lifecycle, PinnedTool, Spec};
use crate::tool::difference;
use async_trait::async_trait;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_toolkit::health::State;
use windlass_toolkit::{Berth, Budget, Failure, Registry, Source};

/// The servers of a session. A clone is the same servers.
#[derive(Clone)]
pub struct Servers {
    all: Arc<[Arc<Server>]>,
    berth: Berth,
}

/// What a server has now.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The revision of the protocol it speaks.
    pub lifecycle: Lifecycle,
    /// Its tools.
    pub tools: Vec<PinnedTool>,
    /// Those that are not what was looked at: another definition, or none before.
    pub changed: Vec<Change>,
    /// Those that were looked at and are no longer there.
    pub gone: Vec<String>,
    /// Its prompts.
    pub prompts: Vec<PromptCard>,
    /// It has resources.
    pub resources: bool,
    /// The number of its process, if it is one.
    pub pid: Option<i32>,
}

/// A tool that is not what was looked at.
#[derive(Clone, Debug)]
pub struct Change {
    /// What the server calls it.
    pub name: String,
    /// What is different, for a person.
    pub difference: String,
}

impl Servers {
    /// Registers what is known of them, and starts nothing. The tools of a server that do not fit
    /// into the budget are found instead.
    pub fn open(
        specs: Vec<Spec>,
        berth: Berth,
        registry: &Registry,
        keeping: &Arc<dyn Keeping>,
        budget: &mut Budget,
    ) -> Servers {
        let made = specs
            .into_iter()
            .map(|spec| Server::new(spec, berth.clone(), registry.loosely(), Arc::clone(keeping)));
        let all: Arc<[Arc<Server>]> = made.collect();
        for server in all.iter() {
            match server.pins() {
                Some(_) => server.register_pinned(budget),
                None => registry.expect(Arc::new(Awaited { server: Arc::clone(server) })),
            }
        }
        let has = |server: &&Arc<Server>| server.pins().is_some_and(|pins| pins.resources);
        let holders: Holders = all.iter().filter(has).cloned().collect();
        if !holders.is_empty() {
            for kind in [Kind::Plain, Kind::Templates] {
                registry.register(ListResources { holders: Arc::clone(&holders), kind });
            }
            registry.register(ReadResource { holders });
        }
        Servers { all, berth }
    }

    /// Starts, side by side, those that nobody knows the tools of.
    pub fn begin(&self) {
        for server in self.all.iter().filter(|server| server.pins().is_none()) {
            server.begin();
        }
    }

    /// Connects to one now, and says what it has.
    pub async fn look(&self, name: &str) -> Result<Listing, Failure> {
        let server = self.find(name)?;
        let before = server.pins();
        let link = server.arrive().await?;
        let live = lock(&link.tools).clone();
        let pins = before.or_else(|| server.pins());
        let known = |name: &str| pins.iter().flat_map(|pins| &pins.tools).find(|t| t.name == name);
        let changed = live.values().filter_map(|tool| {
            let pinned = known(&tool.name);
            let differs = pinned.is_none_or(|pinned| pinned.digest != tool.digest);
            let pinned = pinned.map(|pinned| &pinned.definition);
            let difference = || difference(pinned, &tool.definition);
            differs.then(|| Change { name: tool.name.clone(), difference: difference() })
        });
        let gone = pins.iter().flat_map(|pins| &pins.tools);
        let gone = gone.filter(|tool| !live.contains_key(&tool.name));
        Ok(Listing {
            lifecycle: link.lifecycle,
            changed: changed.collect(),
            gone: gone.map(|tool| tool.name.clone()).collect(),
            prompts: server.pins().map(|pins| pins.prompts).unwrap_or_default(),
            resources: link.offers().1,
            pid: link.pid(),
            tools: live.into_values().collect(),
        })
    }

    /// The person looked at what a server has now, and agrees to all of it.
    pub async fn accept(&self, name: &str) -> Result<(), Failure> {
        let server = self.find(name)?;
        let link = server.arrive().await?;
        let live = lock(&link.tools).clone();
        server.accept_all(&live);
        Ok(())
    }

    /// Asks a server for a prompt, filled in with `name=value …`.
    pub async fn prompt(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
    ) -> Result<String, Failure> {
        let server = self.find(server)?;
        let link = server.link(self.berth.mode(), &CancellationToken::new()).await?;
        prompt::get(&link, name, arguments).await.map_err(|broke| match broke {
            Broke::Refused(words) => Failure::new(format!(
                "{server} does not give {}: {words}. `windlass mcp tools {server}` lists its \
                 prompts and what each is given",
                told(name),
                server = server.name(),
            )),
            other => other.failure(server.name()),
        })
    }

    /// How they are doing.
    pub fn states(&self) -> Vec<(String, State)> {
        self.all.iter().map(|server| (server.name().to_owned(), server.state())).collect()
    }

    /// Ends all that run.
    pub async fn close(&self) {
        for server in self.all.iter() {
            server.close().await;
        }
    }

    fn find(&self, name: &str) -> Result<&Arc<Server>, Failure> {
        let found = self.all.iter().find(|server| server.name() == name);
        found.ok_or_else(|| Failure::new(format!("there is no server {}", told(name))))
    }
}

/// A server whose tools are still to come.
struct Awaited {
    server: Arc<Server>,
}

#[async_trait]
impl Source for Awaited {
    fn name(&self) -> &str {
        self.server.name()
    }

    async fn arrive(&self) -> Result<(), String> {
        self.server.arrive().await.map(|_| ()).map_err(|failure| failure.text)
    }

    fn brief(&self) -> String {
        format!("{} (its tools are not known yet)", self.server.name())
    }
}
