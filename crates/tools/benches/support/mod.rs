//! A deterministic file tree that resembles a project, and the results of ripgrep in it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::ToolAccess;
use windlass_sandbox::{CallWorkspace, FileFilter, FoundFile, Workspace};
use windlass_tools::grep::search::{GrepResults, GrepSearch};

/// Search patterns: a word in few files, a word in most files, and alternatives.
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

/// Deterministic pseudo-random numbers.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// Creates a project with this many files, some of them ignored, hidden or binary.
pub fn create_project(root: &Path, files: u64) {
    let mut numbers = PseudoRandom(0x9e37_79b9_7f4a_7c15);
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
        let extension = match n % 20 {
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
        let name = format!("{}{n}.{extension}", if n % 3 == 0 { "keep" } else { "file" });
        std::fs::write(folder.join(name), content(&mut numbers, n, extension)).unwrap();
    }
}

fn content(numbers: &mut PseudoRandom, n: u64, extension: &str) -> Vec<u8> {
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
    match (extension, n % 500) {
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

/// Returns a workspace with a grant to search the whole folder.
pub fn granted_workspace(root: &Path) -> CallWorkspace {
    let policy = Policy::new(PermissionRules::parse(&serde_json::json!("allow")).unwrap());
    match policy.decide(vec![ToolAccess::Search { path: ".".into() }], &[]) {
        Decision::Allowed(grant) => Workspace::open(root).unwrap().open_read_only(grant),
        other => panic!("{other:?}"),
    }
}

pub fn ripgrep(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--color=never"]).args(arguments).arg("./").current_dir(root);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns the matches of ripgrep as `path:line`.
pub fn ripgrep_matches(root: &Path, pattern: &str) -> BTreeSet<String> {
    let output = ripgrep(root, &["--no-heading", "-n", pattern]).stdout(Stdio::piped()).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    let to_match = |line: &str| {
        let mut parts = line.strip_prefix("./").unwrap().splitn(3, ':');
        format!("{}:{}", parts.next().unwrap(), parts.next().unwrap())
    };
    output.lines().map(to_match).collect()
}

/// Returns our matches as `path:line`.
pub fn own_matches(search_results: &GrepResults) -> BTreeSet<String> {
    let lines = search_results.files.iter().flat_map(|file_matches| {
        file_matches
            .lines
            .match_line_numbers()
            .map(|number| format!("{}:{number}", file_matches.path))
    });
    lines.collect()
}

pub fn search(workspace: &CallWorkspace, search: &GrepSearch) -> GrepResults {
    search.run(&workspace.walk(".").unwrap(), &|| false).unwrap()
}

/// Returns the files that ripgrep finds.
pub fn ripgrep_files(root: &Path, glob: &str) -> BTreeSet<String> {
    let output = ripgrep(root, &["--files", "-g", glob]).stdout(Stdio::piped()).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    output.lines().map(|line| line.strip_prefix("./").unwrap().to_owned()).collect()
}

/// Returns the files that we find.
pub fn own_files(workspace: &CallWorkspace, glob: &str) -> Vec<String> {
    let paths = Mutex::new(Vec::new());
    let collect = |found: FoundFile<'_>| paths.lock().unwrap().push(found.into_path());
    let filter = FileFilter { globs: vec![glob.to_owned()] };
    workspace.walk(".").unwrap().visit_parallel(&filter, &|| false, &collect).unwrap();
    paths.into_inner().unwrap()
}
