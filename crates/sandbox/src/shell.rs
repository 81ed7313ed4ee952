//! Commands on a model's behalf: from a grant to a job in its cage.
//!
//! Everything that widens or narrows a cage comes from the grant, the person's config and this
//! file; nothing comes from the call but the command and its folder. Start reading at
//! [`World::start`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the sandbox is the door to processes, and looks where their words lead"
)]

use crate::cage::{self, Backend, Cage, Network};
use crate::command::{News, Shell, Start, Stdin, Word};
use crate::environment::{Surroundings, environment};
use crate::ground::Ground;
use crate::jobs::{Jobs, Order, hold};
use crate::task::Task;
use crate::way::{Consent, Way};
use crate::{Error, Workspace, World};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::Instant;
use windlass_protocol::{Access, Mode, SessionId};

/// How often a session hears what a command in the background says.
const PAUSE: Duration = Duration::from_millis(500);

/// Where a session hears of its commands.
type Tell = mpsc::UnboundedSender<Word>;

/// What a workspace needs for commands.
pub(crate) struct Yards {
    pub(crate) shell: Shell,
    pub(crate) ground: Arc<Ground>,
    open: Mutex<HashMap<SessionId, Arc<Yard>>>,
    /// What the programs that are kept running share.
    household: Mutex<Option<Arc<Yard>>>,
    listening: Mutex<HashMap<SessionId, Tell>>,
    /// How often files may have changed by a command.
    stirs: Mutex<Stirs>,
}

/// Since when files may have changed unseen.
#[derive(Default)]
struct Stirs {
    count: u64,
    /// Something ran when it was last counted.
    under_way: bool,
}

/// What the commands of one session share.
pub(crate) struct Yard {
    pub(crate) jobs: Jobs,
    pub(crate) temp: TempDir,
    tasks: Mutex<BTreeMap<u64, Arc<Task>>>,
}

impl std::fmt::Debug for Yards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Yards").field("walls", &self.shell.walls).finish_non_exhaustive()
    }
}

impl Yards {
    pub(crate) fn new(shell: Shell, root: &Path) -> Yards {
        let (home, walls) = (shell.home.as_deref(), shell.walls.clone());
        let ground = Arc::new(Ground::new(root, home, &shell.inherited, walls));
        let (open, listening, household, stirs) = Default::default();
        Yards { shell, ground, open, household, listening, stirs }
    }

    fn stirred(&self) -> u64 {
        let runs = |yard: &Arc<Yard>| hold(&yard.tasks).values().any(|task| !task.gone());
        let under_way = hold(&self.open).values().any(runs);
        let mut stirs = hold(&self.stirs);
        stirs.count += u64::from(under_way || stirs.under_way);
        stirs.under_way = under_way;
        stirs.count
    }

    fn yard(&self, session: SessionId) -> Result<Arc<Yard>, Error> {
        let mut open = hold(&self.open);
        if let Some(yard) = open.get(&session) {
            return Ok(Arc::clone(yard));
        }
        let yard = Yard::open()?;
        open.insert(session, Arc::clone(&yard));
        Ok(yard)
    }

    /// The yard of what no session started.
    pub(crate) fn household(&self) -> Result<Arc<Yard>, Error> {
        let mut household = hold(&self.household);
        if let Some(yard) = household.as_ref() {
            return Ok(Arc::clone(yard));
        }
        Ok(Arc::clone(household.insert(Yard::open()?)))
    }

    /// The same, which is nobody's from then on.
    pub(crate) fn leave_household(&self) -> Option<Arc<Yard>> {
        hold(&self.household).take()
    }

    /// A session is gone without a word. If it was opened again since, that one's commands stay.
    fn part(&self, session: SessionId, tell: &Tell) {
        let mut listening = hold(&self.listening);
        if listening.get(&session).is_some_and(|known| known.same_channel(tell)) {
            listening.remove(&session);
            hold(&self.open).remove(&session);
        }
    }

    fn known(&self, session: SessionId) -> Option<Arc<Yard>> {
        hold(&self.open).get(&session).cloned()
    }
}

/// A folder for temporary files that nobody else can look into.
fn private_folder() -> std::io::Result<TempDir> {
    folders().tempdir()
}

/// The same within another one.
pub(crate) fn private_folder_in(folder: &Path) -> std::io::Result<TempDir> {
    folders().tempdir_in(folder)
}

fn folders() -> tempfile::Builder<'static, 'static> {
    let mut folders = tempfile::Builder::new();
    folders.prefix("windlass-").permissions(std::fs::Permissions::from_mode(0o700));
    folders
}

fn not_started(error: impl ToString) -> Error {
    Error::NotStarted { why: error.to_string() }
}

impl Workspace {
    /// Says how commands are run here. Without this none is.
    #[must_use]
    pub fn with_shell(mut self, shell: Shell) -> Workspace {
        self.network.hold(&shell.reach);
        self.yards = Some(Arc::new(Yards::new(shell, self.root())));
        self
    }

