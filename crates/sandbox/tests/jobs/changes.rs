//! Tests of the changes that commands make: what they replace is kept.

use crate::grants::{JobTestEnv, bubblewrap};
use crate::support::block_on;
use std::collections::BTreeMap;
use std::fs;
use windlass_protocol::PermissionMode;
use windlass_sandbox::{
    CommandChanges, HostAllowlist, NetworkPolicy, PendingFileChange, SandboxBackend, SandboxMode,
};

impl JobTestEnv {
    /// Runs a command and returns what it has changed.
    async fn run_and_take(&self, command: &str) -> CommandChanges {
        let job = self.start_job(command, Vec::new()).await;
        job.wait_for_exit().await;
        let granted = self.granted_workspace(Vec::new(), PermissionMode::Auto);
        let taken = granted.take_job_changes(&job);
        assert!(granted.take_job_changes(&job).changes.is_empty(), "taken twice");
        taken
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.folder.path().join("w").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn env(sandbox: SandboxMode) -> JobTestEnv {
    JobTestEnv::new(sandbox, NetworkPolicy::Listed(HostAllowlist::none()))
}

/// Returns path, content before and content after of each change.
fn texts(changes: &[PendingFileChange]) -> BTreeMap<&str, (Option<String>, Option<String>)> {
    let text = |content: &windlass_sandbox::FileContent| {
        String::from_utf8_lossy(&content.bytes).into_owned()
    };
    let row = |change: &PendingFileChange| {
        (change.before.as_ref().map(text), change.after.as_ref().map(text))
    };
    changes.iter().map(|change| (change.path.as_str(), row(change))).collect()
}

pub fn every_backend_keeps_what_a_command_replaces() {
    block_on(async {
        for sandbox in [bubblewrap(), SandboxMode::Exactly(SandboxBackend::Landlock)] {
            let env = env(sandbox.clone());
            for name in ["f", "g", "d/1", "d/e/2", "same", "opened"] {
                env.write(name, name.as_bytes());
            }
            env.write("target/object", b"old");
            env.write("../outside", b"old");
            let taken = env
                .run_and_take(
                    "echo x >> f; rm g; mv d moved; echo y > moved/1; cp same tmp; mv tmp same; \
                     echo z > new; rm new; echo o > target/object; mkdir -p a/b; echo c > a/b/c; \
                     echo no > ../outside; python3 -c \"f=open('opened','r+'); f.truncate(1)\"; \
                     true",
                )
                .await;
            assert_eq!(taken.not_captured, [] as [&str; 0], "{sandbox:?}");
            let some = |text: &str| Some(text.to_owned());
            let expected = [
                ("a/b/c", (None, some("c\n"))),
                ("d/1", (some("d/1"), None)),
                ("d/e/2", (some("d/e/2"), None)),
                ("f", (some("f"), some("fx\n"))),
                ("g", (some("g"), None)),
                ("moved/1", (None, some("y\n"))),
                ("moved/e/2", (None, some("d/e/2"))),
                ("opened", (some("opened"), some("o"))),
            ];
            assert_eq!(texts(&taken.changes), BTreeMap::from(expected), "{sandbox:?}");
            env.workspace.end_jobs(env.session).await;
        }
    });
}

pub fn what_cannot_be_kept_is_named() {
    block_on(async {
        let env = env(bubblewrap());
        env.write("large", &vec![1; (10 << 20) + 1]);
        env.write("closed", b"x");
        let closed = env.folder.path().join("w/closed");
        fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o200)).unwrap();
        let taken =
            env.run_and_take("echo s > large; echo y > closed; ln -s large link; rm -f link").await;
        let mut names = taken.not_captured.clone();
        names.sort();
        assert!(names[0].starts_with("closed (it could not be read"), "{names:?}");
        assert!(names[1].starts_with("large (it is or was larger than 10 MB"), "{names:?}");
        assert_eq!(names.len(), 2, "a link that is gone again is no change: {names:?}");

        let command = "i=0; while [ $i -lt 5100 ]; do : > many-$i; i=$((i+1)); done; ls | wc -l";
        let taken = env.run_and_take(command).await;
        assert_eq!(taken.changes.len(), 5_000);
        assert_eq!(taken.not_captured.len(), 1, "{:?}", taken.not_captured);
        assert!(taken.not_captured[0].contains("too many files"), "{:?}", taken.not_captured);
        env.workspace.end_jobs(env.session).await;
    });
}

