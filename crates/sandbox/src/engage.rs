//! Engaging servants: from a grant to a program in its cage, with three pipes.
//!
//! They belong to the workspace and not to a session, so they have a keeper of their own, and each
//! has a folder for temporary files of its own: what one leaves there is nothing to another.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox is the door to processes, and makes the folders they run in"
)]

use crate::cage::{self, Backend, Cage};
use crate::command::Reach;
use crate::environment::{Surroundings, environment};
use crate::ground::{Ground, runs};
use crate::held::Held;
use crate::jobs::{Engagement, Job, Kept};
use crate::servant::{Engaged, Hold, Servant};
use crate::shell::{Yard, Yards, private_folder_in, sound};
use crate::way::{Consent, Way};
use crate::{Error, Walls, Workspace};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::unix::pipe::{Receiver, Sender};
use windlass_permission::Grant;
use windlass_protocol::Mode;

const NOWHERE: &str = "programs are not run here";
const NO_CAGE: &str = "this machine has no sandbox for it; `windlass doctor` says what is missing. \
                       \"sandbox\": false for it in your own config starts it without one";
const NO_PLAN: &str = "in mode plan nothing is changed, and without a sandbox nothing keeps it \
                       from that. Use it in another mode";

/// What leads programs to the servant's own folder for what they fetch.
const CACHE: &str = "XDG_CACHE_HOME";
/// The same for those that have a word of their own for it, with a folder in that one.
const CACHES: [(&str, &str); 3] =
    [("npm_config_cache", "npm"), ("PIP_CACHE_DIR", "pip"), ("UV_CACHE_DIR", "uv")];

impl Workspace {
    /// Starts a program that is kept running until the last [`Held`] of it is dropped, or nobody
    /// has this workspace any more. It runs in the cage that its [`crate::Keep`] describes or not
    /// at all; in mode plan that changes nothing but the servant's own folder in the cache.
    pub async fn engage(&self, grant: &Grant, servant: Servant) -> Result<Engaged, Error> {
        if !grant.covers(&servant.access()) {
            return Err(Error::NotGranted { path: servant.name });
        }
        let name = servant.name.clone();
        let failed = |error: Error| match error {
            Error::NotStarted { why } | Error::NoCage { reason: why } => {
                Error::NotEngaged { servant: name.clone(), why }
            }
            other => other,
        };
        self.settle(grant.mode(), servant).await.map_err(failed)
    }

    /// Ends all servants. None of them runs when it returns, and new ones can be engaged.
    pub async fn dismiss_servants(&self) {
        let yard = self.yards.as_ref().and_then(|yards| yards.leave_household());
        if let Some(yard) = yard {
            yard.jobs.end_all().await;
        }
    }

    async fn settle(&self, mode: Mode, servant: Servant) -> Result<Engaged, Error> {
        let yards = self.yards.as_ref().ok_or_else(|| not_started(NOWHERE))?;
        let backend = backend(&servant, &yards.shell.walls, mode)?;
        let own = self.servant_folder(&servant.name).map(|folder| make(&folder)).transpose()?;
        if !servant.folder.is_absolute() || !servant.folder.is_dir() {
            let folder = servant.folder.display();
            return Err(not_started(format!("the folder {folder} is not there")));
        }
        let program = find(&servant, &yards.ground)?;
        let hosts = match &yards.shell.reach {
            Reach::Listed(_) => servant.keep.network.clone(),
            Reach::Held(held) => servant.keep.network.clone().within(held.clone()),
        };
        let way = Way::open(&backend, &Reach::Listed(hosts), Consent::None)?;
        let yard = yards.household()?;
        let temp = private_folder_in(yard.temp.path()).map_err(not_started)?;
        let (mut cage, mut notes) = self.enclose(yards, &servant, mode, own.as_deref());
        (cage.backend, cage.network, cage.temp) = (backend, way.network(), temp.path().to_owned());
        notes.extend(way.note().map(str::to_owned));
        let env = surround(yards, &way, own.as_deref(), servant.env);
        let wanted = Engagement {
            name: servant.name.clone(),
            program,
            arguments: servant.arguments,
            folder: servant.folder,
            env,
            cage: cage.clone(),
        };
        let Kept { job, input, output } = yard.jobs.keep(wanted).await?;
        attend(Arc::downgrade(&yard), job.clone(), temp);
        let secrets = way.secrets();
        // From here on it ends with whoever has it, also if something fails.
        let trail = way.serve(&job).inspect_err(|_| job.abandon(Duration::ZERO))?;
        let hold = Arc::new(Held::new(servant.name, job, cage, trail, notes, secrets));
        let input = Sender::from_owned_fd(input).map_err(not_started)?;
        let output = Receiver::from_owned_fd(output).map_err(not_started)?;
        Ok(Engaged { input, output, hold })
    }