    /// Where the words of its commands lead; `None` if none is run.
    pub fn ground(&self) -> Option<Arc<Ground>> {
        self.yards.as_ref().map(|yards| Arc::clone(&yards.ground))
    }

    /// What a session's commands tell it from now on.
    pub fn news(&self, session: SessionId) -> News {
        let (tell, told) = mpsc::unbounded_channel();
        let Some(yards) = &self.yards else { return News { told, part: None } };
        hold(&yards.listening).insert(session, tell.clone());
        let yards = Arc::downgrade(yards);
        let part = move || {
            if let Some(yards) = yards.upgrade() {
                yards.part(session, &tell);
            }
        };
        News { told, part: Some(Box::new(part)) }
    }

    /// Tells a session something between its steps. Nobody hears it where the session is gone.
    pub fn tell(&self, session: SessionId, text: String) {
        let tell =
            self.yards.as_ref().and_then(|yards| hold(&yards.listening).get(&session).cloned());
        if let Some(tell) = tell {
            // It is gone.
            let _ = tell.send(Word::Tell(text));
        }
    }

    /// A number that becomes another one whenever a command may have changed files.
    pub fn stirred(&self) -> u64 {
        self.yards.as_ref().map_or(0, |yards| yards.stirred())
    }

    /// The commands in the background of a session, as far as they are known, oldest first.
    pub fn jobs(&self, session: SessionId) -> Vec<Arc<Task>> {
        let yard = self.yards.as_ref().and_then(|yards| yards.known(session));
        let tasks = yard.map(|yard| hold(&yard.tasks).values().cloned().collect::<Vec<_>>());
        tasks.into_iter().flatten().filter(|task| task.announced()).collect()
    }

    /// One of them.
    pub fn job(&self, session: SessionId, id: u64) -> Option<Arc<Task>> {
        self.jobs(session).into_iter().find(|task| task.id() == id)
    }

    /// Ends everything that a session started and that still runs.
    pub async fn end_jobs(&self, session: SessionId) {
        let Some(yards) = &self.yards else { return };
        hold(&yards.listening).remove(&session);
        let yard = hold(&yards.open).remove(&session);
        if let Some(yard) = yard {
            yard.jobs.end_all().await;
        }
    }
}

/// Tells a session of a command: that it runs, now and then that it spoke, and its end.
async fn follow(task: Arc<Task>, tell: Tell) {
    let (mut said, mut calm) = (task.watch(), Instant::now());
    let (mut ended, mut left) = (false, false);
    while tell.send(Word::Job(Arc::clone(&task))).is_ok() && !(ended && left) {
        let spoke = async {
            tokio::time::sleep_until(calm).await;
            said.changed().await
        };
        tokio::select! {
            biased;
            _ = task.ended(), if !ended => {
                ended = true;
                let id = task.id();
                // The next word would not be heard either.
                let _ = tell.send(Word::Tell(format!(
                    "Job {id} has ended. Read what it said with job {{\"id\": {id}, \"action\": \
                     \"output\"}}."
                )));
            }
            () = task.left(), if !left => left = true,
            Ok(()) = spoke => calm = Instant::now() + PAUSE,
        }
    }
}

impl World {
    /// Starts a command in a cage as wide as the grant. One that a person let out of the sandbox,
    /// or into the whole network, was let out with the words they read: it gets no input.
    pub async fn start(&self, start: Start<'_>) -> Result<Arc<Task>, Error> {
        let real = self.locate(start.folder)?;
        let command = start.command.to_owned();
        let wanted = Access::Run { command: command.clone(), folder: real.clone() };
        self.check(wanted, &real)?;
        let workspace = self.workspace();
        let Some(yards) = &workspace.yards else {
            return Err(not_started("commands are not run here"));
        };
        let program = cage::system_program("bash").ok_or_else(|| not_started(NO_BASH))?;
        let yard = yards.yard(start.session)?;
        let shell = &yards.shell;
        let leaves = self.grant().covers(&Access::Leave { command: command.clone() });
        let connects = self.grant().covers(&Access::Connect { host: "*".to_owned() });
        let backend = if leaves { Backend::Off } else { shell.walls.backend() };
        let consent = if connects { Consent::Given } else { Consent::None };
        let way = Way::open(&backend, &shell.reach, consent)?;
        let (cage, mut notes) = self.cage(shell, backend, &yard, way.network());
        notes.extend(way.note().map(str::to_owned));
        let stdin = if leaves || connects { Stdin::Closed } else { start.stdin };
        let surroundings =
            Surroundings { terminal: matches!(stdin, Stdin::Terminal { .. }), hooks: shell.hooks };
        let mut env = environment(shell.inherited.iter().cloned(), &surroundings);
        env.extend(way.variables().into_iter().map(|(name, value)| (name.into(), value.into())));
        // What cannot be written, or is nobody's to look after, is not looked at.
        let watched = cage.writable && cage.backend != Backend::Off;
        let before = watched.then(|| cage::snapshot(workspace.root()));
        let folder = workspace.root().join(&real);
        let order = Order { command, shell: program, folder, env, cage: cage.clone(), stdin };
        let job = yard.jobs.start(order).await?;
        let secrets = way.secrets();
        let trail = match way.serve(&job) {
            Ok(trail) => trail,
            Err(error) => {
                job.kill_after(Duration::ZERO).await;
                return Err(error);
            }
        };
        let task = Arc::new(Task::new(job, cage, before, trail, notes, secrets));
        hold(&yards.stirs).count += 1;
        yard.remember(&task);
        Ok(task)
    }

