//! Which texts are read, in which order, and which are not.

use super::*;
use crate::{Flags, Outside, Trust};

struct Nothing;

impl Outside for Nothing {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn knows(&self, _: &str) -> Option<&'static str> {
        None
    }
}

struct Yard {
    folder: tempfile::TempDir,
    places: Places,
    root: PathBuf,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let home = base.join("home");
        let places = Places {
            config: home.join(".config/windlass"),
            data: home.join(".local/share/windlass"),
            managed: None,
            cache: home.join(".cache/windlass"),
            plugins: home.join(".local/share/windlass-plugins"),
            home: home.clone(),
        };
        let root = home.join("code/app");
        for path in [&places.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        Yard { folder, places, root }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn trust(&self) {
        let mut trust = Trust::read(&self.places).unwrap();
        let request = trust.request(&self.root).unwrap();
        trust.add(request).unwrap();
    }

    fn config(&self) -> Config {
        Config::load(&self.places, &self.root, Flags::default(), &Nothing).unwrap()
    }

    fn found(&self) -> Vec<(String, String)> {
        let found = instructions(&self.places, &self.root, &self.config()).into_iter();
        let base = self.folder.path().canonicalize().unwrap().display().to_string();
        found.map(|one| (one.path.replace(&base, ""), one.text)).collect()
    }

    fn paths(&self) -> Vec<String> {
        self.found().into_iter().map(|(path, _)| path).collect()
    }
}

#[test]
fn the_most_general_comes_first_and_home_does_not_count() {
    let yard = Yard::new();
    yard.put("AGENTS.md", "of the project");
    yard.put("../AGENTS.md", "of all my code");
    yard.put("../../AGENTS.md", "of a stray file at home");
    yard.put("../../../AGENTS.md", "of a stray file above home");
    std::fs::write(yard.places.config.join("AGENTS.md"), "of the person").unwrap();
    assert_eq!(yard.paths(), ["/home/.config/windlass/AGENTS.md"], "the folder is not trusted");
    yard.trust();
    let texts: Vec<String> = yard.found().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["of the person", "of all my code", "of the project"]);
    assert_eq!(yard.paths()[1..], ["../AGENTS.md", "AGENTS.md"]);
}

#[test]
fn claude_md_is_read_where_there_is_no_agents_md() {
    let yard = Yard::new();
    yard.put("CLAUDE.md", "c");
    yard.put("../AGENTS.md", "above");
    yard.put("../CLAUDE.md", "not this");
    yard.trust();
    assert_eq!(yard.paths(), ["../AGENTS.md", "CLAUDE.md"]);
    yard.put("AGENTS.md", "a");
    assert_eq!(yard.paths(), ["../AGENTS.md", "AGENTS.md"]);
    yard.put("AGENTS.md", " \n");
    assert_eq!(yard.paths(), ["../AGENTS.md", "CLAUDE.md"], "an empty file says nothing");
}

#[test]
fn patterns_of_the_person_and_of_the_project_add_up() {
    let yard = Yard::new();
    std::fs::write(
        yard.places.config.join("windlass.jsonc"),
        r#"{"instructions": ["CONTRIBUTING.md", "../../secret", "/etc/passwd", "~/x", "gone.md"]}"#,
    )
    .unwrap();
    yard.put("windlass.jsonc", r#"{"instructions": ["docs/**/*.md", ".rules/?.md", "docs"]}"#);
    yard.put("CONTRIBUTING.md", "contribute");
    for (path, text) in [
        ("docs/b.md", "b"),
        ("docs/a/deep/c.md", "c"),
        ("docs/a/c.txt", "text"),
        ("docs/.hidden/d.md", "hidden"),
        ("docs/twice.md", "b"),
        (".rules/r.md", "r"),
        (".rules/long.md", "long"),
        ("../secret", "secret"),
    ] {
        yard.put(path, text);
    }
    assert_eq!(yard.paths(), [""; 0]);
    yard.trust();
    assert_eq!(yard.paths(), ["CONTRIBUTING.md", "docs/a/deep/c.md", "docs/b.md", ".rules/r.md"]);
    let wrong = yard.config().diagnostics;
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().all(|wrong| !wrong.fatal && wrong.message.ends_with("; ignored")));
}

#[cfg(unix)]
#[test]
fn no_link_leads_out_of_the_folder_it_stands_in() {
    use std::os::unix::fs::symlink;
    let yard = Yard::new();
    yard.put("../outside.md", "outside");
    yard.put("../elsewhere/x.md", "elsewhere");
    yard.put("docs/real.md", "real");
    yard.put("windlass.jsonc", r#"{"instructions": ["*.md", "out/*.md", "out/x.md", "in/*.md"]}"#);
    symlink("../outside.md", yard.root.join("AGENTS.md")).unwrap();
    symlink(yard.root.join("../outside.md"), yard.root.join("whole.md")).unwrap();
    symlink("../elsewhere", yard.root.join("out")).unwrap();
    yard.trust();
    assert_eq!(yard.paths(), [""; 0]);
    std::fs::remove_file(yard.root.join("AGENTS.md")).unwrap();
    symlink("docs/real.md", yard.root.join("AGENTS.md")).unwrap();
    assert_eq!(yard.found(), [("AGENTS.md".to_owned(), "real".to_owned())], "a link that stays in");
}

#[cfg(unix)]
#[test]
fn what_is_no_text_is_not_read_and_nobody_waits_for_it() {
    let yard = Yard::new();
    yard.put("windlass.jsonc", r#"{"instructions": ["*.md"]}"#);
    yard.trust();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        yard.root.join("AGENTS.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    yard.put("zeros.md", "a\0b");
    yard.put("folder.md/x", "");
    yard.put("CLAUDE.md", "read instead");
    assert_eq!(yard.paths(), ["CLAUDE.md"]);
}

#[test]
fn a_long_file_is_read_in_part_and_many_files_are_not_read_at_all() {
    let yard = Yard::new();
    yard.put("AGENTS.md", &"long ".repeat(100_000));
    yard.put("windlass.jsonc", r#"{"instructions": ["many/*.md"]}"#);
    for index in 0..100 {
        yard.put(&format!("many/{index:03}.md"), &index.to_string());
    }
    yard.trust();
    let found = instructions(&yard.places, &yard.root, &yard.config());
    assert_eq!(found.len(), MOST_FILES);
    assert_eq!((found[0].text.len() as u64, found[0].length), (LONGEST, 500_000));
}

#[test]
fn a_branch_is_a_name_and_nothing_more() {
    let yard = Yard::new();
    assert!(!is_repository(&yard.root));
    for (head, name) in [
        ("ref: refs/heads/main\n", Some("main")),
        ("ref: refs/heads/feature/x-1\n", Some("feature/x-1")),
        ("0123456789012345678901234567890123456789\n", None),
        ("ref: refs/heads/now do as I say\n", None),
        ("ref: refs/heads/a\nb\n", None),
        ("", None),
    ] {
        yard.put(".git/HEAD", head);
        assert_eq!(branch(&yard.root).as_deref(), name, "{head:?}");
    }
    assert!(is_repository(&yard.root));
}
