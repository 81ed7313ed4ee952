//! Keys are kept, found and forgotten, and nobody else gets at them.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::*;
use secrecy::ExposeSecret;

struct Yard {
    keys: Keys,
    folder: tempfile::TempDir,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        Yard { keys: keys(&folder), folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn path(&self) -> PathBuf {
        self.data().join("auth.json")
    }

    /// Puts a private file where the keys are.
    fn write(&self, text: &str) {
        std::fs::create_dir_all(self.data()).unwrap();
        std::fs::write(self.path(), text).unwrap();
        self.chmod(0o600);
    }

    fn chmod(&self, mode: u32) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(self.path(), mode).unwrap();
        }
        #[cfg(not(unix))]
        let _ = mode;
    }

    /// What every operation says, which must be the same.
    fn refusal(&self) -> String {
        let said = [
            self.keys.get("a").map(drop),
            self.keys.set("a", &"sk-new".into()).map(drop),
            self.keys.remove("a").map(drop),
            self.keys.list().map(drop),
        ];
        let mut said = said.map(|result| result.unwrap_err().to_string()).to_vec();
        said.dedup();
        assert_eq!(said.len(), 1, "{said:?}");
        said.remove(0)
    }
}

/// The keys as a process finds them that has no keyring.
fn keys(folder: &tempfile::TempDir) -> Keys {
    Keys { file: File::of(&places(folder)), ring: Ring::none() }
}

fn places(folder: &tempfile::TempDir) -> Places {
    let at = |name: &str| folder.path().join(name);
    Places {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed: None,
        cache: at("cache"),
        plugins: at("plugins"),
    }
}

fn found(keys: &Keys, provider: &str) -> Option<String> {
    keys.get(provider).unwrap().map(|(key, _)| key.expose_secret().to_owned())
}

#[test]
fn a_key_is_kept_found_replaced_and_forgotten() {
    let yard = Yard::new();
    let file = Source::File(yard.path());
    assert_eq!(found(&yard.keys, "openai"), None);
    assert_eq!(yard.keys.list().unwrap(), []);
    assert!(!yard.keys.remove("openai").unwrap());
    assert!(!yard.path().exists(), "looking makes no file");

    for key in ["sk-one", "sk-two"] {
        assert_eq!(yard.keys.set("openai", &key.into()).unwrap(), file);
        assert_eq!(found(&yard.keys, "openai").as_deref(), Some(key));
    }
    yard.keys.set("anthropic", &"sk-\"three\\".into()).unwrap();
    assert_eq!(found(&keys(&yard.folder), "anthropic").as_deref(), Some("sk-\"three\\"));
    let list = yard.keys.list().unwrap();
    assert_eq!(list, [("anthropic".to_owned(), file.clone()), ("openai".to_owned(), file)]);
    assert!(yard.keys.remove("openai").unwrap() && !yard.keys.remove("openai").unwrap());
    assert_eq!(found(&yard.keys, "openai"), None);
    assert_eq!(found(&yard.keys, "anthropic").as_deref(), Some("sk-\"three\\"));
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folder_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new();
    yard.keys.set("a", &"sk-a".into()).unwrap();
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(yard.path()), 0o600);
    assert_eq!(mode(yard.data().join("auth.lock")), 0o600);
    assert_eq!(mode(yard.data()), 0o700);
    assert!(!yard.data().join("auth.draft").exists());
}

#[cfg(unix)]
#[test]
fn a_draft_that_was_left_behind_lends_nothing_to_the_next() {
    let yard = Yard::new();
    yard.write("{}");
    let target = yard.folder.path().join("elsewhere");
    std::fs::write(&target, "theirs").unwrap();
    std::os::unix::fs::symlink(&target, yard.data().join("auth.draft")).unwrap();
    yard.keys.set("a", &"sk-a".into()).unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
    assert!(yard.path().symlink_metadata().unwrap().is_file());
    assert_eq!(found(&yard.keys, "a").as_deref(), Some("sk-a"));
}

