//! Tests of `FileHistory`: undo, redo, and the changes that remain applied.

use super::*;
use crate::call_approval_and_outcome::ToolOutput;
use crate::file_change::SeenFileDigest;
use uuid::Uuid;

fn version(content: u8) -> FileVersion {
    FileVersion { blob: BlobRef::for_bytes(&[content]), unix_mode: None }
}

fn change(path: &str, before: Option<u8>, after: Option<u8>) -> FileChange {
    FileChange { path: path.into(), before: before.map(version), after: after.map(version) }
}

/// A log that the test appends to, with its `FileHistory`.
#[derive(Default)]
struct TestLog {
    files: FileHistory,
    seq: LogSeq,
    turn: u32,
}

impl TestLog {
    fn push(&mut self, fact: Fact) -> LogSeq {
        self.seq += 1;
        self.files.push(self.seq, &fact);
        self.seq
    }

    fn turn(&mut self) {
        self.turn += 1;
        self.push(Fact::TurnStarted { turn: self.turn, prompt: None });
    }

    fn call(
        &mut self,
        arguments: Option<&UndoArguments>,
        changes: Vec<FileChange>,
        outcome: CallOutcome,
    ) -> LogSeq {
        let call = CallId(Uuid::from_u128(u128::from(self.seq)));
        let (tool, author) = match arguments {
            Some(_) => (UNDO_TOOL, CallAuthor::User),
            None => ("edit", CallAuthor::Model),
        };
        self.push(Fact::ToolCalled {
            description: crate::CallDescription::default(),
            call,
            provider_call_id: String::new(),
            tool: tool.into(),
            arguments: serde_json::to_string(&arguments).unwrap(),
            author,
            repair: Vec::new(),
            provider_signature: None,
        });
        let seq = self.push(Fact::FilesChanging { call, changes });
        self.push(Fact::CallSettled { call, outcome, seen_files: Vec::new() });
        seq
    }

    fn edit(&mut self, path: &str, before: u8, after: u8) -> LogSeq {
        let completed = CallOutcome::Completed { output: ToolOutput::default() };
        self.call(None, vec![change(path, Some(before), Some(after))], completed)
    }

    /// Undoes the facts that the history offers for `scope`, except the files in `skipped`.
    fn undo(&mut self, scope: UndoScope, skipped: &[&str]) -> Vec<LogSeq> {
        let facts = self.files.undoable_facts(scope);
        let undo = self.files.undo_arguments(&facts).unwrap();
        let inverse_changes =
            undo.changes.iter().rev().filter(|change| !skipped.contains(&&*change.path));
        let inverse_changes = inverse_changes.map(|change| FileChange {
            path: change.path.clone(),
            before: change.after.clone(),
            after: change.before.clone(),
        });
        let inverse_changes = inverse_changes.collect();
        let metadata = [(SKIPPED_FILES_KEY.to_owned(), skipped.into())].into_iter().collect();
        let output = ToolOutput { metadata, ..ToolOutput::default() };
        self.turn();
        let arguments = UndoArguments { changes: Vec::new(), ..undo };
        self.call(Some(&arguments), inverse_changes, CallOutcome::Completed { output });
        facts
    }

    fn undoable(&self, scope: UndoScope) -> Vec<LogSeq> {
        self.files.undoable_facts(scope)
    }
}

