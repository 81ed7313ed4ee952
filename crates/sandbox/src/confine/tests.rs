//! Tests of the parts of a sandbox: protected names, arguments, profiles and explanations. Real
//! processes try to escape it in `tests/confinement.rs`.

#![allow(clippy::disallowed_methods, reason = "tests create files directly")]

use super::protected_names::{is_generated, is_protected_parent, write_block_reason};
use super::seatbelt::build_profile;
use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn profile(root: &Path) -> SandboxProfile {
    SandboxProfile {
        backend: SandboxBackend::Landlock,
        root: root.to_owned(),
        workspace_writable: true,
        extra_writable: Vec::new(),
        cache_folders: Vec::new(),
        temp_dir: PathBuf::from("/temp"),
        hidden_paths: Vec::new(),
        readable_paths: Vec::new(),
        private_paths: Vec::new(),
        protected_paths: Vec::new(),
        network: NetworkAccess::None,
        loopback: LoopbackScope::Command,
    }
}

fn create_folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

fn write_file(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn git_may_write_its_data_but_not_its_configuration() {
    for path in [
        ".git/index",
        ".git/index.lock",
        ".git/HEAD",
        ".git/HEAD.lock",
        ".git/objects/ab/cdef",
        ".git/refs/heads/target/x",
        ".git/refs/heads/config",
        ".git/logs/HEAD",
        ".git/COMMIT_EDITMSG",
        ".git/MERGE_MSG",
        ".git/packed-refs.lock",
        ".git/rebase-merge/git-rebase-todo",
        ".git/index.stash.123",
        ".git/modules/sub/index",
        ".git/modules/a/b/refs/heads/x",
        ".git/worktrees/one/HEAD",
        ".git/modules/a/modules/b/index",
        ".git/modules/a/objects/info/commit-graphs/x",
        ".git/objects/info/commit-graph.lock",
        "vendor/x/.git/index",
        "src/main.rs",
        "target/debug/.cargo/config.toml",
        "node_modules/a/.vscode/settings.json",
        "a/node_modules/b/.npmrc",
    ] {
        assert_eq!(write_block_reason(path), None, "{path}");
    }
    for path in [
        ".git",
        ".GIT",
        ".git/",
        ".git/config",
        ".git/CONFIG.lock",
        ".git/config.worktree",
        ".git/hooks",
        ".git/hooks/index",
        ".git/hooks/target/x",
        ".git/node_modules",
        ".git/info/attributes",
        ".git/commondir",
        ".git/gitdir",
        ".git/remotes/x",
        ".git/anything",
        ".git/modules",
        ".git/modules/sub",
        ".git/modules/sub/config",
        ".git/modules/sub/hooks/HEAD",
        ".git/modules/a/b/config",
        ".git/worktrees/one/gitdir",
        ".git/worktrees/one/config.worktree",
        ".git/modules/a/lfs/hooks",
        ".git/modules/a/objects/config.lock",
        ".git/modules/a/objects/info/attributes",
        ".git/modules/a/objects/info/alternates",
        ".git/modules/a/modules",
        ".git/objects/info/alternates",
        ".git/Objects/info/http-alternates.lock",
        ".vscode/node_modules/x",
        "sub/.mcp.json",
        ".Cursor/MCP.json",
        "GIT~1/config",
        ".g\u{200c}it/config",
    ] {
        assert!(write_block_reason(path).is_some(), "{path}");
    }
    assert!(
        is_generated("node_modules/a")
            && is_generated("x/target/a")
            && is_generated("x/target")
            && !is_generated("a")
    );
    for path in [".cargo", "x/.config", ".local", ".local/share", ".yarn", ".m2", "mirror.git"] {
        assert!(is_protected_parent(path), "{path}");
    }
    assert!(
        !is_protected_parent("src")
            && !is_protected_parent("lib/share")
            && !is_protected_parent("node_modules/.cargo")
    );
}

proptest! {
    #[test]
    fn blocked_paths_stay_blocked_beneath_and_in_any_case(path in "[a-z./~ A-Z]{0,24}") {
        if write_block_reason(&path).is_some() && !path.to_lowercase().contains(".git") {
            let beneath = format!("{path}/x");
            prop_assert!(write_block_reason(&beneath).is_some());
            let uppercase = write_block_reason(&path.to_uppercase());
            prop_assert!(uppercase.is_some() || path.contains("target"));
        }
    }

    #[test]
    fn any_text_is_accepted_as_a_path(path in any::<String>()) {
        let _ = (write_block_reason(&path), is_generated(&path), is_protected_parent(&path));
    }
}

#[test]
fn existing_protected_paths_are_found_in_a_bounded_walk() {
    let (_keep, root) = create_folder();
    for name in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".git/info/exclude",
        ".git/objects/ab",
        ".git/modules/sub/HEAD",
        ".git/modules/sub/config",
        ".git/modules/deep/er/HEAD",
        ".git/modules/deep/er/hooks/x",
        ".git/worktrees/one/gitdir",
        ".vscode/settings.json",
        "packages/a/.npmrc",
        "packages/a/b/c/.npmrc",
        ".cargo/config.toml",
        ".cargo/other",
        "node_modules/a/.npmrc",
        "src/main.rs",
    ] {
        write_file(root.join(name), "x");
    }
    symlink("/etc", root.join(".idea")).unwrap();
    symlink(&root, root.join("src/loop")).unwrap();
    let found: Vec<String> = protected_paths(&root)
        .iter()
        .map(|path| path.strip_prefix(&root).unwrap().to_string_lossy().into_owned())
        .collect();
    let expected = [
        ".cargo/config.toml",
        ".git/config",
        ".git/hooks",
        ".git/info",
        ".git/modules/deep/er/hooks",
        ".git/modules/sub/config",
        ".git/worktrees",
        ".vscode",
        "packages/a/.npmrc",
    ];
    assert_eq!(found, expected);
    for number in 0..5_000 {
        fs::write(root.join(format!("!{number}")), "").unwrap();
        fs::write(root.join(format!("src/{number}")), "").unwrap();
    }
    // A walk that reaches its limit still finds the top level and the files that git trusts.
    let found = protected_paths(&root);
    let seen = |name: &str| found.contains(&root.join(name));
    assert!(expected.iter().all(|name| name.starts_with("packages") || seen(name)), "{found:?}");
}

