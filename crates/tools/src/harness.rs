//! Runs the `.case` files of tools: the whole road, with a caller that answers as the case says.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{Access, Answer, BlobRef, CallId, Display, Outcome, SessionId};
use windlass_sandbox::Workspace;
use windlass_testkit::Case;
use windlass_testkit::case::Section;
use windlass_toolkit::{Call, Caller, Failure, Intent, Registry, Runtime, Scene, Tool};

/// A person who gives one answer, and remembers what they were shown.
struct Person {
    answer: Answer,
    intent: Mutex<Option<Intent>>,
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Answer {
        let asked = intent.asking.is_some();
        *self.intent.lock().unwrap() = Some(intent);
        if asked { self.answer.clone() } else { Answer::Once }
    }

    fn progress(&self, _text: String) {}

    async fn keep(&self, _bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        Err(Failure::new("cases keep nothing"))
    }

    async fn recall(&self, _blob: &BlobRef) -> Result<Vec<u8>, Failure> {
        Err(Failure::new("cases keep nothing"))
    }
}

/// Arranges a case, makes its call, and compares what came of it.
pub(crate) fn run(case: Case) {
    let yard = tempfile::tempdir().unwrap();
    let root = yard.path().join("w");
    std::fs::create_dir_all(&root).unwrap();
    for section in &case.sections {
        arrange(section, &root);
    }
    let before = files(&root);
    let rules = case.all("permission").next().map_or("{}", |section| &section.body);
    let rules = Rules::parse(&serde_json::from_str(rules).unwrap()).unwrap();
    let answer = match case.all("answer").next().map(|section| section.argument.as_str()) {
        None | Some("yes") => Answer::Once,
        Some("no") => Answer::No { reason: None },
        Some(other) => Answer::No { reason: other.strip_prefix("no ").map(Into::into) },
    };
    let person = Person { answer, intent: Mutex::default() };
    let outcome = travel(&root, rules, &person, case.one("call"));

    let mut actual = Vec::new();
    if let Some(intent) = person.intent.into_inner().unwrap() {
        let accesses: Vec<String> = intent.accesses.iter().map(describe).collect();
        actual.push(Section::new("access", "", &accesses.join("\n")));
        if let Some(repair) = &intent.repaired {
            actual.push(Section::new("repaired", "", &repair.changes.join("\n")));
        }
        if let Some(asking) = intent.asking {
            let preview = asking.preview.unwrap_or_default();
            actual.push(Section::new("asked", &asking.reason, &preview));
        }
    }
    let (status, text) = match &outcome {
        Outcome::Completed { output } => ("completed", output.text.clone()),
        Outcome::Failed { text } => ("failed", text.clone()),
        Outcome::Denied { text } => ("denied", text.clone()),
        Outcome::Interrupted { .. } | Outcome::Unknown => panic!("{outcome:?}"),
    };
    actual.push(Section::new("outcome", status, &text));
    if let Outcome::Completed { output } = &outcome
        && let Display::Diff { unified } = &output.display
    {
        actual.push(Section::new("display", "diff", unified));
    }
    for (path, content) in files(&root) {
        if before.get(&path) != Some(&content) {
            actual.push(Section::new("after", &path, &content));
        }
    }
    case.check(&["access", "repaired", "asked", "outcome", "display", "after"], &actual);
    assert!(
        files(&yard.path().join("outside"))
            .values()
            .all(|text| text.ends_with("secret\n") || text == "one\n")
    );
}

fn travel(root: &Path, rules: Rules, person: &Person, call: &Section) -> Outcome {
    let runtime = Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(rules),
        workspace: Workspace::at(root).unwrap(),
        limits: Default::default(),
    };
    crate::register(&runtime.registry);
    let call = Call {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        tool: call.argument.clone(),
        arguments: call.body.clone(),
    };
    block_on(async {
        let snapshot = runtime.snapshot(&Scene::default()).await;
        runtime.travel(&snapshot, call, person, CancellationToken::new()).await
    })
}

fn arrange(section: &Section, root: &Path) {
    let place = |folder: &Path, content: &[u8]| {
        let path = folder.join(&section.argument);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    match section.name.as_str() {
        "file" => place(root, section.body.as_bytes()),
        "outside" => place(&root.join("../outside"), section.body.as_bytes()),
        "bytes" => {
            let byte = |hex| u8::from_str_radix(hex, 16).unwrap();
            place(root, &section.body.split_whitespace().map(byte).collect::<Vec<_>>());
        }
        "link" => {
            let (name, target) = section.argument.split_once(' ').unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        _ => {}
    }
}

fn describe(access: &Access) -> String {
    format!("{} {}", access.key(), access.subject())
}

/// All files below a folder, links not followed.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let path = entry.path().strip_prefix(folder).unwrap().display().to_string();
                let bytes = std::fs::read(entry.path()).unwrap();
                found.insert(path, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
    }
    found
}

/// Compares the schema a model is sent with the one beside the tool.
pub(crate) fn check_schema(tool: &impl Tool, expected: expect_test::ExpectFile) {
    let definition = block_on(tool.describe(&Scene::default()));
    expected.assert_eq(&(serde_json::to_string_pretty(&definition.schema).unwrap() + "\n"));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(future)
}
