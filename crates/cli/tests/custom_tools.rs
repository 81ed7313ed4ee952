//! Custom tools with the real binary: those of a trusted project, of the user's config and of the
//! book.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use support::{TestEnv, decode_output};

const PAGE: &str = include_str!("../../../docs/book/src/custom-tools.md");

/// Returns the blocks of the page that are marked `test`: the words of the mark, and the text.
fn blocks() -> Vec<(Vec<&'static str>, String)> {
    let mut blocks = Vec::new();
    for piece in PAGE.split("\n~~~~").skip(1).step_by(2) {
        let (mark, text) = piece.split_once('\n').unwrap();
        let mark: Vec<&str> = mark.split(' ').collect();
        if mark.get(1) == Some(&"test") {
            blocks.push((mark, format!("{text}\n")));
        }
    }
    blocks
}

/// Returns the file of the page with this name.
fn file_of_page(name: &str) -> String {
    let found = blocks().into_iter().find(|(mark, _)| mark.get(2) == Some(&name));
    found.unwrap().1
}

fn write_file(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Creates a trusted project with the tool of the page.
fn trusted_env(replies: &[&str]) -> TestEnv {
    let env = TestEnv::new(replies, "");
    let tool = env.root().join(".windlass/tools/shout");
    write_file(&tool, &file_of_page(".windlass/tools/shout"), 0o755);
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    env
}

fn has_node() -> bool {
    std::process::Command::new("node").arg("--version").output().is_ok()
}

/// Creates a cache folder that is visible in the sandbox, which `/tmp` is not.
fn create_cache() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Runs the binary with that cache.
fn run_with_cache(
    env: &TestEnv,
    cache: &tempfile::TempDir,
    arguments: &[&str],
) -> (i32, String, String) {
    let mut command = env.windlass(arguments);
    decode_output(&command.env("XDG_CACHE_HOME", cache.path()).output().unwrap())
}

const CALL: &str = "call shout {\"text\": \"hi\"}";

#[test]
fn the_examples_of_the_book_work() {
    let (env, cache) = (TestEnv::new(&[], ""), create_cache());
    let binary = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(std::iter::once(binary).chain(std::env::split_paths(&path)));
    let path = path.unwrap();
    let (mut last_output, mut ran) = (None, 0);
    for (mark, text) in blocks() {
        match (mark[0], mark.get(2)) {
            (_, Some(file)) if file.contains('/') => {
                let file = env.root().join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, text).unwrap();
            }
            ("sh", Some(&"node")) if !has_node() => {
                println!("node is not installed");
                last_output = None;
            }
            ("sh", _) => {
                let mut shell = env.wrapped(&["sh", "-e", "-c", &text], &[]);
                shell.env("PATH", &path).env("XDG_CACHE_HOME", cache.path());
                let (code, out, stderr) = decode_output(&shell.output().unwrap());
                assert_eq!(code, 0, "{text}\n{out}\n{stderr}");
                last_output = Some(out);
            }
            ("text", _) => {
                if let Some(output) = last_output.take() {
                    assert_eq!(output, text);
                    ran += 1;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(ran >= 2, "only {ran} examples were run");
    let (_, list, _) = env.run(&["tool", "list"]);
    assert!(list.contains("shout") && list.contains("Says a text loudly."), "{list}");
}

#[test]
fn a_model_calls_a_custom_tool() {
    let env = trusted_env(&[CALL, CALL, "say Done."]);
    let (code, out, stderr) = env.run(&["run", "p"]);
    assert!(code == 0 && out.contains("Done."), "{out}{stderr}");
    let facts = env.facts();
    let texts: Vec<&str> = facts
        .iter()
        .filter(|fact| fact["kind"] == "call_settled")
        .filter_map(|fact| fact.pointer("/outcome/output/text").and_then(|text| text.as_str()))
        .collect();
    assert_eq!(texts, ["HI", "HI"], "{facts:#?}");
    let requests = env.model.requests();
    let tools = requests[0]["tools"].as_array().unwrap();
    let shout = tools.iter().find(|tool| tool["function"]["name"] == "shout").unwrap();
    assert_eq!(shout["function"]["description"], "Says a text loudly.");
    assert_eq!(requests[0]["tools"], requests[2]["tools"], "the definitions have changed");
}

/// Runs the binary under `strace`. The last value are the traced calls on files of the tools
/// folder.
fn run_traced(env: &TestEnv, arguments: &[&str]) -> (i32, String, String, Vec<String>) {
    let log = env.home().join("trace");
    let calls = "trace=execve,execveat,open,openat,openat2";
    let wrapper = ["strace", "-f", "-y", "-s", "4096", "-e", calls, "-o", log.to_str().unwrap()];
    let output = env.wrapped(&wrapper, arguments).output();
    let (code, out, stderr) =
        decode_output(&output.expect("strace is needed: apt-get install strace"));
    let log = std::fs::read_to_string(log).unwrap();
    let touched = log.lines().filter(|line| line.contains(".windlass/tools/"));
    (code, out, stderr, touched.map(str::to_owned).collect())
}

#[test]
fn a_tool_of_an_untrusted_project_is_neither_run_nor_read() {
    let env = TestEnv::new(&[CALL, "say Done."], "");
    let tool = env.root().join(".windlass/tools/shout");
    let pwned = env.home().join("pwned");
    write_file(&tool, &format!("#!/bin/sh\ntouch {}\n", pwned.display()), 0o755);
    write_file(&env.root().join(".windlass/tools/also.mjs"), "process.exit(1)", 0o755);
    for arguments in
        [&["run", "p"][..], &["tool", "list"], &["tool", "call", "shout", "{\"text\": \"x\"}"]]
    {
        let (_, out, stderr, touched) = run_traced(&env, arguments);
        assert!(stderr.contains("`windlass trust`"), "{stderr}");
        assert_eq!(touched, [""; 0], "{arguments:?}");
        assert!(!out.contains("Says a text"), "{out}");
    }
    assert!(!pwned.exists());
    let offered = env.model.requests()[0]["tools"].to_string();
    assert!(!offered.contains("shout"), "{offered}");
}

#[test]
fn listing_known_tools_starts_no_process() {
    let env = trusted_env(&[]);
    let (code, _, stderr, touched) = run_traced(&env, &["tool", "list"]);
    let started = |line: &&String| line.contains("execve(") && line.contains("tools/shout\"");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        touched.iter().any(|line| started(&line)),
        "the tool is not started for its definition"
    );
    let (_, list, _, touched) = run_traced(&env, &["tool", "list"]);
    assert!(list.contains("shout"), "{list}");
    assert_eq!(touched.iter().find(started), None);
}

#[test]
fn a_tool_that_changed_after_trust_is_not_run() {
    let env = trusted_env(&[CALL, "gate changed\ncall shout {\"text\": \"again\"}", "say Done."]);
    let evil = file_of_page(".windlass/tools/shout").replace(".upper()", ".upper() + '!'");
    // During a session: the running process is ended, and no other is started.
    let child = env.windlass(&["run", "p"]).spawn().unwrap();
    env.model.wait_at_gate("changed");
    write_file(&env.root().join(".windlass/tools/shout"), &evil, 0o755);
    env.model.open_gate("changed");
    let (code, out, stderr) = decode_output(&child.wait_with_output().unwrap());
    assert!(code == 0 && out.contains("Done."), "{out}{stderr}");
    let last = env.model.requests()[2].to_string();
    assert!(last.contains("has changed since the user trusted it"), "{last}");
    assert!(last.contains("HI") && !last.contains("AGAIN"), "{last}");
    // In the next session the tool does not exist.
    let (code, _, stderr) = env.run(&["tool", "call", "shout", "{\"text\": \"x\"}"]);
    assert!(code != 0 && stderr.contains("has changed since you trusted it"), "{stderr}");
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    assert_eq!(env.run(&["tool", "call", "shout", "{\"text\": \"x\"}"]).1, "X!\n");
}

/// A new file next to a tool may be a module that the tool loads.
#[test]
fn a_tool_with_a_new_file_next_to_it_is_not_started() {
    let env = trusted_env(&["gate added\ncall shout {\"text\": \"x\"}", "say Done."]);
    assert!(env.run(&["tool", "list"]).1.contains("shout"), "the definition is not cached");
    let child = env.windlass(&["run", "p"]).spawn().unwrap();
    env.model.wait_at_gate("added");
    write_file(&env.root().join(".windlass/tools/json.py"), "raise SystemExit", 0o644);
    env.model.open_gate("added");
    let (code, out, stderr) = decode_output(&child.wait_with_output().unwrap());
    assert!(code == 0 && out.contains("Done."), "{out}{stderr}");
    let last = env.model.requests()[1].to_string();
    assert!(last.contains("has changed since the user trusted it"), "{last}");
}

#[test]
fn tools_of_the_user_override_those_of_a_project_but_not_built_in_ones() {
    let (env, cache) = (trusted_env(&[]), create_cache());
    let config = env.home().join(".config/windlass/tools");
    let own = file_of_page(".windlass/tools/shout").replace(".upper()", ".lower()");
    write_file(&config.join("shout.py"), &own, 0o755);
    write_file(&config.join("read"), &own, 0o755);
    let (code, out, stderr) =
        run_with_cache(&env, &cache, &["tool", "call", "shout", "{\"text\": \"HI\"}"]);
    assert_eq!((code, out.as_str()), (0, "hi\n"), "{stderr}");
    assert!(stderr.contains(".windlass/tools/shout is skipped"), "{stderr}");
    assert!(stderr.contains("a tool named read already exists"), "{stderr}");
    // A change of the user's own tool takes effect at once.
    write_file(&config.join("shout.py"), &own.replace(".lower()", ".title()"), 0o755);
    assert_eq!(
        run_with_cache(&env, &cache, &["tool", "call", "shout", "{\"text\": \"HI\"}"]).1,
        "Hi\n"
    );
    let copies: Vec<PathBuf> = std::fs::read_dir(cache.path().join("windlass/tools"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(copies.len(), 2, "{copies:?}");
}

#[test]
fn tools_that_do_not_work_are_reported_and_block_nothing() {
    let env = trusted_env(&[CALL, "say Done."]);
    let tools = env.root().join(".windlass/tools");
    // On a busy machine the interpreter may start later than a run waits. A call saves the
    // description of the tool, and the run need not wait for it.
    let call = ["tool", "call", "shout", "{\"text\": \"a\"}"];
    assert!((0..10).any(|_| env.run(&call).1 == "A\n"));
    write_file(&tools.join("mute"), "#!/bin/sh\nsleep 600\n", 0o755);
    write_file(&tools.join("dead"), "#!/bin/sh\necho no luck >&2\nexit 4\n", 0o755);
    write_file(&tools.join("chatty"), "#!/bin/sh\nyes\n", 0o755);
    write_file(&tools.join("plain.py"), "print('hello')\n", 0o644);
    write_file(
        &tools.join("liar"),
        "#!/bin/sh\necho '{\"id\":1,\"name\":\"bash\",\"description\":\"x\"}'\nsleep 600\n",
        0o755,
    );
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let start = std::time::Instant::now();
    let (code, out, stderr) = env.run(&["run", "p"]);
    assert!(code == 0 && out.contains("Done."), "{out}{stderr}");
    assert!(
        start.elapsed() < windlass_testkit::time_limits::limit(std::time::Duration::from_secs(12)),
        "{:?}",
        start.elapsed()
    );
    for message in [
        "tools/mute is slow to start",
        "tools/dead is skipped: tool/dead exited with code 4: no luck",
        "tools/chatty is skipped: tool/chatty wrote a line to its standard output that is not a valid response: `y`",
        "tools/plain.py is not a tool because it is not executable. Run `chmod +x`",
        "but must be `liar` or start with `liar_`",
    ] {
        assert!(stderr.contains(message), "{message}\n{stderr}");
    }
    assert!(env.model.requests()[1].to_string().contains("HI"));
}

#[test]
fn a_typescript_tool_works_if_node_supports_types() {
    let Some(node) = std::env::var_os("WINDLASS_NODE22").map(PathBuf::from) else {
        return println!("skipped: WINDLASS_NODE22 is not set");
    };
    let (env, cache) = (TestEnv::new(&[], ""), create_cache());
    let typed = file_of_page(".windlass/tools/math.mjs")
        .replace("({ a, b })", "({ a, b }: { a: number; b: number })");
    write_file(&env.root().join(".windlass/tools/math.ts"), &typed, 0o644);
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let folder = node.parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(std::iter::once(folder).chain(std::env::split_paths(&path)));
    let mut call = env.windlass(&["tool", "call", "--yes", "math_add", "{\"a\": 1, \"b\": 2}"]);
    let (code, out, stderr) = decode_output(
        &call.env("PATH", path.unwrap()).env("XDG_CACHE_HOME", cache.path()).output().unwrap(),
    );
    assert_eq!((code, out.as_str()), (0, "3\n"), "{stderr}");
}