/// Processes that rename, replace and link the same names all the time.
const CHURN: &str = "
for n in 1 2 3; do (
  i=0; while [ $i -lt 60 ]; do
    echo $n$i > t$n; mv -f t$n a 2>/dev/null; ln -f a b$n 2>/dev/null; mv d d$n 2>/dev/null
    echo $n >> d$n/x 2>/dev/null; mv d$n d 2>/dev/null; echo $i >> d/x 2>/dev/null
    i=$((i+1)); done ) & done; wait; rm -f t1 t2 t3 b1 b2 b3; mv d1 d2 d3 d 2>/dev/null; true";

pub fn the_first_content_is_kept_whatever_many_processes_do() {
    block_on(async {
        let env = env(bubblewrap());
        for name in ["a", "d/x", "d/y"] {
            env.write(name, format!("first {name}").as_bytes());
        }
        let taken = env.run_and_take(CHURN).await;
        let changes = texts(&taken.changes);
        assert_eq!(changes["a"].0.as_deref(), Some("first a"));
        assert_eq!(changes["d/x"].0.as_deref(), Some("first d/x"));
        for (path, (before, _)) in &changes {
            let is_original = matches!(*path, "a" | "d/x" | "d/y");
            assert_eq!(before.is_some(), is_original, "{path}: {before:?}");
        }
        env.workspace.end_jobs(env.session).await;
    });
}

pub fn a_link_of_the_command_leads_the_capture_nowhere() {
    block_on(async {
        for sandbox in [bubblewrap(), SandboxMode::Exactly(SandboxBackend::Landlock)] {
            let env = env(sandbox.clone());
            env.write("../outside/key", b"a secret of the user");
            env.write("kept/old", b"old");
            let outside = env.folder.path().canonicalize().unwrap().join("outside");
            let command = format!(
                "ln -s {0} b; mkdir a; : > a/key; mv -T a b 2>/dev/null; rm b; mkdir b; \
                 echo new > b/key; rm -r a; ln -s {0} c; mkdir -p d/c; : > d/c/key; \
                 mv -T d/c c 2>/dev/null; mv kept moved; ln -s {0} kept; mv -T moved kept \
                 2>/dev/null; rm kept; mkdir kept; echo x > kept/key; mkdir p; ln -s {0} p/q; \
                 mv p p2; true",
                outside.display()
            );
            let taken = env.run_and_take(&command).await;
            for (path, (before, after)) in texts(&taken.changes) {
                let secret =
                    [before, after].into_iter().flatten().find(|text| text.contains("secret"));
                assert_eq!(secret, None, "{sandbox:?}: {path}");
            }
            let changes = texts(&taken.changes);
            assert_eq!(changes["b/key"], (None, Some("new\n".to_owned())), "{sandbox:?}");
            assert_eq!(changes["kept/old"].0.as_deref(), Some("old"), "{sandbox:?}");
            assert!(taken.not_captured.iter().any(|text| text.starts_with("c (")), "{taken:?}");
            env.workspace.end_jobs(env.session).await;
        }
    });
}

pub fn huge_and_many_files_cost_little() {
    block_on(async {
        let env = env(bubblewrap());
        env.write(".gitignore", b"dist/\n");
        env.write("src/a", b"a");
        let start = std::time::Instant::now();
        let taken = env
            .run_and_take(
                "i=0; while [ $i -lt 300 ]; do truncate -s 9M f$i; i=$((i+1)); done; \
                 truncate -s 31M large; echo 'src/' >> .gitignore; rm src/a",
            )
            .await;
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
        let bytes: usize = taken
            .changes
            .iter()
            .filter_map(|change| change.after.as_ref())
            .map(|content| content.bytes.len())
            .sum();
        assert!(bytes <= 200 << 20, "{bytes}");
        assert!(taken.not_captured.len() > 10, "{:?}", taken.not_captured);
        let changes = texts(&taken.changes);
        assert_eq!(changes["src/a"], (Some("a".to_owned()), None), "a rule of the command");
        env.workspace.end_jobs(env.session).await;
    });
}
