//! Approvals are kept, found by the real path, and taken back; nothing else gets in.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::*;

struct Yard {
    folder: tempfile::TempDir,
    places: Places,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let places = Places {
            home: at("home"),
            config: at("config"),
            data: at("data"),
            managed: None,
            cache: at("cache"),
            plugins: at("plugins"),
        };
        for name in ["a", "b"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        Yard { places, folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self) -> Approvals {
        Approvals::read(&self.places).unwrap()
    }

    fn subjects(&self, name: &str) -> Vec<String> {
        self.read().of(&self.at(name)).into_iter().map(|approval| approval.subject).collect()
    }
}

#[test]
fn what_is_allowed_is_allowed_in_its_project_only_once_and_until_it_is_taken_back() {
    let yard = Yard::new();
    let mut approvals = yard.read();
    assert!(!yard.at("data").exists(), "looking makes nothing");
    for (key, subject, at) in [
        ("bash", "cargo test", 1),
        ("bash", "cargo test", 9),
        ("edit", "cargo test", 2),
        ("bash", "echo \"\u{1b}[2J\" \u{202e} \n", 3),
    ] {
        approvals.add(&yard.at("a"), key, subject, Millis(at)).unwrap();
    }
    let known = yard.read().of(&yard.at("a"));
    assert_eq!(known.len(), 3);
    assert_eq!(
        known[0],
        Approval { key: "bash".into(), subject: "cargo test".into(), at: Millis(1) }
    );
    assert_eq!(known[2].subject, "echo \"\u{1b}[2J\" \u{202e} \n");
    assert!(yard.subjects("b").is_empty());
    for number in [0, 4, usize::MAX] {
        assert_eq!(approvals.remove(&yard.at("a"), number).unwrap(), None, "{number}");
    }
    assert_eq!(approvals.remove(&yard.at("b"), 1).unwrap(), None);
    assert_eq!(approvals.remove(&yard.at("a"), 2).unwrap().unwrap().key, "edit");
    assert_eq!(approvals.clear(&yard.at("a")).unwrap(), 2);
    assert!(yard.subjects("a").is_empty() && approvals.of(&yard.at("a")).is_empty());
}

#[test]
fn two_sessions_lose_nothing_of_one_another() {
    let yard = Yard::new();
    let (mut one, mut two) = (yard.read(), yard.read());
    std::thread::scope(|scope| {
        for (name, approvals) in [("one", &mut one), ("two", &mut two)] {
            let yard = &yard;
            scope.spawn(move || {
                for number in 0..20 {
                    let subject = format!("{name} {number}");
                    approvals.add(&yard.at("a"), "bash", &subject, Millis(0)).unwrap();
                }
            });
        }
    });
    assert_eq!(yard.subjects("a").len(), 40);
}

#[test]
fn there_is_an_end_to_them() {
    let yard = Yard::new();
    let mut approvals = yard.read();
    let root = yard.at("a");
    for (key, subject) in [
        ("", "x".to_owned()),
        ("bash", "x".repeat(LONGEST_SUBJECT + 1)),
        (&"k".repeat(LONGEST_KEY + 1), "x".to_owned()),
    ] {
        assert!(approvals.add(&root, key, &subject, Millis(0)).is_err());
    }
    let list =
        (0..MOST).map(|n| Approval { key: "k".into(), subject: n.to_string(), at: Millis(0) });
    let projects = Projects::from([(root.canonicalize().unwrap(), list.collect())]);
    private::make_folder(&yard.places.data).unwrap();
    write(&yard.places.data, &projects).unwrap();
    let told = approvals.add(&root, "k", "one more", Millis(0)).unwrap_err().to_string();
    assert!(told.contains("revoke some"), "{told}");
    approvals.add(&root, "k", "7", Millis(0)).unwrap();
    assert_eq!(yard.subjects("a").len(), MOST);
}

#[test]
fn a_damaged_file_is_an_error_and_allows_nothing() {
    let yard = Yard::new();
    yard.read().add(&yard.at("a"), "bash", "x", Millis(0)).unwrap();
    let path = yard.at("data/approvals.json");
    for text in ["{", r#"{"projects": {"/a": [{"key": "k", "subject": "s", "at": -1}]}}"#, "[]"] {
        std::fs::write(&path, text).unwrap();
        let error = Approvals::read(&yard.places).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{text}");
        let told = error.to_string();
        assert!(told.contains("mend or remove it") && !told.contains("Stored"), "{told}");
    }
    std::fs::write(&path, b"{\"projects\": {\"\xff\": []}}").unwrap();
    let told = Approvals::read(&yard.places).unwrap_err().to_string();
    assert!(told.contains("it is not text; mend or remove it"), "{told}");
}

#[cfg(unix)]
#[test]
fn the_file_is_private_and_is_known_by_the_real_path() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let yard = Yard::new();
    symlink(yard.at("a"), yard.at("link")).unwrap();
    yard.read().add(&yard.at("link"), "bash", "x", Millis(0)).unwrap();
    assert_eq!(yard.subjects("a"), ["x"]);
    std::fs::remove_file(yard.at("link")).unwrap();
    symlink(yard.at("b"), yard.at("link")).unwrap();
    assert!(yard.subjects("link").is_empty(), "a link that leads elsewhere now");
    let path = yard.at("data/approvals.json");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&yard.at("data"))), (0o600, 0o700));
    std::fs::rename(&path, yard.at("elsewhere")).unwrap();
    symlink(yard.at("elsewhere"), &path).unwrap();
    assert!(matches!(Approvals::read(&yard.places), Err(Error::Exposed { .. })), "a link");
    std::fs::rename(yard.at("elsewhere"), &path).unwrap();
    assert_eq!(yard.subjects("a"), ["x"]);
    for open in [0o620, 0o602, 0o644] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
        let told = Approvals::read(&yard.places).unwrap_err().to_string();
        assert!(told.contains("`chmod 600` it"), "{open:o}: {told}");
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        let told = Approvals::read(&yard.places).unwrap_err().to_string();
        assert!(told.contains("belongs to somebody else"), "{told}");
    }
}
