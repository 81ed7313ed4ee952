//! Approvals are stored in a private file, by the resolved path of their project.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]

use super::*;

struct ApprovalTestEnv {
    folder: tempfile::TempDir,
    dirs: Dirs,
}

impl ApprovalTestEnv {
    fn new() -> ApprovalTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let dirs = Dirs {
            home: at("home"),
            config: at("config"),
            data: at("data"),
            managed_policy: None,
            tenant_policy: None,
            checkouts: std::collections::BTreeMap::new(),
            cache: at("cache"),
            plugins: at("plugins"),
        };
        for name in ["a", "b"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        ApprovalTestEnv { dirs, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self) -> ApprovalStore {
        ApprovalStore::read(&self.dirs).unwrap()
    }

    fn subjects(&self, name: &str) -> Vec<String> {
        self.read()
            .for_project(&self.at(name))
            .into_iter()
            .map(|approval| approval.subject)
            .collect()
    }
}

#[test]
fn an_approval_is_stored_once_per_project_until_it_is_removed() {
    let env = ApprovalTestEnv::new();
    let mut approvals = env.read();
    assert!(!env.at("data").exists(), "reading must not create anything");
    for (key, subject, at) in [
        ("bash", "cargo test", 1),
        ("bash", "cargo test", 9),
        ("edit", "cargo test", 2),
        ("bash", "echo \"\u{1b}[2J\" \u{202e} \n", 3),
    ] {
        approvals.add(&env.at("a"), key, subject, UnixMillis(at)).unwrap();
    }
    let stored = env.read().for_project(&env.at("a"));
    assert_eq!(stored.len(), 3);
    assert_eq!(
        stored[0],
        StoredApproval { key: "bash".into(), subject: "cargo test".into(), at: UnixMillis(1) }
    );
    assert_eq!(stored[2].subject, "echo \"\u{1b}[2J\" \u{202e} \n");
    assert!(env.subjects("b").is_empty());
    for number in [0, 4, usize::MAX] {
        assert_eq!(approvals.remove(&env.at("a"), number).unwrap(), None, "{number}");
    }
    assert_eq!(approvals.remove(&env.at("b"), 1).unwrap(), None);
    assert_eq!(approvals.remove(&env.at("a"), 2).unwrap().unwrap().key, "edit");
    assert_eq!(approvals.clear(&env.at("a")).unwrap(), 2);
    assert!(env.subjects("a").is_empty() && approvals.for_project(&env.at("a")).is_empty());
}

#[test]
fn concurrent_sessions_lose_no_approvals() {
    let env = ApprovalTestEnv::new();
    let (mut one, mut two) = (env.read(), env.read());
    std::thread::scope(|scope| {
        for (name, approvals) in [("one", &mut one), ("two", &mut two)] {
            let env = &env;
            scope.spawn(move || {
                for number in 0..20 {
                    let subject = format!("{name} {number}");
                    approvals.add(&env.at("a"), "bash", &subject, UnixMillis(0)).unwrap();
                }
            });
        }
    });
    assert_eq!(env.subjects("a").len(), 40);
}

#[test]
fn approvals_are_limited_in_number_and_size() {
    let env = ApprovalTestEnv::new();
    let mut approvals = env.read();
    let root = env.at("a");
    for (key, subject) in [
        ("", "x".to_owned()),
        ("bash", "x".repeat(MAX_SUBJECT_BYTES + 1)),
        (&"k".repeat(MAX_KEY_BYTES + 1), "x".to_owned()),
    ] {
        assert!(approvals.add(&root, key, &subject, UnixMillis(0)).is_err());
    }
    let list = (0..MAX_APPROVALS_PER_PROJECT).map(|n| StoredApproval {
        key: "k".into(),
        subject: n.to_string(),
        at: UnixMillis(0),
    });
    let projects = ProjectApprovals::from([(root.canonicalize().unwrap(), list.collect())]);
    private_files::create_private_folder(&env.dirs.data).unwrap();
    write_approvals(&env.dirs.data, &projects).unwrap();
    let message = approvals.add(&root, "k", "one more", UnixMillis(0)).unwrap_err().to_string();
    assert!(message.contains("revoke some"), "{message}");
    approvals.add(&root, "k", "7", UnixMillis(0)).unwrap();
    assert_eq!(env.subjects("a").len(), MAX_APPROVALS_PER_PROJECT);
}

#[test]
fn a_corrupt_file_is_an_error() {
    let env = ApprovalTestEnv::new();
    env.read().add(&env.at("a"), "bash", "x", UnixMillis(0)).unwrap();
    let path = env.at("data/approvals.json");
    for text in ["{", r#"{"projects": {"/a": [{"key": "k", "subject": "s", "at": -1}]}}"#, "[]"] {
        std::fs::write(&path, text).unwrap();
        let error = ApprovalStore::read(&env.dirs).unwrap_err();
        assert!(matches!(error, ProjectError::Corrupt { .. }), "{text}");
        let message = error.to_string();
        assert!(message.contains("fix or remove it") && !message.contains("Stored"), "{message}");
    }
    std::fs::write(&path, b"{\"projects\": {\"\xff\": []}}").unwrap();
    let message = ApprovalStore::read(&env.dirs).unwrap_err().to_string();
    assert!(message.contains("it is not UTF-8 text; fix or remove it"), "{message}");
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_projects_are_stored_by_resolved_path() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let env = ApprovalTestEnv::new();
    symlink(env.at("a"), env.at("link")).unwrap();
    env.read().add(&env.at("link"), "bash", "x", UnixMillis(0)).unwrap();
    assert_eq!(env.subjects("a"), ["x"]);
    std::fs::remove_file(env.at("link")).unwrap();
    symlink(env.at("b"), env.at("link")).unwrap();
    assert!(env.subjects("link").is_empty(), "the link points elsewhere now");
    let path = env.at("data/approvals.json");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&env.at("data"))), (0o600, 0o700));
    std::fs::rename(&path, env.at("elsewhere")).unwrap();
    symlink(env.at("elsewhere"), &path).unwrap();
    assert!(
        matches!(ApprovalStore::read(&env.dirs), Err(ProjectError::NotPrivate { .. })),
        "a link must be refused"
    );
    std::fs::rename(env.at("elsewhere"), &path).unwrap();
    assert_eq!(env.subjects("a"), ["x"]);
    for file_mode in [0o620, 0o602, 0o644] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(file_mode)).unwrap();
        let message = ApprovalStore::read(&env.dirs).unwrap_err().to_string();
        assert!(message.contains("`chmod 600` it"), "{file_mode:o}: {message}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let message = ApprovalStore::read(&env.dirs).unwrap_err().to_string();
        assert!(message.contains("owned by another user"), "{message}");
    }
}
