//! I-TYPED, through the whole screen: a key that was typed for the prompt answers nothing.

use super::*;
use crate::app::{App, Input, Options};
use windlass_protocol::Answer;
use windlass_protocol::wire::{Down, Standing};

/// A screen with a session open, and a clock.
struct Desk {
    app: App,
    now: u64,
    acts: Vec<Act>,
}

impl Desk {
    fn new() -> Desk {
        let options = Options { session: Some(root()), ..Options::default() };
        let (app, acts) = App::new(options, 0);
        let mut desk = Desk { app, now: 60_000, acts };
        let standing = Standing { model: Some("a/b".into()), ..Standing::default() };
        desk.reply(Answered::Standing { standing: Box::new(standing) });
        desk.reply(Answered::Opened { session: root(), head: 0 });
        let turn = Fact::TurnStarted { turn: 1, prompt: None };
        desk.event(root(), turn);
        desk.acts.clear();
        desk
    }

    fn input(&mut self, input: Input) {
        let acts = self.app.update(input, self.now);
        self.acts.extend(acts);
    }

    /// Answers what was requested first and has no answer yet.
    fn reply(&mut self, answered: Answered) {
        let wanted = |request: &Request| match answered {
            Answered::Standing { .. } => matches!(request, Request::Standing),
            Answered::Opened { .. } => matches!(request, Request::Open { .. }),
            _ => false,
        };
        let found = self.acts.iter().find_map(|act| match act {
            Act::Send(up) if wanted(&up.request) => Some(up.id),
            _ => None,
        });
        let down = Down::Answer { id: found.unwrap(), answer: Ok(answered) };
        self.input(Input::Down(Box::new(down)));
    }

    fn event(&mut self, session: SessionId, heard: Fact) {
        let event = Box::new(fact(session, 1, heard));
        self.input(Input::Down(Box::new(Down::Event { event })));
    }

    fn ask(&mut self, number: u128) {
        self.event(root(), asks(number, vec![run("rm -rf target")]));
    }

    fn press(&mut self, text: &str) {
        self.input(Input::Key(key(text)));
    }

    fn write(&mut self, text: &str, pause: u64) {
        for letter in text.chars() {
            self.now += pause;
            self.press(&letter.to_string());
        }
    }

    fn after(&mut self, time: u64) -> &mut Desk {
        self.now += time;
        self
    }

    /// What was answered so far.
    fn answers(&self) -> Vec<Answer> {
        let answers = self.acts.iter().filter_map(|act| match act {
            Act::Send(up) => match &up.request {
                Request::Do { op: Op::Answer { answer, .. }, .. } => Some(answer.clone()),
                _ => None,
            },
            _ => None,
        });
        answers.collect()
    }

    fn frame(&mut self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        text(&buffer)
    }
}

#[test]
fn a_sentence_that_is_being_typed_when_a_question_comes_answers_nothing() {
    for pause in [0, 50, 300, 699, 5_000] {
        for cut in 1.."yes please".len() {
            let mut desk = Desk::new();
            let (before, behind) = "yes please".split_at(cut);
            desk.write(before, pause);
            desk.ask(1);
            desk.write(behind, pause);
            assert_eq!(desk.answers(), [], "{before}|{behind} at {pause} ms");
            assert!(desk.frame().contains("Tab answers"), "{}", desk.frame());
            assert!(desk.frame().contains("yes please"), "{}", desk.frame());
        }
    }
}

#[test]
fn a_sentence_begun_right_when_a_question_comes_answers_nothing() {
    for wait in [0, 1, 699] {
        let mut desk = Desk::new();
        desk.ask(1);
        desk.after(wait).press("y");
        desk.write("es, now", 800);
        assert_eq!(desk.answers(), [], "{wait} ms");
    }
}

#[test]
fn a_session_that_stopped_asks_nothing_more() {
    let stopped = |session| {
        let fault = windlass_protocol::Fault::Storage { message: "the disk is full".into() };
        Input::Down(Box::new(Down::Stopped { session, fault }))
    };
    let mut desk = Desk::new();
    desk.event(child(), asks(1, vec![run("ls")]));
    desk.ask(2);
    desk.input(stopped(child()));
    assert!(desk.frame().contains("rm -rf target"), "an agent's end ends only its own");
    desk.event(child(), asks(3, vec![run("ls")]));
    desk.input(stopped(root()));
    assert!(!desk.frame().contains("Run a command"), "{}", desk.frame());
    desk.after(2_000).press("y");
    assert_eq!(desk.answers(), []);
    assert!(desk.frame().contains("› y") || desk.frame().contains("> y"), "{}", desk.frame());
}

#[test]
fn tab_is_the_list_s_while_one_is_open_above_the_prompt() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.write("/sess", 10);
    assert!(!desk.frame().contains("Tab answers"), "{}", desk.frame());
    desk.press("tab");
    assert!(desk.frame().contains("/ sessions"), "{}", desk.frame());
    desk.press("y");
    assert_eq!(desk.answers(), [], "it was typed behind the command");
    desk.press("tab");
    desk.press("y");
    assert_eq!(desk.answers(), [Answer::Once]);
}

