//! MCP servers and hooks: formats, precedence between layers, and limits of a project.

use super::{ConfigTestEnv, MockConfigEnv};
use crate::config::{Config, ConfigFlags, HookCommand, HookIoFormat, McpTransport};
use crate::{ConfigLayer, FolderTrust};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_protocol::HookPoint;

fn merge_layer(layer: ConfigLayer, text: &str) -> Config {
    let env = ConfigTestEnv::new();
    let texts = vec![(layer, PathBuf::from("c"), text.to_owned())];
    Config::merge(texts, ConfigFlags::default(), &MockConfigEnv, (&env.dirs, Path::new("/w")))
}

/// Returns all diagnostics, one per line.
fn diagnostics_text(config: &Config) -> String {
    config.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn servers_are_parsed_in_our_format_and_in_opencodes() {
    let config = merge_layer(
        ConfigLayer::User,
        r#"{"mcp": {
          "git": {"type": "local", "command": ["git-server", "{folder}"], "environment": {"A": "1"},
                  "env": {"TOKEN": "x-{env:KEY}-y"}, "timeout": 5000, "network": ["a.b"]},
          "docs": {"type": "remote", "url": "https://d.e/mcp", "headers": {"X": "{env:KEY}"},
                   "oauth": {"clientId": "c", "callbackPort": 99}, "enabled": false},
          "bare": {"url": "http://127.0.0.1:1/mcp", "oauth": false, "protocol": "2025-11-25"}
        }, "tools": {"budget": 500}}"#,
    );
    assert_eq!(diagnostics_text(&config), "");
    let git = &config.servers["git"].0;
    let McpTransport::Stdio { command, env, write, network, sandbox, .. } = &git.transport else {
        panic!()
    };
    assert_eq!((command.len(), *write, *sandbox, network.len()), (2, true, true, 1));
    assert_eq!((env["A"].expose_secret(), env["TOKEN"].expose_secret()), ("1", "x-from-env-y"));
    assert_eq!(git.timeout, Duration::from_secs(5));
    let docs = &config.servers["docs"].0;
    let McpTransport::Http { headers, oauth, .. } = &docs.transport else { panic!() };
    assert_eq!(headers["X"].expose_secret(), "from-env");
    assert_eq!(oauth.as_ref().unwrap().callback_port, Some(99));
    assert!(!docs.enabled);
    let McpTransport::Http { oauth: None, .. } = &config.servers["bare"].0.transport else {
        panic!()
    };
    assert_eq!(config.tools.budget, Some(500));
    let shown = format!("{:?}", config.effective_values());
    assert!(!shown.contains("from-env") && !shown.contains("{env:KEY}"), "{shown}");
}

