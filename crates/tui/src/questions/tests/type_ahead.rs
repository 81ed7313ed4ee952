//! Tests of I-TYPED in the whole `App`: a key typed for the prompt answers no question.

use super::*;
use crate::app::{App, AppEvent, TuiOptions};
use windlass_protocol::PermissionAnswer;
use windlass_protocol::frontend_messages::{HostMessage, HostStatus};

/// An `App` with an open session, a clock and its effects.
struct TestQuestionApp {
    app: App,
    now: u64,
    ui_effects: Vec<UiEffect>,
}

impl TestQuestionApp {
    fn new() -> TestQuestionApp {
        let options = TuiOptions { session: Some(root()), ..TuiOptions::default() };
        let (app, ui_effects) = App::new(options, 0);
        let mut env = TestQuestionApp { app, now: 60_000, ui_effects };
        let trust = windlass_protocol::frontend_messages::TrustState::Trusted;
        let status = HostStatus { model: Some("a/b".into()), trust, ..HostStatus::default() };
        env.reply(HostResponse::Status { status: Box::new(status) });
        env.reply(HostResponse::SessionOpened { session: root(), head: 0, model: None });
        let turn = Fact::TurnStarted { turn: 1, prompt: None };
        env.event(root(), turn);
        env.ui_effects.clear();
        env
    }

    fn update(&mut self, event: AppEvent) {
        let ui_effects = self.app.update(event, self.now);
        self.ui_effects.extend(ui_effects);
    }

    /// Answers the first request that this response fits.
    fn reply(&mut self, response: HostResponse) {
        let fits = |request: &FrontendRequest| match response {
            HostResponse::Status { .. } => matches!(request, FrontendRequest::Status { .. }),
            HostResponse::SessionOpened { .. } => {
                matches!(request, FrontendRequest::OpenSession { .. })
            }
            _ => false,
        };
        let request_id = self.ui_effects.iter().find_map(|effect| match effect {
            UiEffect::Send(message) if fits(&message.request) => Some(message.id),
            _ => None,
        });
        let message = HostMessage::Response { id: request_id.unwrap(), response: Ok(response) };
        self.update(AppEvent::HostMessage(Box::new(message)));
    }

    fn event(&mut self, session: SessionId, new_fact: Fact) {
        let event = Box::new(fact_event(session, 1, new_fact));
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event })));
    }

    fn ask_permission(&mut self, number: u128) {
        self.event(root(), permission_asked(number, vec![run_access("rm -rf target")]));
    }

    fn press(&mut self, text: &str) {
        self.update(AppEvent::Key(key_event(text)));
    }

    fn type_text(&mut self, text: &str, pause: u64) {
        for character in text.chars() {
            self.now += pause;
            self.press(&character.to_string());
        }
    }

    fn wait(&mut self, time: u64) -> &mut TestQuestionApp {
        self.now += time;
        self
    }

    /// Returns all permission answers sent so far.
    fn answers(&self) -> Vec<PermissionAnswer> {
        let answers = self.ui_effects.iter().filter_map(|effect| match effect {
            UiEffect::Send(message) => match &message.request {
                FrontendRequest::SessionOp {
                    op: SessionOp::AnswerPermission { answer, .. },
                    ..
                } => Some(answer.clone()),
                _ => None,
            },
            _ => None,
        });
        answers.collect()
    }

    fn frame(&mut self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        buffer_text(&buffer)
    }
}

#[test]
fn text_typed_while_a_question_arrives_answers_nothing() {
    for pause in [0, 50, 249, 300, 5_000] {
        for split in 1.."yes please".len() {
            let mut env = TestQuestionApp::new();
            let (before, after) = "yes please".split_at(split);
            env.type_text(before, pause);
            env.ask_permission(1);
            env.type_text(after, pause);
            assert_eq!(env.answers(), [], "{before}|{after} at {pause} ms");
            assert!(env.frame().contains("press Tab to answer"), "{}", env.frame());
            assert!(env.frame().contains("yes please"), "{}", env.frame());
        }
    }
}

/// A text that begins before the card could be read is typed whole, and answers nothing.
#[test]
fn text_started_right_after_a_question_arrives_goes_into_the_prompt() {
    for (wait, pause) in [(0, 80), (1, 120), (100, 200), (249, 240)] {
        let mut env = TestQuestionApp::new();
        env.ask_permission(1);
        env.wait(wait).press("s");
        env.type_text("y no, wait", pause);
        assert_eq!(env.answers(), [], "{wait} ms");
        assert!(env.frame().contains("› sy no, wait"), "{}", env.frame());
    }
}

