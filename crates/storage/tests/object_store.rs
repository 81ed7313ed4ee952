//! Large blobs in an object store: moto, which answers as S3 does, behind a proxy that breaks answers.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test fails by panicking, and starts a server behind a proxy"
)]

mod support;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{model_text, registration, session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use windlass_protocol::{BlobRef, Fact, UnixMillis};
use windlass_storage::postgres::{ObjectStorage, PostgresDatabase};
use windlass_storage::{Log, PostgresLog, StorageError, read_all};
use windlass_testkit::postgres_server::PostgresServer;

const TIME: UnixMillis = UnixMillis(1);
/// Limit for a request, and for all attempts.
const TIMEOUT: Duration = Duration::from_secs(2);
/// A blob of this size is an object.
const LARGE: usize = 300 << 10;

/// A fault of the object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreFault {
    None,
    /// Connections are closed at once.
    Closed,
    /// Requests get the status 500.
    Status500,
    /// Answers are passed slowly.
    Slow,
    /// The connection is closed after this many bytes of answers.
    Cut(usize),
    /// One byte in each body is another one.
    WrongByte,
}

/// A proxy in front of the object store.
struct FaultyProxy {
    address: String,
    state: Arc<Mutex<FaultState>>,
    _tasks: JoinSet<()>,
}

struct FaultState {
    fault: StoreFault,
    /// The requests or answers that it still concerns.
    left: usize,
}

impl FaultyProxy {
    async fn start(server: String) -> FaultyProxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::new(Mutex::new(FaultState { fault: StoreFault::None, left: 0 }));
        let (mut tasks, shared) = (JoinSet::new(), Arc::clone(&state));
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                connections.spawn(pass(client, server.clone(), Arc::clone(&shared)));
                while connections.try_join_next().is_some() {}
            }
        });
        FaultyProxy { address, state, _tasks: tasks }
    }

    /// Makes the next `times` requests or answers fail.
    fn fail(&self, fault: StoreFault, times: usize) {
        *self.state.lock().unwrap() = FaultState { fault, left: times };
    }

    fn heal(&self) {
        self.fail(StoreFault::None, 0);
    }
}

/// Returns the fault if it concerns this request or answer.
fn take(
    state: &Mutex<FaultState>,
    is_concerned: impl Fn(StoreFault) -> bool,
) -> Option<StoreFault> {
    let mut state = state.lock().unwrap();
    let fault = Some(state.fault).filter(|fault| state.left > 0 && is_concerned(*fault))?;
    state.left -= 1;
    Some(fault)
}

