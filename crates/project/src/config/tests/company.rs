//! Servers and hooks: whose count, and what a project may not say.

use super::{Street, Yard};
use crate::config::{Config, Flags, Form, HookCommand, Way};
use crate::{Layer, Standing};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_protocol::Point;

fn of(layer: Layer, text: &str) -> Config {
    let yard = Yard::new();
    let texts = vec![(layer, PathBuf::from("c"), text.to_owned())];
    Config::of(texts, Flags::default(), &Street, (&yard.places, Path::new("/w")))
}

/// What is wrong, joined.
fn wrong(config: &Config) -> String {
    config.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_server_is_written_in_our_form_or_in_opencodes() {
    let config = of(
        Layer::User,
        r#"{"mcp": {
          "git": {"type": "local", "command": ["git-server", "{folder}"], "environment": {"A": "1"},
                  "env": {"TOKEN": "x-{env:KEY}-y"}, "timeout": 5000, "network": ["a.b"]},
          "docs": {"type": "remote", "url": "https://d.e/mcp", "headers": {"X": "{env:KEY}"},
                   "oauth": {"clientId": "c", "callbackPort": 99}, "enabled": false},
          "bare": {"url": "http://127.0.0.1:1/mcp", "oauth": false, "protocol": "2025-11-25"}
        }, "tools": {"budget": 500}}"#,
    );
    assert_eq!(wrong(&config), "");
    let git = &config.servers["git"].0;
    let Way::Local { command, env, write, network, sandbox, .. } = &git.way else { panic!() };
    assert_eq!((command.len(), *write, *sandbox, network.len()), (2, true, true, 1));
    assert_eq!((env["A"].expose_secret(), env["TOKEN"].expose_secret()), ("1", "x-from-env-y"));
    assert_eq!(git.timeout, Duration::from_secs(5));
    let docs = &config.servers["docs"].0;
    let Way::Remote { headers, oauth, .. } = &docs.way else { panic!() };
    assert_eq!(headers["X"].expose_secret(), "from-env");
    assert_eq!(oauth.as_ref().unwrap().callback_port, Some(99));
    assert!(!docs.enabled);
    let Way::Remote { oauth: None, .. } = &config.servers["bare"].0.way else { panic!() };
    assert_eq!(config.tools.budget, Some(500));
    let shown = format!("{:?}", config.shown());
    assert!(!shown.contains("from-env") && !shown.contains("{env:KEY}"), "{shown}");
}

