//! What a cage is made of: names, arguments, profiles and sentences. What it holds is tried by
//! real processes in `tests/cage.rs`.

#![allow(clippy::disallowed_methods, reason = "tests make the files they are about")]

use super::names::{closed, leads, loose};
use super::seatbelt::profile;
use super::*;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn cage(root: &Path) -> Cage {
    Cage {
        backend: Backend::Landlock,
        root: root.to_owned(),
        writable: true,
        write: Vec::new(),
        temp: PathBuf::from("/temp"),
        hidden: Vec::new(),
        private: Vec::new(),
        guarded: Vec::new(),
        network: Network::None,
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    (folder, path)
}

fn put(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn git_may_work_but_not_be_told_what_to_run() {
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
        assert_eq!(closed(path), None, "{path}");
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
        assert!(closed(path).is_some(), "{path}");
    }
    assert!(loose("node_modules/a") && loose("x/target/a") && loose("x/target") && !loose("a"));
    for path in [".cargo", "x/.config", ".local", ".local/share", ".yarn", ".m2", "mirror.git"] {
        assert!(leads(path), "{path}");
    }
    assert!(!leads("src") && !leads("lib/share") && !leads("node_modules/.cargo"));
}

proptest! {
    #[test]
    fn what_is_closed_stays_closed_beneath_and_in_any_case(path in "[a-z./~ A-Z]{0,24}") {
        if closed(&path).is_some() && !path.to_lowercase().contains(".git") {
            let beneath = format!("{path}/x");
            prop_assert!(closed(&beneath).is_some());
            prop_assert!(closed(&path.to_uppercase()).is_some() || path.contains("target"));
        }
    }

    #[test]
    fn any_text_is_a_name(path in any::<String>()) {
        let _ = (closed(&path), loose(&path), leads(&path));
    }
}

#[test]
fn what_exists_is_found_and_what_is_endless_is_not_walked() {
    let (_keep, root) = folder();
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
        put(root.join(name), "x");
    }
    symlink("/etc", root.join(".idea")).unwrap();
    symlink(&root, root.join("src/loop")).unwrap();
    let found: Vec<String> = guarded(&root)
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
    // A look that is cut short still sees the top and what git believes.
    let found = guarded(&root);
    let seen = |name: &str| found.contains(&root.join(name));
    assert!(expected.iter().all(|name| name.starts_with("packages") || seen(name)), "{found:?}");
}

#[test]
fn where_a_link_of_a_protected_name_leads_is_guarded() {
    let (_keep, root) = folder();
    for name in ["conf/a", "mine/pre-push", "cargo/config.toml", "cargo/x", ".git/HEAD", "sub/b"] {
        put(root.join(name), "x");
    }
    symlink("conf", root.join(".vscode")).unwrap();
    symlink("../mine", root.join(".git/hooks")).unwrap();
    symlink("cargo", root.join(".cargo")).unwrap();
    symlink("sub/later", root.join(".envrc")).unwrap();
    symlink("..", root.join("sub/.idea")).unwrap();
    symlink("/etc/passwd", root.join(".npmrc")).unwrap();
    let expected = ["cargo/config.toml", "conf", "mine", "sub/later"].map(|name| root.join(name));
    assert_eq!(guarded(&root), expected);
}

#[test]
fn a_file_that_names_a_git_folder_is_believed_within_the_workspace_only() {
    let (_keep, root) = folder();
    let (_other, outside) = folder();
    put(outside.join("config"), "x");
    put(root.join("inner/config"), "x");
    put(root.join("common/hooks/a"), "x");
    put(root.join("inner/commondir"), "../common\n");
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
            guarded(&root),
            std::slice::from_ref(&git),
            "{}",
            text.get(..40).unwrap_or(&text)
        );
    }
    fs::write(&git, "gitdir: inner\n").unwrap();
    let inside = ["common/hooks", "inner/commondir", "inner/config"].map(|name| root.join(name));
    assert_eq!(guarded(&root), [vec![git.clone()], inside.to_vec()].concat());
    fs::remove_file(&git).unwrap();
    symlink("inner", &git).unwrap();
    assert_eq!(guarded(&root), inside);
}

