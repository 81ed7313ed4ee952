//! The story of a user: a long task goes on without its terminal, waits with its question, and is
//! answered from another one.

use crate::support::TestEnv;
use crate::support::server::TestServer;
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