#[test]
fn targets_of_protected_symlinks_are_protected() {
    let (_keep, root) = create_folder();
    for name in ["conf/a", "mine/pre-push", "cargo/config.toml", "cargo/x", ".git/HEAD", "sub/b"] {
        write_file(root.join(name), "x");
    }
    symlink("conf", root.join(".vscode")).unwrap();
    symlink("../mine", root.join(".git/hooks")).unwrap();
    symlink("cargo", root.join(".cargo")).unwrap();
    symlink("sub/later", root.join(".envrc")).unwrap();
    symlink("..", root.join("sub/.idea")).unwrap();
    symlink("/etc/passwd", root.join(".npmrc")).unwrap();
    let expected = ["cargo/config.toml", "conf", "mine", "sub/later"].map(|name| root.join(name));
    assert_eq!(protected_paths(&root), expected);
}

#[test]
fn a_gitdir_file_is_followed_only_within_the_workspace() {
    let (_keep, root) = create_folder();
    let (_other, outside) = create_folder();
    write_file(outside.join("config"), "x");
    write_file(root.join("inner/config"), "x");
    write_file(root.join("common/hooks/a"), "x");
    write_file(root.join("inner/commondir"), "../common\n");
    let git = root.join(".git");
    let hostile = [
        format!("gitdir: {}", outside.display()),
        "gitdir: ../../../../../../etc".to_owned(),
        "gitdir: /proc/self/root".to_owned(),
        "gitdir: .".to_owned(),
        "gitdir:".to_owned(),
        "gitdir: a\0b".to_owned(),
        "x".repeat(100_000),
        String::new(),
    ];
    for text in hostile {
        fs::write(&git, &text).unwrap();
        assert_eq!(
            protected_paths(&root),
            std::slice::from_ref(&git),
            "{}",
            text.get(..40).unwrap_or(&text)
        );
    }
    fs::write(&git, "gitdir: inner\n").unwrap();
    let inside = ["common/hooks", "inner/commondir", "inner/config"].map(|name| root.join(name));
    assert_eq!(protected_paths(&root), [vec![git.clone()], inside.to_vec()].concat());
    fs::remove_file(&git).unwrap();
    symlink("inner", &git).unwrap();
    assert_eq!(protected_paths(&root), inside);
}