    /// A command that this session started before.
    pub fn task(&self, session: SessionId, id: u64) -> Option<Arc<Task>> {
        let yard = self.workspace().yards.as_ref()?.known(session)?;
        hold(&yard.tasks).get(&id).cloned()
    }

    /// All that are known, oldest first.
    pub fn tasks(&self, session: SessionId) -> Vec<Arc<Task>> {
        let yard = self.workspace().yards.as_ref().and_then(|yards| yards.known(session));
        yard.map(|yard| hold(&yard.tasks).values().cloned().collect()).unwrap_or_default()
    }

    /// Has the session told of a command in the background.
    pub fn announce(&self, session: SessionId, task: &Arc<Task>) {
        task.set_announced();
        let yards = self.workspace().yards.as_ref();
        let Some(tell) = yards.and_then(|yards| hold(&yards.listening).get(&session).cloned())
        else {
            return;
        };
        // It ends with its task, which ends with the session.
        tokio::spawn(follow(Arc::clone(task), tell));
    }

    fn cage(
        &self,
        shell: &Shell,
        backend: Backend,
        yard: &Yard,
        network: Network,
    ) -> (Cage, Vec<String>) {
        let root = self.workspace().root().to_owned();
        let writable = self.grant().mode() != Mode::Plan && !self.grant().looks();
        let (write, notes) = match writable {
            true => sound(&shell.write, &root, "sandbox.write in the config"),
            false => (Vec::new(), Vec::new()),
        };
        let caged = backend != Backend::Off;
        let home = shell.home.as_ref().filter(|_| caged);
        let cage = Cage {
            backend,
            writable,
            write,
            temp: yard.temp.path().to_owned(),
            hidden: home.map(|home| cage::secrets(home)).unwrap_or_default(),
            private: shell.private.clone(),
            guarded: if caged && writable { cage::guarded(&root) } else { Vec::new() },
            network,
            root,
        };
        (cage, notes)
    }
}

const NO_BASH: &str = "bash is neither in /usr/bin nor in /bin or /usr/local/bin as a program of \
                       the system. Ask the person to install it";

/// The folders that can be opened as they were named, and what to say of the others. One that is
/// not there yet is passed over.
pub(crate) fn sound(folders: &[PathBuf], root: &Path, by: &str) -> (Vec<PathBuf>, Vec<String>) {
    let (mut open, mut notes) = (Vec::new(), Vec::new());
    for folder in folders {
        let Ok(real) = folder.canonicalize() else { continue };
        let why = if real != *folder {
            "a link is on its way"
        } else if real.starts_with(root) {
            "it lies in the workspace"
        } else if !real.is_dir() {
            "it is no folder"
        } else {
            open.push(real);
            continue;
        };
        let folder = folder.display();
        notes.push(format!("{by}: {folder} is left out, because {why}"));
    }
    (open, notes)
}

impl Yard {
    fn open() -> Result<Arc<Yard>, Error> {
        let temp = private_folder().map_err(not_started)?;
        let jobs = Jobs::with_temp(temp.path());
        Ok(Arc::new(Yard { jobs, temp, tasks: Mutex::default() }))
    }

    /// What the jobs no longer know is forgotten here, too.
    fn remember(&self, task: &Arc<Task>) {
        let known: Vec<u64> = self.jobs.list().iter().map(|job| job.id()).collect();
        let mut tasks = hold(&self.tasks);
        tasks.retain(|id, _| known.contains(id));
        tasks.insert(task.id(), Arc::clone(task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_for_temporary_files_is_the_persons_alone() {
        let folder = private_folder().unwrap();
        let mode = std::fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn only_folders_that_are_what_they_seem_may_be_changed() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for name in ["cache", "work/sub", "far/deep"] {
            std::fs::create_dir_all(place.join(name)).unwrap();
        }
        std::fs::write(place.join("file"), "").unwrap();
        std::os::unix::fs::symlink("far", place.join("link")).unwrap();
        let names = ["cache", "work", "work/sub", "link", "link/deep", "file", "absent"];
        let folders: Vec<PathBuf> = names.iter().map(|name| place.join(name)).collect();
        let (open, notes) = sound(&folders, &place.join("work"), "here");
        assert_eq!(open, [place.join("cache")]);
        assert_eq!(notes.len(), 5, "{notes:?}");
        assert_eq!(notes.iter().filter(|note| note.contains("a link")).count(), 2, "{notes:?}");
    }
}
