//! Pages that are limited in bytes, positions that survive the loss of the end of a log, and lists of
//! sessions in pages.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test prepares files, and fails by panicking"
)]

use sqlx::Connection;
use uuid::Uuid;
use windlass_protocol::{
    ClientInfo, ClientKind, Fact, FactOrigin, FactRecord, LogPosition, OpId, PromptId, SessionId,
    UnixMillis,
};
use windlass_storage::{Log, MAX_PAGE_FACTS, PageLimit, SessionFilter, SqliteLog, read_all};

fn session(number: u128) -> SessionId {
    SessionId(Uuid::from_u128(number))
}

fn text(text: String) -> Fact {
    Fact::ModelText { text, provider_signature: None }
}

#[tokio::test]
async fn a_page_has_at_most_the_bytes_of_its_limit_and_at_least_one_fact() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let claim = log.claim(session(1)).await.unwrap();
    // Small facts, large ones in rows, and ones in blobs.
    let sizes = [10, 500, 40_000, 60_000, 100_000, 20, 300_000, 300_000, 30, 40];
    let facts: Vec<Fact> = sizes.iter().map(|size| text("x".repeat(*size))).collect();
    log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
    let all = read_all(&log, session(1), 0).await.unwrap();
    for bytes in [0, 100, 70_000, 150_000, 1_000_000] {
        let (mut after, mut seen) = (0, Vec::new());
        while let Some(last) = {
            let limit = PageLimit { facts: MAX_PAGE_FACTS, bytes };
            let page = log.read_page(session(1), after, limit).await.unwrap();
            let size: usize =
                page.iter().map(|it| serde_json::to_string(&it.fact).unwrap().len()).sum();
            assert!(page.len() == 1 || size <= bytes, "{size} bytes for a limit of {bytes}");
            seen.extend(page);
            seen.last().filter(|last| last.seq > after).map(|last| last.seq)
        } {
            after = last;
        }
        assert_eq!(seen, all, "{bytes}");
    }
}

#[tokio::test]
async fn a_position_in_a_lost_end_leads_back_to_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let mut head = 0;
    for _ in 0..3 {
        let claim = log.claim(session(1)).await.unwrap();
        let facts = [text("a".into()), text("b".into())];
        head = log.append(&claim, head, UnixMillis(1), &facts).await.unwrap();
    }
    let all = read_all(&log, session(1), 0).await.unwrap();
    let epochs: Vec<u64> = all.iter().map(|record| record.epoch).collect();
    assert!(epochs[1] < epochs[2] && epochs[3] < epochs[4] && epochs[4] == epochs[5], "{epochs:?}");
    for record in &all {
        let position = LogPosition::of(record);
        assert_eq!(log.resume_position(session(1), position).await.unwrap(), position);
    }
    let at = |seq, epoch| LogPosition { seq, epoch: Some(epoch) };
    let resumed = async |position| log.resume_position(session(1), position).await.unwrap();
    assert_eq!(resumed(LogPosition::unchecked(99)).await, at(6, epochs[5]));
    // The reader saw facts 5 to 8 of the second writer; the third one wrote others.
    assert_eq!(resumed(at(8, epochs[3])).await, at(4, epochs[3]));
    assert_eq!(resumed(at(6, epochs[3])).await, at(4, epochs[3]));
    // The clock was set back: the epochs do not say where the histories part.
    assert_eq!(resumed(at(6, epochs[5] + 9)).await, LogPosition::START);
    assert_eq!(log.resume_position(session(2), at(3, 1)).await.unwrap(), LogPosition::START);
}

#[tokio::test]
async fn the_origin_of_a_fact_is_stored_and_protected() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    let claim = log.claim(session(1)).await.unwrap();
    let client = ClientInfo { name: "a \u{1f}\u{1e} \"name\"".into(), kind: ClientKind::Terminal };
    let origin = Some(FactOrigin { op: OpId(Uuid::from_u128(5)), client });
    let record = |seq| FactRecord::new(session(1), seq, UnixMillis(1), text("a".into()));
    let records = [FactRecord { origin: origin.clone(), ..record(1) }, record(2)];
    log.append_records(&claim, 0, &records).await.unwrap();
    let origins = async || {
        let log = read_all(&log, session(1), 0).await.unwrap();
        log.into_iter().map(|record| record.origin).collect::<Vec<_>>()
    };
    assert_eq!(origins().await, [origin, None]);
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(folder.path().join("windlass.db"));
    let mut database = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    let forge = "UPDATE event SET origin = replace(origin, 'name', 'other') WHERE seq = 1";
    sqlx::raw_sql(forge).execute(&mut database).await.unwrap();
    let first = log.read(session(1), 0).await.unwrap().remove(0);
    assert!(matches!(first.fact, Fact::SessionOpened { .. }), "replaced as damaged: {first:?}");
    assert_eq!((first.origin, first.epoch), (None, 0));
}

#[tokio::test]
async fn sessions_are_listed_by_folder_and_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let log = SqliteLog::open(folder.path()).await.unwrap();
    for number in 1..=7 {
        let claim = log.claim(session(number)).await.unwrap();
        let workspace = if number % 2 == 0 { "/even" } else { "/odd" };
        let prompt = Fact::PromptSubmitted {
            prompt: PromptId(Uuid::from_u128(number)),
            text: "hello".into(),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        };
        let facts = [Fact::session_opened(workspace, "0"), prompt];
        log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
    }
    let list = async |filter: SessionFilter| {
        let rows = log.list(&filter).await.unwrap();
        rows.iter().map(|row| row.session.0.as_u128()).collect::<Vec<_>>()
    };
    assert_eq!(list(SessionFilter::default()).await, [7, 6, 5, 4, 3, 2, 1]);
    let workspace = Some("/odd".to_owned());
    let odd = SessionFilter { workspace, limit: Some(2), ..SessionFilter::default() };
    assert_eq!(list(odd.clone()).await, [7, 5]);
    assert_eq!(list(SessionFilter { after: Some(session(5)), ..odd.clone() }).await, [3, 1]);
    assert_eq!(list(SessionFilter { after: Some(session(1)), ..odd }).await, [0_u128; 0]);
}
