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

    /// Takes back what a person would be offered, but for some files.
    fn take_back(&mut self, scope: Scope, left: &[&str]) -> Vec<Seq> {
        let facts = self.files.undoable(scope);
        let undo = self.files.undo(&facts).unwrap();
        let back = undo.changes.iter().rev().filter(|change| !left.contains(&&*change.path));
        let back = back.map(|change| Change {
            path: change.path.clone(),
            before: change.after.clone(),
            after: change.before.clone(),
        });
        let back = back.collect();
        let metadata = [(LEFT.to_owned(), left.into())].into_iter().collect();
        let output = Output { metadata, ..Output::default() };
        self.turn();
        let short = Undo { changes: Vec::new(), ..undo };
        self.call(Some(&short), back, Outcome::Completed { output });
        facts
    }

    fn offered(&self, scope: Scope) -> Vec<Seq> {
        self.files.undoable(scope)
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
    assert_eq!(tale.offered(Scope::LastUndo), [0; 0], "nothing was taken back yet");
    assert_eq!(tale.take_back(Scope::LastTurn, &[]), [second, third]);
    assert_eq!(tale.take_back(Scope::LastTurn, &[]), [first]);
    assert_eq!(tale.offered(Scope::LastTurn), [0; 0]);
    tale.take_back(Scope::LastUndo, &[]);
    assert_eq!(tale.offered(Scope::LastTurn), [first], "done again");
    tale.take_back(Scope::LastUndo, &[]);
    assert_eq!(tale.offered(Scope::All), [first, second, third]);
    assert_eq!(tale.offered(Scope::LastUndo), [0; 0]);
    assert_eq!(tale.take_back(Scope::All, &[]), [first, second, third]);
    assert_eq!(tale.offered(Scope::All), [0; 0]);
    assert_eq!(tale.files.undo(&[first]), None, "what no longer stands is not taken back twice");
}

#[test]
fn a_file_that_was_left_alone_still_counts() {
    let mut tale = Tale::default();
    tale.turn();
    let a = tale.edit("a", 0, 1);
    let b = tale.edit("b", 7, 8);
    assert_eq!(tale.take_back(Scope::LastTurn, &["b"]), [a, b]);
    assert_eq!(tale.offered(Scope::LastTurn), [b]);
    assert_eq!(tale.files.undo(&[b]).unwrap().changes, [change("b", Some(7), Some(8))]);
}

#[test]
fn an_undo_that_failed_took_nothing_back() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    let undo = tale.files.undo(&[first]).unwrap();
    assert_eq!(undo.changes, [change("a", Some(0), Some(1))]);
    tale.turn();
    let call = tale.call(Some(&undo), Vec::new(), Outcome::Failed { text: "no".into() });
    assert_eq!(tale.offered(Scope::LastTurn), [first]);
    assert!(call > first && tale.offered(Scope::LastUndo).is_empty());
}

#[test]
fn what_was_not_made_after_all_does_not_count() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    let call = CallId(Uuid::max());
    let changes = vec![change("a", Some(1), Some(2))];
    tale.push(Fact::Changing { call, changes });
    tale.push(Fact::Unchanged { call });
    assert_eq!(tale.offered(Scope::All), [first]);
}

#[test]
fn a_fact_that_says_it_undoes_itself_ends() {
    let mut tale = Tale::default();
    tale.turn();
    let own = tale.seq + 2;
    let undo = Undo { facts: vec![own], changes: Vec::new(), view: View::Back };
    let done = Outcome::Completed { output: Output::default() };
    assert_eq!(tale.call(Some(&undo), vec![change("a", None, Some(1))], done), own);
    assert_eq!(tale.offered(Scope::All), [0; 0]);
}

#[test]
fn a_model_that_calls_itself_undo_takes_nothing_back() {
    let mut tale = Tale::default();
    tale.turn();
    let first = tale.edit("a", 0, 1);
    let call = CallId(Uuid::max());
    let arguments = serde_json::to_string(&tale.files.undo(&[first]).unwrap()).unwrap();
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
    assert_eq!(tale.offered(Scope::All), [first]);
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

#[test]
fn what_became_of_files_is_what_stands_in_the_end() {
    let mut tale = Tale::default();
    let done = || Outcome::Completed { output: Output::default() };
    tale.turn();
    tale.edit("back", 1, 2);
    tale.edit("edited", 1, 2);
    tale.edit("edited", 2, 3);
    tale.call(None, vec![change("new", None, Some(4))], done());
    tale.call(None, vec![change("gone", Some(5), None)], done());
    tale.call(None, vec![change("brief", None, Some(6))], done());
    tale.turn();
    tale.edit("back", 2, 1);
    tale.call(None, vec![change("brief", Some(6), None)], done());
    let Changed { added, changed, removed } = tale.files.changed();
    assert_eq!(
        (added, changed, removed),
        (vec!["new".into()], vec!["edited".into()], vec!["gone".into()])
    );
    tale.take_back(Scope::All, &[]);
    assert_eq!(tale.files.changed(), Changed::default(), "all of it was taken back");
}

#[test]
fn what_was_changed_after_a_position_is_taken_back_and_nothing_before() {
    let mut tale = Tale::default();
    tale.turn();
    tale.edit("a", 1, 2);
    let before = tale.seq;
    tale.turn();
    let second = tale.edit("b", 1, 2);
    tale.turn();
    let third = tale.edit("a", 2, 3);
    let since = |tale: &Tale, seq| tale.files.undoable(Scope::Since { seq });
    assert_eq!(since(&tale, before), [second, third]);
    assert_eq!(since(&tale, third), Vec::<Seq>::new());
    tale.take_back(Scope::LastTurn, &[]);
    assert_eq!(since(&tale, before), [second], "what is taken back already stays so");
}

#[test]
fn after_a_step_back_what_was_seen_since_is_unseen_and_what_was_changed_can_be_undone() {
    let mut tale = Tale::default();
    let sees = |tale: &mut Tale, path: &str| {
        let call = CallId(Uuid::from_u128(u128::from(tale.seq)));
        let seen = vec![Sight { path: path.into(), digest: BlobRef::of(&[1]) }];
        let outcome = Outcome::Completed { output: Output::default() };
        tale.push(Fact::Settled { call, outcome, seen })
    };
    sees(&mut tale, "a");
    let before = sees(&mut tale, "b");
    sees(&mut tale, "b");
    sees(&mut tale, "c");
    let changed = tale.edit("c", 1, 2);
    tale.push(Fact::Reverted { to: before });
    assert!(tale.files.seen().keys().eq(["a"]), "{:?}", tale.files.seen());
    assert_eq!(tale.files.undoable(Scope::All), [changed]);
    assert_eq!(tale.files.undoable(Scope::Since { seq: before }), [changed]);
}