#[test]
fn an_invalid_server_is_skipped_entirely() {
    for (server, expected) in [
        (r#"{}"#, "missing `command` or `url`"),
        (r#"{"command": []}"#, "`command` is empty"),
        (r#"{"command": [" "]}"#, "`command` is empty"),
        (r#"{"command": ["x"], "url": "https://a"}"#, "not both"),
        (r#"{"type": "remote", "command": ["x"]}"#, "missing `url`"),
        (r#"{"url": "ftp://a"}"#, "https://"),
        (r#"{"command": ["x"], "write": "no"}"#, "is skipped"),
        (r#"{"command": ["x"], "readonly": true}"#, "`readonly` is not a known setting"),
        (r#"{"command": ["x"], "env": {"A": "{env:UNSET}"}}"#, "UNSET is not set"),
        (r#"{"command": ["x"], "env": {"A=B": "c"}}"#, "invalid environment variable name"),
        (r#"{"command": ["x"], "env": {"A": "{file:/etc/passwd}"}}"#, "is not supported"),
        (r#"{"url": "https://a", "sandbox": false}"#, "cannot have `env`"),
        (r#"{"command": ["x"], "protocol": "latest"}"#, "`protocol` must be"),
    ] {
        let config = merge_layer(ConfigLayer::User, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
        assert!(config.servers.is_empty(), "{server}");
        assert!(
            diagnostics_text(&config).contains(expected),
            "{server}: {}",
            diagnostics_text(&config)
        );
        assert!(!config.diagnostics.iter().any(|item| item.fatal), "{server}");
    }
    for name in ["", "a b", "größe", "a/b", &"x".repeat(33)] {
        let config = merge_layer(
            ConfigLayer::User,
            &format!(r#"{{"mcp": {{"{name}": {{"command": ["x"]}}}}}}"#),
        );
        assert!(config.servers.is_empty(), "{name}");
    }
}

#[test]
fn a_project_server_gets_less_access_than_a_user_server() {
    let config = merge_layer(ConfigLayer::Project, r#"{"mcp": {"s": {"command": ["x"]}}}"#);
    let McpTransport::Stdio { write, sandbox, .. } = &config.servers["s"].0.transport else {
        panic!()
    };
    assert_eq!((*write, *sandbox), (false, true));
    let config =
        merge_layer(ConfigLayer::Project, r#"{"mcp": {"s": {"command": ["x"], "write": true}}}"#);
    assert!(matches!(&config.servers["s"].0.transport, McpTransport::Stdio { write: true, .. }));
    for (server, expected) in [
        (r#"{"command": ["x"], "sandbox": false}"#, "cannot disable the sandbox"),
        (r#"{"command": ["x"], "env": {"A": "{env:KEY}"}}"#, "cannot read environment variables"),
        (r#"{"url": "http://a.b"}"#, "must use https"),
        (r#"{"url": "https://a.b", "headers": {"A": "{env:KEY}"}}"#, "cannot read"),
        (r#"{"url": "https://a.b", "oauth": {"clientSecret": "{env:KEY}"}}"#, "cannot read"),
    ] {
        let config = merge_layer(ConfigLayer::Project, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
        assert!(
            config.servers.is_empty() && diagnostics_text(&config).contains(expected),
            "{}",
            diagnostics_text(&config)
        );
    }
    let tools = merge_layer(ConfigLayer::Project, r#"{"tools": {"budget": 1000000}}"#);
    assert_eq!(tools.tools.budget, None);
}

#[test]
fn a_project_never_replaces_a_user_server() {
    let env = ConfigTestEnv::new()
        .with_user_config(r#"{"mcp": {"git": {"command": ["mine"]}}}"#)
        .with_project_config(
            r#"{"mcp": {"git": {"command": ["evil"]}, "other": {"command": ["theirs"]}}}"#,
        );
    std::fs::write(
        env.root.join(".mcp.json"),
        r#"{"mcpServers": {
            "git": {"command": "evil"},
            "other": {"command": "evil"},
            "listed": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}},
            "home": {"command": "x", "env": {"A": "${HOME}"}},
            "old": {"type": "sse", "url": "https://a.b"},
            "far": {"type": "http", "url": "https://a.b", "note": "unknown keys are theirs"}
        }}"#,
    )
    .unwrap();
    assert_eq!(env.load().servers.len(), 1, "an untrusted project must add no servers");
    let env = env.trusted();
    let config = env.load();
    assert_eq!(config.trust, FolderTrust::Trusted);
    let names: Vec<&String> = config.servers.keys().collect();
    assert_eq!(names, ["far", "git", "listed", "old", "other"], "{}", diagnostics_text(&config));
    let uses_sse = |name: &str| {
        matches!(config.servers[name].0.transport, McpTransport::Http { uses_sse: true, .. })
    };
    assert!(uses_sse("old") && !uses_sse("far"));
    for (name, program) in [("git", "mine"), ("other", "theirs"), ("listed", "npx")] {
        let McpTransport::Stdio { command, .. } = &config.servers[name].0.transport else {
            panic!()
        };
        assert_eq!(command[0], program, "{name}");
    }
    for expected in ["`home` is skipped", "already has a server `git`"] {
        assert!(
            diagnostics_text(&config).contains(expected),
            "{expected}: {}",
            diagnostics_text(&config)
        );
    }
    assert!(!config.diagnostics.iter().any(|item| item.fatal));
}

#[test]
fn a_server_digest_covers_what_runs_and_not_its_secrets() {
    let digest = |server: &str| {
        let config = merge_layer(ConfigLayer::User, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
        config.servers["s"].0.digest.clone()
    };
    let one = digest(r#"{"command": ["x", "a"], "env": {"T": "1"}}"#);
    assert_eq!(one, digest(r#"{"command": ["x", "a"], "env": {"T": "2"}, "timeout": 1}"#));
    for other in [
        r#"{"command": ["x", "b"], "env": {"T": "1"}}"#,
        r#"{"command": ["x a"], "env": {"T": "1"}}"#,
        r#"{"command": ["x", "a"], "env": {"T": "1", "LD_PRELOAD": "e"}}"#,
        r#"{"command": ["x", "a"], "env": {"T": "1"}, "cwd": "/"}"#,
        r#"{"url": "https://x/a"}"#,
    ] {
        assert_ne!(one, digest(other), "{other}");
    }
}

#[test]
fn hooks_are_parsed_in_our_format_and_in_claudes() {
    let config = merge_layer(
        ConfigLayer::User,
        r#"{"hooks": {
          "before_tool": [{"match": "edit|write", "command": ["python3", "g.py"], "timeout": 500,
                           "name": "guard", "network": ["a.b"]},
                          {"command": "./check", "timeout": 900000}],
          "PreToolUse": [{"matcher": "Bash", "hooks": [
              {"type": "command", "command": "./a.sh"}, {"type": "command", "command": "./b.sh", "timeout": 5}]}],
          "Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "x"}]}]
        }}"#,
    );
    assert_eq!(diagnostics_text(&config), "");
    let guard = config.hooks.iter().find(|hook| hook.name == "guard").unwrap();
    assert_eq!((guard.point, guard.format), (HookPoint::BeforeTool, HookIoFormat::Windlass));
    assert_eq!(guard.timeout, Duration::from_millis(500));
    assert_eq!(guard.command, HookCommand::Argv(vec!["python3".into(), "g.py".into()]));
    let claude: Vec<_> =
        config.hooks.iter().filter(|hook| hook.format == HookIoFormat::Claude).collect();
    let seconds: Vec<u64> = claude.iter().map(|hook| hook.timeout.as_secs()).collect();
    assert_eq!(seconds, [60, 5, 60]);
    assert_eq!(claude[0].matcher.as_deref(), Some("Bash"));
    assert_eq!((claude[2].point, &claude[2].matcher), (HookPoint::TurnEnd, &None));
    assert!(config.hooks.iter().all(|hook| hook.timeout <= Duration::from_secs(60)));
    let names: std::collections::BTreeSet<&String> =
        config.hooks.iter().map(|item| &item.name).collect();
    assert_eq!(names.len(), config.hooks.len(), "hook names must be unique");
}

#[test]
fn an_invalid_hook_is_fatal_unless_it_is_in_a_project() {
    for hooks in [
        r#"{"BeforeTool": [{"command": "x"}]}"#,
        r#"{"before_tool": [{"command": ""}]}"#,
        r#"{"before_tool": [{"command": []}]}"#,
        r#"{"before_tool": [{"comand": "x"}]}"#,
        r#"{"before_tool": [{"command": "x", "timeout": -1}]}"#,
        r#"{"before_tool": {"command": "x"}}"#,
        r#"{"PreToolUse": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}"#,
        r#"{"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": " "}]}]}"#,
        r#"{"event": [{"prompt": "x"}]}"#,
        r#"{"command": [{"prompt": "x"}]}"#,
        r#"{"before_tool": [{"command": "x", "url": "http://x"}]}"#,
        r#"{"before_tool": [{"url": "http://x", "headers": {"a": "{env:NOT_SET}"}}]}"#,
        r#"{"PreToolUse": [{"hooks": [{"type": "command"}]}]}"#,
    ] {
        for (layer, fatal) in [(ConfigLayer::User, true), (ConfigLayer::Project, false)] {
            let config = merge_layer(layer, &format!(r#"{{"hooks": {hooks}}}"#));
            assert!(config.hooks.is_empty(), "{hooks}");
            assert_eq!(
                config.diagnostics.iter().any(|item| item.fatal),
                fatal,
                "{hooks} {layer:?}"
            );
            assert!(!config.diagnostics.is_empty(), "{hooks}");
        }
    }
    let network = merge_layer(
        ConfigLayer::Project,
        r#"{"hooks": {"prompt": [{"command": "x", "network": ["a"]}]}}"#,
    );
    assert!(
        network.hooks.is_empty() && diagnostics_text(&network).contains("cannot use the network")
    );
    let managed = merge_layer(
        ConfigLayer::Managed,
        r#"{"hooks": {"prompt": [{"command": "x"}]}, "mcp": {"a": {"command": ["x"]}}}"#,
    );
    assert!(managed.hooks.is_empty() && managed.servers.is_empty());
}

#[cfg(unix)]
#[test]
fn trusted_files_are_unchanged_only_with_the_same_content_and_mode() {
    use std::os::unix::fs::PermissionsExt;
    let env = ConfigTestEnv::new();
    let tools = env.root.join(".windlass/tools");
    std::fs::create_dir_all(tools.join("deep")).unwrap();
    for name in ["run", "text.ts", "deep/x"] {
        std::fs::write(tools.join(name), "#!/bin/sh\n").unwrap();
    }
    let mode = |name: &str, mode| {
        std::fs::set_permissions(tools.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("run", 0o755);
    std::os::unix::fs::symlink("/bin/sh", tools.join("link")).unwrap();
    assert!(env.load().trusted_files(".windlass/tools/").is_empty());
    let env = env.trusted();
    let config = env.load();
    let found = config.trusted_files(".windlass/tools/");
    let shown: Vec<(&str, bool)> =
        found.iter().map(|file| (file.name.as_str(), file.is_executable)).collect();
    assert_eq!(shown, [(".windlass/tools/run", true), (".windlass/tools/text.ts", false)]);
    assert!(found.iter().all(|file| config.is_unchanged(file)));
    mode("text.ts", 0o755);
    assert!(!config.is_unchanged(&found[1]), "it is executable now");
    std::fs::write(tools.join("run"), "#!/bin/bash\n").unwrap();
    assert!(!config.is_unchanged(&found[0]), "its content has changed");
    std::fs::remove_file(tools.join("run")).unwrap();
    std::fs::write(env.root.join("elsewhere"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink(env.root.join("elsewhere"), tools.join("run")).unwrap();
    assert!(!config.is_unchanged(&found[0]), "a link to the same content is a change");
}
