//! Public MCP servers, installed from their registries, each used in a session.
//!
//! `WINDLASS_MCP_SERVERS` is the folder with `npm/node_modules` and `servers/bin`. `.ci/run`
//! installs the servers and runs these tests, which are ignored otherwise.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::Value;
use std::process::Command;
use support::TestEnv;

/// Creates a [`TestEnv`] to which one server was added.
fn env_with_server(replies: &[&str], server: (&str, &[String])) -> TestEnv {
    let env = env_without_server(replies, server.0);
    add_server(&env, server);
    env
}

/// Creates a [`TestEnv`] that allows the tools of a server, which is not added yet.
fn env_without_server(replies: &[&str], name: &str) -> TestEnv {
    TestEnv::new(replies, &format!(r#""permission": {{"{name}_*": "allow"}}"#))
}

fn add_server(env: &TestEnv, (name, command): (&str, &[String])) {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let (code, out, stderr) =
        env.run(&[&["mcp", "add", name, "--yes", "--"], words.as_slice()].concat());
    assert!(code == 0 && out.contains(" tool"), "{out}\n{stderr}");
}

/// Creates a [`TestEnv`] with one server, in a trusted git repository.
fn trusted_env_with_server(replies: &[&str], server: (&str, &[String])) -> TestEnv {
    let env = env_without_server(replies, server.0);
    for line in ["init -q -b trunk", "add README.md", "commit -q -m First"] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]);
        let status = git.args(line.split(' ')).current_dir(env.root()).status();
        assert!(status.unwrap().success(), "{line}");
    }
    add_server(&env, server);
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    env
}

fn servers_folder() -> String {
    std::env::var("WINDLASS_MCP_SERVERS").expect("WINDLASS_MCP_SERVERS is needed")
}

