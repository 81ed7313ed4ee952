//! From what is on the disk to something that runs: the only place that knows all parts.
#![allow(
    clippy::disallowed_methods,
    reason = "the environment and the working directory enter here"
)]

mod company;
mod engine;
mod fetch;
mod hooks;
mod senses;
mod servers;
mod tools;

use crate::screen;
use anyhow::{Context, bail};
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::sync::Arc;
use windlass_engine::Memory;
use windlass_engine::session::Limits;
use windlass_llm::catalog;
use windlass_permission::{Places as _, Policy, Rules};
use windlass_project::{
    Approvals, Config, Flags, Layer, Origin, Outside, Places, Skills, Standing, find_root,
};
use windlass_protocol::{Approval, Mode};
use windlass_sandbox::{Backend, Ground, Hooks, Hosts, Reach, Shell, Walls};
use windlass_toolkit::Skill;

/// Where we are and what is set.
pub(crate) struct Setup {
    pub(crate) places: Places,
    pub(crate) root: PathBuf,
    pub(crate) config: Config,
}

/// What is going to be done, and so what has to be known of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acts {
    /// Nothing: somebody looks at what there is.
    Nothing,
    /// Files are read and changed.
    Files,
    /// Commands run.
    Commands,
}

/// What a person wants of one run, beside the config.
#[derive(Default)]
pub(crate) struct Wishes {
    /// Where a turn ends.
    pub(crate) limits: Limits,
    /// What a new session's model is told besides.
    pub(crate) system: String,
    /// The agent that works in a new session.
    pub(crate) agent: Option<String>,
    /// Rules that make it stricter.
    pub(crate) rules: Option<Rules>,
    /// Somebody stays and looks at lists of sessions, so that titles are read.
    pub(crate) stays: bool,
}

/// A list of hosts, or where it says what cannot be used.
fn listed(key: &str, list: &[(String, Origin)]) -> anyhow::Result<Hosts> {
    for (host, at) in list {
        Hosts::parse(std::slice::from_ref(host))
            .map_err(|error| anyhow::anyhow!("{at}: {key}: {error}"))?;
    }
    let all: Vec<String> = list.iter().map(|(host, _)| host.clone()).collect();
    Ok(Hosts::parse(&all)?)
}

/// What lies outside of all config.
struct World;

impl Outside for World {
    fn env(&self, name: &str) -> Option<String> {
        Setup::env(name)
    }

    fn knows(&self, provider: &str) -> Option<&'static str> {
        catalog::provider(provider).map(|row| row.id)
    }
}

impl Setup {
    /// Reads the config for the folder we are in, and tells what is wrong with it.
    pub(crate) fn read(flags: Flags) -> anyhow::Result<Setup> {
        Setup::read_at(None, flags)
    }

    /// The same for another folder.
    pub(crate) fn read_at(folder: Option<&Path>, flags: Flags) -> anyhow::Result<Setup> {
        let (places, mut root) = Setup::places()?;
        if let Some(folder) = folder {
            let whole = std::path::absolute(folder).context("the folder has no path")?;
            root = whole.canonicalize().unwrap_or(whole);
            if root.exists() && !root.is_dir() {
                bail!("{} is not a folder", root.display());
            }
        }
        let setup = Setup::gather((places, root), flags)?;
        match setup.config.standing {
            Standing::Plain | Standing::Trusted => {}
            Standing::Untrusted => screen::note(
                "note: this folder's own config is ignored; `windlass trust` shows it and asks",
            ),
            Standing::Changed => screen::note(
                "note: this folder's own config has changed since you trusted it and is ignored; \
                 `windlass trust` shows it and asks",
            ),
        }
        Ok(setup)
    }

