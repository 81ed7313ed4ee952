//! Custom tools join a session's tools: the person's own, those of plugins, then a trusted project's.
//!
//! What a file said of itself before is known by its digest, so that usually nothing is started
//! here. New ones are asked at once, all at the same time, and not waited for longer than a moment;
//! who is later is found, not told of.

use super::Setup;
use crate::screen;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use windlass_plugin::script::{self, Runtimes};
use windlass_plugin::{Launch, Program, Shelf, Terms, Wishes};
use windlass_project::{Layer, Places, Sayings, ToolFile, ToolFiles};
use windlass_sandbox::{Hold, Hosts};
use windlass_toolkit::{Berth, Budget, Registry, Runtime, Source};

/// A file on the disk, as a program that can be started.
struct OnDisk {
    file: ToolFile,
    scripts: Option<Scripts>,
}

/// What is needed to run scripts.
#[derive(Clone)]
struct Scripts {
    places: Places,
    root: PathBuf,
    found: Arc<OnceLock<Runtimes>>,
}

impl Scripts {
    /// What there is to run them with. Looked for when the first is started.
    fn runtimes(&self) -> &Runtimes {
        self.found.get_or_init(|| {
            let node = Setup::program("node", &self.root);
            let node = node.and_then(|node| Some((windlass_sandbox::version(&node)?, node)));
            Runtimes {
                node: node.map(|(version, node)| (node, version)),
                bun: Setup::program("bun", &self.root),
            }
        })
    }
}

impl OnDisk {
    /// Names what it is made of.
    fn digest(&self, taken: &str) -> String {
        match self.scripts {
            Some(_) => format!("{taken}/{}", script::digest()),
            None => taken.to_owned(),
        }
    }
}

impl Shelf for OnDisk {
    fn stamp(&self) -> String {
        self.file.stamp()
    }

    fn take(&self) -> Result<Launch, String> {
        let taken = self.file.take()?;
        let digest = self.digest(&taken.digest);
        let Some(scripts) = &self.scripts else {
            return Ok(Launch { program: taken.path, arguments: Vec::new(), digest });
        };
        let (program, mut arguments) = scripts.runtimes().choose(&taken.path)?;
        let name = format!("host-{}", script::digest());
        let host = windlass_project::lay_out(&scripts.places, &name, &script::HOST)
            .map_err(|error| error.to_string())?;
        let start = script::HOST.first().map_or("", |(name, _)| *name);
        arguments.extend([host.join(start).into_os_string(), taken.path.into_os_string()]);
        Ok(Launch { program, arguments, digest })
    }
}

/// A program that was not asked yet what it is.
struct Newcomer {
    program: Arc<Program>,
    shelf: Arc<OnDisk>,
    registry: Registry,
    stage: Mutex<Stage>,
}

#[derive(Clone)]
enum Stage {
    /// It is asked, and told of at once if it answers.
    Asked,
    /// The others have been told of.
    Late,
    /// It said this, as these bytes.
    Came(String, serde_json::Value),
    /// It did not.
    Failed(String),
}

