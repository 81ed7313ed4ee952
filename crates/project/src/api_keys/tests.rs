//! API keys are stored, found and removed; a key file that others can access is refused.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]

use super::*;
use secrecy::ExposeSecret;

struct ApiKeyTestEnv {
    keys: ApiKeyStore,
    folder: tempfile::TempDir,
}

impl ApiKeyTestEnv {
    fn new() -> ApiKeyTestEnv {
        let folder = tempfile::tempdir().unwrap();
        ApiKeyTestEnv { keys: open_keys(&folder), folder }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn path(&self) -> PathBuf {
        self.data().join("auth.json")
    }

    /// Writes the key file with private permissions.
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

    /// Returns the error of every operation, which must be the same.
    fn refusal(&self) -> String {
        let errors = [
            self.keys.get("a").map(drop),
            self.keys.set("a", &"sk-new".into()).map(drop),
            self.keys.remove("a").map(drop),
            self.keys.list().map(drop),
        ];
        let mut errors = errors.map(|result| result.unwrap_err().to_string()).to_vec();
        errors.dedup();
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors.remove(0)
    }
}

/// Opens the key store without a keyring.
fn open_keys(folder: &tempfile::TempDir) -> ApiKeyStore {
    ApiKeyStore { file: ApiKeyFile::new(&test_dirs(folder)), keyring: SystemKeyring::unavailable() }
}

fn test_dirs(folder: &tempfile::TempDir) -> Dirs {
    let at = |name: &str| folder.path().join(name);
    Dirs {
        home: at("home"),
        config: at("config"),
        data: at("data"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
        cache: at("cache"),
        plugins: at("plugins"),
    }
}

fn find_key(keys: &ApiKeyStore, provider: &str) -> Option<String> {
    keys.get(provider).unwrap().map(|(key, _)| key.expose_secret().to_owned())
}

#[test]
fn a_key_is_stored_found_replaced_and_removed() {
    let env = ApiKeyTestEnv::new();
    let file = ApiKeySource::File(env.path());
    assert_eq!(find_key(&env.keys, "openai"), None);
    assert_eq!(env.keys.list().unwrap(), []);
    assert!(!env.keys.remove("openai").unwrap());
    assert!(!env.path().exists(), "reading must not create a file");

    for key in ["sk-one", "sk-two"] {
        assert_eq!(env.keys.set("openai", &key.into()).unwrap(), file);
        assert_eq!(find_key(&env.keys, "openai").as_deref(), Some(key));
    }
    env.keys.set("anthropic", &"sk-\"three\\".into()).unwrap();
    assert_eq!(find_key(&open_keys(&env.folder), "anthropic").as_deref(), Some("sk-\"three\\"));
    let list = env.keys.list().unwrap();
    assert_eq!(list, [("anthropic".to_owned(), file.clone()), ("openai".to_owned(), file)]);
    assert!(env.keys.remove("openai").unwrap() && !env.keys.remove("openai").unwrap());
    assert_eq!(find_key(&env.keys, "openai"), None);
    assert_eq!(find_key(&env.keys, "anthropic").as_deref(), Some("sk-\"three\\"));
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folder_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let env = ApiKeyTestEnv::new();
    env.keys.set("a", &"sk-a".into()).unwrap();
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(env.path()), 0o600);
    assert_eq!(mode(env.data().join("auth.lock")), 0o600);
    assert_eq!(mode(env.data()), 0o700);
    assert!(!env.data().join("auth.draft").exists());
}

#[cfg(unix)]
#[test]
fn a_leftover_draft_link_is_not_followed() {
    let env = ApiKeyTestEnv::new();
    env.write("{}");
    let target = env.folder.path().join("elsewhere");
    std::fs::write(&target, "theirs").unwrap();
    std::os::unix::fs::symlink(&target, env.data().join("auth.draft")).unwrap();
    env.keys.set("a", &"sk-a".into()).unwrap();
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "theirs");
    assert!(env.path().symlink_metadata().unwrap().is_file());
    assert_eq!(find_key(&env.keys, "a").as_deref(), Some("sk-a"));
}

