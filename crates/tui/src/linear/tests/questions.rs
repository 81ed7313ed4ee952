//! Tests of questions in the linear mode: permissions, user questions, undo, sessions and trust.

use super::*;
use windlass_protocol::frontend_messages::TrustState;
use windlass_protocol::session_stream::OpenSessionState;
use windlass_protocol::{
    ClientInfo, ClientKind, DiffDirection, FactOrigin, Fault, OpId, PermissionMode, PromptDelivery,
    PromptId, QueryReply, QuestionOption, SessionQuery, SessionSummary, TrustDecision, TrustReview,
    UndoScope, UserQuestion,
};

const CHILD: SessionId = SessionId(Uuid::from_u128(9));
const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n fn area() {\n-    w + h\n\
                    +    w * h\n }\n";

fn option(label: &str, description: &str) -> QuestionOption {
    QuestionOption { label: label.into(), description: description.into() }
}

fn storage_question() -> UserQuestion {
    UserQuestion {
        header: "Store".into(),
        question: "Where are they kept?".into(),
        options: vec![option("SQLite", "one file"), option("Postgres", "")],
        allow_multiple: false,
        allow_custom: false,
        asker: None,
        is_permission: false,
    }
}

fn checks_question() -> UserQuestion {
    UserQuestion {
        header: "Checks".into(),
        question: "What is to be checked?".into(),
        options: vec![option("tests", ""), option("clippy", ""), option("fuzzing", "slow")],
        allow_multiple: true,
        allow_custom: true,
        asker: None,
        is_permission: false,
    }
}

fn with_questions(questions: Vec<UserQuestion>) -> TestLinearUi {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::QuestionAsked { call: CALL, questions });
    env
}

fn sent_answers(env: &TestLinearUi) -> Option<Vec<Vec<String>>> {
    match env.sent.last() {
        Some(FrontendRequest::SessionOp {
            id: None,
            session: SESSION,
            op: SessionOp::AnswerQuestion { call: CALL, answers, asked: None },
        }) => Some(answers.clone()),
        _ => None,
    }
}

fn edit_asked(preview: &str) -> Fact {
    Fact::PermissionAsked {
        danger: Default::default(),
        call: CALL,
        accesses: vec![ToolAccess::Edit { path: "src/lib.rs".into() }],
        reason: "no rule allows it".into(),
        preview: Some(preview.into()),
        approval_kind: None,
        repair: None,
    }
}

