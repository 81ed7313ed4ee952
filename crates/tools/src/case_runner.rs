//! Runs the `.case` files of tools through the whole tool pipeline, with a `ToolCaller` that answers as
//! the case says.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests create files directly and fail by panicking"
)]

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, OutputDisplay, PermissionAnswer, PermissionMode,
    SessionId, TodoItem, ToolAccess, ToolOutput, TurnEndReason, UserQuestion,
};
use windlass_sandbox::{FileContent, PendingFileChange, Workspace};
use windlass_testkit::Case;
use windlass_testkit::case_file::CaseSection;
use windlass_toolkit::{
    AgentSummary, CallContext, CallFailure, CallIntent, NO_USER_TEXT, PendingToolSource,
    PermissionReply, QuestionEffect, Registry, SeenFile, SkillDefinition, StepContext,
    SubagentReport, SubagentRequest, Tool, ToolCall, ToolCaller, ToolDefinition, ToolRuntime,
};

/// A `ToolCaller` that gives one permission answer and records the previews and questions it receives.
struct ScriptedCaller {
    answer: PermissionAnswer,
    permission_request: Mutex<Option<CallIntent>>,
    /// The preview shown before the answer.
    preview: Mutex<Option<String>>,
    /// Files already read, by path.
    seen_files: Mutex<BTreeMap<String, SeenFile>>,
    /// Files that another program writes after the call was approved; `None` removes the file.
    concurrent_writes: Vec<(PathBuf, Option<String>)>,
    /// Files that another program touches without changing them.
    touched_files: Vec<PathBuf>,
    blobs: Mutex<BTreeMap<BlobRef, Vec<u8>>>,
    recorded_changes: Mutex<Vec<PendingFileChange>>,
    /// The todo list as last written.
    todos: Vec<TodoItem>,
    /// Replies to user questions, one list per question; `None` means that no user is present.
    question_replies: Option<Vec<Vec<String>>>,
    asked_questions: Mutex<Vec<UserQuestion>>,
    /// Replies of subagents, by agent name.
    agent_replies: BTreeMap<String, String>,
}

impl ScriptedCaller {
    /// Simulates the other program: applies `touched_files` and `concurrent_writes` once the call
    /// has been approved.
    fn apply_concurrent_writes(&self) {
        for path in &self.touched_files {
            let file = std::fs::File::options().append(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        }
        for (path, content) in &self.concurrent_writes {
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => std::fs::remove_file(path).unwrap(),
            }
        }
    }

    fn new(answer: PermissionAnswer) -> ScriptedCaller {
        ScriptedCaller {
            answer,
            permission_request: Mutex::default(),
            preview: Mutex::default(),
            seen_files: Mutex::default(),
            concurrent_writes: Vec::new(),
            touched_files: Vec::new(),
            blobs: Mutex::default(),
            recorded_changes: Mutex::default(),
            todos: Vec::new(),
            question_replies: None,
            asked_questions: Mutex::default(),
            agent_replies: BTreeMap::new(),
        }
    }
}

#[async_trait]
impl ToolCaller for ScriptedCaller {
    async fn request_permission(&self, intent: CallIntent) -> PermissionReply {
        let needs_approval = intent.ask_reason.is_some();
        *self.permission_request.lock().unwrap() = Some(intent);
        if needs_approval {
            return PermissionReply::ShowPreview;
        }
        self.apply_concurrent_writes();
        PermissionReply::Answer(PermissionAnswer::Once)
    }

    async fn ask_permission(&self, preview: Option<String>) -> PermissionAnswer {
        *self.preview.lock().unwrap() = Some(preview.unwrap_or_default());
        self.apply_concurrent_writes();
        self.answer.clone()
    }

    async fn put_blob(&self, bytes: Vec<u8>) -> Result<BlobRef, CallFailure> {
        let blob = BlobRef::for_bytes(&bytes);
        self.blobs.lock().unwrap().insert(blob.clone(), bytes);
        Ok(blob)
    }

