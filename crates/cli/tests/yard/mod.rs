//! A person's machine in a temporary folder: a home, a project, a scripted model, the binary.
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use windlass_testkit::terminal::Seat;
use windlass_testkit::{Model, Script};

/// A machine.
pub struct Yard {
    folder: tempfile::TempDir,
    /// The model.
    pub model: Model,
}

impl Yard {
    /// A machine whose model answers as told, with these settings besides the provider.
    pub fn new(replies: &[&str], settings: &str) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let yard = Yard { folder, model };
        for path in [yard.root(), yard.config_folder()] {
            std::fs::create_dir_all(path).unwrap();
        }
        let comma = if settings.is_empty() { "" } else { "," };
        yard.write_config(&format!(
            r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
            "base_url": "{}", "api_key": "sk-very-secret", "models": {{"m": {{}}}}}}}}{comma} {settings}}}"#,
            yard.model.url()
        ));
        std::fs::write(yard.root().join("README.md"), "# Hello\nA small project.\n").unwrap();
        yard
    }

    /// The project.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The person's home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The binary at a terminal, in the project.
    pub fn seat(&self) -> Seat {
        Seat::new(env!("CARGO_BIN_EXE_windlass"), self.root())
            .set("HOME", self.home())
            .set("PATH", std::env::var_os("PATH").unwrap())
            .set("LANG", "C.UTF-8")
    }

    /// The person's config.
    pub fn config_folder(&self) -> PathBuf {
        self.home().join(".config/windlass")
    }

    /// Where sessions are kept.
    pub fn data(&self) -> PathBuf {
        self.home().join(".local/share/windlass")
    }

    /// Replaces the person's config.
    pub fn write_config(&self, text: &str) {
        std::fs::write(self.config_folder().join("windlass.jsonc"), text).unwrap();
    }

    /// A file of the project.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }

    /// The binary, in the project, with nobody at the keyboard.
    pub fn windlass(&self, arguments: &[&str]) -> Command {
        self.wrapped(&[], arguments)
    }

    /// The same, started by another program.
    pub fn wrapped(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let binary = env!("CARGO_BIN_EXE_windlass");
        let mut command = match wrapper {
            [] => Command::new(binary),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(binary);
                command
            }
        };
        command.args(arguments).current_dir(self.root()).env_clear();
        command.env("HOME", self.home()).env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the binary and returns exit code, standard output and standard error.
    pub fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        told(&self.windlass(arguments).output().unwrap())
    }

    /// The facts of this project's last session.
    pub fn facts(&self) -> Vec<Value> {
        let (_, list, _) = self.run(&["session", "list", "--json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        self.facts_of(list[0]["session"].as_str().unwrap())
    }

    /// The facts of a session.
    pub fn facts_of(&self, session: &str) -> Vec<Value> {
        let (_, log, _) = self.run(&["session", "export", session]);
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line.get("seq").is_some()).collect()
    }
}

/// Exit code, standard output and standard error of what has ended.
pub fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