#[test]
fn keys_are_its_own_after_a_calm_moment_on_an_empty_prompt() {
    let mut desk = Desk::new();
    desk.ask(1);
    assert!(desk.frame().contains("Tab answers"));
    let wakes = desk.app.wakes().unwrap();
    assert!(wakes <= desk.now + 700);
    desk.after(700).input(Input::Tick);
    assert!(!desk.frame().contains("Tab answers"), "{}", desk.frame());
    desk.press("y");
    assert_eq!(desk.answers(), [Answer::Once]);
}

#[test]
fn what_was_typed_a_moment_ago_counts_even_if_it_was_deleted() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(650).press("x");
    desk.after(40).press("backspace");
    desk.after(600).press("y");
    assert_eq!(desk.answers(), []);
}

#[test]
fn enter_and_paste_never_answer() {
    for wait in [0, 700, 5_000] {
        for turned in [false, true] {
            let mut desk = Desk::new();
            desk.ask(1);
            desk.after(wait);
            if turned && wait == 0 {
                desk.press("tab");
            }
            desk.press("enter");
            desk.input(Input::Paste("y".into()));
            desk.press("enter");
            desk.input(Input::Paste("y\n".into()));
            assert_eq!(desk.answers(), [], "{wait} ms, turned: {turned}");
        }
    }
}

#[test]
fn tab_goes_to_the_question_and_back() {
    let mut desk = Desk::new();
    desk.write("half a sentence", 10);
    desk.ask(1);
    desk.press("tab");
    assert!(!desk.frame().contains("Tab answers"), "{}", desk.frame());
    desk.press("tab");
    desk.press("y");
    assert_eq!(desk.answers(), [], "it went back to the prompt");
    desk.press("tab");
    desk.press("s");
    assert_eq!(desk.answers(), [Answer::Session]);
    assert!(desk.frame().contains("half a sentencey"), "{}", desk.frame());
}

#[test]
fn tab_keeps_a_calm_question_from_taking_keys() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(2_000).press("tab");
    desk.after(2_000).press("y");
    assert_eq!(desk.answers(), []);
    assert!(desk.frame().contains("Tab answers"), "{}", desk.frame());
}

#[test]
fn a_key_that_means_nothing_begins_a_sentence_and_the_rest_of_it_follows() {
    for turned in [false, true] {
        let mut desk = Desk::new();
        desk.ask(1);
        desk.after(if turned { 0 } else { 2_000 });
        if turned {
            desk.press("tab");
        }
        desk.write("hey, no", 2_000);
        assert_eq!(desk.answers(), []);
        assert!(desk.frame().contains("hey, no"), "{}", desk.frame());
    }
}

#[test]
fn the_next_question_has_a_moment_of_its_own() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.ask(2);
    desk.after(1_000).press("y");
    desk.after(100).press("y");
    assert_eq!(desk.answers(), [Answer::Once], "a key held down answers one");
    desk.after(10).press("ctrl+c");
    desk.after(1_000).press("y");
    assert_eq!(desk.answers(), [Answer::Once, Answer::Once]);
    let mut desk = Desk::new();
    desk.write("some words", 1);
    desk.ask(1);
    desk.ask(2);
    desk.press("tab");
    desk.press("y");
    desk.press("y");
    assert_eq!(desk.answers(), [Answer::Once], "one goes to each question by itself");
}

#[test]
fn a_question_that_takes_the_place_of_another_has_a_moment_of_its_own() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(1_000);
    desk.event(root(), Fact::Answered { call: call(1), answer: Answer::Once });
    desk.ask(2);
    desk.press("y");
    assert_eq!(desk.answers(), []);
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(1_000);
    desk.event(root(), asks(1, vec![run("something else")]));
    desk.press("y");
    assert_eq!(desk.answers(), [], "the same call may ask about something else");
}

#[test]
fn keys_of_a_panel_answer_nothing_and_count_as_typed() {
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(1_000).press("v");
    assert!(desk.frame().contains("waits"), "{}", desk.frame());
    desk.after(1_000).press("y");
    desk.after(1_000).press("esc");
    desk.after(100).press("y");
    assert_eq!(desk.answers(), []);
}

#[test]
fn the_bell_rings_once_and_only_for_who_is_away() {
    let bells = |desk: &Desk| desk.acts.iter().filter(|act| **act == Act::Bell).count();
    let mut desk = Desk::new();
    desk.ask(1);
    desk.after(1_000).input(Input::Tick);
    assert_eq!(bells(&desk), 1);
    let mut desk = Desk::new();
    desk.write("a", 0);
    desk.after(9_999).ask(1);
    assert_eq!(bells(&desk), 0);
    desk.after(1).ask(2);
    assert_eq!(bells(&desk), 1);
}
