//! Connections that are cut: after every byte of a stream, and before the answer to an operation.

use crate::memory_host::{EPOCH, MemoryHost, session};
use crate::test_server::{TestServer, caller, soon};
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{FactRecord, LogPosition, OpId, SessionOp};
use windlass_server::{FrontendService, RemoteHost, ServerAddress, WatchOptions};
use windlass_testkit::cutting_proxy::CuttingProxy;

/// Number of facts of the session.
const FACT_COUNT: u64 = 60;
/// Number of streams at once.
const CONCURRENCY: usize = 200;

/// Watches a session from its beginning until all facts have come.
async fn watch_all(remote: &RemoteHost, cut: u64) -> (Vec<FactRecord>, usize, String) {
    let me = caller(Some(&format!("cut-{cut}")));
    let options =
        || WatchOptions { after: Some(LogPosition::START.into()), ..WatchOptions::default() };
    let watched = remote.watch_session(&me, session(), options()).await;
    let mut items = match watched {
        Ok(items) => items,
        // The head of the first response was cut.
        Err(_) => remote.watch_session(&me, session(), options()).await.unwrap(),
    };
    let (mut facts, mut losses, mut last) = (Vec::new(), 0, String::new());
    while facts.len() < FACT_COUNT as usize {
        match items.next().await.unwrap() {
            SessionStreamItem::Fact(record, cursor) => {
                facts.push(*record);
                last = cursor.to_string();
            }
            SessionStreamItem::Opened(_) => {}
            SessionStreamItem::Disconnected(_) => losses += 1,
            other => panic!("{other:?}"),
        }
    }
    (facts, losses, last)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_cut_anywhere_loses_and_repeats_nothing() {
    let host = MemoryHost::with_facts(FACT_COUNT);
    let server = TestServer::new(host.clone());
    let path = server.serve_socket();
    let proxy_path = path.with_extension("proxy");
    let (proxy, _accepting) = CuttingProxy::start(&path, &proxy_path);
    let remote = RemoteHost::connect(ServerAddress::Socket(proxy_path)).await.unwrap();
    let expected = Arc::new(host.facts());
    // The first one is not cut and shows how long the stream is.
    let (facts, losses, _) = soon(watch_all(&remote, u64::MAX)).await;
    assert_eq!((&facts, losses), (&*expected, 0));
    let length = proxy.longest.load(Ordering::SeqCst);
    assert!(length > 8_000, "{length}");

    let mut running = JoinSet::new();
    let mut total_losses = 0;
    let check = |(cut, (facts, losses, last)): (u64, (Vec<FactRecord>, usize, String))| {
        assert_eq!(facts, *expected, "cut after {cut} bytes");
        assert_eq!(last, format!("{FACT_COUNT}.{EPOCH}"));
        assert!(losses <= 1, "cut after {cut} bytes");
        losses as u64
    };
    // The head, the first facts, and then every seventh byte: the frames differ in length, so all
    // places in a frame are met. The soak cuts after every byte.
    let is_soak = std::env::var_os("WINDLASS_SOAK").is_some();
    let cuts: Vec<u64> =
        (1..length).filter(|cut| is_soak || *cut < 1_500 || cut % 7 == 0).collect();
    let cut_count = cuts.len() as u64;
    for cut in cuts {
        if running.len() >= CONCURRENCY {
            total_losses += check(running.join_next().await.unwrap().unwrap());
        }
        let remote = remote.clone();
        running.spawn(async move { (cut, soon(watch_all(&remote, cut)).await) });
    }
    while let Some(done) = running.join_next().await {
        total_losses += check(done.unwrap());
    }
    // A client does not see cuts in the head, which make its first attempt fail, and behind the last
    // fact.
    assert!(total_losses + 700 > cut_count, "{total_losses} of {cut_count}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_whose_answer_is_lost_is_sent_again_and_happens_once() {
    let host = MemoryHost::with_facts(0);
    let server = TestServer::new(host.clone());
    let path = server.serve_socket();
    let proxy_path = path.with_extension("proxy");
    let (_proxy, _accepting) = CuttingProxy::start(&path, &proxy_path);
    let remote = RemoteHost::connect(ServerAddress::Socket(proxy_path)).await.unwrap();
    let request = FrontendRequest::SessionOp {
        session: session(),
        id: Some(OpId(Uuid::from_u128(1))),
        op: SessionOp::prompt("hello"),
    };
    let answer = soon(remote.request(&caller(Some("cut-1")), request)).await;
    assert_eq!(answer, Ok(HostResponse::OpAccepted { seq: 1 }));
    assert_eq!(host.facts().len(), 1);
    assert_eq!(host.received_ops.load(Ordering::SeqCst), 2);
}
