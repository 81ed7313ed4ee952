//! Formatters as rows of data: which files they know, where they are set up, and how they run.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_lsp::sign::{Sign, real, text, under, upwards};
use windlass_sandbox::World;

/// The longest that a row may ask for.
const LONGEST: Duration = Duration::from_secs(10);

/// What stands for the whole path of the file.
const FILE: &str = "{file}";
/// What stands for the edition of the nearest Cargo.toml.
const EDITION: &str = "{edition}";
/// The edition that Cargo projects of today have, where nothing is said.
const USUAL: &str = "2021";

/// A formatter, as far as it can be said in data. It reads a file from its standard input and writes
/// it, formatted, to its standard output; if it cannot, it ends with another code than 0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// The program and what it is called with. `{file}` is the whole path of the file, `{edition}`
    /// what the nearest Cargo.toml says.
    pub command: Vec<String>,
    /// Where the project itself may bring the program, relative to the folder of the file or one
    /// above it.
    #[serde(default)]
    pub local: Vec<String>,
    /// The ends of the names of its files, such as `.ts`.
    #[serde(default)]
    pub extensions: Vec<String>,
    /// Whole names of files.
    #[serde(default)]
    pub files: Vec<String>,
    /// It formats only where all of these hold. It runs where the first of them stands.
    #[serde(default)]
    pub when: Vec<Sign>,
    /// What its environment has besides that of a command.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// How long it may take, in milliseconds.
    #[serde(default = "timeout")]
    pub timeout: u64,
    /// How a person gets it.
    #[serde(default)]
    pub install: String,
}

fn timeout() -> u64 {
    2_000
}

/// How a formatter is called for one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// Relative to the workspace if the project brings it, else a bare name or a whole path.
    pub(super) program: Program,
    pub(super) arguments: Vec<String>,
    /// Where it runs, relative to the workspace.
    pub(super) folder: String,
}

/// Where the program is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// In the workspace.
    Local(String),
    /// Wherever programs are.
    Named(String),
}

impl Row {
    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout).min(LONGEST)
    }

    /// True if it is for files of this name.
    pub(super) fn knows(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let ends = |end: &String| name.len() > end.len() && name.ends_with(end.as_str());
        self.extensions.iter().any(ends) || self.files.iter().any(|file| file == name)
    }

    /// How it is called for a file that it knows, if it is set up there. Looks at files.
    pub(super) fn order(&self, world: &World, path: &str) -> Option<Order> {
        let home = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let mut folder = None;
        for sign in &self.when {
            let found = sign.found(world, home)?;
            folder = folder.or(Some(found));
        }
        let (program, arguments) = self.command.split_first()?;
        let program = match self.brought(world, home) {
            Some(local) => Program::Local(local),
            None => Program::Named(program.clone()),
        };
        let file = world.workspace().root().join(path).to_string_lossy().into_owned();
        let wants = |mark: &str| arguments.iter().any(|argument| argument.contains(mark));
        let edition = if wants(EDITION) { edition(world, home) } else { String::new() };
        let fill = |argument: &String| argument.replace(EDITION, &edition).replace(FILE, &file);
        let arguments = arguments.iter().map(fill).collect();
        Some(Order { program, arguments, folder: folder.unwrap_or(".").to_owned() })
    }

    /// The program that the project brings, if it does.
    fn brought(&self, world: &World, home: &str) -> Option<String> {
        let mut places =
            self.local.iter().flat_map(|local| upwards(home).map(move |above| under(above, local)));
        // What runs is the spelled path: a program may look at what it is called.
        places.find(|place| real(world, place).is_some())
    }
}

/// The edition that the nearest Cargo.toml with one speaks of; members of a workspace may take it
/// from the root.
fn edition(world: &World, home: &str) -> String {
    let said = upwards(home).find_map(|above| {
        let manifest = text(world, &under(above, "Cargo.toml"))?;
        manifest.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            let value = value.split('#').next()?.trim().trim_matches(['"', '\'']);
            let year = value.len() == 4 && value.bytes().all(|byte| byte.is_ascii_digit());
            (key.trim() == "edition" && year).then(|| value.to_owned())
        })
    });
    said.unwrap_or_else(|| USUAL.to_owned())
}

/// The rows that come with this program, in the order in which they are preferred.
pub fn known() -> Vec<Row> {
    // A test reads them.
    serde_json::from_str(include_str!("formatters.json")).unwrap_or_default()
}
