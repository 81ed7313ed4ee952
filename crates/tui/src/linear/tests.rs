//! The linear mode, line by line.

mod asked;

use super::{Linear, Said};
use crate::app::Options;
use crate::cx::Act;
use expect_test::{Expect, expect};
use uuid::Uuid;
use windlass_protocol::wire::{Answered, Down, Request, Standing};
use windlass_protocol::{
    Access, Answer, Author, CallId, Event, Fact, Glimpse, Live, Millis, Op, Outcome, Record,
    SessionId, Stream, TurnEnd,
};

struct Stage {
    linear: Linear,
    lines: Vec<String>,
    sent: Vec<Request>,
    quit: bool,
    id: u64,
    seq: u64,
}

const SESSION: SessionId = SessionId(Uuid::from_u128(1));
const CALL: CallId = CallId(Uuid::from_u128(2));

impl Stage {
    /// A session is open in it.
    fn new() -> Stage {
        Stage::with(Options::default())
    }

    fn with(options: Options) -> Stage {
        let (linear, told) = Linear::new(options);
        let mut stage =
            Stage { linear, lines: Vec::new(), sent: Vec::new(), quit: false, id: 0, seq: 0 };
        stage.take(told);
        let standing = Standing {
            version: "1.0".into(),
            workspace: "~/project".into(),
            model: Some("local/small".into()),
            trust: windlass_protocol::wire::Trusted::Yes,
            ..Standing::default()
        };
        stage.answer(Answered::Standing { standing: Box::new(standing) });
        stage
    }

    fn begun() -> Stage {
        let mut stage = Stage::new();
        stage.line("fix it");
        stage.answer(Answered::Opened { session: SESSION, head: 0 });
        stage.fact(Fact::TurnStarted { turn: 1, prompt: None });
        (stage.lines, stage.sent) = (Vec::new(), Vec::new());
        stage
    }

    fn take(&mut self, (lines, acts): (Vec<String>, Vec<Act>)) {
        self.lines.extend(lines);
        for act in acts {
            match act {
                Act::Send(up) => {
                    self.id = up.id;
                    self.sent.push(up.request);
                }
                Act::Quit => self.quit = true,
                other => panic!("{other:?}"),
            }
        }
    }

    fn update(&mut self, said: Said) {
        let told = self.linear.update(said);
        self.take(told);
    }

    fn line(&mut self, line: &str) {
        self.update(Said::Line(line.into()));
    }

    fn answer(&mut self, answered: Answered) {
        let down = Down::Answer { id: self.id, answer: Ok(answered) };
        self.update(Said::Down(Box::new(down)));
    }

    fn fact(&mut self, fact: Fact) {
        self.fact_of(SESSION, fact);
    }

    fn fact_of(&mut self, session: SessionId, fact: Fact) {
        self.seq += 1;
        let record = Record { session, seq: self.seq, at: Millis(0), fact };
        self.update(Said::Down(Box::new(Down::Event { event: Box::new(Event::Fact(record)) })));
    }

    fn delta(&mut self, text: &str) {
        let live = Live::Delta { stream: Stream::Text, text: text.into() };
        let glimpse = Glimpse { session: SESSION, at: Millis(0), live };
        self.update(Said::Down(Box::new(Down::Event { event: Box::new(Event::Live(glimpse)) })));
    }

    fn asked(&mut self) {
        let accesses = vec![Access::Run { command: "cargo test".into(), folder: ".".into() }];
        let reason = "a command is run only with a yes".into();
        self.fact(Fact::Asked {
            call: CALL,
            accesses,
            reason,
            preview: None,
            offer: None,
            repaired: None,
        });
    }

    fn shows(&mut self, expected: Expect) {
        expected.assert_eq(&(std::mem::take(&mut self.lines).join("\n") + "\n"));
    }
}

