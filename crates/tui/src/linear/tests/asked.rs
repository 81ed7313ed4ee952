//! Being asked, line by line: permissions, inquiries, and what is taken back.

use super::*;
use windlass_protocol::wire::Trusted;
use windlass_protocol::{
    Delivery, Fault, Inquiry, PromptId, Query, Reply, Scope, SessionSummary, Suggestion, View,
};

const CHILD: SessionId = SessionId(Uuid::from_u128(9));
const DIFF: &str = "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,3 @@\n fn area() {\n-    w + h\n\
                    +    w * h\n }\n";

fn option(label: &str, description: &str) -> Suggestion {
    Suggestion { label: label.into(), description: description.into() }
}

fn store() -> Inquiry {
    Inquiry {
        header: "Store".into(),
        question: "Where are they kept?".into(),
        options: vec![option("SQLite", "one file"), option("Postgres", "")],
        multiple: false,
        custom: false,
    }
}

fn checks() -> Inquiry {
    let options = vec![option("tests", ""), option("clippy", ""), option("fuzzing", "slow")];
    let (header, question) = ("Checks".into(), "What is to be checked?".into());
    Inquiry { header, question, options, multiple: true, custom: true }
}

fn inquired(inquiries: Vec<Inquiry>) -> Stage {
    let mut stage = Stage::begun();
    stage.fact(Fact::Inquired { call: CALL, inquiries });
    stage
}

fn replied(stage: &Stage) -> Option<Vec<Vec<String>>> {
    match stage.sent.last() {
        Some(Request::Do { session: SESSION, op: Op::Reply { call: CALL, replies } }) => {
            Some(replies.clone())
        }
        _ => None,
    }
}

fn edits(preview: &str) -> Fact {
    Fact::Asked {
        call: CALL,
        accesses: vec![Access::Edit { path: "src/lib.rs".into() }],
        reason: "no rule allows it".into(),
        preview: Some(preview.into()),
        offer: None,
        repaired: None,
    }
}