    /// The same for any folders, without a word about whether the project's is trusted.
    pub(crate) fn gather((places, root): (Places, PathBuf), flags: Flags) -> anyhow::Result<Setup> {
        Setup::check_root(&places, &root)?;
        let config = Config::load(&places, &root, flags, &World)?;
        for diagnostic in config.diagnostics.iter().filter(|diagnostic| !diagnostic.fatal) {
            screen::note(&format!("note: {diagnostic}"));
        }
        if let Some(fatal) = config.diagnostics.iter().find(|diagnostic| diagnostic.fatal) {
            bail!("{fatal}");
        }
        Ok(Setup { places, root, config })
    }

    /// Refuses a folder that nobody can work in: what can be changed there decides what we may do
    /// the next time.
    pub(crate) fn check_root(places: &Places, root: &Path) -> anyhow::Result<()> {
        if root.parent().is_none() {
            bail!(
                "{} is the whole machine. Start Windlass in the folder of a project",
                root.display()
            );
        }
        let ours = [&places.config, &places.data, &places.plugins].map(|folder| real(folder));
        if let Some(ours) = ours.iter().find(|ours| root.starts_with(ours)) {
            bail!(
                "{} is where Windlass keeps its own files, which no model may change. Start it in \
                 the folder of a project",
                ours.display()
            );
        }
        Ok(())
    }

    /// The mode in force, as far as that can be said without looking at the machine. Where nobody
    /// chose one, only a folder that was looked at is worked in without asking, and only where
    /// commands are kept in a sandbox.
    fn mode(&self) -> Mode {
        let trusted = self.config.standing == Standing::Trusted;
        let sheltered = self.walls() != Walls::Off;
        self.config.mode_or(if trusted && sheltered { Mode::Auto } else { Mode::Ask })
    }

    /// The mode in force on this machine.
    pub(crate) fn mode_here(&self) -> Mode {
        // Where somebody chose, or the folder was not looked at, the machine has no say.
        let open = self.config.mode.is_none() && self.mode() == Mode::Auto;
        if open && self.lacks_sandbox() { self.config.mode_or(Mode::Ask) } else { self.mode() }
    }

    /// True if commands are to be kept in a sandbox and this machine gives none. Tries it out.
    fn lacks_sandbox(&self) -> bool {
        self.walls() == Walls::Best && windlass_sandbox::probe().backend == Backend::Off
    }

    /// What commands are kept in, in a word or two. Tries it out.
    pub(crate) fn shelter(&self) -> String {
        if self.walls() == Walls::Off {
            return "off".to_owned();
        }
        let name = match &windlass_sandbox::probe().backend {
            Backend::Bubblewrap { .. } => "bubblewrap",
            Backend::Landlock => "Landlock",
            Backend::Seatbelt => "Seatbelt",
            Backend::Off => "none on this machine",
        };
        name.to_owned()
    }

    fn walls(&self) -> Walls {
        let off = self.config.sandbox.enabled.as_ref().is_some_and(|(enabled, _)| !enabled);
        if off { Walls::Off } else { Walls::Best }
    }

    /// True if something stands at a path.
    pub(crate) fn is_there(path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    /// How many bytes are free where a folder is, or will be.
    pub(crate) fn room(folder: &Path) -> Option<u64> {
        #[cfg(unix)]
        {
            let there = folder.ancestors().find(|folder| folder.is_dir())?;
            let disk = rustix::fs::statvfs(there).ok()?;
            Some(disk.f_bavail.saturating_mul(disk.f_frsize))
        }
        #[cfg(not(unix))]
        {
            let _ = folder;
            None
        }
    }

    /// Where a program is, by the search path. What a project brings along does not count, nor does
    /// a folder that depends on where we are.
    pub(crate) fn program(name: &str, root: &Path) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .filter(|folder| folder.is_absolute())
            .filter_map(|folder| folder.join(name).canonicalize().ok())
            .find(|program| program.is_file() && !program.starts_with(root))
    }

