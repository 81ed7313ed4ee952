//! Who serves a file, in workspaces made for it.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "a test arranges the world from outside")]

use super::*;
use crate::Keeping;
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;
use windlass_permission::{Decision, Policy, Rules};
use windlass_protocol::Access;
use windlass_sandbox::{Hooks, Hosts, Reach, Shell, Walls};
use windlass_toolkit::Berth;

struct Silent;

impl Keeping for Silent {
    fn journal(&self, _: &str, _: &str) {}
}

struct Site {
    folder: TempDir,
    house: House,
    world: World,
}

fn row(value: serde_json::Value) -> Row {
    let mut whole = json!({"language": value["name"], "install": "`get it`", "alone": true});
    let whole_map = whole.as_object_mut().unwrap();
    value.as_object().unwrap().iter().for_each(|(name, value)| {
        whole_map.insert(name.clone(), value.clone());
    });
    serde_json::from_value(whole).unwrap()
}

fn site(rows: Vec<Row>, files: &[&str]) -> Site {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    for name in ["w", "bin"] {
        std::fs::create_dir_all(place.join(name)).unwrap();
    }
    for file in files {
        write(&place.join(file));
    }
    let path = std::env::join_paths([place.join("w/node_modules/.bin"), place.join("bin")]);
    let shell = Shell {
        walls: Walls::Best,
        inherited: vec![("PATH".into(), path.unwrap())],
        reach: Reach::Listed(Hosts::none()),
        write: Vec::new(),
        home: None,
        private: Vec::new(),
        hooks: Hooks::Skip,
    };
    let workspace = Workspace::at(&place.join("w")).unwrap().with_shell(shell);
    let policy = Policy::new(Rules::default());
    let access = Access::Read { path: "a.x".into() };
    let Decision::Allowed(grant) = policy.decide(vec![access.clone()], &[access]) else { panic!() };
    let world = workspace.look(grant);
    let berth = Berth::new(&workspace, &policy);
    let spec = Spec { rows, berth, keeping: Arc::new(Silent), patience: Patience::default() };
    Site { folder, house: House::new(spec), world }
}

fn write(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

impl Site {
    fn serving(&self, path: &str) -> Vec<String> {
        let all = self.house.serving(&self.world, path);
        all.iter().map(|server| format!("{}@{}", server.row().name, server.root())).collect()
    }
}

#[tokio::test]
async fn the_nearest_root_of_the_first_tier_counts() {
    let rust = json!({"name": "ra", "command": ["ra"], "extensions": {".rs": "rust"},
        "roots": [["Cargo.lock"], ["Cargo.toml"]], "alone": false});
    let site = site(
        vec![row(rust)],
        &["bin/ra", "w/one/Cargo.lock", "w/one/sub/Cargo.toml", "w/two/Cargo.toml"],
    );
    assert_eq!(site.serving("one/sub/src/a.rs"), ["ra@one"], "a workspace of crates is one");
    assert_eq!(site.serving("two/src/deep/a.rs"), ["ra@two"]);
    assert!(site.serving("three/a.rs").is_empty() && site.serving("one/a.py").is_empty());
    let twice =
        [site.house.serving(&site.world, "two/a.rs"), site.house.serving(&site.world, "two/b.rs")];
    assert!(Arc::ptr_eq(&twice[0][0], &twice[1][0]), "one row at one root is one server");
}

#[tokio::test]
async fn one_serves_a_language_and_others_look_besides() {
    let named = |name: &str, language: &str, beside: bool| {
        row(json!({"name": name, "language": language, "command": [name], "beside": beside,
            "extensions": {".py": "python"}}))
    };
    let rows = vec![
        named("ruff", "python", true),
        named("gone", "python", false),
        named("pyright", "python", false),
        named("ty", "python", false),
        named("lint", "python", true),
        named("more", "python", true),
    ];
    let site = site(rows, &["bin/ruff", "bin/pyright", "bin/ty", "bin/lint", "bin/more"]);
    assert_eq!(site.serving("a.py"), ["pyright@.", "ruff@.", "lint@."]);
    assert_eq!(site.house.absent(&site.world, "a.py"), None);
}

#[tokio::test]
async fn what_is_missing_is_said_once_and_remembered() {
    let one =
        row(json!({"name": "pyright", "command": ["pyright"], "extensions": {".py": "python"}}));
    let site = site(vec![one], &[]);
    assert!(site.serving("a.py").is_empty());
    let words = site.house.absent(&site.world, "src/a.py").unwrap();
    assert_eq!(
        words,
        "there is no language server for .py files here: pyright is not installed. The person can \
         get it: `get it`. Search with grep meanwhile"
    );
    let none = site.house.absent(&site.world, "Makefile").unwrap();
    assert_eq!(none, "there is no language server for Makefile here; search with grep");
    write(&site.folder.path().join("bin/pyright"));
    assert!(site.serving("a.py").is_empty(), "that was looked for a moment ago");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(31)).await;
    assert_eq!(site.serving("a.py"), ["pyright@."]);
}

