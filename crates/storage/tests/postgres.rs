//! PostgreSQL: lost connections, fencing between nodes, leases, tenants, and a pooler in between.
//! These tests need the programs of PostgreSQL and are run with `--run-ignored`.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests inspect the store from outside and fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{
    Backend, PostgresBackend, any_folder, in_folder, model_text, prompt_submitted, registration,
    session,
};
use uuid::Uuid;
use windlass_protocol::{
    AccessRight, ClientInfo, ClientKind, Fact, FactOrigin, FactRecord, OpId, SessionId, UnixMillis,
};
use windlass_storage::postgres::{
    InboxOp, NewUserToken, NodeRegistration, PostgresDatabase, PostgresNode, SessionFolder,
    SweepReport, TeamChange, TenantId,
};
use windlass_storage::{Log, PostgresLog, ReleaseState, SessionClaim, StorageError, read_all};
use windlass_testkit::postgres_server::PostgresServer;
use windlass_testkit::tcp_proxy::{CutPoint, ProxyDirection, TcpProxy};

const TIME: UnixMillis = UnixMillis(1);

/// A server with an empty, migrated database, and a tenant.
struct Fleet {
    server: PostgresServer,
    database: PostgresDatabase,
    tenant: TenantId,
}

impl Fleet {
    async fn start(settings: &[&str]) -> Fleet {
        let server = PostgresServer::start(settings);
        server.create_database("fleet");
        let database = PostgresDatabase::new(&server.url("fleet"), 4).unwrap();
        database.migrate().await.unwrap();
        let tenant = database.tenant("team").await.unwrap();
        Fleet { server, database, tenant }
    }

    async fn join(&self) -> (PostgresNode, PostgresLog) {
        self.join_through(&self.database).await
    }

    async fn join_through(&self, database: &PostgresDatabase) -> (PostgresNode, PostgresLog) {
        let node = database.join(registration()).await.unwrap();
        let log = node.log(self.tenant);
        (node, log)
    }

    fn execute(&self, sql: &str) -> String {
        self.server.execute("fleet", sql)
    }

    fn expire(&self, node: &PostgresNode) {
        let id = node.id();
        self.execute(&format!("UPDATE node SET lease = now() - interval '3 s' WHERE id = '{id}'"));
    }

    /// Connects through a proxy, with one connection.
    async fn proxied(&self, parameters: &str) -> (TcpProxy, PostgresDatabase) {
        let proxy = TcpProxy::start(&self.server.socket()).await;
        let url = format!("postgres://windlass@{}/fleet{parameters}", proxy.address());
        (proxy, PostgresDatabase::new(&url, 1).unwrap())
    }
}

async fn texts(log: &dyn Log, number: u128) -> Vec<String> {
    let records = read_all(log, session(number), 0).await.unwrap();
    assert!(records.iter().map(|record| record.seq).eq(1..=records.len() as u64));
    let text = |record: FactRecord| match record.fact {
        Fact::ModelText { text, .. } | Fact::PromptSubmitted { text, .. } => text,
        other => panic!("{other:?}"),
    };
    records.into_iter().map(text).collect()
}

fn is_fenced<T>(result: &Result<T, StorageError>) -> bool {
    matches!(result, Err(StorageError::Fenced { .. }))
}