#[cfg(unix)]
#[test]
fn a_link_is_refused_and_its_target_is_not_changed() {
    let env = ApiKeyTestEnv::new();
    env.write("{}");
    let target = env.data().join("target.json");
    std::fs::rename(env.path(), &target).unwrap();
    std::os::unix::fs::symlink(&target, env.path()).unwrap();
    assert!(env.refusal().contains("it is a symbolic link"), "{}", env.refusal());
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "{}");
    std::fs::remove_file(&target).unwrap();
    assert!(
        env.refusal().contains("it is a symbolic link"),
        "a broken link must be refused as well"
    );
    assert!(!target.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_access_is_refused() {
    let env = ApiKeyTestEnv::new();
    env.write(r#"{"a": {"key": "sk-old"}}"#);
    for mode in [0o640, 0o604, 0o620, 0o610, 0o666] {
        env.chmod(mode);
        assert!(env.refusal().contains("`chmod 600` it"), "{mode:o}: {}", env.refusal());
    }
    env.chmod(0o600);
    assert_eq!(find_key(&env.keys, "a").as_deref(), Some("sk-old"));
}

#[cfg(unix)]
#[test]
fn a_file_of_another_user_is_refused() {
    let env = ApiKeyTestEnv::new();
    env.write("{}");
    // Only root can change the owner of a file; other users skip this check.
    if std::os::unix::fs::chown(env.path(), Some(65_534), None).is_ok() {
        assert!(env.refusal().contains("owned by another user"), "{}", env.refusal());
    }
}

#[cfg(unix)]
#[test]
fn a_folder_in_place_of_the_file_is_refused() {
    let env = ApiKeyTestEnv::new();
    std::fs::create_dir_all(env.path()).unwrap();
    assert!(env.refusal().contains("not a regular file"), "{}", env.refusal());
}

#[test]
fn a_corrupt_file_is_not_changed_and_not_quoted() {
    for text in [
        "{",
        "",
        r#"{"a": "sk-secret"}"#,
        r#"{"a": {"key": "sk-secret", "sk-other": 1}}"#,
        r#"{"a": {"key": {"sk-secret": 1}}}"#,
        r#"["sk-secret"]"#,
    ] {
        let env = ApiKeyTestEnv::new();
        env.write(text);
        let refusal = env.refusal();
        assert!(refusal.contains("auth.json is invalid: line 1"), "{refusal}");
        assert!(refusal.contains("fix or remove it") && !refusal.contains("sk-"), "{refusal}");
        assert_eq!(std::fs::read_to_string(env.path()).unwrap(), text);
    }
}

#[test]
fn the_size_of_the_file_is_limited() {
    let env = ApiKeyTestEnv::new();
    env.keys.set("a", &"sk-a".into()).unwrap();
    let long = "x".repeat(1 << 18);
    let refusal = env.keys.set("b", &long.as_str().into()).unwrap_err().to_string();
    assert!(refusal.contains("would be too large") && refusal.len() < 300, "{refusal}");
    assert_eq!(find_key(&env.keys, "a").as_deref(), Some("sk-a"));
    env.write(&format!("{{}}{}", " ".repeat(1 << 18)));
    assert!(env.refusal().contains("it is too large"));
}

#[test]
fn concurrent_writers_lose_no_keys() {
    const KEYS_PER_THREAD: usize = 20;
    let env = ApiKeyTestEnv::new();
    let names = |thread: usize| (0..KEYS_PER_THREAD).map(move |n| format!("p{thread}-{n:02}"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let keys = open_keys(&env.folder);
            scope.spawn(move || {
                for name in names(thread) {
                    keys.set(&name, &format!("sk-{name}").into()).unwrap();
                }
            });
        }
    });
    for name in (0..4).flat_map(names) {
        assert_eq!(find_key(&env.keys, &name), Some(format!("sk-{name}")));
    }
    assert_eq!(env.keys.list().unwrap().len(), 4 * KEYS_PER_THREAD);
}

#[test]
fn a_lock_excludes_only_others_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = &test_dirs(&folder);
    let inside = &std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..10 {
                    let lock = ApiKeyStore::lock(dirs, "mcp:../docs").unwrap();
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
    let _docs = ApiKeyStore::lock(dirs, "mcp:docs").unwrap();
    let _git = ApiKeyStore::lock(dirs, "mcp:git").unwrap();
    let mut files = std::fs::read_dir(&dirs.data).unwrap();
    assert!(files.all(|file| file.unwrap().file_name().to_string_lossy().starts_with("mcp-")));
}

#[test]
fn a_key_is_not_printed() {
    let env = ApiKeyTestEnv::new();
    env.keys.set("a", &"sk-secret".into()).unwrap();
    let all = format!("{:?} {:?} {:?}", env.keys, env.keys.get("a"), env.keys.list());
    assert!(all.contains("auth.json") && !all.contains("sk-secret"), "{all}");
}

#[test]
fn a_key_in_an_unavailable_keyring_is_listed_and_kept() {
    let env = ApiKeyTestEnv::new();
    env.write(r#"{"a": {"in_keyring": true}, "b": {}}"#);
    assert_eq!(env.keys.list().unwrap(), [("a".to_owned(), ApiKeySource::Keyring)]);
    let expected =
        "the API key for `a` is in the keyring, but the keyring is unavailable: this is a test";
    assert_eq!(env.keys.get("a").unwrap_err().to_string(), expected);
    assert_eq!(env.keys.remove("a").unwrap_err().to_string(), expected);
    assert_eq!(find_key(&env.keys, "b"), None);

    // A newer key in the file is found, and removed even if the keyring is unavailable.
    env.keys.set("a", &"sk-new".into()).unwrap();
    assert_eq!(find_key(&env.keys, "a").as_deref(), Some("sk-new"));
    assert_eq!(env.keys.remove("a").unwrap_err().to_string(), expected);
    assert_eq!(env.keys.list().unwrap(), [("a".to_owned(), ApiKeySource::Keyring)]);
    assert!(!std::fs::read_to_string(env.path()).unwrap().contains("sk-new"));
}

#[test]
fn key_sources_are_displayed_readably() {
    let origin = ConfigOrigin {
        layer: crate::ConfigLayer::User,
        file: Some("windlass.jsonc".into()),
        line: 3,
        column: 5,
    };
    for (source, expected) in [
        (ApiKeySource::Env("OPENAI_API_KEY".into()), "the environment variable OPENAI_API_KEY"),
        (ApiKeySource::Config(origin), "windlass.jsonc:3:5"),
        (ApiKeySource::Keyring, "the keyring"),
        (ApiKeySource::File("d/auth.json".into()), "d/auth.json"),
    ] {
        assert_eq!(source.to_string(), expected);
    }
}
