//! A PostgreSQL cluster that replaces its primary by itself: two nodes of Patroni, etcd, and HAProxy as
//! the address of the primary. All are Debian's packages, and listen on loopback.

use crate::postgres_server::{ServerUser, postgres_programs, server_user};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for the cluster to be as a test needs it.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(120);

/// A running cluster.
pub struct PatroniCluster {
    folder: tempfile::TempDir,
    programs: PathBuf,
    user: Option<ServerUser>,
    nodes: [PatroniNode; 2],
    address: u16,
    /// etcd and HAProxy.
    helpers: Vec<Child>,
}

struct PatroniNode {
    name: &'static str,
    database_port: u16,
    api_port: u16,
    process: Option<Child>,
}

impl PatroniCluster {
    /// Starts a cluster whose standby has everything that is acknowledged.
    pub fn start() -> PatroniCluster {
        let folder = tempfile::tempdir().unwrap();
        let user = server_user();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o711)).unwrap();
        let node = |name| PatroniNode {
            name,
            database_port: free_port(),
            api_port: free_port(),
            process: None,
        };
        let nodes = [node("one"), node("two")];
        let programs = postgres_programs();
        let (address, helpers) = (free_port(), Vec::new());
        let mut cluster = PatroniCluster { folder, programs, user, nodes, address, helpers };
        let etcd_port = cluster.start_etcd();
        for index in 0..2 {
            cluster.write_config(index, etcd_port);
            cluster.start_node(index);
        }
        cluster.start_proxy();
        cluster.wait_for_standby();
        cluster
    }

    /// Returns the URL of a database, at the primary.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://windlass@127.0.0.1:{}/{database}", self.address)
    }

    /// Waits until there is a primary, and a standby that is synchronous.
    pub fn wait_for_standby(&self) {
        let start = Instant::now();
        while !(self.primary().is_some() && (0..2).any(|node| self.is(node, "synchronous"))) {
            assert!(start.elapsed() < SETTLE_TIMEOUT, "{}", self.logs());
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Kills the primary with everything of its machine. Returns its number.
    pub fn kill_primary(&mut self) -> usize {
        let primary = self.primary().expect("the cluster has a primary");
        let mut patroni = self.nodes[primary].process.take().unwrap();
        patroni.kill().unwrap();
        patroni.wait().unwrap();
        self.kill_database(primary);
        primary
    }

    /// Starts a node that was killed.
    pub fn start_node(&mut self, index: usize) {
        let mut command = self.command("patroni");
        command.arg(self.folder.path().join(format!("{}.yml", self.nodes[index].name)));
        self.nodes[index].process = Some(self.spawn(command, self.nodes[index].name));
    }

    /// Creates an empty database.
    pub fn create_database(&self, name: &str) {
        self.execute("postgres", &format!("CREATE DATABASE {name}"));
    }

    /// Executes SQL at the primary, and returns the rows.
    pub fn execute(&self, database: &str, sql: &str) -> String {
        let start = Instant::now();
        loop {
            let mut command = Command::new(self.programs.join("psql"));
            command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql]);
            let output = command.arg(self.url(database)).output().unwrap();
            if output.status.success() {
                return String::from_utf8(output.stdout).unwrap().trim().to_owned();
            }
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(start.elapsed() < SETTLE_TIMEOUT, "{sql}: {error}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn primary(&self) -> Option<usize> {
        (0..2).find(|node| self.is(*node, "primary"))
    }

    /// Asks the API of a node whether it has a role.
    fn is(&self, node: usize, role: &str) -> bool {
        let address = ("127.0.0.1", self.nodes[node].api_port);
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let request = format!("GET /{role} HTTP/1.0\r\n\r\n");
        let mut answer = String::new();
        let is_read = stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_string(&mut answer).is_ok();
        is_read && answer.split(' ').nth(1) == Some("200")
    }

    fn kill_database(&self, node: usize) {
        let file = self.data_folder(node).join("postmaster.pid");
        let Ok(text) = std::fs::read_to_string(file) else { return };
        let id = text.lines().next().and_then(|line| line.parse().ok());
        let Some(pid) = id.and_then(rustix::process::Pid::from_raw) else { return };
        // The other processes of the server end when they see this.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }

    fn start_etcd(&mut self) -> u16 {
        let (port, peer_port) = (free_port(), free_port());
        let (url, peer) =
            (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer_port}"));
        let mut command = self.command("etcd");
        command.arg("--data-dir").arg(self.new_folder("etcd"));
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        let process = self.spawn(command, "etcd");
        self.helpers.push(process);
        port
    }

    fn start_proxy(&mut self) {
        let servers = self.nodes.iter().map(|node| {
            format!(
                "  server {} 127.0.0.1:{} check port {}\n",
                node.name, node.database_port, node.api_port
            )
        });
        let config = format!(
            "global\n  maxconn 500\ndefaults\n  mode tcp\n  timeout connect 1s\n  timeout client 30m\n  \
             timeout server 30m\n  timeout check 1s\nlisten primary\n  bind 127.0.0.1:{}\n  \
             option httpchk GET /primary\n  http-check expect status 200\n  \
             default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions\n{}",
            self.address,
            servers.collect::<String>()
        );
        let file = self.folder.path().join("haproxy.cfg");
        std::fs::write(&file, config).unwrap();
        let mut command = self.command("/usr/sbin/haproxy");
        command.arg("-db").arg("-f").arg(file);
        let process = self.spawn(command, "haproxy");
        self.helpers.push(process);
    }

    fn write_config(&self, index: usize, etcd_port: u16) {
        let PatroniNode { name, database_port, api_port, .. } = &self.nodes[index];
        let folder = self.new_folder(name);
        let address = |port: u16| format!("127.0.0.1:{port}");
        let access = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"];
        let user = json!({"username": "windlass"});
        let config: Value = json!({
            "scope": "fleet", "name": name,
            "restapi": {"listen": address(*api_port), "connect_address": address(*api_port)},
            "etcd3": {"hosts": address(etcd_port)},
            "bootstrap": {
                "dcs": {
                    "ttl": 20, "loop_wait": 2, "retry_timeout": 5, "primary_start_timeout": 0,
                    "synchronous_mode": true,
                    "postgresql": {"use_pg_rewind": true, "parameters": {"wal_log_hints": "on"}},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
                "pg_hba": access,
            },
            "postgresql": {
                "listen": address(*database_port), "connect_address": address(*database_port),
                "data_dir": self.data_folder(index), "bin_dir": self.programs,
                "pgpass": folder.join("pgpass"), "pg_hba": access,
                "authentication": {"superuser": user, "replication": user, "rewind": user},
                "parameters": {
                    "unix_socket_directories": folder, "shared_buffers": "32MB", "jit": "off",
                },
            },
        });
        // YAML contains JSON.
        std::fs::write(self.folder.path().join(format!("{name}.yml")), config.to_string()).unwrap();
    }

    fn data_folder(&self, index: usize) -> PathBuf {
        self.folder.path().join(self.nodes[index].name).join("data")
    }

    /// Creates a folder that the servers can write to.
    fn new_folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        if let Some(user) = self.user {
            chown(&folder, Some(user.uid), Some(user.gid)).unwrap();
        }
        folder
    }

    /// Returns a command that runs as the user `postgres`, and ends with the test.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        if let Some(user) = self.user {
            command.arg(format!("--reuid={}", user.uid));
            command.arg(format!("--regid={}", user.gid)).arg("--clear-groups");
        }
        command.args(["--pdeathsig", "TERM", program]);
        command.current_dir(self.folder.path()).env_clear();
        command.env("PATH", "/usr/bin:/bin").env("HOME", self.folder.path()).env("LANG", "C");
        command
    }

    fn spawn(&self, mut command: Command, name: &str) -> Child {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path(name));
        let log = log.unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command.spawn().unwrap()
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}.log"))
    }

    /// Returns the ends of all logs.
    fn logs(&self) -> String {
        let tail = |name: &str| {
            let text = std::fs::read_to_string(self.log_path(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("{name}: {}\n", lines[lines.len().saturating_sub(15)..].join("\n"))
        };
        ["etcd", "haproxy", "one", "two"].map(tail).concat()
    }
}

impl Drop for PatroniCluster {
    fn drop(&mut self) {
        for index in 0..2 {
            if let Some(mut process) = self.nodes[index].process.take() {
                let _ = process.kill();
                let _ = process.wait();
            }
            self.kill_database(index);
        }
        for process in &mut self.helpers {
            let _ = process.kill();
            let _ = process.wait();
        }
        wait_for_end(self.folder.path());
    }
}

/// Gives the processes of the databases a moment to end, so that the folder can be removed.
fn wait_for_end(folder: &Path) {
    let start = Instant::now();
    let folder = folder.to_str().unwrap().to_owned();
    let is_used = || {
        let status = Command::new("pgrep").args(["-f", &folder]).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    while is_used() && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
