//! Runs the `.case` files of tools: the whole road, with a caller that answers as the case says.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use windlass_permission::{Policy, Rules};
use windlass_protocol::{
    Access, Answer, Author, BlobRef, CallId, Display, Inquiry, Mode, Outcome, Output, SessionId,
    Todo, TurnEnd,
};
use windlass_sandbox::{Content, Pending, Workspace};
use windlass_testkit::Case;
use windlass_testkit::case::Section;
use windlass_toolkit::{
    AgentCard, Call, Caller, Cx, Definition, Failure, Intent, NOBODY, Permit, Registry, Report,
    Runtime, Scene, Seen, Skill, Source, Spawn, Stake, Tool,
};

/// A person who gives one answer, and remembers what they were shown.
struct Person {
    answer: Answer,
    intent: Mutex<Option<Intent>>,
    /// What they were shown before they answered.
    preview: Mutex<Option<String>>,
    /// What has been read before, by path.
    seen: Mutex<BTreeMap<String, Seen>>,
    /// What somebody else writes after the call was approved.
    meanwhile: Vec<(PathBuf, Option<String>)>,
    /// What they touch without changing it.
    touched: Vec<PathBuf>,
    kept: Mutex<BTreeMap<BlobRef, Vec<u8>>>,
    recorded: Mutex<Vec<Pending>>,
    /// What is to be done, as it was last written.
    todos: Vec<Todo>,
    /// What they say to questions, one list for each; nobody is there if there is none.
    replies: Option<Vec<Vec<String>>>,
    /// What they were asked.
    inquired: Mutex<Vec<Inquiry>>,
    /// What agents say, by their names.
    agents: BTreeMap<String, String>,
}