/// An answer pressed too early is neither an answer nor text, and the next press answers.
#[test]
fn a_key_before_the_card_could_be_read_is_swallowed() {
    for (first, second) in [(0, 250), (200, 400), (240, 370), (100, 2_000)] {
        let mut env = TestQuestionApp::new();
        env.ask_permission(1);
        let shown_at = env.now;
        env.now = shown_at + first;
        env.press("y");
        assert_eq!(env.answers(), [], "{first} ms");
        assert!(!env.frame().contains("› y"), "{}", env.frame());
        env.now = shown_at + second;
        env.press("y");
        assert_eq!(env.answers(), [PermissionAnswer::Once], "{second} ms");
    }
}

#[test]
fn keys_answer_from_a_quarter_of_a_second_on() {
    for (key, answer) in [
        ("y", PermissionAnswer::Once),
        ("1", PermissionAnswer::Once),
        ("s", PermissionAnswer::Session),
        ("2", PermissionAnswer::Session),
        ("n", PermissionAnswer::No { reason: None }),
    ] {
        let mut env = TestQuestionApp::new();
        env.ask_permission(1);
        // A number answers once it is on the screen.
        assert!(env.frame().contains("1. Yes, once"), "{}", env.frame());
        env.wait(250).press(key);
        assert_eq!(env.answers(), [answer], "{key}");
    }
}

/// Enter sent a prompt a moment ago; the hands are free, so the question may take the next key.
#[test]
fn a_question_after_a_sent_prompt_takes_keys_at_once() {
    let mut env = TestQuestionApp::new();
    env.type_text("fix it", 100);
    env.wait(100).press("enter");
    env.wait(50).ask_permission(1);
    env.wait(300).press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once]);
    let mut env = TestQuestionApp::new();
    env.type_text("fix it", 100);
    env.wait(100).press("enter");
    env.ask_permission(1);
    env.type_text("yes, and", 120);
    assert_eq!(env.answers(), [], "the next prompt is being typed");
    assert!(env.frame().contains("› yes, and"), "{}", env.frame());
}

#[test]
fn enter_answers_only_with_a_row_that_was_walked_to() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(300).press("enter");
    env.wait(300).press("enter");
    assert_eq!(env.answers(), []);
    env.wait(300).press("down");
    assert!(env.frame().contains("› 1. Yes, once (y)"), "{}", env.frame());
    env.wait(300).press("down");
    env.wait(300).press("enter");
    assert_eq!(env.answers(), [PermissionAnswer::Session]);
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(300).press("down");
    env.event(root(), permission_asked(1, vec![run_access("something else")]));
    env.wait(300).press("enter");
    assert_eq!(env.answers(), [], "another question starts without a selected row");
}

/// Terminals with the keyboard protocol report a key that is held down.
#[test]
fn a_repeated_key_answers_nothing() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(1_000);
    let mut key = key_event("y");
    key.kind = crossterm::event::KeyEventKind::Repeat;
    env.update(AppEvent::Key(key));
    assert_eq!(env.answers(), []);
}

#[test]
fn a_stopped_session_asks_no_more_questions() {
    let session_stopped = |session| {
        let fault = windlass_protocol::Fault::Storage { message: "the disk is full".into() };
        AppEvent::HostMessage(Box::new(HostMessage::SessionStopped { session, fault }))
    };
    let mut env = TestQuestionApp::new();
    env.event(child(), permission_asked(1, vec![run_access("ls")]));
    env.ask_permission(2);
    env.update(session_stopped(child()));
    assert!(
        env.frame().contains("rm -rf target"),
        "the end of a subagent removes only its own questions"
    );
    env.event(child(), permission_asked(3, vec![run_access("ls")]));
    env.update(session_stopped(root()));
    assert!(!env.frame().contains("Run a command"), "{}", env.frame());
    env.wait(2_000).press("y");
    assert_eq!(env.answers(), []);
    assert!(env.frame().contains("› y") || env.frame().contains("> y"), "{}", env.frame());
}

#[test]
fn tab_belongs_to_the_completion_list_while_it_is_open() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.type_text("/sess", 10);
    assert!(!env.frame().contains("press Tab to answer"), "{}", env.frame());
    env.press("tab");
    assert!(env.frame().contains("/ sessions"), "{}", env.frame());
    env.press("y");
    assert_eq!(env.answers(), [], "the key was typed after the command");
    env.wait(250).press("tab");
    env.press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once]);
}

#[test]
fn a_question_gets_the_keys_after_a_pause_with_an_empty_prompt() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    assert!(env.frame().contains("press Tab to answer"));
    let wakeup = env.app.next_wakeup().unwrap();
    assert!(wakeup <= env.now + 250);
    env.wait(250).update(AppEvent::Tick);
    assert!(!env.frame().contains("press Tab to answer"), "{}", env.frame());
    env.press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once]);
}

