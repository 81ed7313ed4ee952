//! Shell commands with the real binary: sandbox, permissions, output, limits, and no process left
//! behind.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::expect_fun_call,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use support::TestEnv;

const ALLOW_ALL: &str = r#""permission": "allow""#;

/// Calls `bash` without a model.
fn bash(env: &TestEnv, flags: &[&str], command: &str) -> (i32, String, String) {
    let arguments = json!({ "command": command }).to_string();
    let line: Vec<&str> = ["tool", "call"]
        .iter()
        .chain(flags)
        .chain(&["bash", arguments.as_str()])
        .copied()
        .collect();
    env.run(&line)
}

/// Counts the processes whose command line contains `mark`.
fn count_processes(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    lines.filter(|(pid, line)| *pid != std::process::id() && line.contains(mark)).count()
}

/// True if no process whose command line contains `mark` is left before `timeout`.
fn processes_end(mark: &str, timeout: Duration) -> bool {
    let start = Instant::now();
    while count_processes(mark) > 0 {
        if start.elapsed() > timeout {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

/// Returns `many` in the soak test, else `few`.
fn repetitions(few: usize, many: usize) -> usize {
    if std::env::var_os("WINDLASS_SOAK").is_some() { many } else { few }
}

#[test]
fn a_command_gives_its_output_in_order_and_its_exit_code() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let (code, out, _) = bash(&env, &[], "echo one; echo two >&2; echo three; exit 7");
    assert_eq!((code, out.as_str()), (0, "one\ntwo\nthree\n(exit code 7)\n"));
    let (_, out, _) = bash(&env, &[], "true");
    assert_eq!(out, "(no output)\n(exit code 0)\n");
    let (_, out, _) = bash(&env, &[], "kill -SEGV $$");
    assert!(out.contains("killed by signal 11") || out.contains("exit code 139"), "{out}");
}

/// Calls `bash` with `command` and then `date`. Returns how many milliseconds after that the call
/// settled, and the output.
fn measure_return_delay(env: &TestEnv, command: &str) -> (u64, String) {
    let arguments = json!({ "command": format!("{command}; date +%s%3N") }).to_string();
    let line = ["tool", "call", "--output", "events", "bash", arguments.as_str()];
    let (code, stream, stderr) = env.run(&line);
    assert_eq!(code, 0, "{stderr}");
    let mut events = stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let settled = events.find(|event| event["kind"] == "call_settled").expect(&stream);
    let text = settled["outcome"]["output"]["text"].as_str().unwrap().to_owned();
    let is_time = |line: &&str| line.len() == 13 && line.chars().all(|c| c.is_ascii_digit());
    let ended_at: u64 = text.lines().find(is_time).expect(&text).parse().unwrap();
    (settled["at"].as_u64().unwrap().saturating_sub(ended_at), text)
}

/// A server that leaves its session and its parents, as daemons do.
const DAEMON: &str = "python3 -c \"
import os, socket, sys
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
server = socket.create_server(('127.0.0.1', 0))
while True: server.accept()
\" 60077";

#[test]
fn background_processes_are_listed_and_end_with_the_session() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let python = std::process::Command::new("python3").arg("-V").output().is_ok();
    let mut commands = vec![
        ("sleep 6001 & sleep 0.1", "sleep 6001", "sleep"),
        ("setsid sleep 6002 & sleep 0.1", "sleep 6002", "sleep"),
        ("nohup sleep 6003 >/dev/null 2>&1 & sleep 0.1", "sleep 6003", "sleep"),
        (
            "(setsid bash -c 'exec -a 6004 sleep 6004' >/dev/null 2>&1 &) ; sleep 0.2",
            "6004 6004",
            "sleep",
        ),
    ];
    if python {
        commands.push(("setsid python3 -m http.server 60078 & sleep 0.5", "60078", "python"));
        commands.push((DAEMON, "60077", "python"));
    }
    for (command, mark, name) in commands {
        let (late, out) = measure_return_delay(&env, command);
        assert!(late < 1_000, "{command}: {late} ms");
        assert!(out.contains("still running"), "{command}: {out}");
        let named = out.split_once("still running").unwrap().1;
        assert!(named.contains(name) && named.contains(r#"with job {"id": "#), "{command}: {out}");
        assert!(processes_end(mark, Duration::from_secs(2)), "{command}");
    }
}

/// Returns the peak memory of a process in kB.
fn peak_memory_kb(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn output_without_end_does_not_grow_in_memory() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let arguments =
        json!({ "command": "sleep 0.5; touch going; timeout 2 yes; echo over" }).to_string();
    let child = env.windlass(&["tool", "call", "bash", &arguments]).spawn().unwrap();
    let (pid, going) = (child.id(), env.root().join("going"));
    let watch = std::thread::spawn(move || {
        let (start, mut before, mut most) = (Instant::now(), 0, 0);
        while start.elapsed() < Duration::from_secs(20)
            && let Some(now) = peak_memory_kb(pid)
        {
            // Only the memory used after the command starts to print is limited.
            if !going.exists() {
                before = now;
            }
            most = now;
            std::thread::sleep(Duration::from_millis(20));
        }
        (before, most)
    });
    let output = child.wait_with_output().unwrap();
    let (before, most) = watch.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\nover\n"), "{}", text.len());
    assert!(before > 1_000 && most >= before, "{before} {most}");
    assert!(most - before <= 10_000, "from {before} kB to {most} kB");
}

#[test]
fn nothing_outlives_a_session_that_is_killed() {
    let mut slowest = Duration::ZERO;
    for attempt in 0..repetitions(6, 100) {
        let (env, number) = (TestEnv::new(&[], ALLOW_ALL), 70_000 + attempt);
        let shapes = [
            format!("sleep {number} & setsid sleep {number} & nohup sleep {number}"),
            format!("(setsid sleep {number} &); exec sleep {number}"),
            format!("trap '' TERM HUP; sleep {number}"),
        ];
        let arguments = json!({"command": shapes[attempt % shapes.len()]}).to_string();
        let mut child = env.windlass(&["tool", "call", "bash", &arguments]).spawn().unwrap();
        let start = Instant::now();
        let mark = format!("sleep {number}");
        while count_processes(&mark) < 2 {
            assert!(
                start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
                "the command did not start"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        assert!(processes_end(&mark, Duration::from_secs(2)), "{}", shapes[attempt % shapes.len()]);
        slowest = slowest.max(killed.elapsed());
    }
    println!("all processes ended after at most {slowest:?}");
}

#[test]
fn a_command_that_times_out_is_ended_and_its_output_is_kept() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let arguments = r#"{"command": "echo begun; sleep 60005", "timeout": 500}"#;
    let start = Instant::now();
    let (code, out, _) = env.run(&["tool", "call", "bash", arguments]);
    assert!(
        code == 0 && start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(8))
    );
    assert!(out.starts_with("begun\n(killed: timed out after 0.5 s."), "{out}");
    assert!(processes_end("sleep 60005", Duration::from_secs(2)));
}

#[test]
fn a_command_that_ignores_signals_is_killed_and_not_reported_as_running() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let arguments = json!({
        "command": "trap '' TERM; echo start; while :; do sleep 0.2; done", "timeout": 700
    });
    let (_, out, stderr) = env.run(&["tool", "call", "bash", &arguments.to_string()]);
    assert!(out.contains("start\n") && out.contains("killed: timed out"), "{out}{stderr}");
    assert!(!out.contains("still running"), "{out}");
}

#[test]
fn the_result_of_a_command_whose_supervisor_was_killed_is_unknown() {
    let script = [
        "call bash {\"command\":\"touch ran; kill -9 $PPID; sleep 600\"}",
        "call bash {\"command\":\"echo on\"}",
        "say Done.",
    ];
    let env = TestEnv::new(&script, ALLOW_ALL);
    let (code, _, stderr) = env.run(&["run", "--sandbox", "off", "--mode", "full", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(env.read("ran").is_some(), "the command began");
    let list = env.run(&["session", "list", "--json"]).1;
    let list: Value = serde_json::from_str(&list).unwrap();
    let log = env.run(&["session", "export", list[0]["session"].as_str().unwrap()]).1;
    let outcomes: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|fact| fact["kind"] == "call_settled")
        .map(|fact| fact["outcome"]["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["result_unknown", "completed"], "{stderr}");
}

#[test]
fn output_without_end_costs_little_and_is_counted() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let (_, out, _) = bash(&env, &[], "yes | head -c 3000000000; echo; echo end");
    assert!(out.contains("of 3000000005 bytes in 1500000002 lines"), "{}", out.len());
    assert!(out.starts_with("y\ny\n") && out.contains("\nend\n(exit code 0"), "{}", out.len());
    assert!(out.len() < 60_000, "{}", out.len());
}

#[test]
fn the_sandbox_denies_access_and_the_output_says_what_to_do() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let home = env.home();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_rsa"), "PRIVATE").unwrap();
    let (_, out, _) = bash(&env, &[], "echo in > inside.txt; cat inside.txt");
    assert!(out.starts_with("in\n"), "{out}");
    assert_eq!(env.read("inside.txt").as_deref(), Some("in\n"));
    let (_, out, _) = bash(&env, &["--yes"], "echo x > /usr/windlass-outside");
    assert!(!Path::new("/usr/windlass-outside").exists());
    assert!(out.contains("/usr/windlass-outside is outside the workspace"), "{out}");
    let near = env.home().join("near.txt");
    bash(&env, &["--yes"], &format!("echo x > {}", near.display()));
    assert!(!near.exists());
    let script = "cat $HOME/.ss[h]/id_rsa; x=$(echo .ssh); cat $HOME/$x/id_rsa; env";
    let (_, out, _) = bash(&env, &["--yes"], script);
    assert!(!out.contains("PRIVATE") && !out.contains("sk-very-secret"), "{out}");
    let (_, out, _) = bash(&env, &["--yes"], "d=$(echo vscode); mkdir .$d");
    assert!(out.contains("exit code 1") && out.contains("is protected, because"), "{out}");
    assert!(!env.root().join(".vscode").exists());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_, out, _) =
        bash(&env, &["--yes"], &format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo rc=$?"));
    assert!(out.contains("refused") && !out.contains("rc=0"), "{out}");
    let (_, out, _) = bash(&env, &["--yes"], "getent hosts example.com; echo rc=$?");
    assert!(out.contains("rc=2"), "{out}");
}

#[test]
fn modes_restrict_both_permissions_and_the_sandbox() {
    let env = TestEnv::new(&[], "");
    let write = r#"{"filePath": "w.txt", "content": "w"}"#;
    let file = |mode: &str| env.run(&["tool", "call", "--mode", mode, "write", write]).0;
    let shell = |mode: &str, command: &str| bash(&env, &["--mode", mode], command);

    assert_eq!((file("plan"), env.read("w.txt")), (3, None));
    assert_eq!(shell("plan", "ls").0, 0);
    let (code, out, _) = bash(&env, &["--mode", "plan", "--yes"], "echo x > p.txt");
    assert!(code == 0 && out.contains("Files are read-only here"), "{out}");
    assert_eq!(env.read("p.txt"), None);

    assert_eq!((file("ask"), env.read("w.txt")), (3, None));
    assert_eq!((shell("ask", "cat README.md").0, shell("ask", "echo x > a.txt").0), (0, 3));

    assert_eq!((file("auto"), env.read("w.txt").as_deref()), (0, Some("w")));
    assert_eq!(shell("auto", "echo x > a.txt && for f in *; do echo $f; done").0, 0);
    assert_eq!(env.read("a.txt").as_deref(), Some("x\n"));
    for command in ["npm install", "rm -rf .", "git push", "sudo ls", "$x"] {
        assert_eq!(shell("auto", command).0, 3, "{command}");
    }

    let (code, out, _) = shell("full", "curl -s -m 5 http://example.com; echo rc=$?");
    assert!(code == 0 && !out.contains("rc=0"), "{out}");
    assert_eq!(shell("full", "echo x > .git/config").0, 3, "protected paths stay protected");
}

#[test]
fn only_a_user_at_the_terminal_lets_a_command_out_of_the_sandbox() {
    let out = Path::new("/tmp").join(format!("windlass-out-{}", std::process::id()));
    let command = format!("echo x > {}", out.display());
    let outside = json!({"command": command, "outside": true}).to_string();
    let env = TestEnv::new(&[], ALLOW_ALL);
    let (code, _, stderr) = env.run(&["tool", "call", "--yes", "bash", &outside]);
    assert!(code == 3 && stderr.contains("only a user at the terminal"), "{stderr}");
    for mode in ["full", "plan"] {
        let (code, _, stderr) =
            env.run(&["tool", "call", "--mode", mode, "--yes", "bash", &outside]);
        assert!(code == 3, "{mode}: {stderr}");
    }
    assert!(!out.exists());

    let env = TestEnv::new(&[], r#""permission": "allow", "sandbox": {"enabled": false}"#);
    let (code, _, stderr) = bash(&env, &[], &command);
    assert!(code == 0 && out.exists(), "{stderr}");
    assert!(stderr.contains("the sandbox is off"), "no warning is shown: {stderr}");
    std::fs::remove_file(&out).unwrap();
    let (code, _, stderr) = bash(&env, &["--sandbox", "on"], &command);
    assert!(code == 0 && !out.exists(), "{stderr}");
}

#[test]
fn a_command_reaches_listed_hosts_by_name_and_every_decision_is_an_event() {
    let script = "curl -sS -m 5 http://listed.invalid/ ; curl -sS -m 5 http://other.invalid/ ; \
                  curl -sS -m 5 http://10.0.0.1:1/ ; echo over";
    let settings = r#""permission": "allow", "sandbox": {"network": ["listed.invalid"]}"#;
    let env = TestEnv::new(&[], settings);
    let arguments = json!({ "command": script }).to_string();
    let (_, stream, _) = env.run(&["tool", "call", "--output", "events", "bash", &arguments]);
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reached: Vec<&Value> = events.iter().filter(|live| live["kind"] == "host_access").collect();
    let hosts: Vec<&str> = reached.iter().filter_map(|live| live["host"].as_str()).collect();
    assert_eq!(hosts, ["listed.invalid:80", "other.invalid:80", "10.0.0.1:1"]);
    assert!(reached[1]["refusal"].as_str().unwrap().contains("not"), "{stream}");
}

#[test]
fn a_model_uses_jobs_and_hears_of_their_end_once() {
    let start = json!({"command": "read x; echo got $x; sleep 0.3; exit 3", "background": true});
    let replies = [
        format!("call bash {start}"),
        format!("call job {}", json!({"id": 1, "action": "write", "input": "hello\n"})),
        format!("call job {}", json!({"id": 1, "action": "wait"})),
        "say Done.".to_owned(),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, ALLOW_ALL);
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let facts = env.facts();
    let texts: Vec<&str> =
        facts.iter().filter_map(|record| record["outcome"]["output"]["text"].as_str()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1].contains("got hello") && texts[2].contains("exit code 3"), "{texts:?}");
    let count_notices =
        |facts: &[Value]| facts.iter().filter(|record| record["kind"] == "context_changed").count();
    assert_eq!(count_notices(&facts), 0, "the call that waited has reported the end");
    let replies = [
        format!("call bash {}", json!({"command": "sleep 0.2", "background": true})),
        format!("call bash {}", json!({"command": "sleep 1"})),
        "say Done.".to_owned(),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, ALLOW_ALL);
    let (code, _, stderr) = env.run(&["run", "go"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(count_notices(&env.facts()), 1);
}

#[test]
fn command_output_is_streamed_and_its_colors_are_kept() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let command = "echo one; sleep 0.5; printf '\\033[31mtwo\\033[0m\\033[2J\\n'; sleep 0.5";
    let arguments = json!({ "command": command }).to_string();
    let (_, stream, _) = env.run(&["tool", "call", "--output", "events", "bash", &arguments]);
    let events: Vec<Value> = stream.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let position = |kind: &str| events.iter().position(|event| event["kind"] == kind).unwrap();
    assert!(position("command_output") < position("call_settled"), "{stream}");
    let printed: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"] == "command_output")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert_eq!(printed.concat(), "one\n\u{1b}[31mtwo\u{1b}[0m\u{1b}[2J\n");
    assert!(printed.len() >= 2, "{printed:?}");
    let output = &events[position("call_settled")]["outcome"]["output"];
    assert_eq!(output["text"], "one\ntwo\n(exit code 0 after 1 s)");
    let display = json!({
        "form": "terminal",
        "colored_text": "one\n\u{1b}[31mtwo\u{1b}[0m\n(exit code 0 after 1 s)",
    });
    assert_eq!(output["display"], display);
}

#[test]
fn an_interrupt_ends_a_command_and_keeps_its_output() {
    let call = json!({"command": "echo begun; sleep 60006"});
    let env = TestEnv::new(&[&format!("call bash {call}")], ALLOW_ALL);
    let mut child = env.windlass(&["run", "go"]).spawn().unwrap();
    let start = Instant::now();
    while count_processes("sleep 60006") < 2 {
        assert!(
            start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(20)),
            "the command did not start"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let stopped = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(
        stopped.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
        "{:?}",
        stopped.elapsed()
    );
    assert!(processes_end("sleep 60006", Duration::from_secs(2)));
    let facts = env.facts();
    let interrupted = facts.iter().find(|r| r["outcome"]["status"] == "interrupted").unwrap();
    assert!(interrupted["outcome"]["text"].as_str().unwrap().contains("begun"));
}

#[test]
fn saved_approvals_are_listed_applied_and_revoked() {
    let env = TestEnv::new(&[], "");
    let approvals = env.data().join("approvals.json");
    let root = env.root().canonicalize().unwrap();
    std::fs::create_dir_all(env.data()).unwrap();
    assert_eq!(bash(&env, &[], "make all").0, 3);
    let saved = json!({"projects": {root.to_str().unwrap(): [
        {"key": "bash", "subject": "echo x > k.txt", "at": 1},
        {"key": "bash like", "subject": "cargo test *", "at": 1},
    ]}});
    let _ = std::fs::write(&approvals, saved.to_string());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&approvals, mode).unwrap();
    let (_, list, stderr) = env.run(&["permission", "list"]);
    assert!(list.contains("cargo test *"), "{list}{stderr}");
    assert_eq!(bash(&env, &[], "echo x > k.txt").0, 0);
    assert_eq!(bash(&env, &[], "echo x >  k.txt").0, 3, "the approval covers only this exact text");
    let (_, explanation, _) = env.run(&["permission", "explain", "cargo test --lib"]);
    assert!(explanation.starts_with("allow"), "{explanation}");
    let (_, explanation, _) = env.run(&["permission", "explain", "cargo test --lib; ls"]);
    assert!(explanation.starts_with("ask"), "{explanation}");
    assert_eq!(env.run(&["permission", "revoke", "1"]).0, 0);
    assert_eq!(bash(&env, &[], "echo x > k.txt").0, 3);
}

#[test]
fn a_writable_folder_must_exist_and_must_not_be_a_link() {
    let env = TestEnv::new(&[], "");
    let home = env.home().canonicalize().unwrap();
    for name in ["cache", "elsewhere"] {
        std::fs::create_dir(home.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(home.join("elsewhere"), home.join("link")).unwrap();
    std::fs::write(home.join("file"), "").unwrap();
    let list = ["cache", "link", "none", "file"].map(|name| home.join(name).display().to_string());
    let set = |list: &[String]| {
        let write = Value::from(list.to_vec());
        env.write_config(&format!(r#"{{"permission": "allow", "sandbox": {{"write": {write}}}}}"#));
    };
    set(&list);
    let command = format!(
        "cd {}; echo x > cache/a; echo x > link/b; echo x > elsewhere/c; echo x > file; true",
        home.display()
    );
    let (code, _, stderr) = bash(&env, &["--yes"], &command);
    assert_eq!(code, 0, "{stderr}");
    assert!(home.join("cache/a").exists(), "{stderr}");
    assert!(!home.join("elsewhere/b").exists() && !home.join("elsewhere/c").exists(), "{stderr}");
    for (name, why) in
        [("link", "through a link"), ("none", "does not exist"), ("file", "not a folder")]
    {
        let prefix = format!("/{name} (sandbox.write): it ");
        let warning = stderr.lines().find(|line| line.contains(&prefix)).expect(&stderr);
        assert!(warning.contains(why), "{warning}");
    }
    let doctor = env.run(&["doctor"]).1;
    assert!(doctor.contains(&format!("write      {}\n", list[0])), "{doctor}");
    set(&[home.display().to_string()]);
    let (code, _, stderr) = bash(&env, &["--yes"], "true");
    assert!(code == 2 && stderr.contains("windlass.jsonc:1:"), "{stderr}");
    assert!(stderr.contains("contains your whole home folder"), "{stderr}");
}

#[test]
fn an_invalid_host_is_reported_once_with_its_location() {
    for (host, why) in [
        ("https://crates.io/", "invalid host"),
        ("evil.example\\u0000.crates.io", "invalid host"),
        ("", "invalid host"),
    ] {
        let env = TestEnv::new(&[], "");
        env.write_config(&format!(
            "{{\"sandbox\": {{\"network\": [\"a.example\",\n\"{host}\"]}}}}"
        ));
        let (code, _, stderr) = bash(&env, &[], "true");
        assert!(code == 2 && stderr.contains("windlass.jsonc:2:1: sandbox.network: "), "{stderr}");
        assert!(stderr.contains(why) && stderr.matches("invalid host").count() == 1, "{stderr}");
        let (code, out, stderr) = env.run(&["doctor"]);
        assert!(code == 1 && stderr.contains("windlass.jsonc:2:1: sandbox.network: "), "{stderr}");
        assert!(out.contains("network    a.example (") && out.contains("bash "), "{out}");
    }
}

#[test]
fn windlass_refuses_to_run_in_the_root_folder_and_in_its_own_folders() {
    let env = TestEnv::new(&[], "");
    let config = env.home().join(".config/windlass");
    std::fs::create_dir_all(env.data().join("deep")).unwrap();
    let link = env.root().join("link");
    std::os::unix::fs::symlink(&config, &link).unwrap();
    for folder in [Path::new("/"), &config, &env.data(), &env.data().join("deep"), &link] {
        let list = r#"{"path": "."}"#;
        for arguments in [&["tool", "call", "list", list][..], &["trust", "--yes"], &["run", "p"]] {
            let output = env.windlass(arguments).current_dir(folder).output().unwrap();
            let (code, out, stderr) = support::decode_output(&output);
            assert!(code == 2 && out.is_empty(), "{folder:?} {arguments:?}: {stderr}");
            assert!(stderr.contains("in a project folder"), "{stderr}");
        }
    }
    let output = env.windlass(&["permission", "list"]).current_dir(env.home()).output().unwrap();
    assert_eq!(support::decode_output(&output).0, 0, "the home folder is not refused");
    let (code, _, stderr) =
        support::decode_output(&env.windlass(&["doctor"]).env("HOME", "project").output().unwrap());
    assert!(code == 2 && stderr.contains("set HOME to its absolute path"), "{stderr}");
}

/// Runs the binary where neither bubblewrap nor Landlock is available.
fn run_without_sandbox(env: &TestEnv, arguments: &[&str]) -> (i32, String, String) {
    #[rustfmt::skip]
    let wrapper = [
        "bwrap", "--dev-bind", "/", "/", "--bind", "/dev/null", "/usr/bin/bwrap", "--",
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset",
        "-e", "inject=landlock_create_ruleset:error=EOPNOTSUPP",
    ];
    support::decode_output(&env.wrapped(&wrapper, arguments).output().unwrap())
}

#[test]
fn without_a_sandbox_a_warning_is_shown_and_no_command_runs_without_approval() {
    let env = TestEnv::new(&["say Done.", "say Done."], "");
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    assert!(env.run(&["doctor"]).1.contains("mode       auto\n"));
    let (_, out, _) = run_without_sandbox(&env, &["doctor"]);
    assert!(out.contains("mode       ask\n") && out.contains("NO SANDBOX"), "{out}");
    let touch = r#"{"command": "touch made"}"#;
    let (code, _, stderr) = run_without_sandbox(&env, &["tool", "call", "bash", touch]);
    assert!(code == 3 && stderr.contains("warning: NO SANDBOX"), "{stderr}");
    assert_eq!(env.read("made"), None);
    let (_, _, stderr) = run_without_sandbox(&env, &["run", "p"]);
    assert!(stderr.contains("warning: NO SANDBOX"), "{stderr}");
    for arguments in
        [&["session", "list"][..], &["tool", "call", "read", r#"{"filePath": "README.md"}"#]]
    {
        let (code, _, stderr) = run_without_sandbox(&env, arguments);
        assert!(code == 0 && !stderr.contains("NO SANDBOX"), "{stderr}");
    }
    let write = r#"{"filePath": "made", "content": "x"}"#;
    assert_eq!(
        run_without_sandbox(&env, &["tool", "call", "write", write]).0,
        3,
        "the mode is ask, not auto"
    );
    let (_, _, stderr) = env.run(&["tool", "call", "bash", touch]);
    assert!(!stderr.contains("NO SANDBOX") && env.read("made").is_some(), "{stderr}");
}

#[test]
fn doctor_shows_how_the_config_changes_the_sandbox() {
    let settings = r#""mode": "plan", "sandbox": {"enabled": false, "network": ["git-hosts"]}"#;
    let env = TestEnv::new(&[], settings);
    let (code, out, _) = env.run(&["doctor"]);
    assert_eq!(code, 0);
    assert!(
        out.contains("mode       plan (") && out.contains("sandbox    OFF by config ("),
        "{out}"
    );
    assert!(out.contains("network    git-hosts ("), "{out}");
    let (_, out, _) = TestEnv::new(&[], "").run(&["doctor"]);
    assert!(out.contains("network    blocked for commands") && !out.contains("OFF"), "{out}");
    let env = TestEnv::new(&[], r#""sandbox": {"enabled": false}"#);
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    assert!(env.run(&["doctor"]).1.contains("mode       ask\n"), "auto needs a sandbox");
}

/// The binary in a pseudoterminal.
struct PtyTestProcess {
    pty: std::fs::File,
    child: std::process::Child,
    /// Output that `read_until` has not returned yet.
    output: String,
}

impl PtyTestProcess {
    fn new(env: &TestEnv, arguments: &[&str], typed_ahead: &str) -> PtyTestProcess {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        use std::io::Write;
        let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&pty).unwrap();
        unlockpt(&pty).unwrap();
        let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
        let terminal = std::fs::File::options().read(true).write(true).open(name).unwrap();
        let mut pty = std::fs::File::from(pty);
        pty.write_all(typed_ahead.as_bytes()).unwrap();
        let mut command = env.windlass(arguments);
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
        let child = command.stderr(terminal).spawn().unwrap();
        PtyTestProcess { pty, child, output: String::new() }
    }

    /// Reads until the output contains `mark`, and returns the output.
    fn read_until(&mut self, mark: &str) -> String {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use std::io::Read;
        let mut piece = [0; 4096];
        while !self.output.contains(mark) {
            let ready = {
                let mut ready = [PollFd::new(&self.pty, PollFlags::IN)];
                poll(&mut ready, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap()
            };
            assert!(ready > 0, "{mark} did not appear: {}", self.output);
            let read = self.pty.read(&mut piece).unwrap_or(0);
            assert!(read > 0, "{mark} did not appear: {}", self.output);
            self.output.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        std::mem::take(&mut self.output)
    }

    fn press(&mut self, keys: &str) {
        std::io::Write::write_all(&mut self.pty, keys.as_bytes()).unwrap();
    }

    /// Waits for the end of the process and returns its exit code.
    fn wait(mut self) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            if start.elapsed() > Duration::from_secs(20) {
                self.child.kill().unwrap();
                panic!("the process did not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn input_typed_before_a_question_does_not_answer_it() {
    let env = TestEnv::new(&[], "");
    let touch = r#"{"command": "touch made; touch more"}"#;
    let line = ["tool", "call", "bash", touch];
    let mut terminal = PtyTestProcess::new(&env, &line, "y\ny\n");
    terminal.read_until("reason to deny: ");
    std::thread::sleep(Duration::from_millis(700));
    assert!(terminal.child.try_wait().unwrap().is_none(), "the question was answered");
    assert_eq!(env.read("made"), None);
    terminal.press("kq\n");
    terminal.read_until("Invalid answer. [y]es, allow exactly this command for this [s]ession");
    terminal.press("y\n");
    assert_eq!(terminal.wait(), 0);
    assert!(env.read("made").is_some());
}

#[test]
fn leaving_the_sandbox_can_only_be_approved_once_or_denied() {
    let env = TestEnv::new(&[], "");
    let outside = json!({"command": "touch made\ntouch more", "outside": true}).to_string();
    let mut terminal = PtyTestProcess::new(&env, &["tool", "call", "bash", &outside], "");
    let output = terminal.read_until("reason to deny: ");
    assert!(output.contains("run, 2 lines:\r\n  │ touch made\r\n  │ touch more\r\n"), "{output}");
    assert!(
        output.contains("  │ run outside the sandbox\r\n") && !output.contains("[s]ession"),
        "{output}"
    );
    for invalid in ["s", "p", "ks", "kp"] {
        terminal.press(&format!("{invalid}\n"));
        terminal.read_until("Invalid answer. [y]es, [n]o, or type a reason to deny: ");
    }
    assert_eq!(env.read("made"), None);
    terminal.press("n\n");
    assert_eq!(terminal.wait(), 3);
    assert_eq!(env.read("made"), None);
}