    async fn get_blob(&self, blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        let bytes = self.blobs.lock().unwrap().get(blob).cloned();
        bytes.ok_or_else(|| CallFailure::new("blob not found"))
    }

    async fn record_changes(&self, batch: Vec<PendingFileChange>) -> Result<(), CallFailure> {
        self.recorded_changes.lock().unwrap().extend(batch);
        Ok(())
    }

    async fn retract_changes(&self) {
        self.recorded_changes.lock().unwrap().clear();
    }

    async fn file_version(&self, blob: &BlobRef) -> Result<Vec<u8>, CallFailure> {
        self.get_blob(blob).await
    }

    async fn ask_user(
        &self,
        questions: Vec<UserQuestion>,
        _effect: QuestionEffect,
    ) -> Result<Vec<Vec<String>>, CallFailure> {
        self.asked_questions.lock().unwrap().extend(questions);
        self.question_replies.clone().ok_or_else(|| CallFailure::new(NO_USER_TEXT))
    }

    fn todos(&self) -> Vec<TodoItem> {
        self.todos.clone()
    }

    fn last_seen(&self, path: &str) -> Option<SeenFile> {
        self.seen_files.lock().unwrap().get(path).cloned()
    }

    async fn run_subagent(&self, request: SubagentRequest) -> Result<SubagentReport, CallFailure> {
        let text = self.agent_replies[&request.agent].clone();
        let session = "00000000-0000-0000-0000-000000000007".parse().unwrap();
        Ok(SubagentReport { session, text, end: Some(TurnEndReason::Completed) })
    }

    fn mark_seen(&self, path: &str, bytes: &Arc<[u8]>) {
        let seen = SeenFile {
            digest: BlobRef::for_bytes(bytes),
            bytes: Some(Arc::clone(bytes)),
            is_changed_by_command: false,
        };
        self.seen_files.lock().unwrap().insert(path.to_owned(), seen);
    }
}

/// Sets up a case, makes its call, and compares the result with the expected sections.
pub(crate) fn run_case(case: Case) {
    let temp_dir = tempfile::tempdir().unwrap();
    let root = temp_dir.path().join("w");
    std::fs::create_dir_all(&root).unwrap();
    for section in &case.sections {
        create_fixture(section, &root);
    }
    let before = read_all_files(&root);
    let rules = case.all("permission").next().map_or("{}", |section| &section.body);
    let rules = PermissionRules::parse(&serde_json::from_str(rules).unwrap()).unwrap();
    let answer = match case.all("answer").next().map(|section| section.argument.as_str()) {
        None | Some("yes") => PermissionAnswer::Once,
        Some("no") => PermissionAnswer::No { reason: None },
        Some(other) => PermissionAnswer::No { reason: other.strip_prefix("no ").map(Into::into) },
    };
    let caller = build_caller(&case, &root, answer);
    let context = StepContext {
        model: case.all("model").next().map(|model| model.argument.clone()).unwrap_or_default(),
        supports_pdfs: true,
        trusted: case.all("trusted").next().is_some(),
        skills: case.all("skill").map(parse_skill).collect(),
        agents: case.all("agent").map(parse_agent_summary).collect(),
        ..StepContext::default()
    };
    let mode = case.all("mode").next().map(|mode| mode.argument.parse().unwrap());
    let rules = (rules, mode.unwrap_or_default());
    let registry = external_registry(&case);
    let outcome = execute_call(
        &root,
        (rules, registry),
        &caller,
        &context,
        (case.one("call"), CallAuthor::Model),
    );

    let mut actual = result_sections(&caller, &outcome);
    let after = read_all_files(&root);
    let is_shown =
        |path: &String| caller.concurrent_writes.iter().all(|(other, _)| *other != root.join(path));
    for (path, content) in &after {
        if before.get(path) != Some(content) && is_shown(path) {
            actual.push(after_section(path, content));
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path) && is_shown(path)) {
        actual.push(CaseSection::new("removed", path, ""));
    }
    // Paths outside the workspace are absolute.
    let temp_path = temp_dir.path().to_str().unwrap();
    for section in &mut actual {
        section.argument = section.argument.replace(temp_path, "/temp");
        section.body = section.body.replace(temp_path, "/temp");
    }
    case.check(&RESULT_SECTIONS, &actual);
    // The changes of the other program must not be overwritten.
    for (path, content) in &caller.concurrent_writes {
        assert_eq!(std::fs::read_to_string(path).ok(), *content);
    }
    assert_changes_recorded(&caller, &before, &after);
    assert!(
        read_all_files(&temp_dir.path().join("outside"))
            .values()
            .all(|text| text.ends_with(b"secret\n") || text == b"one\n")
    );
}

