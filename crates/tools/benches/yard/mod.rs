//! A tree of files that looks like a project, made the same every time, and what ripgrep finds
//! in it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use windlass_permission::{Decision, Policy, Rules};
use windlass_protocol::Access;
use windlass_sandbox::{Found, Wanted, Workspace, World};
use windlass_tools::grep::search::{Harvest, Search};

/// What both look for: a word of few files, one of most, and a choice of words.
pub const RARE: &str = "zyzzyva_rare";
pub const COMMON: &str = "return";
pub const CHOICE: &str = r"(acquire|release)_\w+\(|TODO\([a-z]+\)";

const WORDS: [&str; 48] = [
    "fn",
    "let",
    "mut",
    "return",
    "struct",
    "impl",
    "match",
    "self",
    "Some",
    "None",
    "Ok",
    "Err",
    "for",
    "in",
    "while",
    "if",
    "else",
    "const",
    "static",
    "pub",
    "use",
    "mod",
    "crate",
    "where",
    "value",
    "index",
    "count",
    "buffer",
    "reader",
    "writer",
    "offset",
    "length",
    "parse",
    "token",
    "acquire_lock(",
    "release_lock(",
    "node",
    "tree",
    "leaf",
    "edge",
    "graph",
    "path",
    "name",
    "größe",
    "name_of",
    "0x1f",
    "{",
    "}",
];

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Makes a project of so many files, some of them ignored, hidden or binary.
pub fn make(root: &Path, files: u64) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    std::fs::create_dir_all(root.join(".git/info")).unwrap();
    std::fs::write(root.join(".git/info/exclude"), "*.excluded.rs\n").unwrap();
    std::fs::write(root.join(".gitignore"), "built/\n*.log\n").unwrap();
    for n in 0..files {
        let (part, unit) = (n / 1_000, n / 25 % 40);
        let mut folder = root.join(format!("part{part:02}/unit{unit:02}"));
        match n % 50 {
            0 => folder.push("built"),
            1 => folder.push(".cache"),
            2..=9 => folder.push("deep/deeper"),
            _ => {}
        }
        let end = match n % 20 {
            0..=8 => "rs",
            9..=12 => "ts",
            13 => "log",
            14 => "excluded.rs",
            15 => "bin",
            _ => "md",
        };
        std::fs::create_dir_all(&folder).unwrap();
        if n % 1_000 == 7 {
            std::fs::write(folder.join(".gitignore"), "*.md\n!keep*.md\n").unwrap();
        }
        let name = format!("{}{n}.{end}", if n % 3 == 0 { "keep" } else { "file" });
        std::fs::write(folder.join(name), content(&mut numbers, n, end)).unwrap();
    }
}

fn content(numbers: &mut Numbers, n: u64, end: &str) -> Vec<u8> {
    let length = 500 + numbers.below(7_500) as usize;
    let line_end = if n % 40 == 3 { "\r\n" } else { "\n" };
    let mut text = String::new();
    while text.len() < length {
        for _ in 0..2 + numbers.below(10) {
            text.push_str(WORDS[numbers.below(WORDS.len() as u64) as usize]);
            text.push(' ');
        }
        if numbers.below(200) == 0 {
            text.push_str("// TODO(ada) ");
        }
        text.push_str(line_end);
    }
    if n % 4_999 == 17 || n % 997 == 5 {
        text.push_str(&format!("    {RARE}();{line_end}"));
    }
    match (end, n % 500) {
        ("bin", _) => {
            let mut bytes = text.into_bytes();
            bytes[numbers.below(400) as usize] = 0;
            bytes
        }
        (_, 41) => {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        }
        _ => text.into_bytes(),
    }
}

/// A world that may look at everything in a folder.
pub fn world(root: &Path) -> World {
    let policy = Policy::new(Rules::parse(&serde_json::json!("allow")).unwrap());
    match policy.decide(vec![Access::Search { path: ".".into() }], &[]) {
        Decision::Allowed(grant) => Workspace::at(root).unwrap().look(grant),
        other => panic!("{other:?}"),
    }
}

pub fn ripgrep(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--color=never"]).args(arguments).arg("./").current_dir(root);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The places, `path:line`, that ripgrep finds.
pub fn their_places(root: &Path, pattern: &str) -> BTreeSet<String> {
    let output = ripgrep(root, &["--no-heading", "-n", pattern]).stdout(Stdio::piped()).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let place = |line: &str| {
        let mut parts = line.strip_prefix("./").unwrap().splitn(3, ':');
        format!("{}:{}", parts.next().unwrap(), parts.next().unwrap())
    };
    output.lines().map(place).collect()
}

/// The places that we find.
pub fn our_places(harvest: &Harvest) -> BTreeSet<String> {
    let lines = harvest
        .files
        .iter()
        .flat_map(|hits| hits.lines.numbers().map(|number| format!("{}:{number}", hits.path)));
    lines.collect()
}

pub fn search(world: &World, search: &Search) -> Harvest {
    search.run(&world.tree(".").unwrap(), &|| false).unwrap()
}

/// The files that ripgrep finds.
pub fn their_files(root: &Path, glob: &str) -> BTreeSet<String> {
    let output = ripgrep(root, &["--files", "-g", glob]).stdout(Stdio::piped()).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    output.lines().map(|line| line.strip_prefix("./").unwrap().to_owned()).collect()
}

/// The files that we find.
pub fn our_files(world: &World, glob: &str) -> Vec<String> {
    let paths = Mutex::new(Vec::new());
    let keep = |found: Found<'_>| paths.lock().unwrap().push(found.into_path());
    let wanted = Wanted { globs: vec![glob.to_owned()] };
    world.tree(".").unwrap().each(&wanted, &|| false, &keep).unwrap();
    paths.into_inner().unwrap()
}
