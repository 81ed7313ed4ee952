//! Appends of a log in PostgreSQL, compared with `pgbench` that executes the same statement.
//!
//! ```sh
//! cargo nextest run --release --workspace --test postgres_speed --run-ignored all --no-capture
//! ```
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests start programs, print figures and fail by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{model_text, prompt_submitted, registration};
use uuid::Uuid;
use windlass_protocol::{SessionId, UnixMillis};
use windlass_storage::postgres::PostgresDatabase;
use windlass_storage::{Log, PostgresLog};
use windlass_testkit::postgres_server::PostgresServer;

const CLIENTS: usize = 8;
const ROUND: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;
/// The length of the text of a fact.
const TEXT_BYTES: usize = 1_500;
/// Least ratio of our appends to those of `pgbench`. It is 0.7 to 0.9 on two cores that the clients share
/// with the server.
const MIN_RATIO: f64 = 0.6;

/// Returns the appends a second of our log. Each client has a session of its own.
async fn append_rate(log: &Arc<PostgresLog>, round: usize, is_flushed: bool) -> f64 {
    let start = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let log = Arc::clone(log);
        clients.spawn(async move {
            let session = SessionId(Uuid::from_u128((1 + round * CLIENTS + client) as u128));
            let claim = log.claim(session).await.unwrap();
            let text = "x".repeat(TEXT_BYTES);
            let fact = match is_flushed {
                true => [prompt_submitted(&text)],
                false => [model_text(text)],
            };
            let mut head = 0;
            while start.elapsed() < ROUND {
                head = log.append(&claim, head, UnixMillis(1), &fact).await.unwrap();
            }
            head
        });
    }
    let counts: Vec<u64> = clients.join_all().await;
    counts.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64()
}

/// Returns the transactions a second of `pgbench` with the statement of an append.
fn pgbench_rate(server: &PostgresServer, round: usize, is_flushed: bool) -> f64 {
    let source = include_str!("../src/postgres/append.rs");
    let (_, statement) = source.split_once("const APPEND_QUERY: &str = \"").unwrap();
    let (statement, _) = statement.split_once("\";").unwrap();
    let session = "lpad((:client_id::int + :first::int)::text, 32, '0')::uuid";
    let check = "decode(repeat('00', 32), 'hex')";
    let arrays = |value: &str, kind: &str| format!("ARRAY[{value}]::{kind}[]");
    let values = [
        ":tenant::uuid".to_owned(),
        session.to_owned(),
        "1".to_owned(),
        ":node::uuid".to_owned(),
        ":head::bigint".to_owned(),
        if is_flushed { "'on'" } else { "'off'" }.to_owned(),
        arrays("'prompt_submitted'", "text"),
        arrays("1", "bigint"),
        arrays(":body::text", "text"),
        arrays("NULL", "text"),
        arrays("NULL", "text"),
        arrays(check, "bytea"),
        check.to_owned(),
        if is_flushed { "true" } else { "false" }.to_owned(),
        "1".to_owned(),
        "''".to_owned(),
        "''".to_owned(),
        "1".to_owned(),
        "NULL".to_owned(),
        "0".to_owned(),
        "NULL::uuid".to_owned(),
        "NULL::uuid".to_owned(),
        "ARRAY[]::text[]".to_owned(),
        "ARRAY[]::uuid[]".to_owned(),
        "true".to_owned(),
    ];
    let mut script = statement.replace("\\\"", "\"");
    for (number, value) in (1..).zip(&values).collect::<Vec<_>>().into_iter().rev() {
        script = script.replace(&format!("${number}"), value);
    }
    let script = format!("{};\n\\set head :head + 1\n", script.replace('\n', " "));
    let file = server.folder().join("append.sql");
    std::fs::write(&file, script).unwrap();
    let first = 1_000 + round * CLIENTS;
    let sessions = format!(
        "INSERT INTO session (tenant, id, node, epoch, state)
         SELECT (SELECT id FROM tenant), lpad(number::text, 32, '0')::uuid,
           (SELECT id FROM node), 1, 2
         FROM generate_series({first}, {}) AS number",
        first + CLIENTS - 1
    );
    server.execute("fleet", &sessions);
    let (tenant, node) = ("SELECT id FROM tenant", "SELECT id FROM node");
    let define = |name: &str, value: &str| format!("{name}={value}");
    let mut command = server.command("pgbench");
    command.args(["-n", "-U", "windlass", "-M", "prepared", "-f"]).arg(&file);
    command.args(["-c", &CLIENTS.to_string(), "-j", "2", "-T", &ROUND.as_secs().to_string()]);
    // A variable is an argument, which is sent with each execution.
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(TEXT_BYTES));
    command.args(["-D", &define("body", &body)]);
    command.args(["-D", "head=0", "-D", &define("first", &first.to_string())]);
    command.args(["-D", &define("tenant", &server.execute("fleet", tenant))]);
    command.args(["-D", &define("node", &server.execute("fleet", node))]);
    command.arg("-h").arg(server.socket_folder()).arg("fleet");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let (_, rate) = text.split_once("tps = ").unwrap_or_else(|| panic!("{text}"));
    let written = format!(
        "SELECT count(*) FROM session WHERE epoch = 1 AND head > 0 AND id IN (
           SELECT lpad(number::text, 32, '0')::uuid
           FROM generate_series({first}, {}) AS number)",
        first + CLIENTS - 1
    );
    assert_eq!(server.execute("fleet", &written), CLIENTS.to_string(), "no append was refused");
    rate.split(' ').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL, and measures time"]
async fn speed_of_appends_is_close_to_that_of_the_bare_statement() {
    let server = PostgresServer::start(&[]);
    server.create_database("fleet");
    let database = PostgresDatabase::new(&server.url("fleet"), CLIENTS).unwrap();
    database.migrate().await.unwrap();
    let tenant = database.tenant("team").await.unwrap();
    let node = database.join(registration()).await.unwrap();
    // The planner chooses other plans for an empty database than for one that is in use.
    server.execute(
        "fleet",
        "INSERT INTO session (tenant, id, node, epoch, state)
         SELECT (SELECT id FROM tenant), gen_random_uuid(),
           CASE WHEN number % 5 = 0 THEN (SELECT id FROM node) END, 1, number % 5
         FROM generate_series(1, 5000) AS number",
    );
    server.execute("fleet", "ANALYZE");
    let log = Arc::new(node.log(tenant));
    for (number, is_flushed) in [true, false].into_iter().enumerate() {
        let (mut ours, mut bare) = (0.0, 0.0);
        for round in number * ROUNDS..(number + 1) * ROUNDS {
            ours += append_rate(&log, round, is_flushed).await / ROUNDS as f64;
            bare += pgbench_rate(&server, round, is_flushed) / ROUNDS as f64;
        }
        let ratio = ours / bare;
        println!("figure: flushed: {is_flushed}: {ours:.0} appends/s, {bare:.0} bare, {ratio:.2}");
        if !cfg!(debug_assertions) {
            assert!(ratio >= MIN_RATIO, "{ratio}");
        }
    }
}
