//! Tests of files that a walk finds and skips, and of symlinks that are swapped during a walk.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files and run programs directly")]

use super::*;
use crate::call_workspace::tests::{StopOnDrop, TestWorkspace};
use proptest::prelude::proptest;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use windlass_protocol::path_escapes::unescape_path;

fn grant_search(env: &TestWorkspace, path: &str) -> CallWorkspace {
    env.grant(&[ToolAccess::Search { path: path.into() }])
}

fn glob_filter(globs: &[&str]) -> FileFilter {
    FileFilter { globs: globs.iter().map(|glob| (*glob).to_owned()).collect() }
}

/// Lists files with both kinds of walk, which must agree.
fn list_files(granted: &CallWorkspace, path: &str, globs: &[&str]) -> Vec<String> {
    let tree = granted.walk(path).unwrap();
    let ordered: Vec<String> =
        tree.files(&glob_filter(globs)).unwrap().map(FoundFile::into_path).collect();
    let all = Mutex::new(Vec::new());
    let keep = |file: FoundFile<'_>| all.lock().unwrap().push(file.into_path());
    tree.visit_parallel(&glob_filter(globs), &|| false, &keep).unwrap();
    let mut all = all.into_inner().unwrap();
    all.sort_by_key(|path| unescape_path(path).into_owned());
    assert_eq!(ordered, all);
    ordered
}

#[test]
fn files_come_in_the_order_of_their_paths() {
    let env = TestWorkspace::new();
    for path in ["z", "b/2", "b/1", "b.txt", "a/x/y", "a/b"] {
        env.put(path, "");
    }
    let granted = grant_search(&env, ".");
    assert_eq!(
        list_files(&granted, ".", &[]),
        ["a/b", "a/x/y", "b/1", "b/2", "b.txt", "src/a.txt", "z"]
    );
}

#[test]
fn every_kind_of_ignore_file_applies_and_hidden_files_are_skipped() {
    let env = TestWorkspace::new();
    env.put(".git/info/exclude", "excluded\n");
    env.put(".gitignore", "*.log\n!kept.log\nbuilt/\n");
    env.put(".ignore", "by-ignore\n");
    env.put(".rgignore", "by-rgignore\n");
    env.put("deep/.gitignore", "only-here\n");
    for path in [
        "excluded",
        "a.log",
        "kept.log",
        "built/x",
        "by-ignore",
        "by-rgignore",
        "deep/only-here",
        "only-here",
        "deep/a.log",
        ".hidden",
        ".folder/x",
    ] {
        env.put(path, "");
    }
    let granted = grant_search(&env, ".");
    assert_eq!(list_files(&granted, ".", &[]), ["kept.log", "only-here", "src/a.txt"]);
    // Ignore files above a searched folder apply too.
    assert!(list_files(&grant_search(&env, "deep"), "deep", &[]).is_empty());
    // A file or folder that is searched explicitly is not ignored.
    assert_eq!(list_files(&grant_search(&env, "a.log"), "a.log", &[]), ["a.log"]);
    assert_eq!(list_files(&grant_search(&env, "built"), "built", &[]), ["built/x"]);
}

/// Creates a file that would block or flood a reader in place of an ignore file.
fn create_blocking_file(path: &Path, kind: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match kind {
        "endless" => symlink("/dev/zero", path).unwrap(),
        "pipe" => {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())
        }
        "link to a pipe" => {
            let pipe = path.with_extension("pipe");
            create_blocking_file(&pipe, "pipe");
            symlink(pipe, path).unwrap();
        }
        "huge" => std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        "link" => symlink("elsewhere", path).unwrap(),
        other => panic!("{other}"),
    }
}

const BLOCKING_KINDS: [&str; 5] = ["endless", "pipe", "link to a pipe", "huge", "link"];
const IGNORE_FILES: [&str; 4] = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];

