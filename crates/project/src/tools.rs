//! Files that are custom tools: those of a trusted project and of plugins, run where they are, and the
//! person's own, which are run as copies, because nothing in a sandbox sees the config folder.
//!
//! It starts nothing. It keeps the invariant that a project's tool is what was trusted at the moment
//! it is taken, with everything around it. Start reading at [`ToolFiles::find`].
#![allow(clippy::disallowed_methods, reason = "project is the door to config files")]

use crate::plugins::{Implement, Loaded, Lodging};
use crate::trust::{Standing, Surveyed, Trust, hex};
use crate::{Config, Error, Layer, Places, private};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where a project keeps its tools.
const FOLDER: &str = ".windlass/tools/";
/// How names of scripts end that need somebody to run them.
const SCRIPTS: [&str; 4] = ["ts", "mts", "js", "mjs"];
/// How names end of what lies beside tools and is none.
const BESIDE: [&str; 6] = ["md", "txt", "json", "toml", "lock", "pyc"];
/// How much a folder of the person's own tools may hold.
const MOST_FILES: usize = 1_000;
const MOST_BYTES: u64 = 16 << 20;
const DEEPEST: usize = 8;
/// What is kept of what tools said of themselves.
const LONGEST_LIST: u64 = 16 << 20;
const MOST_KEPT: usize = 500;

/// The files that are tools: the person's own, then those of plugins, then the project's.
#[derive(Default)]
pub struct ToolFiles {
    /// Each.
    pub all: Vec<ToolFile>,
    /// What is wrong with others, for the person.
    pub notes: Vec<String>,
}

/// A file that is a tool.
#[derive(Clone, Debug)]
pub struct ToolFile {
    /// The name its tools begin with.
    pub name: String,
    /// What it is called for people.
    pub shown: String,
    /// Whose it is.
    pub layer: Layer,
    /// It needs somebody to run it.
    pub is_script: bool,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Project { file: Surveyed, places: Places, root: PathBuf },
    Own { folder: PathBuf, file: String, copies: PathBuf },
    Plugin { file: String, allowed: Allowed },
}

/// What a plugin's manifest asks for its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Where the plugin is.
    pub lodging: Lodging,
    /// They may write in the project.
    pub write: bool,
    /// The hosts they may reach besides.
    pub network: Vec<String>,
}

/// What the system would do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Run it.
    Program,
    /// Read it.
    Plain,
}

/// A file to be run, and what names its bytes and those around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Where it is.
    pub path: PathBuf,
    /// What names them.
    pub digest: String,
}

impl ToolFiles {
    /// Looks for tools. Of a project that is not trusted there are none, and it is not looked at.
    pub fn find(places: &Places, config: &Config, root: &Path) -> ToolFiles {
        let mut found = ToolFiles::default();
        found.find_own(places);
        for plugin in &config.plugins {
            found.join(plugin);
        }
        for file in config.surveyed(FOLDER) {
            let short = file.name.strip_prefix(FOLDER).unwrap_or(&file.name).to_owned();
            let kind = if file.is_program { Kind::Program } else { Kind::Plain };
            let (shown, places, root) = (file.name.clone(), places.clone(), root.to_owned());
            let place = Place::Project { file, places, root };
            found.add(&short, kind, Layer::Project, shown, place);
        }
        found
    }

    fn find_own(&mut self, places: &Places) {
        let folder = places.config.join("tools");
        let Ok(entries) = std::fs::read_dir(&folder) else { return };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .take(MOST_FILES)
            .collect();
        names.sort_unstable();
        for file in names {
            let path = folder.join(&file);
            let Ok(data) = path.metadata() else { continue };
            if !data.is_file() {
                continue;
            }
            let (folder, copies) = (folder.clone(), places.cache.join("tools"));
            let place = Place::Own { folder, file: file.clone(), copies };
            let shown = path.display().to_string();
            self.add(&file, kind(&data), Layer::User, shown, place);
        }
    }

    /// Takes the tools of a plugin.
    fn join(&mut self, plugin: &Loaded) {
        let (write, network) = plugin.tools_want();
        for Implement { name, file, is_script } in &plugin.parts.tools {
            let (lodging, network) = (plugin.lodging.clone(), network.to_vec());
            let allowed = Allowed { lodging, write, network };
            self.all.push(ToolFile {
                name: name.clone(),
                shown: format!("{file} of the plugin {}", plugin.manifest.name),
                layer: Layer::Plugin,
                is_script: *is_script,
                place: Place::Plugin { file: file.clone(), allowed },
            });
        }
    }