#[test]
fn questions_are_answered_by_number_or_free_text() {
    let mut env = with_questions(vec![storage_question(), checks_question()]);
    env.assert_lines(expect![[r#"
        question: The model asks, 1 of 2
          Store: Where are they kept?
        choices:
          1. SQLite: one file
          2. Postgres
        Answer with a number; n for no answer
    "#]]);
    for line in ["3", "0", "x", "1 2"] {
        env.enter_line(line);
        assert_eq!(sent_answers(&env), None, "{line}");
    }
    env.enter_line("2");
    env.assert_lines(expect![[r#"
        Invalid answer; nothing was sent. Press Enter to read the question again.
        Invalid answer; nothing was sent. Press Enter to read the question again.
        Invalid answer; nothing was sent. Press Enter to read the question again.
        Invalid answer; nothing was sent. Press Enter to read the question again.
        question: The model asks, 2 of 2
          Checks: What is to be checked?
        choices:
          1. tests
          2. clippy
          3. fuzzing: slow
        Answer with one or more numbers, or in your own words; n for no answer
    "#]]);
    env.enter_line("3, 1");
    assert_eq!(sent_answers(&env).unwrap(), [vec!["Postgres"], vec!["tests", "fuzzing"]]);
    env.fact(Fact::QuestionAnswered { call: CALL, answers: Vec::new() });
    assert!(env.lines.is_empty(), "{:?}", env.lines);
    let mut env = with_questions(vec![checks_question()]);
    env.enter_line("only what is new");
    assert_eq!(sent_answers(&env).unwrap(), [["only what is new"]]);
    let mut env = with_questions(vec![checks_question()]);
    env.enter_line("n");
    assert_eq!(
        sent_answers(&env).unwrap(),
        [Vec::<String>::new()],
        "skipping a question sends an empty answer"
    );
}

#[test]
fn a_plan_is_printed_in_full() {
    let steps: String = (1..=20).map(|n| format!("{n}. step\n")).collect();
    let question = format!("# Speed\n\n{steps}\nCarry the plan out?");
    let options =
        vec![option("auto", "yes"), option("ask", "yes, and ask"), option("no", "keep planning")];
    let mut env = with_questions(vec![UserQuestion {
        header: "Plan".into(),
        question,
        options,
        allow_multiple: false,
        allow_custom: true,
        asker: None,
        is_permission: false,
    }]);
    let output = env.lines.join("\n");
    assert!(output.starts_with("question: Carry out this plan?\n  # Speed\n"), "{output}");
    assert!(
        output.contains("  20. step\n") && output.contains("\n  3. no: keep planning\n"),
        "{output}"
    );
    env.enter_line("2");
    assert_eq!(sent_answers(&env).unwrap(), [["ask"]]);
}

#[test]
fn a_diff_is_described_in_words() {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(edit_asked(DIFF));
    env.assert_lines(expect![[r#"
        question: Edit a file?
          src/lib.rs: 1 line added, 1 removed
          line 1: fn area() {
          removed 2:     w + h
          added 2:     w * h
          line 3: }
        why: no rule allows it
        Answer y to allow once; s to allow edits to `src/lib.rs` this session; p to always allow edits to `src/lib.rs` in this project
        n to deny; n and a reason to tell the model why; all to read the full request
    "#]]);
}

#[test]
fn a_long_diff_is_printed_in_full_on_request() {
    let mut env = TestLinearUi::with_running_turn();
    let lines: String = (1..=30).map(|n| format!("+line {n}\n")).collect();
    env.fact(edit_asked(&format!("--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1,30 @@\n{lines}")));
    let output = std::mem::take(&mut env.lines).join("\n");
    assert!(output.contains("\n(19 more lines)\n") && !output.contains("line 30"), "{output}");
    env.enter_line("all");
    let output = std::mem::take(&mut env.lines).join("\n");
    assert!(output.contains("added 30: line 30") && env.sent.is_empty(), "{output}");
}

#[test]
fn leaving_the_sandbox_shows_a_warning_and_can_be_allowed_only_once() {
    let mut env = TestLinearUi::with_running_turn();
    let command = "docker ps".to_owned();
    let accesses = vec![
        ToolAccess::RunCommand { command: command.clone(), folder: ".".into() },
        ToolAccess::LeaveSandbox { command },
    ];
    env.fact(Fact::PermissionAsked {
        danger: Default::default(),
        call: CALL,
        accesses,
        reason: "it would run outside".into(),
        preview: None,
        approval_kind: Some(windlass_protocol::ApprovalKind::Commands {
            pattern: "docker *".into(),
        }),
        repair: None,
    });
    env.assert_lines(expect![[r#"
        question: Run outside the sandbox?
        This command runs outside the sandbox, with full access to your account.
          docker ps
        why: it would run outside
        Answer y to allow once
        n to deny; n and a reason to tell the model why; all to read the full request
    "#]]);
    for line in ["s", "p", "k", "kp"] {
        env.enter_line(line);
    }
    assert!(env.sent.is_empty(), "{:?}", env.sent);
}

#[test]
fn a_subagent_is_answered_through_its_parent_session() {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::SubagentStarted {
        call: CALL,
        session: CHILD,
        agent: "explore".into(),
        after: 0,
    });
    env.lines.clear();
    let subagent_call = CallId(Uuid::from_u128(20));
    let fact = Fact::PermissionAsked {
        danger: Default::default(),
        call: subagent_call,
        accesses: vec![ToolAccess::Fetch { host: "docs.rs".into() }],
        reason: "no rule allows it".into(),
        preview: None,
        approval_kind: None,
        repair: None,
    };
    env.fact_in_session(CHILD, fact);
    env.assert_lines(expect![[r#"
        question: Fetch from docs.rs?
        why: no rule allows it
        who: explore
        Answer y to allow once; s to allow fetching from `docs.rs` this session; p to always allow fetching from `docs.rs` in this project
        n to deny; n and a reason to tell the model why; all to read the full request
    "#]]);
    env.enter_line("yes");
    let op = SessionOp::AnswerPermission {
        call: subagent_call,
        answer: PermissionAnswer::Once,
        asked: None,
    };
    assert_eq!(env.sent, [FrontendRequest::SessionOp { id: None, session: SESSION, op }]);
}

#[test]
fn questions_come_one_at_a_time_and_end_with_the_turn() {
    let mut env = TestLinearUi::with_running_turn();
    env.ask_permission();
    let second_call = CallId(Uuid::from_u128(30));
    env.fact(Fact::PermissionAsked {
        danger: Default::default(),
        call: second_call,
        accesses: vec![ToolAccess::UseTool { tool: "git_commit".into() }],
        reason: "no rule allows it".into(),
        preview: None,
        approval_kind: None,
        repair: None,
    });
    env.enter_line("y");
    let output = std::mem::take(&mut env.lines).join("\n");
    assert!(output.contains("1 more question after this one\n"), "{output}");
    assert!(output.contains("question 2 of 2: Use the tool git_commit?"), "{output}");
    env.fact(Fact::TurnInterrupted { turn: 1 });
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Interrupted });
    env.assert_lines(expect![[r#"
        The previous question no longer needs an answer.
        stopped
        ready
    "#]]);
    env.enter_line("y");
    let last = env.sent.last();
    assert_eq!(
        last,
        Some(&FrontendRequest::SessionOp {
            id: None,
            session: SESSION,
            op: SessionOp::prompt("y")
        })
    );
}

#[test]
fn a_stopped_session_asks_no_more_questions() {
    let mut env = TestLinearUi::with_running_turn();
    env.ask_permission();
    env.lines.clear();
    let fault = Fault::Storage { message: "the disk is full".into() };
    env.update(LinearUiEvent::HostMessage(Box::new(HostMessage::SessionStopped {
        session: SESSION,
        fault,
    })));
    env.assert_lines(expect![[r#"
        session log failure: the disk is full. Free some disk space or close the other windlass process, then use /sessions to open the session again.
        The previous question no longer needs an answer.
    "#]]);
    env.enter_line("y");
    let is_answer = |request: &FrontendRequest| {
        matches!(request, FrontendRequest::SessionOp { op: SessionOp::AnswerPermission { .. }, .. })
    };
    assert!(!env.sent.iter().any(is_answer), "{:?}", env.sent);
}

#[test]
fn an_answer_that_failed_is_requested_again() {
    let mut env = TestLinearUi::with_running_turn();
    env.ask_permission();
    env.enter_line("y");
    env.lines.clear();
    let response = Err(Fault::Internal { message: "gone".into() });
    env.update(LinearUiEvent::HostMessage(Box::new(HostMessage::Response {
        id: env.last_request_id,
        response,
    })));
    let output = env.lines.join("\n");
    assert!(output.contains("gone") && output.contains("question: Run a command?"), "{output}");
}

#[test]
fn an_undo_is_previewed_and_confirmed_once() {
    let mut env = TestLinearUi::with_running_turn();
    env.fact(Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed });
    env.lines.clear();
    let changes =
        HostResponse::Reply { reply: QueryReply::Changes { facts: vec![7], diff: DIFF.into() } };
    env.enter_line("/undo");
    let query = SessionQuery::Changes {
        session: SESSION,
        scope: UndoScope::LastTurn,
        direction: DiffDirection::Reverse,
    };
    assert_eq!(env.sent, [FrontendRequest::Query { query }]);
    env.answer(changes.clone());
    env.enter_line("hm");
    env.assert_lines(expect![[r#"
          src/lib.rs: 1 line added, 1 removed
          line 1: fn area() {
          removed 2:     w + h
          added 2:     w * h
          line 3: }
        Answer y to do this; anything else changes nothing.
        Canceled: nothing was changed, and nothing was sent to the model.
    "#]]);
    assert_eq!(env.sent.len(), 1, "{:?}", env.sent);
    env.enter_line("/undo");
    env.answer(changes.clone());
    env.enter_line("/cost");
    env.enter_line("y");
    let prompt =
        FrontendRequest::SessionOp { id: None, session: SESSION, op: SessionOp::prompt("y") };
    assert_eq!(env.sent.last(), Some(&prompt), "another command cancels the pending undo");
    env.enter_line("/undo");
    env.answer(changes);
    env.enter_line("y");
    let undo = FrontendRequest::SessionOp {
        id: None,
        session: SESSION,
        op: SessionOp::Undo { facts: vec![7] },
    };
    assert_eq!(env.sent.last(), Some(&undo));
    env.fact(Fact::ToolCalled {
        description: crate::test_call_descriptions::describe(
            windlass_protocol::file_history::UNDO_TOOL,
            "{}",
        ),
        call: CALL,
        provider_call_id: String::new(),
        tool: windlass_protocol::file_history::UNDO_TOOL.into(),
        arguments: "{}".into(),
        author: CallAuthor::User,
        repair: Vec::new(),
        provider_signature: None,
    });
    env.lines.clear();
    env.fact(edit_asked(DIFF));
    let op =
        SessionOp::AnswerPermission { call: CALL, answer: PermissionAnswer::Once, asked: None };
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SessionOp { id: None, session: SESSION, op })
    );
    assert!(env.lines.is_empty(), "{:?}", env.lines);
    env.enter_line("/undo");
    let no_changes = QueryReply::Changes { facts: Vec::new(), diff: String::new() };
    env.answer(HostResponse::Reply { reply: no_changes });
    env.assert_lines(expect![[r#"
        No changes.
    "#]]);
}

#[test]
fn an_answer_of_another_client_names_it() {
    let mut env = TestLinearUi::with_running_turn();
    env.ask_permission();
    env.lines.clear();
    let client = ClientInfo { name: "bob".into(), kind: ClientKind::WebPage };
    let answered = Fact::PermissionAnswered { call: CALL, answer: PermissionAnswer::Once };
    let origin = FactOrigin { op: OpId(Uuid::from_u128(9)), client };
    let record = FactRecord::new(SESSION, 90, UnixMillis(0), answered);
    let event = Box::new(Event::Fact(FactRecord { origin: Some(origin), ..record }));
    env.update(LinearUiEvent::HostMessage(Box::new(HostMessage::Event { event })));
    env.assert_lines(expect![[r#"
        The question was answered by bob (web page).
        The previous question no longer needs an answer.
    "#]]);
}

#[test]
fn the_connection_and_other_clients_are_announced() {
    let mut env = TestLinearUi::with_running_turn();
    let client = |name: &str| ClientInfo { name: name.into(), kind: ClientKind::Terminal };
    let clients = |clients: &[ClientInfo], is_live| HostMessage::Clients {
        session: SESSION,
        clients: clients.to_vec(),
        is_live,
    };
    for message in [
        clients(&[client("me")], true),
        clients(&[client("me"), client("bob")], true),
        clients(&[client("me"), client("bob")], true),
        HostMessage::Disconnected { reason: "cut".into() },
        HostMessage::Reconnected,
        clients(&[], false),
        clients(&[client("me")], true),
    ] {
        env.update(LinearUiEvent::HostMessage(Box::new(message)));
    }
    env.assert_lines(expect![[r#"
        note: 1 other client is attached
        note: the connection to the server was lost (cut). Connecting again.
        note: connected to the server again
        note: read-only, the session is open in another process
        note: no other client is attached
        note: the session is open here now
    "#]]);
}

#[test]
fn a_session_is_handed_over_to_the_server() {
    let mut env = TestLinearUi::with_running_turn();
    env.enter_line("/detach");
    assert_eq!(env.sent.last(), Some(&FrontendRequest::DetachSession { session: SESSION }));
    env.answer(HostResponse::Done);
    env.assert_lines(expect![[r#"
        The server has the session now.
    "#]]);
    assert!(env.quit);
}

fn summary(number: u128, title: &str) -> SessionSummary {
    let session = SessionId(Uuid::from_u128(number));
    SessionSummary { title: title.into(), ..SessionSummary::new(session) }
}

#[test]
fn sessions_are_listed_by_number_and_opened() {
    let mut env = TestLinearUi::new();
    env.lines.clear();
    env.enter_line("/sessions 1");
    env.enter_line("/sessions");
    let child = SessionSummary {
        parent: Some(SessionId(Uuid::from_u128(40))),
        ..summary(41, "of an agent")
    };
    let state = OpenSessionState {
        session: SessionId(Uuid::from_u128(42)),
        workspace: "/w".into(),
        title: String::new(),
        is_busy: true,
        open_questions: Vec::new(),
        background_count: 0,
        head: 1,
        clients: Vec::new(),
        is_in_server: false,
    };
    env.answer(HostResponse::OpenSessions { sessions: vec![state] });
    let sessions = vec![summary(40, "Fix\nthe parser"), child, summary(42, "\x1b[31mred")];
    env.answer(HostResponse::Reply { reply: QueryReply::Sessions { sessions } });
    env.enter_line("/sessions 3");
    env.enter_line("/sessions 2");
    env.assert_lines(expect![[r#"
        Unknown session number; /sessions lists the sessions.
          1. Fix⏎the parser, 1 subagent
          2. ␛[31mred, working
        Type /sessions NUMBER to open one.
        Unknown session number; /sessions lists the sessions.
    "#]]);
    let session = SessionId(Uuid::from_u128(42));
    assert_eq!(env.sent.last(), Some(&FrontendRequest::OpenSession { session, resume: false }));
    env.answer(HostResponse::SessionOpened { session, head: 12, model: None });
    env.assert_lines(expect![[r#"
        Opened a session with 12 entries.
    "#]]);
    let query = SessionQuery::Events { session, after: 0, limit: None };
    assert_eq!(env.sent.last(), Some(&FrontendRequest::Query { query }));
    let prompt_submitted = |text: &str| Fact::PromptSubmitted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    };
    let model_text = |text: &str| Fact::ModelText { text: text.into(), provider_signature: None };
    let facts = [
        prompt_submitted("older"),
        prompt_submitted("fix\nthe parser"),
        model_text("Looking."),
        model_text("\nIt was \x1b[31mthe lexer.\n"),
        prompt_submitted("never mind"),
        model_text("Gone."),
        Fact::Rewound { to: 4 },
    ];
    let record = |(fact, seq)| FactRecord::new(session, seq, UnixMillis(0), fact);
    let events = facts.into_iter().zip(1..).map(record).collect();
    env.answer(HostResponse::Reply { reply: QueryReply::Events { events } });
    env.assert_lines(expect![[r#"
        your last prompt:
          fix
          the parser
        the model's last answer:
          It was ␛[31mthe lexer.
        ready
    "#]]);
}

#[test]
fn requested_actions_are_listed_before_a_folder_is_trusted() {
    let mut env = TestLinearUi::new();
    env.lines.clear();
    env.enter_line("/trust");
    assert_eq!(env.sent.last(), Some(&FrontendRequest::ReviewTrust));
    let requested_actions = vec!["the hook guard: ./check.sh".into(), "AGENTS.md".into()];
    let review = TrustReview {
        requested_actions,
        trusted_mode: PermissionMode::Auto,
        untrusted_mode: PermissionMode::Ask,
        ..TrustReview::default()
    };
    env.answer(HostResponse::TrustReview { review: Box::new(review.clone()) });
    env.assert_lines(expect![[r#"
        This folder contains files that Windlass would run or the model would follow:
          the hook guard: ./check.sh
          AGENTS.md
        If you trust this folder, Windlass runs and follows this, and starts language servers and formatters for its files, until a setting changes. AGENTS.md may change without a new question.
        In mode auto, edits in this folder and sandboxed commands run without asking. In mode ask, you approve them.
        If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
        Then you are asked again when other settings appear in it.
        /trust yes: Trust this folder and work in mode auto
        /trust ask: Trust this folder and keep asking
        /trust no: Do not trust this folder
    "#]]);
    env.enter_line("/trust");
    let changes = Some(vec!["changed: .windlass/guard.sh".into(), "  +curl evil".into()]);
    let changed = TrustReview { changes, ..review.clone() };
    env.answer(HostResponse::TrustReview { review: Box::new(changed) });
    env.assert_lines(expect![[r#"
        Changed since you trusted it:
          changed: .windlass/guard.sh
            +curl evil
        This folder contains files that Windlass would run or the model would follow:
          the hook guard: ./check.sh
          AGENTS.md
        If you trust this folder, Windlass runs and follows this, and starts language servers and formatters for its files, until a setting changes. AGENTS.md may change without a new question.
        In mode auto, edits in this folder and sandboxed commands run without asking. In mode ask, you approve them.
        If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
        Then you are asked again at the next start.
        /trust yes: Trust this folder and work in mode auto
        /trust ask: Trust this folder and keep asking
        /trust no: Not now
    "#]]);
    env.enter_line("/trust yes");
    assert_eq!(
        env.sent.last(),
        Some(&FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None })
    );
    let status = HostStatus { trust: TrustState::Trusted, ..HostStatus::default() };
    env.answer(HostResponse::Status { status: Box::new(status) });
    env.enter_line("/trust");
    let review = TrustReview { requested_actions: Vec::new(), ..review };
    env.answer(HostResponse::TrustReview { review: Box::new(review) });
    env.assert_lines(expect![[r#"
        This folder is trusted.
        This folder contains no settings that Windlass would run, and no instructions that the model would follow.
        If you trust this folder, Windlass starts language servers and formatters for its files, until settings such as `.windlass` appear in it.
        In mode auto, edits in this folder and sandboxed commands run without asking. In mode ask, you approve them.
        If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
        Then you are asked again when other settings appear in it.
        /trust yes: Trust this folder and work in mode auto
        /trust ask: Trust this folder and keep asking
        /trust no: Do not trust this folder
    "#]]);
}
