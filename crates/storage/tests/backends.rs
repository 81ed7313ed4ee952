//! The contract of `Log`: each test runs on every backend. The tests on PostgreSQL need its
//! programs and are run with `--run-ignored`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests inspect the store from outside and fail by panicking"
)]

mod support;

#[cfg(unix)]
use support::PostgresBackend;
use support::{Backend, SqliteBackend, model_text, prompt_submitted, session};
use uuid::Uuid;
use windlass_protocol::{
    Attachment, BlobRef, CallId, CallOutcome, ClientInfo, ClientKind, DEFAULT_AGENT, Fact,
    FactOrigin, FactRecord, LogPosition, OpId, ParentCall, PromptId, SessionId, ToolOutput,
    TurnEndReason, UnixMillis,
};
use windlass_storage::{
    Log, MAX_PAGE_FACTS, PageLimit, ReleaseState, SessionFilter, StorageError, read_all,
};

/// Makes a test on each backend of each of these functions.
macro_rules! on_every_backend {
    ($($test:ident)*) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(&super::SqliteBackend::start().await).await;
            })*
        }
        #[cfg(unix)]
        mod postgres {
            $(#[tokio::test]
            #[ignore = "needs PostgreSQL"]
            async fn $test() {
                super::$test(&super::PostgresBackend::start().await).await;
            })*
        }
    };
}

on_every_backend! {
    facts_come_back_in_order_without_gaps_across_pages
    an_append_at_the_wrong_position_writes_nothing
    an_append_without_facts_changes_nothing
    a_session_that_is_open_cannot_be_opened_again
    a_claim_that_is_dropped_is_released_for_the_same_process
    a_claim_raises_the_epoch_and_an_older_claim_is_fenced
    a_large_fact_is_stored_as_a_blob_and_verified_when_read
    a_damaged_blob_is_repaired_when_it_is_written_again
    a_blob_is_found_by_its_prefix
    sessions_are_listed_last_used_first_with_the_end_of_their_last_turn
    deleting_a_session_removes_only_the_blobs_that_no_other_session_uses
    deleting_a_session_also_removes_sessions_without_facts
    facts_may_contain_the_characters_that_separate_facts
    a_page_has_at_most_the_bytes_of_its_limit_and_at_least_one_fact
    a_position_in_a_lost_end_leads_back_to_what_is_left
    the_origin_of_a_fact_is_stored_and_protected
    a_damaged_or_missing_fact_costs_only_itself
    sessions_are_listed_by_folder_and_page_by_page
    a_restored_log_keeps_its_times_and_shares_its_blobs
    a_session_is_deleted_with_all_its_subagent_sessions_or_not_at_all
    a_search_takes_words_literally_and_respects_its_limit
    turn_facts_are_the_most_recent_ones_in_order
    copies_of_files_are_stored_and_verified
}

fn session_opened(parent: Option<u128>) -> Fact {
    let call = CallId(Uuid::from_u128(9));
    let parent = parent.map(|number| ParentCall { session: session(number), call });
    Fact::SessionOpened {
        workspace: "/w".into(),
        version: "1".into(),
        agent: DEFAULT_AGENT.into(),
        parent,
    }
}

async fn create_session(log: &dyn Log, number: u128, parent: Option<u128>, facts: &[Fact]) {
    let claim = log.claim(session(number)).await.unwrap();
    let facts = [&[session_opened(parent)], facts].concat();
    log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
}

async fn session_ids(log: &dyn Log) -> Vec<SessionId> {
    let mut ids: Vec<SessionId> =
        log.list(&Default::default()).await.unwrap().iter().map(|row| row.session).collect();
    ids.sort();
    ids
}

async fn facts_come_back_in_order_without_gaps_across_pages(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    let facts: Vec<Fact> = (0..2_345).map(|n| model_text(n.to_string())).collect();
    assert_eq!(log.append(&claim, 0, UnixMillis(5), &facts).await.unwrap(), 2_345);
    let records = read_all(&*log, session(1), 0).await.unwrap();
    assert!(records.iter().map(|r| r.seq).eq(1..=2_345));
    assert!(records.iter().map(|r| &r.fact).eq(facts.iter()));
    assert!(records.iter().all(|record| record.epoch == claim.epoch));
    let tail = read_all(&*log, session(1), 2_340).await.unwrap();
    assert!(tail.iter().map(|r| r.seq).eq(2_341..=2_345));
    assert!(log.read(session(1), 2_345).await.unwrap().is_empty());
    assert!(log.read(session(2), 0).await.unwrap().is_empty());
}

