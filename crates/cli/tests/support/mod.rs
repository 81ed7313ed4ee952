//! A home folder and a project in a temporary folder, a scripted model, and the binary.
#![allow(dead_code, reason = "each test binary uses a part of this module")]

#[cfg(unix)]
pub mod server;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use windlass_testkit::terminal::TerminalCommand;
use windlass_testkit::{ModelScript, ScriptedModel};

/// A temporary home folder and project, and a scripted model that the config uses.
pub struct TestEnv {
    folder: tempfile::TempDir,
    /// The scripted model.
    pub model: ScriptedModel,
    /// The server of the last terminal, if terminals are attached to one.
    #[cfg(unix)]
    server: std::sync::Mutex<Option<server::TestServer>>,
}

impl TestEnv {
    /// Creates the folders and a config with the provider and `settings`. The model gives `replies`
    /// in order.
    pub fn new(replies: &[&str], settings: &str) -> TestEnv {
        TestEnv::new_in(tempfile::tempdir().unwrap(), replies, settings)
    }

    /// Like [`TestEnv::new`], in a folder that the sandbox does not replace, unlike `/tmp`.
    pub fn outside_temp_folder(replies: &[&str], settings: &str) -> TestEnv {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        TestEnv::new_in(folder, replies, settings)
    }

    fn new_in(folder: tempfile::TempDir, replies: &[&str], settings: &str) -> TestEnv {
        let model = ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        let env = TestEnv {
            folder,
            model,
            #[cfg(unix)]
            server: Default::default(),
        };
        for path in [env.root(), env.config_folder()] {
            std::fs::create_dir_all(path).unwrap();
        }
        let comma = if settings.is_empty() { "" } else { "," };
        env.write_config(&format!(
            r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
            "base_url": "{}", "api_key": "sk-very-secret", "models": {{"m": {{}}}}}}}}{comma} {settings}}}"#,
            env.model.url()
        ));
        std::fs::write(env.root().join("README.md"), "# Hello\nA small project.\n").unwrap();
        env
    }

    /// Returns the project folder.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// Returns the user's home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the binary in a terminal, in the project folder, for which the user has declined
    /// trust earlier.
    pub fn terminal(&self) -> TerminalCommand {
        #[cfg(unix)]
        self.decline_trust(&self.root());
        self.first_terminal()
    }

    /// Records that the user declined to trust a folder, unless there is a decision.
    #[cfg(unix)]
    pub fn decline_trust(&self, folder: &std::path::Path) {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        let path = self.data().join("trust.json");
        if path.exists() {
            return;
        }
        let names = ["windlass.jsonc", ".mcp.json", ".windlass", ".opencode", "AGENTS.md"];
        let names: Vec<&str> =
            names.into_iter().filter(|name| folder.join(name).exists()).collect();
        let root = folder.canonicalize().unwrap();
        let list = serde_json::json!({"folders": {}, "declined": {root.to_str().unwrap(): names}});
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(self.data()).unwrap();
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).mode(0o600).open(path).unwrap();
        serde_json::to_writer(file, &list).unwrap();
    }

    /// Returns the binary in a terminal, in a project folder that is new to the user. With
    /// `WINDLASS_TEST_ATTACHED`, it is attached to a server that has just been started.
    pub fn first_terminal(&self) -> TerminalCommand {
        let command = TerminalCommand::new(env!("CARGO_BIN_EXE_windlass"), self.root())
            .set("HOME", self.home())
            .set("PATH", std::env::var_os("PATH").unwrap())
            .set("LANG", "C.UTF-8");
        #[cfg(unix)]
        if is_attached() {
            let mut server = self.server.lock().unwrap();
            if let Some(earlier) = server.take() {
                earlier.stop();
            }
            *server = Some(server::TestServer::start(self, &[]));
            return command.with(&["attach"]);
        }
        command
    }

    /// Returns the folder of the user's config.
    pub fn config_folder(&self) -> PathBuf {
        self.home().join(".config/windlass")
    }

    /// Returns the data folder, which contains sessions, keys and approvals.
    pub fn data(&self) -> PathBuf {
        self.home().join(".local/share/windlass")
    }

    /// Replaces the user's config.
    pub fn write_config(&self, text: &str) {
        std::fs::write(self.config_folder().join("windlass.jsonc"), text).unwrap();
    }

    /// Reads a file of the project; `None` if it does not exist.
    pub fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root().join(path)).ok()
    }

    /// Returns a command that runs the binary in the project, without a terminal or input.
    pub fn windlass(&self, arguments: &[&str]) -> Command {
        self.wrapped(&[], arguments)
    }

    /// Returns a command that runs the binary like [`TestEnv::windlass`], started by `wrapper`.
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
        decode_output(&self.windlass(arguments).output().unwrap())
    }

    /// Returns the id of this project's last session.
    pub fn last_session_id(&self) -> String {
        let (_, list, _) = self.run(&["session", "list", "--json"]);
        let list: Value = serde_json::from_str(&list).unwrap();
        list[0]["session"].as_str().unwrap().to_owned()
    }

    /// Returns the facts of this project's last session.
    pub fn facts(&self) -> Vec<Value> {
        self.facts_of(&self.last_session_id())
    }

    /// Returns the facts of a session, without their checksums.
    pub fn facts_of(&self, session: &str) -> Vec<Value> {
        let (_, log, _) = self.run(&["session", "export", session]);
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut facts: Vec<Value> = lines.filter(|line| line.get("seq").is_some()).collect();
        for fact in &mut facts {
            fact.as_object_mut().unwrap().shift_remove("check");
        }
        facts
    }
}

/// Returns true if terminals are attached to a server, for a second run of the same tests.
pub fn is_attached() -> bool {
    std::env::var_os("WINDLASS_TEST_ATTACHED").is_some()
}

/// Writes a file, and creates its folder.
pub fn write_file(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns exit code, standard output and standard error of a finished process.
pub fn decode_output(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}
