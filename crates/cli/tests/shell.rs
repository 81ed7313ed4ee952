//! Commands, as a person meets them: contained, bounded, told about, and gone when it is over.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::expect_fun_call,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use yard::Yard;

const ALLOWED: &str = r#""permission": "allow""#;

/// Calls `bash` without a model.
fn bash(yard: &Yard, flags: &[&str], command: &str) -> (i32, String, String) {
    let arguments = json!({ "command": command }).to_string();
    let line: Vec<&str> = ["tool", "call"]
        .iter()
        .chain(flags)
        .chain(&["bash", arguments.as_str()])
        .copied()
        .collect();
    yard.run(&line)
}

/// How many processes have this in their command line.
fn living(mark: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    });
    lines.filter(|(pid, line)| *pid != std::process::id() && line.contains(mark)).count()
}

fn gone(mark: &str, patience: Duration) -> bool {
    let start = Instant::now();
    while living(mark) > 0 {
        if start.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn tries(few: usize, many: usize) -> usize {
    if std::env::var_os("WINDLASS_SOAK").is_some() { many } else { few }
}

#[test]
fn a_command_gives_its_output_in_order_and_its_exit_code() {
    let yard = Yard::new(&[], ALLOWED);
    let (code, out, _) = bash(&yard, &[], "echo one; echo two >&2; echo three; exit 7");
    assert_eq!((code, out.as_str()), (0, "one\ntwo\nthree\n(exit code 7)\n"));
    let (_, out, _) = bash(&yard, &[], "true");
    assert_eq!(out, "(no output)\n(exit code 0)\n");
    let (_, out, _) = bash(&yard, &[], "kill -SEGV $$");
    assert!(out.contains("ended by signal 11") || out.contains("exit code 139"), "{out}");
}

/// Calls `bash` with a command whose last line is the time, and says how long after that the call
/// was over, with all the command said.
fn back_after(yard: &Yard, command: &str) -> (u64, String) {
    let arguments = json!({ "command": format!("{command}; date +%s%3N") }).to_string();
    let line = ["tool", "call", "--output", "events", "bash", arguments.as_str()];
    let (code, stream, notes) = yard.run(&line);
    assert_eq!(code, 0, "{notes}");
    let mut events = stream.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let settled = events.find(|event| event["kind"] == "settled").expect(&stream);
    let text = settled["outcome"]["output"]["text"].as_str().unwrap().to_owned();
    let is_time = |line: &&str| line.len() == 13 && line.chars().all(|c| c.is_ascii_digit());
    let ended: u64 = text.lines().find(is_time).expect(&text).parse().unwrap();
    (settled["at"].as_u64().unwrap().saturating_sub(ended), text)
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
fn what_stays_in_the_background_is_named_and_ends_with_the_session() {
    let yard = Yard::new(&[], ALLOWED);
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
        let (late, out) = back_after(&yard, command);
        assert!(late < 1_000, "{command}: {late} ms");
        assert!(out.contains("still running"), "{command}: {out}");
        let named = out.split_once("still running").unwrap().1;
        assert!(named.contains(name) && named.contains(" (pid "), "{command}: {out}");
        assert!(gone(mark, Duration::from_secs(2)), "{command}");
    }
}

/// The most memory a process has had, in kB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn output_without_end_does_not_grow_in_memory() {
    let yard = Yard::new(&[], ALLOWED);
    let arguments =
        json!({ "command": "sleep 0.5; touch going; timeout 2 yes; echo over" }).to_string();
    let child = yard.windlass(&["tool", "call", "bash", &arguments]).spawn().unwrap();
    let (pid, going) = (child.id(), yard.root().join("going"));
    let watch = std::thread::spawn(move || {
        let (start, mut before, mut most) = (Instant::now(), 0, 0);
        while start.elapsed() < Duration::from_secs(20)
            && let Some(now) = peak(pid)
        {
            // What it takes until the command says something is not what this is about.
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
    for attempt in 0..tries(6, 100) {
        let (yard, number) = (Yard::new(&[], ALLOWED), 70_000 + attempt);
        let shapes = [
            format!("sleep {number} & setsid sleep {number} & nohup sleep {number}"),
            format!("(setsid sleep {number} &); exec sleep {number}"),
            format!("trap '' TERM HUP; sleep {number}"),
        ];
        let arguments = json!({"command": shapes[attempt % shapes.len()]}).to_string();
        let mut child = yard.windlass(&["tool", "call", "bash", &arguments]).spawn().unwrap();
        let start = Instant::now();
        let mark = format!("sleep {number}");
        while living(&mark) < 2 {
            assert!(start.elapsed() < Duration::from_secs(20), "it never started");
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let killed = Instant::now();
        assert!(gone(&mark, Duration::from_secs(2)), "{}", shapes[attempt % shapes.len()]);
        slowest = slowest.max(killed.elapsed());
    }
    println!("the slowest end of everything took {slowest:?}");
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_what_it_said() {
    let yard = Yard::new(&[], ALLOWED);
    let arguments = r#"{"command": "echo begun; sleep 60005", "timeout": 500}"#;
    let start = Instant::now();
    let (code, out, _) = yard.run(&["tool", "call", "bash", arguments]);
    assert!(code == 0 && start.elapsed() < Duration::from_secs(8));
    assert!(out.starts_with("begun\n(ended, because it still ran after 0.5 s."), "{out}");
    assert!(gone("sleep 60005", Duration::from_secs(2)));
}

#[test]
fn output_without_end_costs_little_and_is_counted() {
    let yard = Yard::new(&[], ALLOWED);
    let (_, out, _) = bash(&yard, &[], "yes | head -c 3000000000; echo; echo end");
    assert!(out.contains("of 3000000005 bytes in 1500000002 lines"), "{}", out.len());
    assert!(out.starts_with("y\ny\n") && out.contains("\nend\n(exit code 0"), "{}", out.len());
    assert!(out.len() < 60_000, "{}", out.len());
}

#[test]
fn the_sandbox_holds_and_the_model_is_told_what_to_do() {
    let yard = Yard::new(&[], ALLOWED);
    let home = yard.home();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id_rsa"), "PRIVATE").unwrap();
    let (_, out, _) = bash(&yard, &[], "echo in > inside.txt; cat inside.txt");
    assert!(out.starts_with("in\n"), "{out}");
    assert_eq!(yard.read("inside.txt").as_deref(), Some("in\n"));
    let (_, out, _) = bash(&yard, &["--yes"], "echo x > /usr/windlass-outside");
    assert!(!Path::new("/usr/windlass-outside").exists());
    assert!(out.contains("/usr/windlass-outside is outside the workspace"), "{out}");
    let near = yard.home().join("near.txt");
    bash(&yard, &["--yes"], &format!("echo x > {}", near.display()));
    assert!(!near.exists());
    let script = "cat $HOME/.ss[h]/id_rsa; x=.ssh; cat $HOME/$x/id_rsa; env";
    let (_, out, _) = bash(&yard, &["--yes"], script);
    assert!(!out.contains("PRIVATE") && !out.contains("sk-very-secret"), "{out}");
    let (_, out, _) = bash(&yard, &["--yes"], "d=vscode; mkdir .$d");
    assert!(out.contains("exit code 1") && out.contains("is protected, because"), "{out}");
    assert!(!yard.root().join(".vscode").exists());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (_, out, _) =
        bash(&yard, &["--yes"], &format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo rc=$?"));
    assert!(out.contains("refused") && !out.contains("rc=0"), "{out}");
    let (_, out, _) = bash(&yard, &["--yes"], "getent hosts example.com; echo rc=$?");
    assert!(out.contains("rc=2"), "{out}");
}

#[test]
fn modes_are_kept_by_grant_and_sandbox() {
    let yard = Yard::new(&[], "");
    let write = r#"{"filePath": "w.txt", "content": "w"}"#;
    let file = |mode: &str| yard.run(&["tool", "call", "--mode", mode, "write", write]).0;
    let shell = |mode: &str, command: &str| bash(&yard, &["--mode", mode], command);

    assert_eq!((file("plan"), yard.read("w.txt")), (3, None));
    assert_eq!(shell("plan", "ls").0, 0);
    let (code, out, _) = bash(&yard, &["--mode", "plan", "--yes"], "echo x > p.txt");
    assert!(code == 0 && out.contains("Nothing can be written in this mode"), "{out}");
    assert_eq!(yard.read("p.txt"), None);

    assert_eq!((file("ask"), yard.read("w.txt")), (3, None));
    assert_eq!((shell("ask", "cat README.md").0, shell("ask", "echo x > a.txt").0), (0, 3));

    assert_eq!((file("auto"), yard.read("w.txt").as_deref()), (0, Some("w")));
    assert_eq!(shell("auto", "echo x > a.txt && for f in *; do echo $f; done").0, 0);
    assert_eq!(yard.read("a.txt").as_deref(), Some("x\n"));
    for asked in ["npm install", "rm -rf .", "git push", "sudo ls", "$x"] {
        assert_eq!(shell("auto", asked).0, 3, "{asked}");
    }

    let (code, out, _) = shell("full", "curl -s -m 5 http://example.com; echo rc=$?");
    assert!(code == 0 && !out.contains("rc=0"), "{out}");
    assert_eq!(shell("full", "echo x > .git/config").0, 3, "protected stays protected");
}

#[test]
fn only_a_person_lets_a_command_out_of_the_sandbox() {
    let out = Path::new("/tmp").join(format!("windlass-out-{}", std::process::id()));
    let command = format!("echo x > {}", out.display());
    let outside = json!({"command": command, "outside": true}).to_string();
    let yard = Yard::new(&[], ALLOWED);
    let (code, _, notes) = yard.run(&["tool", "call", "--yes", "bash", &outside]);
    assert!(code == 3 && notes.contains("only a person at the terminal"), "{notes}");
    for mode in ["full", "plan"] {
        let (code, _, notes) =
            yard.run(&["tool", "call", "--mode", mode, "--yes", "bash", &outside]);
        assert!(code == 3, "{mode}: {notes}");
    }
    assert!(!out.exists());

    let yard = Yard::new(&[], r#""permission": "allow", "sandbox": {"enabled": false}"#);
    let (code, _, notes) = bash(&yard, &[], &command);
    assert!(code == 0 && out.exists(), "{notes}");
    assert!(notes.contains("the sandbox is off"), "it is said loudly: {notes}");
    std::fs::remove_file(&out).unwrap();
    let (code, _, notes) = bash(&yard, &["--sandbox", "on"], &command);
    assert!(code == 0 && !out.exists(), "{notes}");
}

#[test]
fn a_command_reaches_listed_hosts_by_name_and_every_decision_is_an_event() {
    let script = "curl -sS -m 5 http://listed.invalid/ ; curl -sS -m 5 http://other.invalid/ ; \
                  curl -sS -m 5 http://10.0.0.1:1/ ; echo over";
    let settings = r#""permission": "allow", "sandbox": {"network": ["listed.invalid"]}"#;
    let yard = Yard::new(&[], settings);
    let arguments = json!({ "command": script }).to_string();
    let (_, stream, _) = yard.run(&["tool", "call", "--output", "events", "bash", &arguments]);
    let events: Vec<Value> =
        stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reached: Vec<&Value> = events.iter().filter(|live| live["kind"] == "reached").collect();
    let hosts: Vec<&str> = reached.iter().filter_map(|live| live["host"].as_str()).collect();
    assert_eq!(hosts, ["listed.invalid:80", "other.invalid:80", "10.0.0.1:1"]);
    assert!(reached[1]["refused"].as_str().unwrap().contains("not"), "{stream}");
}

#[test]
fn a_model_works_with_jobs_and_hears_when_one_ends() {
    let start = json!({"command": "read x; echo got $x; sleep 0.3; exit 3", "background": true});
    let replies = [
        format!("call bash {start}"),
        format!("call job {}", json!({"id": 1, "action": "write", "input": "hello\n"})),
        format!("call job {}", json!({"id": 1, "action": "wait"})),
        "say Done.".to_owned(),
    ];
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let yard = Yard::new(&replies, ALLOWED);
    let (code, _, notes) = yard.run(&["run", "go"]);
    assert_eq!(code, 0, "{notes}");
    let facts = yard.facts();
    let texts: Vec<&str> =
        facts.iter().filter_map(|record| record["outcome"]["output"]["text"].as_str()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1].contains("got hello") && texts[2].contains("exit code 3"), "{texts:?}");
    let told = facts.iter().filter(|record| record["kind"] == "context_changed").count();
    assert_eq!(told, 1);
}

#[test]
fn what_a_command_prints_is_seen_as_it_prints_and_its_colours_are_kept() {
    let yard = Yard::new(&[], ALLOWED);
    let command = "echo one; sleep 0.5; printf '\\033[31mtwo\\033[0m\\033[2J\\n'; sleep 0.5";
    let arguments = json!({ "command": command }).to_string();
    let (_, stream, _) = yard.run(&["tool", "call", "--output", "events", "bash", &arguments]);
    let events: Vec<Value> = stream.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let place = |kind: &str| events.iter().position(|event| event["kind"] == kind).unwrap();
    assert!(place("output") < place("settled"), "{stream}");
    let printed: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"] == "output")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert_eq!(printed.concat(), "one\n\u{1b}[31mtwo\u{1b}[0m\u{1b}[2J\n");
    assert!(printed.len() >= 2, "{printed:?}");
    let output = &events[place("settled")]["outcome"]["output"];
    assert_eq!(output["text"], "one\ntwo\n(exit code 0 after 1 s)");
    let display = json!({
        "form": "terminal",
        "coloured": "one\n\u{1b}[31mtwo\u{1b}[0m\n(exit code 0 after 1 s)",
    });
    assert_eq!(output["display"], display);
}

#[test]
fn an_interrupt_ends_a_command_and_keeps_what_it_said() {
    let call = json!({"command": "echo begun; sleep 60006"});
    let yard = Yard::new(&[&format!("call bash {call}")], ALLOWED);
    let mut child = yard.windlass(&["run", "go"]).spawn().unwrap();
    let start = Instant::now();
    while living("sleep 60006") < 2 {
        assert!(start.elapsed() < Duration::from_secs(20), "it never started");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let stopped = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(stopped.elapsed() < Duration::from_secs(5), "{:?}", stopped.elapsed());
    assert!(gone("sleep 60006", Duration::from_secs(2)));
    let facts = yard.facts();
    let interrupted = facts.iter().find(|r| r["outcome"]["status"] == "interrupted").unwrap();
    assert!(interrupted["outcome"]["text"].as_str().unwrap().contains("begun"));
}

#[test]
fn what_was_allowed_for_good_is_kept_listed_and_taken_back() {
    let yard = Yard::new(&[], "");
    let approvals = yard.data().join("approvals.json");
    let root = yard.root().canonicalize().unwrap();
    std::fs::create_dir_all(yard.data()).unwrap();
    assert_eq!(bash(&yard, &[], "make all").0, 3);
    let kept = json!({"projects": {root.to_str().unwrap(): [
        {"key": "bash", "subject": "echo x > k.txt", "at": 1},
        {"key": "bash like", "subject": "cargo test *", "at": 1},
    ]}});
    let _ = std::fs::write(&approvals, kept.to_string());
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&approvals, mode).unwrap();
    let (_, list, notes) = yard.run(&["permission", "list"]);
    assert!(list.contains("cargo test *"), "{list}{notes}");
    assert_eq!(bash(&yard, &[], "echo x > k.txt").0, 0);
    assert_eq!(bash(&yard, &[], "echo x >  k.txt").0, 3, "only as it was allowed");
    let (_, told, _) = yard.run(&["permission", "explain", "cargo test --lib"]);
    assert!(told.starts_with("allow"), "{told}");
    let (_, told, _) = yard.run(&["permission", "explain", "cargo test --lib; ls"]);
    assert!(told.starts_with("ask"), "{told}");
    assert_eq!(yard.run(&["permission", "revoke", "1"]).0, 0);
    assert_eq!(bash(&yard, &[], "echo x > k.txt").0, 3);
}

#[test]
fn a_folder_to_write_to_is_itself_and_no_link() {
    let yard = Yard::new(&[], "");
    let home = yard.home().canonicalize().unwrap();
    for name in ["cache", "elsewhere"] {
        std::fs::create_dir(home.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(home.join("elsewhere"), home.join("link")).unwrap();
    std::fs::write(home.join("file"), "").unwrap();
    let list = ["cache", "link", "none", "file"].map(|name| home.join(name).display().to_string());
    let set = |list: &[String]| {
        let write = Value::from(list.to_vec());
        yard.write_config(&format!(
            r#"{{"permission": "allow", "sandbox": {{"write": {write}}}}}"#
        ));
    };
    set(&list);
    let command = format!(
        "cd {}; echo x > cache/a; echo x > link/b; echo x > elsewhere/c; echo x > file; true",
        home.display()
    );
    let (code, _, notes) = bash(&yard, &["--yes"], &command);
    assert_eq!(code, 0, "{notes}");
    assert!(home.join("cache/a").exists(), "{notes}");
    assert!(!home.join("elsewhere/b").exists() && !home.join("elsewhere/c").exists(), "{notes}");
    for (name, why) in [("link", "by a link"), ("none", "does not exist"), ("file", "not a folder")]
    {
        let told = format!("/{name} (sandbox.write): it ");
        let told = notes.lines().find(|line| line.contains(&told)).expect(&notes);
        assert!(told.contains(why), "{told}");
    }
    let doctor = yard.run(&["doctor"]).1;
    assert!(doctor.contains(&format!("write     {}\n", list[0])), "{doctor}");
    set(&[home.display().to_string()]);
    let (code, _, notes) = bash(&yard, &["--yes"], "true");
    assert!(code == 2 && notes.contains("windlass.jsonc:1:"), "{notes}");
    assert!(notes.contains("holds your whole home folder"), "{notes}");
}

#[test]
fn a_host_that_cannot_be_used_is_named_with_its_place_and_its_fault() {
    for (host, why) in [
        ("https://crates.io/", "is not a host"),
        ("evil.example\\u0000.crates.io", "is not a host"),
        ("", "is not a host"),
    ] {
        let yard = Yard::new(&[], "");
        yard.write_config(&format!(
            "{{\"sandbox\": {{\"network\": [\"a.example\",\n\"{host}\"]}}}}"
        ));
        let (code, _, told) = bash(&yard, &[], "true");
        assert!(code == 2 && told.contains("windlass.jsonc:2:1: sandbox.network: "), "{told}");
        assert!(told.contains(why) && told.matches("is not a host").count() == 1, "{told}");
        let (code, out, told) = yard.run(&["doctor"]);
        assert!(code == 1 && told.contains("windlass.jsonc:2:1: sandbox.network: "), "{told}");
        assert!(out.contains("network   a.example (") && out.contains("bash "), "{out}");
    }
}

#[test]
fn windlass_does_not_work_where_its_own_files_are() {
    let yard = Yard::new(&[], "");
    let config = yard.home().join(".config/windlass");
    std::fs::create_dir_all(yard.data().join("deep")).unwrap();
    let link = yard.root().join("link");
    std::os::unix::fs::symlink(&config, &link).unwrap();
    for folder in [Path::new("/"), &config, &yard.data(), &yard.data().join("deep"), &link] {
        let list = r#"{"path": "."}"#;
        for arguments in [&["tool", "call", "list", list][..], &["trust", "--yes"], &["run", "p"]] {
            let output = yard.windlass(arguments).current_dir(folder).output().unwrap();
            let (code, out, told) = yard::told(&output);
            assert!(code == 2 && out.is_empty(), "{folder:?} {arguments:?}: {told}");
            assert!(told.contains("in the folder of a project"), "{told}");
        }
    }
    let output = yard.windlass(&["permission", "list"]).current_dir(yard.home()).output().unwrap();
    assert_eq!(yard::told(&output).0, 0, "the home is a folder like any other");
    let (code, _, told) =
        yard::told(&yard.windlass(&["doctor"]).env("HOME", "project").output().unwrap());
    assert!(code == 2 && told.contains("set HOME to its absolute path"), "{told}");
}

/// Runs the binary where neither bubblewrap nor Landlock can be had.
fn without_sandbox(yard: &Yard, arguments: &[&str]) -> (i32, String, String) {
    #[rustfmt::skip]
    let wrapper = [
        "bwrap", "--dev-bind", "/", "/", "--bind", "/dev/null", "/usr/bin/bwrap", "--",
        "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset",
        "-e", "inject=landlock_create_ruleset:error=EOPNOTSUPP",
    ];
    yard::told(&yard.wrapped(&wrapper, arguments).output().unwrap())
}

#[test]
fn a_machine_without_a_sandbox_says_so_and_runs_nothing_unasked() {
    let yard = Yard::new(&["say Done.", "say Done."], "");
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    assert!(yard.run(&["doctor"]).1.contains("mode      auto\n"));
    let (_, out, _) = without_sandbox(&yard, &["doctor"]);
    assert!(out.contains("mode      ask\n") && out.contains("NO SANDBOX"), "{out}");
    let touch = r#"{"command": "touch made"}"#;
    let (code, _, notes) = without_sandbox(&yard, &["tool", "call", "bash", touch]);
    assert!(code == 3 && notes.contains("warning: NO SANDBOX"), "{notes}");
    assert_eq!(yard.read("made"), None);
    let (_, _, notes) = without_sandbox(&yard, &["run", "p"]);
    assert!(notes.contains("warning: NO SANDBOX"), "{notes}");
    for arguments in
        [&["session", "list"][..], &["tool", "call", "read", r#"{"filePath": "README.md"}"#]]
    {
        let (code, _, notes) = without_sandbox(&yard, arguments);
        assert!(code == 0 && !notes.contains("NO SANDBOX"), "{notes}");
    }
    let write = r#"{"filePath": "made", "content": "x"}"#;
    assert_eq!(without_sandbox(&yard, &["tool", "call", "write", write]).0, 3, "ask, not auto");
    let (_, _, notes) = yard.run(&["tool", "call", "bash", touch]);
    assert!(!notes.contains("NO SANDBOX") && yard.read("made").is_some(), "{notes}");
}

#[test]
fn the_doctor_says_what_the_config_does_to_the_sandbox() {
    let settings = r#""mode": "plan", "sandbox": {"enabled": false, "network": ["git-hosts"]}"#;
    let yard = Yard::new(&[], settings);
    let (code, out, _) = yard.run(&["doctor"]);
    assert_eq!(code, 0);
    assert!(out.contains("mode      plan (") && out.contains("sandbox   OFF by config ("), "{out}");
    assert!(out.contains("network   git-hosts ("), "{out}");
    let (_, out, _) = Yard::new(&[], "").run(&["doctor"]);
    assert!(out.contains("network   commands reach no host") && !out.contains("OFF"), "{out}");
    let yard = Yard::new(&[], r#""sandbox": {"enabled": false}"#);
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    assert!(yard.run(&["doctor"]).1.contains("mode      ask\n"), "auto needs a sandbox");
}

/// A person at a terminal: what stands on it, and the keys they press.
struct Terminal {
    screen: std::fs::File,
    child: std::process::Child,
    seen: String,
}

impl Terminal {
    fn new(yard: &Yard, arguments: &[&str], typed_ahead: &str) -> Terminal {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        use std::io::Write;
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&screen).unwrap();
        unlockpt(&screen).unwrap();
        let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
        let keyboard = std::fs::File::options().read(true).write(true).open(name).unwrap();
        let mut screen = std::fs::File::from(screen);
        screen.write_all(typed_ahead.as_bytes()).unwrap();
        let mut command = yard.windlass(arguments);
        command.stdin(keyboard.try_clone().unwrap()).stdout(keyboard.try_clone().unwrap());
        let child = command.stderr(keyboard).spawn().unwrap();
        Terminal { screen, child, seen: String::new() }
    }

    /// Reads until this is on the screen, and returns what came with it.
    fn until(&mut self, mark: &str) -> String {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        use std::io::Read;
        let mut piece = [0; 4096];
        while !self.seen.contains(mark) {
            let ready = {
                let mut ready = [PollFd::new(&self.screen, PollFlags::IN)];
                poll(&mut ready, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap()
            };
            assert!(ready > 0, "{mark} never came: {}", self.seen);
            let read = self.screen.read(&mut piece).unwrap_or(0);
            assert!(read > 0, "{mark} never came: {}", self.seen);
            self.seen.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
        std::mem::take(&mut self.seen)
    }

    fn press(&mut self, keys: &str) {
        std::io::Write::write_all(&mut self.screen, keys.as_bytes()).unwrap();
    }

    fn end(mut self) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            if start.elapsed() > Duration::from_secs(20) {
                self.child.kill().unwrap();
                panic!("it never ended");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let yard = Yard::new(&[], "");
    let touch = r#"{"command": "touch made; touch more"}"#;
    let line = ["tool", "call", "bash", touch];
    let mut terminal = Terminal::new(&yard, &line, "y\ny\n");
    terminal.until("why not: ");
    std::thread::sleep(Duration::from_millis(700));
    assert!(terminal.child.try_wait().unwrap().is_none(), "it was answered");
    assert_eq!(yard.read("made"), None);
    terminal.press("kq\n");
    terminal.until("That cannot be answered here. [y]es, yes for this [s]ession");
    terminal.press("y\n");
    assert_eq!(terminal.end(), 0);
    assert!(yard.read("made").is_some());
}

#[test]
fn leaving_the_sandbox_is_answered_with_yes_or_no() {
    let yard = Yard::new(&[], "");
    let outside = json!({"command": "touch made\ntouch more", "outside": true}).to_string();
    let mut terminal = Terminal::new(&yard, &["tool", "call", "bash", &outside], "");
    let seen = terminal.until("why not: ");
    assert!(seen.contains("run, 2 lines:\r\n  │ touch made\r\n  │ touch more\r\n"), "{seen}");
    assert!(seen.contains("  │ leave the sandbox\r\n") && !seen.contains("[s]ession"), "{seen}");
    for slip in ["s", "p", "ks", "kp"] {
        terminal.press(&format!("{slip}\n"));
        terminal.until("That cannot be answered here. [y]es, [n]o, or why not: ");
    }
    assert_eq!(yard.read("made"), None);
    terminal.press("n\n");
    assert_eq!(terminal.end(), 3);
    assert_eq!(yard.read("made"), None);
}
