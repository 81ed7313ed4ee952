//! Undo of what commands changed, with the real binary and the real sandbox.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use support::TestEnv;

const AUTO: &str = r#""mode": "auto""#;

fn bash(command: &str) -> String {
    format!("call bash {}", json!({ "command": command }))
}

/// Returns mode and content of all files in a folder; symbolic links have their target as content.
fn files_in(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in std::fs::read_dir(current).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_symlink() {
                let target = std::fs::read_link(&path).unwrap();
                files.insert(name, (0, target.to_str().unwrap().as_bytes().to_vec()));
            } else {
                let content = std::fs::read(&path).unwrap();
                files.insert(name, (metadata.permissions().mode() & 0o777, content));
            }
        }
    }
    files
}

#[test]
fn everything_that_a_command_changed_is_restored_or_named() {
    let command = "sed -i s/small/large/ README.md; printf more >> a.txt; rm dir/sub/two.bin; \
                   mv dir renamed; echo more >> renamed/one.txt; chmod +x run.sh; \
                   mv a.txt over.txt; echo new > new.txt; mkdir -p x/y; echo z > x/y/z; \
                   : > keep.md; cp keep.md copy.md; ln -s README.md other-link; rm link; \
                   echo changed > big.bin; echo obj > build/out.o; echo new > trace.log; \
                   echo k=2 > settings.local; ln keep.md hard; echo h >> hard; \
                   printf by | dd of=fd.txt conv=notrunc status=none";
    let env = TestEnv::new(&[&bash(command), "say Done."], AUTO);
    let root = env.root();
    let write = |name: &str, content: &[u8]| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write("a.txt", b"first\n");
    write("dir/one.txt", b"one");
    write("dir/sub/two.bin", &[0, 159, 146, 150, 13, 10]);
    write("run.sh", b"#!/bin/sh\n");
    write("over.txt", b"replaced\n");
    write("keep.md", b"kept\n");
    write("big.bin", &vec![7; 11 << 20]);
    write("build/out.o", b"object");
    write("settings.local", b"k=1\n");
    write("fd.txt", b"old");
    write(".gitignore", b"build/\n*.log\n*.local\n");
    symlink("README.md", root.join("link")).unwrap();
    let before = files_in(&root);

    let (code, _, stderr) = env.run(&["run", "change it"]);
    assert_eq!(code, 0, "{stderr}");
    let changed = files_in(&root);
    assert_eq!(changed["README.md"].1, b"# Hello\nA large project.\n");
    assert_eq!(changed["over.txt"].1, b"first\nmore");
    assert!(!changed.contains_key("dir/one.txt") && changed["run.sh"].0 == 0o755);

    let id = env.last_session_id();
    let (code, out, stderr) = env.run(&["session", "undo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    let mut after = files_in(&root);
    // Outputs that git ignores stay.
    assert_eq!(after.remove("trace.log").unwrap().1, b"new\n");
    assert_eq!(
        after.insert("build/out.o".into(), before["build/out.o"].clone()).unwrap().1,
        b"obj\n"
    );
    // Links and large files cannot be restored, and that is said.
    for name in ["big.bin", "link", "other-link"] {
        assert!(out.contains(&format!("not restored: {name} (")), "{name}: {out}{stderr}");
    }
    // In the preview and in the result.
    assert_eq!(out.matches("not restored").count(), 2 * 3, "{out}");
    assert_eq!(after.remove("other-link").unwrap().0, 0);
    after.insert("link".into(), before["link"].clone());
    after.insert("big.bin".into(), before["big.bin"].clone());
    let different = |name: &&String| before.get(*name) != after.get(*name);
    let names: Vec<&String> = before.keys().chain(after.keys()).filter(different).collect();
    assert_eq!(names, [] as [&String; 0]);

    let (code, _, stderr) = env.run(&["session", "redo", "--yes", &id]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("renamed/one.txt").as_deref(), Some("onemore\n"));
    assert_eq!(env.read("a.txt"), None);
}

#[test]
fn a_killed_command_and_one_in_the_background_can_be_undone() {
    let killed = json!({"command": "echo bad > README.md; sleep 30", "timeout": 500});
    let job = json!({"command": "sleep 0.3; echo job > job.txt", "background": true});
    let step = format!("call bash {killed}\ncall bash {job}");
    let later = bash("while [ ! -s job.txt ]; do sleep 0.05; done; sleep 0.3");
    let env = TestEnv::new(&[&step, &later, &bash("true; echo end > end.txt"), "say Done."], AUTO);
    let before = files_in(&env.root());
    let (code, _, stderr) = env.run(&["run", "change it"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(env.read("job.txt").as_deref(), Some("job\n"));
    assert_eq!(env.read("README.md").as_deref(), Some("bad\n"));
    let (code, _, stderr) = env.run(&["session", "undo", "--yes", &env.last_session_id()]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(files_in(&env.root()), before);
}

#[test]
fn the_model_is_told_that_its_own_command_changed_a_file() {
    let read = format!("call read {}", json!({"filePath": "README.md"}));
    let write = json!({"filePath": "README.md", "content": "# New\n"});
    let write = format!("call write {write}");
    let sed = bash("sed -i s/small/large/ README.md");
    let env = TestEnv::new(&[&read, &sed, &write, "say Done."], AUTO);
    let (code, _, stderr) = env.run(&["run", "change it"]);
    assert_eq!(code, 0, "{stderr}");
    let last = env.model.requests().last().unwrap().to_string();
    assert!(last.contains("was changed by your own command after you last saw it"), "{last}");
    assert_eq!(env.read("README.md").as_deref(), Some("# Hello\nA large project.\n"));
}
