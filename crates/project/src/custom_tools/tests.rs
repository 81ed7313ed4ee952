//! Tests of the discovery and the copies of custom tools.

use super::folder_copy::MAX_TOTAL_BYTES;
use super::*;
use serde_json::Value;

pub(crate) fn test_dirs(folder: &Path) -> Dirs {
    Dirs {
        home: folder.to_owned(),
        config: folder.join("config"),
        data: folder.join("data"),
        cache: folder.join("cache"),
        plugins: folder.join("plugins"),
        managed_policy: None,
        tenant_policy: None,
        checkouts: std::collections::BTreeMap::new(),
    }
}

fn write(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn user_tools_are_copied_with_their_folder_and_a_change_makes_another_copy() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = test_dirs(folder.path());
    let tools = dirs.config.join("tools");
    write(&tools.join("shout.py"), "one", 0o755);
    write(&tools.join("lib/help.py"), "help", 0o644);
    write(&tools.join("sum.mjs"), "x", 0o644);
    write(&tools.join("forgotten.sh"), "x", 0o644);
    write(&tools.join("README.md"), "x", 0o644);
    let mut found = ToolFiles::default();
    found.find_user_tools(&dirs, "tools");
    let names: Vec<_> = found.all.iter().map(|tool| (&*tool.prefix, tool.is_script)).collect();
    assert_eq!(names, [("shout", false), ("sum", true)]);
    assert!(found.notes.len() == 1 && found.notes[0].contains("forgotten.sh"), "{:?}", found.notes);
    let tool = &found.all[0];
    let (stamp, copy) = (tool.change_stamp(), tool.prepare().unwrap());
    assert!(copy.path.starts_with(&dirs.cache));
    assert_eq!(std::fs::read_to_string(&copy.path).unwrap(), "one");
    let helper = copy.path.parent().unwrap().join("lib/help.py");
    assert_eq!(std::fs::read_to_string(helper).unwrap(), "help");
    assert_eq!((tool.change_stamp(), tool.prepare().unwrap()), (stamp.clone(), copy.clone()));
    write(&tools.join("lib/help.py"), "other", 0o644);
    assert_ne!(tool.change_stamp(), stamp);
    let other_copy = tool.prepare().unwrap();
    assert_ne!(other_copy, copy);
    assert_eq!(
        std::fs::read_to_string(&copy.path).unwrap(),
        "one",
        "a running tool must keep its copy"
    );
}

#[test]
fn a_folder_over_the_limits_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = test_dirs(folder.path());
    let tools = dirs.config.join("tools");
    write(&tools.join("a"), "x", 0o755);
    std::os::unix::fs::symlink(&tools, tools.join("loop")).unwrap();
    let mut found = ToolFiles::default();
    found.find_user_tools(&dirs, "tools");
    let error = found.all[0].prepare().unwrap_err();
    assert!(error.contains("deeper than"), "{error}");
    std::fs::remove_file(tools.join("loop")).unwrap();
    std::fs::write(tools.join("big"), vec![0; MAX_TOTAL_BYTES as usize]).unwrap();
    assert!(found.all[0].prepare().unwrap_err().contains("16 MiB"));
    std::fs::remove_file(tools.join("big")).unwrap();
    for number in 0..=MAX_FILES {
        std::fs::write(tools.join(format!("f{number}")), "").unwrap();
    }
    assert!(found.all[0].prepare().unwrap_err().contains("1000 files"));
}

#[test]
fn a_listed_file_brings_no_secrets_into_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = test_dirs(folder.path());
    let home = folder.path();
    write(&home.join("elsewhere.txt"), "x", 0o644);
    for place in ["code", ".agent", ".agent/sub", ".agent/plugins", "config/extra", "."] {
        let place = home.join(place);
        write(&place.join("guard.mjs"), "x", 0o644);
        write(&place.join("help.mjs"), "x", 0o644);
        write(&place.join("lib/deep.mjs"), "x", 0o644);
        write(&place.join(".credentials.json"), "secret", 0o644);
        write(&place.join("lib/.env"), "secret", 0o644);
        std::os::unix::fs::symlink(home.join("elsewhere.txt"), place.join("link.txt")).unwrap();
    }
    std::os::unix::fs::symlink(home.join("code/guard.mjs"), home.join("code/linked.mjs")).unwrap();
    let secret_paths = [home.join(".agent")];
    let copied_names = |path: &str| -> Vec<String> {
        let mut found = ToolFiles::default();
        found.add_listed_file(&dirs, &home.join(path), &secret_paths);
        let copy = found.all[0].prepare().unwrap().path;
        let folder = copy.parent().unwrap();
        let names = |folder: &Path| -> Vec<String> {
            let entries = folder.read_dir().into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let below = names(&folder.join("lib")).into_iter().map(|name| format!("lib/{name}"));
        let mut names: Vec<String> = names(folder).into_iter().chain(below).collect();
        names.sort_unstable();
        names
    };
    let whole = ["guard.mjs", "help.mjs", "lib", "lib/deep.mjs"];
    for path in ["code/guard.mjs", ".agent/plugins/guard.mjs", "config/extra/guard.mjs"] {
        assert_eq!(copied_names(path), whole, "{path}");
    }
    for path in ["guard.mjs", ".agent/guard.mjs", ".agent/sub/guard.mjs"] {
        assert_eq!(copied_names(path), ["guard.mjs"], "{path}");
    }
    let linked = copied_names("code/linked.mjs");
    assert_eq!(linked, [&whole[..], &["linked.mjs"]].concat(), "the listed file may be a link");
}

#[test]
fn a_cached_description_applies_only_to_its_stamp() {
    let folder = tempfile::tempdir().unwrap();
    let dirs = test_dirs(folder.path());
    assert!(ToolDescriptionCache::read(&dirs).get("a", "1").is_none());
    ToolDescriptionCache::save(&dirs, vec![("a".into(), "1".into(), Value::from(7))]).unwrap();
    ToolDescriptionCache::save(&dirs, vec![("b".into(), "2".into(), Value::from(8))]).unwrap();
    let cached = ToolDescriptionCache::read(&dirs);
    assert_eq!(cached.get("a", "1"), Some(&Value::from(7)));
    assert_eq!((cached.get("a", "2"), cached.get("b", "2")), (None, Some(&Value::from(8))));
    std::fs::write(ToolDescriptionCache::cache_path(&dirs), "nonsense").unwrap();
    assert!(ToolDescriptionCache::read(&dirs).get("a", "1").is_none());
}
