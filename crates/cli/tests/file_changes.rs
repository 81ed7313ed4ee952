//! File changes with the real binary: undo and redo, kills during a write, and a full disk.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use support::{TestEnv, decode_output};

const ALLOW_ALL: &str = r#""permission": "allow""#;

fn call(tool: &str, arguments: &serde_json::Value) -> String {
    format!("call {tool} {arguments}")
}

#[test]
fn changes_of_a_turn_are_shown_undone_and_redone() {
    let edit = json!({"filePath": "README.md", "oldString": "small", "newString": "large"});
    let replies = [
        &call("read", &json!({"filePath": "README.md"})),
        &format!(
            "{}\n{}",
            call("edit", &edit),
            call("write", &json!({"filePath": "src/new.txt", "content": "new\n"}))
        ),
        "say Done.",
    ];
    let env = TestEnv::new(&replies, ALLOW_ALL);
    let (code, _, stderr) = env.run(&["run", "change it"]);
    assert_eq!(code, 0, "{stderr}");
    let (before, after) = ("# Hello\nA small project.\n", "# Hello\nA large project.\n");
    assert_eq!(env.read("README.md").as_deref(), Some(after));
    let id = env.last_session_id();

    let (code, diff, _) = env.run(&["session", "diff", &id]);
    assert_eq!(code, 0);
    assert!(
        diff.contains("-A small project.\n+A large project.") && diff.contains("+new"),
        "{diff}"
    );

    let (code, diff, stderr) = env.run(&["session", "undo", &id]);
    assert_eq!(code, 3, "no user is available to approve: {stderr}");
    assert!(diff.contains("-A large project.\n+A small project."), "{diff}");
    assert!(stderr.contains("--yes"), "{stderr}");
    assert_eq!(env.read("README.md").as_deref(), Some(after));

    let (code, _, stderr) = env.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("README.md").as_deref(), Some(before));
    assert_eq!(env.read("src/new.txt"), None);
    let (code, _, stderr) = env.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0);
    assert!(stderr.contains("nothing to undo"), "{stderr}");

    let (code, _, stderr) = env.run(&["session", "redo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("README.md").as_deref(), Some(after));
    assert_eq!(env.read("src/new.txt").as_deref(), Some("new\n"));
    let (_, _, stderr) = env.run(&["session", "redo", "--yes", &id]);
    assert!(stderr.contains("nothing to redo"), "{stderr}");
    let (code, ..) = env.run(&["session", "undo", "--yes", "--all", &id]);
    assert_eq!(code, 0);
    assert_eq!(env.read("README.md").as_deref(), Some(before));
}

#[test]
fn undo_marks_both_versions_of_lines_that_the_user_also_changed() {
    let edit = json!({"filePath": "README.md", "oldString": "small", "newString": "large"});
    let read = call("read", &json!({"filePath": "README.md"}));
    let replies = [read.as_str(), &call("edit", &edit), "say Done."];
    let env = TestEnv::new(&replies, ALLOW_ALL);
    assert_eq!(env.run(&["run", "change it"]).0, 0);
    std::fs::write(env.root().join("README.md"), "# Hello\nA large, old project.\n").unwrap();
    let (code, out, stderr) = env.run(&["session", "undo", "--yes", &env.last_session_id()]);
    assert_eq!(code, 0, "{stderr}");
    assert!(out.contains("both versions are marked"), "{out}{stderr}");
    let marked = env.read("README.md").unwrap();
    assert!(marked.contains("<<<<<<<") && marked.contains("A large, old project."), "{marked}");
    assert!(marked.contains("A small project."), "{marked}");
}

#[test]
fn the_model_is_told_of_an_undo_and_must_read_the_file_before_an_inexact_edit() {
    let edit = |old: &str, new: &str| {
        call("edit", &json!({"filePath": "README.md", "oldString": old, "newString": new}))
    };
    let read = call("read", &json!({"filePath": "README.md"}));
    let replies = [
        read.as_str(),
        &edit("small", "large"),
        "say Done.",
        &edit("A  small", "A huge"),
        read.as_str(),
        &edit("small", "tiny"),
        "say Done again.",
    ];
    let env = TestEnv::new(&replies, ALLOW_ALL);
    assert_eq!(env.run(&["run", "change it"]).0, 0);
    assert_eq!(env.run(&["session", "undo", "--yes", &env.last_session_id()]).0, 0);
    assert_eq!(env.run(&["run", "--continue", "again"]).0, 0);
    assert_eq!(env.read("README.md").as_deref(), Some("# Hello\nA tiny project.\n"));
    let requests = env.model.requests();
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("has changed since you last saw it"), "{last}");
    assert!(last.contains("Restored 1 file"), "{last}");
}

