//! `windlass mcp`: servers are added, listed and removed, and a login at a real server on loopback.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use support::{TestEnv, decode_output};
use windlass_testkit::mock_oauth_server::{MockOAuthServer, OAuthBehavior, open_login_page};

fn mcp(env: &TestEnv, arguments: &[&str]) -> (i32, String, String) {
    let mut command = env.windlass(&[&["mcp"], arguments].concat());
    decode_output(&command.env("WINDLASS_KEYRING", "off").output().unwrap())
}

fn config(env: &TestEnv) -> String {
    std::fs::read_to_string(env.home().join(".config/windlass/windlass.jsonc")).unwrap()
}

#[test]
fn a_server_is_added_listed_and_removed_and_comments_stay() {
    let env = TestEnv::new(&[], "");
    env.write_config("{\n  // mine\n  \"mcp\": {} // all of them\n}\n");
    let before = config(&env);
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
    let (code, _, stderr) = mcp(&env, &git);
    assert_eq!(code, 3, "adding was not confirmed: {stderr}");
    assert_eq!(config(&env), before);
    assert!(stderr.contains("only read the project"), "{stderr}");

    let (code, _, stderr) = mcp(&env, &[&["add", "--yes"], &git[1..]].concat());
    assert_eq!(code, 0, "{stderr}");
    let text = config(&env);
    assert!(text.contains("// mine") && text.contains("// all of them"), "{text}");
    let (code, _, stderr) = mcp(
        &env,
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
    // The variable is not set, so the server is not added.
    assert_ne!(code, 0, "{stderr}");
    assert!(!config(&env).contains("docs"), "{}", config(&env));
    let (code, _, stderr) = mcp(
        &env,
        &["add", "--yes", "docs", "--url", "https://127.0.0.1:9/mcp", "--header", "X-Key: hush"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(!stderr.contains("hush"), "{stderr}");
    let (code, _, stderr) = mcp(&env, &["add", "--yes", "docs", "--", "x"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("already"), "{stderr}");

    let (_, list, _) = mcp(&env, &["list"]);
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with("docs  https://127.0.0.1:9/mcp  ("), "{list}");
    assert!(rows[1].starts_with("git   mcp-server-git --repository {folder}  ("), "{list}");
    assert!(!list.contains("hush") && !list.contains("UTC"), "{list}");
    let (_, json, _) = mcp(&env, &["list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[1]["transport"]["command"][0], "mcp-server-git");

    assert_eq!(mcp(&env, &["remove", "docs"]).0, 0);
    assert_eq!(mcp(&env, &["remove", "git"]).0, 0);
    let (code, _, stderr) = mcp(&env, &["remove", "git"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("unknown server `git`"), "{stderr}");
    assert!(config(&env).contains("// mine"));
}

#[test]
fn invalid_servers_are_refused_and_nothing_is_written() {
    let env = TestEnv::new(&[], "");
    let before = config(&env);
    for invalid in [
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
        let (code, _, stderr) = mcp(&env, invalid);
        assert_eq!(code, 2, "{invalid:?}: {stderr}");
        assert_eq!(config(&env), before, "{invalid:?}");
        assert_eq!(env.read("windlass.jsonc"), None, "{invalid:?}");
    }
    let (code, _, stderr) = mcp(&env, &["add", "--yes", "x", "--project", "--", "npx", "thing"]);
    assert_eq!(code, 0, "{stderr}");
    let project = env.read("windlass.jsonc").unwrap();
    assert!(
        project.contains("registries") && stderr.contains("windlass trust"),
        "{project} {stderr}"
    );
    assert_eq!(config(&env), before);
}

#[test]
fn a_login_is_saved_never_shown_and_removed() {
    let server = MockOAuthServer::start(OAuthBehavior::default());
    let env = TestEnv::new(&[], "");
    env.write_config(&format!(
        "{{\"mcp\": {{\"docs\": {{\"url\": \"{}\"}}, \"git\": {{\"command\": [\"x\"]}}}}}}",
        server.url()
    ));
    let mut command = env.windlass(&["mcp", "login", "docs"]);
    // No browser is found on this PATH, so the test opens none.
    command.env("WINDLASS_KEYRING", "off").env("PATH", "/nowhere");
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let page = lines
        .find_map(|line| line.ok()?.trim().strip_prefix("http").map(|rest| format!("http{rest}")));
    assert!(open_login_page(&page.unwrap()).join().unwrap().contains("Thank you"));
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    assert!(child.wait().unwrap().success(), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("logged in to docs")), "{rest:?}");

    let saved = std::fs::read_to_string(env.data().join("auth.json")).unwrap();
    assert!(saved.contains("mcp:docs") && saved.contains("token-"), "the login is not saved");
    let (_, list, _) = mcp(&env, &["list"]);
    assert!(list.contains("(logged in, ") && !list.contains("token-"), "{list}");
    let keys = decode_output(
        &env.windlass(&["auth", "list"]).env("WINDLASS_KEYRING", "off").output().unwrap(),
    );
    assert!(!keys.1.contains("mcp:"), "{}", keys.1);

    assert_eq!(mcp(&env, &["logout", "docs"]).0, 0);
    let (code, _, stderr) = mcp(&env, &["logout", "docs"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("not logged in"), "{stderr}");
    assert!(mcp(&env, &["login", "git"]).2.contains("only remote servers have a login"));
    assert!(mcp(&env, &["login", "dosc"]).2.contains("Did you mean docs"));
    assert!(mcp(&env, &["logs", "git"]).2.contains("no log for git"));
}