#[test]
fn a_folder_with_a_blocking_ignore_file_is_skipped_with_a_note() {
    for kind in BLOCKING_KINDS {
        for name in IGNORE_FILES {
            let env = TestWorkspace::new();
            env.put("bad/deep/x", "");
            create_blocking_file(&env.root().join("bad").join(name), kind);
            let granted = grant_search(&env, ".");
            assert_eq!(list_files(&granted, ".", &[]), ["src/a.txt"], "{kind} {name}");
            let tree = granted.walk(".").unwrap();
            assert_eq!(tree.files(&glob_filter(&[])).unwrap().count(), 1);
            let note = format!(
                "bad was skipped, because its {name} is not a regular file of at most 256 KiB"
            );
            assert_eq!(tree.notes(), [note]);
            assert!(
                granted.suggest_paths("nothing.like.it").is_empty(),
                "suggestions use the same walk"
            );
        }
    }
}

#[test]
fn blocking_ignore_files_at_the_root_are_not_applied_and_noted() {
    for kind in BLOCKING_KINDS {
        for name in IGNORE_FILES {
            let env = TestWorkspace::new();
            env.put(".git/HEAD", "");
            env.put("src/deep/b.txt", "");
            let sound = IGNORE_FILES.into_iter().filter(|other| *other != name);
            sound.for_each(|other| env.put(other, "b.txt\n"));
            create_blocking_file(&env.root().join(name), kind);
            for (top, expected) in [(".", &["src/a.txt"][..]), ("src/deep", &[])] {
                let granted = grant_search(&env, top);
                assert_eq!(list_files(&granted, top, &[]), expected, "{kind} {name} {top}");
                let tree = granted.walk(top).unwrap();
                tree.visit_parallel(&glob_filter(&[]), &|| false, &|_| ()).unwrap();
                let notes = tree.notes();
                let begin = format!("the {name} of the workspace is not a regular file");
                assert!(notes.len() == 1 && notes[0].starts_with(&begin), "{notes:?}");
            }
        }
    }
}

#[test]
fn ignore_files_above_the_workspace_may_be_symlinks_but_block_no_walk() {
    let (env, sound) = (TestWorkspace::new(), TestWorkspace::new());
    let above = |env: &TestWorkspace| env.root().parent().unwrap().to_owned();
    for env in [&env, &sound] {
        env.put(".git/HEAD", "");
        env.put("b.txt", "");
    }
    create_blocking_file(&above(&env).join(".ignore"), "link to a pipe");
    create_blocking_file(&above(&env).join(".rgignore"), "endless");
    let granted = grant_search(&env, ".");
    let tree = granted.walk(".").unwrap();
    assert_eq!(tree.files(&glob_filter(&[])).unwrap().count(), 2);
    assert!(tree.notes().iter().all(|note| note.contains("above the workspace")));
    assert_eq!(tree.notes().len(), 2);

    std::fs::write(above(&sound).join("mine"), "b.txt\n").unwrap();
    symlink("mine", above(&sound).join(".ignore")).unwrap();
    assert_eq!(list_files(&grant_search(&sound, "."), ".", &[]), ["src/a.txt"]);
}

#[test]
fn a_gitdir_file_does_not_lead_to_a_blocking_file() {
    for kind in ["endless", "pipe", "huge"] {
        for blocking_path in ["commondir", "main/info/exclude"] {
            let env = TestWorkspace::new();
            let private = env.outside().join("private");
            std::fs::create_dir_all(&private).unwrap();
            if blocking_path != "commondir" {
                std::fs::write(private.join("commondir"), "./main\n").unwrap();
            }
            create_blocking_file(&private.join(blocking_path), kind);
            env.put("bad/.git", &format!("gitdir: {}\n", private.display()));
            env.put("bad/x", "");
            assert_eq!(
                list_files(&grant_search(&env, "."), ".", &[]),
                ["src/a.txt"],
                "{kind} {blocking_path}"
            );
        }
    }
    // A valid `gitdir` is followed.
    let env = TestWorkspace::new();
    let private = env.outside().join("private");
    std::fs::create_dir_all(private.join("main/info")).unwrap();
    std::fs::write(private.join("commondir"), "./main\n").unwrap();
    std::fs::write(private.join("main/info/exclude"), "x\n").unwrap();
    env.put(".git", &format!("gitdir: {}\n", private.display()));
    env.put("x", "");
    assert_eq!(list_files(&grant_search(&env, "."), ".", &[]), ["src/a.txt"]);
    env.put("y/.git", "gitdir: no such place\n");
    env.put("y/z", "");
    assert_eq!(list_files(&grant_search(&env, "."), ".", &[]), ["src/a.txt", "y/z"]);
}

