//! A `windlass serve` process, and clients of it.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "tests start processes, and fail by panicking"
)]

use super::TestEnv;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_protocol::{AccessRight, ClientInfo, ClientKind};
use windlass_server::{Caller, RemoteHost, ServerAddress};

/// Longest wait for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A server process with the folders of a [`TestEnv`]. It is killed when this is dropped.
pub struct TestServer {
    child: Child,
    stderr: Arc<Mutex<String>>,
}

impl TestServer {
    /// Starts `windlass serve` and waits until it serves.
    pub fn start(env: &TestEnv, arguments: &[&str]) -> TestServer {
        let server = TestServer::spawn(env, arguments);
        server.wait_for("serving ");
        server
    }

    /// Starts `windlass serve`.
    pub fn spawn(env: &TestEnv, arguments: &[&str]) -> TestServer {
        TestServer::spawn_command(env.windlass(&[&["serve"], arguments].concat()))
    }

    /// Starts a server with a command for it.
    pub fn spawn_command(mut command: std::process::Command) -> TestServer {
        command.stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stderr: Arc<Mutex<String>> = Arc::default();
        let (lines, text) = (BufReader::new(child.stderr.take().unwrap()).lines(), stderr.clone());
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut text = text.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        TestServer { child, stderr }
    }

    /// Returns what the server has printed.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    /// Returns the id of the process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server has printed a text.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.stderr().contains(text) {
            assert!(Instant::now() < deadline, "no `{text}` in:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the address of the TCP listener.
    pub fn tcp_address(&self) -> String {
        self.wait_for("listening on ");
        let text = self.stderr();
        let address = text.split("listening on ").nth(1).unwrap().lines().next().unwrap();
        address.split("://").nth(1).unwrap().trim().to_owned()
    }

    /// Ends the process at once.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks the process to stop, and returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        let id = self.pid().to_string();
        assert!(
            std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success()
        );
        self.wait()
    }

    /// Waits for the end of the process, and returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "the server does not end: {}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the path of the server's socket.
pub fn socket_path(env: &TestEnv) -> std::path::PathBuf {
    env.data().join("server/windlass.sock")
}

/// Connects to the server over its socket.
pub async fn connect(env: &TestEnv) -> RemoteHost {
    RemoteHost::connect(ServerAddress::Socket(socket_path(env))).await.unwrap()
}

/// Returns a client that works in the project of `env`.
pub fn caller(env: &TestEnv) -> Caller {
    let root = env.root().canonicalize().unwrap();
    Caller {
        client: ClientInfo { name: "anna".to_owned(), kind: ClientKind::Program },
        right: AccessRight::Admin,
        workspace: Some(root.to_string_lossy().into_owned()),
        through_node: false,
        tenant: None,
    }
}

/// Waits for something that must happen.
pub async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("this must not take so long")
}