#[tokio::test]
async fn a_project_brings_its_program_and_path_does_not_lead_into_it() {
    let local = json!({"name": "ts", "command": ["tsc", "--lsp"], "extensions": {".ts": "typescript"},
        "roots": [["tsconfig.json"]], "local": ["node_modules/native/tsc", "node_modules/.bin/tsc"]});
    let bare = json!({"name": "bare", "command": ["tsc"], "extensions": {".ts": "typescript"}});
    let site = site(
        vec![row(local), row(bare)],
        &["w/node_modules/typescript/tsc", "w/p/tsconfig.json", "w/node_modules/.bin/other"],
    );
    let place = site.folder.path().canonicalize().unwrap().join("w");
    let link = place.join("node_modules/.bin/tsc");
    std::os::unix::fs::symlink("../typescript/tsc", &link).unwrap();
    assert_eq!(site.serving("p/a.ts"), ["ts@p"], "`bare` is in the workspace alone");
    let row = &site.house.rows[0];
    assert_eq!(site.house.estate.program(row, "p"), Some(link), "as it is spelled");
    assert_eq!(site.house.estate.program(&site.house.rows[1], "."), None);
}

#[test]
fn a_file_is_called_by_its_name_or_its_longest_end() {
    let row = row(json!({"name": "go", "command": ["gopls"],
        "extensions": {".ts": "typescript", ".d.ts": "declaration"}, "files": {"go.mod": "gomod"}}));
    for (path, called) in [
        ("a/go.mod", Some("gomod")),
        ("a/b.ts", Some("typescript")),
        ("b.d.ts", Some("declaration")),
        ("go.mod/x", None),
        ("a.mod", None),
        ("ts", None),
    ] {
        assert_eq!(kind(&row, path), called, "{path}");
    }
}

#[tokio::test]
async fn the_cache_stands_where_it_is_wanted() {
    let one = row(json!({"name": "a", "command": ["a"]}));
    let site = site(vec![one], &[]);
    let without = &site.house.estate;
    assert_eq!(without.filled("{cache}/x", "lsp/a"), None, "nobody said where it is");
    assert_eq!(without.filled("plain", "lsp/a").as_deref(), Some("plain"));
    let cache = site.folder.path().join("cache");
    let workspace = site.house.workspace().clone().with_cache(&cache);
    let berth = Berth::new(&workspace, &Policy::new(Rules::default()));
    let with = Estate::new(berth, Arc::new(Silent), Patience::default());
    let own = workspace.servant_folder("lsp/a").unwrap();
    let own = own.to_str().unwrap();
    let value = json!({"a": ["{cache}/t", 1, null], "b": {"c": "x"}});
    let filled = with.filled_in(&value, "lsp/a");
    assert_eq!(filled, json!({"a": [format!("{own}/t"), 1, null], "b": {"c": "x"}}));
}

#[tokio::test]
async fn finding_out_who_serves_a_file_costs_little() {
    let one = |name: &str| {
        row(json!({"name": name, "language": "python", "command": [name],
            "extensions": {".py": "python"}, "local": [".venv/bin/x", "node_modules/.bin/x"],
            "roots": [["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pyrightconfig.json"]]}))
    };
    let site = site(vec![one("a"), one("b"), one("c"), one("d")], &["w/pyproject.toml", "bin/d"]);
    std::fs::create_dir_all(site.folder.path().join("w/src/one/two/three")).unwrap();
    let mut least = std::time::Duration::MAX;
    for _ in 0..20 {
        let began = std::time::Instant::now();
        assert_eq!(site.serving("src/one/two/three/a.py"), ["d@."]);
        least = least.min(began.elapsed());
    }
    assert!(least < std::time::Duration::from_millis(5), "{least:?}");
}