#[test]
fn a_cage_that_would_be_none_is_refused() {
    let good = cage(Path::new("/w"));
    assert!(good.check().is_ok());
    for bad in [
        Cage { root: "/".into(), ..good.clone() },
        Cage { root: "w".into(), ..good.clone() },
        Cage { write: vec!["/a/../..".into()], ..good.clone() },
        Cage { write: vec!["/".into()], ..good.clone() },
        Cage { temp: "".into(), ..good.clone() },
        Cage { network: Network::Open, ..good.clone() },
        Cage { guarded: vec!["/w/../x".into()], ..good.clone() },
        Cage { private: vec!["w".into()], ..good.clone() },
        Cage { private: vec!["/w".into()], ..good.clone() },
        Cage { root: "/w/sub".into(), private: vec!["/w".into()], ..good.clone() },
        // Landlock limits ports, not addresses.
        Cage { network: Network::Proxy { port: 3128 }, ..good.clone() },
        // And cannot hide a part of what it opens.
        Cage { root: "/usr".into(), private: vec!["/usr/bin".into()], ..good.clone() },
        Cage { write: vec!["/usr".into()], private: vec!["/usr/bin".into()], ..good.clone() },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
    let odd: std::ffi::OsString =
        std::os::unix::ffi::OsStringExt::from_vec(b"/w/\xff\xfe".to_vec());
    let odd = PathBuf::from(odd);
    let odd = Cage { guarded: vec![odd.clone(), "/w/a".into()], root: odd, ..good.clone() };
    for cage in [good, odd] {
        let text = serde_json::to_string(&cage).unwrap();
        assert_eq!(serde_json::from_str::<Cage>(&text).unwrap(), cage);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn bubblewrap_gets_its_mounts_in_the_right_order() {
    use super::bwrap::{Call, arguments};
    use std::ffi::OsStr;
    let (_keep, root) = folder();
    for name in
        ["w/.git/config", "w/.git/hooks/x", "w/sub/.mcp.json", "w/.env", "h/.ssh/id", "h/.netrc"]
    {
        put(root.join(name), "x");
    }
    let work = root.join("w");
    let cage = Cage {
        backend: Backend::Bubblewrap { program: "/usr/bin/bwrap".into() },
        write: vec![root.join("h/cache")],
        hidden: ["h/.ssh", "h/.netrc", "w/.env", "h/absent", "h/.ssh/id"]
            .map(|name| root.join(name))
            .to_vec(),
        guarded: guarded(&work),
        ..cage(&work)
    };
    let call =
        Call { program: OsStr::new("bash"), arguments: vec![OsStr::new("-c")], folder: None };
    let lines = |cage: &Cage| {
        let words = arguments(cage, &call, &[10, 11]);
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
    .assert_eq(&lines(&cage));
    // What is hidden in a workspace in a hidden folder stays so, and the way to it its own.
    put(root.join("w/data/deep/secret"), "x");
    let both = vec![root.clone(), root.join("w/data/deep")];
    let nested = lines(&Cage { hidden: both, ..cage.clone() });
    let at = |line: &str| nested.find(line).unwrap_or_else(|| panic!("{line}: {nested}"));
    let order = [
        at("--tmpfs /R\n"),
        at("--bind /R/w /R/w\n"),
        at("--bind /R/w/data /R/w/data\n"),
        at("--tmpfs /R/w/data/deep\n"),
    ];
    assert!(order.is_sorted(), "{nested}");
    // Of many that are nested, some are mounted.
    for number in 0..200 {
        put(work.join(format!("p/{number}/.vscode/x")), "x");
    }
    let many = lines(&Cage { guarded: guarded(&work), ..cage.clone() });
    assert_eq!(many.matches("--ro-bind /R/w").count(), 64 + 2, "{many}");
    // A workspace in a hidden folder is there all the same, and read-only if it should be.
    let plan = Cage { writable: false, write: Vec::new(), hidden: vec![root.clone()], ..cage };
    let lines = lines(&plan);
    let covered = lines.find("--tmpfs /R\n").unwrap();
    let shown = lines.find("--ro-bind /R/w /R/w\n").unwrap();
    let closed = lines.find("--remount-ro /R\n").unwrap();
    assert!(covered < shown && shown < closed && !lines.contains("--bind /R"), "{lines}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_private_is_covered_last_whatever_is_opened() {
    use super::bwrap::{Call, arguments};
    use std::ffi::OsStr;
    let (_keep, root) = folder();
    for name in ["w/own/key", "hide/w2/own/key", "hide/w2/deep/secret", "data/cache/x"] {
        put(root.join(name), "x");
    }
    let call = Call { program: OsStr::new("bash"), arguments: Vec::new(), folder: None };
    let lines = |cage: &Cage| {
        let words = arguments(cage, &call, &[]);
        let words: Vec<String> =
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        words.join(" ").replace(root.to_str().unwrap(), "/R").replace(" --", "\n--")
    };
    let base = Cage {
        backend: Backend::Bubblewrap { program: "/usr/bin/bwrap".into() },
        ..cage(&root.join("w"))
    };
    let at =
        |lines: &str, words: &str| lines.find(words).unwrap_or_else(|| panic!("{words}: {lines}"));
    // In the workspace, and with a folder in it that may be changed.
    let inside = Cage {
        write: vec![root.join("w/own/sub"), root.join("data/cache"), root.join("data")],
        private: vec![root.join("w/own"), root.join("data")],
        ..base.clone()
    };
    let text = lines(&inside);
    assert!(at(&text, "--bind /R/w /R/w\n") < at(&text, "--tmpfs /R/w/own\n"));
    assert!(!text.contains("--bind /R/data") && !text.contains("--bind /R/w/own"), "{text}");
    at(&text, "--tmpfs /R/data\n");
    // In a workspace that lies in a hidden folder and so is shown again.
    let shown = Cage {
        root: root.join("hide/w2"),
        hidden: vec![root.join("hide"), root.join("hide/w2/deep")],
        private: vec![root.join("hide/w2/own")],
        ..base
    };
    let text = lines(&shown);
    let bound = at(&text, "--bind /R/hide/w2 /R/hide/w2\n");
    assert!(at(&text, "--tmpfs /R/hide\n") < bound);
    assert!(bound < at(&text, "--tmpfs /R/hide/w2/deep\n"), "{text}");
    assert!(bound < at(&text, "--tmpfs /R/hide/w2/own\n"), "{text}");
}

#[test]
fn what_slipped_through_far_down_is_told_and_what_was_there_is_not() {
    let (_keep, root) = folder();
    put(root.join("a/b/c/d/e/f/x"), "");
    let before = snapshot(&root);
    put(root.join("a/b/c/d/e/f/.envrc"), "bad");
    assert_eq!(changed(&before), [PathBuf::from("a/b/c/d/e/f/.envrc")]);

    // More names than are looked at: what comes into view later is not taken for new.
    for number in 0..30 {
        put(root.join(format!("z/{number}/.npmrc")), "");
    }
    for number in 0..30_000 {
        put(root.join(format!("m/{number}")), "");
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    let before = snapshot(&root);
    fs::remove_dir_all(root.join("m")).unwrap();
    assert_eq!(changed(&before), Vec::<PathBuf>::new());
    let before = snapshot(&root);
    put(root.join("z/7/.npmrc"), "bad");
    assert_eq!(changed(&before), [PathBuf::from("z/7/.npmrc")]);
}

#[test]
fn what_slipped_through_is_told_and_left_to_whoever_made_it() {
    let (_keep, root) = folder();
    put(root.join(".git/config"), "old");
    put(root.join(".git/hooks/pre-push"), "old");
    put(root.join(".git/HEAD"), "x");
    put(root.join("src/lib.rs"), "x");
    symlink("a", root.join(".envrc")).unwrap();
    let before = snapshot(&root);
    assert_eq!(changed(&before), Vec::<PathBuf>::new());

    put(root.join(".git/hooks/evil"), "bad");
    put(root.join(".git/HEAD"), "y");
    put(root.join("src/lib.rs"), "y");
    put(root.join(".vscode/settings.json"), "bad");
    put(root.join("sub/.mcp.json"), "bad");
    put(root.join(".git/commondir"), "bad");
    fs::remove_file(root.join(".git/hooks/pre-push")).unwrap();
    fs::remove_file(root.join(".envrc")).unwrap();
    symlink("/etc", root.join(".envrc")).unwrap();
    // As long as before, and with the old time.
    let time = fs::metadata(root.join(".git/config")).unwrap().modified().unwrap();
    put(root.join(".git/config"), "bad");
    let file = fs::File::options().append(true).open(root.join(".git/config")).unwrap();
    file.set_modified(time).unwrap();

    let told = changed(&before);
    let expected = [
        ".envrc",
        ".git/commondir",
        ".git/config",
        ".git/hooks/evil",
        ".git/hooks/pre-push",
        ".vscode",
        "sub/.mcp.json",
    ];
    assert_eq!(told, expected.map(PathBuf::from));
    assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), "bad");
}

#[test]
fn a_failure_that_is_the_cages_is_explained() {
    let cage = Cage { hidden: vec!["/home/a/.ssh".into()], ..cage(Path::new("/w")) };
    let plan = Cage { writable: false, ..cage.clone() };
    let rows = [
        (&cage, "bash: line 1: .git/hooks/x: Read-only file system", "protected"),
        (&cage, "mkdir: cannot create directory ‘.vscode’: Read-only file system", "protected"),
        (&cage, "touch: cannot touch '/etc/x': Permission denied", "outside the workspace"),
        (&cage, "cat: /home/a/.ssh/id_rsa: No such file", ""),
        (&cage, "cat: /home/a/.ssh/id_rsa: Permission denied", "secrets"),
        (&cage, "curl: (6) Could not resolve host: example.com", "no network"),
        (&cage, "mount: /mnt: Operation not permitted", "system call"),
        (&cage, "docker: connect: socket: Operation not permitted", "sockets"),
        (&cage, "Got permission denied while trying to connect to the Docker daemon", "sockets"),
        (&cage, "dial unix /run/docker.sock: connect: operation not permitted", "sockets"),
        (&cage, "touch: cannot touch '/etc/socket.d': Permission denied", "outside the workspace"),
        (&cage, "error: could not lock config file .git/config: Device busy", "protected"),
        (&cage, "fatal: Unable to create '/w/.git/config.lock': I/O error", "protected"),
        (&cage, "fatal: Unable to create '/w/.git/index.lock': File exists.", ""),
        (&cage, "./run.sh: Permission denied", ""),
        (&cage, "error[E0308]: mismatched types", ""),
        (&cage, "", ""),
        (&plan, "touch: cannot touch 'x': Read-only file system", "another mode"),
        (&plan, "./x: Permission denied", "another mode"),
    ];
    for (cage, output, expected) in rows {
        let said = explain(output, Some(1), cage);
        assert_eq!(said.is_some(), !expected.is_empty(), "{output}: {said:?}");
        assert!(said.unwrap_or_default().contains(expected), "{output}");
        assert_eq!(explain(output, Some(0), cage), None);
    }
    let open = Cage { backend: Backend::Off, ..cage };
    assert_eq!(explain("x: Read-only file system", Some(1), &open), None);
}

#[test]
fn a_profile_says_what_the_cage_says_and_cannot_be_broken_out_of() {
    let root = Path::new("/w \"(allow default)\\");
    let cage = Cage {
        guarded: vec![root.join(".git/config")],
        hidden: vec!["/home/a/.ssh".into()],
        network: Network::Proxy { port: 3128 },
        ..cage(root)
    };
    let text = profile(&cage);
    let escaped = r#""/w \"(allow default)\\""#;
    assert!(text.contains(&format!("(allow file-write* (subpath {escaped}))")), "{text}");
    assert!(!text.lines().any(|line| line.starts_with("(allow default)")));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(at("(allow file-write* (subpath") < at(".git/config\"))"));
    assert!(at(".git/config\"))") < at("(deny file-read* file-write* (subpath \"/home/a/.ssh\"))"));
    assert!(text.contains("localhost:3128") && !text.contains("(allow network*)"));
    let plan = Cage { writable: false, network: Network::None, ..cage };
    assert!(!profile(&plan).contains("(allow file-write* (subpath \"/w"));
    assert!(!profile(&plan).contains("network"));
}
