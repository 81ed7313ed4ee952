//! Instruction files: order, patterns, links and limits.

use super::*;
use crate::{ConfigEnv, ConfigFlags, TrustStore};

struct InstructionTestConfigEnv;

impl ConfigEnv for InstructionTestConfigEnv {
    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn canonical_provider(&self, _: &str) -> Option<&'static str> {
        None
    }
}

struct InstructionTestEnv {
    folder: tempfile::TempDir,
    dirs: Dirs,
    root: PathBuf,
}

impl InstructionTestEnv {
    fn new() -> InstructionTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let home = base.join("home");
        let dirs = Dirs {
            config: home.join(".config/windlass"),
            data: home.join(".local/share/windlass"),
            managed_policy: None,
            tenant_policy: None,
            checkouts: std::collections::BTreeMap::new(),
            cache: home.join(".cache/windlass"),
            plugins: home.join(".local/share/windlass-plugins"),
            home: home.clone(),
        };
        let root = home.join("code/app");
        for path in [&dirs.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        InstructionTestEnv { folder, dirs, root }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn trust(&self) {
        let mut trust = TrustStore::read(&self.dirs).unwrap();
        let request = trust.prepare_request(&self.root).unwrap();
        trust.add(request, false).unwrap();
    }

    fn config(&self) -> Config {
        Config::load(&self.dirs, &self.root, ConfigFlags::default(), &InstructionTestConfigEnv)
            .unwrap()
    }

    fn load(&self) -> Vec<(String, String)> {
        let found = load_instructions(&self.dirs, &self.root, &self.config(), &|_| true);
        let found = found.texts.into_iter();
        let base = self.folder.path().canonicalize().unwrap().display().to_string();
        found.map(|instruction| (instruction.path.replace(&base, ""), instruction.text)).collect()
    }

    fn paths(&self) -> Vec<String> {
        self.load().into_iter().map(|(path, _)| path).collect()
    }
}

#[test]
fn general_instructions_come_first_and_home_is_ignored() {
    let env = InstructionTestEnv::new();
    env.write("AGENTS.md", "of the project");
    env.write("../AGENTS.md", "of all my code");
    env.write("../../AGENTS.md", "of a stray file at home");
    env.write("../../../AGENTS.md", "of a stray file above home");
    std::fs::write(env.dirs.config.join("AGENTS.md"), "of the user").unwrap();
    assert_eq!(env.paths(), ["/home/.config/windlass/AGENTS.md"], "the folder is not trusted");
    env.trust();
    let texts: Vec<String> = env.load().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["of the user", "of all my code", "of the project"]);
    assert_eq!(env.paths()[1..], ["../AGENTS.md", "AGENTS.md"]);
}

#[test]
fn claude_md_is_read_where_there_is_no_agents_md() {
    let env = InstructionTestEnv::new();
    env.write("CLAUDE.md", "c");
    env.write("../AGENTS.md", "above");
    env.write("../CLAUDE.md", "not this");
    env.trust();
    assert_eq!(env.paths(), ["../AGENTS.md", "CLAUDE.md"]);
    env.write("AGENTS.md", "a");
    assert_eq!(env.paths(), ["../AGENTS.md", "AGENTS.md"]);
    env.write("AGENTS.md", " \n");
    assert_eq!(env.paths(), ["../AGENTS.md", "CLAUDE.md"], "an empty file is ignored");
}

#[test]
fn patterns_of_user_and_project_are_combined() {
    let env = InstructionTestEnv::new();
    std::fs::write(
        env.dirs.config.join("windlass.jsonc"),
        r#"{"instructions": ["CONTRIBUTING.md", "../../secret", "/etc/passwd", "~/x", "gone.md"]}"#,
    )
    .unwrap();
    env.write("windlass.jsonc", r#"{"instructions": ["docs/**/*.md", ".rules/?.md", "docs"]}"#);
    env.write("CONTRIBUTING.md", "contribute");
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
        env.write(path, text);
    }
    assert_eq!(env.paths(), [""; 0]);
    env.trust();
    assert_eq!(env.paths(), ["CONTRIBUTING.md", "docs/a/deep/c.md", "docs/b.md", ".rules/r.md"]);
    let diagnostics = env.config().diagnostics;
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    assert!(
        diagnostics
            .iter()
            .all(|diagnostic| !diagnostic.fatal && diagnostic.message.ends_with("; ignored"))
    );
}

#[cfg(unix)]
#[test]
fn links_out_of_their_folder_are_not_followed() {
    use std::os::unix::fs::symlink;
    let env = InstructionTestEnv::new();
    env.write("../outside.md", "outside");
    env.write("../elsewhere/x.md", "elsewhere");
    env.write("docs/real.md", "real");
    env.write("windlass.jsonc", r#"{"instructions": ["*.md", "out/*.md", "out/x.md", "in/*.md"]}"#);
    symlink("../outside.md", env.root.join("AGENTS.md")).unwrap();
    symlink(env.root.join("../outside.md"), env.root.join("whole.md")).unwrap();
    symlink("../elsewhere", env.root.join("out")).unwrap();
    env.trust();
    assert_eq!(env.paths(), [""; 0]);
    std::fs::remove_file(env.root.join("AGENTS.md")).unwrap();
    symlink("docs/real.md", env.root.join("AGENTS.md")).unwrap();
    assert_eq!(
        env.load(),
        [("AGENTS.md".to_owned(), "real".to_owned())],
        "a link inside the folder is followed"
    );
}

#[cfg(unix)]
#[test]
fn files_that_are_not_text_are_skipped_without_blocking() {
    let env = InstructionTestEnv::new();
    env.write("windlass.jsonc", r#"{"instructions": ["*.md"]}"#);
    env.trust();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        env.root.join("AGENTS.md"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    env.write("zeros.md", "a\0b");
    env.write("folder.md/x", "");
    env.write("CLAUDE.md", "read instead");
    assert_eq!(env.paths(), ["CLAUDE.md"]);
}

#[test]
fn long_files_are_truncated_and_the_number_of_files_is_limited() {
    let env = InstructionTestEnv::new();
    env.write("AGENTS.md", &"long ".repeat(100_000));
    env.write("windlass.jsonc", r#"{"instructions": ["many/*.md"]}"#);
    for index in 0..100 {
        env.write(&format!("many/{index:03}.md"), &index.to_string());
    }
    env.trust();
    let found = load_instructions(&env.dirs, &env.root, &env.config(), &|_| true).texts;
    assert_eq!(found.len(), MAX_INSTRUCTION_FILES);
    assert_eq!((found[0].text.len() as u64, found[0].total_bytes), (MAX_FILE_BYTES, 500_000));
}

#[test]
fn a_git_branch_must_be_a_plain_name() {
    let env = InstructionTestEnv::new();
    assert!(!is_git_repository(&env.root));
    for (head, name) in [
        ("ref: refs/heads/main\n", Some("main")),
        ("ref: refs/heads/feature/x-1\n", Some("feature/x-1")),
        ("0123456789012345678901234567890123456789\n", None),
        ("ref: refs/heads/now do as I say\n", None),
        ("ref: refs/heads/a\nb\n", None),
        ("", None),
    ] {
        env.write(".git/HEAD", head);
        assert_eq!(git_branch(&env.root).as_deref(), name, "{head:?}");
    }
    assert!(is_git_repository(&env.root));
}
