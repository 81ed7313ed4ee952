//! Tests of `ServerPool::servers_for` in temporary workspaces.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files")]

use super::*;
use crate::server_log::ServerLog;
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::ToolAccess;
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, NetworkPolicy, SandboxMode,
};
use windlass_toolkit::ProcessLauncher;
use windlass_toolkit::process_health::HealthChanges;

struct NullServerLog;

impl ServerLog for NullServerLog {
    fn log_line(&self, _: &str, _: &str) {}
}

struct TestServerPool {
    folder: TempDir,
    pool: ServerPool,
    world: CallWorkspace,
}

fn row(value: serde_json::Value) -> LspServerConfig {
    let mut config = json!({"language": value["name"], "install": "`get it`", "single_file": true});
    let fields = config.as_object_mut().unwrap();
    value.as_object().unwrap().iter().for_each(|(name, value)| {
        fields.insert(name.clone(), value.clone());
    });
    serde_json::from_value(config).unwrap()
}

fn test_pool(rows: Vec<LspServerConfig>, files: &[&str]) -> TestServerPool {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    for name in ["w", "bin"] {
        std::fs::create_dir_all(base.join(name)).unwrap();
    }
    for file in files {
        write(&base.join(file));
    }
    let path = std::env::join_paths([base.join("w/node_modules/.bin"), base.join("bin")]);
    let shell = CommandSandboxConfig {
        sandbox_mode: SandboxMode::Best,
        inherited_env: vec![("PATH".into(), path.unwrap())],
        network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
        readable_folders: Vec::new(),
        writable_folders: Vec::new(),
        home: None,
        additional_folders: Vec::new(),
        private_paths: Vec::new(),
        cache_folder: None,
        git_hooks: GitHookMode::Skip,
    };
    let workspace = Workspace::open(&base.join("w")).unwrap().with_shell(shell);
    let policy = Policy::new(PermissionRules::default());
    let access = ToolAccess::Read { path: "a.x".into() };
    let Decision::Allowed(grant) = policy.decide(vec![access.clone()], &[access]) else {
        panic!("reading must be allowed")
    };
    let world = workspace.open_read_only(grant);
    let launcher = ProcessLauncher::new(&workspace, &policy);
    let spec = LspConfig {
        servers: rows,
        launcher,
        log: Arc::new(NullServerLog),
        timeouts: LspTimeouts::default(),
        changes: HealthChanges::default(),
    };
    TestServerPool { folder, pool: ServerPool::new(spec), world }
}

fn write(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "").unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

impl TestServerPool {
    fn server_names(&self, path: &str) -> Vec<String> {
        let all = self.pool.servers_for(&self.world, path);
        all.iter().map(|server| format!("{}@{}", server.config().name, server.root())).collect()
    }
}

#[tokio::test]
async fn the_nearest_root_of_the_first_tier_counts() {
    let rust = json!({"name": "ra", "command": ["ra"], "extensions": {".rs": "rust"},
        "roots": [["Cargo.lock"], ["Cargo.toml"]], "single_file": false});
    let env = test_pool(
        vec![row(rust)],
        &["bin/ra", "w/one/Cargo.lock", "w/one/sub/Cargo.toml", "w/two/Cargo.toml"],
    );
    assert_eq!(
        env.server_names("one/sub/src/a.rs"),
        ["ra@one"],
        "all crates of a workspace share its root"
    );
    assert_eq!(env.server_names("two/src/deep/a.rs"), ["ra@two"]);
    assert!(env.server_names("three/a.rs").is_empty() && env.server_names("one/a.py").is_empty());
    let twice = [
        env.pool.servers_for(&env.world, "two/a.rs"),
        env.pool.servers_for(&env.world, "two/b.rs"),
    ];
    assert!(Arc::ptr_eq(&twice[0][0], &twice[1][0]), "one row has one server for each root");
}