#[test]
fn a_denied_folder_is_not_named_in_notes() {
    let env = TestWorkspace::new();
    env.put("private/x", "");
    create_blocking_file(&env.root().join("private/.gitignore"), "pipe");
    let rules = serde_json::json!({"read": {"private/*": "deny"}});
    let policy = windlass_permission::Policy::new(
        windlass_permission::PermissionRules::parse(&rules).unwrap(),
    );
    let search = vec![ToolAccess::Search { path: ".".into() }];
    let windlass_permission::Decision::Allowed(grant) = policy.decide(search, &[]) else {
        panic!()
    };
    let granted = env.workspace.open_read_only(grant);
    let tree = granted.walk(".").unwrap();
    assert_eq!(tree.files(&glob_filter(&[])).unwrap().count(), 1);
    assert!(tree.notes().is_empty());
}

#[test]
fn globs_include_and_exclude_files() {
    let env = TestWorkspace::new();
    env.put(".git/config", "token");
    env.put(".gitignore", "x.rs\nbuilt\n");
    for path in ["a.rs", "x.rs", "lib/b.rs", "lib/c.ts", "lib/built/d.rs", ".e.rs", "#f.rs"] {
        env.put(path, "");
    }
    let granted = grant_search(&env, ".");
    let all = ["#f.rs", "a.rs", "lib/b.rs", "lib/c.ts", "src/a.txt"];
    for (globs, expected) in [
        // As in ripgrep, a file that matches a glob is found although it is ignored.
        (&["*.rs"][..], &["#f.rs", ".e.rs", "a.rs", "lib/b.rs", "x.rs"][..]),
        (&["*.{rs,ts}", "!x.rs"], &["#f.rs", ".e.rs", "a.rs", "lib/b.rs", "lib/c.ts"]),
        (&["!*.rs"], &["lib/c.ts", "src/a.txt"]),
        (&["lib/*.rs"], &["lib/b.rs"]),
        (&["/*.txt"], &[]),
        (&["#f.rs"], &["#f.rs"]),
        // A glob that matches everything includes no ignored files.
        (&["*"], &all),
        (&["**/*"], &all),
        (&["**"], &all),
        (&["lib/**"], &["lib/b.rs", "lib/c.ts"]),
        (&["./lib/"], &["lib/b.rs", "lib/c.ts"]),
        (&["lib/**", "!*.ts"], &["lib/b.rs"]),
        // No glob includes files in `.git`.
        (&[".git"], &[]),
        (&["config"], &[]),
        (&[".*"], &[".e.rs", ".gitignore"]),
    ] {
        assert_eq!(list_files(&granted, ".", globs), expected, "{globs:?}");
    }
    assert_eq!(list_files(&grant_search(&env, "lib"), "lib", &["/*.rs"]), ["lib/b.rs"]);
    assert!(matches!(
        granted.walk(".").unwrap().files(&glob_filter(&["[a"])),
        Err(Error::InvalidGlob { .. })
    ));
}

proptest! {
    #[test]
    fn any_glob_is_parsed_or_refused_and_finds_no_secret(
        glob in "[!#./*?a-z\\[\\]{},\\\\ é]{0,8}",
    ) {
        let env = TestWorkspace::new();
        env.put(".git/config", "");
        env.put("prod.env", "");
        env.put(".env", "");
        let granted = grant_search(&env, ".");
        if let Ok(files) = granted.walk(".").unwrap().files(&glob_filter(&[&glob])) {
            for file in files {
                assert_eq!(file.path, "src/a.txt", "{glob:?}");
            }
        }
    }
}

#[test]
fn files_with_secrets_are_skipped_unless_granted_themselves() {
    let env = TestWorkspace::new();
    for path in ["prod.env", "prod.env.example", ".env", ".env.local"] {
        env.put(path, "");
    }
    let granted = grant_search(&env, ".");
    assert_eq!(list_files(&granted, ".", &[]), ["prod.env.example", "src/a.txt"]);
    assert!(
        list_files(&granted, ".", &["*.env", ".env*"]).iter().all(|path| path.ends_with("example"))
    );
    assert_eq!(list_files(&grant_search(&env, ".env"), ".env", &[]), [".env"]);
}