impl Person {
    /// What somebody else does once the call has been approved.
    fn interfere(&self) {
        for path in &self.touched {
            let file = std::fs::File::options().append(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
        for (path, content) in &self.meanwhile {
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
        }
    }

    fn new(answer: Answer) -> Person {
        Person {
            answer,
            intent: Mutex::default(),
            preview: Mutex::default(),
            seen: Mutex::default(),
            meanwhile: Vec::new(),
            touched: Vec::new(),
            kept: Mutex::default(),
            recorded: Mutex::default(),
            todos: Vec::new(),
            replies: None,
            inquired: Mutex::default(),
            agents: BTreeMap::new(),
        }
    }
}

#[async_trait]
impl Caller for Person {
    async fn permit(&self, intent: Intent) -> Permit {
        let asked = intent.asking.is_some();
        *self.intent.lock().unwrap() = Some(intent);
        if asked {
            return Permit::Look;
        }
        self.interfere();
        Permit::Answer(Answer::Once)
    }

    async fn ask(&self, preview: Option<String>) -> Answer {
        *self.preview.lock().unwrap() = Some(preview.unwrap_or_default());
        self.interfere();
        self.answer.clone()
    }

    async fn keep(&self, bytes: Vec<u8>) -> Result<BlobRef, Failure> {
        let blob = BlobRef::of(&bytes);
        self.kept.lock().unwrap().insert(blob.clone(), bytes);
        Ok(blob)
    }

    async fn recall(&self, blob: &BlobRef) -> Result<Vec<u8>, Failure> {
        let kept = self.kept.lock().unwrap().get(blob).cloned();
        kept.ok_or_else(|| Failure::new("it is not kept"))
    }

    async fn record(&self, batch: Vec<Pending>) -> Result<(), Failure> {
        self.recorded.lock().unwrap().extend(batch);
        Ok(())
    }

    async fn withdraw(&self) {
        self.recorded.lock().unwrap().clear();
    }

    async fn version(&self, copy: &BlobRef) -> Result<Vec<u8>, Failure> {
        self.recall(copy).await
    }

    async fn inquire(
        &self,
        inquiries: Vec<Inquiry>,
        _stake: Stake,
    ) -> Result<Vec<Vec<String>>, Failure> {
        self.inquired.lock().unwrap().extend(inquiries);
        self.replies.clone().ok_or_else(|| Failure::new(NOBODY))
    }

    fn todos(&self) -> Vec<Todo> {
        self.todos.clone()
    }

    fn seen(&self, path: &str) -> Option<Seen> {
        self.seen.lock().unwrap().get(path).cloned()
    }

    async fn spawn(&self, spawn: Spawn) -> Result<Report, Failure> {
        let text = self.agents[&spawn.agent].clone();
        let session = "00000000-0000-0000-0000-000000000007".parse().unwrap();
        Ok(Report { session, text, end: Some(TurnEnd::Done) })
    }

    fn show(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen = Seen { digest: BlobRef::of(bytes), bytes: Some(Arc::clone(bytes)) };
        self.seen.lock().unwrap().insert(path.to_owned(), seen);
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
    let person = person(&case, &root, answer);
    let scene = Scene {
        model: case.all("model").next().map(|model| model.argument.clone()).unwrap_or_default(),
        pdfs: true,
        trusted: case.all("trusted").next().is_some(),
        skills: case.all("skill").map(skill).collect(),
        agents: case.all("agent").map(card).collect(),
        ..Scene::default()
    };
    let mode = case.all("mode").next().map(|mode| mode.argument.parse().unwrap());
    let rules = (rules, mode.unwrap_or_default());
    let registry = shelf(&case);
    let outcome =
        travel(&root, (rules, registry), &person, &scene, (case.one("call"), Author::Model));

    let mut actual = told(&person, &outcome);
    let after = files(&root);
    let shown = |path: &String| person.meanwhile.iter().all(|(other, _)| *other != root.join(path));
    for (path, content) in &after {
        if before.get(path) != Some(content) && shown(path) {
            actual.push(after_section(path, content));
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path) && shown(path)) {
        actual.push(Section::new("gone", path, ""));
    }
    case.check(&PARTS, &actual);
    // Whatever somebody else wrote in the meantime must still be there.
    for (path, content) in &person.meanwhile {
        assert_eq!(std::fs::read_to_string(path).ok(), *content);
    }
    assert_recorded(&person, &before, &after);
    assert!(
        files(&yard.path().join("outside"))
            .values()
            .all(|text| text.ends_with(b"secret\n") || text == b"one\n")
    );
}

/// The sections of a case that tell what came of it.
const PARTS: [&str; 11] = [
    "access",
    "repaired",
    "asked",
    "inquired",
    "outcome",
    "display",
    "attachment",
    "after",
    "after-crlf",
    "after-bytes",
    "gone",
];

/// What the person and the model were told.
fn told(person: &Person, outcome: &Outcome) -> Vec<Section> {
    let mut actual = Vec::new();
    if let Some(intent) = person.intent.lock().unwrap().take() {
        let accesses: Vec<String> = intent.accesses.iter().map(describe).collect();
        actual.push(Section::new("access", "", &accesses.join("\n")));
        if let Some(repair) = &intent.repaired {
            actual.push(Section::new("repaired", "", &repair.changes.join("\n")));
        }
        if let (Some(reason), Some(preview)) =
            (intent.asking, person.preview.lock().unwrap().take())
        {
            actual.push(Section::new("asked", &reason, &preview));
        }
    }
    for inquiry in person.inquired.lock().unwrap().iter() {
        let mut lines = vec![inquiry.question.clone()];
        lines.extend(inquiry.options.iter().map(|option| match option.description.as_str() {
            "" => format!("- {}", option.label),
            description => format!("- {}: {description}", option.label),
        }));
        let more = [(inquiry.multiple, "(several)"), (inquiry.custom, "(or in their own words)")];
        lines.extend(more.iter().filter(|(is, _)| *is).map(|(_, words)| (*words).to_owned()));
        actual.push(Section::new("inquired", &inquiry.header, &lines.join("\n")));
    }
    let (status, text) = match outcome {
        Outcome::Completed { output } => ("completed", output.text.clone()),
        Outcome::Failed { text } => ("failed", text.clone()),
        Outcome::Denied { text } => ("denied", text.clone()),
        Outcome::Interrupted { .. } | Outcome::Unknown => panic!("{outcome:?}"),
    };
    actual.push(Section::new("outcome", status, &text));
    if let Outcome::Completed { output } = outcome
        && let Display::Diff { unified } = &output.display
    {
        actual.push(Section::new("display", "diff", unified));
    }
    if let Outcome::Completed { output } = outcome
        && let Display::Checklist { items } = &output.display
    {
        let lines: Vec<String> = items.iter().map(Todo::to_string).collect();
        actual.push(Section::new("display", "checklist", &lines.join("\n")));
    }
    for file in outcome.attachments() {
        let size = person.kept.lock().unwrap()[&file.blob].len();
        let line = format!("{} {} {size} bytes", file.name, file.mime);
        actual.push(Section::new("attachment", &line, ""));
    }
    actual
}

/// Makes a call in a folder where everything is allowed, by a model that knows patches and has
/// read some files.
pub(crate) fn call(root: &Path, read: &[&str], tool: &str, arguments: &str) -> Outcome {
    let rules = Rules::parse(&serde_json::json!("allow")).unwrap();
    let person = Person::new(Answer::Once);
    for path in read {
        person.show(path, &std::fs::read(root.join(path)).unwrap().into());
    }
    let scene = Scene { model: "openai/gpt-5".into(), ..Scene::default() };
    let call = Section::new("call", tool, arguments);
    let rules = ((rules, Mode::default()), Registry::default());
    travel(root, rules, &person, &scene, (&call, Author::Model))
}

/// Makes a call of a model that has read nothing.
pub(crate) fn call_as(root: &Path, model: &str, tool: &str, arguments: &str) -> Outcome {
    let rules = (Rules::parse(&serde_json::json!("allow")).unwrap(), Mode::default());
    let scene = Scene { model: model.into(), ..Scene::default() };
    let call = Section::new("call", tool, arguments);
    let rules = (rules, Registry::default());
    travel(root, rules, &Person::new(Answer::Once), &scene, (&call, Author::Model))
}

/// A folder in which a person takes changes back.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    person: Person,
}

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            std::fs::write(folder.path().join(path), content).unwrap();
        }
        Folder { folder, person: Person::new(Answer::Once) }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// Keeps a version.
    pub(crate) fn keep(&self, content: &str) -> BlobRef {
        let copy = BlobRef::of(content.as_bytes());
        self.person.kept.lock().unwrap().insert(copy.clone(), content.into());
        copy
    }

