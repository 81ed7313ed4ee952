//! A database, a folder that all nodes see, and nodes with a home folder each.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, connect, soon};
use serde_json::Value;
use std::path::{Path, PathBuf};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{AccessRight, ClientInfo, ClientKind, Fact, FactRecord, SessionId};
use windlass_server::{Caller, FrontendService, RemoteHost};
use windlass_testkit::patroni_cluster::PatroniCluster;
use windlass_testkit::postgres_server::{PostgresServer, faketime_library};
use windlass_testkit::{ModelScript, ScriptedModel};

/// A database of a fleet.
pub trait TestDatabase {
    /// Returns the URL of a database that is empty at first.
    fn create(&self, name: &str) -> String;

    /// Executes SQL, and returns the rows.
    fn execute(&self, database: &str, sql: &str) -> String;
}

impl TestDatabase for PostgresServer {
    fn create(&self, name: &str) -> String {
        self.create_database(name);
        self.url(name)
    }

    fn execute(&self, database: &str, sql: &str) -> String {
        PostgresServer::execute(self, database, sql)
    }
}

impl TestDatabase for PatroniCluster {
    fn create(&self, name: &str) -> String {
        self.create_database(name);
        self.url(name)
    }

    fn execute(&self, database: &str, sql: &str) -> String {
        PatroniCluster::execute(self, database, sql)
    }
}

/// A database and a shared folder, with a scripted model.
pub struct TestFleet<D = PostgresServer> {
    pub database: D,
    pub model: ScriptedModel,
    /// The URL at which nodes reach the database.
    pub url: String,
    folder: tempfile::TempDir,
}

/// A node of the fleet: a home folder and a process.
pub struct TestNode {
    pub env: TestEnv,
    pub server: TestServer,
    project: PathBuf,
}

impl TestFleet {
    /// Starts a database, and a model with these replies.
    pub fn start(replies: &[&str]) -> TestFleet {
        TestFleet::with_model(ModelScript::new(replies.iter().copied()))
    }

    pub fn with_model(script: ModelScript) -> TestFleet {
        TestFleet::with_database(PostgresServer::start(&[]), script)
    }
}

impl<D: TestDatabase> TestFleet<D> {
    pub fn with_database(database: D, script: ModelScript) -> TestFleet<D> {
        let url = database.create("fleet");
        // The sandbox replaces `/tmp`.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        TestFleet { database, model: ScriptedModel::start(script), url, folder }
    }

    /// Returns the folder that all nodes see.
    pub fn project(&self) -> PathBuf {
        self.folder.path().join("project").canonicalize().unwrap()
    }

    /// Starts a node that other nodes reach over TCP.
    pub fn start_node(&self) -> TestNode {
        self.start_node_with(&["--listen", "127.0.0.1:0"])
    }

    /// Starts a node.
    pub fn start_node_with(&self, arguments: &[&str]) -> TestNode {
        let env = self.node_env();
        let server = self.start_process(&env, arguments);
        TestNode { env, server, project: self.project() }
    }

    /// Starts a node of another release.
    pub fn start_node_of(&self, program: &Path) -> TestNode {
        let env = self.node_env();
        let project = self.project();
        let serve = ["serve", "--fleet", &self.url, "--listen", "127.0.0.1:0", "--root"];
        let inner = env.windlass(&[&serve[..], &[project.to_str().unwrap()]].concat());
        let mut command = std::process::Command::new(program);
        command.args(inner.get_args()).current_dir(inner.get_current_dir().unwrap()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        TestNode { server: self.start_command(command), env, project }
    }

    /// Starts a node with a config of its own.
    pub fn start_node_with_config(&self, config: &str) -> TestNode {
        let env = self.node_env();
        env.write_config(config);
        let server = self.start_process(&env, &["--listen", "127.0.0.1:0", "--capacity", "2000"]);
        TestNode { env, server, project: self.project() }
    }

    /// Starts a node with checkouts in a folder that other nodes see at the same path, but with other
    /// contents: those of `disk`.
    pub fn start_node_with_checkouts(&self, disk: &str) -> TestNode {
        let (env, checkouts, disk) = (self.node_env(), self.checkouts(), self.disk(disk));
        for folder in [&checkouts, &disk] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let (url, project) = (&self.url, self.project());
        let serve = ["serve", "--fleet", url, "--listen", "127.0.0.1:0", "--root"];
        let folders = [project.to_str().unwrap(), "--checkouts", checkouts.to_str().unwrap()];
        let inner = env.windlass(&[&serve[..], &folders].concat());
        let mut command = std::process::Command::new("unshare");
        if !rustix::process::getuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["--mount", "sh", "-c", "mount --bind \"$0\" \"$1\"; shift; exec \"$@\""]);
        command.arg(disk).arg(&checkouts).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(inner.get_current_dir().unwrap()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        TestNode { server: self.start_command(command), env, project: self.project() }
    }

    /// Returns the path of the checkouts, as the nodes see it.
    pub fn checkouts(&self) -> PathBuf {
        self.folder.path().join("checkouts")
    }

    /// Returns a folder with the checkouts of one node.
    pub fn disk(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes the project a clone of a repository with one commit, and returns the path of that one.
    pub fn create_repository(&self) -> PathBuf {
        let (origin, project) = (self.folder.path().join("origin.git"), self.project());
        let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
        git(&project, &["init", "--quiet", "--bare", "-b", "main", &text(&origin)]);
        git(&project, &["init", "--quiet", "-b", "main"]);
        std::fs::write(project.join("a.txt"), "one\n").unwrap();
        std::fs::write(project.join(".gitignore"), "ignored/\n").unwrap();
        git(&project, &["add", "--all"]);
        git(&project, &["commit", "--quiet", "-m", "first"]);
        git(&project, &["remote", "add", "origin", &text(&origin)]);
        git(&project, &["push", "--quiet", "origin", "main"]);
        origin
    }

    fn node_env(&self) -> TestEnv {
        let env = TestEnv::outside_temp_folder(&[], "");
        env.write_config(&self.config("allow"));
        env
    }

    /// Returns the config of a node, with a level for all tools.
    pub fn config(&self, permission: &str) -> String {
        format!(
            r#"{{"model": "scripted/m", "titles": false, "permission": "{permission}",
            "provider": {{"scripted": {{"api": "openai-chat", "base_url": "{}", "api_key": "k",
            "models": {{"m": {{}}}}}}}}}}"#,
            self.model.url()
        )
    }