    /// The cage of a servant, but for what encloses it, what it reaches and its temporary files.
    fn enclose(
        &self,
        yards: &Yards,
        servant: &Servant,
        mode: Mode,
        own: Option<&Path>,
    ) -> (Cage, Vec<String>) {
        let root = self.root().to_owned();
        let may_change = mode != Mode::Plan;
        let writable = servant.keep.workspace.in_mode(mode) == Hold::Write;
        let (mut write, notes) = match may_change {
            true => sound(&servant.keep.write, &root, &servant.name),
            false => (Vec::new(), Vec::new()),
        };
        write.extend(own.map(Path::to_owned));
        let home = yards.shell.home.as_deref();
        let cage = Cage {
            backend: Backend::Off,
            writable,
            write,
            temp: PathBuf::new(),
            hidden: home.map(cage::secrets).unwrap_or_default(),
            private: yards.shell.private.clone(),
            guarded: if writable { cage::guarded(&root) } else { Vec::new() },
            network: cage::Network::None,
            root,
        };
        (cage, notes)
    }
}

/// What encloses it. Only where somebody said so, nothing does.
fn backend(servant: &Servant, walls: &Walls, mode: Mode) -> Result<Backend, Error> {
    let walls = servant.keep.walls.as_ref().unwrap_or(walls);
    match (walls, walls.backend()) {
        (Walls::Best | Walls::Exactly(_), Backend::Off) => Err(not_started(NO_CAGE)),
        (_, Backend::Off) if mode == Mode::Plan => Err(not_started(NO_PLAN)),
        (_, backend) => Ok(backend),
    }
}

/// Its own folder, by its real path.
fn make(folder: &Path) -> Result<PathBuf, Error> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| folder.canonicalize())
        .map_err(|error| not_started(format!("{}: {error}", folder.display())))
}

/// The program, which must be one.
fn find(servant: &Servant, ground: &Ground) -> Result<PathBuf, Error> {
    let spelled = &servant.program;
    let bare = spelled.parent() == Some(Path::new(""));
    let program = match bare {
        true => ground.installed(spelled),
        false => Some(servant.folder.join(spelled)),
    };
    let spelled = spelled.display();
    let missing = || match bare {
        true => format!("{spelled} is not installed, or not in PATH"),
        false => format!("{spelled} is not there"),
    };
    let program = program.ok_or_else(|| not_started(missing()))?;
    match program.is_file() {
        true if runs(&program) => Ok(program),
        true => Err(not_started(format!("{spelled} is no program; `chmod +x` makes it one"))),
        false => Err(not_started(missing())),
    }
}

/// Its whole environment. What is said last counts.
fn surround(
    yards: &Yards,
    way: &Way,
    own: Option<&Path>,
    more: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let shell = &yards.shell;
    let surroundings = Surroundings { terminal: false, hooks: shell.hooks };
    let mut env = environment(shell.inherited.iter().cloned(), &surroundings);
    env.extend(way.variables().into_iter().map(|(name, value)| (name.into(), value.into())));
    if let Some(own) = own {
        env.push((CACHE.into(), own.as_os_str().to_owned()));
        env.extend(CACHES.map(|(name, part)| (name.into(), own.join(part).into_os_string())));
    }
    env.extend(more);
    env
}

/// Forgets a servant once nothing of it runs, and its temporary files with it.
fn attend(yard: Weak<Yard>, job: Job, temp: TempDir) {
    // It ends with the servant, which ends with the workspace.
    tokio::spawn(async move {
        job.left().await;
        if let Some(yard) = yard.upgrade() {
            yard.jobs.forget(&job);
        }
        // A runtime that ends drops it all the same.
        let _ = tokio::task::spawn_blocking(move || drop(temp)).await;
    });
}

fn not_started(why: impl ToString) -> Error {
    Error::NotStarted { why: why.to_string() }
}
