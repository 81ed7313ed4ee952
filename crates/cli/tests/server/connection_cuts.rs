//! A stream of a real session with subagents that is cut anywhere (R1): the client ends with the
//! facts of the log, in order, each once.

use crate::session_client::SessionClient;
use crate::support::server::{TestServer, caller, socket_path, soon};
use crate::support::{TestEnv, write_file};
use futures_util::StreamExt;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use tokio::task::JoinSet;
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{FactRecord, LogPosition, LogSeq, SessionId, SessionOp};
use windlass_server::{Caller, FrontendService, RemoteHost, ServerAddress, WatchOptions};
use windlass_testkit::cutting_proxy::CuttingProxy;
use windlass_testkit::{ModelScript, ScriptedModel};

/// Least number of facts of the session with its subagents.
const MIN_FACTS: usize = 300;
/// Number of streams at once.
const CONCURRENCY: usize = 64;

/// A session that starts eleven subagents, with a model of their own, and reads itself.
fn session_with_subagents() -> (TestEnv, ScriptedModel) {
    let read = "call read {\"filePath\": \"README.md\"}";
    let task = json!({"description": "look", "prompt": "look", "subagent_type": "helper"});
    let mut replies = Vec::new();
    for round in 0..11 {
        replies.push(format!("say Round {round}.\ncall task {task}"));
        replies.push(format!("call grep {{\"pattern\": \"round{round}\"}}"));
    }
    replies.push("say Done.".to_owned());
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, "");
    let search = "call glob {\"pattern\": \"*.rs\"}";
    let say_and_read = format!("say Looking.\n{read}");
    let helper = ModelScript::new([&say_and_read, search, "say Seen."]);
    let helper = ScriptedModel::start(helper);
    let provider = |url: String| json!({"api": "openai-chat", "base_url": url, "api_key": "k", "models": {"m": {}}});
    let providers =
        json!({"scripted": provider(env.model.url()), "helping": provider(helper.url())});
    let config =
        json!({"model": "scripted/m", "mode": "auto", "titles": false, "provider": providers});
    env.write_config(&config.to_string());
    let agent = "---\ndescription: Helps\nmode: subagent\nmodel: helping/m\n---\nYou help.\n";
    write_file(&env.config_folder().join("agents/helper.md"), agent);
    (env, helper)
}

/// The facts of each session in order.
type FactsBySession = BTreeMap<SessionId, Vec<(LogSeq, String)>>;

fn add_fact(facts: &mut FactsBySession, record: &FactRecord) {
    let text = serde_json::to_string(record).unwrap();
    facts.entry(record.session).or_default().push((record.seq, text));
}

/// Watches a session from its beginning until `count` facts have come.
async fn watch_all(
    remote: &RemoteHost,
    me: &Caller,
    (session, count): (SessionId, usize),
) -> (FactsBySession, usize) {
    let options =
        || WatchOptions { after: Some(LogPosition::START.into()), ..WatchOptions::default() };
    let mut items = match remote.watch_session(me, session, options()).await {
        Ok(items) => items,
        // The head of the first response was cut.
        Err(_) => remote.watch_session(me, session, options()).await.unwrap(),
    };
    let (mut facts, mut received, mut losses) = (FactsBySession::new(), 0, 0);
    while received < count {
        match items.next().await.unwrap() {
            SessionStreamItem::Fact(record, _) => {
                add_fact(&mut facts, &record);
                received += 1;
            }
            SessionStreamItem::Disconnected(_) => losses += 1,
            SessionStreamItem::Opened(_) | SessionStreamItem::Live(_) => {}
            other => panic!("{other:?}"),
        }
    }
    (facts, losses)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_a_session_with_subagents_can_be_cut_anywhere() {
    let (env, _helper) = session_with_subagents();
    let _server = TestServer::start(&env, &[]);
    let mut client = SessionClient::start(&env).await;
    client.submit(SessionOp::prompt("look at everything")).await.unwrap();
    client.wait_for_turn_end().await;
    let (session, count) = (client.session, client.facts.len());
    assert!(count >= MIN_FACTS, "{count}");
    let mut expected = FactsBySession::new();
    client.facts.iter().for_each(|record| add_fact(&mut expected, record));
    assert!(expected.len() > 3, "there are subagents");
    for (session, facts) in &expected {
        let stored = env.facts_of(&session.to_string());
        let kinds = |texts: Vec<String>| {
            texts.into_iter().fold(BTreeMap::<String, usize>::new(), |mut all, kind| {
                *all.entry(kind).or_default() += 1;
                all
            })
        };
        let a = kinds(stored.iter().map(|fact| fact["kind"].to_string()).collect());
        let b = kinds(
            facts
                .iter()
                .map(|(_, text)| {
                    serde_json::from_str::<serde_json::Value>(text).unwrap()["kind"].to_string()
                })
                .collect(),
        );
        assert_eq!(a, b);
        assert_eq!(stored.len(), facts.len(), "the log of {session}");
        let positions: Vec<LogSeq> = facts.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(positions, (1..=facts.len() as LogSeq).collect::<Vec<_>>());
    }

    let path = socket_path(&env);
    let proxy_path = path.with_extension("proxy");
    let (proxy, _accepting) = CuttingProxy::start(&path, &proxy_path);
    let remote = RemoteHost::connect(ServerAddress::Socket(proxy_path)).await.unwrap();
    let me = caller(&env);
    let whole = soon(watch_all(&remote, &me, (session, count))).await;
    assert_eq!(whole, (expected.clone(), 0));
    let length = proxy.longest.load(Ordering::SeqCst);
    // A prime stride meets every kind of place in the frames. Every byte would take hours.
    let stride = if std::env::var_os("WINDLASS_SOAK").is_some() { 11 } else { 211 };
    let (mut running, mut total_losses, mut cuts) = (JoinSet::new(), 0, 0);
    let check = |(cut, (facts, losses)): (u64, (FactsBySession, usize))| {
        assert!(facts == expected, "cut after {cut} bytes");
        assert!(losses <= 1, "cut after {cut} bytes");
        losses
    };
    for cut in (1..length).filter(|cut| *cut < 300 || cut % stride == 0) {
        if running.len() >= CONCURRENCY {
            total_losses += check(running.join_next().await.unwrap().unwrap());
        }
        // The folder has no meaning for a session, so the proxy finds its instruction there.
        let workspace = Some(format!("{}/cut-{cut}", me.workspace.as_deref().unwrap()));
        let (remote, me) = (remote.clone(), Caller { workspace, ..me.clone() });
        running.spawn(async move { (cut, soon(watch_all(&remote, &me, (session, count))).await) });
        cuts += 1;
    }
    while let Some(done) = running.join_next().await {
        total_losses += check(done.unwrap());
    }
    println!("{count} facts, {length} bytes, {cuts} cuts, {total_losses} lost connections");
    assert!(total_losses * 2 > cuts, "{total_losses} of {cuts}");
}
