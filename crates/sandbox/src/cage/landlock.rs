//! The cage as rules of Landlock, where bubblewrap cannot run.
//!
//! Landlock only ever adds rights, so what is hidden is left out: everything beside the way to it
//! is granted one by one, and the folders on the way cannot be listed. It cannot leave out a part
//! of a folder that may be changed, so there is no such cage where something hidden lies in one.
//! What is guarded there is held by the door alone, as are rights and owners of files. There is no
//! network: a port can be granted, but not an address. Each kernel does as much as it knows; what a
//! cage cannot do without is asked for in [`rules`].

#![allow(clippy::disallowed_methods, reason = "looks at what is granted, for the sandbox")]

use super::{Cage, no};
use crate::Error;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// The newest kernel interface that is made use of.
const KNOWN: ABI = ABI::V6;

/// The first that knows about cutting files short.
const TRUNCATE: i32 = 3;

/// Devices that a command may write to, and talk to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// The version of the kernel's interface; none if there is no Landlock.
pub(super) fn version() -> Option<i32> {
    #[allow(unsafe_code, reason = "the crate does not tell the version")]
    // SAFETY: with no attributes and this flag, the call only returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32)
    };
    i32::try_from(version).ok().filter(|version| *version > 0)
}

/// A folder that changed so lately may change again without its time telling.
const FRESH: Duration = Duration::from_millis(100);

/// The rules of the last cage. Granting everything beside what is hidden takes more than a hundred
/// calls, and the next command mostly wants the same.
static LAST: Mutex<Option<(Basis, OwnedFd)>> = Mutex::new(None);

/// Everything that rules follow from.
struct Basis {
    hidden: Vec<PathBuf>,
    /// What may be changed, and the workspace: as they are now.
    opened: Vec<(PathBuf, Mark)>,
    writable: usize,
    /// The folders of which each entry was granted by itself.
    listed: Vec<(PathBuf, Mark)>,
}

/// What tells that a folder is still the same; for one that was listed, also its last change.
type Mark = Option<(u64, u64, i64, i64)>;

impl Basis {
    fn new(cage: &Cage, hidden: Vec<PathBuf>) -> Basis {
        let writes: Vec<&Path> = cage.writes().chain([cage.temp.as_path()]).collect();
        let writable = writes.len();
        let opened = writes.into_iter().chain([cage.root.as_path()]);
        let same = |path: &Path| mark(path).map(|(device, number, ..)| (device, number, 0, 0));
        let opened = opened.map(|path| (path.to_owned(), same(path))).collect();
        Basis { hidden, opened, writable, listed: Vec::new() }
    }

    /// True if the same rules follow from both, as nothing that was listed has changed since.
    fn gives(&self, wanted: &Basis) -> bool {
        (&self.hidden, &self.opened, self.writable)
            == (&wanted.hidden, &wanted.opened, wanted.writable)
            && self.listed.iter().all(|(path, before)| before.is_some() && mark(path) == *before)
    }

    /// True if its folders are as they were for long enough to tell when they change.
    fn rests(&self) -> bool {
        let late = SystemTime::now().checked_sub(FRESH);
        let late = late.and_then(|late| late.duration_since(SystemTime::UNIX_EPOCH).ok());
        let late = late.map(|late| (late.as_secs().cast_signed(), i64::from(late.subsec_nanos())));
        late.is_some_and(|late| {
            let mut marks = self.listed.iter().map(|(_, mark)| *mark);
            marks.all(|mark| mark.is_some_and(|(_, _, seconds, rest)| (seconds, rest) < late))
        })
    }
}

fn mark(path: &Path) -> Mark {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}

/// The rules, ready to be taken on by [`restrict`].
pub(super) fn rules(cage: &Cage) -> Result<OwnedFd, Error> {
    let Some(version) = version() else { return Err(no("this kernel has no Landlock")) };
    if version < TRUNCATE {
        return Err(no("Landlock of this kernel cannot keep files from being cut short"));
    }
    let hidden = cage.hidden.iter().chain(&cage.private);
    let hidden: Vec<PathBuf> = hidden.filter_map(|path| fs::canonicalize(path).ok()).collect();
    let shown = |path: &&PathBuf| {
        let mut writes = cage.writes().chain([cage.temp.as_path()]);
        writes.any(|folder| path.starts_with(folder) && *path != folder)
    };
    if let Some(path) = hidden.iter().find(shown) {
        return Err(no(format!(
            "{} must stay hidden, which takes bubblewrap where commands may write around it; \
             install bubblewrap, or start in a folder beneath",
            path.display()
        )));
    }
    let mut basis = Basis::new(cage, hidden);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, rules)) = last.as_ref().filter(|(before, _)| before.gives(&basis)) {
        return rules.try_clone().map_err(|source| no(source.to_string()));
    }
    let created = build(cage, &mut basis).map_err(|source| no(source.to_string()))?;
    let rules =
        Option::<OwnedFd>::from(created).ok_or_else(|| no("this kernel has no Landlock"))?;
    *last = match (basis.rests(), rules.try_clone()) {
        (true, Ok(rules)) => Some((basis, rules)),
        (true, Err(_)) | (false, _) => None,
    };
    Ok(rules)
}

fn build(cage: &Cage, basis: &mut Basis) -> Result<RulesetCreated, RulesetError> {
    let (hidden, listed) = (&basis.hidden, &mut basis.listed);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let read = AccessFs::from_read(KNOWN);
    let mut granted = Vec::new();
    beside(Path::new("/"), hidden, &mut granted, listed);
    // Also where it lies in something hidden.
    let within = hidden.iter().filter(|path| path.starts_with(&cage.root) && **path != cage.root);
    beside(&cage.root, &within.cloned().collect::<Vec<_>>(), &mut granted, listed);
    for path in &granted {
        rules = grant(rules, path, read)?;
    }
    for path in cage.writes().chain([cage.temp.as_path()]) {
        rules = grant(rules, path, AccessFs::from_all(KNOWN) & !AccessFs::IoctlDev)?;
    }
    for device in DEVICES {
        let talk = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        rules = grant(rules, Path::new(device), talk)?;
    }
    Ok(rules)
}

fn grant(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    // What cannot be opened cannot be granted, and is not needed.
    let Ok(handle) = PathFd::new(path) else { return Ok(rules) };
    let access = match fs::metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        true => access,
        false => access & AccessFs::from_file(KNOWN),
    };
    rules.add_rule(PathBeneath::new(handle, access))
}

/// Everything beneath a folder but what is hidden, in as few paths as possible.
fn beside(
    path: &Path,
    hidden: &[PathBuf],
    granted: &mut Vec<PathBuf>,
    listed: &mut Vec<(PathBuf, Mark)>,
) {
    if hidden.iter().any(|hidden| hidden == path) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        return granted.push(path.to_owned());
    }
    // Before it is read, so that what changes meanwhile is noticed.
    listed.push((path.to_owned(), mark(path)));
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        // A link is followed to a place that is granted by its own name or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            beside(&entry.path(), hidden, granted, listed);
        }
    }
}

/// Takes the rules on, for good. Nothing is allocated, so it may follow a fork.
pub(super) fn restrict(rules: &OwnedFd) -> io::Result<()> {
    #[allow(unsafe_code, reason = "the crate's own call allocates, which must not follow a fork")]
    // SAFETY: the descriptor is open for as long as the call lasts.
    let result =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
