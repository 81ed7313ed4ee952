//! Servers are added, listed and taken out again, and logged in to at a real server on loopback.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use windlass_testkit::oauth::{Manners, OAuth, browse};
use yard::{Yard, told};

fn mcp(yard: &Yard, arguments: &[&str]) -> (i32, String, String) {
    let mut command = yard.windlass(&[&["mcp"], arguments].concat());
    told(&command.env("WINDLASS_KEYRING", "off").output().unwrap())
}

fn config(yard: &Yard) -> String {
    std::fs::read_to_string(yard.home().join(".config/windlass/windlass.jsonc")).unwrap()
}

#[test]
fn a_server_is_added_listed_and_taken_out_and_comments_stay() {
    let yard = Yard::new(&[], "");
    yard.write_config("{\n  // mine\n  \"mcp\": {} // all of them\n}\n");
    let before = config(&yard);
    let git = [
        "add",
        "git",
        "--env",
        "TZ=UTC",
        "--read-only",
        "--",
        "mcp-server-git",
        "--repository",
        "{folder}",
    ];
    let (code, _, said) = mcp(&yard, &git);
    assert_eq!(code, 3, "nobody said yes: {said}");
    assert_eq!(config(&yard), before);
    assert!(said.contains("only read the project"), "{said}");

    let (code, _, said) = mcp(&yard, &[&["add", "--yes"], &git[1..]].concat());
    assert_eq!(code, 0, "{said}");
    let text = config(&yard);
    assert!(text.contains("// mine") && text.contains("// all of them"), "{text}");
    let (code, _, said) = mcp(
        &yard,
        &[
            "add",
            "--yes",
            "docs",
            "--url",
            "https://127.0.0.1:9/mcp",
            "--header",
            "X-Key: {env:DOCS}",
        ],
    );
    // The variable is not set, and so the config does not take the server.
    assert_ne!(code, 0, "{said}");
    assert!(!config(&yard).contains("docs"), "{}", config(&yard));
    let (code, _, said) = mcp(
        &yard,
        &["add", "--yes", "docs", "--url", "https://127.0.0.1:9/mcp", "--header", "X-Key: hush"],
    );
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("hush"), "{said}");
    let (code, _, said) = mcp(&yard, &["add", "--yes", "docs", "--", "x"]);
    assert_eq!(code, 2);
    assert!(said.contains("already"), "{said}");

    let (_, list, _) = mcp(&yard, &["list"]);
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with("docs  https://127.0.0.1:9/mcp  ("), "{list}");
    assert!(rows[1].starts_with("git   mcp-server-git --repository {folder}  ("), "{list}");
    assert!(!list.contains("hush") && !list.contains("UTC"), "{list}");
    let (_, json, _) = mcp(&yard, &["list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[1]["way"]["command"][0], "mcp-server-git");

    assert_eq!(mcp(&yard, &["remove", "docs"]).0, 0);
    assert_eq!(mcp(&yard, &["remove", "git"]).0, 0);
    let (code, _, said) = mcp(&yard, &["remove", "git"]);
    assert_eq!(code, 2);
    assert!(said.contains("there is no server `git`"), "{said}");
    assert!(config(&yard).contains("// mine"));
}

#[test]
fn what_makes_no_server_is_refused_and_nothing_is_written() {
    let yard = Yard::new(&[], "");
    let before = config(&yard);
    for wrong in [
        &["add", "--yes", "a b", "--", "x"][..],
        &["add", "--yes", "a b", "--project", "--", "x"],
        &["add", "--yes", "a", "--project", "--url", "http://x.example"],
        &["add", "--yes", "a", "--project", "--env", "A={env:B}", "--", "x"],
        &["add", "--yes", "a", "--url", "ftp://x"],
        &["add", "--yes", "a"],
        &["add", "--yes", "a", "--url", "https://x.example", "--", "x"],
        &["add", "--yes", "a", "--env", "secretvalue", "--", "x"],
        &["add", "--yes", "a", "--url", "https://x.example", "--env", "A=b"],
    ] {
        let (code, _, said) = mcp(&yard, wrong);
        assert_eq!(code, 2, "{wrong:?}: {said}");
        assert_eq!(config(&yard), before, "{wrong:?}");
        assert_eq!(yard.read("windlass.jsonc"), None, "{wrong:?}");
    }
    let (code, _, said) = mcp(&yard, &["add", "--yes", "x", "--project", "--", "npx", "thing"]);
    assert_eq!(code, 0, "{said}");
    let project = yard.read("windlass.jsonc").unwrap();
    assert!(project.contains("registries") && said.contains("windlass trust"), "{project} {said}");
    assert_eq!(config(&yard), before);
}

#[test]
fn a_login_is_kept_shown_nowhere_and_forgotten() {
    let server = OAuth::start(Manners::default());
    let yard = Yard::new(&[], "");
    yard.write_config(&format!(
        "{{\"mcp\": {{\"docs\": {{\"url\": \"{}\"}}, \"git\": {{\"command\": [\"x\"]}}}}}}",
        server.url()
    ));
    let mut command = yard.windlass(&["mcp", "login", "docs"]);
    // Nobody's browser is opened by a test.
    command.env("WINDLASS_KEYRING", "off").env("PATH", "/nowhere");
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = lines
        .find_map(|line| line.ok()?.trim().strip_prefix("http").map(|rest| format!("http{rest}")));
    assert!(browse(&page.unwrap()).join().unwrap().contains("Thank you"));
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("you are logged in to docs")), "{rest:?}");

    let kept = std::fs::read_to_string(yard.data().join("auth.json")).unwrap();
    assert!(kept.contains("mcp:docs") && kept.contains("token-"), "it is kept like a key");
    let (_, list, _) = mcp(&yard, &["list"]);
    assert!(list.contains("(logged in, ") && !list.contains("token-"), "{list}");
    let keys =
        told(&yard.windlass(&["auth", "list"]).env("WINDLASS_KEYRING", "off").output().unwrap());
    assert!(!keys.1.contains("mcp:"), "{}", keys.1);

    assert_eq!(mcp(&yard, &["logout", "docs"]).0, 0);
    let (code, _, said) = mcp(&yard, &["logout", "docs"]);
    assert_eq!(code, 1);
    assert!(said.contains("not logged in"), "{said}");
    assert!(mcp(&yard, &["login", "git"]).2.contains("programs have no login"));
    assert!(mcp(&yard, &["login", "dosc"]).2.contains("Near: docs"));
    assert!(mcp(&yard, &["logs", "git"]).2.contains("nothing is known of git"));
}
