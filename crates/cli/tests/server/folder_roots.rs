//! Folders of a server (N8): clients work in those that it was started with, however they name
//! others, and sessions of other folders do not exist for them.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect};
use base64::Engine;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    Attachment, BlobRef, Fault, OpError, QueryReply, RequestError, SessionOp, SessionQuery,
    TrustDecision,
};
use windlass_server::{Caller, FrontendService};

#[tokio::test(flavor = "multi_thread")]
async fn clients_work_only_in_the_folders_of_the_server() {
    let env = TestEnv::new(&["say Hi", "say Ho"], "");
    let other = env.home().join("other");
    std::fs::create_dir_all(other.join("sub")).unwrap();
    std::os::unix::fs::symlink(&other, env.root().join("link")).unwrap();
    // A session of the other folder, made without a server.
    let output = env.windlass(&["run", "hello there"]).current_dir(&other).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (_, list, _) = env.run(&["session", "list", "--all", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let foreign = list[0]["session"].as_str().unwrap().parse().unwrap();

    let _server = TestServer::start(&env, &[]);
    let host = connect(&env).await;
    let own = env.root().display().to_string();
    let in_folder = |folder: String| Caller { workspace: Some(folder), ..caller(&env) };
    for folder in [
        other.display().to_string(),
        format!("{own}/link"),
        format!("{own}/../../home/other"),
        format!("{own}/.."),
        own.to_uppercase(),
        "/".to_owned(),
        "/etc".to_owned(),
        String::new(),
        "relative".to_owned(),
    ] {
        let caller = in_folder(folder.clone());
        let answer = host.request(&caller, FrontendRequest::new_session(None)).await;
        assert!(matches!(answer, Err(RequestError::NotFound { .. })), "{folder}: {answer:?}");
    }
    // Other names of the folder itself are fine.
    let caller = in_folder(format!("{own}/../project/."));
    host.request(&caller, FrontendRequest::new_session(None)).await.unwrap();

    let unknown = "01890000-0000-7000-8000-000000000000".parse().unwrap();
    for (session, text) in [(foreign, "hello there"), (unknown, "")] {
        let requests = [
            FrontendRequest::OpenSession { session, resume: true },
            FrontendRequest::CloseSession { session },
            FrontendRequest::DeleteSession { session },
            FrontendRequest::ForkSession { session, turn: None },
            FrontendRequest::RenameSession { session, title: "mine".to_owned() },
            FrontendRequest::Query { query: SessionQuery::Transcript { session } },
            FrontendRequest::Query {
                query: SessionQuery::Events { session, after: 0, limit: None },
            },
        ];
        for request in requests {
            let answer = host.request(&caller, request.clone()).await;
            let Err(RequestError::NotFound { text: message }) = &answer else {
                panic!("{request:?}: {answer:?}")
            };
            assert_eq!(message.replace(&session.to_string(), "ID"), "session ID was not found");
            assert!(text.is_empty() || !message.contains(text));
        }
        let watched = host.watch_session(&caller, session, Default::default()).await;
        assert!(matches!(watched, Err(RequestError::NotFound { .. })));
    }
    for query in [
        SessionQuery::Sessions { workspace: None },
        SessionQuery::Sessions { workspace: Some(other.display().to_string()) },
    ] {
        let answer = host.request(&caller, FrontendRequest::Query { query }).await.unwrap();
        let HostResponse::Reply { reply: QueryReply::Sessions { sessions } } = answer else {
            panic!("{answer:?}")
        };
        assert!(sessions.iter().all(|row| row.session != foreign), "{sessions:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_works_in_several_folders_with_one_log() {
    let env = TestEnv::new(&["say One", "say Two"], "");
    let second = env.home().join("second");
    std::fs::create_dir_all(&second).unwrap();
    let roots = [env.root().display().to_string(), second.display().to_string()];
    let _server = TestServer::start(&env, &["--root", &roots[0], "--root", &roots[1]]);
    let host = connect(&env).await;
    let mut sessions = Vec::new();
    for root in &roots {
        let caller = Caller { workspace: Some(root.clone()), ..caller(&env) };
        let opened = host.request(&caller, FrontendRequest::new_session(None)).await.unwrap();
        let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
        let mut client = SessionClient::watch(host.clone(), caller, session).await;
        client.submit(SessionOp::prompt("hello")).await.unwrap();
        client.wait_for_turn_end().await;
        sessions.push(client);
    }
    let open = host.request(&caller(&env), FrontendRequest::ListOpenSessions).await.unwrap();
    let HostResponse::OpenSessions { sessions: states } = open else { panic!("{open:?}") };
    let mut folders: Vec<_> = states.iter().map(|state| state.workspace.as_str()).collect();
    folders.sort_unstable();
    let mut expected: Vec<_> = roots.iter().map(String::as_str).collect();
    expected.sort_unstable();
    assert_eq!(folders, expected);
}

#[tokio::test]
async fn trust_names_the_review_that_was_seen() {
    let env = TestEnv::new(&[], "");
    std::fs::write(env.root().join("AGENTS.md"), "Be kind.\n").unwrap();
    let _server = TestServer::start(&env, &[]);
    let (host, caller) = (connect(&env).await, caller(&env));
    let answer = host.request(&caller, FrontendRequest::ReviewTrust).await.unwrap();
    let HostResponse::TrustReview { review } = answer else { panic!("{answer:?}") };
    let trust = |seen: Option<String>| {
        let decision = TrustDecision::Trust;
        host.request(&caller, FrontendRequest::SetTrust { decision, seen })
    };
    for seen in [None, Some("0".repeat(64))] {
        let answer = trust(seen).await;
        assert!(
            matches!(answer, Err(RequestError::Failed { fault: Fault::Config { .. } })),
            "{answer:?}"
        );
        host.request(&caller, FrontendRequest::ReviewTrust).await.unwrap();
    }
    trust(Some(review.digest)).await.unwrap();
}

/// A session that names one file, which was sent by its client.
async fn session_with_file(env: &TestEnv, folder: &str, text: &str) -> (SessionClient, BlobRef) {
    let host = connect(env).await;
    let caller = Caller { workspace: Some(folder.to_owned()), ..caller(env) };
    let content = [b"\x89PNG\r\n\x1a\n", text.as_bytes()].concat();
    let bytes = base64::engine::general_purpose::STANDARD.encode(content);
    let put = FrontendRequest::PutBlob { name: "a.png".to_owned(), bytes };
    let stored = host.request(&caller, put).await.unwrap();
    let HostResponse::BlobStored { attachment } = stored else { panic!("{stored:?}") };
    let opened = host.request(&caller, FrontendRequest::new_session(None)).await.unwrap();
    let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
    let blob = attachment.blob.clone();
    // A client sees what it has just sent before a prompt names it.
    let get = FrontendRequest::GetBlob { session, blob: blob.clone() };
    assert!(matches!(host.request(&caller, get).await, Ok(HostResponse::Bytes { .. })));
    let mut client = SessionClient::watch(host, caller, session).await;
    let SessionOp::Prompt { text, delivery, settings, .. } = SessionOp::prompt("look") else {
        panic!("a prompt")
    };
    let attachments = vec![attachment];
    client.submit(SessionOp::Prompt { text, attachments, delivery, settings }).await.unwrap();
    client.wait_for_turn_end().await;
    (client, blob)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_sessions_in_other_folders_do_not_exist() {
    let env = TestEnv::new(&["say One", "say Two", "say Three"], "");
    let other = env.home().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let other = other.canonicalize().unwrap().display().to_string();
    let server = TestServer::start(&env, &["--root", &other]);
    let (foreign, foreign_blob) = session_with_file(&env, &other, "foreign").await;
    let foreign = foreign.session;
    assert_eq!(server.stop(), Some(0));

    let server = TestServer::start(&env, &[]);
    let own_folder = env.root().canonicalize().unwrap().display().to_string();
    let (client, own_blob) = session_with_file(&env, &own_folder, "own").await;
    let (own, caller) = (client.session, client.caller.clone());
    drop(client);
    assert_eq!(server.stop(), Some(0));
    // What clients have sent is forgotten with the process.
    let _server = TestServer::start(&env, &[]);
    let host = connect(&env).await;
    let lost = BlobRef::for_bytes(b"never stored");
    for (session, blob, exists) in [
        (own, &own_blob, true),
        (own, &foreign_blob, false),
        (own, &lost, false),
        (foreign, &foreign_blob, false),
        (foreign, &own_blob, false),
    ] {
        let get = FrontendRequest::GetBlob { session, blob: blob.clone() };
        let (width, height) = (5, 5);
        let thumbnail = FrontendRequest::Thumbnail { session, blob: blob.clone(), width, height };
        for request in [get, thumbnail] {
            let answer = host.request(&caller, request.clone()).await;
            let is_missing = matches!(answer, Err(RequestError::NotFound { .. }));
            assert_eq!(is_missing, !exists, "{request:?}: {answer:?}");
        }
    }
    // A prompt would show a file to the model, and so to the client.
    host.request(&caller, FrontendRequest::OpenSession { session: own, resume: true })
        .await
        .unwrap();
    let client = SessionClient::watch(host, caller, own).await;
    for (blob, may_attach) in [(foreign_blob, false), (lost, false), (own_blob, true)] {
        let SessionOp::Prompt { text, delivery, settings, .. } = SessionOp::prompt("look") else {
            panic!("a prompt")
        };
        let (name, mime_type) = ("b.png".to_owned(), "image/png".to_owned());
        let attachments = vec![Attachment { name, mime_type, blob }];
        let op = SessionOp::Prompt { text, attachments, delivery, settings };
        let answer = client.submit(op).await;
        match may_attach {
            true => assert!(answer.is_ok(), "{answer:?}"),
            false => assert!(
                matches!(&answer, Err(OpError::Invalid { text })
                if text == "`b.png` is no longer in the server. Attach it again"),
                "{answer:?}"
            ),
        }
    }
}
