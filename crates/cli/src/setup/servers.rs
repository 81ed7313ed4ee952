//! Servers of the Model Context Protocol, as the config has them: what each may touch, where it
//! runs, and what was known of it the last time.

use super::{Acts, Setup};
use crate::screen;
use secrecy::ExposeSecret;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use windlass_mcp::{Auth, Keeping, Lifecycle, Pinned, PromptCard, Servers, Spec, Way};
use windlass_project::{Brought, Journal, Layer, Lodging, Origin, Pins, Server, Standing};
use windlass_sandbox::{Hold, Hosts, Keep, Servant, Walls, Workspace};
use windlass_toolkit::{Berth, Budget, Runtime};

impl Setup {
    /// Lets the servers join. Where nobody but a person or a program calls, they are waited for.
    pub(super) async fn servers(
        &self,
        runtime: &Runtime,
        acts: Acts,
        patience: Option<Duration>,
        budget: &mut Budget,
    ) -> anyhow::Result<()> {
        let used = self.config.servers.values().any(|(server, _)| server.enabled);
        if !used {
            return Ok(());
        }
        let servers = self.open_servers(runtime, budget)?;
        if acts == Acts::Nothing {
            return Ok(());
        }
        servers.begin();
        if let Some(patience) = patience {
            for missing in runtime.registry.arrivals(patience).await {
                screen::note(&format!("note: {missing}"));
            }
        }
        Ok(())
    }

    /// The servers by themselves, for whoever wants to look at them. What it gives first is to be kept
    /// for as long as they are spoken to.
    pub(crate) fn servers_alone(&self) -> anyhow::Result<(Runtime, Servers)> {
        let runtime = self.runtime(self.mode_here())?;
        let servers = self.open_servers(&runtime, &mut Budget::default())?;
        Ok((runtime, servers))
    }

    /// The prompts that servers bring, each with its server's name, as far as they are known: none is
    /// started for it.
    pub(crate) fn prompts(&self) -> Vec<(String, PromptCard)> {
        let pins = self.pins();
        let cards = self.used(&pins).flat_map(|(server, _, pins)| {
            let known = pins.read::<Pinned>(&server.name).ok().flatten();
            let cards = known.map(|known| known.prompts).unwrap_or_default().into_iter();
            cards.map(|card| (server.name.clone(), card))
        });
        cards.collect()
    }

    /// What is known of the person's own servers, and of the project's.
    fn pins(&self) -> (Pins, Pins) {
        let of = |brought| Pins::of(&self.places, brought);
        (of(Brought::Own), of(Brought::Project(&self.root)))
    }