#[test]
fn calls_of_one_step_build_on_each_other_even_if_each_needs_approval() {
    let edit = |path: &str, old: &str, new: &str| {
        call("edit", &json!({"filePath": path, "oldString": old, "newString": new}))
    };
    let step = [
        call("read", &json!({"filePath": "README.md"})),
        edit("README.md", "small", "large"),
        edit("README.md", "large", "huge"),
        call("write", &json!({"filePath": "new.txt", "content": "one\n"})),
        edit("new.txt", "one", "two"),
    ];
    let env = TestEnv::new(&[&step.join("\n"), "say Done."], "");
    let (code, _, stderr) = env.run(&["run", "--yes", "all at once"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("README.md").as_deref(), Some("# Hello\nA huge project.\n"));
    assert_eq!(env.read("new.txt").as_deref(), Some("two\n"));
    let facts = env.facts();
    let shown =
        facts.iter().filter(|fact| fact["kind"] == "permission_asked").map(|fact| &fact["preview"]);
    let shown: Vec<&str> = shown.map(|preview| preview.as_str().unwrap()).collect();
    assert_eq!(shown.len(), 4);
    assert!(shown[1].contains("-A large project.\n+A huge project."), "{}", shown[1]);
}

#[test]
fn an_unfinished_session_cannot_be_undone() {
    let write = call("write", &json!({"filePath": "a.txt", "content": "a\n"}));
    let env = TestEnv::new(&[&write, "late 60000\nsay Done."], ALLOW_ALL);
    let mut child = env.windlass(&["run", "write it"]).spawn().unwrap();
    while env.model.requests().len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, _, stderr) = env.run(&["session", "undo", "--yes", &env.last_session_id()]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("is unfinished"), "{stderr}");
    assert_eq!(env.read("a.txt").as_deref(), Some("a\n"));
}

#[test]
fn a_session_of_another_folder_cannot_be_diffed_or_undone() {
    let write = call("write", &json!({"filePath": "a.txt", "content": "a\n"}));
    let env = TestEnv::new(&[&write, "say Done."], ALLOW_ALL);
    assert_eq!(env.run(&["run", "write it"]).0, 0);
    let id = env.last_session_id();
    let elsewhere = env.home().join("other");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("a.txt"), "a\n").unwrap();
    for command in [["session", "diff"], ["session", "undo"]] {
        let mut session_command = env.windlass(&[command[0], command[1], &id]);
        let (code, out, err) =
            decode_output(&session_command.current_dir(&elsewhere).output().unwrap());
        assert_ne!(code, 0, "{out}");
        assert!(err.contains("belongs to"), "{err}");
    }
}

/// A file with the lines that the agent and the user changed, which are never adjacent.
fn document(agent: &BTreeMap<usize, String>, user: &BTreeMap<usize, String>) -> String {
    let mut text = String::new();
    for line in 0..120 {
        let own = agent.get(&line).or_else(|| user.get(&line));
        let _ = match own {
            Some(own) => writeln!(text, "{own}"),
            None => writeln!(text, "line {line}"),
        };
    }
    text
}