async fn an_append_at_the_wrong_position_writes_nothing(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 0, UnixMillis(1), &[model_text("a"), model_text("b")]).await.unwrap();
    for wrong in [0, 1, 3] {
        let refused = log.append(&claim, wrong, UnixMillis(2), &[model_text("c")]).await;
        assert!(matches!(refused, Err(StorageError::Fenced { .. })), "{refused:?}");
    }
    assert_eq!(read_all(&*log, session(1), 0).await.unwrap().len(), 2);
}

async fn an_append_without_facts_changes_nothing(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    assert_eq!(log.append(&claim, 0, UnixMillis(1), &[]).await.unwrap(), 0);
    log.append(&claim, 0, UnixMillis(1), &[model_text("a")]).await.unwrap();
    assert_eq!(log.append(&claim, 1, UnixMillis(1), &[]).await.unwrap(), 1);
    assert_eq!(log.append(&claim, 1, UnixMillis(1), &[model_text("b")]).await.unwrap(), 2);
    assert_eq!(read_all(&*log, session(1), 0).await.unwrap().len(), 2);
}

async fn a_session_that_is_open_cannot_be_opened_again(backend: &dyn Backend) {
    let (one, two) = (backend.open_log().await, backend.open_log().await);
    let open_claim = one.claim(session(1)).await.unwrap();
    one.append(&open_claim, 0, UnixMillis(1), &[model_text("a")]).await.unwrap();
    for log in [&one, &two] {
        assert!(matches!(log.claim(session(1)).await, Err(StorageError::Busy { .. })));
        assert!(matches!(log.delete(session(1)).await, Err(StorageError::Busy { .. })));
    }
    two.claim(session(2)).await.unwrap();
    one.release(open_claim, ReleaseState::Idle).await.unwrap();
    let claim = two.claim(session(1)).await.unwrap();
    two.append(&claim, 1, UnixMillis(1), &[model_text("b")]).await.unwrap();
}

async fn a_claim_that_is_dropped_is_released_for_the_same_process(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let mut epoch = 0;
    for _ in 0..5 {
        let claim = log.claim(session(1)).await.unwrap();
        assert!(claim.epoch > epoch);
        epoch = claim.epoch;
        drop(claim);
    }
    create_session(&*log, 2, None, &[]).await;
    log.delete(session(2)).await.unwrap();
}

async fn a_claim_raises_the_epoch_and_an_older_claim_is_fenced(backend: &dyn Backend) {
    let (one, two) = (backend.open_log().await, backend.open_log().await);
    let old = one.claim(session(1)).await.unwrap();
    one.append(&old, 0, UnixMillis(1), &[model_text("old")]).await.unwrap();
    // Another process claims the session although this one has it: on PostgreSQL after its lease
    // has run out, on SQLite after a file system has lost the lock.
    backend.execute("UPDATE session SET epoch = epoch + 1").await;
    let refused = one.append(&old, 1, UnixMillis(2), &[model_text("late")]).await;
    assert!(matches!(refused, Err(StorageError::Fenced { .. })), "{refused:?}");
    drop(one);
    assert_eq!(read_all(&*two, session(1), 0).await.unwrap().len(), 1);
}

async fn a_large_fact_is_stored_as_a_blob_and_verified_when_read(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    let large = model_text("x".repeat(3_000_000));
    let prompt = prompt_submitted(&"y".repeat(100_000));
    let facts = [model_text("small"), large.clone(), prompt];
    log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
    assert_eq!(read_all(&*log, session(1), 0).await.unwrap()[1].fact, large);
    assert_eq!(log.read_turn_facts(session(1), 9).await.unwrap().len(), 1);
    backend.damage_blobs().await;
    let records = read_all(&*log, session(1), 0).await.unwrap();
    assert!(matches!(records[1].fact, Fact::FactsLost { count: 1, .. }), "{:?}", records[1]);
    assert_eq!(records[0].fact, model_text("small"), "a lost blob costs its fact only");
    assert!(log.read_turn_facts(session(1), 9).await.unwrap().is_empty());
}