#[test]
fn the_first_prompt_begins_a_session_and_is_said_in_it() {
    let mut stage = Stage::new();
    stage.shows(expect![[r#"
        windlass 1.0 in ~/project
        local/small, mode ask. /help lists commands
        ready
    "#]]);
    stage.line("fix it");
    assert_eq!(stage.sent.last(), Some(&Request::Begin { agent: None }));
    stage.answer(Answered::Opened { session: SESSION, head: 0 });
    let op = Op::prompt("fix it");
    assert_eq!(stage.sent.last(), Some(&Request::Do { session: SESSION, op }));
}

#[test]
fn what_the_model_writes_is_read_out_by_paragraphs_and_once() {
    let mut stage = Stage::begun();
    stage.delta("I look at the ");
    assert!(stage.lines.is_empty());
    stage.delta("parser.\n\nquestion: Leave the sandbox?\x1b[31m");
    stage.fact(Fact::Said {
        text: "I look at the parser.\n\nquestion: Leave the sandbox?\x1b[31m".into(),
        seal: None,
    });
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    stage.shows(expect![[r#"
        model:
          I look at the parser.
          question: Leave the sandbox?␛[31m
        ready
    "#]]);
}

#[test]
fn a_call_is_a_line_when_it_is_made_and_when_it_is_over() {
    let mut stage = Stage::begun();
    stage.fact(Fact::Called {
        call: CALL,
        reference: String::new(),
        tool: "bash".into(),
        arguments: r#"{"command":"cargo test"}"#.into(),
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    });
    stage.fact(Fact::Settled {
        call: CALL,
        outcome: Outcome::Failed { text: "1 test failed".into() },
        seen: Vec::new(),
    });
    stage.shows(expect![[r#"
        call: Run cargo test
        failed: Run cargo test
          1 test failed
    "#]]);
}

#[test]
fn enter_alone_and_what_is_no_answer_answer_nothing() {
    let mut stage = Stage::begun();
    stage.asked();
    stage.shows(expect![[r#"
        question: Run a command?
          cargo test
        why: a command is run only with a yes
        answer y for yes, once; s for this session; p in this project
        n for no; n and a reason, which the model hears; all to hear all of it
    "#]]);
    for line in ["", "  ", "yes please", "Y", "ok", "k"] {
        stage.line(line);
    }
    assert!(stage.sent.is_empty(), "{:?}", stage.sent);
    stage.line("n use the other one");
    let answer = Answer::No { reason: Some("use the other one".into()) };
    let op = Op::Answer { call: CALL, answer };
    assert_eq!(stage.sent, [Request::Do { session: SESSION, op }]);
}

#[test]
fn a_word_answers_a_question() {
    for (word, answer) in [
        ("y", Answer::Once),
        ("s", Answer::Session),
        ("p", Answer::Project),
        ("n", Answer::No { reason: None }),
    ] {
        let mut stage = Stage::begun();
        stage.asked();
        stage.line(word);
        let op = Op::Answer { call: CALL, answer };
        assert_eq!(stage.sent, [Request::Do { session: SESSION, op }]);
    }
}

#[test]
fn ctrl_c_stops_what_goes_on_and_twice_leaves() {
    let mut stage = Stage::begun();
    stage.update(Said::Interrupt);
    assert_eq!(stage.sent, [Request::Do { session: SESSION, op: Op::Interrupt }]);
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Interrupted });
    stage.update(Said::Interrupt);
    assert!(!stage.quit);
    stage.update(Said::Interrupt);
    assert!(stage.quit);
}

#[test]
fn a_command_that_was_typed_runs_when_nothing_else_does_and_is_not_asked_about() {
    let mut stage = Stage::begun();
    stage.line("!ls");
    assert!(stage.sent.is_empty(), "{:?}", stage.sent);
    stage.fact(Fact::TurnEnded { turn: 1, end: TurnEnd::Done });
    stage.line("!ls");
    let arguments = String::from(r#"{"command":"ls"}"#);
    let op = Op::Call { tool: "bash".into(), arguments: arguments.clone() };
    assert_eq!(stage.sent, [Request::Do { session: SESSION, op }]);
    stage.fact(Fact::Called {
        call: CALL,
        reference: "r".into(),
        tool: "bash".into(),
        arguments,
        by: Author::Person,
        repaired: Vec::new(),
        seal: None,
    });
    let accesses = vec![Access::Run { command: "ls".into(), folder: ".".into() }];
    let (reason, preview, offer, repaired) = ("so".into(), None, None, None);
    stage.fact(Fact::Asked { call: CALL, accesses, reason, preview, offer, repaired });
    let op = Op::Answer { call: CALL, answer: Answer::Once };
    assert_eq!(stage.sent.last(), Some(&Request::Do { session: SESSION, op }));
    stage.shows(expect![[r#"
        the model is at work; type it again when it is done
        ready
        call: Run ls
    "#]]);
}

#[test]
fn a_command_of_ones_own_is_asked_for_in_a_session() {
    let mut stage = Stage::new();
    stage.line("/mine a b");
    assert_eq!(stage.sent.last(), Some(&Request::Begin { agent: None }));
    stage.answer(Answered::Opened { session: SESSION, head: 0 });
    let request = Request::Command { name: "mine".into(), arguments: "a b".into() };
    assert_eq!(stage.sent.last(), Some(&request));
    stage.answer(Answered::Prompt { text: "what is meant".into() });
    let op = Op::prompt("what is meant");
    assert_eq!(stage.sent.last(), Some(&Request::Do { session: SESSION, op }));
}

#[test]
fn what_is_to_be_said_first_is_said_in_the_session_that_is_gone_on_with() {
    let options =
        Options { session: Some(SESSION), prompt: Some("go on".into()), ..Options::default() };
    let mut stage = Stage::with(options);
    assert_eq!(stage.sent.last(), Some(&Request::Open { session: SESSION }));
    stage.answer(Answered::Opened { session: SESSION, head: 12 });
    let op = Op::prompt("go on");
    assert_eq!(stage.sent.last(), Some(&Request::Do { session: SESSION, op }));
}

#[test]
fn lines_join_and_commands_are_told_from_prompts() {
    let mut stage = Stage::begun();
    stage.line("one\\");
    stage.line("two");
    stage.line("/usr/bin is missing");
    stage.line("/mine a b");
    stage.line("/mode plan");
    let done = |op| Request::Do { session: SESSION, op };
    assert_eq!(
        stage.sent,
        [
            done(Op::prompt("one\ntwo")),
            done(Op::prompt("/usr/bin is missing")),
            Request::Command { name: "mine".into(), arguments: "a b".into() },
            done(Op::Mode { mode: windlass_protocol::Mode::Plan }),
        ]
    );
    stage.line("/help");
    stage.shows(expect![[r#"
        the model hears it before its next step
        the model hears it before its next step
        write what is to be done and press Enter. A line that ends with \ goes on in the next
        ! runs a command in the shell. Ctrl-C stops the model; twice it leaves
        /help: Lists keys and commands
        /mode: Goes to the next mode: plan, ask, auto
        /sessions: Lists sessions; finds, opens, forks and deletes them
        /new: Begins a new session
        /fork: Goes on in a copy of this session
        /rename: Gives this session a title: /rename TITLE
        /compact: Sums the conversation up, so that it takes less room
        /undo: Shows what the last turn changed in files, and takes it back
        /redo: Does again what was taken back last
        /diff: Shows everything this session changed in files
        /model: Chooses the model
        /todos: Shows what is still to be done
        /jobs: Shows the commands that run in the background
        /cost: Says what this session used and cost
        /doctor: Says what there is to work with, and what is missing
        /export: Writes this session into a file: /export, or /export log
        /trust: Shows what this folder would run; trusts it, or no longer
        /login: Keeps a provider's key
        /init: Has the model write AGENTS.md from what it finds in the project
        /quit: Leaves; what runs is stopped and goes on when the session is opened again
        your own commands work, too
    "#]]);
    stage.line("/quit");
    assert!(stage.quit);
}
