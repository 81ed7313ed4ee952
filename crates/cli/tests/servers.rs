//! Servers that others wrote, installed as anybody would install them, each used in a session.
//!
//! `WINDLASS_SERVERS` names the folder they are in: `npm/node_modules` and `servers/bin`. `.ci/run`
//! installs them and runs these tests; without it they are left out.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use serde_json::Value;
use std::process::Command;
use yard::Yard;

/// A machine with one server, which was added with one command.
fn yard(replies: &[&str], server: (&str, &[String])) -> Yard {
    let yard = bare(replies, server.0);
    add(&yard, server);
    yard
}

/// One where its tools may be called, and it is still to come.
fn bare(replies: &[&str], name: &str) -> Yard {
    Yard::new(replies, &format!(r#""permission": {{"{name}_*": "allow"}}"#))
}

fn add(yard: &Yard, (name, command): (&str, &[String])) {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let (code, out, notes) =
        yard.run(&[&["mcp", "add", name, "--yes", "--"], words.as_slice()].concat());
    assert!(code == 0 && out.contains(" tool"), "{out}\n{notes}");
}

/// In a folder that is trusted, where servers run in the project itself.
fn trusted(replies: &[&str], server: (&str, &[String])) -> Yard {
    let yard = bare(replies, server.0);
    for line in ["init -q -b trunk", "add README.md", "commit -q -m First"] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@example.com"]);
        let status = git.args(line.split(' ')).current_dir(yard.root()).status();
        assert!(status.unwrap().success(), "{line}");
    }
    add(&yard, server);
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    yard
}

fn folder() -> String {
    std::env::var("WINDLASS_SERVERS").expect("WINDLASS_SERVERS names where the servers are")
}

fn node(server: &str, rest: &[&str]) -> Vec<String> {
    let modules = format!("{}/npm/node_modules", folder());
    let program = format!("{modules}/@modelcontextprotocol/{server}/dist/index.js");
    let words = [format!("{modules}/node/bin/node"), program].into_iter();
    words.chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

fn python(server: &str, rest: &[&str]) -> Vec<String> {
    let program = std::iter::once(format!("{}/servers/bin/{server}", folder()));
    program.chain(rest.iter().map(|word| (*word).to_owned())).collect()
}

/// Runs a session, and gives what each call of it came to.
fn outcomes(yard: &Yard, arguments: &[&str]) -> Vec<Value> {
    let (code, out, notes) = yard.run(&[&["run"], arguments].concat());
    assert!(code == 0 && out.contains("Done."), "{code}: {out}\n{notes}");
    let facts = yard.facts().into_iter();
    let settled = facts.filter(|fact| fact["kind"] == "settled");
    settled.map(|fact| fact["outcome"].clone()).collect()
}

fn text(outcome: &Value) -> &str {
    outcome["output"]["text"].as_str().unwrap_or_else(|| panic!("{outcome}"))
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn everything() {
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
    let yard = yard(&replies, ("e", &node("server-everything", &["stdio"])));
    let all = outcomes(&yard, &["Try everything"]);
    assert!(text(&all[0]).contains("hello"), "{}", all[0]);
    assert!(text(&all[1]).contains("42"), "{}", all[1]);
    let image = &all[2]["output"]["attachments"][0];
    assert_eq!(image["mime"], "image/png", "{}", all[2]);
    assert!(text(&all[3]).contains("temperature"), "{}", all[3]);
    assert!(text(&all[4]).contains("completed"), "{}", all[4]);
    let told = text(&all[5]);
    assert!(told.contains("PATH") && !told.contains("sk-very-secret"), "{told}");
    assert!(text(&all[6]).contains("://"), "{}", all[6]);

    // A prompt of the server is a command; what it says is what the model is asked.
    let yard = self::yard(&["say Done."], ("e", &node("server-everything", &["stdio"])));
    let (code, _, notes) =
        yard.run(&["run", "--command", "e:args-prompt", "city=Oslo state=of mind"]);
    assert_eq!(code, 0, "{notes}");
    let asked = yard.model.requests()[0].to_string();
    assert!(asked.contains("Oslo") && asked.contains("of mind"), "{asked}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn a_prompt_of_a_server_is_a_command_on_the_screen() {
    let yard = yard(&["say Done."], ("e", &node("server-everything", &["stdio"])));
    let screen = yard.seat().start();
    screen.wait_text(" · m ");
    screen.press("/e:args");
    screen.wait_text("/e:args-prompt  ");
    screen.press("-prompt \r");
    screen.wait_text("e does not give args-prompt");
    screen.wait_text("/ e:args-prompt");
    screen.press(" city=Oslo\r");
    screen.wait_text("Done.");
    let asked = yard.model.requests()[0].to_string();
    assert!(asked.contains("Oslo"), "{asked}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn a_question_of_a_server_is_put_to_the_person() {
    let replies = [r#"call e_trigger-elicitation-request {}"#, "say Done."];
    let yard = yard(&replies, ("e", &node("server-everything", &["stdio"])));
    // Nobody is there to be asked, and the server hears that.
    let (_, _, notes) = yard.run(&["run", "Ask me"]);
    let facts = yard.facts();
    let settled = facts.iter().find(|fact| fact["kind"] == "settled").unwrap();
    assert!(settled["outcome"].to_string().contains("declin"), "{settled}\n{notes}");
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn filesystem() {
    let replies = [
        r#"call fs_write_file {"path": "new.txt", "content": "by a server"}"#,
        r#"call fs_read_text_file {"path": "new.txt"}"#,
        r#"call fs_read_text_file {"path": "/etc/passwd"}"#,
        r#"call fs_write_file {"path": ".git/hooks/post-commit", "content": "x"}"#,
        "say Done.",
    ];
    let yard = trusted(&replies, ("fs", &node("server-filesystem", &["{folder}"])));
    let all = outcomes(&yard, &["Write a file"]);
    assert_eq!(yard.read("new.txt").as_deref(), Some("by a server"));
    assert!(text(&all[1]).contains("by a server"), "{}", all[1]);
    assert!(all[2].to_string().contains("denied"), "{}", all[2]);
    assert!(yard.read(".git/hooks/post-commit").is_none(), "{}", all[3]);
    assert_eq!(all[3]["status"], "failed", "{}", all[3]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn git() {
    let replies = [
        r#"call g_git_status {"repo_path": "."}"#,
        r#"call g_git_log {"repo_path": "."}"#,
        "say Done.",
    ];
    let yard = trusted(&replies, ("g", &python("mcp-server-git", &["--repository", "{folder}"])));
    std::fs::write(yard.root().join("new.txt"), "x").unwrap();
    let all = outcomes(&yard, &["Look at git"]);
    assert!(text(&all[0]).contains("new.txt") && text(&all[0]).contains("trunk"), "{}", all[0]);
    assert!(text(&all[1]).contains("First"), "{}", all[1]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn time() {
    let replies = [
        r#"call t_convert_time {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#,
        "say Done.",
    ];
    let yard = yard(&replies, ("t", &python("mcp-server-time", &["--local-timezone", "UTC"])));
    let all = outcomes(&yard, &["What time is it there?"]);
    assert!(text(&all[0]).contains("21:00"), "{}", all[0]);
}

#[test]
#[ignore = "needs the servers; .ci/run installs them"]
fn fetch() {
    let server =
        python("mcp-server-fetch", &["--ignore-robots-txt", "--allow-private-ips"]).join(" ");
    // In the sandbox there is no host but its own loopback, so the page is served there.
    let line =
        format!("python3 -m http.server 8099 --bind 127.0.0.1 -d {{folder}} & exec {server}");
    let command = ["bash", "-c", &line].map(str::to_owned);
    let replies = [
        r#"call f_fetch {"url": "http://127.0.0.1:8099/README.md", "raw": true}"#,
        r#"call f_fetch {"url": "https://example.com/"}"#,
        "say Done.",
    ];
    let yard = yard(&replies, ("f", &command));
    let all = outcomes(&yard, &["Fetch a page"]);
    assert!(text(&all[0]).contains("A small project."), "{}", all[0]);
    assert!(!all[1].to_string().contains("Example Domain"), "{}", all[1]);
}