#[test]
fn an_ineffective_profile_is_refused() {
    let good = profile(Path::new("/w"));
    assert!(good.validate().is_ok());
    for bad in [
        SandboxProfile { root: "/".into(), ..good.clone() },
        SandboxProfile { root: "w".into(), ..good.clone() },
        SandboxProfile { extra_writable: vec!["/a/../..".into()], ..good.clone() },
        SandboxProfile { extra_writable: vec!["/".into()], ..good.clone() },
        SandboxProfile { temp_dir: "".into(), ..good.clone() },
        SandboxProfile { network: NetworkAccess::Unrestricted, ..good.clone() },
        SandboxProfile { protected_paths: vec!["/w/../x".into()], ..good.clone() },
        SandboxProfile { private_paths: vec!["w".into()], ..good.clone() },
        SandboxProfile { private_paths: vec!["/w".into()], ..good.clone() },
        SandboxProfile { root: "/w/sub".into(), private_paths: vec!["/w".into()], ..good.clone() },
        // Landlock limits ports, not addresses.
        SandboxProfile { network: NetworkAccess::Proxy { port: 3128 }, ..good.clone() },
        // Landlock cannot hide a part of a folder that it opens.
        SandboxProfile {
            root: "/usr".into(),
            private_paths: vec!["/usr/bin".into()],
            ..good.clone()
        },
        SandboxProfile {
            extra_writable: vec!["/usr".into()],
            private_paths: vec!["/usr/bin".into()],
            ..good.clone()
        },
    ] {
        assert!(bad.validate().is_err(), "{bad:?}");
    }
    let odd: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec(b"/w/\xff\xfe".to_vec());
    let odd = PathBuf::from(odd);
    let odd = SandboxProfile {
        protected_paths: vec![odd.clone(), "/w/a".into()],
        root: odd,
        ..good.clone()
    };
    for profile in [good, odd] {
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<SandboxProfile>(&text).unwrap(), profile);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn bubblewrap_gets_its_mounts_in_the_right_order() {
    use super::bubblewrap::{BwrapInnerCommand, NetworkIsolation, build_arguments};
    use std::ffi::OsStr;
    let (_keep, root) = create_folder();
    for name in
        ["w/.git/config", "w/.git/hooks/x", "w/sub/.mcp.json", "w/.env", "h/.ssh/id", "h/.netrc"]
    {
        write_file(root.join(name), "x");
    }
    let work = root.join("w");
    let profile = SandboxProfile {
        backend: SandboxBackend::Bubblewrap { program: "/usr/bin/bwrap".into() },
        extra_writable: vec![root.join("h/cache")],
        cache_folders: Vec::new(),
        hidden_paths: ["h/.ssh", "h/.netrc", "w/.env", "h/absent", "h/.ssh/id"]
            .map(|name| root.join(name))
            .to_vec(),
        protected_paths: protected_paths(&work),
        ..profile(&work)
    };
    let call = BwrapInnerCommand {
        program: OsStr::new("bash"),
        arguments: vec![OsStr::new("-c")],
        folder: None,
    };
    let lines = |profile: &SandboxProfile| {
        let words = build_arguments(profile, &call, &[10, 11], NetworkIsolation::ByBubblewrap);
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let text = words.join(" ").replace(root.to_str().unwrap(), "/R").replace(" --", "\n--");
        let own = text.lines().filter(|line| !line.contains("/run") && !line.contains("/var/tmp"));
        own.map(|line| format!("{line}\n")).collect::<String>()
    };
    expect_test::expect![[r#"
        --unshare-user
        --unshare-pid
        --unshare-ipc
        --unshare-uts
        --unshare-cgroup-try
        --unshare-net
        --cap-drop ALL
        --ro-bind / /
        --dev /dev
        --proc /proc
        --size 1073741824
        --tmpfs /dev/shm
        --remount-ro /dev
        --bind /temp /tmp
        --bind /R/h/cache /R/h/cache
        --bind /R/w /R/w
        --bind /R/w/.git /R/w/.git
        --bind /R/w/sub /R/w/sub
        --ro-bind /R/w/.git/config /R/w/.git/config
        --ro-bind /R/w/.git/hooks /R/w/.git/hooks
        --ro-bind /R/w/sub/.mcp.json /R/w/sub/.mcp.json
        --ro-bind /dev/null /R/h/.netrc
        --tmpfs /R/h/.ssh
        --ro-bind /dev/null /R/w/.env
        --remount-ro /R/h/.ssh
        --remount-ro /proc
        --add-seccomp-fd 10
        --add-seccomp-fd 11
        --chdir /R/w
        -- bash -c
    "#]]
    .assert_eq(&lines(&profile));
    // A hidden path stays hidden in a workspace within a hidden folder, and its parents are bound.
    write_file(root.join("w/data/deep/secret"), "x");
    let both = vec![root.clone(), root.join("w/data/deep")];
    let nested = lines(&SandboxProfile { hidden_paths: both, ..profile.clone() });
    let at = |line: &str| nested.find(line).unwrap_or_else(|| panic!("{line}: {nested}"));
    let order = [
        at("--tmpfs /R\n"),
        at("--bind /R/w /R/w\n"),
        at("--bind /R/w/data /R/w/data\n"),
        at("--tmpfs /R/w/data/deep\n"),
    ];
    assert!(order.is_sorted(), "{nested}");
    // Of many nested protected paths, only some are mounted.
    for number in 0..200 {
        write_file(work.join(format!("p/{number}/.vscode/x")), "x");
    }
    let many =
        lines(&SandboxProfile { protected_paths: protected_paths(&work), ..profile.clone() });
    assert_eq!(many.matches("--ro-bind /R/w").count(), 64 + 2, "{many}");
    // A workspace in a hidden folder is visible, and read-only if the profile says so.
    let plan = SandboxProfile {
        workspace_writable: false,
        extra_writable: Vec::new(),
        cache_folders: Vec::new(),
        hidden_paths: vec![root.clone()],
        ..profile
    };
    let lines = lines(&plan);
    let covered = lines.find("--tmpfs /R\n").unwrap();
    let shown = lines.find("--ro-bind /R/w /R/w\n").unwrap();
    let closed = lines.find("--remount-ro /R\n").unwrap();
    assert!(covered < shown && shown < closed && !lines.contains("--bind /R"), "{lines}");
}

#[cfg(target_os = "linux")]
#[test]
fn private_paths_are_hidden_after_all_other_mounts() {
    use super::bubblewrap::{BwrapInnerCommand, NetworkIsolation, build_arguments};
    use std::ffi::OsStr;
    let (_keep, root) = create_folder();
    for name in ["w/own/key", "hide/w2/own/key", "hide/w2/deep/secret", "data/cache/x"] {
        write_file(root.join(name), "x");
    }
    let call =
        BwrapInnerCommand { program: OsStr::new("bash"), arguments: Vec::new(), folder: None };
    let lines = |profile: &SandboxProfile| {
        let words = build_arguments(profile, &call, &[], NetworkIsolation::ByBubblewrap);
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(root.to_str().unwrap(), "/R").replace(" --", "\n--")
    };
    let base = SandboxProfile {
        backend: SandboxBackend::Bubblewrap { program: "/usr/bin/bwrap".into() },
        ..profile(&root.join("w"))
    };
    let at =
        |lines: &str, words: &str| lines.find(words).unwrap_or_else(|| panic!("{words}: {lines}"));
    // Private paths in the workspace, with a writable folder in one of them.
    let inside = SandboxProfile {
        extra_writable: vec![root.join("w/own/sub"), root.join("data/cache"), root.join("data")],
        cache_folders: Vec::new(),
        private_paths: vec![root.join("w/own"), root.join("data")],
        ..base.clone()
    };
    let text = lines(&inside);
    assert!(at(&text, "--bind /R/w /R/w\n") < at(&text, "--tmpfs /R/w/own\n"));
    assert!(!text.contains("--bind /R/data") && !text.contains("--bind /R/w/own"), "{text}");
    at(&text, "--tmpfs /R/data\n");
    // A private path in a workspace that is bound within a hidden folder.
    let shown = SandboxProfile {
        root: root.join("hide/w2"),
        hidden_paths: vec![root.join("hide"), root.join("hide/w2/deep")],
        private_paths: vec![root.join("hide/w2/own")],
        ..base
    };
    let text = lines(&shown);
    let bound = at(&text, "--bind /R/hide/w2 /R/hide/w2\n");
    assert!(at(&text, "--tmpfs /R/hide\n") < bound);
    assert!(bound < at(&text, "--tmpfs /R/hide/w2/deep\n"), "{text}");
    assert!(bound < at(&text, "--tmpfs /R/hide/w2/own\n"), "{text}");
}

#[test]
fn changes_in_deep_folders_are_reported_and_existing_files_are_not() {
    let (_keep, root) = create_folder();
    write_file(root.join("a/b/c/d/e/f/x"), "");
    let before = snapshot_protected(&root);
    write_file(root.join("a/b/c/d/e/f/.envrc"), "bad");
    assert_eq!(changed_since(&before).0, [PathBuf::from("a/b/c/d/e/f/.envrc")]);

    // With more files than the walk visits, files that it reaches only later are not new.
    for number in 0..30 {
        write_file(root.join(format!("z/{number}/.npmrc")), "");
    }
    for number in 0..30_000 {
        write_file(root.join(format!("m/{number}")), "");
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let before = snapshot_protected(&root);
    fs::remove_dir_all(root.join("m")).unwrap();
    assert_eq!(changed_since(&before).0, Vec::<PathBuf>::new());
    let before = snapshot_protected(&root);
    write_file(root.join("z/7/.npmrc"), "bad");
    assert_eq!(changed_since(&before).0, [PathBuf::from("z/7/.npmrc")]);
}

#[test]
fn changes_of_protected_files_are_reported_and_not_reverted() {
    let (_keep, root) = create_folder();
    write_file(root.join(".git/config"), "old");
    write_file(root.join(".git/hooks/pre-push"), "old");
    write_file(root.join(".git/HEAD"), "x");
    write_file(root.join("src/lib.rs"), "x");
    symlink("a", root.join(".envrc")).unwrap();
    let before = snapshot_protected(&root);
    assert_eq!(changed_since(&before).0, Vec::<PathBuf>::new());

    write_file(root.join(".git/hooks/evil"), "bad");
    write_file(root.join(".git/HEAD"), "y");
    write_file(root.join("src/lib.rs"), "y");
    write_file(root.join(".vscode/settings.json"), "bad");
    write_file(root.join("sub/.mcp.json"), "bad");
    write_file(root.join(".git/commondir"), "bad");
    fs::remove_file(root.join(".git/hooks/pre-push")).unwrap();
    fs::remove_file(root.join(".envrc")).unwrap();
    symlink("/etc", root.join(".envrc")).unwrap();
    // The same size and modification time as before.
    let time = fs::metadata(root.join(".git/config")).unwrap().modified().unwrap();
    write_file(root.join(".git/config"), "bad");
    let file = fs::File::options().append(true).open(root.join(".git/config")).unwrap();
    file.set_modified(time).unwrap();

    let reported = changed_since(&before).0;
    let expected = [
        ".envrc",
        ".git/commondir",
        ".git/config",
        ".git/hooks/evil",
        ".git/hooks/pre-push",
        ".vscode",
        "sub/.mcp.json",
    ];
    assert_eq!(reported, expected.map(PathBuf::from));
    assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), "bad");
}

#[test]
fn a_failure_caused_by_the_sandbox_is_explained() {
    let profile =
        SandboxProfile { hidden_paths: vec!["/home/a/.ssh".into()], ..profile(Path::new("/w")) };
    let in_home = SandboxProfile {
        root: "/home/a/w".into(),
        hidden_paths: ["/home/a/.ssh", "/home/a", "/home/a/w/.env"].map(PathBuf::from).into(),
        readable_paths: vec!["/home/a/.cargo".into()],
        protected_paths: vec!["/home/a/w/locked".into()],
        ..profile.clone()
    };
    let plan = SandboxProfile { workspace_writable: false, ..profile.clone() };
    let backend = SandboxBackend::Bubblewrap { program: "/usr/bin/bwrap".into() };
    let own_loopback = SandboxProfile { backend, ..profile.clone() };
    let refused = "curl: (7) Failed to connect to localhost port 3000: Connection refused";
    let rows = [
        (&own_loopback, refused, "Nothing listens"),
        (&own_loopback, "curl: (6) Could not resolve host: example.com", "no network"),
        (&profile, refused, "no network"),
        (&profile, "bash: line 1: .git/hooks/x: Read-only file system", "protected"),
        (&profile, "mkdir: cannot create directory ‘.vscode’: Read-only file system", "protected"),
        (&profile, "touch: cannot touch '/etc/x': Permission denied", "outside the workspace"),
        (&profile, "cat: /home/a/.ssh/id_rsa: No such file", ""),
        (&profile, "cat: /home/a/.ssh/id_rsa: Permission denied", "secrets"),
        (&profile, "curl: (6) Could not resolve host: example.com", "no network"),
        (&profile, "mount: /mnt: Operation not permitted", "system call"),
        (&profile, "docker: connect: socket: Operation not permitted", "sockets"),
        (&profile, "Got permission denied while trying to connect to the Docker daemon", "sockets"),
        (&profile, "dial unix /run/docker.sock: connect: operation not permitted", "sockets"),
        (
            &profile,
            "touch: cannot touch '/etc/socket.d': Permission denied",
            "outside the workspace",
        ),
        (&profile, "error: could not lock config file .git/config: Device busy", "protected"),
        (&profile, "fatal: Unable to create '/w/.git/config.lock': I/O error", "protected"),
        (&profile, "fatal: Unable to create '/w/.git/index.lock': File exists.", ""),
        (&profile, "./run.sh: Permission denied", ""),
        (&profile, "error[E0308]: mismatched types", ""),
        (&profile, "", ""),
        (&in_home, "cat: ../b/x.toml: No such file or directory", "in the home folder"),
        (
            &in_home,
            "failed to read `/home/a/b/Cargo.toml`: No such file or directory",
            "sandbox.read",
        ),
        (&in_home, "cat: absent: No such file or directory", ""),
        (&in_home, "cat: /home/a/.cargo/absent: No such file or directory", ""),
        (&in_home, "cat: .env: Permission denied", "has not approved"),
        (&in_home, "touch: cannot touch './locked': Read-only file system", "A permission rule"),
        (&plan, "touch: cannot touch 'x': Read-only file system", "another mode"),
        (&plan, "./x: Permission denied", "another mode"),
    ];
    for (profile, output, expected) in rows {
        let explanation = explain_failure(output, Some(1), profile);
        assert_eq!(explanation.is_some(), !expected.is_empty(), "{output}: {explanation:?}");
        assert!(explanation.unwrap_or_default().contains(expected), "{output}");
        assert_eq!(explain_failure(output, Some(0), profile), None);
    }
    let open = SandboxProfile { backend: SandboxBackend::Off, ..profile };
    assert_eq!(explain_failure("x: Read-only file system", Some(1), &open), None);
}

#[test]
fn a_seatbelt_profile_matches_the_sandbox_and_escapes_paths() {
    let root = Path::new("/w \"(allow default)\\");
    let profile = SandboxProfile {
        protected_paths: vec![root.join(".git/config")],
        hidden_paths: vec!["/home/a/.ssh".into()],
        network: NetworkAccess::Proxy { port: 3128 },
        ..profile(root)
    };
    let text = build_profile(&profile);
    let escaped = r#""/w \"(allow default)\\""#;
    assert!(text.contains(&format!("(allow file-write* (subpath {escaped}))")), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("(allow default)")));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("(allow file-write* (subpath") < at(".git/config\"))"));
    assert!(at(".git/config\"))") < at("(deny file-read* file-write* (subpath \"/home/a/.ssh\"))"));
    assert!(text.contains("localhost:3128") && !text.contains("(allow network*)"));
    let in_home = SandboxProfile {
        root: "/home/a/w".into(),
        hidden_paths: vec!["/home/a/.cargo/credentials".into(), "/home/a".into()],
        readable_paths: vec!["/home/a/.cargo".into()],
        ..profile.clone()
    };
    let text = build_profile(&in_home);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    let hidden_home = at("(deny file-read* file-write* (subpath \"/home/a\"))");
    for rule in [
        "(allow file-read* (subpath \"/home/a/.cargo\"))",
        "(allow file-write* (subpath \"/home/a/w\"))",
    ] {
        assert!(hidden_home < at(rule), "{text}");
    }
    let credentials = at("(deny file-read* file-write* (subpath \"/home/a/.cargo/credentials\"))");
    assert!(at("(allow file-read* (subpath \"/home/a/.cargo\"))") < credentials, "{text}");
    let plan =
        SandboxProfile { workspace_writable: false, network: NetworkAccess::None, ..profile };
    assert!(!build_profile(&plan).contains("(allow file-write* (subpath \"/w"));
    assert!(!build_profile(&plan).contains("network"));
}

#[test]
fn a_rebase_that_runs_commands_is_reported() {
    let (_folder, root) = create_folder();
    write_file(root.join(".git/config"), "");
    write_file(root.join("deep/mod/.git/config"), "");
    let todo = root.join(".git/rebase-merge/git-rebase-todo");
    write_file(todo.clone(), "pick 1234567 exec\n");
    let before = snapshot_protected(&root);
    write_file(todo.clone(), "pick 1234567 a\nfixup 89abcde b\n");
    assert_eq!(changed_since(&before).0, Vec::<PathBuf>::new());
    write_file(todo, "pick 1234567 a\n  exec ./x\n");
    write_file(root.join("deep/mod/.git/rebase-merge/git-rebase-todo"), "x make\n");
    let expected =
        [".git/rebase-merge/git-rebase-todo", "deep/mod/.git/rebase-merge/git-rebase-todo"];
    assert_eq!(changed_since(&before).0, expected.map(PathBuf::from));
}
