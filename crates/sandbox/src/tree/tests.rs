//! What a walk finds, what it leaves out, and that a link under way leads nowhere.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::*;
use crate::world::tests::{StopAtTheEnd, Yard};
use proptest::prelude::proptest;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

fn reader(yard: &Yard, path: &str) -> World {
    yard.granting(&[Access::Search { path: path.into() }])
}

fn wanted(globs: &[&str]) -> Wanted {
    Wanted { globs: globs.iter().map(|glob| (*glob).to_owned()).collect() }
}

/// What both ways of walking find; they must agree.
fn found(world: &World, path: &str, globs: &[&str]) -> Vec<String> {
    let tree = world.tree(path).unwrap();
    let ordered: Vec<String> = tree.files(&wanted(globs)).unwrap().map(Found::into_path).collect();
    let all = Mutex::new(Vec::new());
    let keep = |found: Found<'_>| all.lock().unwrap().push(found.into_path());
    tree.each(&wanted(globs), &|| false, &keep).unwrap();
    let mut all = all.into_inner().unwrap();
    all.sort_by(|a, b| Path::new(a).cmp(Path::new(b)));
    assert_eq!(ordered, all);
    ordered
}

#[test]
fn files_come_in_the_order_of_their_paths() {
    let yard = Yard::new();
    for path in ["z", "b/2", "b/1", "b.txt", "a/x/y", "a/b"] {
        yard.put(path, "");
    }
    let world = reader(&yard, ".");
    assert_eq!(found(&world, ".", &[]), ["a/b", "a/x/y", "b/1", "b/2", "b.txt", "src/a.txt", "z"]);
}

#[test]
fn every_kind_of_ignore_file_counts_and_hidden_names_do_not() {
    let yard = Yard::new();
    yard.put(".git/info/exclude", "excluded\n");
    yard.put(".gitignore", "*.log\n!kept.log\nbuilt/\n");
    yard.put(".ignore", "by-ignore\n");
    yard.put(".rgignore", "by-rgignore\n");
    yard.put("deep/.gitignore", "only-here\n");
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
        yard.put(path, "");
    }
    let world = reader(&yard, ".");
    assert_eq!(found(&world, ".", &[]), ["kept.log", "only-here", "src/a.txt"]);
    // Also from a folder, where the files that leave things out lie above.
    assert!(found(&reader(&yard, "deep"), "deep", &[]).is_empty());
    // Who names a file or a folder means it.
    assert_eq!(found(&reader(&yard, "a.log"), "a.log", &[]), ["a.log"]);
    assert_eq!(found(&reader(&yard, "built"), "built", &[]), ["built/x"]);
}

/// Puts something in the place of an ignore file that would hold up whoever reads it.
fn spoil(path: &Path, how: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match how {
        "endless" => symlink("/dev/zero", path).unwrap(),
        "pipe" => {
            assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success())
        }
        "link to a pipe" => {
            let pipe = path.with_extension("pipe");
            spoil(&pipe, "pipe");
            symlink(pipe, path).unwrap();
        }
        "huge" => std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        "link" => symlink("elsewhere", path).unwrap(),
        other => panic!("{other}"),
    }
}

