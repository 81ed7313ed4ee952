//! Tenants of a fleet, their users and tokens, and the commands of its operator.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{PATIENCE, soon};
use crate::test_fleet::{TestFleet, TestNode, wait_until};
use std::time::Instant;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{
    AccessRight, ClientInfo, ClientKind, Fact, FactRecord, OpId, QueryReply, RequestError,
    SessionId, SessionOp, SessionQuery, TurnEndReason,
};
use windlass_server::{Caller, FrontendService, RemoteHost, ServerAddress, WatchOptions};

/// A user of a tenant, who connects with a token.
struct User {
    token: String,
    /// What a client claims to be counts for nothing.
    caller: Caller,
}

impl User {
    async fn connect(&self, node: &TestNode) -> RemoteHost {
        let url = format!("http://{}", node.server.tcp_address()).parse().unwrap();
        let address = ServerAddress::Url(url, self.token.clone().into());
        soon(RemoteHost::connect(address)).await.unwrap()
    }

    async fn request(
        &self,
        node: &TestNode,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        soon(self.connect(node).await.request(&self.caller, request)).await
    }

    async fn start_session(&self, node: &TestNode) -> SessionClient {
        let opened = self.request(node, FrontendRequest::new_session(None)).await.unwrap();
        let HostResponse::SessionOpened { session, .. } = opened else { panic!("{opened:?}") };
        SessionClient::watch(self.connect(node).await, self.caller.clone(), session).await
    }

    async fn sessions(&self, node: &TestNode) -> Vec<SessionId> {
        let query = SessionQuery::Sessions { workspace: None };
        let reply = self.request(node, FrontendRequest::Query { query }).await.unwrap();
        let HostResponse::Reply { reply: QueryReply::Sessions { sessions } } = reply else {
            panic!("{reply:?}")
        };
        sessions.into_iter().map(|summary| summary.session).collect()
    }
}

/// Runs `windlass fleet`, and returns what it prints and whether it succeeded.
fn try_operate(fleet: &TestFleet, arguments: &[&str]) -> (String, String, bool) {
    let env = TestEnv::new(&[], "");
    let url = fleet.database.url("fleet");
    let output =
        env.windlass(&[&["fleet", "--database", &url], arguments].concat()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.success())
}

#[track_caller]
fn operate(fleet: &TestFleet, arguments: &[&str]) -> String {
    let (stdout, stderr, is_success) = try_operate(fleet, arguments);
    assert!(is_success, "{arguments:?}: {stderr}");
    stdout
}

/// Adds a tenant that works in the project, with a user.
fn add_tenant(fleet: &TestFleet, tenant: &str, user: &str) -> User {
    let (project, name) = (fleet.project(), format!("{tenant}/{user}"));
    operate(fleet, &["tenant", "add", tenant, "--root", project.to_str().unwrap()]);
    operate(fleet, &["user", "add", &name]);
    let token = operate(fleet, &["token", "add", &name, "laptop"]).trim().to_owned();
    let client = ClientInfo { name: "admin".to_owned(), kind: ClientKind::Program };
    let right = AccessRight::Admin;
    let caller = Caller { client, right, workspace: None, through_node: true, tenant: None };
    User { token, caller }
}

