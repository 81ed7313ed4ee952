//! Crash recovery with a real process: SIGKILL at every kill point of a session, which are before
//! and after every append and every side effect. A journal that a tool writes outside the log shows
//! what really ran. Each child process is this test binary with the test [`child`].
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use windlass_engine::{Engine, EngineSettings, ModelHandle};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    CallOutcome, Event, Fact, FactRecord, MessagePart, PermissionAnswer, SessionOp, ToolAccess,
    ToolOutput, Transcript,
};
use windlass_sandbox::Workspace;
use windlass_storage::{
    HookedLog, Log, LogWriteHook, LogWriteKind, SqliteLog, StorageError, read_all,
};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    CallContext, CallFailure, Registry, StepContext, Tool, ToolDefinition, ToolRuntime,
};

/// Replies of the model in each session. `journal` has a side effect, and a note that begins with
/// `ask` requires approval.
const SESSIONS: &[&[&str]] = &[
    &["say One two three.\ncall journal {\"note\": \"a\"}", "say Done."],
    &[
        "call read {\"filePath\": \"README.md\"}\ncall read {\"filePath\": \"README.md\"}\ncall journal {\"note\": \"b\"}",
        "call journal {\"note\": \"ask c\"}\ncall journal {\"note\": \"d\"}\ncall read {\"filePath\": \"README.md\"}",
        "say All of it is done.",
    ],
    &[
        "call write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}\ncall nonsense {}",
        "say Made.",
    ],
];

// --- The child ---------------------------------------------------------------------------------

/// Counts the kill points. At the one in `KILL_POINT` it prints a line and waits to be killed.
fn pass_kill_point() {
    static PASSED: AtomicUsize = AtomicUsize::new(0);
    let point = PASSED.fetch_add(1, Ordering::SeqCst);
    if std::env::var("KILL_POINT").is_ok_and(|wanted| wanted == point.to_string()) {
        println!("KILL POINT REACHED");
        std::io::stdout().flush().unwrap();
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}

/// Kill points before and after every append, and before every copy.
struct KillPointHook;

impl LogWriteHook for KillPointHook {
    fn before_write(&self, write: LogWriteKind) -> Result<(), StorageError> {
        if write != LogWriteKind::Blob {
            pass_kill_point();
        }
        Ok(())
    }

    fn after_write(&self, write: LogWriteKind) -> Result<(), StorageError> {
        if matches!(write, LogWriteKind::Facts(_)) {
            pass_kill_point();
        }
        Ok(())
    }
}

/// A tool that appends the id of its call to a file outside the session.
struct JournalTestTool(PathBuf);

#[derive(Deserialize, JsonSchema)]
struct JournalTestToolInput {
    note: String,
}

#[async_trait]
impl Tool for JournalTestTool {
    type Input = JournalTestToolInput;

    fn name(&self) -> &str {
        "journal"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<JournalTestToolInput>("Keeps a journal.")
    }

    fn access(&self, input: &JournalTestToolInput) -> Vec<ToolAccess> {
        let tool = if input.note.starts_with("ask") { "asked_journal" } else { "journal" };
        vec![ToolAccess::UseTool { tool: tool.into() }]
    }

    async fn run(
        &self,
        input: JournalTestToolInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        pass_kill_point();
        let mut journal = std::fs::File::options().append(true).create(true).open(&self.0).unwrap();
        writeln!(journal, "{}", cx.call).unwrap();
        journal.sync_all().unwrap();
        pass_kill_point();
        Ok(ToolOutput { text: format!("noted {}", input.note), ..ToolOutput::default() })
    }
}

#[test]
#[ignore = "runs as the child process of the other test"]
fn child() {
    let Some(folder) = std::env::var_os("TEST_FOLDER").map(PathBuf::from) else { return };
    let url = std::env::var("MODEL_URL").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_session(&folder, url));
}

/// Resumes the session, or starts one if there is none, and runs until its turn has ended.
async fn run_session(folder: &Path, url: String) {
    let rules = r#"{"*": "allow", "asked_journal": "ask"}"#;
    let tools = ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy: Policy::new(PermissionRules::parse(&serde_json::from_str(rules).unwrap()).unwrap()),
        workspace: Workspace::open(&folder.join("w")).unwrap(),
        limits: Default::default(),
    };
    windlass_tools::register(&tools.registry, &windlass_tools::ToolIntegrations::default());
    tools.registry.register(JournalTestTool(folder.join("journal")));
    let client = Client::new(Endpoint::generic(WireFormat::OpenaiChat, url)).unwrap();
    let settings =
        EngineSettings::new("/w", Some(ModelHandle::from_model_name(client, "m")), "p/m");
    let log = Arc::new(SqliteLog::open(&folder.join("data")).await.unwrap());
    let log: Arc<dyn Log> = Arc::new(HookedLog::new(log, KillPointHook));
    let engine = Engine::new(Arc::clone(&log), Arc::new(tools), settings);

    let known = log.list(&Default::default()).await.unwrap();
    let mut past = Vec::new();
    let (handle, mut watcher) = match known.first() {
        Some(row) => {
            past = read_all(&*log, row.session, 0).await.unwrap();
            engine.open(row.session).await.unwrap()
        }
        None => engine.start_default_session().await.unwrap(),
    };
    if past.iter().any(|record| matches!(record.fact, Fact::TurnEnded { .. })) {
        return;
    }
    if past.is_empty() {
        handle.send(SessionOp::prompt("go")).await;
    }
    while let Some(event) = watcher.next().await.unwrap() {
        let Event::Fact(record) = &*event else { continue };
        match &record.fact {
            Fact::PermissionAsked { call, .. } => {
                handle
                    .send(SessionOp::AnswerPermission {
                        call: *call,
                        answer: PermissionAnswer::Once,
                        asked: None,
                    })
                    .await;
            }
            Fact::TurnEnded { .. } => break,
            _ => {}
        }
    }
    handle.close().await.unwrap();
}

