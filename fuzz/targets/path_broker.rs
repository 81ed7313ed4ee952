//! Resolves any path with the path broker: it is the file that the kernel would use, and protected
//! if it lies in `.git`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::LazyLock;

static WORKSPACE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("windlass-fuzz-{}", std::process::id()));
    let root = folder.join("w");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join(".git/config"), "x").unwrap();
    for (target, name) in
        [(".git", "g"), ("..", "u"), ("a/b", "l"), ("g/hooks", "a/h"), ("loop", "loop"), ("../w/.git/new", "d")]
    {
        symlink(target, root.join(name)).unwrap();
    }
    root.canonicalize().unwrap()
});

fuzz_target!(|data: &[u8]| {
    assert!(windlass_sandbox::check_path_broker_invariants(&WORKSPACE, data));
});
