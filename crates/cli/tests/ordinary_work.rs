//! Commands of an ordinary day in the sandbox, with the real binary and real programs: what runs,
//! what is asked about, and what the note says if the sandbox is in the way.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::process::Command;
use support::TestEnv;

const AUTO: &str = r#""mode": "auto""#;

/// The result of a command without a user.
enum ExpectedResult {
    /// It runs, and its output contains this text.
    Runs(&'static str),
    /// It would be asked about, for this reason.
    Asked(&'static str),
    /// It fails in the sandbox, and a note contains this text.
    Explained(&'static str),
}

use ExpectedResult::{Asked, Explained, Runs};

const ROWS: &[(&str, ExpectedResult)] = &[
    ("git add -A && git commit -qm two && git log --oneline | wc -l", Runs("2")),
    (
        "git branch b1 && git tag t1 && git branch -d b1 && git stash list",
        Runs("Deleted branch b1"),
    ),
    (
        "git checkout -q other && git merge -q main && git checkout -q main && echo done",
        Runs("done"),
    ),
    ("git restore a.txt", Asked("destroy work")),
    ("git reset --hard", Asked("destroy work")),
    ("git checkout -- a.txt", Asked("overwrite uncommitted changes")),
    ("git push origin main", Asked("network")),
    ("git clone https://x.example/r.git", Asked("network")),
    ("git worktree add wt other", Explained(".git/worktrees/wt is protected")),
    ("git config user.name x", Asked("git settings")),
    ("npm install left-pad", Asked("downloads packages")),
    ("pip install x", Asked("downloads packages")),
    ("docker ps", Asked("network")),
    ("PORT=3000 sh -c 'echo $PORT'", Runs("3000")),
    ("echo x > $TMPDIR/a && cat /tmp/a", Runs("x")),
    ("for f in a b; do echo $f > $f.tmp; done; cat a.tmp b.tmp", Runs("a\nb")),
    ("head -1 /usr/include/stdio.h /etc/hostname > /dev/null; echo read", Runs("read")),
    (
        "python3 -m http.server --bind 127.0.0.1 8765 >/dev/null 2>&1 & sleep 1; \
         curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8765/",
        Runs("200"),
    ),
    ("curl http://127.0.0.1:8766/", Explained("Nothing listens at this port")),
    (
        "python3 -c 'import multiprocessing as m; print(m.Manager().list([1]))'",
        Explained("blocks Unix sockets"),
    ),
    (
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\"",
        Explained("Listen on 127.0.0.1 instead"),
    ),
    ("echo x > /etc/motd", Asked("outside")),
    ("python3 -c \"open('/etc/motd','w')\"", Explained("allows writing only in the workspace")),
];

#[test]
fn ordinary_commands_run_or_say_why_not() {
    let env = TestEnv::new(&[], AUTO);
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(env.root()).env_clear().env("PATH", "/usr/bin:/bin");
        assert!(git.status().unwrap().success(), "{arguments:?}");
    };
    std::fs::write(env.root().join("a.txt"), "one\n").unwrap();
    git(&["init", "-q", "-b", "main", "."]);
    git(&["config", "user.email", "a@example.org"]);
    git(&["config", "user.name", "A"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "one"]);
    git(&["branch", "other"]);
    std::fs::write(env.root().join("b.txt"), "two\n").unwrap();
    let mut faults = Vec::new();
    for (command, expected) in ROWS {
        let arguments = json!({ "command": command }).to_string();
        let (code, stdout, stderr) = env.run(&["tool", "call", "bash", &arguments]);
        let (is_expected, text) = match expected {
            Runs(text) => (code == 0 && stdout.contains("(exit code 0"), text),
            Asked(text) => (code == 3, text),
            Explained(text) => (code == 0 && !stdout.contains("(exit code 0"), text),
        };
        if !is_expected || !format!("{stdout}{stderr}").contains(text) {
            faults.push(format!("$ {command} [{code}]\n{stdout}{stderr}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn registries_can_be_approved_before_a_run_without_a_user() {
    let env = TestEnv::new(&[], AUTO);
    let explain = || env.run(&["permission", "explain", "npm install left-pad"]).1;
    assert!(explain().starts_with("ask"), "{}", explain());
    let (code, _, stderr) = env.run(&["permission", "approve", "registries"]);
    assert!(code == 0 && stderr.contains("windlass permission revoke"), "{stderr}");
    assert!(explain().starts_with("allow"), "{}", explain());
    let (_, list, _) = env.run(&["permission", "list"]);
    assert!(list.contains("network  registries"), "{list}");
    let other = env.run(&["permission", "explain", "npm publish"]).1;
    assert!(other.starts_with("ask"), "{other}");
    assert_eq!(env.run(&["permission", "revoke", "1"]).0, 0);
    assert!(explain().starts_with("ask"), "{}", explain());
}
