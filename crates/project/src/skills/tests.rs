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
        ("a", "no settings", "missing `description`"),
        ("a", "---\nname: b\ndescription: d\n---\n", "the folder is named `a`"),
        ("A b", "---\ndescription: d\n---\n", "lowercase letters"),
        ("a", "---\nname: ../a\ndescription: d\n---\n", "lowercase letters"),
        ("a", "---\ndescription: d\nallowed-tools: 7\n---\n", "must be a list of tools"),
        ("a", "---\ndescription: d\n", "is not closed"),
        ("a", &long, "larger"),
    ] {
        let (_, message) = parse_in_folder(folder, text).unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
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