    fn add(&mut self, file: &str, kind: Kind, layer: Layer, shown: String, place: Place) {
        match role(file, kind) {
            Role::Beside => {}
            Role::Stray => self.notes.push(format!(
                "{shown} is no tool, because it is no program; `chmod +x` makes it one. What tools \
                 only need belongs in a folder beside them"
            )),
            Role::Tool { name, is_script } => {
                self.all.push(ToolFile { name, shown, layer, is_script, place });
            }
        }
    }
}

/// What a file in a folder of tools is.
pub(crate) enum Role {
    /// A tool.
    Tool {
        /// The name its tools begin with.
        name: String,
        /// It needs somebody to run it.
        is_script: bool,
    },
    /// Something that lies beside tools.
    Beside,
    /// What looks like a tool and cannot be run.
    Stray,
}

/// Says by its name and kind what a file is.
pub(crate) fn role(file: &str, kind: Kind) -> Role {
    let path = Path::new(file);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_script = SCRIPTS.contains(&ending);
    if file.starts_with('.') || file.ends_with('~') || BESIDE.contains(&ending) {
        return Role::Beside;
    }
    if kind == Kind::Plain && !is_script {
        return Role::Stray;
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(file);
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    Role::Tool { name: stem.chars().map(fit).collect(), is_script }
}

impl ToolFile {
    /// What is different when the file, or what lies around it, may be: sizes and times.
    pub fn stamp(&self) -> String {
        match &self.place {
            Place::Project { file, .. } => match file.path.symlink_metadata() {
                Ok(data) => times(&data),
                Err(_) => "gone".to_owned(),
            },
            Place::Own { folder, .. } => stamp(folder),
            Place::Plugin { allowed, .. } => allowed.lodging.stamp(),
        }
    }

    /// What it may have, if it comes with a plugin.
    pub fn allowed(&self) -> Option<&Allowed> {
        match &self.place {
            Place::Plugin { allowed, .. } => Some(allowed),
            Place::Project { .. } | Place::Own { .. } => None,
        }
    }

    /// Gives the file to be run, or says why it must not be.
    pub fn take(&self) -> Result<Taken, String> {
        match &self.place {
            Place::Project { file, places, root } => self.take_trusted(file, places, root),
            Place::Own { folder, file, copies } => {
                let digest = copied(folder, copies)
                    .map_err(|why| format!("{} cannot be used: {why}", self.shown))?;
                let path = copies.join(&digest).join(file);
                Ok(Taken { path, digest: format!("{digest}/{file}") })
            }
            Place::Plugin { file, allowed } => {
                allowed.lodging.check()?;
                let path = allowed.lodging.root.join(file);
                Ok(Taken { digest: path.display().to_string(), path })
            }
        }
    }

    fn take_trusted(&self, file: &Surveyed, places: &Places, root: &Path) -> Result<Taken, String> {
        let look = Trust::read(places).and_then(|trust| trust.look(root));
        let look = look.ok().filter(|look| look.standing == Standing::Trusted);
        // A file that lies beside it may be what it runs, so all that was trusted has to be the same.
        let files = look.map(|look| look.files).unwrap_or_default();
        let same = |now: &Surveyed| now.name == file.name && now.digest == file.digest;
        if !files.iter().any(same) || !file.is_intact() {
            return Err(format!(
                "{} was not run: this folder's own config, which it is part of, has changed since \
                 the person trusted it. They can look at it and trust it anew with `windlass trust`",
                self.shown
            ));
        }
        let mut hash = Sha256::new();
        for near in files.iter().filter(|near| near.name.starts_with(FOLDER)) {
            hash.update(format!("{}\0{}\n", near.name, near.digest));
        }
        let digest = format!("{}/{}", hex(&hash.finalize()), file.name);
        Ok(Taken { path: file.path.clone(), digest })
    }
}

/// What is different when something beneath a folder may be: names, sizes and times.
pub(crate) fn stamp(folder: &Path) -> String {
    let mut hash = Sha256::new();
    let walked = walk(folder, folder, 0, &mut |name, data| {
        hash.update(format!("{name}\0{}\n", times(data)));
        Ok(())
    });
    if let Err(why) = walked {
        hash.update(why);
    }
    hex(&hash.finalize())
}

/// Goes through a folder of the person's own, links followed.
fn walk(
    top: &Path,
    folder: &Path,
    depth: usize,
    each: &mut dyn FnMut(&str, &std::fs::Metadata) -> Result<(), String>,
) -> Result<usize, String> {
    if depth > DEEPEST {
        return Err(format!("its folder is deeper than {DEEPEST} levels"));
    }
    let failed = |error: std::io::Error| error.to_string();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.path());
        if names.len() > MOST_FILES {
            return Err(format!("its folder holds more than {MOST_FILES} files"));
        }
    }
    names.sort_unstable();
    let mut count = 0;
    for path in names {
        let Ok(data) = path.metadata() else { continue };
        if data.is_dir() {
            count += walk(top, &path, depth + 1, each)?;
        } else if data.is_file()
            && let Some(name) = path.strip_prefix(top).ok().and_then(Path::to_str)
        {
            each(name, &data)?;
            count += 1;
        }
        if count > MOST_FILES {
            return Err(format!("its folder holds more than {MOST_FILES} files"));
        }
    }
    Ok(count)
}

