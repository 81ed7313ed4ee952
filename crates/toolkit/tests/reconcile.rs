//! What is found out about a call that was changing files when the process died.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Answer, BlobRef, Change, Outcome, Version};
use windlass_sandbox::{Pending, Workspace};
use windlass_toolkit::{Caller, Failure, Intent, Permit, Registry, Runtime};

/// A caller that has kept some versions.
#[derive(Default)]
struct Keeper(BTreeMap<BlobRef, Vec<u8>>);

#[async_trait]
impl Caller for Keeper {
    async fn permit(&self, _intent: Intent) -> Permit {
        panic!("nobody is asked again")
    }

    async fn ask(&self, _preview: Option<String>) -> Answer {
        panic!("nobody is asked again")
    }

    async fn record(&self, _batch: Vec<Pending>) -> Result<(), Failure> {
        panic!("it is on record already")
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        self.0.get(copy).cloned().ok_or_else(|| Failure::new("not kept"))
    }
}

/// Four files of a batch: one changed, one made, one removed, and one changed again.
const BATCH: [(&str, Option<&str>, Option<&str>); 4] = [
    ("changed", Some("old"), Some("new")),
    ("made", None, Some("new")),
    ("removed", Some("old"), None),
    ("again", Some("first"), Some("third")),
];

struct Yard {
    folder: tempfile::TempDir,
    runtime: Runtime,
    keeper: Keeper,
    changes: Vec<Change>,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime {
            registry: Registry::default(),
            hooks: Vec::new(),
            // The call was asked about, and somebody said yes, before it started.
            policy: Policy::new(Rules::default()),
            workspace: Workspace::at(folder.path()).unwrap(),
            limits: Default::default(),
        };
        let mut keeper = Keeper::default();
        let mut version = |content: &str| {
            let copy = BlobRef::of(content.as_bytes());
            keeper.0.insert(copy.clone(), content.into());
            Version { copy, mode: None }
        };
        let mut changes = Vec::new();
        for (path, before, after) in BATCH {
            let steps = match path {
                "again" => vec![(before, Some("second")), (Some("second"), after)],
                _ => vec![(before, after)],
            };
            for (before, after) in steps {
                let (before, after) = (before.map(&mut version), after.map(&mut version));
                changes.push(Change { path: path.into(), before, after });
            }
        }
        Yard { folder, runtime, keeper, changes }
    }

    fn put(&self, path: &str, content: Option<&str>) {
        let path = self.folder.path().join(path);
        match content {
            Some(content) => std::fs::write(path, content).unwrap(),
            None => drop(std::fs::remove_file(path)),
        }
    }

    fn holds(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(path)).ok()
    }

    async fn reconcile(&self) -> Outcome {
        self.reconcile_with(&[]).await
    }

    /// The same, of a call that may touch more.
    async fn reconcile_with(&self, more: &[Access]) -> Outcome {
        let accesses = BATCH.map(|(path, ..)| Access::Edit { path: path.into() });
        let accesses = accesses.iter().chain(more).cloned().collect();
        self.runtime.reconcile(accesses, self.changes.clone(), &self.keeper).await
    }
}

#[tokio::test]
async fn a_batch_is_found_done_or_taken_back_whatever_was_reached() {
    // Every combination of files that were reached and files that were not.
    for reached in 0_u32..16 {
        let yard = Yard::new();
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            yard.put(path, if reached & (1 << bit) == 0 { before } else { after });
        }
        let stray = format!(".windlass-{}-0.draft", u32::MAX);
        yard.put(&stray, Some("left by a process that is gone"));
        let outcome = yard.reconcile().await;
        let done = reached == 15;
        match &outcome {
            Outcome::Completed { .. } => assert!(done, "{reached:04b}"),
            Outcome::Failed { text } => assert!(!done && text.contains("nothing was changed")),
            other => panic!("{reached:04b}: {other:?}"),
        }
        for (path, before, after) in BATCH {
            let expected = if done { after } else { before };
            assert_eq!(yard.holds(path).as_deref(), expected, "{reached:04b} {path}");
        }
        assert_eq!(yard.holds(&stray), None);
    }
}

#[tokio::test]
async fn what_somebody_else_has_touched_since_is_left_alone() {
    let yard = Yard::new();
    for (path, _, after) in BATCH {
        yard.put(path, after);
    }
    yard.put("changed", Some("theirs"));
    assert_eq!(yard.reconcile().await, Outcome::Unknown);
    assert_eq!(yard.holds("changed").as_deref(), Some("theirs"));
    assert_eq!(yard.holds("made").as_deref(), Some("new"));
}

#[tokio::test]
async fn without_its_copies_a_half_batch_is_told_as_unknown() {
    let mut yard = Yard::new();
    yard.keeper.0.clear();
    yard.put("changed", Some("new"));
    yard.put("removed", Some("old"));
    yard.put("again", Some("first"));
    assert_eq!(yard.reconcile().await, Outcome::Unknown);
    assert_eq!(yard.holds("changed").as_deref(), Some("new"));
}

#[tokio::test]
async fn a_file_that_was_not_reached_makes_the_rest_a_part_of_it() {
    let yard = Yard::new();
    for (path, _, after) in BATCH {
        yard.put(path, after);
    }
    let outcome = yard.reconcile_with(&[Access::Edit { path: "next".into() }]).await;
    assert!(matches!(&outcome, Outcome::Failed { text } if text.contains("nothing was changed")));
    for (path, before, _) in BATCH {
        assert_eq!(yard.holds(path).as_deref(), before, "{path}");
    }
}

#[tokio::test]
async fn files_do_not_say_what_became_of_a_command() {
    for reached in [0, 2, 4] {
        let yard = Yard::new();
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            yard.put(path, if bit < reached { after } else { before });
        }
        let run = Access::Run { command: "make".into(), folder: ".".into() };
        assert_eq!(yard.reconcile_with(&[run]).await, Outcome::Unknown);
        for (bit, (path, before, after)) in BATCH.into_iter().enumerate() {
            let left = if bit < reached { after } else { before };
            assert_eq!(yard.holds(path).as_deref(), left, "{path} was touched");
        }
    }
}