// --- The parent --------------------------------------------------------------------------------

/// A workspace, a log and a model for child processes that are killed.
struct KillPointTestEnv {
    folder: tempfile::TempDir,
    model: ScriptedModel,
}

impl KillPointTestEnv {
    fn new(replies: &[&str]) -> KillPointTestEnv {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        std::fs::write(folder.path().join("w/README.md"), "# Hello\n").unwrap();
        KillPointTestEnv {
            folder,
            model: ScriptedModel::start(ModelScript::new(replies.iter().copied())),
        }
    }

    fn child(&self, point: Option<usize>) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture", "--include-ignored"]);
        command.env("TEST_FOLDER", self.folder.path()).env("MODEL_URL", self.model.url());
        command.env_remove("KILL_POINT").stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(point) = point {
            command.env("KILL_POINT", point.to_string());
        }
        command
    }

    /// Runs until a kill point and kills there; false if the session ended first.
    fn kill_at(&self, point: usize) -> bool {
        let mut child = self.child(Some(point)).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reached = lines.map_while(Result::ok).any(|line| line.contains("KILL POINT REACHED"));
        child.kill().unwrap();
        child.wait().unwrap();
        reached
    }

    fn run_to_end(&self) {
        let output = self.child(None).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn log(&self) -> Vec<FactRecord> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let log = SqliteLog::open(&self.folder.path().join("data")).await.unwrap();
            let sessions = log.list(&Default::default()).await.unwrap();
            assert_eq!(sessions.len(), 1, "the prompt started more than one session");
            read_all(&log, sessions[0].session, 0).await.unwrap()
        })
    }

    /// True if the file that a session writes exists.
    fn has_written_file(&self) -> bool {
        self.folder.path().join("w/made.txt").exists()
    }

    /// Counts how often each call id is in the journal.
    fn journal(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.path().join("journal")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        counts
    }
}

/// Returns the parts of a transcript without ids, and separately the outcomes of its calls.
fn summarize_transcript(log: &[FactRecord]) -> (Vec<String>, Vec<CallOutcome>) {
    let transcript = Transcript::from_log(log);
    let mut lines = vec![format!("{:?}", transcript.last_turn_end)];
    let mut outcomes = Vec::new();
    for part in transcript.messages.iter().flat_map(|message| &message.parts) {
        lines.push(match part {
            MessagePart::Text { text, .. } | MessagePart::Reasoning { text, .. } => text.clone(),
            MessagePart::File(file) => file.name.clone(),
            MessagePart::Call(call) => {
                outcomes.extend(call.outcome.clone());
                format!("{} {}", call.tool, call.arguments)
            }
        });
    }
    (lines, outcomes)
}

#[test]
fn kill_9_at_every_point_loses_nothing_and_runs_nothing_twice() {
    let (mut kills, mut unknown, mut resolved) = (0, 0, 0);
    for replies in SESSIONS {
        let undisturbed = KillPointTestEnv::new(replies);
        undisturbed.run_to_end();
        let (expected, expected_outcomes) = summarize_transcript(&undisturbed.log());
        for at in 0.. {
            let env = KillPointTestEnv::new(replies);
            if !env.kill_at(at) {
                break;
            }
            kills += 1;
            env.run_to_end();
            let log = env.log();
            log_grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
            let (lines, outcomes) = summarize_transcript(&log);
            assert_eq!(lines, expected, "point {at}");
            for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
                match outcome {
                    CallOutcome::ResultUnknown => unknown += 1,
                    // The engine checked whether the change was made, and the file agrees.
                    other if other.text().contains("Windlass was stopped") => {
                        let done = matches!(other, CallOutcome::Completed { .. });
                        assert_eq!(env.has_written_file(), done, "point {at}");
                        resolved += 1;
                    }
                    other => assert_eq!(other, expected, "point {at}"),
                }
            }
            let journal = env.journal();
            assert!(journal.values().all(|count| *count == 1), "point {at}: {journal:?}");
            let start_count = |id: &str| {
                let is = |record: &&FactRecord| matches!(&record.fact, Fact::CallStarted { call, .. } if call.to_string() == id);
                log.iter().filter(is).count()
            };
            assert!(
                journal.keys().all(|id| start_count(id) == 1),
                "point {at}: a side effect without a recorded start"
            );
        }
    }
    println!("{kills} kills, {unknown} unknown outcomes, {resolved} resolved");
    assert!(resolved > 0, "no kill interrupted a file write");
    assert!(kills >= 50, "only {kills} kills");
    assert!(unknown > 0, "no kill interrupted a side effect");
}