    /// The servers that are used, who says so, and where what is known of each is.
    fn used<'a>(
        &'a self,
        (own, project): &'a (Pins, Pins),
    ) -> impl Iterator<Item = (&'a Server, &'a Origin, &'a Pins)> {
        let used = self.config.servers.values().filter(|(server, _)| server.enabled);
        used.map(move |(server, origin)| {
            let pins = if origin.layer == Layer::Project { project } else { own };
            (server, origin, pins)
        })
    }

    /// All servers that are used, with nothing started.
    fn open_servers(&self, runtime: &Runtime, budget: &mut Budget) -> anyhow::Result<Servers> {
        let pins = self.pins();
        let mut specs = Vec::new();
        for (server, origin, pins) in self.used(&pins) {
            match self.spec(server, origin.layer, pins, &runtime.workspace) {
                Ok(spec) => specs.push(spec),
                Err(error) => {
                    screen::note(&format!("note: {origin}: {} is left out: {error}", server.name));
                }
            }
        }
        let theirs = self.config.servers.values();
        let theirs = theirs.filter(|(_, origin)| origin.layer == Layer::Project);
        let theirs = theirs.map(|(server, _)| server.name.clone()).collect();
        let (own, project) = pins;
        let keeping: Arc<dyn Keeping> =
            Arc::new(Kept { own, project, theirs, journal: Journal::of(&self.places, "mcp") });
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        Ok(Servers::open(specs, berth, &runtime.registry, &keeping, budget))
    }

    fn spec(
        &self,
        server: &Server,
        layer: Layer,
        pins: &Pins,
        workspace: &Workspace,
    ) -> anyhow::Result<Spec> {
        let known = pins.read::<Pinned>(&server.name).unwrap_or_else(|error| {
            screen::note(&format!("note: what was known of {} is lost: {error}", server.name));
            None
        });
        Ok(Spec {
            name: server.name.clone(),
            way: match &server.way {
                windlass_project::Way::Local { .. } => {
                    Way::Local(Box::new(self.servant(server, layer, workspace)?))
                }
                windlass_project::Way::Remote { url, headers, oauth } => Way::Remote {
                    url: url.clone(),
                    headers: headers.iter().map(|(n, v)| (n.clone(), v.clone())).collect(),
                    auth: match oauth {
                        Some(oauth) => crate::mcp::tokens::auth(&self.places, &server.name, oauth),
                        None => Auth::None,
                    },
                    reach: crate::mcp::reach(layer, url),
                },
            },
            timeout: server.timeout,
            protocol: server.protocol.as_deref().and_then(Lifecycle::named),
            digest: server.digest.clone(),
            pins: known,
        })
    }

    fn servant(
        &self,
        server: &Server,
        layer: Layer,
        workspace: &Workspace,
    ) -> anyhow::Result<Servant> {
        let windlass_project::Way::Local { command, env, cwd, write, network, sandbox } =
            &server.way
        else {
            anyhow::bail!("it is no program");
        };
        let name = format!("mcp/{}", server.name);
        let here = self.root.display().to_string();
        let mut words = command.iter().map(|word| word.replace("{folder}", &here));
        let program = words.next().unwrap_or_default();
        let apart = workspace.servant_folder(&name);
        // A program that is fetched by name obeys what lies in the folder it runs in.
        let trusted = self.config.standing == Standing::Trusted;
        let folder = match (cwd, trusted, apart) {
            (Some(cwd), ..) => self.root.join(cwd.replace("{folder}", &here)),
            (None, true, _) | (None, false, None) => self.root.clone(),
            (None, false, Some(apart)) => apart,
        };
        let mut hosts: Vec<String> =
            self.config.sandbox.network.iter().map(|(host, _)| host.clone()).collect();
        hosts.extend(network.iter().cloned());
        let plugin = server.plugin.as_ref();
        let mut surroundings = plugin.map(Lodging::env).unwrap_or_default();
        surroundings.extend(env.iter().map(|(n, v)| (n.into(), v.expose_secret().into())));
        if plugin.is_some() {
            surroundings.push(("CLAUDE_PROJECT_DIR".into(), here.clone().into()));
        }
        Ok(Servant {
            name,
            program: PathBuf::from(program),
            arguments: words.map(Into::into).collect(),
            folder,
            env: surroundings,
            keep: Keep {
                workspace: if *write { Hold::Write } else { Hold::Read },
                write: plugin.map(|plugin| plugin.data.clone()).into_iter().collect(),
                network: Hosts::parse(&hosts)?,
                walls: (!sandbox && layer == Layer::User).then_some(Walls::Off),
            },
        })
    }
}

/// Keeps what is learnt with the person's data.
struct Kept {
    own: Pins,
    project: Pins,
    /// The servers that the project brings.
    theirs: Vec<String>,
    journal: Journal,
}

impl Keeping for Kept {
    fn pin(&self, server: &str, pinned: &Pinned) {
        let theirs = self.theirs.iter().any(|name| name == server);
        let pins = if theirs { &self.project } else { &self.own };
        if let Err(error) = pins.keep(server, pinned) {
            screen::note(&format!("note: what {server} has is not kept: {error}"));
        }
    }

    fn journal(&self, server: &str, line: &str) {
        if let Err(error) = self.journal.write(server, line) {
            tracing::debug!(server, %error, "its journal cannot be written");
        }
    }

    fn notice(&self, text: String) {
        screen::note(&format!("note: {text}"));
    }
}