/// The sections of a case that describe its result.
const RESULT_SECTIONS: [&str; 11] = [
    "access",
    "repairs",
    "approval",
    "question",
    "outcome",
    "display",
    "attachment",
    "after",
    "after-crlf",
    "after-bytes",
    "removed",
];

/// Returns the sections that show what the user and the model received.
fn result_sections(caller: &ScriptedCaller, outcome: &CallOutcome) -> Vec<CaseSection> {
    let mut actual = Vec::new();
    if let Some(intent) = caller.permission_request.lock().unwrap().take() {
        let accesses: Vec<String> = intent.accesses.iter().map(describe_access).collect();
        actual.push(CaseSection::new("access", "", &accesses.join("\n")));
        if let Some(repair) = &intent.repair {
            actual.push(CaseSection::new("repairs", "", &repair.changes.join("\n")));
        }
        if let (Some(reason), Some(preview)) =
            (intent.ask_reason, caller.preview.lock().unwrap().take())
        {
            actual.push(CaseSection::new("approval", &reason, &preview));
        }
    }
    for question in caller.asked_questions.lock().unwrap().iter() {
        let mut lines = vec![question.question.clone()];
        lines.extend(question.options.iter().map(|option| match option.description.as_str() {
            "" => format!("- {}", option.label),
            description => format!("- {}: {description}", option.label),
        }));
        let hints = [
            (question.allow_multiple, "(several)"),
            (question.allow_custom, "(or a custom answer)"),
        ];
        lines.extend(
            hints.iter().filter(|(applies, _)| *applies).map(|(_, hint)| (*hint).to_owned()),
        );
        actual.push(CaseSection::new("question", &question.header, &lines.join("\n")));
    }
    let (status, text) = match outcome {
        CallOutcome::Completed { output } => ("completed", output.text.clone()),
        CallOutcome::Failed { text } => ("failed", text.clone()),
        CallOutcome::Denied { text } => ("denied", text.clone()),
        CallOutcome::Interrupted { .. } | CallOutcome::ResultUnknown => panic!("{outcome:?}"),
    };
    actual.push(CaseSection::new("outcome", status, &text));
    if let CallOutcome::Completed { output } = outcome
        && let OutputDisplay::Diff { unified_diff } = &output.display
    {
        actual.push(CaseSection::new("display", "diff", unified_diff));
    }
    if let CallOutcome::Completed { output } = outcome
        && let OutputDisplay::Checklist { items } = &output.display
    {
        let lines: Vec<String> = items.iter().map(TodoItem::to_string).collect();
        actual.push(CaseSection::new("display", "checklist", &lines.join("\n")));
    }
    for file in outcome.attachments() {
        let size = caller.blobs.lock().unwrap()[&file.blob].len();
        let line = format!("{} {} {size} bytes", file.name, file.mime_type);
        actual.push(CaseSection::new("attachment", &line, ""));
    }
    actual
}

