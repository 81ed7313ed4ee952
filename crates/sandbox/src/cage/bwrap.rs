//! The cage as arguments of bubblewrap.
//!
//! Mounts cover each other in the order they are made, so the order is the point of this module:
//! everything read-only, then what is hidden above a folder that may be used, then those folders,
//! then what is guarded in them, then everything else that is hidden, and what is private wherever it
//! lies. What is hidden comes last so that a guarded name that somebody swaps for a link in the meantime uncovers nothing.
//!
//! Not used are `--die-with-parent`, because background processes outlive their command and are
//! ended by whoever started it, and `--new-session`, because a command in a terminal of its own
//! keeps that terminal; typing into it for others is filtered instead.

#![allow(clippy::disallowed_methods, reason = "looks at what is mounted over, for the sandbox")]

use super::{Cage, Network};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// What is run in it.
pub(super) struct Call<'a> {
    pub program: &'a OsStr,
    pub arguments: Vec<&'a OsStr>,
    pub folder: Option<&'a Path>,
}

/// Parts of `/run` that hold programs, on systems that keep them there.
const RUN_KEPT: [&str; 2] = ["/run/current-system", "/run/booted-system"];

/// How many guarded paths deeper down get mounts: each takes time, and the door holds them too.
const NESTED: usize = 64;

/// Everything after the name of the program. The filters are descriptors of BPF programs.
pub(super) fn arguments(cage: &Cage, call: &Call<'_>, filters: &[RawFd]) -> Vec<OsString> {
    let mut list = List::default();
    list.add(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]);
    list.add(["--unshare-cgroup-try"]);
    match cage.network {
        Network::None => list.add(["--unshare-net"]),
        // It has been entered already, because the proxy listens in it.
        Network::Proxy { .. } | Network::Open => {}
    }
    list.add(["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    for place in ["/tmp", "/var/tmp"].map(Path::new) {
        if is_real_folder(place) {
            list.mount("--bind", &cage.temp, place);
        }
    }
    let masks = masks(cage);
    let private = real(&cage.private);
    let (above, beside): (Vec<&PathBuf>, Vec<&PathBuf>) =
        masks.iter().partition(|mask| folders(cage).any(|folder| folder.starts_with(mask)));
    above.iter().for_each(|mask| list.cover(mask));
    for folder in folders(cage) {
        let writable = cage.writes().any(|write| write == folder);
        list.mount(if writable { "--bind" } else { "--ro-bind" }, folder, folder);
    }
    let kept: Vec<&PathBuf> = beside.iter().copied().chain(&private).collect();
    guard(cage, &kept, &mut list);
    beside.iter().for_each(|mask| list.cover(mask));
    private.iter().for_each(|mask| list.cover(mask));
    for kept in RUN_KEPT {
        list.add(["--ro-bind-try", kept, kept]);
    }
    for mask in masks.iter().chain(&private).filter(|mask| mask.is_dir()) {
        list.add([OsStr::new("--remount-ro"), mask.as_os_str()]);
    }
    // Whoever is root outside may write the kernel's settings in there, whatever they are inside.
    list.add(["--remount-ro", "/proc"]);
    for filter in filters {
        list.add(["--add-seccomp-fd", &filter.to_string()]);
    }
    list.add([OsStr::new("--chdir"), call.folder.unwrap_or(&cage.root).as_os_str()]);
    list.add([OsStr::new("--"), call.program]);
    list.add(call.arguments.iter());
    list.0
}

/// The workspace and the other folders that may be changed; what lies within another comes later.
fn folders(cage: &Cage) -> impl Iterator<Item = &Path> {
    let mut folders: Vec<&Path> = cage.opened().collect();
    folders.sort();
    folders.dedup();
    folders.into_iter()
}

/// What is covered, as real paths: also the sockets of the system, beneath `/run`.
fn masks(cage: &Cage) -> Vec<PathBuf> {
    let run = ["/run", "/var/run"].map(Path::new).into_iter().filter(|path| is_real_folder(path));
    let mut masks: Vec<PathBuf> = run.map(Path::to_owned).chain(real(&cage.hidden)).collect();
    masks.sort();
    // What lies beneath a covered folder is gone with it, unless a folder between them is opened.
    let shown = |one: &Path, above: &Path| {
        folders(cage).any(|folder| folder.starts_with(above) && one.starts_with(folder))
    };
    masks.dedup_by(|one, before| one.starts_with(&*before) && !shown(one, before));
    // Nobody means to hide the workspace itself from its own commands.
    masks.retain(|mask| folders(cage).all(|folder| folder != mask));
    masks
}

/// The paths that exist, as real ones, each once.
fn real(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut real: Vec<PathBuf> =
        paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
    real.sort();
    real.dedup();
    real
}

/// Makes what is guarded read-only, and every folder on the way to it or to what is hidden a mount
/// of its own: such a folder cannot be renamed, to put another in its place.
fn guard(cage: &Cage, hidden: &[&PathBuf], list: &mut List) {
    let mut way: Vec<&Path> = Vec::new();
    let mut ends: Vec<&Path> = Vec::new();
    let mut left = NESTED;
    let base_of = |path: &Path| cage.writes().find(|base| path.starts_with(base) && path != *base);
    for path in hidden {
        if let Some(base) = base_of(path) {
            way.extend(path.ancestors().skip(1).take_while(|above| *above != base));
        }
    }
    for path in &cage.guarded {
        let Some(base) = base_of(path) else { continue };
        // A link leads elsewhere, and what is gone meanwhile can be guarded by its name alone.
        if !fs::symlink_metadata(path).is_ok_and(|it| it.is_dir() || it.is_file()) {
            continue;
        }
        let mut parts = path.strip_prefix(base).into_iter().flat_map(Path::components);
        let top = parts.next().is_some_and(|part| part.as_os_str() == ".git");
        if !top && parts.next().is_some() {
            let Some(fewer) = left.checked_sub(1) else { continue };
            left = fewer;
        }
        let between = path.ancestors().skip(1).take_while(|above| *above != base);
        way.extend(between);
        ends.push(path);
    }
    way.sort();
    way.dedup();
    ends.sort();
    ends.dedup();
    way.iter().for_each(|path| list.mount("--bind", path, path));
    ends.iter().for_each(|path| list.mount("--ro-bind", path, path));
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

#[derive(Default)]
struct List(Vec<OsString>);

impl List {
    fn add(&mut self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn mount(&mut self, how: &str, from: &Path, to: &Path) {
        self.add([OsStr::new(how), from.as_os_str(), to.as_os_str()]);
    }

    /// Nothing can be read there any more.
    fn cover(&mut self, path: &Path) {
        match path.is_dir() {
            true => self.add([OsStr::new("--tmpfs"), path.as_os_str()]),
            false => self.mount("--ro-bind", Path::new("/dev/null"), path),
        }
    }
}
