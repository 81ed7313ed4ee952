//! Sessions with a clone of their own: another node restores it when it goes on with the session.

use crate::session_client::SessionClient;
use crate::support::server::soon;
use crate::test_fleet::{TestFleet, TestNode, assert_no_gaps, git, wait_until};
use std::path::{Path, PathBuf};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{Fact, QueryReply, SessionId, SessionOp, SessionQuery};
use windlass_server::FrontendService;

/// Changes files by a tool and by a command, and commits to a branch.
const FIRST_TURN: &str = r#"call write {"path": "by_tool.txt", "content": "tool\n"}
call bash {"command": "echo command > by_command.txt; rm a.txt; git checkout -q -b work; echo 1 > committed.txt; git add committed.txt; git -c user.name=a -c user.email=a@a commit -qm second; echo big > ignored.txt", "description": "d"}"#;
/// Changes files, and waits for the model, which answers later at another node.
const SECOND_TURN: &str = r#"call write {"path": "later.txt", "content": "later\n"}
call write {"path": "by_tool.txt", "content": "tool again\n"}
call bash {"command": "echo late > by_late_command.txt; mkdir -p ignored; echo x > ignored/file; chmod +x by_tool.txt", "description": "d"}"#;

/// Returns the checkout of the only session, on one node's disk.
fn checkout(fleet: &TestFleet, disk: &str) -> PathBuf {
    let folder = fleet.disk(disk).join("project");
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut checkouts = entries.filter(|path| path.join(".git").is_dir());
    let found = checkouts.next().unwrap();
    assert_eq!(checkouts.next(), None);
    found
}

fn read(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(name)).ok()
}

/// Starts a session at the first node, does the first turn, and begins the second one, which waits
/// for the model after its calls.
async fn two_turns(fleet: &TestFleet, first: &TestNode) -> SessionClient {
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("one")).await.unwrap();
    owner.wait_for_turn_end().await;
    let own = checkout(fleet, "first");
    assert_eq!(read(&own, "by_command.txt").as_deref(), Some("command\n"));
    // Nothing of it is in the folder that all sessions begin with.
    assert_eq!(read(&fleet.project(), "by_tool.txt"), None);
    let refs = || git(&fleet.disk("origin.git"), &["for-each-ref", "--format=%(refname)"]);
    wait_until("the files are saved", || refs().contains("/heads/work"));
    owner.submit(SessionOp::prompt("two")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    owner
}

/// Asserts what every restore of `two_turns` has.
fn assert_restored(restored: &Path) {
    for (name, content) in [
        ("by_tool.txt", Some("tool again\n")),
        ("by_command.txt", Some("command\n")),
        ("later.txt", Some("later\n")),
        ("committed.txt", Some("1\n")),
        ("a.txt", None),
        ("ignored/file", None),
    ] {
        assert_eq!(read(restored, name).as_deref(), content, "{name}");
    }
    assert_eq!(git(restored, &["branch", "--show-current"]), "work");
    assert_eq!(git(restored, &["log", "--format=%s"]), "second\nfirst");
    let origin = git(restored, &["remote", "get-url", "origin"]);
    assert!(origin.ends_with("origin.git"), "{origin}");
}

fn start(replies: &[&str]) -> (TestFleet, TestNode, TestNode) {
    let fleet = TestFleet::start(replies);
    fleet.create_repository();
    let first = fleet.start_node_with_checkouts("first");
    let second = fleet.start_node_with_checkouts("second");
    (fleet, first, second)
}

fn restored_notes(fleet: &TestFleet, session: SessionId) -> usize {
    let is_note = |fact: &&Fact| matches!(fact, Fact::ContextChanged { text, .. } if text.contains("restored from git"));
    fleet.facts(session).iter().filter(is_note).count()
}