const SPOILED: [&str; 5] = ["endless", "pipe", "link to a pipe", "huge", "link"];
const IGNORE_FILES: [&str; 4] = [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"];

#[test]
fn a_folder_whose_ignore_files_would_hold_up_a_walk_is_left_out_and_named() {
    for how in SPOILED {
        for name in IGNORE_FILES {
            let yard = Yard::new();
            yard.put("bad/deep/x", "");
            spoil(&yard.root().join("bad").join(name), how);
            let world = reader(&yard, ".");
            assert_eq!(found(&world, ".", &[]), ["src/a.txt"], "{how} {name}");
            let tree = world.tree(".").unwrap();
            assert_eq!(tree.files(&wanted(&[])).unwrap().count(), 1);
            let note = format!(
                "bad was left out, because its {name} is not a plain file of at most 256 KiB"
            );
            assert_eq!(tree.notes(), [note]);
            assert!(world.suggest("nothing.like.it").is_empty(), "suggestions walk too");
        }
    }
}

#[test]
fn where_a_walk_begins_bad_ignore_files_are_not_gone_by_and_that_is_said() {
    for how in SPOILED {
        for name in IGNORE_FILES {
            let yard = Yard::new();
            yard.put(".git/HEAD", "");
            yard.put("src/deep/b.txt", "");
            let sound = IGNORE_FILES.into_iter().filter(|other| *other != name);
            sound.for_each(|other| yard.put(other, "b.txt\n"));
            spoil(&yard.root().join(name), how);
            for (top, expected) in [(".", &["src/a.txt"][..]), ("src/deep", &[])] {
                let world = reader(&yard, top);
                assert_eq!(found(&world, top, &[]), expected, "{how} {name} {top}");
                let tree = world.tree(top).unwrap();
                tree.each(&wanted(&[]), &|| false, &|_| ()).unwrap();
                let notes = tree.notes();
                let begin = format!("the {name} of the workspace is not a plain file");
                assert!(notes.len() == 1 && notes[0].starts_with(&begin), "{notes:?}");
            }
        }
    }
}

#[test]
fn ignore_files_above_the_workspace_may_be_links_but_hold_up_no_walk() {
    let (yard, sound) = (Yard::new(), Yard::new());
    let above = |yard: &Yard| yard.root().parent().unwrap().to_owned();
    for yard in [&yard, &sound] {
        yard.put(".git/HEAD", "");
        yard.put("b.txt", "");
    }
    spoil(&above(&yard).join(".ignore"), "link to a pipe");
    spoil(&above(&yard).join(".rgignore"), "endless");
    let world = reader(&yard, ".");
    let tree = world.tree(".").unwrap();
    assert_eq!(tree.files(&wanted(&[])).unwrap().count(), 2);
    assert!(tree.notes().iter().all(|note| note.contains("above the workspace")));
    assert_eq!(tree.notes().len(), 2);

    std::fs::write(above(&sound).join("mine"), "b.txt\n").unwrap();
    symlink("mine", above(&sound).join(".ignore")).unwrap();
    assert_eq!(found(&reader(&sound, "."), ".", &[]), ["src/a.txt"]);
}

#[test]
fn a_file_that_names_a_repository_elsewhere_leads_into_no_trap() {
    for how in ["endless", "pipe", "huge"] {
        for trap in ["commondir", "main/info/exclude"] {
            let yard = Yard::new();
            let private = yard.outside().join("private");
            std::fs::create_dir_all(&private).unwrap();
            if trap != "commondir" {
                std::fs::write(private.join("commondir"), "./main\n").unwrap();
            }
            spoil(&private.join(trap), how);
            yard.put("bad/.git", &format!("gitdir: {}\n", private.display()));
            yard.put("bad/x", "");
            assert_eq!(found(&reader(&yard, "."), ".", &[]), ["src/a.txt"], "{how} {trap}");
        }
    }
    // And one that leads where it should is gone by.
    let yard = Yard::new();
    let private = yard.outside().join("private");
    std::fs::create_dir_all(private.join("main/info")).unwrap();
    std::fs::write(private.join("commondir"), "./main\n").unwrap();
    std::fs::write(private.join("main/info/exclude"), "x\n").unwrap();
    yard.put(".git", &format!("gitdir: {}\n", private.display()));
    yard.put("x", "");
    assert_eq!(found(&reader(&yard, "."), ".", &[]), ["src/a.txt"]);
    yard.put("y/.git", "gitdir: no such place\n");
    yard.put("y/z", "");
    assert_eq!(found(&reader(&yard, "."), ".", &[]), ["src/a.txt", "y/z"]);
}

#[test]
fn a_folder_that_may_not_be_seen_is_not_named() {
    let yard = Yard::new();
    yard.put("private/x", "");
    spoil(&yard.root().join("private/.gitignore"), "pipe");
    let rules = serde_json::json!({"read": {"private/*": "deny"}});
    let policy =
        windlass_permission::Policy::new(windlass_permission::Rules::parse(&rules).unwrap());
    let search = vec![Access::Search { path: ".".into() }];
    let windlass_permission::Decision::Allowed(grant) = policy.decide(search, &[]) else {
        panic!()
    };
    let world = yard.workspace.look(grant);
    let tree = world.tree(".").unwrap();
    assert_eq!(tree.files(&wanted(&[])).unwrap().count(), 1);
    assert!(tree.notes().is_empty());
}

#[test]
fn globs_narrow_name_and_leave_out() {
    let yard = Yard::new();
    yard.put(".git/config", "token");
    yard.put(".gitignore", "x.rs\nbuilt\n");
    for path in ["a.rs", "x.rs", "lib/b.rs", "lib/c.ts", "lib/built/d.rs", ".e.rs", "#f.rs"] {
        yard.put(path, "");
    }
    let world = reader(&yard, ".");
    let all = ["#f.rs", "a.rs", "lib/b.rs", "lib/c.ts", "src/a.txt"];
    for (globs, expected) in [
        // As in ripgrep: what is named is found although it is ignored.
        (&["*.rs"][..], &["#f.rs", ".e.rs", "a.rs", "lib/b.rs", "x.rs"][..]),
        (&["*.{rs,ts}", "!x.rs"], &["#f.rs", ".e.rs", "a.rs", "lib/b.rs", "lib/c.ts"]),
        (&["!*.rs"], &["lib/c.ts", "src/a.txt"]),
        (&["lib/*.rs"], &["lib/b.rs"]),
        (&["/*.txt"], &[]),
        (&["#f.rs"], &["#f.rs"]),
        // What names nothing brings nothing back.
        (&["*"], &all),
        (&["**/*"], &all),
        (&["**"], &all),
        (&["lib/**"], &["lib/b.rs", "lib/c.ts"]),
        (&["./lib/"], &["lib/b.rs", "lib/c.ts"]),
        (&["lib/**", "!*.ts"], &["lib/b.rs"]),
        // And nothing brings back what Git keeps.
        (&[".git"], &[]),
        (&["config"], &[]),
        (&[".*"], &[".e.rs", ".gitignore"]),
    ] {
        assert_eq!(found(&world, ".", globs), expected, "{globs:?}");
    }
    assert_eq!(found(&reader(&yard, "lib"), "lib", &["/*.rs"]), ["lib/b.rs"]);
    assert!(matches!(world.tree(".").unwrap().files(&wanted(&["[a"])), Err(Error::Glob { .. })));
}

proptest! {
    #[test]
    fn any_glob_is_understood_or_refused_and_finds_no_secret(glob in "[!#./*?a-z\\[\\]{},\\\\ é]{0,8}") {
        let yard = Yard::new();
        yard.put(".git/config", "");
        yard.put("prod.env", "");
        yard.put(".env", "");
        let world = reader(&yard, ".");
        if let Ok(files) = world.tree(".").unwrap().files(&wanted(&[&glob])) {
            for file in files {
                assert_eq!(file.path, "src/a.txt", "{glob:?}");
            }
        }
    }
}

#[test]
fn what_holds_secrets_is_left_out_unless_it_was_granted_itself() {
    let yard = Yard::new();
    for path in ["prod.env", "prod.env.example", ".env", ".env.local"] {
        yard.put(path, "");
    }
    let world = reader(&yard, ".");
    assert_eq!(found(&world, ".", &[]), ["prod.env.example", "src/a.txt"]);
    assert!(found(&world, ".", &["*.env", ".env*"]).iter().all(|path| path.ends_with("example")));
    assert_eq!(found(&reader(&yard, ".env"), ".env", &[]), [".env"]);
}

#[test]
fn only_what_was_granted_is_looked_through() {
    let yard = Yard::new();
    let world = reader(&yard, "src");
    assert!(matches!(world.tree("."), Err(Error::NotGranted { .. })));
    assert!(matches!(world.tree("src/a.txt"), Err(Error::NotGranted { .. })));
    assert!(matches!(world.tree("../outside"), Err(Error::Outside { .. })));
    assert!(matches!(reader(&yard, "none").tree("none"), Err(Error::Missing { .. })));
}

#[test]
fn links_pipes_and_names_that_are_no_text_are_passed_by() {
    use std::os::unix::ffi::OsStrExt;
    let yard = Yard::new();
    symlink(yard.outside(), yard.root().join("away")).unwrap();
    symlink("src/a.txt", yard.root().join("link.txt")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(yard.root().join("pipe")).status();
    assert!(made.unwrap().success());
    std::fs::write(yard.root().join(std::ffi::OsStr::from_bytes(b"\xff.txt")), "").unwrap();
    assert_eq!(found(&reader(&yard, "."), ".", &[]), ["src/a.txt"]);
}

#[test]
fn a_walk_that_is_told_to_stop_stops() {
    let yard = Yard::new();
    for n in 0..2_000 {
        std::fs::write(yard.root().join(format!("src/{n}")), "").unwrap();
    }
    let world = reader(&yard, ".");
    let seen = AtomicUsize::new(0);
    let visit = |_: Found<'_>| {
        seen.fetch_add(1, Ordering::Relaxed);
    };
    let stop = || seen.load(Ordering::Relaxed) >= 10;
    world.tree(".").unwrap().each(&Wanted::default(), &stop, &visit).unwrap();
    assert!(seen.into_inner() < 200);
}

#[test]
fn a_folder_swapped_all_the_time_never_leaks() {
    let yard = Yard::new();
    let root = yard.root().to_owned();
    for n in 0..20 {
        yard.put(&format!("src/{n}/a.txt"), "inside");
        let away = yard.outside().join(n.to_string());
        std::fs::create_dir(&away).unwrap();
        std::fs::write(away.join("a.txt"), "secret").unwrap();
        std::fs::write(away.join("only-outside.txt"), "secret").unwrap();
    }
    symlink(yard.outside(), root.join("evil")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = StopAtTheEnd(&stop);
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = std::fs::rename(root.join("src"), root.join("real"));
                let _ = std::fs::rename(root.join("evil"), root.join("src"));
                let _ = std::fs::rename(root.join("src"), root.join("evil"));
                let _ = std::fs::rename(root.join("real"), root.join("src"));
            }
        });
        let world = reader(&yard, ".");
        let (read, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let visit = |found: Found<'_>| {
            let outside = found.path.ends_with("only-outside.txt");
            assert!(!outside || found.modified().is_err(), "{} was looked at", found.path);
            let Ok(mut file) = found.open() else {
                refused.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{}", found.path);
            read.fetch_add(1, Ordering::Relaxed);
        };
        let tree = world.tree(".").unwrap();
        for round in 0..400 {
            if round % 2 == 0 {
                tree.each(&Wanted::default(), &|| false, &visit).unwrap();
            } else {
                tree.files(&Wanted::default()).unwrap().for_each(&visit);
            }
        }
        let counts = [read.into_inner(), refused.into_inner()];
        assert!(counts.iter().all(|count| *count > 0), "the race was not run: {counts:?}");
    });
}

#[test]
fn the_guarded_folders_of_a_home_are_known() {
    let home = Path::new("/Users/ada");
    for (path, guarded) in [
        ("/Users/ada/Library", true),
        ("/Users/ada/Documents", true),
        ("/Users/ada/.Trash", true),
        ("/Users/ada/code", false),
        ("/Users/ada/code/Library", false),
        ("/Users/ada", false),
        ("/Users/Library", false),
        ("/Library", false),
    ] {
        assert_eq!(is_guarded(home, Path::new(path)), guarded, "{path}");
    }
}
