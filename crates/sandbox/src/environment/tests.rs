//! What goes in and must not come out.

use super::*;
use std::collections::BTreeMap;

fn made(inherited: &[(&str, &str)], hooks: Hooks, terminal: bool) -> BTreeMap<String, String> {
    let surroundings = Surroundings { terminal, hooks };
    let inherited = inherited.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let made = environment(inherited, &surroundings);
    let count = made.len();
    let text = |text: OsString| text.into_string().unwrap();
    let map: BTreeMap<_, _> =
        made.into_iter().map(|(name, value)| (text(name), text(value))).collect();
    assert_eq!(map.len(), count, "no name twice");
    map
}

#[test]
fn no_secret_and_nothing_that_loads_code_comes_through() {
    let names = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "GEMINI_API_KEY",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITLAB_TOKEN",
        "NPM_TOKEN",
        "CARGO_REGISTRY_TOKEN",
        "HF_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AZURE_CLIENT_SECRET",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "STRIPE_SECRET",
        "DATABASE_URL",
        "PGPASSWORD",
        "VAULT_ADDR",
        "KUBECONFIG",
        "DOCKER_HOST",
        "SSH_AUTH_SOCK",
        "SSH_ASKPASS",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DISPLAY",
        "WINDLASS_DATA",
        "WINDLASS_JOB",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "PS4",
        "SHELLOPTS",
        "BASHOPTS",
        "BASH_FUNC_ls%%",
        "IFS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "JAVA_TOOL_OPTIONS",
        "MAKEFLAGS",
        "GIT_SSH",
        "GIT_EXTERNAL_DIFF",
        "GIT_DIR",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_CONFIG_VALUE_0",
        "GIT_ASKPASS",
        "EDITOR",
        "PAGER",
        "LESSOPEN",
        "COLORTERM",
        "LC_SECRET",
        "LC_",
        "path",
        "Path",
        "HTTP_PROXY",
        "https_proxy",
    ];
    let inherited: Vec<_> = names.iter().map(|name| (*name, "s3cr3t")).collect();
    for hooks in [Hooks::Run, Hooks::Skip] {
        for terminal in [true, false] {
            for (name, value) in made(&inherited, hooks, terminal) {
                assert_ne!(value, "s3cr3t", "{name}");
            }
        }
    }
}

#[test]
fn what_tools_need_comes_through() {
    for name in INHERITED {
        assert_eq!(made(&[(name, "x")], Hooks::Skip, false).get(*name).unwrap(), "x");
    }
    assert!(INHERITED.is_sorted(), "it is searched by halves");
}

#[test]
fn no_folder_that_depends_on_where_one_is_leads_to_programs() {
    for (given, kept) in [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin::.:bin:./x:../y:/bin:", "/usr/bin:/bin"),
        ("~/bin:/bin", "/bin"),
        ("", USUAL_PATH),
        (".:::", USUAL_PATH),
    ] {
        assert_eq!(made(&[("PATH", given)], Hooks::Skip, false)["PATH"], kept, "{given}");
    }
    assert_eq!(made(&[], Hooks::Skip, false)["PATH"], USUAL_PATH);
}

#[test]
fn only_a_terminal_has_a_kind() {
    let given = [("TERM", "screen")];
    assert_eq!(made(&given, Hooks::Skip, false)["TERM"], "dumb");
    assert_eq!(made(&given, Hooks::Skip, true)["TERM"], "screen");
    assert_eq!(made(&[], Hooks::Skip, true)["TERM"], USUAL_TERMINAL);
}

/// Real git, in a repository whose own configuration wants to run programs.
#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "a test arranges the world from outside")]
fn a_repository_runs_nothing_but_its_hooks_if_it_is_trusted() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let marker = |name: &str| folder.path().join(name);
    let git = |hooks, arguments: &[&str]| {
        let surroundings = Surroundings { terminal: false, hooks };
        let home = ("HOME".into(), folder.path().into());
        let mut command = Command::new("git");
        command.env_clear().envs(environment([home], &surroundings));
        command.current_dir(folder.path()).args(["-c", "user.name=x", "-c", "user.email=x@y"]);
        command.args(arguments).output()
    };
    let Ok(made) = git(Hooks::Skip, &["init", "-q", "."]) else { return };
    assert!(made.status.success());
    let touch = |name: &str| format!("touch {}; false", marker(name).display());
    for (key, name) in [("core.fsmonitor", "monitor"), ("core.pager", "pager")] {
        git(Hooks::Skip, &["config", key, &touch(name)]).unwrap();
    }
    let hook = folder.path().join(".git/hooks/pre-commit");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker("hook").display())).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(folder.path().join("a"), "a").unwrap();
    for arguments in
        [&["status"][..], &["add", "a"], &["commit", "-q", "-m", "x"], &["log"], &["diff", "HEAD"]]
    {
        let output = git(Hooks::Skip, arguments).unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {words}");
    }
    let remote = git(Hooks::Skip, &["ls-remote", "ext::sh -c 'touch remote'"]).unwrap();
    assert!(!remote.status.success());
    for name in ["monitor", "pager", "hook", "remote"] {
        assert!(!marker(name).exists(), "{name}");
    }
    git(Hooks::Run, &["commit", "-q", "--allow-empty", "-m", "y"]).unwrap();
    assert!(marker("hook").exists());
}