    /// How many changes were put on record.
    pub(crate) fn recorded(&self) -> usize {
        self.person.recorded.lock().unwrap().len()
    }

    pub(crate) fn undo(&self, arguments: &str) -> Outcome {
        let rules = Rules::parse(&serde_json::json!("allow")).unwrap();
        let call = Section::new("call", windlass_protocol::files::UNDO, arguments);
        let rules = ((rules, Mode::default()), Registry::default());
        let scene = Scene::default();
        travel(self.folder.path(), rules, &self.person, &scene, (&call, Author::Person))
    }
}

/// Who makes the call: what they have read, and what somebody else does in the meantime.
fn person(case: &Case, root: &Path, answer: Answer) -> Person {
    let seen = |path: &str, bytes: Arc<[u8]>| {
        (path.to_owned(), Seen { digest: BlobRef::of(&bytes), bytes: Some(bytes) })
    };
    let as_it_is = case.all("read").map(|section| {
        let bytes = std::fs::read(root.join(&section.argument)).unwrap();
        seen(&section.argument, bytes.into())
    });
    let as_it_was =
        case.all("read-as").map(|section| seen(&section.argument, section.body.as_bytes().into()));
    let seen = as_it_is.chain(as_it_was).collect();
    let writes = case.all("meanwhile").map(|section| (section, Some(section.body.clone())));
    let removes = case.all("meanwhile-gone").map(|section| (section, None));
    let meanwhile = writes.chain(removes);
    Person {
        seen: Mutex::new(seen),
        todos: case
            .all("todos")
            .next()
            .map(|list| serde_json::from_str(&list.body).unwrap())
            .unwrap_or_default(),
        replies: case.all("replies").next().map(|said| serde_json::from_str(&said.body).unwrap()),
        touched: case.all("meanwhile-touch").map(|at| root.join(&at.argument)).collect(),
        agents: case.all("agent").map(|at| (at.argument.clone(), at.body.trim().into())).collect(),
        meanwhile: meanwhile.map(|(at, body)| (root.join(&at.argument), body)).collect(),
        ..Person::new(answer)
    }
}

/// A skill as a case has it: its name and what it is for, then its body.
fn skill(section: &Section) -> Skill {
    let (name, description) = section.argument.split_once(' ').unwrap();
    Skill {
        name: name.into(),
        description: description.into(),
        body: section.body.clone(),
        folder: format!(".windlass/skills/{name}"),
        tools: Vec::new(),
    }
}

/// Somebody else's tool, as a case has it: its name and what it says of itself, then its schema.
/// It gives back what it was called with.
struct Stranger {
    name: String,
    definition: Definition,
}

#[async_trait]
impl Tool for Stranger {
    type Input = serde_json::Map<String, serde_json::Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn listed(&self) -> bool {
        false
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        self.definition.clone()
    }

    fn access(&self, _input: &Self::Input) -> Vec<Access> {
        vec![Access::Use { tool: self.name.clone() }]
    }

    async fn run(&self, input: Self::Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        let text = format!("{} was called with {}", self.name, serde_json::Value::Object(input));
        Ok(Output { text, ..Output::default() })
    }
}

/// Somebody whose tools do not come, as a case has it: the name, then why.
struct Absent(String, String);

#[async_trait]
impl Source for Absent {
    fn name(&self) -> &str {
        &self.0
    }

    async fn arrive(&self) -> Result<(), String> {
        Err(self.1.clone())
    }

    fn brief(&self) -> String {
        self.0.clone()
    }
}