#[test]
fn undo_goes_back_turn_by_turn_and_redo_goes_forward() {
    let mut log = TestLog::default();
    log.turn();
    let first = log.edit("a", 0, 1);
    log.turn();
    let second = log.edit("a", 1, 2);
    let third = log.edit("b", 7, 8);
    assert_eq!(log.undoable(UndoScope::LastUndo), [0; 0], "nothing has been undone yet");
    assert_eq!(log.undo(UndoScope::LastTurn, &[]), [second, third]);
    assert_eq!(log.undo(UndoScope::LastTurn, &[]), [first]);
    assert_eq!(log.undoable(UndoScope::LastTurn), [0; 0]);
    log.undo(UndoScope::LastUndo, &[]);
    assert_eq!(log.undoable(UndoScope::LastTurn), [first], "redone");
    log.undo(UndoScope::LastUndo, &[]);
    assert_eq!(log.undoable(UndoScope::All), [first, second, third]);
    assert_eq!(log.undoable(UndoScope::LastUndo), [0; 0]);
    assert_eq!(log.undo(UndoScope::All, &[]), [first, second, third]);
    assert_eq!(log.undoable(UndoScope::All), [0; 0]);
    assert_eq!(log.files.undo_arguments(&[first]), None, "an undone change cannot be undone twice");
}

#[test]
fn a_skipped_file_can_still_be_undone() {
    let mut log = TestLog::default();
    log.turn();
    let a = log.edit("a", 0, 1);
    let b = log.edit("b", 7, 8);
    assert_eq!(log.undo(UndoScope::LastTurn, &["b"]), [a, b]);
    assert_eq!(log.undoable(UndoScope::LastTurn), [b]);
    assert_eq!(log.files.undo_arguments(&[b]).unwrap().changes, [change("b", Some(7), Some(8))]);
}

#[test]
fn a_failed_undo_changes_no_state() {
    let mut log = TestLog::default();
    log.turn();
    let first = log.edit("a", 0, 1);
    let undo = log.files.undo_arguments(&[first]).unwrap();
    assert_eq!(undo.changes, [change("a", Some(0), Some(1))]);
    log.turn();
    let call = log.call(Some(&undo), Vec::new(), CallOutcome::Failed { text: "no".into() });
    assert_eq!(log.undoable(UndoScope::LastTurn), [first]);
    assert!(call > first && log.undoable(UndoScope::LastUndo).is_empty());
}

#[test]
fn a_change_that_did_not_happen_cannot_be_undone() {
    let mut log = TestLog::default();
    log.turn();
    let first = log.edit("a", 0, 1);
    let call = CallId(Uuid::max());
    let changes = vec![change("a", Some(1), Some(2))];
    log.push(Fact::FilesChanging { call, changes });
    log.push(Fact::FilesUnchanged { call });
    assert_eq!(log.undoable(UndoScope::All), [first]);
}

#[test]
fn a_fact_that_undoes_itself_does_not_recurse_forever() {
    let mut log = TestLog::default();
    log.turn();
    let own = log.seq + 2;
    let undo = UndoArguments {
        facts: vec![own],
        changes: Vec::new(),
        not_captured: Vec::new(),
        direction: DiffDirection::Reverse,
        is_redo: false,
    };
    let completed = CallOutcome::Completed { output: ToolOutput::default() };
    assert_eq!(log.call(Some(&undo), vec![change("a", None, Some(1))], completed), own);
    assert_eq!(log.undoable(UndoScope::All), [0; 0]);
}

#[test]
fn an_undo_call_of_the_model_is_ignored() {
    let mut log = TestLog::default();
    log.turn();
    let first = log.edit("a", 0, 1);
    let call = CallId(Uuid::max());
    let arguments = serde_json::to_string(&log.files.undo_arguments(&[first]).unwrap()).unwrap();
    log.push(Fact::ToolCalled {
        description: crate::CallDescription::default(),
        call,
        provider_call_id: String::new(),
        tool: UNDO_TOOL.into(),
        arguments,
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    });
    let outcome = CallOutcome::Completed { output: ToolOutput::default() };
    log.push(Fact::CallSettled { call, outcome, seen_files: Vec::new() });
    assert_eq!(log.undoable(UndoScope::All), [first]);
}