#[test]
fn questions_are_answered_by_numbers_and_in_own_words() {
    let mut stage = inquired(vec![store(), checks()]);
    stage.shows(expect![[r#"
        question: The model asks, 1 of 2
          Store: Where are they kept?
        choices:
          1. SQLite: one file
          2. Postgres
        answer with a number; n for no answer
    "#]]);
    for line in ["3", "0", "x", "1 2"] {
        stage.line(line);
        assert_eq!(replied(&stage), None, "{line}");
    }
    stage.line("2");
    stage.shows(expect![[r#"
        that is none of the answers, and nothing was said; Enter reads the question again
        that is none of the answers, and nothing was said; Enter reads the question again
        that is none of the answers, and nothing was said; Enter reads the question again
        that is none of the answers, and nothing was said; Enter reads the question again
        question: The model asks, 2 of 2
          Checks: What is to be checked?
        choices:
          1. tests
          2. clippy
          3. fuzzing: slow
        answer with one or more numbers, or in your own words; n for no answer
    "#]]);
    stage.line("3, 1");
    assert_eq!(replied(&stage).unwrap(), [vec!["Postgres"], vec!["tests", "fuzzing"]]);
    stage.fact(Fact::Replied { call: CALL, replies: Vec::new() });
    assert!(stage.lines.is_empty(), "{:?}", stage.lines);
    let mut stage = inquired(vec![checks()]);
    stage.line("only what is new");
    assert_eq!(replied(&stage).unwrap(), [["only what is new"]]);
    let mut stage = inquired(vec![checks()]);
    stage.line("n");
    assert_eq!(replied(&stage).unwrap(), [Vec::<String>::new()], "no answer is an answer");
}

#[test]
fn a_plan_is_read_out_whole() {
    let steps: String = (1..=20).map(|n| format!("{n}. step\n")).collect();
    let question = format!("# Speed\n\n{steps}\nCarry the plan out?");
    let options =
        vec![option("auto", "yes"), option("ask", "yes, and ask"), option("no", "keep planning")];
    let (header, multiple, custom) = ("Plan".into(), false, true);
    let mut stage = inquired(vec![Inquiry { header, question, options, multiple, custom }]);
    let said = stage.lines.join("\n");
    assert!(said.starts_with("question: A plan: carry it out?\n  # Speed\n"), "{said}");
    assert!(said.contains("  20. step\n") && said.contains("\n  3. no: keep planning\n"), "{said}");
    stage.line("2");
    assert_eq!(replied(&stage).unwrap(), [["ask"]]);
}

#[test]
fn a_change_is_told_in_words() {
    let mut stage = Stage::begun();
    stage.fact(edits(DIFF));
    stage.shows(expect![[r#"
        question: Change a file?
          src/lib.rs: 1 line added, 1 removed
          line 1: fn area() {
          removed 2:     w + h
          added 2:     w * h
          line 3: }
        why: no rule allows it
        answer y for yes, once; s for this session; p in this project
        n for no; n and a reason, which the model hears; all to hear all of it
    "#]]);
}

#[test]
fn what_is_longer_than_one_listens_to_is_read_out_when_asked_for() {
    let mut stage = Stage::begun();
    let lines: String = (1..=30).map(|n| format!("+line {n}\n")).collect();
    stage.fact(edits(&format!("--- /dev/null\n+++ b/src/lib.rs\n@@ -0,0 +1,30 @@\n{lines}")));
    let said = std::mem::take(&mut stage.lines).join("\n");
    assert!(said.contains("\n(19 more lines)\n") && !said.contains("line 30"), "{said}");
    stage.line("all");
    let said = std::mem::take(&mut stage.lines).join("\n");
    assert!(said.contains("added 30: line 30") && stage.sent.is_empty(), "{said}");
}

#[test]
fn leaving_the_sandbox_is_said_loudly_and_allowed_once_only() {
    let mut stage = Stage::begun();
    let command = "docker ps".to_owned();
    let accesses = vec![
        Access::Run { command: command.clone(), folder: ".".into() },
        Access::Leave { command },
    ];
    let (reason, offer) = ("it would run outside".into(), Some("docker *".into()));
    stage.fact(Fact::Asked { call: CALL, accesses, reason, preview: None, offer, repaired: None });
    stage.shows(expect![[r#"
        question: Leave the sandbox?
        This command gets all your rights: no sandbox holds it.
          docker ps
        why: it would run outside
        answer y for yes, once
        n for no; n and a reason, which the model hears; all to hear all of it
    "#]]);
    for line in ["s", "p", "k", "kp"] {
        stage.line(line);
    }
    assert!(stage.sent.is_empty(), "{:?}", stage.sent);
}

#[test]
fn an_agent_is_answered_through_the_session_it_works_for() {
    let mut stage = Stage::begun();
    stage.fact(Fact::Spawned { call: CALL, session: CHILD, agent: "explore".into() });
    stage.lines.clear();
    let asked = CallId(Uuid::from_u128(20));
    let accesses = vec![Access::Fetch { host: "docs.rs".into() }];
    let (reason, preview) = ("no rule allows it".into(), None);
    let fact = Fact::Asked { call: asked, accesses, reason, preview, offer: None, repaired: None };
    stage.fact_of(CHILD, fact);
    stage.shows(expect![[r#"
        question: Fetch from docs.rs?
        why: no rule allows it
        who: explore
        answer y for yes, once; s for this session; p in this project
        n for no; n and a reason, which the model hears; all to hear all of it
    "#]]);
    stage.line("yes");
    let op = Op::Answer { call: asked, answer: Answer::Once };
    assert_eq!(stage.sent, [Request::Do { session: SESSION, op }]);
}

#[test]
fn several_questions_come_one_after_the_other_and_go_when_the_turn_does() {
    let mut stage = Stage::begun();
    stage.asked();
    let other = CallId(Uuid::from_u128(30));
    let accesses = vec![Access::Use { tool: "git_commit".into() }];
    let (reason, preview) = ("no rule allows it".into(), None);
    stage.fact(Fact::Asked { call: other, accesses, reason, preview, offer: None, repaired: None });
    stage.line("y");
    let said = std::mem::take(&mut stage.lines).join("\n");
    assert!(said.contains("1 more question after this one\n"), "{said}");
    assert!(said.contains("question 2 of 2: Use the tool git_commit?"), "{said}");
    stage.fact(Fact::Interrupted { turn: 1 });
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted });
    stage.shows(expect![[r#"
        that question needs no answer any more
        stopped
        ready
    "#]]);
    stage.line("y");
    let last = stage.sent.last();
    assert_eq!(last, Some(&Request::Do { session: SESSION, op: Op::prompt("y") }));
}

#[test]
fn a_session_that_stopped_asks_nothing_more() {
    let mut stage = Stage::begun();
    stage.asked();
    stage.lines.clear();
    let fault = Fault::Storage { message: "the disk is full".into() };
    stage.update(Said::Down(Box::new(Down::Stopped { session: SESSION, fault })));
    stage.shows(expect![[r#"
        the session's log failed: the disk is full. Free some disk space or close the other windlass; then /sessions opens it again.
        that question needs no answer any more
    "#]]);
    stage.line("y");
    let answered = |request: &Request| matches!(request, Request::Do { op: Op::Answer { .. }, .. });
    assert!(!stage.sent.iter().any(answered), "{:?}", stage.sent);
}

#[test]
fn an_answer_that_nobody_heard_is_asked_for_again() {
    let mut stage = Stage::begun();
    stage.asked();
    stage.line("y");
    stage.lines.clear();
    let answer = Err(Fault::Internal { message: "gone".into() });
    stage.update(Said::Down(Box::new(Down::Answer { id: stage.id, answer })));
    let said = stage.lines.join("\n");
    assert!(said.contains("gone") && said.contains("question: Run a command?"), "{said}");
}

#[test]
fn what_is_taken_back_is_shown_first_and_asked_about_once() {
    let mut stage = Stage::begun();
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    stage.lines.clear();
    let changes = Answered::Reply { reply: Reply::Changes { facts: vec![7], diff: DIFF.into() } };
    stage.line("/undo");
    let query = Query::Changes { session: SESSION, scope: Scope::LastTurn, view: View::Back };
    assert_eq!(stage.sent, [Request::Query { query }]);
    stage.answer(changes.clone());
    stage.line("hm");
    stage.shows(expect![[r#"
          src/lib.rs: 1 line added, 1 removed
          line 1: fn area() {
          removed 2:     w + h
          added 2:     w * h
          line 3: }
        answer y to have this done; anything else leaves everything as it is
        everything stays as it is, and nothing was said to the model
    "#]]);
    assert_eq!(stage.sent.len(), 1, "{:?}", stage.sent);
    stage.line("/undo");
    stage.answer(changes.clone());
    stage.line("/cost");
    stage.line("y");
    let prompt = Request::Do { session: SESSION, op: Op::prompt("y") };
    assert_eq!(stage.sent.last(), Some(&prompt), "what was shown before is over");
    stage.line("/undo");
    stage.answer(changes);
    stage.line("y");
    let undo = Request::Do { session: SESSION, op: Op::Undo { facts: vec![7] } };
    assert_eq!(stage.sent.last(), Some(&undo));
    stage.fact(Fact::Called {
        call: CALL,
        reference: String::new(),
        tool: windlass_protocol::files::UNDO.into(),
        arguments: "{}".into(),
        by: Author::Person,
        repaired: Vec::new(),
        seal: None,
    });
    stage.lines.clear();
    stage.fact(edits(DIFF));
    let op = Op::Answer { call: CALL, answer: Answer::Once };
    assert_eq!(stage.sent.last(), Some(&Request::Do { session: SESSION, op }));
    assert!(stage.lines.is_empty(), "{:?}", stage.lines);
    stage.line("/undo");
    let nothing = Reply::Changes { facts: Vec::new(), diff: String::new() };
    stage.answer(Answered::Reply { reply: nothing });
    stage.shows(expect![[r#"
        nothing was changed
    "#]]);
}

fn summary(number: u128, title: &str) -> SessionSummary {
    let session = SessionId(Uuid::from_u128(number));
    SessionSummary { title: title.into(), ..SessionSummary::new(session) }
}

#[test]
fn sessions_are_listed_by_number_and_opened() {
    let mut stage = Stage::new();
    stage.lines.clear();
    stage.line("/sessions 1");
    stage.line("/sessions");
    let child = SessionSummary {
        parent: Some(SessionId(Uuid::from_u128(40))),
        ..summary(41, "of an agent")
    };
    let sessions = vec![summary(40, "Fix\nthe parser"), child, summary(42, "\x1b[31mred")];
    stage.answer(Answered::Reply { reply: Reply::Sessions { sessions } });
    stage.line("/sessions 3");
    stage.line("/sessions 2");
    stage.shows(expect![[r#"
        no session has that number; /sessions lists them
          1. Fix⏎the parser
          2. ␛[31mred
        /sessions and a number opens one
        no session has that number; /sessions lists them
    "#]]);
    let session = SessionId(Uuid::from_u128(42));
    assert_eq!(stage.sent.last(), Some(&Request::Open { session }));
    stage.answer(Answered::Opened { session, head: 12 });
    stage.shows(expect![[r#"
        a session with 12 entries is open
    "#]]);
    let query = Query::Events { session, after: 0, most: None };
    assert_eq!(stage.sent.last(), Some(&Request::Query { query }));
    let prompted = |text: &str| Fact::Prompted {
        prompt: PromptId(Uuid::from_u128(7)),
        text: text.into(),
        attachments: Vec::new(),
        when: Delivery::Steer,
    };
    let said = |text: &str| Fact::Said { text: text.into(), seal: None };
    let facts = [
        prompted("older"),
        prompted("fix\nthe parser"),
        said("Looking."),
        said("\nIt was \x1b[31mthe lexer.\n"),
        prompted("never mind"),
        said("Gone."),
        Fact::Reverted { to: 4 },
    ];
    let record = |(fact, seq)| Record { session, seq, at: Millis(0), fact };
    let events = facts.into_iter().zip(1..).map(record).collect();
    stage.answer(Answered::Reply { reply: Reply::Events { events } });
    stage.shows(expect![[r#"
        you asked last:
          fix
          the parser
        the model said last:
          It was ␛[31mthe lexer.
        ready
    "#]]);
}

#[test]
fn what_a_folder_would_run_is_read_out_before_it_is_trusted() {
    let mut stage = Stage::new();
    stage.lines.clear();
    stage.line("/trust");
    assert_eq!(stage.sent.last(), Some(&Request::LookAtTrust));
    let would = vec!["the hook guard: ./check.sh".into(), "AGENTS.md".into()];
    stage.answer(Answered::Trust { would, since: None });
    stage.shows(expect![[r#"
        this folder would have Windlass run or obey:
          the hook guard: ./check.sh
          AGENTS.md
        If you trust it, this is started and obeyed, its AGENTS.md is read, and language servers and formatters are started for its files, until any of it changes.
        If you do not, its files are read as text and nothing else. Either way the model is allowed nothing by this: what it does is asked about and held by the sandbox as before.
        /trust yes trusts it as it is now
    "#]]);
    stage.line("/trust yes");
    assert_eq!(stage.sent.last(), Some(&Request::Trust { yes: true }));
    let standing = Standing { trust: Trusted::Yes, ..Standing::default() };
    stage.answer(Answered::Standing { standing: Box::new(standing) });
    stage.line("/trust");
    stage.answer(Answered::Trust { would: Vec::new(), since: None });
    stage.shows(expect![[r#"
        this folder is trusted
        this folder has nothing of its own that Windlass would run
        If you trust it, its AGENTS.md is read, and language servers and formatters are started for its files, until something in it changes.
        If you do not, its files are read as text and nothing else. Either way the model is allowed nothing by this: what it does is asked about and held by the sandbox as before.
        /trust yes trusts it as it is now
    "#]]);
}