#[test]
fn a_server_something_is_wrong_with_is_left_out_whole() {
    for (server, why) in [
        (r#"{}"#, "`command` or `url` is missing"),
        (r#"{"command": []}"#, "names no program"),
        (r#"{"command": [" "]}"#, "names no program"),
        (r#"{"command": ["x"], "url": "https://a"}"#, "not both"),
        (r#"{"type": "remote", "command": ["x"]}"#, "`url` is missing"),
        (r#"{"url": "ftp://a"}"#, "https://"),
        (r#"{"command": ["x"], "write": "no"}"#, "left out"),
        (r#"{"command": ["x"], "readonly": true}"#, "`readonly` is not a setting"),
        (r#"{"command": ["x"], "env": {"A": "{env:UNSET}"}}"#, "UNSET is not set"),
        (r#"{"command": ["x"], "env": {"A=B": "c"}}"#, "no name of a variable"),
        (r#"{"command": ["x"], "env": {"A": "{file:/etc/passwd}"}}"#, "is not read"),
        (r#"{"url": "https://a", "sandbox": false}"#, "no sandbox"),
        (r#"{"command": ["x"], "protocol": "latest"}"#, "a version is"),
    ] {
        let config = of(Layer::User, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
        assert!(config.servers.is_empty(), "{server}");
        assert!(wrong(&config).contains(why), "{server}: {}", wrong(&config));
        assert!(!config.diagnostics.iter().any(|it| it.fatal), "{server}");
    }
    for name in ["", "a b", "größe", "a/b", &"x".repeat(33)] {
        let config = of(Layer::User, &format!(r#"{{"mcp": {{"{name}": {{"command": ["x"]}}}}}}"#));
        assert!(config.servers.is_empty(), "{name}");
    }
}

#[test]
fn a_projects_server_gets_less_than_the_persons_own() {
    let config = of(Layer::Project, r#"{"mcp": {"s": {"command": ["x"]}}}"#);
    let Way::Local { write, sandbox, .. } = &config.servers["s"].0.way else { panic!() };
    assert_eq!((*write, *sandbox), (false, true));
    let config = of(Layer::Project, r#"{"mcp": {"s": {"command": ["x"], "write": true}}}"#);
    assert!(matches!(&config.servers["s"].0.way, Way::Local { write: true, .. }));
    for (server, why) in [
        (r#"{"command": ["x"], "sandbox": false}"#, "cannot leave the sandbox"),
        (r#"{"command": ["x"], "env": {"A": "{env:KEY}"}}"#, "cannot read the environment"),
        (r#"{"url": "http://a.b"}"#, "https only"),
        (r#"{"url": "https://a.b", "headers": {"A": "{env:KEY}"}}"#, "cannot read"),
        (r#"{"url": "https://a.b", "oauth": {"clientSecret": "{env:KEY}"}}"#, "cannot read"),
    ] {
        let config = of(Layer::Project, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
        assert!(config.servers.is_empty() && wrong(&config).contains(why), "{}", wrong(&config));
    }
    let tools = of(Layer::Project, r#"{"tools": {"budget": 1000000}}"#);
    assert_eq!(tools.tools.budget, None);
}

#[test]
fn a_project_never_takes_the_place_of_the_persons_own_server() {
    let yard = Yard::new()
        .user(r#"{"mcp": {"git": {"command": ["mine"]}}}"#)
        .project(r#"{"mcp": {"git": {"command": ["evil"]}, "other": {"command": ["theirs"]}}}"#);
    std::fs::write(
        yard.root.join(".mcp.json"),
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
    assert_eq!(yard.load().servers.len(), 1, "nothing of it counts before it is trusted");
    let yard = yard.trusted();
    let config = yard.load();
    assert_eq!(config.standing, Standing::Trusted);
    let names: Vec<&String> = config.servers.keys().collect();
    assert_eq!(names, ["far", "git", "listed", "other"], "{}", wrong(&config));
    for (name, program) in [("git", "mine"), ("other", "theirs"), ("listed", "npx")] {
        let Way::Local { command, .. } = &config.servers[name].0.way else { panic!() };
        assert_eq!(command[0], program, "{name}");
    }
    for why in ["`home` is left out", "`old` is left out", "already has a server `git`"] {
        assert!(wrong(&config).contains(why), "{why}: {}", wrong(&config));
    }
    assert!(!config.diagnostics.iter().any(|it| it.fatal));
}

#[test]
fn what_names_a_server_is_what_would_run_and_not_its_secrets() {
    let digest = |server: &str| {
        let config = of(Layer::User, &format!(r#"{{"mcp": {{"s": {server}}}}}"#));
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
fn hooks_are_written_in_our_form_or_in_claudes() {
    let config = of(
        Layer::User,
        r#"{"hooks": {
          "before_tool": [{"match": "edit|write", "command": ["python3", "g.py"], "timeout": 500,
                           "name": "guard", "network": ["a.b"]},
                          {"command": "./check", "timeout": 900000}],
          "PreToolUse": [{"matcher": "Bash", "hooks": [
              {"type": "command", "command": "./a.sh"}, {"type": "command", "command": "./b.sh", "timeout": 5}]}],
          "Stop": [{"matcher": "*", "hooks": [{"type": "command", "command": "x"}]}]
        }}"#,
    );
    assert_eq!(wrong(&config), "");
    let guard = config.hooks.iter().find(|hook| hook.name == "guard").unwrap();
    assert_eq!((guard.point, guard.form), (Point::BeforeTool, Form::Ours));
    assert_eq!(guard.timeout, Duration::from_millis(500));
    assert_eq!(guard.command, HookCommand::Argv(vec!["python3".into(), "g.py".into()]));
    let claude: Vec<_> = config.hooks.iter().filter(|hook| hook.form == Form::Claude).collect();
    let seconds: Vec<u64> = claude.iter().map(|hook| hook.timeout.as_secs()).collect();
    assert_eq!(seconds, [60, 5, 60]);
    assert_eq!(claude[0].matcher.as_deref(), Some("Bash"));
    assert_eq!((claude[2].point, &claude[2].matcher), (Point::TurnEnd, &None));
    assert!(config.hooks.iter().all(|hook| hook.timeout <= Duration::from_secs(60)));
    let names: std::collections::BTreeSet<&String> =
        config.hooks.iter().map(|it| &it.name).collect();
    assert_eq!(names.len(), config.hooks.len(), "each has a name of its own");
}

#[test]
fn a_hook_that_is_not_understood_stops_the_start_unless_a_project_brings_it() {
    for hooks in [
        r#"{"BeforeTool": [{"command": "x"}]}"#,
        r#"{"before_tool": [{"command": ""}]}"#,
        r#"{"before_tool": [{"command": []}]}"#,
        r#"{"before_tool": [{"comand": "x"}]}"#,
        r#"{"before_tool": [{"command": "x", "timeout": -1}]}"#,
        r#"{"before_tool": {"command": "x"}}"#,
        r#"{"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}"#,
        r#"{"PreToolUse": [{"hooks": [{"type": "command"}]}]}"#,
    ] {
        for (layer, fatal) in [(Layer::User, true), (Layer::Project, false)] {
            let config = of(layer, &format!(r#"{{"hooks": {hooks}}}"#));
            assert!(config.hooks.is_empty(), "{hooks}");
            assert_eq!(config.diagnostics.iter().any(|it| it.fatal), fatal, "{hooks} {layer:?}");
            assert!(!config.diagnostics.is_empty(), "{hooks}");
        }
    }
    let network =
        of(Layer::Project, r#"{"hooks": {"prompt": [{"command": "x", "network": ["a"]}]}}"#);
    assert!(network.hooks.is_empty() && wrong(&network).contains("no network"));
    let managed = of(
        Layer::Managed,
        r#"{"hooks": {"prompt": [{"command": "x"}]}, "mcp": {"a": {"command": ["x"]}}}"#,
    );
    assert!(managed.hooks.is_empty() && managed.servers.is_empty());
}

#[cfg(unix)]
#[test]
fn files_of_a_trusted_project_are_known_by_what_they_were() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new();
    let tools = yard.root.join(".windlass/tools");
    std::fs::create_dir_all(tools.join("deep")).unwrap();
    for name in ["run", "text.ts", "deep/x"] {
        std::fs::write(tools.join(name), "#!/bin/sh\n").unwrap();
    }
    let mode = |name: &str, mode| {
        std::fs::set_permissions(tools.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("run", 0o755);
    std::os::unix::fs::symlink("/bin/sh", tools.join("link")).unwrap();
    assert!(yard.load().surveyed(".windlass/tools/").is_empty());
    let yard = yard.trusted();
    let config = yard.load();
    let found = config.surveyed(".windlass/tools/");
    let shown: Vec<(&str, bool)> =
        found.iter().map(|file| (file.name.as_str(), file.is_program)).collect();
    assert_eq!(shown, [(".windlass/tools/run", true), (".windlass/tools/text.ts", false)]);
    assert!(found.iter().all(|file| config.intact(file)));
    mode("text.ts", 0o755);
    assert!(!config.intact(&found[1]), "it can be run now");
    std::fs::write(tools.join("run"), "#!/bin/bash\n").unwrap();
    assert!(!config.intact(&found[0]), "it says something else");
    std::fs::remove_file(tools.join("run")).unwrap();
    std::fs::write(yard.root.join("elsewhere"), "#!/bin/sh\n").unwrap();
    std::os::unix::fs::symlink(yard.root.join("elsewhere"), tools.join("run")).unwrap();
    assert!(!config.intact(&found[0]), "a link to the same is not the same");
}
