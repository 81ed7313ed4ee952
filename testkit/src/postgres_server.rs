//! A PostgreSQL server of a test: a cluster of its own in a temporary folder, on a Unix socket.
//!
//! It ends with the test, also if the test is killed: a shell starts the server and stops it when
//! its standard input closes.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time that a start or stop may take.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(60);

/// Stops the server with a fast shutdown when standard input ends.
const SUPERVISOR_SCRIPT: &str = r#"
"$@" </dev/null &
server=$!
cat >/dev/null
kill -INT "$server" 2>/dev/null
wait "$server"
"#;

/// A user and group for the server, which does not run as root.
#[derive(Clone, Copy)]
pub(crate) struct ServerUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A running PostgreSQL server with an empty cluster.
pub struct PostgresServer {
    folder: tempfile::TempDir,
    programs: PathBuf,
    user: Option<ServerUser>,
    settings: Vec<String>,
    /// A file with the difference between its clock and the real one, if it has one of its own.
    clock: Option<PathBuf>,
    /// The shell that supervises the server.
    supervisor: Option<Child>,
}

impl PostgresServer {
    /// Creates a cluster and starts its server, with settings such as `fsync=on`.
    pub fn start(settings: &[&str]) -> PostgresServer {
        let mut server = PostgresServer::without_cluster(settings);
        let mut command = server.command("initdb");
        command.args(["--username=windlass", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        command.args(["--no-sync", "--no-instructions", "--pgdata"]).arg(server.data());
        run(command);
        server.start_again();
        server
    }

    /// Starts a server whose clock can be set, with `libfaketime`.
    pub fn start_with_clock() -> PostgresServer {
        let mut server = PostgresServer::start(&[]);
        server.stop();
        server.clock = Some(server.folder.path().join("clock"));
        server.set_clock("+0");
        server.start_again();
        server
    }

    /// Sets the difference between the server's clock and the real one, such as `+1h`.
    pub fn set_clock(&self, difference: &str) {
        let clock = self.clock.as_ref().expect("the server has a clock of its own");
        std::fs::write(clock, difference).unwrap();
        std::fs::set_permissions(clock, PermissionsExt::from_mode(0o644)).unwrap();
    }

    /// Creates a copy of the cluster, and starts a server that follows this one.
    pub fn start_standby(&self, settings: &[&str]) -> PostgresServer {
        let mut standby = PostgresServer::without_cluster(settings);
        let mut command = standby.command("pg_basebackup");
        command.args(["--username=windlass", "--write-recovery-conf", "--checkpoint=fast"]);
        command.arg("--host").arg(self.socket_folder()).arg("--pgdata").arg(standby.data());
        command.args(["--no-sync", "--no-password"]);
        run(command);
        standby.start_again();
        standby
    }

    /// Makes the server of a standby accept writes.
    pub fn promote(&self) {
        self.execute("postgres", "SELECT pg_promote()");
    }

    /// Sets a parameter of the running server.
    pub fn set(&self, name: &str, value: &str) {
        self.execute("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"));
        self.execute("postgres", "SELECT pg_reload_conf()");
    }

    fn without_cluster(settings: &[&str]) -> PostgresServer {
        let folder = tempfile::tempdir().unwrap();
        let user = server_user();
        for name in [".", "data", "socket"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
            if let Some(user) = user {
                chown(&path, Some(user.uid), Some(user.gid)).unwrap();
            }
        }
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let programs = postgres_programs();
        PostgresServer { folder, programs, user, settings, clock: None, supervisor: None }
    }

    /// Starts the server of a cluster that was stopped or killed.
    pub fn start_again(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new("sh");
        self.run_as_user(&mut command);
        command.args(["-c", SUPERVISOR_SCRIPT, "sh"]).arg(self.programs.join("postgres"));
        command.arg("-D").arg(self.data()).arg("-k").arg(self.socket_folder());
        for setting in ["listen_addresses=", "shared_buffers=16MB", "fsync=off", "jit=off"] {
            command.args(["-c", setting]);
        }
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        if let Some(clock) = &self.clock {
            command.env("LD_PRELOAD", faketime_library()).env("FAKETIME_TIMESTAMP_FILE", clock);
            command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        self.supervisor = Some(command.spawn().unwrap());
        let start = Instant::now();
        while !self.is_ready() {
            assert!(start.elapsed() < CONTROL_TIMEOUT, "{}", self.log_text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server and all its connections at once, as a crash of the machine would.
    pub fn crash(&mut self) {
        let pid_file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let pid: i32 = pid_file.lines().next().unwrap().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // An immediate shutdown writes nothing more and leaves recovery to the next start.
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        self.stop();
    }

    /// Shuts the server down; connections are closed.
    pub fn stop(&mut self) {
        let Some(mut supervisor) = self.supervisor.take() else { return };
        drop(supervisor.stdin.take());
        let start = Instant::now();
        while supervisor.try_wait().unwrap().is_none() && start.elapsed() < CONTROL_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the URL of a database of the cluster.
    pub fn url(&self, database: &str) -> String {
        let folder = self.socket_folder().display().to_string().replace('/', "%2F");
        format!("postgres://windlass@{folder}/{database}")
    }

    /// Returns the socket that the server listens on.
    pub fn socket(&self) -> PathBuf {
        self.socket_folder().join(".s.PGSQL.5432")
    }

    /// Creates an empty database.
    pub fn create_database(&self, name: &str) {
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
    }

    /// Executes SQL with `psql`, and returns the rows, with columns separated by `|`.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let mut command = self.command("psql");
        command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "windlass"]);
        command.arg("-h").arg(self.socket_folder()).args(["-d", database, "-c", sql]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Returns a command that runs as the user of the server, if that is not the one of the test.
    pub fn run_as_user(&self, command: &mut Command) {
        command.current_dir(self.folder.path());
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
    }

    /// Returns a folder that the server's user can write to.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command that runs a program of PostgreSQL as the user of the server.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        self.run_as_user(&mut command);
        command
    }

    fn is_ready(&self) -> bool {
        let mut command = self.command("pg_isready");
        command.arg("-q").arg("-h").arg(self.socket_folder()).args(["-d", "postgres"]);
        command.status().unwrap().success()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the folder of the socket.
    pub fn socket_folder(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn log_text(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the library that sets the clock of a process.
pub fn faketime_library() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().flatten();
    let libraries = folders.map(|folder| folder.path().join("faketime/libfaketime.so.1"));
    let library = libraries.into_iter().find(|library| library.exists());
    library.expect("faketime is needed: apt-get install faketime")
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns the folder of the programs of the newest installed PostgreSQL.
pub(crate) fn postgres_programs() -> PathBuf {
    let folder = Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let newest = versions
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|version| folder.join(version.to_string()).join("bin/initdb").exists())
        .max();
    let newest = newest.expect("PostgreSQL is needed: apt-get install postgresql");
    folder.join(newest.to_string()).join("bin")
}

/// Returns the user `postgres` if the test runs as root.
pub(crate) fn server_user() -> Option<ServerUser> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let user = users.lines().find_map(|line| line.strip_prefix("postgres:"));
    let fields: Vec<&str> = user.expect("PostgreSQL creates a user").split(':').collect();
    Some(ServerUser { uid: fields[1].parse().unwrap(), gid: fields[2].parse().unwrap() })
}
