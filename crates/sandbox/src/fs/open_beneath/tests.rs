//! Tests that both ways to open a path agree.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "tests create files and run programs directly")]

use super::*;
use crate::call_workspace::tests::TestWorkspace;
use std::io::Read;
use std::os::unix::fs::symlink;
use windlass_protocol::ToolAccess;

#[test]
fn opening_at_once_and_by_component_agree() {
    let env = TestWorkspace::new();
    env.put("src/deep/b.txt", "b");
    symlink("a.txt", env.root().join("src/link.txt")).unwrap();
    symlink("src", env.root().join("folder-link")).unwrap();
    symlink(env.outside(), env.root().join("away")).unwrap();
    let created = std::process::Command::new("mkfifo").arg(env.root().join("pipe")).status();
    assert!(created.unwrap().success());
    let granted = env.grant(&[ToolAccess::Search { path: ".".into() }]);
    for (path, expected) in [("src/a.txt", "inside"), ("src/deep/b.txt", "b")] {
        for opened in [granted.open_beneath(path), granted.open_by_component(path)] {
            let mut text = String::new();
            opened.unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
        }
        let (at_once, by_component) =
            (granted.modified_beneath(path), granted.modified_by_component(path));
        assert_eq!(at_once.unwrap(), by_component.unwrap());
    }
    for path in
        ["src/link.txt", "folder-link/a.txt", "away/secret", "pipe", "src", "none", "src/a.txt/b"]
    {
        assert!(granted.open_beneath(path).is_err(), "{path}");
        assert!(granted.open_by_component(path).is_err(), "{path}");
        assert!(granted.modified_beneath(path).is_err(), "{path}");
        assert!(granted.modified_by_component(path).is_err(), "{path}");
    }
    assert!(matches!(granted.open_beneath("pipe"), Err(Error::SpecialFile { .. })));
    assert!(matches!(granted.open_beneath("none"), Err(Error::NotFound { .. })));
    #[cfg(target_os = "linux")]
    for path in ["../outside/secret", "away/secret"] {
        assert!(matches!(granted.open_beneath(path), Err(Error::BecameSymlink { .. })), "{path}");
    }
}
