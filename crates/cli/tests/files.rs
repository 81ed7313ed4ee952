//! Files, as a person meets them: changes that are taken back, processes that are killed while they
//! write, and a disk that is full.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use yard::{Yard, told};

const ALLOWED: &str = r#""permission": "allow""#;

fn call(tool: &str, arguments: &serde_json::Value) -> String {
    format!("call {tool} {arguments}")
}

/// The id of the last session.
fn last(yard: &Yard) -> String {
    let (_, list, _) = yard.run(&["session", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    list[0]["session"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_turn_changed_is_shown_taken_back_and_done_again() {
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
    let yard = Yard::new(&replies, ALLOWED);
    let (code, _, told) = yard.run(&["run", "change it"]);
    assert_eq!(code, 0, "{told}");
    let (before, after) = ("# Hello\nA small project.\n", "# Hello\nA large project.\n");
    assert_eq!(yard.read("README.md").as_deref(), Some(after));
    let id = last(&yard);

    let (code, diff, _) = yard.run(&["session", "diff", &id]);
    assert_eq!(code, 0);
    assert!(
        diff.contains("-A small project.\n+A large project.") && diff.contains("+new"),
        "{diff}"
    );

    let (code, diff, told) = yard.run(&["session", "undo", &id]);
    assert_eq!(code, 3, "nobody is there to say yes: {told}");
    assert!(diff.contains("-A large project.\n+A small project."), "{diff}");
    assert!(told.contains("--yes"), "{told}");
    assert_eq!(yard.read("README.md").as_deref(), Some(after));

    let (code, _, told) = yard.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(yard.read("README.md").as_deref(), Some(before));
    assert_eq!(yard.read("src/new.txt"), None);
    let (code, _, told) = yard.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0);
    assert!(told.contains("nothing to take back"), "{told}");

    let (code, _, told) = yard.run(&["session", "redo", "--yes", &id]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(yard.read("README.md").as_deref(), Some(after));
    assert_eq!(yard.read("src/new.txt").as_deref(), Some("new\n"));
    let (_, _, told) = yard.run(&["session", "redo", "--yes", &id]);
    assert!(told.contains("nothing to do again"), "{told}");
    let (code, ..) = yard.run(&["session", "undo", "--yes", "--all", &id]);
    assert_eq!(code, 0);
    assert_eq!(yard.read("README.md").as_deref(), Some(before));
}

#[test]
fn where_both_changed_the_same_lines_both_versions_are_marked() {
    let edit = json!({"filePath": "README.md", "oldString": "small", "newString": "large"});
    let read = call("read", &json!({"filePath": "README.md"}));
    let replies = [read.as_str(), &call("edit", &edit), "say Done."];
    let yard = Yard::new(&replies, ALLOWED);
    assert_eq!(yard.run(&["run", "change it"]).0, 0);
    std::fs::write(yard.root().join("README.md"), "# Hello\nA large, old project.\n").unwrap();
    let (code, out, told) = yard.run(&["session", "undo", "--yes", &last(&yard)]);
    assert_eq!(code, 0, "{told}");
    assert!(out.contains("both versions are marked"), "{out}{told}");
    let marked = yard.read("README.md").unwrap();
    assert!(marked.contains("<<<<<<<") && marked.contains("A large, old project."), "{marked}");
    assert!(marked.contains("A small project."), "{marked}");
}

#[test]
fn the_model_is_told_of_an_undo_and_cannot_edit_what_it_has_not_seen_since() {
    let edit = |old: &str, new: &str| {
        call("edit", &json!({"filePath": "README.md", "oldString": old, "newString": new}))
    };
    let read = call("read", &json!({"filePath": "README.md"}));
    let replies = [
        read.as_str(),
        &edit("small", "large"),
        "say Done.",
        &edit("small", "huge"),
        read.as_str(),
        &edit("small", "tiny"),
        "say Done again.",
    ];
    let yard = Yard::new(&replies, ALLOWED);
    assert_eq!(yard.run(&["run", "change it"]).0, 0);
    assert_eq!(yard.run(&["session", "undo", "--yes", &last(&yard)]).0, 0);
    assert_eq!(yard.run(&["run", "--continue", "again"]).0, 0);
    assert_eq!(yard.read("README.md").as_deref(), Some("# Hello\nA tiny project.\n"));
    let requests = yard.model.requests();
    let last = requests.last().unwrap().to_string();
    assert!(last.contains("changed by somebody else"), "{last}");
    assert!(last.contains("Put back 1 file"), "{last}");
}

#[test]
fn calls_of_one_step_build_on_each_other_also_when_each_is_asked_about() {
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
    let yard = Yard::new(&[&step.join("\n"), "say Done."], "");
    let (code, _, told) = yard.run(&["run", "--yes", "all at once"]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(yard.read("README.md").as_deref(), Some("# Hello\nA huge project.\n"));
    assert_eq!(yard.read("new.txt").as_deref(), Some("two\n"));
    let facts = yard.facts();
    let shown = facts.iter().filter(|fact| fact["kind"] == "asked").map(|fact| &fact["preview"]);
    let shown: Vec<&str> = shown.map(|preview| preview.as_str().unwrap()).collect();
    assert_eq!(shown.len(), 4);
    assert!(shown[1].contains("-A large project.\n+A huge project."), "{}", shown[1]);
}

#[test]
fn a_session_in_the_middle_of_something_is_not_undone_over_its_head() {
    let write = call("write", &json!({"filePath": "a.txt", "content": "a\n"}));
    let yard = Yard::new(&[&write, "late 60000\nsay Done."], ALLOWED);
    let mut child = yard.windlass(&["run", "write it"]).spawn().unwrap();
    while yard.model.requests().len() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (code, _, told) = yard.run(&["session", "undo", "--yes", &last(&yard)]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("in the middle of something"), "{told}");
    assert_eq!(yard.read("a.txt").as_deref(), Some("a\n"));
}

#[test]
fn a_session_of_another_folder_is_neither_shown_nor_undone_here() {
    let write = call("write", &json!({"filePath": "a.txt", "content": "a\n"}));
    let yard = Yard::new(&[&write, "say Done."], ALLOWED);
    assert_eq!(yard.run(&["run", "write it"]).0, 0);
    let id = last(&yard);
    let elsewhere = yard.home().join("other");
    std::fs::create_dir_all(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("a.txt"), "a\n").unwrap();
    for command in [["session", "diff"], ["session", "undo"]] {
        let mut there = yard.windlass(&[command[0], command[1], &id]);
        let (code, out, err) = told(&there.current_dir(&elsewhere).output().unwrap());
        assert_ne!(code, 0, "{out}");
        assert!(err.contains("works in"), "{err}");
    }
}

/// Lines of a file: the agent's and the person's lines never touch.
fn document(agent: &BTreeMap<usize, String>, person: &BTreeMap<usize, String>) -> String {
    let mut text = String::new();
    for line in 0..120 {
        let own = agent.get(&line).or_else(|| person.get(&line));
        let _ = match own {
            Some(own) => writeln!(text, "{own}"),
            None => writeln!(text, "line {line}"),
        };
    }
    text
}

#[test]
fn after_200_steps_with_edits_by_a_person_in_between_only_the_agents_are_taken_back() {
    const TURNS: usize = 40;
    const FILES: [&str; 4] = ["a.txt", "b.txt", "src/c.txt", "src/d.txt"];
    // Each turn reads the files, then makes four edits, one a step.
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
    let yard = Yard::new(&replies, ALLOWED);
    std::fs::create_dir_all(yard.root().join("src")).unwrap();
    for path in FILES {
        let text = document(&BTreeMap::new(), &BTreeMap::new());
        std::fs::write(yard.root().join(path), text).unwrap();
    }
    let mut person: [BTreeMap<usize, String>; 4] = Default::default();
    for turn in 0..TURNS {
        let arguments: &[&str] =
            if turn == 0 { &["run", "go on"] } else { &["run", "--continue", "go on"] };
        let (code, _, told) = yard.run(arguments);
        assert_eq!(code, 0, "{told}");
        // The person changes a line of their own in one of the files.
        let (file, line) = (turn % 4, ((turn * 11) % 20) * 6 + 4);
        let path = yard.root().join(FILES[file]);
        let text = std::fs::read_to_string(&path).unwrap();
        let old = person[file].get(&line).cloned().unwrap_or(format!("line {line}"));
        let new = format!("person {turn} in line {line}");
        let changed = text.replacen(&format!("\n{old}\n"), &format!("\n{new}\n"), 1);
        assert_ne!(changed, text);
        std::fs::write(&path, changed).unwrap();
        person[file].insert(line, new);
    }
    let steps = yard.facts().iter().filter(|fact| fact["kind"] == "changing").count();
    assert_eq!(steps, 160, "four changes in each of {TURNS} turns");
    for (file, path) in FILES.iter().enumerate() {
        assert_eq!(yard.read(path).unwrap(), document(&agent[file], &person[file]), "{path}");
    }
    let id = last(&yard);
    let (code, _, told) = yard.run(&["session", "undo", "--all", "--yes", &id]);
    assert_eq!(code, 0, "{told}");
    for (file, path) in FILES.iter().enumerate() {
        let expected = document(&BTreeMap::new(), &person[file]);
        assert_eq!(yard.read(path).unwrap(), expected, "{path}: only the person's lines are left");
    }
    let (code, _, told) = yard.run(&["session", "redo", "--yes", &id]);
    assert_eq!(code, 0, "{told}");
    for (file, path) in FILES.iter().enumerate() {
        assert_eq!(yard.read(path).unwrap(), document(&agent[file], &person[file]), "{path}");
    }
}

#[test]
fn kill_9_during_a_write_leaves_the_old_file_or_the_new_one() {
    let kills = std::env::var("WINDLASS_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let yard = Yard::new(&[], ALLOWED);
    let contents = ['a', 'b'].map(|fill| format!("{}\n", fill.to_string().repeat(400_000)));
    std::fs::write(yard.root().join("big.txt"), &contents[0]).unwrap();
    let (mut killed, mut changed, mut now) = (0, 0, 0);
    let write = |content: &str| {
        let arguments = json!({"filePath": "big.txt", "content": content}).to_string();
        let mut command = yard.windlass(&["tool", "call", "write", "-"]);
        let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), arguments.as_bytes()).unwrap();
        child
    };
    let mut whole = Duration::ZERO;
    for round in 0..kills {
        // How long a whole call takes here and now, so that the kills meet all of it.
        if round % 25 == 0 {
            let begun = std::time::Instant::now();
            assert!(write(&contents[1 - now]).wait().unwrap().success());
            (now, whole) = (1 - now, begun.elapsed());
        }
        let mut child = write(&contents[1 - now]);
        let share = f64::from(round % 50) / 50.0 * 1.2;
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() * share));
        child.kill().unwrap();
        killed += usize::from(child.wait().unwrap().code().is_none());
        let text = yard.read("big.txt").unwrap();
        let which = contents.iter().position(|content| *content == text);
        let which = which.unwrap_or_else(|| panic!("a mix of {} bytes", text.len()));
        changed += usize::from(which != now);
        now = which;
    }
    println!("{killed} of {kills} were killed, {changed} had been written");
    assert!(killed * 2 > kills as usize, "only {killed} of {kills} were killed under way");
    assert!(changed > 0);
}

#[test]
fn on_a_full_disk_the_old_file_stays_and_the_error_says_so() {
    let yard = Yard::new(&[], ALLOWED);
    let (root, binary) = (yard.root(), env!("CARGO_BIN_EXE_windlass"));
    let script = format!(
        "mount -t tmpfs -o size=256k none '{root}' && cd '{root}' && echo old > a.txt && \
         '{binary}' tool call write - ; echo exit $?; cat a.txt; ls -A",
        root = root.display()
    );
    let mut command =
        yard.wrapped(&["unshare", "--map-root-user", "--mount", "sh", "-c", &script], &[]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let arguments = json!({"filePath": "a.txt", "content": "x".repeat(1_000_000)}).to_string();
    let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), arguments.as_bytes());
    let (_, out, err) = told(&child.wait_with_output().unwrap());
    assert!(out.contains("exit 1\nold\n"), "{out}\n{err}");
    assert!(format!("{out}{err}").contains("No space left"), "{out}\n{err}");
    assert!(out.trim_end().ends_with("a.txt"), "nothing else is left there: {out}");
}