#[test]
fn recent_typing_counts_even_if_it_was_deleted() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(650).press("x");
    env.wait(40).press("backspace");
    env.wait(200).press("y");
    assert_eq!(env.answers(), []);
    assert!(env.frame().contains("› y"), "{}", env.frame());
}

#[test]
fn enter_and_paste_never_answer() {
    for wait in [0, 250, 5_000] {
        for with_tab in [false, true] {
            let mut env = TestQuestionApp::new();
            env.ask_permission(1);
            env.wait(wait);
            if with_tab && wait == 0 {
                env.press("tab");
            }
            env.press("enter");
            env.update(AppEvent::Paste("y".into()));
            env.press("enter");
            env.update(AppEvent::Paste("y\n".into()));
            assert_eq!(env.answers(), [], "{wait} ms, tab: {with_tab}");
        }
    }
}

#[test]
fn tab_switches_to_the_question_and_back() {
    let mut env = TestQuestionApp::new();
    env.type_text("half a sentence", 10);
    env.ask_permission(1);
    env.press("tab");
    assert!(env.frame().contains("press Tab to answer"), "it could not be read yet");
    env.wait(250).press("tab");
    assert!(!env.frame().contains("press Tab to answer"), "{}", env.frame());
    env.press("tab");
    env.press("y");
    assert_eq!(env.answers(), [], "Tab moved the focus back to the prompt");
    env.press("tab");
    env.press("s");
    assert_eq!(env.answers(), [PermissionAnswer::Session]);
    assert!(env.frame().contains("half a sentencey"), "{}", env.frame());
}

#[test]
fn tab_takes_the_keys_from_a_focused_question() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(2_000).press("tab");
    env.wait(2_000).press("y");
    assert_eq!(env.answers(), []);
    assert!(env.frame().contains("press Tab to answer"), "{}", env.frame());
}

#[test]
fn an_unbound_key_starts_a_prompt_and_the_rest_follows() {
    for with_tab in [false, true] {
        let mut env = TestQuestionApp::new();
        env.ask_permission(1);
        env.wait(if with_tab { 0 } else { 2_000 });
        if with_tab {
            env.wait(250).press("tab");
        }
        env.type_text("hey, no", 2_000);
        assert_eq!(env.answers(), []);
        assert!(env.frame().contains("hey, no"), "{}", env.frame());
    }
}

#[test]
fn the_next_question_waits_for_its_own_pause() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.ask_permission(2);
    env.wait(1_000).press("y");
    for _ in 0..20 {
        env.wait(33).press("y");
    }
    assert_eq!(env.answers(), [PermissionAnswer::Once], "a key held down answers one question");
    env.wait(300).press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once, PermissionAnswer::Once]);
    let mut env = TestQuestionApp::new();
    env.type_text("some words", 1);
    env.ask_permission(1);
    env.ask_permission(2);
    env.wait(250).press("tab");
    env.press("y");
    env.press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once], "Tab focuses one question only");
}

#[test]
fn a_replaced_question_waits_for_its_own_pause() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(1_000);
    env.event(root(), Fact::PermissionAnswered { call: call(1), answer: PermissionAnswer::Once });
    env.ask_permission(2);
    env.press("y");
    assert_eq!(env.answers(), []);
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(1_000);
    env.event(root(), permission_asked(1, vec![run_access("something else")]));
    env.press("y");
    assert_eq!(env.answers(), [], "the same call may ask about something else");
}

#[test]
fn keys_in_a_panel_answer_nothing_and_count_as_typing() {
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(1_000).press("v");
    assert!(env.frame().contains("waiting"), "{}", env.frame());
    env.wait(1_000).press("y");
    env.wait(1_000).press("esc");
    env.wait(100).press("y");
    assert_eq!(env.answers(), []);
    assert!(!env.frame().contains("› y"), "{}", env.frame());
    env.wait(300).press("y");
    assert_eq!(env.answers(), [PermissionAnswer::Once]);
}

#[test]
fn a_question_notifies_once_and_only_if_the_user_is_away() {
    let bells = |env: &TestQuestionApp| {
        env.ui_effects.iter().filter(|effect| matches!(effect, UiEffect::Notify(_))).count()
    };
    let mut env = TestQuestionApp::new();
    env.ask_permission(1);
    env.wait(1_000).update(AppEvent::Tick);
    assert_eq!(bells(&env), 1);
    let mut env = TestQuestionApp::new();
    env.type_text("a", 0);
    env.wait(9_999).ask_permission(1);
    assert_eq!(bells(&env), 0);
    env.wait(1).ask_permission(2);
    assert_eq!(bells(&env), 1);
}