/// Makes a call in a folder where everything is allowed, as a model that prefers patches and has
/// seen the files in `read`.
pub(crate) fn call_tool(root: &Path, read: &[&str], tool: &str, arguments: &str) -> CallOutcome {
    let rules = PermissionRules::parse(&serde_json::json!("allow")).unwrap();
    let caller = ScriptedCaller::new(PermissionAnswer::Once);
    for path in read {
        caller.mark_seen(path, &std::fs::read(root.join(path)).unwrap().into());
    }
    let context = StepContext { model: "openai/gpt-5".into(), ..StepContext::default() };
    let call = CaseSection::new("call", tool, arguments);
    let rules = ((rules, PermissionMode::default()), Registry::default());
    execute_call(root, rules, &caller, &context, (&call, CallAuthor::Model))
}

/// Makes a call as the given model, which has seen no files.
pub(crate) fn call_tool_as(root: &Path, model: &str, tool: &str, arguments: &str) -> CallOutcome {
    let rules =
        (PermissionRules::parse(&serde_json::json!("allow")).unwrap(), PermissionMode::default());
    let context = StepContext { model: model.into(), ..StepContext::default() };
    let call = CaseSection::new("call", tool, arguments);
    let rules = (rules, Registry::default());
    execute_call(
        root,
        rules,
        &ScriptedCaller::new(PermissionAnswer::Once),
        &context,
        (&call, CallAuthor::Model),
    )
}

/// A folder in which the user undoes changes.
pub(crate) struct UndoTestFolder {
    temp_dir: tempfile::TempDir,
    caller: ScriptedCaller,
}

impl UndoTestFolder {
    pub(crate) fn new(files: &[(&str, &str)]) -> UndoTestFolder {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            std::fs::write(folder.path().join(path), content).unwrap();
        }
        UndoTestFolder { temp_dir: folder, caller: ScriptedCaller::new(PermissionAnswer::Once) }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.temp_dir.path().join(path)
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// Stores a file version as a blob.
    pub(crate) fn put_blob(&self, content: &str) -> BlobRef {
        let blob = BlobRef::for_bytes(content.as_bytes());
        self.caller.blobs.lock().unwrap().insert(blob.clone(), content.into());
        blob
    }

    /// Returns the number of changes recorded.
    pub(crate) fn recorded_change_count(&self) -> usize {
        self.caller.recorded_changes.lock().unwrap().len()
    }

    pub(crate) fn undo(&self, arguments: &str) -> CallOutcome {
        let rules = PermissionRules::parse(&serde_json::json!("allow")).unwrap();
        let call = CaseSection::new("call", windlass_protocol::file_history::UNDO_TOOL, arguments);
        let rules = ((rules, PermissionMode::default()), Registry::default());
        let context = StepContext::default();
        execute_call(self.temp_dir.path(), rules, &self.caller, &context, (&call, CallAuthor::User))
    }
}

/// Builds the `ScriptedCaller` of a case: the files it has seen, its replies, and the concurrent
/// writes.
fn build_caller(case: &Case, root: &Path, answer: PermissionAnswer) -> ScriptedCaller {
    let to_seen = |path: &str, bytes: Arc<[u8]>| {
        (
            path.to_owned(),
            SeenFile {
                digest: BlobRef::for_bytes(&bytes),
                bytes: Some(bytes),
                is_changed_by_command: false,
            },
        )
    };
    let current = case.all("read").map(|section| {
        let bytes = std::fs::read(root.join(&section.argument)).unwrap();
        to_seen(&section.argument, bytes.into())
    });
    let outdated = case
        .all("read-earlier")
        .map(|section| to_seen(&section.argument, section.body.as_bytes().into()));
    let seen_files = current.chain(outdated).collect();
    let writes = case.all("concurrent-write").map(|section| (section, Some(section.body.clone())));
    let removes = case.all("concurrent-remove").map(|section| (section, None));
    let changes = writes.chain(removes);
    ScriptedCaller {
        seen_files: Mutex::new(seen_files),
        todos: case
            .all("todos")
            .next()
            .map(|section| serde_json::from_str(&section.body).unwrap())
            .unwrap_or_default(),
        question_replies: case
            .all("replies")
            .next()
            .map(|section| serde_json::from_str(&section.body).unwrap()),
        touched_files: case
            .all("concurrent-touch")
            .map(|section| root.join(&section.argument))
            .collect(),
        agent_replies: case
            .all("agent")
            .map(|section| (section.argument.clone(), section.body.trim().into()))
            .collect(),
        concurrent_writes: changes
            .map(|(section, body)| (root.join(&section.argument), body))
            .collect(),
        ..ScriptedCaller::new(answer)
    }
}

