//! Tests of package caches: commands fill them, and those of the user never change.

use crate::support::block_on;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use windlass_permission::{Decision, PermissionRules, Policy};
use windlass_protocol::{PermissionAnswer, PermissionMode, SessionId, ToolAccess};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, JobSpec, NetworkPolicy, SandboxBackend,
    SandboxMode, StdinMode, Workspace, probe,
};

/// A home folder with some package caches, and the cache folder of Windlass in it.
struct CacheTestEnv {
    _folder: TempDir,
    home: PathBuf,
}

/// A session in one of the projects of the home folder.
struct CacheTestSession {
    workspace: Workspace,
    id: SessionId,
}

impl CacheTestEnv {
    fn new() -> CacheTestEnv {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let home = folder.path().canonicalize().unwrap();
        for (name, text) in [
            (".cargo/registry/cache/a", "user's a"),
            (".cargo/bin/cargo", "program"),
            (".npm/index", "user's index"),
            (".cache/go-build/x", "object"),
        ] {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), text).unwrap();
        }
        CacheTestEnv { _folder: folder, home }
    }

    /// Returns names and contents of all files in the user's caches.
    fn user_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders: Vec<PathBuf> =
            [".cargo", ".npm", ".cache/go-build"].map(|name| self.home.join(name)).to_vec();
        while let Some(folder) = folders.pop() {
            files.push((folder.clone(), Vec::new()));
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        files.sort();
        files
    }

    fn open(&self, project: &str, backend: SandboxBackend) -> CacheTestSession {
        let root = self.home.join(project);
        fs::create_dir_all(&root).unwrap();
        let shell = CommandSandboxConfig {
            sandbox_mode: SandboxMode::Exactly(backend),
            inherited_env: vec![
                ("PATH".into(), "/usr/bin:/bin".into()),
                ("HOME".into(), self.home.clone().into()),
            ],
            network_policy: NetworkPolicy::Listed(HostAllowlist::none()),
            writable_folders: Vec::new(),
            readable_folders: Vec::new(),
            home: Some(self.home.clone()),
            additional_folders: Vec::new(),
            private_paths: Vec::new(),
            cache_folder: Some(self.home.join(".cache/windlass")),
            git_hooks: GitHookMode::Skip,
        };
        let workspace = Workspace::open(&root).unwrap().with_shell(shell);
        CacheTestSession { workspace, id: serde_json::from_str(SESSION_ID).unwrap() }
    }
}

impl CacheTestSession {
    async fn run(&self, mode: PermissionMode, command: &str) -> String {
        let access = ToolAccess::RunCommand { command: command.to_owned(), folder: ".".to_owned() };
        let rules = PermissionRules::parse(&serde_json::json!("allow")).unwrap();
        let grant = match Policy::new(rules).with_mode(mode).decide(vec![access], &[]) {
            Decision::Allowed(grant) => grant,
            Decision::Ask(question) => question.resolve(&PermissionAnswer::Once).unwrap(),
            Decision::Denied { reason } => panic!("{reason}"),
        };
        let spec = JobSpec { session: self.id, command, folder: ".", stdin: StdinMode::Closed };
        let job = self.workspace.open_read_only(grant).start_job(spec).await.unwrap();
        job.wait_for_exit().await;
        let output = job.output();
        String::from_utf8_lossy(&[output.head, output.tail].concat()).into_owned()
    }

    async fn end(self) {
        self.workspace.end_jobs(self.id).await;
    }
}

fn bubblewrap() -> SandboxBackend {
    let backend = probe().backend.clone();
    assert!(matches!(backend, SandboxBackend::Bubblewrap { .. }), "{:?}", probe().messages);
    backend
}

const SESSION_ID: &str = "\"00000000-0000-0000-0000-000000000000\"";
const AUTO: PermissionMode = PermissionMode::Auto;