/// Copies a folder to where it is named by what it holds, unless it is there. Gives the name.
fn copied(folder: &Path, copies: &Path) -> Result<String, String> {
    let (mut files, mut bytes) = (Vec::new(), 0_u64);
    walk(folder, folder, 0, &mut |name, data| {
        bytes += data.len();
        if bytes > MOST_BYTES {
            return Err(format!("its folder holds more than {} MiB", MOST_BYTES >> 20));
        }
        let content = std::fs::read(folder.join(name)).map_err(|error| error.to_string())?;
        files.push((name.to_owned(), kind(data), content));
        Ok(())
    })?;
    let mut hash = Sha256::new();
    for (name, kind, content) in &files {
        hash.update(format!("{}\0{name}\0{kind:?}\0{}\0", name.len(), content.len()));
        hash.update(content);
    }
    let digest: String = hex(&hash.finalize()).chars().take(32).collect();
    let place = copies.join(&digest);
    if place.is_dir() {
        return Ok(digest);
    }
    let failed = |error: std::io::Error| error.to_string();
    private::make_folder(copies).map_err(failed)?;
    // Made beside it and then given its name, so that nobody finds half of it.
    let draft = copies.join(format!(".{digest}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&draft);
    let written = files.iter().try_for_each(|(name, kind, content)| {
        let path = draft.join(name);
        if let Some(folder) = path.parent() {
            private::make_folder(folder)?;
        }
        std::fs::write(&path, content)?;
        restrict(&path, *kind)
    });
    let named = written.and_then(|()| std::fs::rename(&draft, &place));
    if let Err(error) = named {
        let _ = std::fs::remove_dir_all(&draft);
        if !place.is_dir() {
            return Err(error.to_string());
        }
    }
    Ok(digest)
}

/// Writes files side by side into a folder of the cache, unless they are there as they should be.
pub fn lay_out(places: &Places, name: &str, files: &[(&str, &str)]) -> Result<PathBuf, Error> {
    let folder = places.cache.join(name);
    let failed = |source| Error::File { path: folder.clone(), source };
    private::make_folder(&folder).map_err(failed)?;
    for (file, text) in files {
        let path = folder.join(file);
        if std::fs::read(&path).ok().as_deref() != Some(text.as_bytes()) {
            private::replace(&path, text.as_bytes()).map_err(failed)?;
        }
    }
    Ok(folder)
}

/// What tools said of themselves, so that nothing has to be started to know it.
#[derive(Default, Deserialize, Serialize)]
pub struct Sayings {
    /// By file: the digest of what said it, and what it said.
    tools: BTreeMap<String, (String, Value)>,
}

impl Sayings {
    fn path(places: &Places) -> PathBuf {
        places.data.join("pins").join("tools.json")
    }

    /// Reads them; none if they cannot be read, since they can be had again.
    pub fn read(places: &Places) -> Sayings {
        let text = private::read(&Sayings::path(places), LONGEST_LIST).ok().flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// What a file said, if it is still the same.
    pub fn of(&self, shown: &str, digest: &str) -> Option<&Value> {
        let (said_by, said) = self.tools.get(shown)?;
        (said_by == digest).then_some(said)
    }

    /// Keeps what files said just now: the file, the digest, what it said.
    pub fn keep(places: &Places, fresh: Vec<(String, String, Value)>) -> Result<(), Error> {
        let path = Sayings::path(places);
        let folder = path.parent().unwrap_or(&places.data);
        let lock = private::lock(folder, "tools")?;
        let mut kept = Sayings::read(places);
        if kept.tools.len() > MOST_KEPT {
            kept.tools.clear();
        }
        for (shown, digest, said) in fresh {
            kept.tools.insert(shown, (digest, said));
        }
        let failed = |source| Error::File { path: path.clone(), source };
        let text = serde_json::to_string(&kept).map_err(|error| failed(error.into()))?;
        private::replace(&path, text.as_bytes()).map_err(failed)?;
        drop(lock);
        Ok(())
    }
}

#[cfg(unix)]
pub(crate) fn kind(data: &std::fs::Metadata) -> Kind {
    match std::os::unix::fs::MetadataExt::mode(data) & 0o111 {
        0 => Kind::Plain,
        _ => Kind::Program,
    }
}

#[cfg(not(unix))]
pub(crate) fn kind(_: &std::fs::Metadata) -> Kind {
    Kind::Plain
}

#[cfg(unix)]
fn times(data: &std::fs::Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    let (changed, touched) = ((data.mtime(), data.mtime_nsec()), (data.ctime(), data.ctime_nsec()));
    format!("{} {:o} {} {changed:?} {touched:?}", data.ino(), data.mode(), data.len())
}

#[cfg(not(unix))]
fn times(data: &std::fs::Metadata) -> String {
    format!("{} {:?}", data.len(), data.modified().ok())
}

#[cfg(unix)]
pub(crate) fn restrict(path: &Path, kind: Kind) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = match kind {
        Kind::Program => 0o500,
        Kind::Plain => 0o400,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn restrict(_: &Path, _: Kind) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(folder: &Path) -> Places {
        Places {
            home: folder.to_owned(),
            config: folder.join("config"),
            data: folder.join("data"),
            cache: folder.join("cache"),
            plugins: folder.join("plugins"),
            managed: None,
        }
    }

    fn write(path: &Path, text: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn own_tools_are_copied_whole_and_a_change_is_another_copy() {
        let yard = tempfile::tempdir().unwrap();
        let places = own(yard.path());
        let tools = places.config.join("tools");
        write(&tools.join("shout.py"), "one", 0o755);
        write(&tools.join("lib/help.py"), "help", 0o644);
        write(&tools.join("sum.mjs"), "x", 0o644);
        write(&tools.join("forgotten.sh"), "x", 0o644);
        write(&tools.join("README.md"), "x", 0o644);
        let mut found = ToolFiles::default();
        found.find_own(&places);
        let names: Vec<_> = found.all.iter().map(|tool| (&*tool.name, tool.is_script)).collect();
        assert_eq!(names, [("shout", false), ("sum", true)]);
        assert!(
            found.notes.len() == 1 && found.notes[0].contains("forgotten.sh"),
            "{:?}",
            found.notes
        );
        let tool = &found.all[0];
        let (stamp, taken) = (tool.stamp(), tool.take().unwrap());
        assert!(taken.path.starts_with(&places.cache));
        assert_eq!(std::fs::read_to_string(&taken.path).unwrap(), "one");
        let beside = taken.path.parent().unwrap().join("lib/help.py");
        assert_eq!(std::fs::read_to_string(beside).unwrap(), "help");
        assert_eq!((tool.stamp(), tool.take().unwrap()), (stamp.clone(), taken.clone()));
        write(&tools.join("lib/help.py"), "other", 0o644);
        assert_ne!(tool.stamp(), stamp);
        let changed = tool.take().unwrap();
        assert_ne!(changed, taken);
        assert_eq!(std::fs::read_to_string(&taken.path).unwrap(), "one", "who runs still has it");
    }

    #[test]
    fn a_folder_without_end_is_refused() {
        let yard = tempfile::tempdir().unwrap();
        let places = own(yard.path());
        let tools = places.config.join("tools");
        write(&tools.join("a"), "x", 0o755);
        std::os::unix::fs::symlink(&tools, tools.join("loop")).unwrap();
        let mut found = ToolFiles::default();
        found.find_own(&places);
        let why = found.all[0].take().unwrap_err();
        assert!(why.contains("deeper than"), "{why}");
        std::fs::remove_file(tools.join("loop")).unwrap();
        std::fs::write(tools.join("big"), vec![0; MOST_BYTES as usize]).unwrap();
        assert!(found.all[0].take().unwrap_err().contains("16 MiB"));
        std::fs::remove_file(tools.join("big")).unwrap();
        for number in 0..=MOST_FILES {
            std::fs::write(tools.join(format!("f{number}")), "").unwrap();
        }
        assert!(found.all[0].take().unwrap_err().contains("1000 files"));
    }

    #[test]
    fn what_a_tool_said_counts_for_what_said_it() {
        let yard = tempfile::tempdir().unwrap();
        let places = own(yard.path());
        assert!(Sayings::read(&places).of("a", "1").is_none());
        Sayings::keep(&places, vec![("a".into(), "1".into(), Value::from(7))]).unwrap();
        Sayings::keep(&places, vec![("b".into(), "2".into(), Value::from(8))]).unwrap();
        let kept = Sayings::read(&places);
        assert_eq!(kept.of("a", "1"), Some(&Value::from(7)));
        assert_eq!((kept.of("a", "2"), kept.of("b", "2")), (None, Some(&Value::from(8))));
        std::fs::write(Sayings::path(&places), "nonsense").unwrap();
        assert!(Sayings::read(&places).of("a", "1").is_none());
    }
}