#[test]
fn undo_after_200_steps_reverts_only_the_agents_edits() {
    const TURNS: usize = 40;
    const FILES: [&str; 4] = ["a.txt", "b.txt", "src/c.txt", "src/d.txt"];
    // Each turn reads the files, then makes four edits, one per step.
    let mut agent: [BTreeMap<usize, String>; 4] = Default::default();
    let mut replies = Vec::new();
    for turn in 0..TURNS {
        let reads: Vec<String> =
            FILES.iter().map(|path| call("read", &json!({"filePath": path}))).collect();
        replies.push(reads.join("\n"));
        for (file, path) in FILES.iter().enumerate() {
            let line = ((turn * 7 + file) % 20) * 6 + 1;
            let old = agent[file].get(&line).cloned().unwrap_or(format!("line {line}"));
            let new = format!("agent {turn} in line {line}");
            let edit = json!({"filePath": path, "oldString": format!("{old}\n"), "newString": format!("{new}\n")});
            replies.push(call("edit", &edit));
            agent[file].insert(line, new);
        }
        replies.push("say Next.".to_owned());
    }
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, ALLOW_ALL);
    std::fs::create_dir_all(env.root().join("src")).unwrap();
    for path in FILES {
        let text = document(&BTreeMap::new(), &BTreeMap::new());
        std::fs::write(env.root().join(path), text).unwrap();
    }
    let mut user: [BTreeMap<usize, String>; 4] = Default::default();
    for turn in 0..TURNS {
        let arguments: &[&str] =
            if turn == 0 { &["run", "go on"] } else { &["run", "--continue", "go on"] };
        let (code, _, stderr) = env.run(arguments);
        assert_eq!(code, 0, "{stderr}");
        // The user changes a line in one of the files.
        let (file, line) = (turn % 4, ((turn * 11) % 20) * 6 + 4);
        let path = env.root().join(FILES[file]);
        let text = std::fs::read_to_string(&path).unwrap();
        let old = user[file].get(&line).cloned().unwrap_or(format!("line {line}"));
        let new = format!("user {turn} in line {line}");
        let changed = text.replacen(&format!("\n{old}\n"), &format!("\n{new}\n"), 1);
        assert_ne!(changed, text);
        std::fs::write(&path, changed).unwrap();
        user[file].insert(line, new);
    }
    let steps = env.facts().iter().filter(|fact| fact["kind"] == "files_changing").count();
    assert_eq!(steps, 160, "four changes in each of {TURNS} turns");
    for (file, path) in FILES.iter().enumerate() {
        assert_eq!(env.read(path).unwrap(), document(&agent[file], &user[file]), "{path}");
    }
    let id = env.last_session_id();
    let (code, _, stderr) = env.run(&["session", "undo", "--all", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    for (file, path) in FILES.iter().enumerate() {
        let expected = document(&BTreeMap::new(), &user[file]);
        assert_eq!(env.read(path).unwrap(), expected, "{path}: only the user's lines are left");
    }
    let (code, _, stderr) = env.run(&["session", "redo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    for (file, path) in FILES.iter().enumerate() {
        assert_eq!(env.read(path).unwrap(), document(&agent[file], &user[file]), "{path}");
    }
}

#[test]
fn kill_9_during_a_write_leaves_the_old_file_or_the_new_one() {
    let kills = std::env::var("WINDLASS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let env = TestEnv::new(&[], ALLOW_ALL);
    let contents = ['a', 'b'].map(|fill| format!("{}\n", fill.to_string().repeat(400_000)));
    std::fs::write(env.root().join("big.txt"), &contents[0]).unwrap();
    let (mut killed, mut changed, mut current) = (0, 0, 0);
    let write = |content: &str| {
        let arguments = json!({"filePath": "big.txt", "content": content}).to_string();
        let mut command = env.windlass(&["tool", "call", "write", "-"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), arguments.as_bytes()).unwrap();
        child
    };
    let mut call_time = Duration::ZERO;
    for round in 0..kills {
        // Measures a complete call regularly, so that the kills are spread over its whole duration.
        if round % 25 == 0 {
            let start = std::time::Instant::now();
            assert!(write(&contents[1 - current]).wait().unwrap().success());
            (current, call_time) = (1 - current, start.elapsed());
        }
        let mut child = write(&contents[1 - current]);
        let share = f64::from(round % 50) / 50.0 * 1.2;
        std::thread::sleep(Duration::from_secs_f64(call_time.as_secs_f64() * share));
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        let text = env.read("big.txt").unwrap();
        let which = contents.iter().position(|content| *content == text);
        let which = which.unwrap_or_else(|| panic!("a mix of {} bytes", text.len()));
        changed += usize::from(which != current);
        current = which;
    }
    println!("{killed} of {kills} were killed, {changed} had been written");
    assert!(killed * 2 > kills as usize, "only {killed} of {kills} were killed before the end");
    assert!(changed > 0);
}

#[test]
fn on_a_full_disk_the_old_file_stays_and_an_error_is_reported() {
    let env = TestEnv::new(&[], ALLOW_ALL);
    let (root, binary) = (env.root(), env!("CARGO_BIN_EXE_windlass"));
    let script = format!(
        "mount -t tmpfs -o size=256k none '{root}' && cd '{root}' && echo old > a.txt && \
         '{binary}' tool call write - ; echo exit $?; cat a.txt; ls -A",
        root = root.display()
    );
    let mut command =
        env.wrapped(&["unshare", "--map-root-user", "--mount", "sh", "-c", &script], &[]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let arguments = json!({"filePath": "a.txt", "content": "x".repeat(1_000_000)}).to_string();
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), arguments.as_bytes());
    let (_, out, err) = decode_output(&child.wait_with_output().unwrap());
    assert!(out.contains("exit 1\nold\n"), "{out}\n{err}");
    assert!(format!("{out}{err}").contains("No space left"), "{out}\n{err}");
    assert!(out.trim_end().ends_with("a.txt"), "other files are left: {out}");
}

#[test]
fn an_added_folder_is_used_like_the_project() {
    // Commands have their own `/tmp`.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let lib = folder.path();
    let at = |name: &str| lib.join(name).display().to_string();
    let replies = [
        &call("write", &json!({"filePath": at("a.txt"), "content": "one\n"})),
        &call(
            "bash",
            &json!({"command": format!("cat {} && echo two > {}", at("a.txt"), at("b.txt"))}),
        ),
        &call("grep", &json!({"pattern": "one", "path": lib})),
        &call("write", &json!({"filePath": at(".git/hooks/pre-commit"), "content": "x\n"})),
        "say Done.",
    ];
    let env = TestEnv::new(&replies, "");
    let lib_path = lib.to_str().unwrap();
    let run = ["run", "--mode", "auto", "--add-dir", lib_path, "change it"];
    let (code, _, stderr) = env.run(&run);
    assert_eq!(code, 0, "{stderr}");
    let content = |name: &str| std::fs::read_to_string(lib.join(name)).ok();
    assert_eq!(content("a.txt").as_deref(), Some("one\n"));
    assert_eq!(content("b.txt").as_deref(), Some("two\n"), "{stderr}");
    assert!(!lib.join(".git").exists());
    let facts = serde_json::to_string(&env.facts()).unwrap();
    assert!(facts.contains(&format!("{}\\n  1: one", at("a.txt"))), "{facts}");
    assert!(facts.contains("is protected, because"), "{facts}");

    let id = env.last_session_id();
    let (code, _, stderr) = env.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(content("a.txt"), None, "the change of the tool is undone");
}

#[test]
fn paths_outside_are_asked_about_by_tools_and_commands_alike() {
    let env = TestEnv::new(&[], "");
    // Commands have their own `/tmp`.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let lib = folder.path();
    std::fs::write(lib.join("a.txt"), "text of the library\n").unwrap();
    let path = lib.join("a.txt").display().to_string();
    let call_tool = |tool: &str, arguments: serde_json::Value| {
        env.run(&["tool", "call", "--mode", "auto", tool, &arguments.to_string()])
    };
    let (code, out, _) = call_tool("read", json!({"filePath": "/etc/os-release"}));
    assert!(code == 0 && out.contains("1: "), "{out}");
    for (tool, arguments) in [
        ("read", json!({"filePath": &path})),
        ("grep", json!({"pattern": "text", "path": lib})),
        ("bash", json!({"command": format!("cat {path}")})),
        ("write", json!({"filePath": &path, "content": "x"})),
    ] {
        let (code, out, stderr) = call_tool(tool, arguments);
        assert_eq!(code, 3, "{tool}: {out}{stderr}");
        assert!(!out.contains("text of the library"), "{tool}: {out}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text of the library\n");
}