async fn pass(mut client: TcpStream, server: String, state: Arc<Mutex<FaultState>>) -> Option<()> {
    let mut server = TcpStream::connect(server).await.ok()?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let (mut request, mut answer) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        tokio::select! {
            read = from_client.read(&mut request) => {
                let length = read.ok().filter(|length| *length > 0)?;
                match take(&state, |fault| matches!(fault, StoreFault::Closed | StoreFault::Status500)) {
                    Some(StoreFault::Status500) => {
                        let text = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\
                            connection: close\r\n\r\n";
                        to_client.write_all(text.as_bytes()).await.ok()?;
                        // The rest of the request is read, so that the client sees the answer.
                        let drain = async { while from_client.read(&mut request).await.ok()? > 0 {} Some(()) };
                        return tokio::time::timeout(Duration::from_millis(300), drain).await.ok()?;
                    }
                    Some(_) => return None,
                    None => to_server.write_all(&request[..length]).await.ok()?,
                }
            }
            read = from_server.read(&mut answer) => {
                let length = read.ok().filter(|length| *length > 0)?;
                let is_large = length > 10_000;
                let fault = take(&state, |fault| match fault {
                    StoreFault::Slow | StoreFault::Cut(_) => true,
                    StoreFault::WrongByte => is_large,
                    _ => false,
                });
                match fault {
                    Some(StoreFault::Slow) => {
                        for bytes in answer[..length].chunks(10) {
                            to_client.write_all(bytes).await.ok()?;
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                    Some(StoreFault::Cut(at)) => {
                        to_client.write_all(&answer[..length.min(at)]).await.ok()?;
                        return None;
                    }
                    fault => {
                        if fault.is_some() {
                            answer[length - 1] ^= 1;
                        }
                        to_client.write_all(&answer[..length]).await.ok()?;
                    }
                }
            }
        }
    }
}

/// A moto server with a bucket.
struct Moto {
    process: Child,
    address: String,
}

impl Moto {
    async fn start() -> Moto {
        let tools = std::env::var_os("WINDLASS_MOTO");
        let tools = tools.expect("WINDLASS_MOTO is a Python environment with moto[s3,server]");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut command = Command::new(PathBuf::from(tools).join("bin/moto_server"));
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let moto = Moto { process: command.spawn().unwrap(), address: format!("127.0.0.1:{port}") };
        let start = Instant::now();
        while TcpStream::connect(&moto.address).await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "moto does not start");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let created = moto.request("PUT", "/outputs").await;
        assert!(created.starts_with("HTTP/1.1 200"), "{created}");
        moto
    }

    async fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Returns the keys of all objects.
    async fn keys(&self) -> Vec<String> {
        let list = self.request("GET", "/outputs?list-type=2").await;
        let keys = list.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        keys.map(str::to_owned).collect()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A fleet with an object store behind a proxy.
struct Fleet {
    server: PostgresServer,
    moto: Moto,
    proxy: FaultyProxy,
}

impl Fleet {
    async fn start() -> Fleet {
        let server = PostgresServer::start(&[]);
        server.create_database("fleet");
        let moto = Moto::start().await;
        let proxy = FaultyProxy::start(moto.address.clone()).await;
        let fleet = Fleet { server, moto, proxy };
        fleet.database().migrate().await.unwrap();
        fleet
    }

    fn database(&self) -> PostgresDatabase {
        PostgresDatabase::new(&self.server.url("fleet"), 4).unwrap()
    }

    fn objects(&self) -> ObjectStorage {
        let variables = [
            ("AWS_ACCESS_KEY_ID", "a".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "b".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT", format!("http://{}", self.proxy.address)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ];
        ObjectStorage::open("s3://outputs/fleet", &variables, TIMEOUT).unwrap()
    }

    async fn log(&self, tenant: &str) -> PostgresLog {
        let database = self.database().with_object_storage(Some(self.objects()));
        let tenant = database.tenant(tenant).await.unwrap();
        database.join(registration()).await.unwrap().log(tenant)
    }

    fn count(&self, sql: &str) -> usize {
        self.server.execute("fleet", sql).parse().unwrap()
    }
}

/// Returns bytes that cannot be compressed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(next).collect()
}

async fn keep(log: &PostgresLog, number: u128, blob: &BlobRef) {
    let claim = log.claim(session(number)).await.unwrap();
    let output = windlass_protocol::ToolOutput {
        text: "text".into(),
        full_text: Some(blob.clone()),
        ..Default::default()
    };
    let fact = Fact::CallSettled {
        call: windlass_protocol::CallId(uuid::Uuid::from_u128(number)),
        outcome: windlass_protocol::CallOutcome::Completed { output },
        seen_files: Vec::new(),
    };
    log.append(&claim, 0, TIME, &[model_text("text"), fact]).await.unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn large_outputs_are_objects_that_every_node_of_the_tenant_reads() {
    let fleet = Fleet::start().await;
    let (one, two) = (fleet.log("team").await, fleet.log("team").await);
    let (large, small) = (noise(1, LARGE), noise(2, 1_000));
    let large_ref = one.put_blob(large.clone()).await.unwrap();
    let small_ref = one.put_blob(small.clone()).await.unwrap();
    let copy_ref = one.put_copy(noise(3, LARGE), None).await.unwrap();
    assert!(two.get_blob(&large_ref).await.unwrap() == large);
    assert!(two.get_blob(&small_ref).await.unwrap() == small);
    assert!(two.get_copy(&copy_ref).await.unwrap() == noise(3, LARGE));
    assert_eq!(fleet.count("SELECT count(*) FROM blob WHERE body IS NULL"), 2);
    assert_eq!(fleet.count("SELECT count(*) FROM blob WHERE object IS NULL"), 1);
    assert_eq!(fleet.moto.keys().await.len(), 2);

    // The same bytes again are the same object; those of another tenant are not.
    two.put_blob(large.clone()).await.unwrap();
    assert_eq!(fleet.moto.keys().await.len(), 2);
    let other = fleet.log("other").await;
    let missing = other.get_blob(&large_ref).await;
    assert!(matches!(missing, Err(StorageError::BlobLost { .. })));
    other.put_blob(large.clone()).await.unwrap();
    assert_eq!(fleet.moto.keys().await.len(), 3);

    // A node without the object store says so. A large fact needs none.
    let claim = one.claim(session(1)).await.unwrap();
    one.append(&claim, 0, TIME, &[model_text("x".repeat(LARGE))]).await.unwrap();
    let database = fleet.database();
    let tenant = database.tenant("team").await.unwrap();
    let without = database.join(registration()).await.unwrap().log(tenant);
    let error = without.get_blob(&large_ref).await.unwrap_err();
    assert!(error.to_string().contains("--object-store"), "{error}");
    assert_eq!(read_all(&without, session(1), 0).await.unwrap().len(), 1);
    assert_eq!(fleet.count("SELECT count(*) FROM object_removal"), 0);
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn objects_end_with_the_last_session_that_uses_them() {
    let fleet = Fleet::start().await;
    let log = fleet.log("team").await;
    let shared = log.put_blob(noise(1, LARGE)).await.unwrap();
    let own = log.put_blob(noise(2, LARGE)).await.unwrap();
    keep(&log, 1, &shared).await;
    keep(&log, 2, &own).await;
    keep(&log, 3, &shared).await;
    fleet.server.execute("fleet", "UPDATE blob SET at = now() - interval '1 day'");
    log.delete(session(1)).await.unwrap();
    assert_eq!(fleet.moto.keys().await.len(), 2, "another session uses it");
    log.delete(session(2)).await.unwrap();
    let keys = fleet.moto.keys().await;
    assert!(keys.len() == 1 && keys[0].contains(shared.as_str()), "{keys:?}");

    // While the store is down, the session is deleted, and the object later.
    fleet.proxy.fail(StoreFault::Closed, usize::MAX);
    log.delete(session(3)).await.unwrap();
    assert_eq!(fleet.count("SELECT count(*) FROM object_removal"), 1);
    fleet.proxy.heal();
    keep(&log, 4, &own).await;
    log.delete(session(4)).await.unwrap();
    assert_eq!(fleet.moto.keys().await, Vec::<String>::new());
    assert_eq!(fleet.count("SELECT count(*) FROM object_removal"), 0);
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn a_store_that_fails_for_a_moment_is_asked_again() {
    let fleet = Fleet::start().await;
    let log = fleet.log("team").await;
    for fault in [StoreFault::Status500, StoreFault::Closed] {
        let bytes = noise(if fault == StoreFault::Closed { 7 } else { 8 }, LARGE);
        fleet.proxy.fail(fault, 2);
        let blob = log.put_blob(bytes.clone()).await.unwrap();
        fleet.proxy.fail(fault, 2);
        assert!(log.get_blob(&blob).await.unwrap() == bytes, "{fault:?}");
    }
    let blob = log.put_blob(noise(9, LARGE)).await.unwrap();
    fleet.proxy.fail(StoreFault::WrongByte, 1);
    assert!(log.get_blob(&blob).await.unwrap() == noise(9, LARGE));
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn a_store_that_is_down_fails_a_call_and_harms_no_log() {
    let fleet = Fleet::start().await;
    let log = fleet.log("team").await;
    let known = log.put_blob(noise(1, LARGE)).await.unwrap();
    let claim = log.claim(session(1)).await.unwrap();
    let mut head = 0;
    for fault in [StoreFault::Closed, StoreFault::Status500, StoreFault::Slow] {
        fleet.proxy.fail(fault, usize::MAX);
        let start = Instant::now();
        let put = log.put_blob(noise(2, LARGE)).await;
        assert!(matches!(put, Err(StorageError::ObjectStore { .. })), "{fault:?}: {put:?}");
        let got = log.get_blob(&known).await;
        let got = got.map(|bytes| bytes.len());
        assert!(matches!(got, Err(StorageError::ObjectStore { .. })), "{fault:?}: {got:?}");
        assert!(start.elapsed() < 8 * TIMEOUT, "{fault:?}: {:?}", start.elapsed());
        head = log.append(&claim, head, TIME, &[model_text("goes on")]).await.unwrap();
        assert_eq!(read_all(&log, session(1), 0).await.unwrap().len() as u64, head);
        fleet.proxy.heal();
        assert!(log.get_blob(&known).await.unwrap() == noise(1, LARGE), "{fault:?}");
    }
    // An attempt that failed left at most an object that is removed later.
    assert_eq!(fleet.count("SELECT count(*) FROM blob"), 1);
    fleet.server.execute("fleet", "UPDATE object_removal SET at = now() - interval '1 s'");
    log.put_blob(noise(2, LARGE)).await.unwrap();
    log.release(claim, windlass_storage::ReleaseState::Idle).await.unwrap();
    log.delete(session(1)).await.unwrap();
    assert_eq!(fleet.moto.keys().await.len(), 2);
    assert_eq!(fleet.count("SELECT count(*) FROM object_removal"), 0);
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn an_answer_that_is_cut_or_wrong_is_never_taken_for_the_output() {
    let fleet = Fleet::start().await;
    let log = fleet.log("team").await;
    let bytes = noise(1, LARGE);
    let blob = log.put_blob(bytes.clone()).await.unwrap();
    for at in (0..30).map(|step| step * 59).chain([10_000, 60_000]) {
        for times in [1, usize::MAX] {
            fleet.proxy.fail(StoreFault::Cut(at), times);
            match tokio::time::timeout(8 * TIMEOUT, log.get_blob(&blob)).await.unwrap() {
                Ok(read) => assert!(read == bytes, "cut at {at}"),
                Err(StorageError::ObjectStore { .. }) => {}
                Err(error) => panic!("cut at {at}: {error}"),
            }
        }
    }
    fleet.proxy.fail(StoreFault::WrongByte, usize::MAX);
    let wrong = log.get_blob(&blob).await;
    assert!(matches!(wrong, Err(StorageError::BlobLost { .. })), "{:?}", wrong.map(|b| b.len()));
    fleet.proxy.heal();

    // An object that is gone is stored again.
    fleet.server.execute("fleet", "UPDATE blob SET object = object || 'x'");
    let lost = log.get_blob(&blob).await;
    assert!(matches!(lost, Err(StorageError::BlobLost { .. })), "{:?}", lost.map(|b| b.len()));
    log.put_blob(bytes.clone()).await.unwrap();
    assert!(log.get_blob(&blob).await.unwrap() == bytes);
}

#[tokio::test]
#[ignore = "needs PostgreSQL and moto"]
async fn nodes_that_store_the_same_bytes_at_once_keep_one_object() {
    let fleet = Fleet::start().await;
    let logs: Vec<Arc<PostgresLog>> =
        [fleet.log("team").await, fleet.log("team").await].map(Arc::new).into();
    for round in 0..20 {
        let bytes = noise(100 + round, LARGE);
        let put = |log: &Arc<PostgresLog>| {
            let (log, bytes) = (Arc::clone(log), bytes.clone());
            tokio::spawn(async move { log.put_blob(bytes).await.unwrap() })
        };
        let stored: Vec<_> = logs.iter().map(put).collect();
        for stored in stored {
            let blob = stored.await.unwrap();
            assert!(logs[0].get_blob(&blob).await.unwrap() == bytes);
        }
    }
    let (blobs, removals) = (
        fleet.count("SELECT count(*) FROM blob"),
        fleet.count("SELECT count(*) FROM object_removal"),
    );
    assert_eq!((blobs, fleet.moto.keys().await.len()), (20, 20 + removals));
}
