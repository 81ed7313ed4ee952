//! Tests of the variables that a command inherits.

use super::*;
use std::collections::BTreeMap;

fn build_environment(
    inherited: &[(&str, &str)],
    hooks: GitHookMode,
    terminal: bool,
) -> BTreeMap<String, String> {
    let options = CommandEnvironmentOptions { has_terminal: terminal, git_hooks: hooks };
    let inherited = inherited.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let variables = command_environment(inherited, &options);
    let count = variables.len();
    let text = |text: OsString| text.into_string().unwrap();
    let map: BTreeMap<_, _> =
        variables.into_iter().map(|(name, value)| (text(name), text(value))).collect();
    assert_eq!(map.len(), count, "no name is set twice");
    map
}

#[test]
fn secrets_and_variables_that_load_code_are_not_inherited() {
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
    for hooks in [GitHookMode::Run, GitHookMode::Skip] {
        for terminal in [true, false] {
            for (name, value) in build_environment(&inherited, hooks, terminal) {
                assert_ne!(value, "s3cr3t", "{name}");
            }
        }
    }
}

#[test]
fn variables_that_tools_need_are_inherited() {
    for name in INHERITED_VARIABLES {
        assert_eq!(
            build_environment(&[(name, "x")], GitHookMode::Skip, false).get(*name).unwrap(),
            "x"
        );
    }
    assert!(INHERITED_VARIABLES.is_sorted(), "the list is searched by bisection");
}

#[test]
fn relative_folders_are_removed_from_path() {
    for (given, kept) in [
        ("/usr/bin:/bin", "/usr/bin:/bin"),
        (":/usr/bin::.:bin:./x:../y:/bin:", "/usr/bin:/bin"),
        ("~/bin:/bin", "/bin"),
        ("", DEFAULT_PATH),
        (".:::", DEFAULT_PATH),
    ] {
        assert_eq!(
            build_environment(&[("PATH", given)], GitHookMode::Skip, false)["PATH"],
            kept,
            "{given}"
        );
    }
    assert_eq!(build_environment(&[], GitHookMode::Skip, false)["PATH"], DEFAULT_PATH);
}

#[test]
fn term_is_dumb_without_a_terminal() {
    let given = [("TERM", "screen")];
    assert_eq!(build_environment(&given, GitHookMode::Skip, false)["TERM"], "dumb");
    assert_eq!(build_environment(&given, GitHookMode::Skip, true)["TERM"], "screen");
    assert_eq!(build_environment(&[], GitHookMode::Skip, true)["TERM"], DEFAULT_TERM);
}

/// Runs git in a repository whose configuration and hooks run programs.
#[cfg(unix)]
#[test]
#[allow(clippy::disallowed_methods, reason = "the test creates files and runs git directly")]
fn a_repository_runs_only_its_hooks_and_only_if_trusted() {
    use std::process::Command;
    let folder = tempfile::tempdir().unwrap();
    let marker = |name: &str| folder.path().join(name);
    let git = |hooks, arguments: &[&str]| {
        let options = CommandEnvironmentOptions { has_terminal: false, git_hooks: hooks };
        let home = ("HOME".into(), folder.path().into());
        let mut command = Command::new("git");
        command.env_clear().envs(command_environment([home], &options));
        command.current_dir(folder.path()).args(["-c", "user.name=x", "-c", "user.email=x@y"]);
        command.args(arguments).output()
    };
    let Ok(initialized) = git(GitHookMode::Skip, &["init", "-q", "."]) else { return };
    assert!(initialized.status.success());
    let touch = |name: &str| format!("touch {}; false", marker(name).display());
    for (key, name) in [("core.fsmonitor", "monitor"), ("core.pager", "pager")] {
        git(GitHookMode::Skip, &["config", key, &touch(name)]).unwrap();
    }
    let hook = folder.path().join(".git/hooks/pre-commit");
    std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker("hook").display())).unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(folder.path().join("a"), "a").unwrap();
    for arguments in
        [&["status"][..], &["add", "a"], &["commit", "-q", "-m", "x"], &["log"], &["diff", "HEAD"]]
    {
        let output = git(GitHookMode::Skip, arguments).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
    }
    let remote = git(GitHookMode::Skip, &["ls-remote", "ext::sh -c 'touch remote'"]).unwrap();
    assert!(!remote.status.success());
    for name in ["monitor", "pager", "hook", "remote"] {
        assert!(!marker(name).exists(), "{name}");
    }
    git(GitHookMode::Run, &["commit", "-q", "--allow-empty", "-m", "y"]).unwrap();
    assert!(marker("hook").exists());
}