pub fn commands_fill_caches_and_those_of_the_user_stay_as_they_are() {
    block_on(async {
        let env = CacheTestEnv::new();
        let before = env.user_files();
        let session = env.open("app", bubblewrap());
        let output = session
            .run(
                AUTO,
                "cd ~; cat .npm/index .cargo/registry/cache/a; echo; echo new > .npm/index; \
                 rm .cargo/registry/cache/a; mkdir -p .cargo/git/db/.git; \
                 echo x > .cargo/git/db/.git/config; echo b > .cargo/registry/cache/b; \
                 echo y > .cache/go-build/y && echo filled",
            )
            .await;
        assert_eq!(output, "user's indexuser's a\nfilled\n");
        // A cache that the user does not have is elsewhere.
        let output = session.run(AUTO, "mkdir -p $PIP_CACHE_DIR; echo w > $PIP_CACHE_DIR/w").await;
        assert_eq!(output, "");
        session.end().await;
        assert_eq!(env.user_files(), before);
        let next = env.open("app", bubblewrap());
        let output = next
            .run(AUTO, "cd ~; cat .npm/index .cargo/git/db/.git/config; ls .cargo/registry/cache; cat $PIP_CACHE_DIR/w")
            .await;
        assert_eq!(output, "new\nx\nb\nw\n");
        next.end().await;
        let other = env.open("other", bubblewrap());
        let output = other.run(AUTO, "cd ~; cat .npm/index; ls .cargo $PIP_CACHE_DIR").await;
        assert!(output.starts_with("user's index"), "{output}");
        assert!(output.contains("No such file"), "another project sees its packages: {output}");
        other.end().await;
        assert_eq!(env.user_files(), before);
    });
}

pub fn programs_and_settings_beside_a_cache_are_read_only() {
    block_on(async {
        let env = CacheTestEnv::new();
        let before = env.user_files();
        let session = env.open("app", bubblewrap());
        for command in [
            "echo x > ~/.cargo/bin/cargo",
            "echo x > ~/.cargo/config.toml",
            "mv ~/.cargo/registry ~/.cargo/other",
            "rm -r ~/.cargo/bin",
            "echo x > ~/.bashrc",
        ] {
            let output = session.run(AUTO, &format!("({command}) 2>&1 || echo failed")).await;
            assert!(output.ends_with("failed\n"), "{command}: {output}");
        }
        let plan = session.run(PermissionMode::Plan, "cat ~/.npm/index; echo x > ~/.npm/x").await;
        assert!(plan.contains("user's index") && plan.contains("Read-only"), "{plan}");
        let output = session.run(AUTO, "ls ~/.npm; cat ~/.cargo/bin/cargo").await;
        assert_eq!(output, "index\nprogram");
        session.end().await;
        assert_eq!(env.user_files(), before);
    });
}

pub fn two_sessions_of_a_project_do_not_disturb_each_other() {
    block_on(async {
        let env = CacheTestEnv::new();
        let before = env.user_files();
        let first = env.open("app", bubblewrap());
        assert_eq!(first.run(AUTO, "echo 1 > ~/.npm/one; ls ~/.npm").await, "index\none\n");
        let second = env.open("app", bubblewrap());
        assert_eq!(second.run(AUTO, "echo 2 > ~/.npm/two; ls ~/.npm").await, "index\none\ntwo\n");
        assert_eq!(first.run(AUTO, "ls ~/.npm").await, "index\none\n");
        let packages = env.home.join(".cache/windlass/packages");
        let storage = fs::read_dir(packages).unwrap().next().unwrap().unwrap().path();
        let session_folders = |storage: &Path| {
            let names = fs::read_dir(storage).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().starts_with("session-")).count()
        };
        assert_eq!(session_folders(&storage), 1);
        first.end().await;
        second.end().await;
        crate::support::wait_until("the folder to be removed", || session_folders(&storage) == 0)
            .await;
        let third = env.open("app", bubblewrap());
        assert_eq!(third.run(AUTO, "ls ~/.npm").await, "index\none\n");
        third.end().await;
        assert_eq!(env.user_files(), before);
    });
}

pub fn landlock_moves_the_caches_that_builds_need() {
    block_on(async {
        let env = CacheTestEnv::new();
        let before = env.user_files();
        let session = env.open("app", SandboxBackend::Landlock);
        let output = session
            .run(
                AUTO,
                "mkdir -p $GOCACHE; echo 1 > $GOCACHE/.npmrc && cat $GOCACHE/.npmrc; \
                 echo ${npm_config_cache-unset}; cat ~/.npm/index; echo x > ~/.npm/x",
            )
            .await;
        assert!(output.starts_with("1\nunset\nuser's index"), "{output}");
        assert!(output.contains("Permission denied"), "{output}");
        session.end().await;
        assert_eq!(env.user_files(), before);
    });
}