#[test]
fn only_granted_paths_are_searched() {
    let env = TestWorkspace::new();
    let granted = grant_search(&env, "src");
    assert!(matches!(granted.walk("."), Err(Error::NotGranted { .. })));
    assert!(matches!(granted.walk("src/a.txt"), Err(Error::NotGranted { .. })));
    assert!(matches!(granted.walk("../outside"), Err(Error::NotGranted { .. })));
    assert!(matches!(grant_search(&env, "none").walk("none"), Err(Error::NotFound { .. })));
}

#[test]
fn symlinks_and_pipes_are_skipped_and_odd_names_are_escaped() {
    use std::os::unix::ffi::OsStrExt;
    let env = TestWorkspace::new();
    symlink(env.outside(), env.root().join("away")).unwrap();
    symlink("src/a.txt", env.root().join("link.txt")).unwrap();
    let created = std::process::Command::new("mkfifo").arg(env.root().join("pipe")).status();
    assert!(created.unwrap().success());
    std::fs::write(env.root().join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
    assert_eq!(list_files(&grant_search(&env, "."), ".", &[]), ["src/a.txt", r"\377.txt"]);
}

#[test]
fn a_walk_stops_when_requested() {
    let env = TestWorkspace::new();
    for n in 0..2_000 {
        std::fs::write(env.root().join(format!("src/{n}")), "").unwrap();
    }
    let granted = grant_search(&env, ".");
    let seen = AtomicUsize::new(0);
    let visit = |_: FoundFile<'_>| {
        seen.fetch_add(1, Ordering::Relaxed);
    };
    let stop = || seen.load(Ordering::Relaxed) >= 10;
    granted.walk(".").unwrap().visit_parallel(&FileFilter::default(), &stop, &visit).unwrap();
    assert!(seen.into_inner() < 200);
}

#[test]
fn a_folder_swapped_constantly_never_leaks() {
    let env = TestWorkspace::new();
    let root = env.root().to_owned();
    for n in 0..20 {
        env.put(&format!("src/{n}/a.txt"), "inside");
        let away = env.outside().join(n.to_string());
        std::fs::create_dir(&away).unwrap();
        std::fs::write(away.join("a.txt"), "secret").unwrap();
        std::fs::write(away.join("only-outside.txt"), "secret").unwrap();
    }
    symlink(env.outside(), root.join("evil")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::rename(root.join("src"), root.join("real"));
                let _ = std::fs::rename(root.join("evil"), root.join("src"));
                let _ = std::fs::rename(root.join("src"), root.join("evil"));
                let _ = std::fs::rename(root.join("real"), root.join("src"));
            }
        });
        let granted = grant_search(&env, ".");
        let (read, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let visit = |found: FoundFile<'_>| {
            let outside = found.path.ends_with("only-outside.txt");
            assert!(
                !outside || found.modified().is_err(),
                "{} outside the workspace was read",
                found.path
            );
            let Ok(mut file) = found.open() else {
                refused.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{}", found.path);
            read.fetch_add(1, Ordering::Relaxed);
        };
        let tree = granted.walk(".").unwrap();
        for round in 0..400 {
            if round % 2 == 0 {
                tree.visit_parallel(&FileFilter::default(), &|| false, &visit).unwrap();
            } else {
                tree.files(&FileFilter::default()).unwrap().for_each(&visit);
            }
        }
        let counts = [read.into_inner(), refused.into_inner()];
        assert!(counts.iter().all(|count| *count > 0), "the race was not run: {counts:?}");
    });
}

#[test]
fn privacy_protected_folders_are_recognized() {
    let home = Path::new("/Users/ada");
    for (path, is_protected) in [
        ("/Users/ada/Library", true),
        ("/Users/ada/Documents", true),
        ("/Users/ada/.Trash", true),
        ("/Users/ada/code", false),
        ("/Users/ada/code/Library", false),
        ("/Users/ada", false),
        ("/Users/Library", false),
        ("/Library", false),
    ] {
        assert_eq!(is_privacy_protected(home, Path::new(path)), is_protected, "{path}");
    }
}