fn migrated(replies: &[&str]) -> TestFleet {
    let fleet = TestFleet::start(replies);
    operate(&fleet, &["migrate"]);
    fleet
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn users_of_two_tenants_in_one_folder_see_nothing_of_each_other() {
    let fleet = migrated(&["say Half.\nonce gate slow\nsay The rest."]);
    let (anna, ben) = (add_tenant(&fleet, "red", "anna"), add_tenant(&fleet, "blue", "ben"));
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = anna.start_session(&first).await;
    let session = owner.session;
    owner.submit(SessionOp::prompt("a secret")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    for node in [&first, &second] {
        assert_eq!(anna.sessions(node).await, [session]);
        assert!(ben.sessions(node).await.is_empty());
        let open = ben.request(node, FrontendRequest::ListOpenSessions).await.unwrap();
        assert!(matches!(&open, HostResponse::OpenSessions { sessions } if sessions.is_empty()));
        let host = ben.connect(node).await;
        let watched = soon(host.watch_session(&ben.caller, session, WatchOptions::default())).await;
        assert!(matches!(watched, Err(RequestError::NotFound { .. })));
        for request in [
            FrontendRequest::SessionOp {
                session,
                id: Some(OpId(uuid::Uuid::now_v7())),
                op: SessionOp::prompt("x"),
            },
            FrontendRequest::OpenSession { session, resume: true },
            FrontendRequest::CloseSession { session },
            FrontendRequest::ForkSession { session, turn: None },
            FrontendRequest::DeleteSession { session },
            FrontendRequest::RenameSession { session, title: "x".into() },
            FrontendRequest::Query {
                query: SessionQuery::Events { session, after: 0, limit: None },
            },
        ] {
            let answer = ben.request(node, request.clone()).await;
            let is_unknown = matches!(
                answer,
                Err(RequestError::NotFound { .. } | RequestError::Forbidden { .. })
            ) || matches!(
                &answer,
                Err(RequestError::Failed { fault }) if fault.to_string().contains("not found")
            );
            assert!(is_unknown, "{request:?}: {answer:?}");
        }
        // Clients without a tenant have sessions of their own, too.
        let list = FrontendRequest::Query { query: SessionQuery::Sessions { workspace: None } };
        let own = soon(node.host().await.request(&node.caller("root"), list)).await.unwrap();
        let HostResponse::Reply { reply: QueryReply::Sessions { sessions } } = own else {
            panic!("{own:?}")
        };
        assert!(sessions.is_empty());
    }
    // Another node sends operations on in the name of the user.
    let (host, caller) = (anna.connect(&second).await, anna.caller.clone());
    let mut through = SessionClient::watch(host, caller, session).await;
    through.submit(SessionOp::RenameSession { title: "t".into() }).await.unwrap();
    let author = fleet.execute(
        "SELECT origin::json -> 'client' ->> 'name' FROM event WHERE kind = 'session_renamed'",
    );
    assert_eq!(author, "anna");
    // And goes on with the turn for the tenant.
    first.server.kill();
    through.wait_for_turn_end().await;
    assert_eq!(
        fleet.execute("SELECT DISTINCT tenant.name FROM session JOIN tenant ON tenant.id = tenant"),
        "red"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn tokens_end_within_seconds_when_they_their_user_or_their_tenant_do() {
    let fleet = migrated(&["say One."]);
    let anna = add_tenant(&fleet, "red", "anna");
    let node = fleet.start_node();
    let mut client = anna.start_session(&node).await;
    client.submit(SessionOp::prompt("hello")).await.unwrap();
    client.wait_for_turn_end().await;
    let is_accepted = async || {
        let url = format!("http://{}", node.server.tcp_address()).parse().unwrap();
        let address = ServerAddress::Url(url, anna.token.clone().into());
        soon(RemoteHost::connect(address)).await.is_ok()
    };
    let wait_for = async |expected: bool, what: &str| {
        let start = Instant::now();
        while is_accepted().await != expected {
            assert!(start.elapsed() < PATIENCE, "{what}");
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert!(start.elapsed().as_secs() < 8, "{what}: {:?}", start.elapsed());
    };
    operate(&fleet, &["user", "disable", "red/anna"]);
    // The stream ends, too.
    while !matches!(client.next_item().await, SessionStreamItem::Closing(_)) {}
    wait_for(false, "a disabled user").await;
    operate(&fleet, &["user", "enable", "red/anna"]);
    wait_for(true, "an enabled user").await;
    let open = || fleet.execute("SELECT count(*) FROM session WHERE node IS NOT NULL");
    assert_eq!(open(), "1");
    operate(&fleet, &["tenant", "disable", "red"]);
    wait_for(false, "a disabled tenant").await;
    wait_until("the sessions of a disabled tenant are closed", || open() == "0");
    operate(&fleet, &["tenant", "enable", "red"]);
    wait_for(true, "an enabled tenant").await;
    operate(&fleet, &["token", "revoke", "red/anna", "laptop"]);
    wait_for(false, "a revoked token").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn users_change_nothing_that_belongs_to_the_operator() {
    let fleet = migrated(&[]);
    let anna = add_tenant(&fleet, "red", "anna");
    let node = fleet.start_node();
    let address = node.server.tcp_address();
    let get = |path: &str| {
        let curl = std::process::Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-w", "%{http_code}"])
            .args(["-H", &format!("Authorization: Bearer {}", anna.token)])
            .arg(format!("http://{address}{path}"))
            .output()
            .unwrap();
        String::from_utf8(curl.stdout).unwrap()
    };
    assert_eq!(get("/v1/status"), "200");
    for path in ["/v1/tokens", "/metrics"] {
        assert_eq!(get(path), "403", "{path}");
    }
    let setting = FrontendRequest::SetDefaultModel { model: "x/y".into() };
    let answer = anna.request(&node, setting).await;
    assert!(matches!(answer, Err(RequestError::Forbidden { .. })), "{answer:?}");
    // A token of a user that may only read.
    operate(&fleet, &["user", "add", "red/anna", "--right", "read"]);
    wait_until("the right has changed", || {
        fleet.execute("SELECT access_right FROM fleet_user") == "read"
    });
    let start = Instant::now();
    loop {
        let answer = anna.request(&node, FrontendRequest::new_session(None)).await;
        if matches!(answer, Err(RequestError::Forbidden { .. })) {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(anna.sessions(&node).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_operator_reads_which_user_answered_what() {
    let ask = r#"call question {"questions": [{"question": "Which color?", "header": "h",
        "options": [{"label": "blue", "description": "d"}, {"label": "red", "description": "d"}]}]}"#;
    let fleet = migrated(&[&ask.replace('\n', " "), "say Thanks."]);
    let anna = add_tenant(&fleet, "red", "anna");
    add_tenant(&fleet, "blue", "ben");
    let node = fleet.start_node();
    let mut client = anna.start_session(&node).await;
    client.submit(SessionOp::prompt("hello")).await.unwrap();
    let is_question = |record: &FactRecord| match &record.fact {
        Fact::QuestionAsked { call, .. } => Some(*call),
        _ => None,
    };
    let call = client.wait_for_fact(is_question).await;
    let answer = SessionOp::answer_question(call, vec![vec!["blue".to_owned()]]);
    client.submit(answer).await.unwrap();
    client.wait_for_turn_end().await;
    let line = operate(&fleet, &["audit"]);
    let expected = format!("red/anna  {}  answered `blue`: Which color?", client.session);
    assert!(line.contains(&expected), "{line}");
    assert_eq!(operate(&fleet, &["audit", "blue"]), "");
    let json: serde_json::Value =
        serde_json::from_str(&operate(&fleet, &["audit", "red", "--json"])).unwrap();
    assert_eq!(json[0]["client"]["name"], "anna");
    assert_eq!(json[0]["answer"]["answers"][0][0], "blue");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_limits_of_a_tenant_hold_on_all_nodes_together() {
    const MAX_STEPS: usize = 30;
    let replies: Vec<String> = (0..300)
        .map(|number| format!(r#"call bash {{"command": "echo {number}", "description": "d"}}"#))
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let fleet = migrated(&replies);
    let (anna, ben) = (add_tenant(&fleet, "red", "anna"), add_tenant(&fleet, "blue", "ben"));
    operate(&fleet, &["tenant", "set", "red", "--max-steps-per-day", &MAX_STEPS.to_string()]);
    operate(&fleet, &["tenant", "set", "red", "--max-open-sessions", "2"]);
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let (mut one, mut two) = (anna.start_session(&first).await, anna.start_session(&second).await);
    for client in [&one, &two] {
        client.submit(SessionOp::prompt("work")).await.unwrap();
    }
    let is_limited = |record: &FactRecord| match &record.fact {
        Fact::TurnEnded { end: TurnEndReason::LimitReached { limit }, .. } => Some(limit.clone()),
        Fact::TurnEnded { end, .. } => panic!("{end:?}"),
        _ => None,
    };
    for client in [&mut one, &mut two] {
        let limit = client.wait_for_fact(is_limited).await;
        assert_eq!(limit, format!("the limit of {MAX_STEPS} requests per day of the tenant red"));
    }
    let requests = fleet.model.requests().len();
    let used = "SELECT sum(steps), max(steps) FROM usage JOIN tenant ON id = tenant
                WHERE name = 'red'";
    let used = || {
        let sums = fleet.execute(used);
        let (sum, most) = sums.split_once('|').unwrap();
        (sum.parse::<usize>().unwrap_or(0), most.parse::<usize>().unwrap_or(0))
    };
    wait_until("the usage is stored", || used().0 == requests);
    println!("figure: {MAX_STEPS} requests allowed, {requests} made, {} by one node", used().1);
    // Each node knows its own requests, and those of the other until two seconds ago.
    assert!(requests >= MAX_STEPS && used().1 <= MAX_STEPS, "{requests}");
    // The next prompt has no request left, wherever it is sent.
    one.submit(SessionOp::prompt("more")).await.unwrap();
    one.wait_for_fact(is_limited).await;
    assert_eq!(fleet.model.requests().len(), requests);
    // A third session is one too many, until the limit is changed.
    let third = anna.request(&first, FrontendRequest::new_session(None)).await;
    let Err(RequestError::TooMany { text, .. }) = &third else { panic!("{third:?}") };
    assert!(text.contains("the tenant has 2 sessions open"), "{text}");
    operate(&fleet, &["tenant", "set", "red", "--max-open-sessions", "none"]);
    let start = Instant::now();
    while anna.request(&first, FrontendRequest::new_session(None)).await.is_err() {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    // Other tenants are not concerned.
    let other = ben.start_session(&first).await;
    other.submit(SessionOp::prompt("work")).await.unwrap();
    wait_until("the other tenant works", || {
        let used = "SELECT count(*) FROM usage JOIN tenant ON id = tenant WHERE name = 'blue'";
        fleet.execute(used) == "1"
    });
    let listed = operate(&fleet, &["tenant", "list"]);
    let red = listed.lines().find(|line| line.starts_with("red")).unwrap();
    let used = format!("{requests} requests today, at most {MAX_STEPS} requests per day");
    assert!(red.contains(&used), "{red}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn an_operator_sees_the_nodes_and_drains_one() {
    let fleet = TestFleet::start(&["say Half.\nonce gate slow\nsay The rest."]);
    // Nothing works before the tables exist, and the message says what to do.
    let (_, error, is_success) = try_operate(&fleet, &["status"]);
    assert!(!is_success && error.contains("windlass fleet migrate"), "{error}");
    let (first, second) = (fleet.start_node(), fleet.start_node());
    let owner = first.start_session().await;
    owner.submit(SessionOp::prompt("hello")).await.unwrap();
    fleet.model.wait_at_gate("slow");
    let status = operate(&fleet, &["status"]);
    assert_eq!(status.lines().filter(|line| line.starts_with("node ")).count(), 2, "{status}");
    assert!(status.contains("1 of 64 sessions open"), "{status}");
    assert!(status.contains("sessions: 1 open, 0 idle"), "{status}");
    assert!(status.contains("database: no standby"), "{status}");
    let json: serde_json::Value =
        serde_json::from_str(&operate(&fleet, &["status", "--json"])).unwrap();
    let nodes = json["nodes"].as_array().unwrap();
    let busy = nodes.iter().find(|node| node["sessions"] == 1).unwrap();
    let id = busy["id"].as_str().unwrap();
    let metrics = first.metrics();
    for line in [
        "windlass_fleet_append_seconds_count{flushed=\"true\"} ",
        "windlass_fleet_opened_claims_total 1",
        "windlass_fleet_due_sessions 0",
        "windlass_fleet_connections{state=\"limit\"} 16",
        "windlass_fleet_fenced_appends_total 0",
    ] {
        assert!(metrics.lines().any(|found| found.starts_with(line)), "{line}: {metrics}");
    }
    let lease = metrics.lines().find_map(|line| line.strip_prefix("windlass_fleet_lease_seconds "));
    assert!((1.0..=15.0).contains(&lease.unwrap().parse::<f64>().unwrap()), "{lease:?}");
    let mut watching = second.watch(owner.session).await;
    operate(&fleet, &["drain", &id[..8]]);
    let mut process = first.server;
    assert_eq!(process.wait(), Some(0));
    watching.wait_for_turn_end().await;
    let takeover = "windlass_fleet_takeover_seconds_count 1";
    assert!(second.metrics().lines().any(|line| line == takeover), "{}", second.metrics());
    wait_until("one node is left", || fleet.node_count() == 1);
    let (_, error, is_success) = try_operate(&fleet, &["drain", "zzz"]);
    assert!(!is_success && error.contains("there is no node zzz"), "{error}");
    for (arguments, message) in [
        (&["tenant", "disable", "none"][..], "there is no tenant none"),
        (&["user", "add", "none/anna"], "there is no tenant none"),
        (&["user", "add", "anna"], "TENANT/USER"),
        (&["user", "disable", "default/none"], "there is no user default/none"),
        (&["token", "add", "default/none", "x"], "there is no user default/none"),
        (&["token", "revoke", "default/none", "x"], "has no token x"),
        (&["tenant", "add", "default", "--root", "/x"], "a tenant default exists"),
        (&["tenant", "add", "a b", "--root", "/x"], "a name has up to 64"),
        (&["tenant", "set", "default"], "required"),
        (&["tenant", "set", "none", "--max-cost-per-day", "5"], "there is no tenant none"),
        (&["tenant", "set", "default", "--max-open-sessions", "x"], "a number, or `none`"),
    ] {
        let (_, error, is_success) = try_operate(&fleet, arguments);
        assert!(!is_success && error.contains(message), "{arguments:?}: {error}");
    }
    operate(&fleet, &["user", "add", "default/anna"]);
    operate(&fleet, &["token", "add", "default/anna", "x", "--days", "3"]);
    let (_, error, _) = try_operate(&fleet, &["token", "add", "default/anna", "x"]);
    assert!(error.contains("has a token x"), "{error}");
    assert!(operate(&fleet, &["token", "list"]).contains("expires in 3 d"));
    assert!(operate(&fleet, &["user", "list", "default"]).contains("1 token"));
    assert!(operate(&fleet, &["tenant", "list"]).contains("all folders"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn the_policy_of_a_tenant_tightens_its_sessions_and_no_others() {
    let command = r#"call bash {"command": "echo ran", "description": "d"}"#;
    let fleet = migrated(&[command, "say Done."].repeat(200));
    let (anna, ben) = (add_tenant(&fleet, "red", "anna"), add_tenant(&fleet, "blue", "ben"));
    let node = fleet.start_node();
    let run = async |client: &mut SessionClient| {
        client.submit(SessionOp::prompt("work")).await.unwrap();
        client.wait_for_turn_end().await;
        let settled = client.facts.iter().rev().find(|record| record.fact.kind() == "call_settled");
        serde_json::to_string(&settled.unwrap().fact).unwrap()
    };
    let mut one = anna.start_session(&node).await;
    assert!(run(&mut one).await.contains("ran"));

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.jsonc");
    let file = file.to_str().unwrap();
    for broken in [r#"{"permission": {"bash": "perhaps"}}"#, r#"{"model": "a/b"}"#, "{"] {
        std::fs::write(file, broken).unwrap();
        let (_, errors, is_done) = try_operate(&fleet, &["tenant", "set", "red", "--policy", file]);
        assert!(!is_done && errors.contains("policy"), "{broken}: {errors}");
    }
    std::fs::write(file, r#"{"permission": {"bash": "deny"}, /* team */ "mode": "auto"}"#).unwrap();
    operate(&fleet, &["tenant", "set", "red", "--policy", file]);
    // The session is closed and opened again, with the policy.
    let started = Instant::now();
    let denied = loop {
        let outcome = run(&mut one).await;
        if !outcome.contains("ran") {
            break outcome;
        }
        assert!(started.elapsed() < PATIENCE, "{outcome}");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    };
    assert!(denied.contains("not permitted") || denied.contains("bash"), "{denied}");
    let mut other = ben.start_session(&node).await;
    assert!(run(&mut other).await.contains("ran"), "another tenant is not concerned");
    let listed = operate(&fleet, &["tenant", "list"]);
    assert!(listed.lines().any(|line| line.starts_with("red") && line.contains("with a policy")));
    operate(&fleet, &["tenant", "set", "red", "--policy", "none"]);
    let listed = operate(&fleet, &["tenant", "list"]);
    assert!(!listed.contains("with a policy"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_tenant_with_an_api_key_uses_it_and_the_database_cannot_read_it() {
    let fleet = migrated(&["say One.", "say Two.", "say Three.", "say Four."]);
    let (anna, ben) = (add_tenant(&fleet, "red", "anna"), add_tenant(&fleet, "blue", "ben"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (old, new) = (
        "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=",
        "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI=",
    );
    let keys = file("keys", old);
    let set = |keys: &str| {
        let env = TestEnv::new(&[], "");
        let url = fleet.database.url("fleet");
        let mut command = env.windlass(&[
            "fleet",
            "--database",
            &url,
            "key",
            "set",
            "red",
            "scripted",
            "--key-file",
            keys,
        ]);
        command.stdin(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"sk-of-red\n").unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
    };
    set(&keys);
    let stored = fleet.execute("SELECT encode(sealed, 'escape') FROM provider_key");
    assert!(!stored.is_empty() && !stored.contains("sk-of-red"), "{stored}");

    let node = fleet.start_node_with(&["--listen", "127.0.0.1:0", "--key-file", &keys]);
    let used_key = || {
        let heads = fleet.model.request_heads();
        heads.last().unwrap().header("authorization").unwrap().to_owned()
    };
    for (user, key) in [(&anna, "Bearer sk-of-red"), (&ben, "Bearer k")] {
        let mut client = user.start_session(&node).await;
        client.submit(SessionOp::prompt("hello")).await.unwrap();
        client.wait_for_turn_end().await;
        assert_eq!(used_key(), key);
    }
    // A node that cannot open the key does not use another one instead.
    let other = fleet.start_node();
    other.server.wait_for("the tenant red is not served: it has API keys, which need `--key-file`");
    let refused = anna.request(&other, FrontendRequest::new_session(None)).await;
    assert!(matches!(refused, Err(RequestError::Unavailable { .. })), "{refused:?}");

    // Another key seals, and the one before is not needed any more.
    let both = file("both", &format!("{new}\n{old}\n"));
    let text = operate(&fleet, &["key", "reseal", "--key-file", &both]);
    assert!(text.is_empty(), "{text}");
    let keys = file("new", new);
    let node = fleet.start_node_with(&["--listen", "127.0.0.1:0", "--key-file", &keys]);
    let mut client = anna.start_session(&node).await;
    client.submit(SessionOp::prompt("hello")).await.unwrap();
    client.wait_for_turn_end().await;
    assert_eq!(used_key(), "Bearer sk-of-red");
    assert!(!node.server.stderr().contains("sk-of-red"));

    operate(&fleet, &["key", "remove", "red", "scripted"]);
    other.server.wait_for("serving ");
    let start = Instant::now();
    while anna.request(&other, FrontendRequest::new_session(None)).await.is_err() {
        assert!(start.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