async fn a_damaged_blob_is_repaired_when_it_is_written_again(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let blob = log.put_blob(b"whole".to_vec()).await.unwrap();
    assert_eq!(log.get_blob(&blob).await.unwrap(), b"whole");
    backend.damage_blobs().await;
    assert!(matches!(log.get_blob(&blob).await, Err(StorageError::BlobLost { .. })));
    assert_eq!(log.put_blob(b"whole".to_vec()).await.unwrap(), blob);
    assert_eq!(log.get_blob(&blob).await.unwrap(), b"whole");
    let empty = log.put_blob(Vec::new()).await.unwrap();
    assert_eq!(log.get_blob(&empty).await.unwrap(), b"");
}

async fn a_blob_is_found_by_its_prefix(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let mut blobs = Vec::new();
    for number in 0..50_u8 {
        blobs.push(log.put_blob(vec![number]).await.unwrap());
    }
    let first = &blobs[0];
    for length in [12, 64] {
        let found = log.find_blob(&first.as_str()[..length]).await.unwrap();
        assert_eq!(found.as_ref(), Some(first));
    }
    for wrong in ["", "%%%", "__", "zz", "0000000000000000"] {
        assert_eq!(log.find_blob(wrong).await.unwrap(), None, "{wrong}");
    }
}

async fn sessions_are_listed_last_used_first_with_the_end_of_their_last_turn(
    backend: &dyn Backend,
) {
    let log = backend.open_log().await;
    // The order does not depend on the times of facts.
    for (number, at) in [(2, 10), (3, 40), (1, 30)] {
        let claim = log.claim(session(number)).await.unwrap();
        let facts = [
            Fact::session_opened(format!("/w{number}"), "0"),
            prompt_submitted(&format!("prompt {number}\nmore")),
            Fact::TurnStarted { turn: 1, prompt: None },
        ];
        log.append(&claim, 0, UnixMillis(at), &facts).await.unwrap();
        let end = Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed };
        log.append(&claim, 3, UnixMillis(at), &[end]).await.unwrap();
    }
    log.claim(session(4)).await.unwrap();
    let list = log.list(&Default::default()).await.unwrap();
    let titles: Vec<&str> = list.iter().map(|s| s.title.as_str()).collect();
    assert_eq!(
        titles,
        ["prompt 1", "prompt 3", "prompt 2"],
        "a session without facts is not listed"
    );
    assert_eq!(list[0].workspace, "/w1");
    assert_eq!((list[0].fact_count, list[0].changed_at), (4, UnixMillis(30)));
    assert_eq!(list[0].last_turn_end, Some(TurnEndReason::Completed));
    let count = async |workspace: &str, checkouts: Option<&str>| {
        let (workspace, checkouts) = (Some(workspace.to_owned()), checkouts.map(str::to_owned));
        let filter = SessionFilter { workspace, checkouts, ..SessionFilter::default() };
        log.list(&filter).await.unwrap().len()
    };
    assert_eq!(count("/w1", None).await, 1);
    assert_eq!(count("/w1", Some("")).await, 3, "every folder begins with `/`");
    assert_eq!(count("/w1", Some("/w")).await, 1, "a folder is not the first part of a name");
    // The summary goes on after the session was claimed again.
    let claim = log.claim(session(2)).await.unwrap();
    let started = Fact::TurnStarted { turn: 2, prompt: None };
    log.append(&claim, 4, UnixMillis(50), &[prompt_submitted("x"), started]).await.unwrap();
    let first = log.list(&Default::default()).await.unwrap().remove(0);
    assert_eq!(
        (first.title.as_str(), first.last_turn_end, first.fact_count),
        ("prompt 2", None, 6)
    );
}