#[test]
fn the_last_seen_digest_of_a_file_is_kept() {
    let mut log = TestLog::default();
    for content in [1, 2] {
        let seen_file = SeenFileDigest { path: "a".into(), digest: BlobRef::for_bytes(&[content]) };
        let outcome = CallOutcome::Failed { text: "stale; here is the current content".into() };
        log.push(Fact::CallSettled {
            call: CallId(Uuid::nil()),
            outcome,
            seen_files: vec![seen_file],
        });
    }
    assert_eq!(log.files.seen_digests().get("a"), Some(&BlobRef::for_bytes(&[2])));
}

#[test]
fn changed_files_compares_the_first_and_the_last_version() {
    let mut log = TestLog::default();
    let completed = || CallOutcome::Completed { output: ToolOutput::default() };
    log.turn();
    log.edit("back", 1, 2);
    log.edit("edited", 1, 2);
    log.edit("edited", 2, 3);
    log.call(None, vec![change("new", None, Some(4))], completed());
    log.call(None, vec![change("gone", Some(5), None)], completed());
    log.call(None, vec![change("brief", None, Some(6))], completed());
    log.turn();
    log.edit("back", 2, 1);
    log.call(None, vec![change("brief", Some(6), None)], completed());
    let ChangedFiles { added, modified, removed } = log.files.changed_files();
    assert_eq!(
        (added, modified, removed),
        (vec!["new".into()], vec!["edited".into()], vec!["gone".into()])
    );
    log.undo(UndoScope::All, &[]);
    assert_eq!(log.files.changed_files(), ChangedFiles::default(), "every change was undone");
}

#[test]
fn undo_since_a_position_leaves_earlier_changes() {
    let mut log = TestLog::default();
    log.turn();
    log.edit("a", 1, 2);
    let before = log.seq;
    log.turn();
    let second = log.edit("b", 1, 2);
    log.turn();
    let third = log.edit("a", 2, 3);
    let since = |log: &TestLog, seq| log.files.undoable_facts(UndoScope::Since { seq });
    assert_eq!(since(&log, before), [second, third]);
    assert_eq!(since(&log, third), Vec::<LogSeq>::new());
    log.undo(UndoScope::LastTurn, &[]);
    assert_eq!(
        since(&log, before),
        [second],
        "changes that are already undone are not offered again"
    );
}

#[test]
fn a_rewind_forgets_seen_files_and_keeps_changes_undoable() {
    let mut log = TestLog::default();
    let see_file = |log: &mut TestLog, path: &str| {
        let call = CallId(Uuid::from_u128(u128::from(log.seq)));
        let seen = vec![SeenFileDigest { path: path.into(), digest: BlobRef::for_bytes(&[1]) }];
        let outcome = CallOutcome::Completed { output: ToolOutput::default() };
        log.push(Fact::CallSettled { call, outcome, seen_files: seen })
    };
    see_file(&mut log, "a");
    let before = see_file(&mut log, "b");
    see_file(&mut log, "b");
    see_file(&mut log, "c");
    let changed = log.edit("c", 1, 2);
    log.push(Fact::Rewound { to: before });
    assert!(log.files.seen_digests().keys().eq(["a"]), "{:?}", log.files.seen_digests());
    assert_eq!(log.files.undoable_facts(UndoScope::All), [changed]);
    assert_eq!(log.files.undoable_facts(UndoScope::Since { seq: before }), [changed]);
}

#[test]
fn instructions_are_forgotten_when_they_may_have_left_the_context() {
    let pruned = Fact::OutputsPruned { calls: Vec::new() };
    let mut log = TestLog::default();
    for path in ["a.rs", "src/AGENTS.md", ".windlass/rules/x.md", "rules/x.md"] {
        let seen = vec![SeenFileDigest { path: path.into(), digest: BlobRef::for_bytes(&[1]) }];
        let outcome = CallOutcome::Completed { output: ToolOutput::default() };
        let call = CallId(Uuid::nil());
        log.push(Fact::CallSettled { call, outcome, seen_files: seen });
    }
    assert_eq!(log.files.seen_digests().len(), 4);
    log.push(pruned);
    assert!(log.files.seen_digests().keys().eq(["a.rs", "rules/x.md"]));
}
