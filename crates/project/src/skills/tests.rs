//! Parsing of skill files, and precedence between layers.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;

fn parse_in_folder(folder: &str, text: &str) -> Result<SkillFile, (usize, String)> {
    parse_skill(&Path::new("/skills").join(folder).join(SKILL_FILE_NAME), text)
}

#[test]
fn a_skill_has_a_name_a_description_and_a_body() {
    let text = "---\nname: release-notes\ndescription: >\n  How notes\n  are written\nlicense: MIT\n\
                allowed-tools: read grep, bash\nmetadata:\n  author: us\n---\n# Notes\n\nBe brief.\n";
    let skill = parse_in_folder("release-notes", text).unwrap();
    assert_eq!(skill.name, "release-notes");
    assert_eq!(skill.description, "How notes are written");
    assert_eq!(skill.body, "# Notes\n\nBe brief.");
    assert_eq!(skill.tools, ["read", "grep", "bash"]);
    assert_eq!(skill.folder, Path::new("/skills/release-notes"));
}

#[test]
fn an_invalid_skill_has_a_reason() {
    let long = format!("---\ndescription: d\n---\n{}", "x".repeat(MAX_SKILL_BYTES));
    for (folder, text, expected) in [
        ("a", "---\nname: a\n---\n# Only a title", "missing `description`"),
        ("a!", "---\ndescription: d\n---\n", "letters, digits"),
        ("..", "---\nname: ../a\ndescription: d\n---\n", "letters, digits"),
        ("a", "---\ndescription: d\nallowed-tools: 7\n---\n", "must be a list of tools"),
        ("a", "---\ndescription: d\n", "is not closed"),
        ("a", &long, "larger"),
    ] {
        let (_, message) = parse_in_folder(folder, text).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn skills_of_other_agents_are_read_leniently() {
    for (folder, text, name, description) in [
        ("a", "---\nname: b\ndescription: d\n---\n", "b", "d"),
        ("A b", "---\ndescription: d\n---\n", "a-b", "d"),
        (
            "x",
            "---\nname: Writing Hookify_Rules\ndescription: d\n---\n",
            "writing-hookify-rules",
            "d",
        ),
        ("x", "---\nname: ../x\ndescription: d\n---\n", "x", "d"),
        ("x", "---\ndescription: Use when: asked.\n---\n", "x", "Use when: asked."),
        ("x", "# Title\n\nMakes releases.\nMore.", "x", "Makes releases."),
    ] {
        let skill = parse_in_folder(folder, text).unwrap();
        assert_eq!((&*skill.name, &*skill.description), (name, description), "{text}");
    }
    let text = "---\ndescription: d\nallowed-tools: Bash(git add *, x:*), Read Grep\n---\n";
    assert_eq!(parse_in_folder("a", text).unwrap().tools, ["Bash(git add *, x:*)", "Read", "Grep"]);
}

#[test]
fn files_of_a_users_skill_are_copied_to_where_tools_may_read_them() {
    let temp = tempfile::tempdir().unwrap();
    let home = temp.path().canonicalize().unwrap();
    let dirs = crate::custom_tools::tests::test_dirs(&home);
    let dirs = Dirs { home: home.clone(), ..dirs };
    let write = |folder: &str, file: &str, text: &str| {
        std::fs::create_dir_all(home.join(folder)).unwrap();
        std::fs::write(home.join(folder).join(file), text).unwrap();
    };
    let text = "---\ndescription: d\n---\nBody";
    for folder in SHARED_SKILL_FOLDERS {
        write(&format!("{folder}/same"), SKILL_FILE_NAME, text);
    }
    write(".claude/skills/pdf", SKILL_FILE_NAME, text);
    write(".claude/skills/pdf/scripts", "fill.py", "print(1)");
    write(".claude/skills/pdf/.git", "config", "token");
    write(".ssh", "id", "key");
    #[cfg(unix)]
    for (target, link) in [("../../../.ssh", "ref"), ("../../../.ssh/id", "id"), (".", "again")] {
        let link = home.join(".claude/skills/pdf").join(link);
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    let load = || {
        let mut skills = SkillFiles::default();
        skills.add_user_skills(&dirs, Path::new("/w")).unwrap();
        skills.all.sort_by(|a, b| a.name.cmp(&b.name));
        skills
    };
    let skills = load();
    assert_eq!(skills.diagnostics, []);
    let names: Vec<&str> = skills.all.iter().map(|skill| &*skill.name).collect();
    assert_eq!(names, ["pdf", "same"]);
    let copy = &skills.all[0].folder;
    assert!(copy.starts_with(skill_copies_folder(&dirs)), "{copy:?}");
    assert_eq!(std::fs::read_to_string(copy.join("scripts/fill.py")).unwrap(), "print(1)");
    let mut copied: Vec<_> =
        copy.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    copied.sort();
    assert_eq!(copied, ["SKILL.md", "scripts"], "no links and no `.git`");
    assert_eq!(skills.all[1].folder, home.join(".agents/skills/same"), "it has no other files");
    assert_eq!(other_files(copy), ["scripts/fill.py"]);
    let original = home.join(".claude/skills/pdf");
    assert_eq!(other_files(&original), ["scripts/fill.py"], "no links and nothing hidden");
    assert_eq!(load(), skills);
    write(".claude/skills/pdf/scripts", "fill.py", "print(2)");
    let changed = load().all[0].folder.join("scripts/fill.py");
    assert_eq!(std::fs::read_to_string(changed).unwrap(), "print(2)");
}

#[test]
fn the_first_skill_of_a_name_wins_and_the_other_is_reported() {
    let mut skills = SkillFiles::default();
    let text = |description: &str| format!("---\ndescription: {description}\n---\nx");
    skills.add_file(ConfigLayer::User, Path::new("/home/skills/a/SKILL.md"), &text("mine"));
    skills.add_file(
        ConfigLayer::Project,
        Path::new("/w/.windlass/skills/a/SKILL.md"),
        &text("theirs"),
    );
    skills.add_file(ConfigLayer::Project, Path::new("/w/.windlass/skills/b/SKILL.md"), &text("b"));
    assert_eq!(skills.all.len(), 2);
    assert_eq!(skills.all[0].description, "mine");
    assert_eq!(skills.diagnostics.len(), 1);
}

#[cfg(unix)]
#[test]
fn a_skill_behind_a_link_is_not_read() {
    let env = tempfile::tempdir().unwrap();
    let real = env.path().join("real");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::write(real.join(SKILL_FILE_NAME), "---\ndescription: d\n---\n").unwrap();
    let skills = env.path().join(".claude/skills");
    std::fs::create_dir_all(&skills).unwrap();
    std::os::unix::fs::symlink(&real, skills.join("linked")).unwrap();
    std::fs::create_dir(skills.join("half")).unwrap();
    std::os::unix::fs::symlink(
        real.join(SKILL_FILE_NAME),
        skills.join("half").join(SKILL_FILE_NAME),
    )
    .unwrap();
    std::fs::create_dir(skills.join("plain")).unwrap();
    std::fs::copy(real.join(SKILL_FILE_NAME), skills.join("plain").join(SKILL_FILE_NAME)).unwrap();
    let found = skill_files(&skills).unwrap();
    let read: Vec<bool> = found.iter().map(|path| read_untrusted_text(path).is_some()).collect();
    assert_eq!((found.len(), read), (3, vec![false, false, true]));
}