async fn deleting_a_session_removes_only_the_blobs_that_no_other_session_uses(
    backend: &dyn Backend,
) {
    let log = backend.open_log().await;
    let shared = log.put_blob(b"shared".to_vec()).await.unwrap();
    let own = log.put_blob(b"own".to_vec()).await.unwrap();
    let call_settled = |blob: &BlobRef| Fact::CallSettled {
        call: CallId(Uuid::nil()),
        outcome: CallOutcome::Completed {
            output: ToolOutput { full_text: Some(blob.clone()), ..ToolOutput::default() },
        },
        seen_files: Vec::new(),
    };
    let deleted_session = log.claim(session(1)).await.unwrap();
    log.append(&deleted_session, 0, UnixMillis(1), &[call_settled(&shared), call_settled(&own)])
        .await
        .unwrap();
    drop(deleted_session);
    let other_session = log.claim(session(2)).await.unwrap();
    let attached = log.put_blob(b"attached".to_vec()).await.unwrap();
    let in_output = log.put_blob(b"shown".to_vec()).await.unwrap();
    let file = |blob: &BlobRef| Attachment {
        name: "a.png".into(),
        mime_type: "image/png".into(),
        blob: blob.clone(),
    };
    let prompt_submitted = Fact::PromptSubmitted {
        prompt: PromptId(Uuid::nil()),
        text: String::new(),
        attachments: vec![file(&attached)],
        delivery: Default::default(),
        settings: Default::default(),
    };
    let output = ToolOutput { attachments: vec![file(&in_output)], ..ToolOutput::default() };
    let outcome = CallOutcome::Completed { output };
    let image_read =
        Fact::CallSettled { call: CallId(Uuid::nil()), outcome, seen_files: Vec::new() };
    log.append(
        &other_session,
        0,
        UnixMillis(1),
        &[call_settled(&shared), prompt_submitted, image_read],
    )
    .await
    .unwrap();
    backend.age_blobs().await;
    let recent = log.put_blob(b"young".to_vec()).await.unwrap();
    log.delete(session(1)).await.unwrap();
    assert_eq!(log.list(&Default::default()).await.unwrap().len(), 1);
    assert_eq!(log.get_blob(&shared).await.unwrap(), b"shared");
    assert_eq!(log.get_blob(&attached).await.unwrap(), b"attached");
    assert_eq!(log.get_blob(&in_output).await.unwrap(), b"shown");
    assert_eq!(log.get_blob(&recent).await.unwrap(), b"young");
    assert!(matches!(log.get_blob(&own).await, Err(StorageError::BlobLost { .. })));
    assert!(matches!(log.delete(session(1)).await, Err(StorageError::SessionNotFound { .. })));
    assert!(log.read(session(1), 0).await.unwrap().is_empty());
}

async fn deleting_a_session_also_removes_sessions_without_facts(backend: &dyn Backend) {
    let log = backend.open_log().await;
    create_session(&*log, 1, None, &[model_text("x")]).await;
    drop(log.claim(session(2)).await.unwrap());
    let open_claim = log.claim(session(3)).await.unwrap();
    log.delete(session(1)).await.unwrap();
    log.append(&open_claim, 0, UnixMillis(1), &[model_text("x")]).await.unwrap();
    assert_eq!(session_ids(&*log).await, [session(3)]);
    assert_eq!(backend.count("SELECT count(*) FROM session").await, 1, "session 2 is gone");
}

async fn facts_may_contain_the_characters_that_separate_facts(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    let facts = [
        Fact::session_opened("/w\u{0}", "0"),
        prompt_submitted("a\u{0}\u{1f}title"),
        model_text("a\u{1e}b\u{1f}c\n\u{0}\u{2028}\\u0000 'quoted' \"x\" \u{10ffff}"),
        model_text("two"),
    ];
    log.append(&claim, 0, UnixMillis(5), &facts).await.unwrap();
    let read = log.read(session(1), 0).await.unwrap();
    assert!(read.iter().map(|r| &r.fact).eq(facts.iter()), "{read:?}");
    let workspace = Some("/w\u{0}".to_owned());
    let filter = SessionFilter { workspace, ..SessionFilter::default() };
    assert_eq!(log.list(&filter).await.unwrap().len(), 1);
}

async fn a_page_has_at_most_the_bytes_of_its_limit_and_at_least_one_fact(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    // Small facts, large ones in rows, and ones in blobs.
    let sizes = [10, 500, 40_000, 60_000, 100_000, 20, 300_000, 300_000, 30, 40];
    let facts: Vec<Fact> = sizes.iter().map(|size| model_text("x".repeat(*size))).collect();
    log.append(&claim, 0, UnixMillis(1), &facts).await.unwrap();
    let all = read_all(&*log, session(1), 0).await.unwrap();
    for bytes in [0, 100, 70_000, 150_000, 1_000_000] {
        let (mut after, mut seen) = (0, Vec::new());
        while let Some(last) = {
            let limit = PageLimit { facts: MAX_PAGE_FACTS, bytes };
            let page = log.read_page(session(1), after, limit).await.unwrap();
            let size: usize =
                page.iter().map(|it| serde_json::to_string(&it.fact).unwrap().len()).sum();
            assert!(page.len() <= 1 || size <= bytes, "{size} bytes for a limit of {bytes}");
            seen.extend(page);
            seen.last().filter(|last| last.seq > after).map(|last| last.seq)
        } {
            after = last;
        }
        assert_eq!(seen, all, "{bytes}");
    }
}