impl Newcomer {
    fn stage(&self) -> Stage {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

#[async_trait::async_trait]
impl Source for Newcomer {
    fn name(&self) -> &str {
        self.program.name()
    }

    async fn arrive(&self) -> Result<(), String> {
        let late = match self.stage() {
            Stage::Asked => false,
            Stage::Late => true,
            Stage::Came(..) => return Ok(()),
            Stage::Failed(why) => return Err(why),
        };
        if late {
            // It has one more chance; if nobody waits for the end of that, this is what is known.
            self.set(Stage::Failed("it does not say what it is".to_owned()));
        }
        let shelf = Arc::clone(&self.shelf);
        let taken = tokio::task::spawn_blocking(move || shelf.file.take()).await;
        let described = self.program.describe().await;
        match (taken, described) {
            (Ok(Ok(taken)), Ok(said)) => {
                if late {
                    admit(&self.registry, (&self.program, &self.shelf.file), &said, None);
                }
                self.set(Stage::Came(self.shelf.digest(&taken.digest), said));
                Ok(())
            }
            (_, Err(failure)) => {
                self.set(Stage::Failed(failure.text.clone()));
                Err(failure.text)
            }
            (_, Ok(_)) => Err("its file is no longer there".to_owned()),
        }
    }

    fn brief(&self) -> String {
        format!("{}: a tool of this project or person, which is still starting", self.name())
    }
}

impl Setup {
    /// Lets them join. What is wrong with one is told, and keeps none of the others away.
    pub(super) async fn custom_tools(
        &self,
        runtime: &Runtime,
        patience: Duration,
        budget: &mut Budget,
    ) {
        let found = ToolFiles::find(&self.places, &self.config, &self.root);
        for note in &found.notes {
            screen::note(&format!("note: {note}"));
        }
        if found.all.is_empty() {
            return;
        }
        let berth = Berth::new(&runtime.workspace, &runtime.policy);
        let scripts =
            Scripts { places: self.places.clone(), root: self.root.clone(), found: Arc::default() };
        let (known, nursery) = (Sayings::read(&self.places), Registry::default());
        let mut taken_names: BTreeSet<String> = runtime.registry.ids().into_iter().collect();
        let mut newcomers = Vec::new();
        for file in found.all {
            // Built-in tools stay what they are, and a project does not push the person's aside.
            if taken_names.contains(&file.name) {
                let (shown, name) = (&file.shown, &file.name);
                screen::note(&format!(
                    "note: {shown} is left out: there is a tool {name} already; rename the file"
                ));
                continue;
            }
            let terms = match self.terms(&file) {
                Ok(terms) => terms,
                Err(why) => {
                    screen::note(&format!("note: {} is left out: {why}", file.shown));
                    continue;
                }
            };
            let scripts = file.is_script.then(|| scripts.clone());
            let shelf = Arc::new(OnDisk { file, scripts });
            let name = shelf.file.name.clone();
            let program = Program::new(&name, &berth, Arc::clone(&shelf) as Arc<dyn Shelf>, terms);
            taken_names.insert(name);
            let taken = shelf.file.take().map(|taken| shelf.digest(&taken.digest));
            let said = taken.ok().and_then(|digest| known.of(&shelf.file.shown, &digest).cloned());
            if let Some(said) = said {
                admit(&runtime.registry, (&program, &shelf.file), &said, Some(budget));
                continue;
            }
            let (registry, stage) = (runtime.registry.clone(), Mutex::new(Stage::Asked));
            let newcomer = Arc::new(Newcomer { program, shelf, registry, stage });
            nursery.expect(Arc::clone(&newcomer) as Arc<dyn Source>);
            newcomers.push(newcomer);
        }
        nursery.arrivals(patience).await;
        self.seat(runtime, newcomers, budget);
    }

    /// What became of those that were asked. They are told of in the order of their names, whoever
    /// answered first.
    fn seat(&self, runtime: &Runtime, newcomers: Vec<Arc<Newcomer>>, budget: &mut Budget) {
        let mut fresh = Vec::new();
        for newcomer in newcomers {
            let shown = newcomer.shelf.file.shown.clone();
            match newcomer.stage() {
                Stage::Came(digest, said) => {
                    let whose = (&newcomer.program, &newcomer.shelf.file);
                    admit(&runtime.registry, whose, &said, Some(&mut *budget));
                    fresh.push((shown, digest, said));
                }
                Stage::Failed(why) => {
                    screen::note(&format!("note: {shown} is left out: {why}"));
                }
                Stage::Asked | Stage::Late => {
                    newcomer.set(Stage::Late);
                    screen::note(&format!("note: {shown} takes long to start; it may come later"));
                    runtime.registry.expect(newcomer);
                }
            }
        }
        if !fresh.is_empty()
            && let Err(error) = Sayings::keep(&self.places, fresh)
        {
            screen::note(&format!("note: what tools say of themselves is not kept: {error}"));
        }
    }

    fn terms(&self, file: &ToolFile) -> anyhow::Result<Terms> {
        let timeout = self.config.tools.timeout;
        let mut terms = Terms {
            folder: self.root.clone(),
            hosts: self.hosts()?,
            wishes: match file.layer {
                Layer::User | Layer::Flag => Wishes::Granted,
                Layer::Plugin | Layer::Project | Layer::Managed => Wishes::Held,
            },
            timeout: timeout.map(|ms| Duration::from_millis(u64::from(ms.get()))),
            most: Hold::Write,
            write: Vec::new(),
            env: Vec::new(),
        };
        if let Some(allowed) = file.allowed() {
            let network = self.config.sandbox.network.iter().map(|(host, _)| host.clone());
            let hosts: Vec<String> = network.chain(allowed.network.iter().cloned()).collect();
            terms.hosts = Hosts::parse(&hosts)?;
            terms.wishes = Wishes::Shown(allowed.network.clone());
            terms.most = if allowed.write { Hold::Write } else { Hold::Read };
            terms.write = vec![allowed.lodging.data.clone()];
            terms.env = allowed.lodging.env();
        }
        Ok(terms)
    }
}

fn admit(
    registry: &Registry,
    (program, file): (&Arc<Program>, &ToolFile),
    said: &serde_json::Value,
    budget: Option<&mut Budget>,
) {
    let (tools, notes) = program.tools(said, budget);
    for note in notes {
        screen::note(&format!("note: {}: {note}", file.shown));
    }
    for tool in tools {
        if let Err(clash) = registry.admit(&file.shown, tool) {
            screen::note(&format!("note: {clash}"));
        }
    }
}