fn node_server(server: &str, rest: &[&str]) -> Vec<String> {
    let modules = format!("{}/npm/node_modules", servers_folder());
    let program = format!("{modules}/@modelcontextprotocol/{server}/dist/index.js");
    let words = [format!("{modules}/node/bin/node"), program].into_iter();
    words.chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

fn python_server(server: &str, rest: &[&str]) -> Vec<String> {
    let program = std::iter::once(format!("{}/servers/bin/{server}", servers_folder()));
    program.chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

/// Runs a session and returns the outcomes of its calls.
fn outcomes(env: &TestEnv, arguments: &[&str]) -> Vec<Value> {
    let (code, out, stderr) = env.run(&[&["run"], arguments].concat());
    assert!(code == 0 && out.contains("Done."), "{code}: {out}\n{stderr}");
    let facts = env.facts().into_iter();
    let settled = facts.filter(|fact| fact["kind"] == "call_settled");
    settled.map(|fact| fact["outcome"].clone()).collect()
}

fn text(outcome: &Value) -> &str {
    outcome["output"]["text"].as_str().unwrap_or_else(|| panic!("{outcome}"))
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn the_everything_server_works() {
    let replies = [
        r#"call e_echo {"message": "hello"}"#,
        r#"call e_get-sum {"a": 2, "b": 40}"#,
        r#"call e_get-tiny-image {}"#,
        r#"call e_get-structured-content {"location": "New York"}"#,
        r#"call e_trigger-long-running-operation {"duration": 1, "steps": 4}"#,
        r#"call e_get-env {}"#,
        r#"call list_mcp_resources {"server": "e"}"#,
        "say Done.",
    ];
    let env = env_with_server(&replies, ("e", &node_server("server-everything", &["stdio"])));
    let all = outcomes(&env, &["Try everything"]);
    assert!(text(&all[0]).contains("hello"), "{}", all[0]);
    assert!(text(&all[1]).contains("42"), "{}", all[1]);
    let image = &all[2]["output"]["attachments"][0];
    assert_eq!(image["mime_type"], "image/png", "{}", all[2]);
    assert!(text(&all[3]).contains("temperature"), "{}", all[3]);
    assert!(text(&all[4]).contains("completed"), "{}", all[4]);
    let variables = text(&all[5]);
    assert!(variables.contains("PATH") && !variables.contains("sk-very-secret"), "{variables}");
    assert!(text(&all[6]).contains("://"), "{}", all[6]);

    // A prompt of the server is a command, and its text is sent to the model.
    let env =
        self::env_with_server(&["say Done."], ("e", &node_server("server-everything", &["stdio"])));
    let (code, _, stderr) =
        env.run(&["run", "--command", "e:args-prompt", "city=Oslo state=of mind"]);
    assert_eq!(code, 0, "{stderr}");
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("Oslo") && request.contains("of mind"), "{request}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn a_prompt_of_a_server_is_a_command_in_the_tui() {
    let env = env_with_server(&["say Done."], ("e", &node_server("server-everything", &["stdio"])));
    let terminal = env.terminal().start();
    terminal.wait_text(" · m ");
    terminal.press("/e:args");
    terminal.wait_text("/e:args-prompt  ");
    terminal.press("-prompt \r");
    terminal.wait_text("e did not return the prompt");
    terminal.wait_text("/ e:args-prompt");
    terminal.press(" city=Oslo\r");
    terminal.wait_text("Done.");
    let request = env.model.requests()[0].to_string();
    assert!(request.contains("Oslo"), "{request}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn without_a_user_an_elicitation_of_a_server_is_canceled() {
    let replies = [r#"call e_trigger-elicitation-request {}"#, "say Done."];
    let env = env_with_server(&replies, ("e", &node_server("server-everything", &["stdio"])));
    // A server tells the model that the user declined only if one did.
    let (_, _, stderr) = env.run(&["run", "Ask me"]);
    let facts = env.facts();
    let settled = facts.iter().find(|fact| fact["kind"] == "call_settled").unwrap();
    assert!(settled["outcome"].to_string().contains("cancel"), "{settled}\n{stderr}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn the_filesystem_server_writes_only_in_the_project() {
    let replies = [
        r#"call fs_write_file {"path": "new.txt", "content": "by a server"}"#,
        r#"call fs_read_text_file {"path": "new.txt"}"#,
        r#"call fs_read_text_file {"path": "/etc/passwd"}"#,
        r#"call fs_write_file {"path": ".git/hooks/post-commit", "content": "x"}"#,
        "say Done.",
    ];
    let env =
        trusted_env_with_server(&replies, ("fs", &node_server("server-filesystem", &["{folder}"])));
    let all = outcomes(&env, &["Write a file"]);
    assert_eq!(env.read("new.txt").as_deref(), Some("by a server"));
    assert!(text(&all[1]).contains("by a server"), "{}", all[1]);
    assert!(all[2].to_string().contains("denied"), "{}", all[2]);
    assert!(env.read(".git/hooks/post-commit").is_none(), "{}", all[3]);
    assert_eq!(all[3]["status"], "failed", "{}", all[3]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn the_git_server_reads_the_repository() {
    let replies = [
        r#"call g_git_status {"repo_path": "."}"#,
        r#"call g_git_log {"repo_path": "."}"#,
        "say Done.",
    ];
    let env = trusted_env_with_server(
        &replies,
        ("g", &python_server("mcp-server-git", &["--repository", "{folder}"])),
    );
    std::fs::write(env.root().join("new.txt"), "x").unwrap();
    let all = outcomes(&env, &["Look at git"]);
    assert!(text(&all[0]).contains("new.txt") && text(&all[0]).contains("trunk"), "{}", all[0]);
    assert!(text(&all[1]).contains("First"), "{}", all[1]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn an_old_server_with_an_event_stream_works() {
    let server = node_server("server-everything", &["sse"]);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut process = Command::new(&server[0]);
    process.args(&server[1..]).env("PORT", port.to_string());
    let mut process = process.stderr(std::process::Stdio::null()).spawn().unwrap();
    let is_up = |_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    };
    assert!((0..100).any(is_up), "the server does not listen");
    // With its type, and found out from the 404 that a message gets.
    for kind in ["sse", "remote"] {
        let url = format!("http://127.0.0.1:{port}/sse");
        let settings = format!(
            r#""mcp": {{"e": {{"type": "{kind}", "url": "{url}"}}}}, "permission": {{"e_*": "allow"}}"#
        );
        let env = TestEnv::new(&[r#"call e_echo {"message": "hello"}"#, "say Done."], &settings);
        let (code, out, stderr) = env.run(&["mcp", "list", "--check"]);
        assert!(code == 0 && out.contains("2025-11-25"), "{kind}: {out}\n{stderr}");
        let all = outcomes(&env, &["Say hello"]);
        assert!(text(&all[0]).contains("Echo: hello"), "{kind}: {}", all[0]);
    }
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn the_time_server_works() {
    let replies = [
        r#"call t_convert_time {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
        "say Done.",
    ];
    let env = env_with_server(
        &replies,
        ("t", &python_server("mcp-server-time", &["--local-timezone", "UTC"])),
    );
    let all = outcomes(&env, &["What time is it there?"]);
    assert!(text(&all[0]).contains("21:00"), "{}", all[0]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn the_fetch_server_reaches_only_allowed_hosts() {
    let server = python_server("mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"])
        .join(" ");
    // The sandbox reaches only its own loopback, so the page is served there.
    let line =
        format!("python3 -m http.server 8099 --bind 127.0.0.1 -d {{folder}} & exec {server}");
    let command = ["bash", "-c", &line].map(str::to_owned);
    let replies = [
        r#"call f_fetch {"url": "http://127.0.0.1:8099/README.md", "raw": true}"#,
        r#"call f_fetch {"url": "https://example.com/"}"#,
        "say Done.",
    ];
    let env = env_with_server(&replies, ("f", &command));
    let all = outcomes(&env, &["Fetch a page"]);
    assert!(text(&all[0]).contains("A small project."), "{}", all[0]);
    assert!(!all[1].to_string().contains("Example Domain"), "{}", all[1]);
}