/// Parses the skill of a case section: name and description, then its body.
fn parse_skill(section: &CaseSection) -> SkillDefinition {
    let (name, description) = section.argument.split_once(' ').unwrap();
    SkillDefinition {
        name: name.into(),
        description: description.into(),
        body: section.body.clone(),
        folder: format!(".windlass/skills/{name}"),
        files: vec!["scripts/run.sh".to_owned()],
        ..SkillDefinition::default()
    }
}

/// An external tool of a case section: name and description, then its schema. It returns its
/// arguments.
struct EchoTestTool {
    name: String,
    definition: ToolDefinition,
}

#[async_trait]
impl Tool for EchoTestTool {
    type Input = serde_json::Map<String, serde_json::Value>;

    fn name(&self) -> &str {
        &self.name
    }

    fn is_listed(&self) -> bool {
        false
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        self.definition.clone()
    }

    fn access(&self, _input: &Self::Input) -> Vec<ToolAccess> {
        vec![ToolAccess::UseTool { tool: self.name.clone() }]
    }

    async fn run(
        &self,
        input: Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let text = format!("{} was called with {}", self.name, serde_json::Value::Object(input));
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// A tool source that never becomes ready, from a case section: its name, then the reason.
struct UnavailableTestSource(String, String);

#[async_trait]
impl PendingToolSource for UnavailableTestSource {
    fn name(&self) -> &str {
        &self.0
    }

    async fn wait_until_ready(&self) -> Result<(), String> {
        Err(self.1.clone())
    }

    fn description(&self) -> String {
        self.0.clone()
    }
}

/// Builds the `Registry` of the external tools and pending sources of a case.
fn external_registry(case: &Case) -> Registry {
    let registry = Registry::default();
    for section in case.all("external-tool") {
        let (name, description) = section.argument.split_once(' ').unwrap();
        let schema = serde_json::from_str(&section.body).unwrap();
        let definition = ToolDefinition { description: description.into(), schema };
        registry.register_external("git", EchoTestTool { name: name.into(), definition }).unwrap();
    }
    for section in case.all("unavailable-source") {
        let (name, reason) = section.argument.split_once(' ').unwrap();
        registry.add_pending(Arc::new(UnavailableTestSource(name.into(), reason.into())));
    }
    registry
}

/// Renders a file as a case section: as text, as text with CRLF line endings, or as bytes.
fn after_section(path: &str, content: &[u8]) -> CaseSection {
    let is_plain = |text: &str| {
        let ends_with_newline = text.is_empty() || text.ends_with('\n');
        ends_with_newline && !text.contains(['\r', '\u{feff}'])
    };
    match std::str::from_utf8(content) {
        Ok(text) if text.contains("\r\n") && !text.replace("\r\n", "").contains('\n') => {
            CaseSection::new("after-crlf", path, &text.replace("\r\n", "\n"))
        }
        Ok(text) if is_plain(text) => CaseSection::new("after", path, text),
        Ok(_) | Err(_) => {
            let bytes: Vec<String> = content.iter().map(|byte| format!("{byte:02x}")).collect();
            CaseSection::new("after-bytes", path, &bytes.join(" "))
        }
    }
}

/// Asserts that every changed file was recorded, with its content before and after.
fn assert_changes_recorded(
    caller: &ScriptedCaller,
    before: &BTreeMap<String, Vec<u8>>,
    after: &BTreeMap<String, Vec<u8>>,
) {
    let recorded = caller.recorded_changes.lock().unwrap();
    let bytes =
        |content: &Option<FileContent>| content.as_ref().map(|content| content.bytes.to_vec());
    let paths =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path));
    for path in paths {
        if caller.concurrent_writes.iter().any(|(other, _)| other.ends_with(path)) {
            continue;
        }
        let entry = recorded.iter().find(|pending| pending.path == *path);
        let entry = entry.unwrap_or_else(|| panic!("{path} changed without a record"));
        assert_eq!(bytes(&entry.before).as_ref(), before.get(path), "{path}");
        let last = recorded.iter().rfind(|pending| pending.path == *path).unwrap();
        assert_eq!(bytes(&last.after).as_ref(), after.get(path), "{path}");
    }
}