#[cfg(unix)]
#[test]
fn a_link_is_refused_and_what_it_leads_to_is_left_alone() {
    let yard = Yard::new();
    yard.write("{}");
    let target = yard.data().join("target.json");
    std::fs::rename(yard.path(), &target).unwrap();
    std::os::unix::fs::symlink(&target, yard.path()).unwrap();
    assert!(yard.refusal().contains("it is a link"), "{}", yard.refusal());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "{}");
    std::fs::remove_file(&target).unwrap();
    assert!(yard.refusal().contains("it is a link"), "also where it leads nowhere");
    assert!(!target.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_get_at_is_refused() {
    let yard = Yard::new();
    yard.write(r#"{"a": {"key": "sk-old"}}"#);
    for mode in [0o640, 0o604, 0o620, 0o610, 0o666] {
        yard.chmod(mode);
        assert!(yard.refusal().contains("`chmod 600` it"), "{mode:o}: {}", yard.refusal());
    }
    yard.chmod(0o600);
    assert_eq!(found(&yard.keys, "a").as_deref(), Some("sk-old"));
}

#[cfg(unix)]
#[test]
fn a_file_of_somebody_else_is_refused() {
    let yard = Yard::new();
    yard.write("{}");
    // Only root can give a file away; anybody else has nothing to test here.
    if std::os::unix::fs::chown(yard.path(), Some(65_534), None).is_ok() {
        assert!(yard.refusal().contains("belongs to somebody else"), "{}", yard.refusal());
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_is_refused_without_waiting() {
    let yard = Yard::new();
    std::fs::create_dir_all(yard.path()).unwrap();
    assert!(yard.refusal().contains("not a plain file"), "{}", yard.refusal());
}

#[test]
fn a_damaged_file_is_left_alone_and_not_quoted() {
    for text in [
        "{",
        "",
        r#"{"a": "sk-secret"}"#,
        r#"{"a": {"key": "sk-secret", "sk-other": 1}}"#,
        r#"{"a": {"key": {"sk-secret": 1}}}"#,
        r#"["sk-secret"]"#,
    ] {
        let yard = Yard::new();
        yard.write(text);
        let refusal = yard.refusal();
        assert!(refusal.contains("auth.json cannot be understood: line 1"), "{refusal}");
        assert!(refusal.contains("mend or remove it") && !refusal.contains("sk-"), "{refusal}");
        assert_eq!(std::fs::read_to_string(yard.path()).unwrap(), text);
    }
}

#[test]
fn the_file_does_not_grow_without_end() {
    let yard = Yard::new();
    yard.keys.set("a", &"sk-a".into()).unwrap();
    let long = "x".repeat(1 << 18);
    let refusal = yard.keys.set("b", &long.as_str().into()).unwrap_err().to_string();
    assert!(refusal.contains("longer than keys can be") && refusal.len() < 300, "{refusal}");
    assert_eq!(found(&yard.keys, "a").as_deref(), Some("sk-a"));
    yard.write(&format!("{{}}{}", " ".repeat(1 << 18)));
    assert!(yard.refusal().contains("longer than it can be"));
}

#[test]
fn many_at_once_lose_nothing() {
    const EACH: usize = 20;
    let yard = Yard::new();
    let names = |thread: usize| (0..EACH).map(move |n| format!("p{thread}-{n:02}"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let keys = keys(&yard.folder);
            scope.spawn(move || {
                for name in names(thread) {
                    keys.set(&name, &format!("sk-{name}").into()).unwrap();
                }
            });
        }
    });
    for name in (0..4).flat_map(names) {
        assert_eq!(found(&yard.keys, &name), Some(format!("sk-{name}")));
    }
    assert_eq!(yard.keys.list().unwrap().len(), 4 * EACH);
}

#[test]
fn whoever_holds_a_name_holds_off_the_others_and_no_other_name() {
    let folder = tempfile::tempdir().unwrap();
    let places = &places(&folder);
    let inside = &std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..10 {
                    let held = Keys::hold(places, "mcp:../docs").unwrap();
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(held);
                }
            });
        }
    });
    let _docs = Keys::hold(places, "mcp:docs").unwrap();
    let _git = Keys::hold(places, "mcp:git").unwrap();
    let mut made = std::fs::read_dir(&places.data).unwrap();
    assert!(made.all(|file| file.unwrap().file_name().to_string_lossy().starts_with("mcp-")));
}

#[test]
fn a_key_does_not_print() {
    let yard = Yard::new();
    yard.keys.set("a", &"sk-secret".into()).unwrap();
    let all = format!("{:?} {:?} {:?}", yard.keys, yard.keys.get("a"), yard.keys.list());
    assert!(all.contains("auth.json") && !all.contains("sk-secret"), "{all}");
}

#[test]
fn a_key_in_a_keyring_that_is_out_of_reach_is_named_and_not_forgotten() {
    let yard = Yard::new();
    yard.write(r#"{"a": {"keyring": true}, "b": {}}"#);
    assert_eq!(yard.keys.list().unwrap(), [("a".to_owned(), Source::Keyring)]);
    let expected = "the key for `a` is in the keyring, which cannot be used now: this is a test";
    assert_eq!(yard.keys.get("a").unwrap_err().to_string(), expected);
    assert_eq!(yard.keys.remove("a").unwrap_err().to_string(), expected);
    assert_eq!(found(&yard.keys, "b"), None);

    // A newer key in the file is found, and goes even if the one in the keyring cannot.
    yard.keys.set("a", &"sk-new".into()).unwrap();
    assert_eq!(found(&yard.keys, "a").as_deref(), Some("sk-new"));
    assert_eq!(yard.keys.remove("a").unwrap_err().to_string(), expected);
    assert_eq!(yard.keys.list().unwrap(), [("a".to_owned(), Source::Keyring)]);
    assert!(!std::fs::read_to_string(yard.path()).unwrap().contains("sk-new"));
}

#[test]
fn a_source_reads_well() {
    let origin = Origin {
        layer: crate::Layer::User,
        file: Some("windlass.jsonc".into()),
        line: 3,
        column: 5,
    };
    for (source, words) in [
        (Source::Env("OPENAI_API_KEY".into()), "the environment variable OPENAI_API_KEY"),
        (Source::Config(origin), "windlass.jsonc:3:5"),
        (Source::Keyring, "the keyring"),
        (Source::File("d/auth.json".into()), "d/auth.json"),
    ] {
        assert_eq!(source.to_string(), words);
    }
}