async fn a_position_in_a_lost_end_leads_back_to_what_is_left(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let mut head = 0;
    for _ in 0..3 {
        let claim = log.claim(session(1)).await.unwrap();
        let facts = [model_text("a"), model_text("b")];
        head = log.append(&claim, head, UnixMillis(1), &facts).await.unwrap();
    }
    let all = read_all(&*log, session(1), 0).await.unwrap();
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

async fn the_origin_of_a_fact_is_stored_and_protected(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let claim = log.claim(session(1)).await.unwrap();
    let client = ClientInfo { name: "a \u{1f}\u{1e} \"name\"".into(), kind: ClientKind::Terminal };
    let origin = Some(FactOrigin { op: OpId(Uuid::from_u128(5)), client });
    let record = |seq| FactRecord::new(session(1), seq, UnixMillis(1), model_text("a"));
    let records = [FactRecord { origin: origin.clone(), ..record(1) }, record(2)];
    log.append_records(&claim, 0, &records).await.unwrap();
    let origins = async || {
        let log = read_all(&*log, session(1), 0).await.unwrap();
        log.into_iter().map(|record| record.origin).collect::<Vec<_>>()
    };
    assert_eq!(origins().await, [origin, None]);
    backend.execute("UPDATE event SET origin = replace(origin, 'name', 'x') WHERE seq = 1").await;
    let first = log.read(session(1), 0).await.unwrap().remove(0);
    assert!(matches!(first.fact, Fact::SessionOpened { .. }), "replaced as damaged: {first:?}");
    assert_eq!((first.origin, first.epoch), (None, 0));
}

async fn a_damaged_or_missing_fact_costs_only_itself(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let facts: Vec<Fact> = (0..9).map(|number| model_text(number.to_string())).collect();
    create_session(&*log, 1, None, &facts).await;
    backend.execute("DELETE FROM event WHERE seq IN (4, 10)").await;
    backend.execute("UPDATE event SET body = replace(body, '5', '6') WHERE seq = 7").await;
    for bytes in [usize::MAX, 100] {
        let (mut records, mut after) = (Vec::new(), 0);
        while after < 10 {
            let limit = PageLimit { facts: MAX_PAGE_FACTS, bytes };
            let page = log.read_page(session(1), after, limit).await.unwrap();
            after = page.last().unwrap().seq;
            records.extend(page);
        }
        let lost: Vec<u64> = records
            .iter()
            .filter(|record| matches!(record.fact, Fact::FactsLost { .. }))
            .map(|record| record.seq)
            .collect();
        assert_eq!(lost, [4, 7, 10]);
        assert!(records.iter().map(|record| record.seq).eq(1..=10));
    }
    // The session goes on after them.
    let claim = log.claim(session(1)).await.unwrap();
    log.append(&claim, 10, UnixMillis(1), &[model_text("next")]).await.unwrap();
    assert_eq!(read_all(&*log, session(1), 9).await.unwrap()[1].fact, model_text("next"));
}

async fn sessions_are_listed_by_folder_and_page_by_page(backend: &dyn Backend) {
    let log = backend.open_log().await;
    for number in 1..=7 {
        let claim = log.claim(session(number)).await.unwrap();
        let workspace = if number % 2 == 0 { "/even" } else { "/odd" };
        let facts = [Fact::session_opened(workspace, "0"), prompt_submitted("hello")];
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
    create_session(&*log, 8, Some(7), &[]).await;
    let top_level = SessionFilter { is_top_level: true, ..SessionFilter::default() };
    assert_eq!(list(top_level).await, [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(list(SessionFilter::default()).await[0], 8);
}

async fn a_restored_log_keeps_its_times_and_shares_its_blobs(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let facts = [session_opened(None), model_text("x".repeat(100_000)), model_text("short")];
    let record = |(seq, fact): (u64, &Fact)| {
        FactRecord::new(session(7), seq, UnixMillis(seq * 1_000), fact.clone())
    };
    let records: Vec<FactRecord> = (1..).zip(&facts).map(record).collect();
    let (one, two) = (log.claim(session(1)).await.unwrap(), log.claim(session(2)).await.unwrap());
    assert_eq!(log.append_records(&one, 0, &records).await.unwrap(), 3);
    assert_eq!(log.append_records(&two, 0, &records).await.unwrap(), 3);
    let refused = log.append_records(&two, 0, &records).await;
    assert!(matches!(refused, Err(StorageError::Fenced { .. })), "the session has facts already");
    let row = log.list(&Default::default()).await.unwrap().remove(0);
    assert_eq!((row.changed_at, row.fact_count), (UnixMillis(3_000), 3));
    drop((one, two));
    log.delete(session(1)).await.unwrap();
    let left = read_all(&*log, session(2), 0).await.unwrap();
    assert!(
        left.iter()
            .map(|record| (record.at, &record.fact))
            .eq(records.iter().map(|record| (record.at, &record.fact)))
    );
    assert!(left.iter().all(|record| record.session == session(2)));
}

async fn a_session_is_deleted_with_all_its_subagent_sessions_or_not_at_all(backend: &dyn Backend) {
    let log = backend.open_log().await;
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None), (5, Some(4))] {
        create_session(&*log, number, parent, &[model_text("x")]).await;
    }
    let open = log.claim(session(3)).await.unwrap();
    assert!(matches!(log.delete(session(1)).await, Err(StorageError::Busy { .. })));
    assert_eq!(
        session_ids(&*log).await,
        [1, 2, 3, 4, 5].map(session),
        "a grandchild session is open"
    );
    drop(open);
    log.delete(session(1)).await.unwrap();
    assert_eq!(session_ids(&*log).await, [4, 5].map(session));
    log.delete(session(5)).await.unwrap();
    assert_eq!(session_ids(&*log).await, [session(4)], "a child session is deleted alone");
    assert!(matches!(log.delete(session(1)).await, Err(StorageError::SessionNotFound { .. })));
}

async fn a_search_takes_words_literally_and_respects_its_limit(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let special =
        ["100% sure", "a_b", "back\\slash", "quo\"te", "tilde~", "line\nend", "x' OR 1=1 --"];
    create_session(&*log, 1, None, &special.map(model_text)).await;
    create_session(&*log, 2, None, &special.map(model_text)).await;
    let search = async |word: &str, limit: usize| {
        let found = log.search(session(1), &[word.to_owned()], limit).await.unwrap();
        assert!(found.iter().all(|record| record.session == session(1)));
        found.len()
    };
    for text in special {
        assert_eq!(search(text, 10).await, 1, "{text}");
    }
    for absent in ["100_", "a%b", "%%", "\\%", "a\\_b", "' OR '1'='1", "\u{0}"] {
        assert_eq!(search(absent, 10).await, 0, "{absent}");
    }
    assert_eq!(search("s", 2).await, 2, "no more than the limit");
    assert_eq!(search("SURE", 10).await, 1, "case does not count");
    let words = ["sure".to_owned(), "100".to_owned()];
    assert_eq!(log.search(session(1), &words, usize::MAX).await.unwrap().len(), 1);
    assert!(log.search(session(1), &["sure".into(), "a_b".into()], 9).await.unwrap().is_empty());
}

async fn turn_facts_are_the_most_recent_ones_in_order(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let ended = |turn| Fact::TurnEnded { turn, end: TurnEndReason::Completed };
    let mut facts = Vec::new();
    for turn in 1..=50 {
        facts.push(Fact::TurnStarted { turn, prompt: None });
        facts.extend((0..30).map(|number| model_text(number.to_string())));
        facts.push(ended(turn));
    }
    facts.push(Fact::Rewound { to: 33 });
    create_session(&*log, 1, None, &facts).await;
    create_session(&*log, 2, None, &[model_text("x".repeat(100))]).await;
    let found = log.read_turn_facts(session(1), 4).await.unwrap();
    let kinds: Vec<&str> = found.iter().map(|record| record.fact.kind()).collect();
    assert_eq!(kinds, ["turn_ended", "turn_started", "turn_ended", "rewound"]);
    assert_eq!(found.last().unwrap().seq, 1 + 50 * 32 + 1);
    assert_eq!(log.read_turn_facts(session(1), usize::MAX).await.unwrap().len(), 101);
    assert!(log.read_turn_facts(session(2), 4).await.unwrap().is_empty());
}

async fn copies_of_files_are_stored_and_verified(backend: &dyn Backend) {
    let log = backend.open_log().await;
    let first = log.put_copy(b"one".to_vec(), None).await.unwrap();
    let second = log.put_copy(b"one and two".to_vec(), Some(&first)).await.unwrap();
    assert_eq!(log.get_copy(&first).await.unwrap(), b"one");
    assert_eq!(log.get_copy(&second).await.unwrap(), b"one and two");
    let absent = BlobRef::for_bytes(b"absent");
    assert!(matches!(log.get_copy(&absent).await, Err(StorageError::CopyGone { .. })));
}