/// What others bring.
fn shelf(case: &Case) -> Registry {
    let registry = Registry::default();
    for section in case.all("stranger") {
        let (name, description) = section.argument.split_once(' ').unwrap();
        let schema = serde_json::from_str(&section.body).unwrap();
        let definition = Definition { description: description.into(), schema };
        registry.admit("git", Stranger { name: name.into(), definition }).unwrap();
    }
    for section in case.all("awaited") {
        let (name, why) = section.argument.split_once(' ').unwrap();
        registry.expect(Arc::new(Absent(name.into(), why.into())));
    }
    registry
}

/// A file as a case shows it: as text, as text with CRLF line ends, or as bytes.
fn after_section(path: &str, content: &[u8]) -> Section {
    let plain = |text: &str| {
        let whole = text.is_empty() || text.ends_with('\n');
        whole && !text.contains(['\r', '\u{feff}'])
    };
    match std::str::from_utf8(content) {
        Ok(text) if text.contains("\r\n") && !text.replace("\r\n", "").contains('\n') => {
            Section::new("after-crlf", path, &text.replace("\r\n", "\n"))
        }
        Ok(text) if plain(text) => Section::new("after", path, text),
        Ok(_) | Err(_) => {
            let bytes: Vec<String> = content.iter().map(|byte| format!("{byte:02x}")).collect();
            Section::new("after-bytes", path, &bytes.join(" "))
        }
    }
}

/// Whatever changed was on record, with what stood there before and after.
fn assert_recorded(
    person: &Person,
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) {
    let recorded = person.recorded.lock().unwrap();
    let bytes = |content: &Option<Content>| content.as_ref().map(|content| content.bytes.to_vec());
    let paths =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path));
    for path in paths {
        if person.meanwhile.iter().any(|(other, _)| other.ends_with(path)) {
            continue;
        }
        let entry = recorded.iter().find(|pending| pending.path == *path);
        let entry = entry.unwrap_or_else(|| panic!("{path} changed without a record"));
        assert_eq!(bytes(&entry.before).as_ref(), before.get(path), "{path}");
        let last = recorded.iter().rfind(|pending| pending.path == *path).unwrap();
        assert_eq!(bytes(&last.after).as_ref(), after.get(path), "{path}");
    }
}

fn travel(
    root: &Path,
    ((rules, mode), registry): ((Rules, Mode), Registry),
    person: &Person,
    scene: &Scene,
    (call, by): (&Section, Author),
) -> Outcome {
    let runtime = Runtime {
        registry,
        hooks: Vec::new(),
        policy: Policy::new(rules).in_mode(mode),
        workspace: Workspace::at(root).unwrap(),
        limits: Default::default(),
    };
    crate::register(&runtime.registry, &crate::Senses::default());
    let call = Call {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        by,
        tool: call.argument.clone(),
        arguments: call.body.clone(),
    };
    block_on(async {
        let snapshot = runtime.snapshot(scene).await;
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
        "file-crlf" => place(root, section.body.replace('\n', "\r\n").as_bytes()),
        "file-cut" => place(root, section.body.trim_end_matches('\n').as_bytes()),
        "outside" => place(&root.join("../outside"), section.body.as_bytes()),
        "bytes" => {
            let byte = |hex| u8::from_str_radix(hex, 16).unwrap();
            place(root, &section.body.split_whitespace().map(byte).collect::<Vec<_>>());
        }
        // So many files of one age, each with its number for the `*`.
        "files" => {
            let (number, pattern) = section.argument.split_once(' ').unwrap();
            let number: usize = number.parse().unwrap();
            let now = std::time::SystemTime::now();
            for n in 1..=number {
                let path = root.join(pattern.replace('*', &format!("{n:03}")));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &section.body).unwrap();
                let file = std::fs::File::options().write(true).open(path).unwrap();
                file.set_modified(now).unwrap();
            }
        }
        "old" => {
            let (path, seconds) = section.argument.split_once(' ').unwrap();
            let ago = std::time::Duration::from_secs(seconds.parse().unwrap());
            let file = std::fs::File::options().write(true).open(root.join(path)).unwrap();
            file.set_modified(std::time::SystemTime::now() - ago).unwrap();
        }
        "link" => {
            let (name, target) = section.argument.split_once(' ').unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        _ => {}
    }
}

fn card(agent: &Section) -> AgentCard {
    AgentCard { name: agent.argument.clone(), description: String::new() }
}

fn describe(access: &Access) -> String {
    format!("{} {}", access.key(), access.subject())
}

/// All files below a folder, links not followed.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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
                found.insert(path, std::fs::read(entry.path()).unwrap());
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