/// Lets a session of two turns go on at the second node, and returns its checkout there.
async fn restore_at(fleet: &TestFleet, second: &TestNode, session: SessionId) -> PathBuf {
    let mut client = second.watch(session).await;
    client.submit(SessionOp::prompt("three")).await.unwrap();
    for _ in 0..3 {
        client.wait_for_turn_end().await;
    }
    checkout(fleet, "second")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_files_of_a_killed_node_are_restored_at_another_one() {
    let gated = format!("once gate slow\n{}", "say Two.");
    let (fleet, first, second) =
        start(&[FIRST_TURN, "say One.", SECOND_TURN, &gated, "say Three."]);
    let owner = two_turns(&fleet, &first).await;
    first.server.kill();
    let mut watching = second.watch(owner.session).await;
    watching.wait_for_turn_end().await;
    watching.wait_for_turn_end().await;
    assert_no_gaps(&watching.facts);
    let restored = checkout(&fleet, "second");
    assert_restored(&restored);
    // It was made by a command after the last save, and is on record.
    assert_eq!(read(&restored, "by_late_command.txt").as_deref(), Some("late\n"));
    assert_eq!(restored_notes(&fleet, owner.session), 1);
    assert!(fleet.model.requests().last().unwrap().to_string().contains("restored from git"));
    // The next turn is saved, too, and a node that has the files does not restore them again.
    watching.submit(SessionOp::prompt("three")).await.unwrap();
    watching.wait_for_turn_end().await;
    assert_eq!(second.server.stop(), Some(0));
    let again = fleet.start_node_with_checkouts("second");
    let (host, caller) = (again.host().await, again.caller("anna"));
    let open = FrontendRequest::OpenSession { session: owner.session, resume: true };
    soon(host.request(&caller, open)).await.unwrap();
    assert_eq!(restored_notes(&fleet, owner.session), 1);
    // The session is listed with those of the project, and its files go when it is deleted.
    let list = FrontendRequest::Query {
        query: SessionQuery::Sessions {
            workspace: Some(fleet.project().to_str().unwrap().to_owned()),
        },
    };
    let listed = soon(host.request(&caller, list)).await.unwrap();
    let HostResponse::Reply { reply: QueryReply::Sessions { sessions } } = listed else {
        panic!("{listed:?}")
    };
    assert_eq!(sessions.len(), 1);
    let delete = FrontendRequest::DeleteSession { session: owner.session };
    soon(host.request(&caller, delete)).await.unwrap();
    let refs = git(&fleet.disk("origin.git"), &["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main");
    assert!(!restored.exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_node_that_stops_saves_the_files_first() {
    let gated = format!("once gate slow\n{}", "say Two.");
    let (fleet, first, second) = start(&[FIRST_TURN, "say One.", SECOND_TURN, &gated]);
    let owner = two_turns(&fleet, &first).await;
    assert_eq!(first.server.stop(), Some(0));
    let mut watching = second.watch(owner.session).await;
    watching.wait_for_turn_end().await;
    watching.wait_for_turn_end().await;
    let restored = checkout(&fleet, "second");
    assert_restored(&restored);
    assert_eq!(read(&restored, "by_late_command.txt").as_deref(), Some("late\n"));
    let mode = git(&restored, &["ls-files", "--stage", "committed.txt"]);
    assert!(mode.starts_with("100644"), "{mode}");
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(restored.join("by_tool.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100, "it is still executable");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn files_and_branches_that_take_the_place_of_others_are_saved() {
    let replies = [
        r#"call bash {"command": "mkdir folder; echo 1 > folder/inner; echo 1 > other; git checkout -q -b feature; git add -A; git -c user.name=a -c user.email=a@a commit -qm one", "description": "d"}"#,
        "say One.",
        r#"call bash {"command": "rm a.txt; mkdir a.txt; echo 2 > a.txt/x; rm -r folder; echo 2 > folder; rm other; ln -s /etc other; mkfifo pipe; printf 'one\\r\\n' > crlf; echo '* text=auto' > .gitattributes; git branch -m feature feature/x; git checkout -q --orphan empty", "description": "d"}"#,
        "say Two.",
        "say Three.",
    ];
    let (fleet, first, second) = start(&replies);
    let mut owner = first.start_session().await;
    for prompt in ["one", "two"] {
        owner.submit(SessionOp::prompt(prompt)).await.unwrap();
        owner.wait_for_turn_end().await;
    }
    assert_eq!(first.server.stop(), Some(0));
    let restored = restore_at(&fleet, &second, owner.session).await;
    assert_eq!(read(&restored, "a.txt/x").as_deref(), Some("2\n"));
    assert_eq!(read(&restored, "folder").as_deref(), Some("2\n"));
    assert_eq!(std::fs::read_link(restored.join("other")).unwrap(), Path::new("/etc"));
    assert_eq!(read(&restored, "crlf").as_deref(), Some("one\r\n"), "byte for byte");
    assert_eq!(git(&restored, &["branch", "--show-current"]), "empty");
    let branches = git(&restored, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert_eq!(branches, "feature/x\nmain");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_session_of_a_subagent_is_not_opened_in_the_checkout_of_its_parent() {
    let replies = [
        r#"call task {"description": "d", "prompt": "look", "subagent_type": "general"}"#,
        "say Looked.",
        "say Done.",
    ];
    let (fleet, first, second) = start(&replies);
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("one")).await.unwrap();
    owner.wait_for_turn_end().await;
    let subagent = fleet.execute("SELECT id FROM session WHERE parent IS NOT NULL");
    let session: SessionId = subagent.parse().unwrap();
    let (host, caller) = (second.host().await, second.caller("anna"));
    let open = FrontendRequest::OpenSession { session, resume: true };
    let opened = soon(host.request(&caller, open)).await;
    assert!(opened.unwrap_err().to_string().contains("subagent"), "it would restore the folder");
    let delete = FrontendRequest::DeleteSession { session };
    soon(host.request(&caller, delete)).await.unwrap();
    let refs = git(&fleet.disk("origin.git"), &["for-each-ref", "--format=%(refname)"]);
    assert!(refs.contains("/checkpoint"), "the parent still has its files: {refs}");
    assert!(checkout(&fleet, "first").join("a.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn nothing_that_a_session_writes_into_its_repository_is_executed() {
    let (fleet, first, second) = start(&["say One.", "say Two.", "say Three."]);
    let mut owner = first.start_session().await;
    owner.submit(SessionOp::prompt("one")).await.unwrap();
    owner.wait_for_turn_end().await;
    let own = checkout(&fleet, "first");
    let marker = fleet.disk("executed");
    let run = format!("touch {}", marker.display());
    for (key, value) in [
        ("core.fsmonitor", &*run),
        ("core.hooksPath", ".hooks"),
        ("filter.evil.clean", &run),
        ("filter.evil.smudge", &run),
        ("filter.evil.process", &run),
        ("uploadpack.packObjectsHook", &run),
        ("core.sshCommand", &run),
        ("core.pager", &run),
        ("core.gitProxy", &run),
        ("remote.origin.uploadpack", &run),
        ("remote.origin.receivepack", &run),
        ("credential.helper", &format!("!{run}")),
        ("diff.external", &run),
        ("include.path", "../.gitconfig-more"),
    ] {
        git(&own, &["config", key, value]);
    }
    std::fs::write(own.join(".gitconfig-more"), format!("[core]\nfsmonitor = {run}\n")).unwrap();
    std::fs::write(own.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    for folder in [".hooks", ".git/hooks"] {
        std::fs::create_dir_all(own.join(folder)).unwrap();
        for hook in [
            "pre-commit",
            "post-checkout",
            "pre-push",
            "reference-transaction",
            "post-index-change",
            "fsmonitor-watchman",
        ] {
            let path = own.join(folder).join(hook);
            std::fs::write(&path, format!("#!/bin/sh\n{run}\n")).unwrap();
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
    }
    // A repository in the repository, whose config git would read to look for changes in it.
    git(&own, &["init", "--quiet", "nested"]);
    std::fs::write(own.join("nested/file"), "x").unwrap();
    git(&own, &["-C", "nested", "add", "file"]);
    git(&own, &["-C", "nested", "commit", "--quiet", "-m", "nested"]);
    git(&own, &["-C", "nested", "config", "core.fsmonitor", &run]);
    // Links to files outside are saved as links.
    std::os::unix::fs::symlink("/etc/hostname", own.join("link")).unwrap();
    let _ = std::fs::remove_file(&marker);
    std::fs::write(own.join("changed.txt"), "changed\n").unwrap();
    owner.submit(SessionOp::prompt("two")).await.unwrap();
    owner.wait_for_turn_end().await;
    assert_eq!(first.server.stop(), Some(0));
    let restored = restore_at(&fleet, &second, owner.session).await;
    assert_eq!(read(&restored, "changed.txt").as_deref(), Some("changed\n"));
    assert_eq!(std::fs::read_link(restored.join("link")).unwrap(), Path::new("/etc/hostname"));
    assert!(!marker.exists(), "something was executed");
    let config = read(&restored, ".git/config").unwrap();
    assert!(!config.contains("touch"), "{config}");
    // Git in the checkout would have executed it.
    let _ = std::process::Command::new("git").arg("status").current_dir(&own).output().unwrap();
    assert!(marker.exists());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_session_waits_while_the_repository_cannot_be_reached() {
    let gated = format!("once gate slow\n{}", "say Two.");
    let (fleet, first, second) = start(&[FIRST_TURN, "say One.", SECOND_TURN, &gated]);
    let owner = two_turns(&fleet, &first).await;
    let (origin, away) = (fleet.disk("origin.git"), fleet.disk("away.git"));
    std::fs::rename(&origin, &away).unwrap();
    first.server.kill();
    second.server.wait_for("is not resumed");
    second.server.wait_for("were not restored");
    let state = "SELECT state, node IS NULL FROM session";
    assert_eq!(fleet.execute(state), "1|t", "it is tried again later");
    std::fs::rename(&away, &origin).unwrap();
    let mut watching = second.watch(owner.session).await;
    watching.wait_for_turn_end().await;
    watching.wait_for_turn_end().await;
    assert_restored(&checkout(&fleet, "second"));
}
