//! The story of a user: a long task goes on without its terminal, waits with its question, and is
//! answered from another one.

use crate::support::server::TestServer;
use crate::support::{TestEnv, decode_output};
use std::time::Duration;

const TASK: &[&str] = &[
    "say I will look around first.\ngate look\ncall bash {\"command\": \"touch made.txt\"}",
    "say It is made.",
];

/// Time for which a question must be visible before it accepts keys.
const QUESTION_DELAY: Duration = Duration::from_millis(300);

#[test]
fn a_task_outlives_its_terminal_and_is_answered_from_another_one() {
    let env = TestEnv::new(TASK, r#""mode": "ask""#);
    env.decline_trust(&env.root());
    let server = TestServer::start(&env, &[]);
    let terminal = env.first_terminal().with(&["attach", "--prompt", "make the file"]).start();
    env.model.wait_at_gate("look");
    terminal.wait_text("look around");
    // The terminal is closed while the model works.
    drop(terminal);
    let ps = || env.run(&["ps"]);
    let (code, list, stderr) = ps();
    assert_eq!(code, 0, "{stderr}");
    assert!(list.contains("working") && list.contains("make the file"), "{list}");
    env.model.open_gate("look");
    wait_until(|| ps().1.contains("waits for you"));
    assert_eq!(env.read("made.txt"), None);

    let terminal = env.first_terminal().with(&["attach", "--continue"]).start();
    terminal.wait_text("touch made.txt");
    std::thread::sleep(QUESTION_DELAY);
    terminal.press("y");
    terminal.wait_text("It is made.");
    assert!(env.read("made.txt").is_some());
    terminal.press("\x04");
    terminal.wait_text("The session goes on in the server");
    drop(terminal);

    let (code, _, stderr) = env.run(&["serve", "stop"]);
    assert_eq!(code, 0, "{stderr}");
    let mut server = server;
    assert_eq!(server.wait(), Some(0), "{}", server.stderr());
    let (code, _, stderr) = ps();
    assert_eq!(code, 2);
    assert!(stderr.contains("no server runs") && stderr.contains("windlass serve"), "{stderr}");
}

#[test]
fn a_run_in_the_server_prints_the_answer_and_leaves_the_session_there() {
    let env = TestEnv::new(&["say Hello from there."], "");
    let _server = TestServer::start(&env, &[]);
    let (code, output, stderr) = env.run(&["run", "--attach", "greet me"]);
    assert_eq!((code, output.trim()), (0, "Hello from there."), "{stderr}");
    let (_, list, _) = env.run(&["ps", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list[0]["title"], "greet me", "{list}");
    let (code, _, stderr) = env.run(&["run", "--attach", "--system", "be brief", "greet me"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--system") && stderr.contains("--attach"), "{stderr}");
}

/// A run says that its connection is lost, waits, and prints the answer of the turn that goes on.
#[test]
fn a_run_waits_for_a_server_that_comes_back() {
    let env = TestEnv::new(&["gate first\nsay Saved."; 2], "");
    let server = TestServer::start(&env, &[]);
    let run = env.windlass(&["run", "--attach", "hello"]).spawn().unwrap();
    env.model.wait_at_gate("first");
    server.kill();
    let _server = TestServer::start(&env, &[]);
    // The request of the turn is repeated.
    wait_until(|| env.model.requests().len() == 2);
    env.model.open_gate("first");
    env.model.open_gate("first");
    let (code, output, stderr) = decode_output(&run.wait_with_output().unwrap());
    assert_eq!((code, output.trim()), (0, "Saved."), "{stderr}");
    let lost = stderr.find("The connection to the server was lost").expect(&stderr);
    assert!(stderr[lost..].contains("Connected to the server again."), "{stderr}");
}

/// Without a server, the time limit of a run counts at the client, and Ctrl+C ends it at once.
#[test]
fn a_run_does_not_wait_for_its_server_longer_than_its_user() {
    for limit in [Some("5"), None] {
        let env = TestEnv::new(&["gate stuck\nsay never"], "");
        let server = TestServer::start(&env, &[]);
        let options: &[&str] = match &limit {
            Some(limit) => &["--timeout", limit],
            None => &[],
        };
        let arguments = [&["run", "--attach"][..], options, &["hello"]].concat();
        let run = env.windlass(&arguments).spawn().unwrap();
        env.model.wait_at_gate("stuck");
        server.kill();
        if limit.is_none() {
            // It has to notice first.
            std::thread::sleep(Duration::from_millis(500));
            let id = run.id().to_string();
            let kill = std::process::Command::new("kill").args(["-INT", &id]).status();
            assert!(kill.unwrap().success());
        }
        let (code, _, stderr) = decode_output(&run.wait_with_output().unwrap());
        assert_eq!(code, if limit.is_some() { 4 } else { 130 }, "{stderr}");
        assert!(stderr.contains("resumes when the server starts again"), "{stderr}");
    }
}

#[test]
fn a_run_does_not_work_in_another_folder_than_its_own() {
    let env = TestEnv::new(&["say Hello from there."], "");
    let _server = TestServer::start(&env, &[]);
    let other = env.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let run = |arguments: &[&str]| {
        let output = env.windlass(&[&["run", "--attach"], arguments].concat());
        decode_output(&{ output }.current_dir(&other).output().unwrap())
    };
    let (code, _, stderr) = run(&["greet me"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--workspace"), "{stderr}");
    assert!(env.model.requests().is_empty());
    let root = env.root().canonicalize().unwrap();
    let (code, output, stderr) = run(&["--workspace", root.to_str().unwrap(), "greet me"]);
    assert_eq!((code, output.trim()), (0, "Hello from there."), "{stderr}");
    let (code, _, stderr) = run(&["http://127.0.0.1:4270"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("--attach=http://127.0.0.1:4270"), "{stderr}");
}

/// A client whose token may only read sees a session, and its prompts stay in the editor.
#[test]
fn a_client_that_may_only_read_watches() {
    let env = TestEnv::new(&["say It is made."], "");
    env.decline_trust(&env.root());
    let server = TestServer::start(&env, &["--listen", "127.0.0.1:0"]);
    let (code, token, stderr) = env.run(&["serve", "token", "add", "page", "--right", "read"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = env.run(&["run", "--attach", "make the file"]);
    assert_eq!(code, 0, "{stderr}");
    let address = format!("http://{}", server.tcp_address());
    let session = env.last_session_id();
    let attach = ["attach", &address, "--session", &session];
    let terminal = env.first_terminal().with(&attach).set("WINDLASS_TOKEN", token.trim()).start();
    terminal.wait_text("It is made.");
    terminal.wait_text("read-only: your token may only read");
    terminal.press("and more\r");
    terminal.wait_text("attach with one that has the right write");
    assert_eq!(env.model.requests().len(), 1);
}

/// The session of the command line is opened, or none.
#[test]
fn a_session_that_cannot_be_opened_ends_the_terminal_ui() {
    let env = TestEnv::new(&["say Hi there."], "");
    env.decline_trust(&env.root());
    let _server = TestServer::start(&env, &[]);
    let terminal = env.first_terminal().with(&["attach", "--prompt", "hello"]).start();
    terminal.wait_text("Hi there.");
    let session = env.last_session_id();
    let second = env.first_terminal().with(&["--session", &session]).start();
    second.wait_text("To join: `windlass attach --session");
    second.wait_text("was not opened");
}

#[test]
fn without_a_server_the_commands_say_how_to_start_one() {
    let env = TestEnv::new(&[], "");
    for arguments in [&["ps"][..], &["run", "--attach", "hello"], &["serve", "stop"]] {
        let (code, _, stderr) = env.run(arguments);
        assert_eq!(code, 2, "{arguments:?}");
        assert!(stderr.contains("server"), "{arguments:?}: {stderr}");
    }
}

#[track_caller]
pub fn wait_until(mut is_done: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + crate::support::server::PATIENCE;
    while !is_done() {
        assert!(std::time::Instant::now() < deadline, "it does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}
