//! What a walk finds, what it leaves out, and that a link under way leads nowhere.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "the tests arrange the world from outside")]

use super::*;
use crate::world::tests::{StopAtTheEnd, Yard};
use proptest::prelude::{ProptestConfig, proptest};
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
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_glob_is_understood_or_refused_and_finds_no_secret(glob in "[!#./*?a-z\\[\\]{},\\\\ é]{0,8}") {
        let yard = Yard::new();
        yard.put(".git/config", "");
        yard.put("prod.env", "");
        yard.put(".env", "");
        let world = reader(&yard, ".");
        if let Ok(files) = world.tree(".").unwrap().files(&wanted(&[&glob])) {
            for file in files {
                assert_eq!(file.path(), "src/a.txt", "{glob:?}");
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
            let outside = found.path().ends_with("only-outside.txt");
            assert!(!outside || found.modified().is_err(), "{} was looked at", found.path());
            let Ok(mut file) = found.open() else {
                refused.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside", "{}", found.path());
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