    /// Starts a node whose clock differs from the real one, such as `+1h`.
    pub fn start_node_with_clock(&self, difference: &str) -> TestNode {
        let env = self.node_env();
        let project = self.project();
        let serve = ["serve", "--fleet", &self.url, "--listen", "127.0.0.1:0", "--root"];
        let mut command = env.windlass(&[&serve[..], &[project.to_str().unwrap()]].concat());
        command.env("LD_PRELOAD", faketime_library()).env("FAKETIME", difference);
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        TestNode { server: self.start_command(command), env, project }
    }

    /// Starts the process of a node with a command for it.
    fn start_command(&self, mut command: std::process::Command) -> TestServer {
        command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let server = TestServer::spawn_command(command);
        server.wait_for("serving ");
        server
    }

    /// Kills the process of a node, and starts another one with its home folder.
    pub fn replace_process(&self, node: TestNode) -> TestNode {
        let TestNode { env, server, project } = node;
        server.kill();
        let server = self.start_process(&env, &["--listen", "127.0.0.1:0"]);
        TestNode { env, server, project }
    }

    fn start_process(&self, env: &TestEnv, arguments: &[&str]) -> TestServer {
        let (url, project) = (&self.url, self.project());
        let fleet = ["--fleet", url, "--root", project.to_str().unwrap()];
        TestServer::start(env, &[&fleet[..], arguments].concat())
    }

    pub fn execute(&self, sql: &str) -> String {
        self.database.execute("fleet", sql)
    }

    /// Returns the number of nodes in the database.
    pub fn node_count(&self) -> usize {
        self.execute("SELECT count(*) FROM node").parse().unwrap()
    }

    /// Returns the stored facts of a session.
    pub fn facts(&self, session: SessionId) -> Vec<Fact> {
        let sql = format!("SELECT body FROM event WHERE session = '{}' ORDER BY seq", session.0);
        let lines = self.execute(&sql);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the path of a file in the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }
}

impl TestNode {
    pub async fn host(&self) -> RemoteHost {
        connect(&self.env).await
    }

    /// Returns a client of the project.
    pub fn caller(&self, name: &str) -> Caller {
        Caller {
            client: ClientInfo { name: name.to_owned(), kind: ClientKind::Program },
            right: AccessRight::Admin,
            workspace: Some(self.project.to_str().unwrap().to_owned()),
            through_node: false,
            tenant: None,
        }
    }

    /// Starts a session, and watches it.
    pub async fn start_session(&self) -> SessionClient {
        let (host, caller) = (self.host().await, self.caller("anna"));
        let opened = soon(host.request(&caller, FrontendRequest::new_session(None))).await.unwrap();
        let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
        SessionClient::watch(host, caller, session).await
    }

    /// Watches a session from its beginning, wherever it is open.
    pub async fn watch(&self, session: SessionId) -> SessionClient {
        SessionClient::watch(self.host().await, self.caller("ben"), session).await
    }

    /// Watches a session from where another client is, with the facts that it has.
    pub async fn watch_after(&self, other: &SessionClient) -> SessionClient {
        let (host, caller) = (self.host().await, self.caller("ben"));
        SessionClient::watch_after(host, caller, other).await
    }

    /// Returns the metrics, as the operator at the machine reads them.
    pub fn metrics(&self) -> String {
        let socket = crate::support::server::socket_path(&self.env);
        let mut command = std::process::Command::new("curl");
        command.args(["-s", "--unix-socket"]).arg(socket).arg("http://localhost/metrics");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Sends a signal to the process.
    pub fn signal(&self, name: &str) {
        let id = self.server.pid().to_string();
        let status = std::process::Command::new("kill").args([name, &id]).status().unwrap();
        assert!(status.success());
    }
}

/// Runs git, and returns what it prints.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(arguments);
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the kinds of facts.
pub fn kinds(facts: &[FactRecord]) -> Vec<String> {
    let kind = |record: &FactRecord| -> Value { serde_json::to_value(&record.fact).unwrap() };
    facts.iter().map(|record| kind(record)["kind"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that a client has seen each fact of a session once and in order.
#[track_caller]
pub fn assert_no_gaps(facts: &[FactRecord]) {
    assert!(facts.iter().map(|record| record.seq).eq(1..=facts.len() as u64), "{facts:?}");
}

/// Waits until a condition holds.
#[track_caller]
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < crate::support::server::PATIENCE, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns the lines of a file; none if it does not exist.
pub fn lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
