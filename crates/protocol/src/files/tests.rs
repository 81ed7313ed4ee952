//! What is taken back, what is done again, and what counts afterwards.

use super::*;
use crate::call::Output;
use uuid::Uuid;

fn version(content: u8) -> Version {
    Version { copy: BlobRef::of(&[content]), mode: None }
}

fn change(path: &str, before: Option<u8>, after: Option<u8>) -> Change {
    Change { path: path.into(), before: before.map(version), after: after.map(version) }
}

/// A log in the making.
#[derive(Default)]
struct Tale {
    files: Files,
    seq: Seq,
    turn: u32,
}

impl Tale {
    fn push(&mut self, fact: Fact) -> Seq {
        self.seq += 1;
        self.files.push(self.seq, &fact);
        self.seq
    }

    fn turn(&mut self) {
        self.turn += 1;
        self.push(Fact::TurnStarted { turn: self.turn, prompt: None });
    }

    fn call(&mut self, arguments: Option<&Undo>, changes: Vec<Change>, outcome: Outcome) -> Seq {
        let call = CallId(Uuid::from_u128(u128::from(self.seq)));
        let (tool, by) = match arguments {
            Some(_) => (UNDO, Author::Person),
            None => ("edit", Author::Model),
        };
        self.push(Fact::Called {
            call,
            reference: String::new(),
            tool: tool.into(),
            arguments: serde_json::to_string(&arguments).unwrap(),
            by,
            repaired: Vec::new(),
            seal: None,
        });
        let seq = self.push(Fact::Changing { call, changes });
        self.push(Fact::Settled { call, outcome, seen: Vec::new() });
        seq
    }

    fn edit(&mut self, path: &str, before: u8, after: u8) -> Seq {
        let done = Outcome::Completed { output: Output::default() };
        self.call(None, vec![change(path, Some(before), Some(after))], done)
    }

    fn take_back(&mut self, scope: Scope) -> Vec<Seq> {
        let done = Outcome::Completed { output: Output::default() };
        let undo = self.files.undo(scope).unwrap();
        self.turn();
        self.call(Some(&undo), Vec::new(), done);
        undo.facts
    }
}

#[test]
fn undo_goes_back_turn_by_turn_and_redo_forward_again() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    tale.turn();
    let second = tale.edit("a", 1, 2);
    let third = tale.edit("b", 7, 8);
    assert_eq!(tale.files.undo(Scope::LastUndo), None, "nothing was taken back yet");
    assert_eq!(tale.take_back(Scope::LastTurn), [second, third]);
    assert_eq!(tale.take_back(Scope::LastTurn), [first]);
    assert_eq!(tale.files.undo(Scope::LastTurn), None);
    tale.take_back(Scope::LastUndo);
    assert_eq!(tale.files.undo(Scope::LastTurn).unwrap().facts, [first], "done again");
    tale.take_back(Scope::LastUndo);
    assert_eq!(tale.files.undo(Scope::All).unwrap().facts, [first, second, third]);
    assert_eq!(tale.files.undo(Scope::LastUndo), None);
    assert_eq!(tale.take_back(Scope::All), [first, second, third]);
    assert_eq!(tale.files.undo(Scope::All), None);
}

#[test]
fn an_undo_that_failed_took_nothing_back() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    let undo = tale.files.undo(Scope::LastTurn).unwrap();
    assert_eq!(undo.changes, [change("a", Some(0), Some(1))]);
    tale.turn();
    tale.call(Some(&undo), Vec::new(), Outcome::Failed { text: "no".into() });
    assert_eq!(tale.files.undo(Scope::LastTurn).unwrap().facts, [first]);
}

#[test]
fn a_model_that_calls_itself_undo_takes_nothing_back() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    let call = CallId(Uuid::max());
    let arguments = serde_json::to_string(&tale.files.undo(Scope::All).unwrap()).unwrap();
    tale.push(Fact::Called {
        call,
        reference: String::new(),
        tool: UNDO.into(),
        arguments,
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    });
    let outcome = Outcome::Completed { output: Output::default() };
    tale.push(Fact::Settled { call, outcome, seen: Vec::new() });
    assert_eq!(tale.files.undo(Scope::All).unwrap().facts, [first]);
}

#[test]
fn what_was_seen_last_is_what_counts() {
    let mut tale = Tale::default();
    for content in [1, 2] {
        let sight = Sight { path: "a".into(), digest: BlobRef::of(&[content]) };
        let outcome = Outcome::Failed { text: "stale; here is what it holds".into() };
        tale.push(Fact::Settled { call: CallId(Uuid::nil()), outcome, seen: vec![sight] });
    }
    assert_eq!(tale.files.seen().get("a"), Some(&BlobRef::of(&[2])));
}