// --- Fencing and leases --------------------------------------------------------------------------

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_second_claimant_fences_the_first_once_its_lease_has_run_out() {
    let fleet = Fleet::start(&[]).await;
    let ((first, one), (second, two)) = (fleet.join().await, fleet.join().await);
    let old = one.claim(session(1)).await.unwrap();
    one.append(&old, 0, TIME, &[model_text("old")]).await.unwrap();
    let Err(StorageError::Busy { holder: Some(holder), .. }) = two.claim(session(1)).await else {
        panic!("the first node has the session")
    };
    assert_eq!((holder.node, holder.address.as_str()), (first.id(), "https://node.test"));
    first.renew_lease().await.unwrap();

    fleet.expire(&first);
    let new = two.claim(session(1)).await.unwrap();
    assert!(new.epoch > old.epoch);
    assert_eq!(new.head, 1);
    let late = one.append(&old, 1, TIME, &[model_text("late")]).await;
    assert!(is_fenced(&late), "{late:?}");
    two.append(&new, 1, TIME, &[model_text("new")]).await.unwrap();
    // The first writer does not get back in by releasing its claim.
    one.release(old, ReleaseState::Due).await.unwrap();
    two.append(&new, 2, TIME, &[model_text("newer")]).await.unwrap();
    assert_eq!(texts(&two, 1).await, ["old", "new", "newer"]);

    assert!(matches!(first.renew_lease().await, Err(StorageError::LeaseLost)));
    assert!(matches!(one.claim(session(2)).await, Err(StorageError::LeaseLost)));
    second.renew_lease().await.unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn sessions_of_a_dead_node_become_due_and_the_next_node_goes_on_with_them() {
    let fleet = Fleet::start(&[]).await;
    let ((dead, one), (living, two)) = (fleet.join().await, fleet.join().await);
    let old = one.claim(session(1)).await.unwrap();
    one.append(&old, 0, TIME, &[model_text("a")]).await.unwrap();
    assert_eq!(living.sweep().await.unwrap(), SweepReport::default());
    assert!(living.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty());
    fleet.expire(&dead);
    assert_eq!(living.sweep().await.unwrap(), SweepReport { due: 1, failed: 0 });
    let mut due = living.claim_due(&any_folder(fleet.tenant), 8).await.unwrap();
    assert_eq!(due.len(), 1);
    let due = due.remove(0);
    assert_eq!((due.tenant, due.claim.session, due.claim.head), (fleet.tenant, session(1), 1));
    assert!(is_fenced(&one.append(&old, 1, TIME, &[model_text("late")]).await));
    two.append(&due.claim, 1, TIME, &[model_text("b")]).await.unwrap();
    assert!(matches!(two.claim(session(1)).await, Err(StorageError::Busy { .. })));
    assert_eq!(texts(&two, 1).await, ["a", "b"]);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_session_that_ends_three_processes_has_failed_and_is_only_opened_on_request() {
    let fleet = Fleet::start(&[]).await;
    let (sweeper, log) = fleet.join().await;
    let mut claims = Vec::new();
    for attempt in 1..=3 {
        let (node, one) = fleet.join().await;
        match attempt {
            1 => {
                let claim = one.claim(session(1)).await.unwrap();
                // A fact that is no progress.
                one.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
                claims.push(claim);
            }
            _ => claims.extend(
                node.claim_due(&any_folder(fleet.tenant), 1)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(|due| due.claim),
            ),
        }
        assert_eq!(claims.len(), attempt);
        fleet.expire(&node);
        let report = sweeper.sweep().await.unwrap();
        let failed = u64::from(attempt == 3);
        assert_eq!(report, SweepReport { due: 1 - failed, failed });
    }
    assert!(sweeper.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty());
    // A user opens it.
    let claim = log.claim(session(1)).await.unwrap();
    let attempts = || fleet.execute("SELECT attempts FROM session");
    assert_eq!(attempts(), "4");
    log.append(&claim, 1, TIME, &[prompt_submitted("b")]).await.unwrap();
    assert_eq!(attempts(), "0", "progress");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_session_that_fails_is_due_later_if_there_was_work_and_idle_otherwise() {
    let fleet = Fleet::start(&[]).await;
    let (node, log) = fleet.join().await;
    let state = |number: u128| {
        let id = session(number);
        fleet.execute(&format!(
            "SELECT state, attempts, due > now() + interval '3 s' FROM session WHERE id = '{id}'"
        ))
    };
    // Without a fact, no turn is under way.
    let idle = log.claim(session(1)).await.unwrap();
    drop(idle);
    node.sweep().await.unwrap();
    assert_eq!(state(1), "0|0|");
    let at_work = log.claim(session(1)).await.unwrap();
    log.append(&at_work, 0, TIME, &[model_text("a")]).await.unwrap();
    drop(at_work);
    node.sweep().await.unwrap();
    assert_eq!(state(1), "1|1|t", "its turn has no end");
    let failed = log.claim(session(1)).await.unwrap();
    log.release(failed, ReleaseState::Failed).await.unwrap();
    assert_eq!(state(1), "1|2|t");
    let op = InboxOp { op: OpId(Uuid::from_u128(1)), body: "{}".into() };
    fleet.execute("UPDATE session SET state = 4, due = NULL, attempts = 3");
    log.enqueue(session(1), &op).await.unwrap();
    assert_eq!(state(1), "1|0|f", "a user asks for it");
    log.remove_queued(session(1), op.op).await.unwrap();
    fleet.execute("UPDATE session SET state = 0, due = NULL");

    let busy = log.claim(session(2)).await.unwrap();
    log.append(&busy, 0, TIME, &[model_text("a")]).await.unwrap();
    log.release(busy, ReleaseState::Due).await.unwrap();
    for attempt in 1..=3 {
        fleet.execute("UPDATE session SET due = now() WHERE due IS NOT NULL");
        let due = node.claim_due(&any_folder(fleet.tenant), 8).await.unwrap();
        assert_eq!(due.len(), 1, "attempt {attempt}");
        // Dropped without a release, as by an opening that fails.
        drop(due);
        node.sweep().await.unwrap();
        let expected = if attempt == 3 { "4|3|t".to_owned() } else { format!("1|{attempt}|t") };
        assert_eq!(state(2), expected);
        assert!(
            node.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty(),
            "not at once"
        );
    }
    // A user opens it, and it works again.
    let claim = log.claim(session(2)).await.unwrap();
    log.append(&claim, 1, TIME, &[model_text("b")]).await.unwrap();
    log.release(claim, ReleaseState::Idle).await.unwrap();
    assert_eq!(state(2), "0|0|");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn due_sessions_of_other_folders_are_not_claimed() {
    let fleet = Fleet::start(&[]).await;
    let (node, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    log.release(claim, ReleaseState::Due).await.unwrap();
    assert!(node.claim_due(&in_folder(fleet.tenant, "/elsewhere"), 8).await.unwrap().is_empty());
    assert!(node.claim_due(&[], 8).await.unwrap().is_empty());
    assert_eq!(node.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().len(), 1);
    // A checkout has a folder of its own, which begins like those of the others.
    let claim = log.claim(session(2)).await.unwrap();
    let opened = Fact::session_opened("/checkouts/api/1".to_owned(), "0");
    log.append(&claim, 0, TIME, &[opened]).await.unwrap();
    log.release(claim, ReleaseState::Due).await.unwrap();
    let checkouts = |prefix: &str| {
        let tenant = fleet.tenant;
        [("/w", false), ("/other/", true), (prefix, true)].map(|(folder, is_prefix)| {
            SessionFolder { tenant, folder: folder.to_owned(), is_prefix }
        })
    };
    assert!(node.claim_due(&checkouts("/checkouts/ap/"), 8).await.unwrap().is_empty());
    assert_eq!(node.claim_due(&checkouts("/checkouts/api/"), 8).await.unwrap().len(), 1);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn the_lease_of_an_ended_process_ends_at_once_on_its_host_only() {
    let fleet = Fleet::start(&[]).await;
    let (node, _log) = fleet.join().await;
    let join = async |host: &str, process_id| {
        let registration = NodeRegistration { host: host.into(), process_id, ..registration() };
        fleet.database.join(registration).await.unwrap()
    };
    let ended = join("host", 1).await;
    let living = join("host", 2).await;
    let elsewhere = join("other", 1).await;
    node.end_leases_of_ended_processes(|process| process != 1).await.unwrap();
    assert!(matches!(ended.renew_lease().await, Err(StorageError::LeaseLost)));
    living.renew_lease().await.unwrap();
    elsewhere.renew_lease().await.unwrap();
    node.renew_lease().await.unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn the_holder_of_a_session_is_named_to_other_nodes_of_its_tenant() {
    let fleet = Fleet::start(&[]).await;
    let ((first, one), (second, two)) = (fleet.join().await, fleet.join().await);
    assert!(two.holder(session(1)).await.unwrap().is_none());
    let claim = one.claim(session(1)).await.unwrap();
    one.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    let endpoint = two.holder(session(1)).await.unwrap().unwrap();
    assert_eq!((endpoint.holder.node, endpoint.token.as_str()), (first.id(), "token of a node"));
    assert!(one.holder(session(1)).await.unwrap().is_none(), "it is this node");
    let other = fleet.database.tenant("other").await.unwrap();
    let other = second.log(other);
    assert!(other.holder(session(1)).await.unwrap().is_none());

    // The node finds the operations of its own sessions.
    let op = InboxOp { op: OpId(Uuid::from_u128(1)), body: "{}".into() };
    two.enqueue(session(1), &op).await.unwrap();
    let waiting = first.sessions_with_queued_ops().await.unwrap();
    assert_eq!(waiting, [(fleet.tenant, session(1))]);
    assert!(second.sessions_with_queued_ops().await.unwrap().is_empty());
    one.remove_queued(session(1), op.op).await.unwrap();
    assert!(first.sessions_with_queued_ops().await.unwrap().is_empty());
    fleet.expire(&first);
    assert!(two.holder(session(1)).await.unwrap().is_none());
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn due_sessions_go_to_one_node_each_and_not_to_one_that_drains() {
    let fleet = Fleet::start(&[]).await;
    let (first, one) = fleet.join().await;
    for number in 1..=20 {
        let claim = one.claim(session(number)).await.unwrap();
        one.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
        one.release(claim, ReleaseState::Due).await.unwrap();
    }
    let idle = one.claim(session(21)).await.unwrap();
    one.release(idle, ReleaseState::Idle).await.unwrap();
    let waiting = one.claim(session(22)).await.unwrap();
    one.release(waiting, ReleaseState::Waiting).await.unwrap();
    let (second, _two) = fleet.join().await;
    let (third, _three) = fleet.join().await;
    third.drain().await.unwrap();
    assert!(third.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty());
    let mut sessions: Vec<SessionId> = Vec::new();
    let mut kept = Vec::new();
    loop {
        let folders = any_folder(fleet.tenant);
        let (a, b) = tokio::join!(first.claim_due(&folders, 3), second.claim_due(&folders, 3));
        let claimed: Vec<_> = a.unwrap().into_iter().chain(b.unwrap()).collect();
        if claimed.is_empty() {
            break;
        }
        sessions.extend(claimed.iter().map(|due| due.claim.session));
        kept.extend(claimed);
    }
    sessions.sort();
    assert_eq!(sessions, (1..=20).map(session).collect::<Vec<_>>());
    // A node that leaves makes its sessions due at once.
    drop(kept);
    first.leave().await.unwrap();
    second.leave().await.unwrap();
    let (fourth, _four) = fleet.join().await;
    assert_eq!(fourth.claim_due(&any_folder(fleet.tenant), 100).await.unwrap().len(), 20);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn an_operation_waits_for_the_next_claim_and_is_removed_by_its_fact() {
    let fleet = Fleet::start(&[]).await;
    let ((node, one), (other, two)) = (fleet.join().await, fleet.join().await);
    let claim = one.claim(session(1)).await.unwrap();
    one.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    let op = |number| InboxOp { op: OpId(Uuid::from_u128(number)), body: format!("{{{number}}}") };
    let absent = two.enqueue(session(9), &op(1)).await;
    assert!(matches!(absent, Err(StorageError::SessionNotFound { .. })), "{absent:?}");
    // The holder finds them; a second delivery changes nothing.
    for number in [3, 2, 3] {
        two.enqueue(session(1), &op(number)).await.unwrap();
    }
    assert_eq!(one.queued_ops(session(1)).await.unwrap(), [op(3), op(2)]);
    assert!(
        other.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty(),
        "the session is open"
    );
    let client = ClientInfo { name: "c".into(), kind: ClientKind::Terminal };
    let origin = FactOrigin { op: op(3).op, client };
    let record = FactRecord::new(session(1), 2, TIME, model_text("b"));
    let record = FactRecord { origin: Some(origin), ..record };
    one.append_records(&claim, 1, std::slice::from_ref(&record)).await.unwrap();
    assert_eq!(one.queued_ops(session(1)).await.unwrap(), [op(2)]);
    // A session that is released with operations is due.
    one.release(claim, ReleaseState::Idle).await.unwrap();
    let due = other.claim_due(&any_folder(fleet.tenant), 8).await.unwrap();
    assert_eq!(due.len(), 1);
    drop(due);
    other.sweep().await.unwrap();
    // It was dropped, so it is due later.
    assert!(node.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().is_empty());
    fleet.execute("UPDATE session SET due = now()");
    assert_eq!(node.claim_due(&any_folder(fleet.tenant), 8).await.unwrap().len(), 1);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_session_of_a_newer_format_is_left_to_newer_nodes() {
    let fleet = Fleet::start(&[]).await;
    let (_, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, TIME, &[prompt_submitted("a")]).await.unwrap();
    log.release(claim, ReleaseState::Due).await.unwrap();
    fleet.execute("UPDATE session SET fact_format = fact_format + 1");
    let refused = log.claim(session(1)).await.map(drop);
    assert!(matches!(refused, Err(StorageError::SessionTooNew { .. })), "{refused:?}");
    let (node, _) = fleet.join().await;
    let due = node.claim_due(&any_folder(fleet.tenant), 10).await.unwrap();
    assert!(due.is_empty(), "it is not claimed because it is due either");
    fleet.execute("UPDATE session SET fact_format = fact_format - 1");
    assert!(log.claim(session(1)).await.is_ok());
}

// --- Lost connections ----------------------------------------------------------------------------

/// Appends with a connection that is cut at bytes of the request and of the answer.
async fn append_with_cuts(fleet: &Fleet, parameters: &str, step: usize) {
    let (proxy, database) = fleet.proxied(parameters).await;
    let (_node, log) = fleet.join_through(&database).await;
    let claim = log.claim(session(1)).await.unwrap();
    let mut expected = Vec::new();
    let mut append = async |text: String| {
        let fact = if expected.len() % 2 == 0 {
            model_text(text.clone())
        } else {
            prompt_submitted(&text)
        };
        let head = log.append(&claim, expected.len() as u64, TIME, &[fact]).await.unwrap();
        expected.push(text);
        assert_eq!(head, expected.len() as u64);
    };
    for number in 0..4 {
        append(format!("first {number}")).await;
    }
    let bytes = |direction| proxy.passed_bytes(direction);
    let before = [ProxyDirection::Request, ProxyDirection::Answer].map(bytes);
    append("measured 1".into()).await;
    append("measured 2".into()).await;
    let after = [ProxyDirection::Request, ProxyDirection::Answer].map(bytes);
    let mut cuts = 0;
    for (index, direction) in [ProxyDirection::Request, ProxyDirection::Answer].iter().enumerate() {
        let length = (after[index] - before[index]) / 2;
        assert!(length > 20, "{direction:?} {length}");
        let step = if *direction == ProxyDirection::Answer { 1.max(step / 8) } else { step };
        for bytes in (0..=length).step_by(step).chain([length]) {
            // The connection is new after a cut; this prepares the statement on it.
            append(format!("{direction:?} {bytes} before")).await;
            append(format!("{direction:?} {bytes} before")).await;
            proxy.cut_at(CutPoint { direction: *direction, bytes });
            append(format!("{direction:?} {bytes} cut")).await;
            cuts += u64::from(!proxy.take_cut());
        }
    }
    assert!(cuts > 30, "{cuts} cuts");
    assert_eq!(proxy.cuts(), cuts);
    let (_node, reader) = fleet.join().await;
    assert_eq!(texts(&reader, 1).await, expected);
}

/// Returns the distance between two cuts: every byte in the soak.
fn cut_step(step: usize) -> usize {
    if std::env::var_os("WINDLASS_SOAK").is_some() { 1 } else { step }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn an_append_whose_connection_is_cut_at_any_byte_is_written_once() {
    let fleet = Fleet::start(&[]).await;
    append_with_cuts(&fleet, "?sslmode=disable", cut_step(13)).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn an_append_whose_transaction_is_cut_at_its_commit_is_written_once() {
    // With `pgbouncer=true` the append is a transaction with a `COMMIT` of its own.
    let fleet = Fleet::start(&[]).await;
    append_with_cuts(&fleet, "?sslmode=disable&pgbouncer=true", cut_step(29)).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn an_append_whose_answer_was_lost_is_fenced_if_another_node_has_claimed_meanwhile() {
    let fleet = Fleet::start(&[]).await;
    let (proxy, database) = fleet.proxied("?sslmode=disable").await;
    let (first, one) = fleet.join_through(&database).await;
    let (_second, two) = fleet.join().await;
    for (number, bytes) in [(1, 0), (2, 1_000_000)] {
        let claim = one.claim(session(number)).await.unwrap();
        one.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
        // The request of the second append is lost, or its answer is.
        let direction = if bytes == 0 { ProxyDirection::Request } else { ProxyDirection::Answer };
        proxy.cut_at(CutPoint { direction, bytes: 0 });
        proxy.refuse_connections(true);
        let fact = [prompt_submitted("b")];
        let append = one.append(&claim, 1, TIME, &fact);
        let takeover = async {
            while proxy.cuts() < number as u64 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            fleet.expire(&first);
            let claim = two.claim(session(number)).await.unwrap();
            let head = claim.head;
            two.append(&claim, head, TIME, &[model_text("c")]).await.unwrap();
            proxy.refuse_connections(false);
            head
        };
        let (appended, head) = tokio::join!(append, takeover);
        assert!(is_fenced(&appended), "{appended:?}");
        let written = texts(&two, number).await;
        match head {
            1 => assert_eq!(written, ["a", "c"]),
            _ => assert_eq!(written, ["a", "b", "c"]),
        }
        let id = first.id();
        fleet.execute(&format!("UPDATE node SET lease = now() + interval '1 h' WHERE id = '{id}'"));
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_claim_whose_answer_was_lost_is_claimed_again() {
    let fleet = Fleet::start(&[]).await;
    let (proxy, database) = fleet.proxied("?sslmode=disable").await;
    let (node, one) = fleet.join_through(&database).await;
    let mut epoch = 0;
    for bytes in 0..40 {
        proxy.cut_at(CutPoint { direction: ProxyDirection::Answer, bytes: bytes * 9 });
        let claim = one.claim(session(1)).await.unwrap();
        assert!(claim.epoch > epoch);
        let (head, claimed_epoch) = (claim.head, claim.epoch);
        assert_eq!(one.append(&claim, head, TIME, &[model_text("a")]).await.unwrap(), head + 1);
        proxy.cut_at(CutPoint { direction: ProxyDirection::Answer, bytes: bytes * 9 });
        one.release(claim, ReleaseState::Due).await.unwrap();
        proxy.cut_at(CutPoint { direction: ProxyDirection::Answer, bytes: bytes * 9 });
        let due = node.claim_due(&any_folder(fleet.tenant), 3).await.unwrap();
        assert_eq!(due.len(), 1, "{bytes}");
        assert!(due[0].claim.epoch > claimed_epoch);
        epoch = due[0].claim.epoch;
        proxy.take_cut();
    }
    assert!(proxy.cuts() > 60, "{}", proxy.cuts());
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_claim_that_is_canceled_is_released_with_the_lease() {
    let fleet = Fleet::start(&[]).await;
    let ((node, one), (_other, two)) = (fleet.join().await, fleet.join().await);
    for number in 1..=40 {
        let claim = one.claim(session(number));
        let pause = Duration::from_micros(50 * number as u64);
        let _ = tokio::time::timeout(pause, claim).await;
    }
    // A statement that was under way ends on the server, perhaps after the first renewal.
    let start = Instant::now();
    for number in 1..=40 {
        while let Err(error) = two.claim(session(number)).await {
            assert!(matches!(error, StorageError::Busy { .. }), "{error}");
            assert!(start.elapsed() < Duration::from_secs(10), "session {number}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            node.sweep().await.unwrap();
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn statements_wait_for_a_server_that_restarts() {
    let mut fleet = Fleet::start(&["fsync=on"]).await;
    let (_node, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, TIME, &[prompt_submitted("a")]).await.unwrap();
    fleet.server.crash();
    let restarted = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        fleet.server.start_again();
    };
    let fact = [model_text("b")];
    let (appended, ()) = tokio::join!(log.append(&claim, 1, TIME, &fact), restarted);
    assert_eq!(appended.unwrap(), 2);
    assert_eq!(texts(&log, 1).await, ["a", "b"]);
    fleet.server.stop();
    let start = Instant::now();
    let refused = log.append(&claim, 2, TIME, &[model_text("c")]).await;
    assert!(matches!(refused, Err(StorageError::Unavailable { .. })), "{refused:?}");
    assert!(start.elapsed() > Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_crash_of_the_server_loses_only_facts_that_need_no_disk_sync_and_fences_their_writer() {
    // Without the WAL writer, a commit is flushed by its own session or not at all.
    let mut fleet = Fleet::start(&["fsync=on", "wal_writer_delay=10s"]).await;
    let (_node, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, TIME, &[model_text("a"), model_text("b")]).await.unwrap();
    // This flushes what was appended before it.
    log.append(&claim, 2, TIME, &[prompt_submitted("c")]).await.unwrap();
    log.append(&claim, 3, TIME, &[model_text("d")]).await.unwrap();
    fleet.server.crash();
    fleet.server.start_again();
    assert_eq!(texts(&log, 1).await, ["a", "b", "c"], "d was not flushed");
    let late = log.append(&claim, 4, TIME, &[model_text("e")]).await;
    let is_ahead = matches!(late, Err(StorageError::FactsGone { head: 3, expected: 4, .. }));
    assert!(is_ahead, "the writer is ahead of the log: {late:?}");
    drop(claim);
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 3, TIME, &[model_text("f")]).await.unwrap();
    assert_eq!(texts(&log, 1).await, ["a", "b", "c", "f"]);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_full_disk_fails_the_append_and_the_session_goes_on_once_there_is_space() {
    let fleet = Fleet::start(&[]).await;
    let (_node, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    // The error of a server whose disk is full.
    fleet.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
           $$BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = '53100'; END$$",
    );
    fleet
        .execute("CREATE TRIGGER fail BEFORE INSERT ON event FOR EACH ROW EXECUTE FUNCTION fail()");
    let start = Instant::now();
    let error = log.append(&claim, 1, TIME, &[prompt_submitted("b")]).await.unwrap_err();
    assert!(error.is_disk_full(), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(20), "it is not tried again");
    assert_eq!(texts(&log, 1).await, ["a"]);
    fleet.execute("DROP TRIGGER fail ON event");
    log.append(&claim, 1, TIME, &[prompt_submitted("c")]).await.unwrap();
    assert_eq!(texts(&log, 1).await, ["a", "c"]);
}

// --- Random interleavings ------------------------------------------------------------------------

/// A claim as the model knows it.
struct ModelClaim {
    node: usize,
    session: usize,
    claim: SessionClaim,
    head: u64,
}

/// A session as the model knows it.
#[derive(Default)]
struct ModelSession {
    /// The node and the epoch that may write.
    writer: Option<(usize, u64)>,
    texts: Vec<String>,
}

/// A sequence of numbers that depends on its seed only.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn random_claims_appends_releases_and_expired_leases_agree_with_a_model() {
    const SESSIONS: usize = 3;
    let seed = std::env::var("WINDLASS_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("WINDLASS_SEED={seed}");
    let fleet = Fleet::start(&[]).await;
    let mut numbers = Numbers(seed);
    let mut nodes = vec![fleet.join().await, fleet.join().await, fleet.join().await];
    let mut is_alive = vec![true; 3];
    let mut sessions: Vec<ModelSession> = (0..SESSIONS).map(|_| ModelSession::default()).collect();
    let mut claims: Vec<ModelClaim> = Vec::new();
    let (mut written, mut fenced, mut busy) = (0, 0, 0);
    for step in 0..1_000 {
        let alive: Vec<usize> = (0..nodes.len()).filter(|node| is_alive[*node]).collect();
        let node = match numbers.below(4) {
            0 => numbers.below(nodes.len()),
            _ => alive[numbers.below(alive.len())],
        };
        let number = numbers.below(SESSIONS);
        // Nodes that have left the fleet keep their index and their claims.
        match numbers.below(20) {
            0..=4 => {
                let result = nodes[node].1.claim(session(number as u128 + 1)).await;
                let own = claims.iter().any(|it| it.node == node && it.session == number);
                let writer = sessions[number].writer;
                let held = writer.is_some_and(|(writer, _)| writer != node && is_alive[writer]);
                match result {
                    Ok(claim) => {
                        assert!(!own && !held && is_alive[node], "step {step}");
                        assert_eq!(claim.head, sessions[number].texts.len() as u64, "step {step}");
                        sessions[number].writer = Some((node, claim.epoch));
                        claims.push(ModelClaim { node, session: number, head: claim.head, claim });
                    }
                    Err(StorageError::Busy { .. }) => {
                        assert!(own || held, "step {step}");
                        busy += 1;
                    }
                    Err(StorageError::LeaseLost) => assert!(!is_alive[node], "step {step}"),
                    Err(error) => panic!("step {step}: {error}"),
                }
            }
            5..=11 if !claims.is_empty() => {
                let index = numbers.below(claims.len());
                let it = &mut claims[index];
                let text = format!("step {step}");
                let fact = [model_text(&text)];
                let result = nodes[it.node].1.append(&it.claim, it.head, TIME, &fact).await;
                let model = &mut sessions[it.session];
                if model.writer == Some((it.node, it.claim.epoch)) {
                    it.head = result.unwrap_or_else(|error| panic!("step {step}: {error}"));
                    model.texts.push(text);
                    written += 1;
                } else {
                    assert!(is_fenced(&result), "step {step}: {result:?}");
                    fenced += 1;
                }
            }
            12..=13 if !claims.is_empty() => {
                let it = claims.swap_remove(numbers.below(claims.len()));
                let model = &mut sessions[it.session];
                if model.writer == Some((it.node, it.claim.epoch)) {
                    model.writer = None;
                }
                let state = [ReleaseState::Idle, ReleaseState::Due][numbers.below(2)];
                nodes[it.node].1.release(it.claim, state).await.unwrap();
            }
            14..=15 => {
                fleet.expire(&nodes[node].0);
                is_alive[node] = false;
                if is_alive.iter().filter(|alive| **alive).count() < 2 {
                    nodes.push(fleet.join().await);
                    is_alive.push(true);
                }
            }
            16 => {
                nodes[node].0.sweep().await.unwrap();
                for model in &mut sessions {
                    model.writer = model.writer.filter(|(writer, _)| is_alive[*writer]);
                }
            }
            17..=19 => {
                for due in nodes[node].0.claim_due(&any_folder(fleet.tenant), 2).await.unwrap() {
                    assert!(is_alive[node], "step {step}");
                    let number = due.claim.session.0.as_u128() as usize - 1;
                    assert_eq!(sessions[number].writer, None, "step {step}");
                    let (head, claim) = (due.claim.head, due.claim);
                    assert_eq!(head, sessions[number].texts.len() as u64, "step {step}");
                    sessions[number].writer = Some((node, claim.epoch));
                    claims.push(ModelClaim { node, session: number, head, claim });
                }
            }
            _ => {}
        }
    }
    println!("{written} appends written, {fenced} fenced, {busy} claims busy");
    assert!(written > 50 && fenced > 0 && busy > 0, "{written} {fenced} {busy}");
    for (number, model) in sessions.iter().enumerate() {
        assert_eq!(texts(&fleet.join().await.1, number as u128 + 1).await, model.texts);
    }
}

// --- Tenants, schema and order -------------------------------------------------------------------

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn two_tenants_with_equal_ids_see_nothing_of_each_other() {
    let fleet = Fleet::start(&[]).await;
    let (node, one) = fleet.join().await;
    let other = fleet.database.tenant("other").await.unwrap();
    assert_ne!(other, fleet.tenant);
    assert_eq!(fleet.database.tenant("team").await.unwrap(), fleet.tenant);
    let two = node.log(other);
    let claim = one.claim(session(1)).await.unwrap();
    let large = model_text("x".repeat(100_000));
    one.append(&claim, 0, TIME, &[prompt_submitted("secret"), large]).await.unwrap();
    let blob = one.put_blob(b"secret".to_vec()).await.unwrap();
    let op = InboxOp { op: OpId(Uuid::from_u128(1)), body: "secret".into() };
    one.enqueue(session(1), &op).await.unwrap();

    assert!(two.list(&Default::default()).await.unwrap().is_empty());
    assert!(two.read(session(1), 0).await.unwrap().is_empty());
    assert!(two.read_turn_facts(session(1), 9).await.unwrap().is_empty());
    assert!(two.search(session(1), &["secret".into()], 9).await.unwrap().is_empty());
    assert!(matches!(two.get_blob(&blob).await, Err(StorageError::BlobLost { .. })));
    assert_eq!(two.find_blob(&blob.as_str()[..8]).await.unwrap(), None);
    assert!(two.queued_ops(session(1)).await.unwrap().is_empty());
    let queued = two.enqueue(session(1), &op).await;
    assert!(matches!(queued, Err(StorageError::SessionNotFound { .. })));
    let deleted = two.delete(session(1)).await;
    assert!(matches!(deleted, Err(StorageError::SessionNotFound { .. })));
    assert!(is_fenced(&two.append(&claim, 2, TIME, &[model_text("x")]).await));
    // The same session, operation and blob of the other tenant.
    let own = two.claim(session(1)).await.unwrap();
    assert_eq!(own.head, 0);
    two.append(&own, 0, TIME, &[model_text("other")]).await.unwrap();
    two.enqueue(session(1), &op).await.unwrap();
    two.put_blob(b"secret".to_vec()).await.unwrap();
    drop(own);
    two.delete(session(1)).await.unwrap();
    assert_eq!(one.read(session(1), 0).await.unwrap().len(), 2);
    assert_eq!(one.queued_ops(session(1)).await.unwrap(), [op]);
    assert_eq!(one.get_blob(&blob).await.unwrap(), b"secret");
    one.append(&claim, 2, TIME, &[model_text("x")]).await.unwrap();
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn sessions_used_in_the_same_millisecond_are_listed_in_their_order() {
    let fleet = Fleet::start(&[]).await;
    let (_node, log) = fleet.join().await;
    let mut used = Vec::new();
    for number in 1..=60 {
        let claim = log.claim(session(number)).await.unwrap();
        log.append(&claim, 0, TIME, &[prompt_submitted("p")]).await.unwrap();
        used.insert(0, session(number));
    }
    let list = log.list(&Default::default()).await.unwrap();
    assert!(list.iter().map(|row| row.session).eq(used));
    let sub_millisecond = fleet.execute("SELECT count(DISTINCT used % 1000) FROM session");
    assert!(sub_millisecond.parse::<u32>().unwrap() > 20, "{sub_millisecond}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_schema_is_created_once_and_unknown_ones_are_refused() {
    let server = PostgresServer::start(&[]);
    server.create_database("fleet");
    let database = || PostgresDatabase::new(&server.url("fleet"), 2).unwrap();
    let refused = database().join(registration()).await.err().unwrap();
    assert!(matches!(refused, StorageError::NotMigrated { found: 0, .. }), "{refused}");
    let databases = [database(), database(), database(), database()];
    let [a, b, c, d] = &databases;
    let (a, b, c, d) = tokio::join!(a.migrate(), b.migrate(), c.migrate(), d.migrate());
    for migrated in [a, b, c, d] {
        migrated.unwrap();
    }
    assert_eq!(server.execute("fleet", "SELECT count(*) FROM schema_version"), "1");
    databases[0].join(registration()).await.unwrap();
    // A newer version that this one can work with, and one that it cannot.
    server.execute("fleet", "UPDATE schema_version SET version = 99");
    databases[0].join(registration()).await.unwrap();
    databases[0].migrate().await.unwrap();
    server.execute("fleet", "UPDATE schema_version SET compatible_with = 99");
    for refused in
        [databases[0].migrate().await.err(), databases[0].join(registration()).await.err()]
    {
        assert!(matches!(refused, Some(StorageError::TooNew { found: 99, .. })), "{refused:?}");
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn events_are_in_the_partition_of_the_month_in_which_their_session_began() {
    let fleet = Fleet::start(&[]).await;
    let (_node, log) = fleet.join().await;
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass";
    assert_eq!(fleet.execute(partitions), "4");
    fleet.database.create_partitions().await.unwrap();
    let now = SessionId(Uuid::now_v7());
    for session in [now, session(1)] {
        let claim = log.claim(session).await.unwrap();
        log.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    }
    let month = fleet.execute("SELECT to_char(now() AT TIME ZONE 'UTC', '\"event_\"YYYY_MM')");
    let used = fleet.execute("SELECT DISTINCT tableoid::regclass FROM event ORDER BY 1");
    let used: BTreeSet<&str> = used.lines().collect();
    assert_eq!(used, BTreeSet::from([month.as_str(), "event_rest"]));
    // A month whose events are in the default partition already stays there.
    fleet.execute(&format!("DROP TABLE {month}"));
    let claim = log.claim(SessionId(Uuid::now_v7())).await.unwrap();
    log.append(&claim, 0, TIME, &[model_text("a")]).await.unwrap();
    fleet.database.create_partitions().await.unwrap();
    assert_eq!(fleet.execute(partitions), "3");
    assert_eq!(log.read(claim.session, 0).await.unwrap().len(), 1);
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_token_counts_while_it_its_user_and_its_tenant_are_valid_with_the_lesser_right() {
    let fleet = Fleet::start(&[]).await;
    let database = &fleet.database;
    let valid = async || {
        let tokens = database.valid_tokens().await.unwrap();
        let mut rights: Vec<_> =
            tokens.iter().map(|token| (token.name.clone(), token.right)).collect();
        rights.sort();
        rights
    };
    let token = |name: &'static str, right: AccessRight, digest: u8, days: Option<u32>| {
        NewUserToken { tenant: "team", user: "anna", name, digest: [digest; 32], right, days }
    };
    let first = token("a", AccessRight::Admin, 1, None);
    assert_eq!(database.add_user_token(&first).await.unwrap(), TeamChange::NotFound);
    let set = database.set_user("none", "anna", AccessRight::Read).await.unwrap();
    assert_eq!(set, TeamChange::NotFound);
    let set = database.set_user("team", "anna", AccessRight::Write).await.unwrap();
    assert_eq!(set, TeamChange::Done);
    // A repeated statement whose answer was lost finds its own token.
    for _ in 0..2 {
        assert_eq!(database.add_user_token(&first).await.unwrap(), TeamChange::Done);
    }
    let other = token("a", AccessRight::Read, 2, None);
    assert_eq!(database.add_user_token(&other).await.unwrap(), TeamChange::Exists);
    let read = token("b", AccessRight::Read, 3, Some(1));
    assert_eq!(database.add_user_token(&read).await.unwrap(), TeamChange::Done);
    let (a, b) = (|right| ("a".to_owned(), right), ("b".to_owned(), AccessRight::Read));
    assert_eq!(valid().await, [a(AccessRight::Write), b.clone()]);
    database.set_user("team", "anna", AccessRight::Read).await.unwrap();
    assert_eq!(valid().await, [a(AccessRight::Read), b.clone()]);
    fleet.execute("UPDATE access_token SET expires_at = now() - interval '1 s' WHERE name = 'b'");
    assert_eq!(valid().await, [a(AccessRight::Read)]);
    database.set_user_disabled("team", "anna", true).await.unwrap();
    assert!(valid().await.is_empty());
    database.set_user_disabled("team", "anna", false).await.unwrap();
    assert_eq!(valid().await.len(), 1);
    database.set_tenant_disabled("team", true).await.unwrap();
    assert!(valid().await.is_empty());
    database.set_tenant_disabled("team", false).await.unwrap();
    assert_eq!(valid().await.len(), 1);
    // A right of a later version is no right, and does not concern other tokens.
    let third = token("c", AccessRight::Read, 4, None);
    database.add_user_token(&third).await.unwrap();
    fleet.execute("UPDATE access_token SET access_right = 'everything' WHERE name = 'a'");
    assert_eq!(valid().await, [("c".to_owned(), AccessRight::Read)]);
    database.revoke_user_token("team", "anna", "c").await.unwrap();
    let revoked = database.revoke_user_token("team", "anna", "a").await.unwrap();
    assert_eq!(revoked, TeamChange::Done);
    assert!(valid().await.is_empty());
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn most_appends_leave_the_indexes_of_the_session_alone() {
    let fleet = Fleet::start(&[]).await;
    let (_node, log) = fleet.join().await;
    let claim = log.claim(session(1)).await.unwrap();
    for head in 0..300 {
        log.append(&claim, head, TIME, &[model_text("a")]).await.unwrap();
    }
    fleet.database.close().await;
    let rows = "SELECT n_tup_hot_upd * 100 / n_tup_upd FROM pg_stat_user_tables
                WHERE relname = 'session'";
    let start = Instant::now();
    let mut percent = 0;
    while percent < 80 && start.elapsed() < Duration::from_secs(20) {
        percent = fleet.execute(rows).parse().unwrap_or(0);
    }
    assert!(percent >= 80, "{percent} %");
}

// --- A pooler in between ---------------------------------------------------------------------------

/// A PgBouncer in transaction mode with fewer connections than its clients have.
struct PgBouncer {
    process: Child,
    url: String,
}

impl PgBouncer {
    fn start(server: &PostgresServer) -> PgBouncer {
        let folder = server.socket_folder();
        let config = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\nfleet = host={0} port=5432 dbname=fleet user=windlass\n[pgbouncer]\n\
             unix_socket_dir = {0}\nlisten_port = 6432\nlisten_addr =\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 2\n\
             ignore_startup_parameters = extra_float_digits\n",
            folder.display()
        );
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new("/usr/sbin/pgbouncer");
        server.run_as_user(&mut command);
        command.arg("-q").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("PgBouncer is needed: apt-get install pgbouncer");
        let socket = folder.join(".s.PGSQL.6432");
        let start = Instant::now();
        while !socket.exists() {
            assert!(start.elapsed() < Duration::from_secs(30), "PgBouncer does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let folder = folder.display().to_string().replace('/', "%2F");
        let url = format!("postgres://windlass@{folder}:6432/fleet?pgbouncer=true");
        PgBouncer { process, url }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL and PgBouncer"]
async fn sessions_work_through_a_pooler_in_transaction_mode() {
    const WRITERS: u128 = 8;
    let fleet = Fleet::start(&[]).await;
    let bouncer = PgBouncer::start(&fleet.server);
    let database = PostgresDatabase::new(&bouncer.url, 6).unwrap();
    database.migrate().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 1..=WRITERS {
        let (node, log) = fleet.join_through(&database).await;
        tasks.spawn(async move {
            let claim = log.claim(session(number)).await.unwrap();
            for head in 0..40 {
                let text = format!("{number} {head}");
                let fact = if head % 3 == 0 { prompt_submitted(&text) } else { model_text(text) };
                log.append(&claim, head, TIME, &[fact]).await.unwrap();
                log.list(&Default::default()).await.unwrap();
                assert_eq!(log.read(session(number), head).await.unwrap().len(), 1);
                node.renew_lease().await.unwrap();
            }
            assert!(is_fenced(&log.append(&claim, 3, TIME, &[model_text("x")]).await));
            log.release(claim, ReleaseState::Due).await.unwrap();
            node.sweep().await.unwrap();
            let due = node.claim_due(&any_folder(fleet.tenant), 1).await.unwrap();
            drop(due);
            let blob = log.put_blob(vec![7; 100_000]).await.unwrap();
            assert_eq!(log.get_blob(&blob).await.unwrap(), vec![7; 100_000]);
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let (_node, log) = fleet.join().await;
    for number in 1..=WRITERS {
        let expected: Vec<String> = (0..40).map(|head| format!("{number} {head}")).collect();
        assert_eq!(texts(&log, number).await, expected);
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL"]
async fn a_node_keeps_its_lease_while_all_other_connections_are_in_use() {
    let backend = PostgresBackend::start().await;
    let database = PostgresDatabase::new(&backend.server.url("fleet"), 1).unwrap();
    let lease = Duration::from_secs(30);
    let node = database.join(NodeRegistration { lease, ..registration() }).await.unwrap();
    let tenant = database.tenant("team").await.unwrap();
    let log = node.log(tenant);
    let claim = log.claim(session(1)).await.unwrap();
    // The append waits for the row of the session, with the only connection.
    let url = backend.server.url("fleet");
    let mut blocker = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT 1 FROM session FOR UPDATE").execute(&mut blocker).await.unwrap();
    let fact = [model_text("a")];
    let append = log.append(&claim, 0, TIME, &fact);
    let renewals = async {
        for _ in 0..5 {
            node.renew_lease().await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        sqlx::raw_sql("COMMIT").execute(&mut blocker).await.unwrap();
    };
    let (appended, ()) = tokio::join!(append, renewals);
    assert_eq!(appended.unwrap(), 1);
    assert_eq!(backend.count("SELECT count(*) FROM event").await, 1);
}