#[tokio::test]
async fn one_main_server_and_additional_servers_serve_a_file() {
    let named = |name: &str, language: &str, additional: bool| {
        row(json!({"name": name, "language": language, "command": [name], "additional": additional,
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
    let env = test_pool(rows, &["bin/ruff", "bin/pyright", "bin/ty", "bin/lint", "bin/more"]);
    assert_eq!(env.server_names("a.py"), ["pyright@.", "ruff@.", "lint@."]);
    assert_eq!(env.pool.no_server_text(&env.world, "a.py"), None);
}

#[tokio::test]
async fn a_missing_program_is_reported_and_cached() {
    let one =
        row(json!({"name": "pyright", "command": ["pyright"], "extensions": {".py": "python"}}));
    let env = test_pool(vec![one], &[]);
    assert!(env.server_names("a.py").is_empty());
    let text = env.pool.no_server_text(&env.world, "src/a.py").unwrap();
    assert_eq!(
        text,
        "no language server is available for .py files: pyright is not installed. The user can \
         install it: `get it`. Use grep meanwhile"
    );
    let none = env.pool.no_server_text(&env.world, "Makefile").unwrap();
    assert_eq!(none, "no language server is available for Makefile; use grep");
    write(&env.folder.path().join("bin/pyright"));
    assert!(env.server_names("a.py").is_empty(), "the missing program is cached");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(31)).await;
    assert_eq!(env.server_names("a.py"), ["pyright@."]);
}

#[tokio::test]
async fn a_local_program_is_found_and_path_entries_in_the_workspace_are_ignored() {
    let local = json!({"name": "ts", "command": ["tsc", "--lsp"], "extensions": {".ts": "typescript"},
        "roots": [["tsconfig.json"]], "local": ["node_modules/native/tsc", "node_modules/.bin/tsc"]});
    let bare = json!({"name": "bare", "command": ["tsc"], "extensions": {".ts": "typescript"}});
    let env = test_pool(
        vec![row(local), row(bare)],
        &["w/node_modules/typescript/tsc", "w/p/tsconfig.json", "w/node_modules/.bin/other"],
    );
    let base = env.folder.path().canonicalize().unwrap().join("w");
    let link = base.join("node_modules/.bin/tsc");
    std::os::unix::fs::symlink("../typescript/tsc", &link).unwrap();
    assert_eq!(
        env.server_names("p/a.ts"),
        ["ts@p"],
        "the program of `bare` is only in the workspace"
    );
    let row = &env.pool.configs[0];
    assert_eq!(env.pool.context.find_program(row, "p"), Some(link), "the link is not resolved");
    assert_eq!(env.pool.context.find_program(&env.pool.configs[1], "."), None);
}

#[tokio::test]
async fn cache_placeholders_are_filled() {
    let one = row(json!({"name": "a", "command": ["a"]}));
    let env = test_pool(vec![one], &[]);
    let no_cache = &env.pool.context;
    assert_eq!(
        no_cache.fill_cache_placeholder("{cache}/x", "lsp/a"),
        None,
        "no cache folder is set"
    );
    assert_eq!(no_cache.fill_cache_placeholder("plain", "lsp/a").as_deref(), Some("plain"));
    let cache = env.folder.path().join("cache");
    let workspace = env.pool.workspace().clone().with_cache(&cache);
    let launcher = ProcessLauncher::new(&workspace, &Policy::new(PermissionRules::default()));
    let with_cache = PoolContext::new(
        launcher,
        Arc::new(NullServerLog),
        LspTimeouts::default(),
        HealthChanges::default(),
    );
    let cache_folder = workspace.process_folder("lsp/a").unwrap();
    let cache_folder = cache_folder.to_str().unwrap();
    let value = json!({"a": ["{cache}/t", 1, null], "b": {"c": "x"}});
    let filled = with_cache.fill_cache_placeholders(&value, "lsp/a");
    assert_eq!(filled, json!({"a": [format!("{cache_folder}/t"), 1, null], "b": {"c": "x"}}));
}

#[tokio::test]
async fn selecting_servers_is_fast() {
    let one = |name: &str| {
        row(json!({"name": name, "language": "python", "command": [name],
            "extensions": {".py": "python"}, "local": [".venv/bin/x", "node_modules/.bin/x"],
            "roots": [["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pyrightconfig.json"]]}))
    };
    let env =
        test_pool(vec![one("a"), one("b"), one("c"), one("d")], &["w/pyproject.toml", "bin/d"]);
    std::fs::create_dir_all(env.folder.path().join("w/src/one/two/three")).unwrap();
    let mut shortest = std::time::Duration::MAX;
    for _ in 0..20 {
        let started_at = std::time::Instant::now();
        assert_eq!(env.server_names("src/one/two/three/a.py"), ["d@."]);
        shortest = shortest.min(started_at.elapsed());
    }
    assert!(shortest < std::time::Duration::from_millis(5), "{shortest:?}");
}