fn execute_call(
    root: &Path,
    ((rules, mode), registry): ((PermissionRules, PermissionMode), Registry),
    caller: &ScriptedCaller,
    context: &StepContext,
    (call, author): (&CaseSection, CallAuthor),
) -> CallOutcome {
    let runtime = ToolRuntime {
        registry,
        hooks: Vec::new(),
        policy: Policy::new(rules).with_mode(mode),
        workspace: Workspace::open(root).unwrap(),
        limits: Default::default(),
    };
    crate::register(&runtime.registry, &crate::ToolIntegrations::default());
    let call = ToolCall {
        session: SessionId(Default::default()),
        id: CallId(Default::default()),
        author,
        tool: call.argument.clone(),
        arguments: call.body.clone(),
        allowed_calls: Vec::new(),
    };
    block_on(async {
        let snapshot = runtime.snapshot(context).await;
        runtime.execute(&snapshot, call, caller, CancellationToken::new()).await
    })
}

fn create_fixture(section: &CaseSection, root: &Path) {
    let write_file = |folder: &Path, content: &[u8]| {
        let path = folder.join(&section.argument);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    match section.name.as_str() {
        "file" => write_file(root, section.body.as_bytes()),
        "file-crlf" => write_file(root, section.body.replace('\n', "\r\n").as_bytes()),
        "file-no-newline" => write_file(root, section.body.trim_end_matches('\n').as_bytes()),
        "outside" => write_file(&root.join("../outside"), section.body.as_bytes()),
        "bytes" => {
            let byte = |hex| u8::from_str_radix(hex, 16).unwrap();
            write_file(root, &section.body.split_whitespace().map(byte).collect::<Vec<_>>());
        }
        // Creates that many files of the same age; the `*` in the pattern becomes the number of the
        // file.
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
        "modified" => {
            let (path, seconds) = section.argument.split_once(' ').unwrap();
            let age = std::time::Duration::from_secs(seconds.parse().unwrap());
            let file = std::fs::File::options().write(true).open(root.join(path)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        }
        "link" => {
            let (name, target) = section.argument.split_once(' ').unwrap();
            #[cfg(unix)]
            std::os::unix::fs::symlink(target, root.join(name)).unwrap();
        }
        _ => {}
    }
}

fn parse_agent_summary(section: &CaseSection) -> AgentSummary {
    AgentSummary { name: section.argument.clone(), description: String::new() }
}

fn describe_access(access: &ToolAccess) -> String {
    format!("{} {}", access.permission_key(), access.subject())
}

/// Reads all files below a folder without following links.
pub(crate) fn read_all_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
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

/// Compares the schema sent to the model with the `schema.json` in the folder of the tool.
pub(crate) fn check_schema(tool: &impl Tool, expected: expect_test::ExpectFile) {
    let definition = block_on(tool.describe(&StepContext::default()));
    expected.assert_eq(&(serde_json::to_string_pretty(&definition.schema).unwrap() + "\n"));
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(future)
}