    /// A file the person names on the command line.
    pub(crate) fn file(path: &str, longest: u64) -> anyhow::Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).with_context(|| format!("{path} cannot be read"))?;
        file.take(longest + 1)
            .read_to_end(&mut bytes)
            .with_context(|| format!("{path} cannot be read"))?;
        if bytes.len() as u64 > longest {
            bail!("{path} is larger than {} MB", longest >> 20);
        }
        Ok(bytes)
    }

    /// The same, to be read piece by piece.
    pub(crate) fn reader(path: &str) -> anyhow::Result<Box<dyn std::io::BufRead + Send>> {
        if path == "-" {
            return Ok(Box::new(std::io::BufReader::new(std::io::stdin())));
        }
        let file = std::fs::File::open(path).with_context(|| format!("{path} cannot be read"))?;
        Ok(Box::new(std::io::BufReader::new(file)))
    }

    /// A new file that only its owner can read. Nothing is overwritten.
    pub(crate) fn new_file(path: &str) -> anyhow::Result<std::fs::File> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                anyhow::anyhow!("{path} is there already. Choose another name, or move it away")
            }
            _ => anyhow::Error::new(error).context(format!("{path} cannot be written")),
        })
    }

    /// Bytes that nobody can guess.
    pub(crate) fn chance() -> anyhow::Result<[u8; 32]> {
        use std::io::Read;
        let mut bytes = [0; 32];
        let source = std::fs::File::open("/dev/urandom");
        let read = source.and_then(|mut source| source.read_exact(&mut bytes));
        read.context("the system gives no random bytes; write a token into the file yourself")?;
        Ok(bytes)
    }

    /// Refuses a file with a secret that others can read.
    pub(crate) fn check_private(path: &Path) -> anyhow::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let name = path.display();
            let found = path.metadata().with_context(|| format!("{name} cannot be read"))?;
            if found.permissions().mode() & 0o077 != 0 {
                bail!("{name} can be read by others. Run `chmod 600 {name}`, or name another file");
            }
        }
        Ok(())
    }

    /// An environment variable, if it is set.
    pub(crate) fn env(name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    /// Where the person's files and the project are.
    pub(crate) fn places() -> anyhow::Result<(Places, PathBuf)> {
        let places = Places::find()?;
        let here = std::env::current_dir().context("the current folder cannot be found")?;
        let root = find_root(&here, &places.home);
        Ok((places, root))
    }

    /// The workspace's name as sessions record it: the project's folder, without links.
    pub(crate) fn workspace(&self) -> String {
        self.root.display().to_string()
    }

    /// The rules: the person's own, tightened by the managed policy's, the project's and by what
    /// always holds.
    pub(crate) fn policy(&self, places: Arc<Ground>, mode: Mode) -> anyhow::Result<Policy> {
        let root = places.root().to_owned();
        let mut policy = Policy::default();
        let mut tighter = Vec::new();
        for permission in &self.config.permissions {
            let rules = Rules::parse(&permission.value).map_err(|error| {
                match self.config.permission_origin(permission, &error.pointer) {
                    Some(origin) => anyhow::anyhow!("{origin}: {error}"),
                    None => anyhow::anyhow!("{error}"),
                }
            })?;
            match permission.layer {
                Layer::User | Layer::Flag => policy = Policy::new(rules),
                Layer::Managed | Layer::Plugin | Layer::Project => tighter.push(rules),
            }
        }
        let policy = tighter.into_iter().fold(policy, Policy::tightened_by);
        let approvals = Approvals::read(&self.places)?.of(&self.root).into_iter();
        let approvals = approvals.map(|kept| Approval { key: kept.key, subject: kept.subject });
        Ok(policy
            .tightened_by(self.own_folders(&root)?)
            .rooted(&root)
            .at_most(self.config.most_lax.unwrap_or(Mode::Full))
            .in_mode(mode)
            .approved(approvals.collect())
            .placed(places))
    }

    /// How commands are run.
    fn shell(&self) -> anyhow::Result<Shell> {
        let trusted = self.config.standing == Standing::Trusted;
        let hosts = self.hosts()?;
        let held = self.config.network_is_held();
        Ok(Shell {
            walls: self.walls(),
            inherited: std::env::vars_os().collect(),
            reach: if held { Reach::Held(hosts) } else { Reach::Listed(hosts) },
            write: self.writable().0,
            home: Some(real(&self.places.home)),
            private: [&self.places.config, &self.places.data].map(|folder| real(folder)).into(),
            hooks: if trusted { Hooks::Run } else { Hooks::Skip },
        })
    }

    /// The hosts that commands may reach, or where the list says what cannot be used.
    pub(crate) fn hosts(&self) -> anyhow::Result<Hosts> {
        listed("sandbox.network", &self.config.sandbox.network)
    }

    /// The hosts that may be fetched from although they are not public, likewise.
    fn inside(&self) -> anyhow::Result<Hosts> {
        listed("web.inside", &self.config.senses.inside)
    }

    /// The folders besides the project that commands may write to, and why others of the list are
    /// not among them. Only a folder that is there, under its own name, is: what a link on the way
    /// leads to may have been chosen by a command.
    pub(crate) fn writable(&self) -> (Vec<PathBuf>, Vec<String>) {
        let (mut folders, mut notes) = (Vec::new(), Vec::new());
        for folder in self.config.sandbox.write.iter().map(PathBuf::from) {
            let name = folder.display().to_string();
            let why = match folder.canonicalize() {
                Err(_) => "it does not exist".to_owned(),
                Ok(led) if led != folder => format!("it leads to {} by a link", led.display()),
                Ok(_) if !folder.is_dir() => "it is not a folder".to_owned(),
                Ok(led) => {
                    folders.push(led);
                    continue;
                }
            };
            notes.push(format!("commands cannot write to {name} (sandbox.write): {why}"));
        }
        (folders, notes)
    }

    /// Where the words of commands lead.
    pub(crate) fn ground(&self) -> anyhow::Result<Arc<Ground>> {
        let shell = self.shell()?;
        let home = shell.home.as_deref();
        Ok(Arc::new(Ground::new(&self.root, home, &shell.inherited, shell.walls.clone())))
    }

    /// Keeps what the person allows for the whole project.
    fn memory(&self) -> Memory {
        let (places, root) = (self.places.clone(), self.root.clone());
        Arc::new(move |approvals| {
            let keep = || {
                let mut kept = Approvals::read(&places)?;
                approvals.iter().try_for_each(|approval| {
                    kept.add(&root, &approval.key, &approval.subject, crate::now())
                })
            };
            if let Err(error) = keep() {
                screen::note(&format!("note: this is not kept for the project: {error}"));
            }
        })
    }

    /// The skills there are; what is wrong with others is told.
    fn skills(&self) -> anyhow::Result<Arc<[Skill]>> {
        let found = Skills::load(&self.places, &self.config, &self.root)?;
        for diagnostic in &found.diagnostics {
            screen::note(&format!("note: {diagnostic}"));
        }
        let skills = found.all.into_iter().map(|skill| {
            let folder = skill.folder.strip_prefix(&self.root).unwrap_or(&skill.folder);
            let folder = folder.display().to_string();
            let (name, description, body) = (skill.name, skill.description, skill.body);
            Skill { name, description, body, folder, tools: skill.tools }
        });
        Ok(skills.collect())
    }

    /// Our own config and sessions are out of bounds, also where they lie in the workspace: keys
    /// and the list of trusted folders are among them.
    fn own_folders(&self, root: &Path) -> anyhow::Result<Rules> {
        let all = |folder: &Path| {
            let below = real(folder).strip_prefix(root).ok()?.join("*");
            Some((below.display().to_string().replace(MAIN_SEPARATOR, "/"), "deny".into()))
        };
        let read: serde_json::Map<_, _> =
            [&self.places.config, &self.places.data].into_iter().filter_map(|it| all(it)).collect();
        // Plugins are read, by whoever has a skill of one of them.
        let edit: serde_json::Map<_, _> =
            read.clone().into_iter().chain(all(&self.places.plugins)).collect();
        Ok(Rules::parse(&serde_json::json!({"read": read, "edit": edit}))?)
    }
}

/// Where a path leads, as far as that can be said.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
