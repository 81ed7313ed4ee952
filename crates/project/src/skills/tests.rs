//! What is a skill, what is none, and whose counts.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use super::*;

fn read_as(folder: &str, text: &str) -> Result<Skill, (usize, String)> {
    read(&Path::new("/skills").join(folder).join(FILE), text)
}

#[test]
fn a_skill_has_a_name_a_description_and_a_body() {
    let text = "---\nname: release-notes\ndescription: >\n  How notes\n  are written\nlicense: MIT\n\
                allowed-tools: read grep, bash\nmetadata:\n  author: us\n---\n# Notes\n\nBe brief.\n";
    let skill = read_as("release-notes", text).unwrap();
    assert_eq!(skill.name, "release-notes");
    assert_eq!(skill.description, "How notes are written");
    assert_eq!(skill.body, "# Notes\n\nBe brief.");
    assert_eq!(skill.tools, ["read", "grep", "bash"]);
    assert_eq!(skill.folder, Path::new("/skills/release-notes"));
}

#[test]
fn what_is_no_skill_says_why() {
    let long = format!("---\ndescription: d\n---\n{}", "x".repeat(LONGEST));
    for (folder, text, why) in [
        ("a", "no settings", "no `description`"),
        ("a", "---\nname: b\ndescription: d\n---\n", "its folder is called a"),
        ("A b", "---\ndescription: d\n---\n", "small letters"),
        ("a", "---\nname: ../a\ndescription: d\n---\n", "small letters"),
        ("a", "---\ndescription: d\nallowed-tools: 7\n---\n", "no list of tools"),
        ("a", "---\ndescription: d\n", "no end"),
        ("a", &long, "longer"),
    ] {
        let (_, said) = read_as(folder, text).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn the_first_of_a_name_counts_and_the_other_is_told() {
    let mut skills = Skills::default();
    let text = |said: &str| format!("---\ndescription: {said}\n---\nx");
    skills.take(Layer::User, Path::new("/home/skills/a/SKILL.md"), &text("mine"));
    skills.take(Layer::Project, Path::new("/w/.windlass/skills/a/SKILL.md"), &text("theirs"));
    skills.take(Layer::Project, Path::new("/w/.windlass/skills/b/SKILL.md"), &text("b"));
    assert_eq!(skills.all.len(), 2);
    assert_eq!(skills.all[0].description, "mine");
    assert_eq!(skills.diagnostics.len(), 1);
}

#[cfg(unix)]
#[test]
fn advice_behind_a_link_is_not_read() {
    let yard = tempfile::tempdir().unwrap();
    let real = yard.path().join("real");
    std::fs::create_dir_all(&real).unwrap();
    std::fs::write(real.join(FILE), "---\ndescription: d\n---\n").unwrap();
    let skills = yard.path().join(".claude/skills");
    std::fs::create_dir_all(&skills).unwrap();
    std::os::unix::fs::symlink(&real, skills.join("linked")).unwrap();
    std::fs::create_dir(skills.join("half")).unwrap();
    std::os::unix::fs::symlink(real.join(FILE), skills.join("half").join(FILE)).unwrap();
    std::fs::create_dir(skills.join("plain")).unwrap();
    std::fs::copy(real.join(FILE), skills.join("plain").join(FILE)).unwrap();
    let found = files(&skills).unwrap();
    let read: Vec<bool> = found.iter().map(|path| advice(path).is_some()).collect();
    assert_eq!((found.len(), read), (3, vec![false, false, true]));
}
