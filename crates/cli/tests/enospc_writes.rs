//! Failing writes of the log: at every write of a session the disk is full or fails once. Nothing
//! happens that is not recorded, the log stays readable, and the resumed session has the result of
//! an undisturbed one. A journal that a tool writes outside the log shows what really ran.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_engine::{AgentDefinition, Engine, EngineSettings, ModelHandle};
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_protocol::{
    AgentRole, CallOutcome, Event, Fact, FactRecord, Fault, MessagePart, PermissionAnswer,
    SessionOp, ToolAccess, ToolOutput, Transcript,
};
use windlass_sandbox::Workspace;
use windlass_storage::{
    HookedLog, Log, LogWriteHook, LogWriteKind, SqliteLog, StorageError, read_all,
};
use windlass_testkit::{ModelScript, ScriptedModel, log_grammar};
use windlass_toolkit::{
    AgentRestrictions, CallContext, CallFailure, Registry, StepContext, Tool, ToolDefinition,
    ToolRuntime,
};

/// Replies of the models in the main session and in that of its subagent.
struct ScriptedSessionReplies {
    main: &'static [&'static str],
    agent: &'static [&'static str],
}

const SCENARIOS: &[ScriptedSessionReplies] = &[
    ScriptedSessionReplies {
        main: &[
            "say Let me see.\ncall read {\"filePath\": \"README.md\"}\ncall write {\"filePath\": \"made.txt\", \"content\": \"made\\n\"}\ncall journal {\"note\": \"a\"}",
            "call edit {\"filePath\": \"README.md\", \"oldString\": \"Hello\", \"newString\": \"Farewell\"}\ncall journal {\"note\": \"ask c\"}\ncall journal {\"note\": \"long\"}",
            "call question {\"questions\": [{\"header\": \"h\", \"question\": \"Which?\", \"options\": [{\"label\": \"one\", \"description\": \"d\"}, {\"label\": \"two\", \"description\": \"d\"}]}]}\ncall journal {\"note\": \"d\"}",
            "say All of it is done.",
        ],
        agent: &[],
    },
    ScriptedSessionReplies {
        main: &[
            "call journal {\"note\": \"before\"}\ncall task {\"description\": \"d\", \"prompt\": \"do it\", \"subagent_type\": \"helper\"}",
            "call journal {\"note\": \"after\"}",
            "say It is done.",
        ],
        agent: &[
            "call journal {\"note\": \"below\"}\ncall write {\"filePath\": \"below.txt\", \"content\": \"below\\n\"}",
            "call journal {\"note\": \"ask below\"}",
            "say Done below.",
        ],
    },
    ScriptedSessionReplies {
        main: &[
            "call batch {\"tool_calls\": [{\"tool\": \"write\", \"parameters\": {\"filePath\": \"one.txt\", \"content\": \"1\\n\"}}, {\"tool\": \"journal\", \"parameters\": {\"note\": \"in a batch\"}}, {\"tool\": \"write\", \"parameters\": {\"filePath\": \"two.txt\", \"content\": \"2\\n\"}}]}\ncall nonsense {}",
            "call todowrite {\"todos\": [{\"content\": \"rest\", \"status\": \"pending\", \"priority\": \"low\"}]}",
            "say Written.",
        ],
        agent: &[],
    },
];

/// A kind of write failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteFault {
    /// One write fails.
    FailOnce,
    /// One write succeeds, but reports an error.
    FailAfterWrite,
    /// All writes fail from then on.
    DiskFull,
}

/// A write hook that fails at the n-th write.
struct FaultyDisk {
    fault: WriteFault,
    at: usize,
    writes: AtomicUsize,
    /// True if the write that is running shall report an error.
    fails_after_write: AtomicBool,
    /// The first write that failed.
    failed_write: Mutex<Option<LogWriteKind>>,
}

impl FaultyDisk {
    fn fail(&self, write: LogWriteKind) -> Result<(), StorageError> {
        self.failed_write.lock().unwrap().get_or_insert(write);
        const NO_SPACE: i32 = 28;
        let source = std::io::Error::from_raw_os_error(NO_SPACE);
        Err(StorageError::File { what: "the disk".into(), source })
    }
}

impl LogWriteHook for FaultyDisk {
    fn before_write(&self, write: LogWriteKind) -> Result<(), StorageError> {
        let here = self.writes.fetch_add(1, Ordering::SeqCst);
        match self.fault {
            WriteFault::FailOnce if here == self.at => return self.fail(write),
            WriteFault::DiskFull if here >= self.at => return self.fail(write),
            WriteFault::FailAfterWrite if here == self.at => {
                self.fails_after_write.store(true, Ordering::SeqCst)
            }
            WriteFault::FailOnce | WriteFault::DiskFull | WriteFault::FailAfterWrite => {}
        }
        Ok(())
    }

    fn after_write(&self, write: LogWriteKind) -> Result<(), StorageError> {
        if self.fails_after_write.swap(false, Ordering::SeqCst) { self.fail(write) } else { Ok(()) }
    }
}

/// A tool that appends the id of its call to a file outside the session, and whether its start was
/// recorded.
struct JournalTestTool {
    path: PathBuf,
    log: Arc<SqliteLog>,
}

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
        let known = read_all(&*self.log, cx.session, 0).await.unwrap();
        let started = known.iter().any(
            |record| matches!(&record.fact, Fact::CallStarted { call, .. } if *call == cx.call),
        );
        let state = if started { "recorded" } else { "NOT RECORDED" };
        let mut journal =
            std::fs::File::options().append(true).create(true).open(&self.path).unwrap();
        writeln!(journal, "{} {} {state}", cx.call, input.note).unwrap();
        let long = if input.note == "long" { "word ".repeat(20_000) } else { String::new() };
        Ok(ToolOutput { text: format!("noted {}\n{long}", input.note), ..ToolOutput::default() })
    }
}

/// A workspace, a log and two models for sessions with failing writes.
struct FaultyDiskEnv {
    folder: tempfile::TempDir,
    main_model: ScriptedModel,
    agent_model: ScriptedModel,
}

/// The result of a run.
struct FaultyDiskRun {
    closed: Result<(), Fault>,
    failed_write: Option<LogWriteKind>,
    writes: usize,
}

impl FaultyDiskEnv {
    fn new(scenario: &ScriptedSessionReplies) -> FaultyDiskEnv {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("w")).unwrap();
        std::fs::write(folder.path().join("w/README.md"), "# Hello\n").unwrap();
        let start =
            |replies: &[&str]| ScriptedModel::start(ModelScript::new(replies.iter().copied()));
        FaultyDiskEnv {
            folder,
            main_model: start(scenario.main),
            agent_model: start(scenario.agent),
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    async fn open(&self) -> Arc<SqliteLog> {
        Arc::new(SqliteLog::open(&self.at("data")).await.unwrap())
    }

    fn engine(&self, log: Arc<dyn Log>, real: &Arc<SqliteLog>) -> Engine {
        let rules = r#"{"*": "allow", "asked_journal": "ask"}"#;
        let tools = ToolRuntime {
            registry: Registry::default(),
            hooks: Vec::new(),
            policy: Policy::new(
                PermissionRules::parse(&serde_json::from_str(rules).unwrap()).unwrap(),
            ),
            workspace: Workspace::open(&self.at("w")).unwrap(),
            limits: Default::default(),
        };
        windlass_tools::register(&tools.registry, &windlass_tools::ToolIntegrations::default());
        tools
            .registry
            .register(JournalTestTool { path: self.at("journal"), log: Arc::clone(real) });
        let model_handle = |model: &ScriptedModel| {
            let client =
                Client::new(Endpoint::generic(WireFormat::OpenaiChat, model.url())).unwrap();
            ModelHandle::from_model_name(client, "m")
        };
        let mut settings = EngineSettings::new("/w", Some(model_handle(&self.main_model)), "p/m");
        let worker = AgentDefinition {
            name: "helper".into(),
            description: "Helps.".into(),
            role: AgentRole::Subagent,
            prompt: "You help.".into(),
            replaces_prompt: false,
            max_steps: None,
            options: Default::default(),
            restrictions: AgentRestrictions::default(),
            fallback_models: Vec::new(),
            model: Some((model_handle(&self.agent_model), "p/helper".into())),
        };
        settings.agents = Arc::new([Arc::new(worker)]);
        Engine::new(log, Arc::new(tools), settings)
    }

    /// Resumes the session, or starts one if there is none, and runs until its turn or the session
    /// has ended. The fault occurs at write number `at`.
    async fn run(&self, fault: WriteFault, at: usize) -> FaultyDiskRun {
        let real = self.open().await;
        let (writes, fails_after_write, failed_write) = Default::default();
        let disk = FaultyDisk { fault, at, writes, fails_after_write, failed_write };
        let hooked = Arc::new(HookedLog::new(Arc::clone(&real) as Arc<dyn Log>, disk));
        let log: Arc<dyn Log> = Arc::clone(&hooked) as Arc<dyn Log>;
        let engine = self.engine(Arc::clone(&log), &real);
        let known = log.list(&Default::default()).await.unwrap();
        let mut past = Vec::new();
        let own = known.iter().find(|row| row.parent.is_none());
        let (handle, mut watcher) = match own {
            Some(row) => {
                past = read_all(&*log, row.session, 0).await.unwrap();
                engine.open(row.session).await.unwrap()
            }
            None => engine.start_default_session().await.unwrap(),
        };
        let has = |wanted: fn(&Fact) -> bool| past.iter().any(|record| wanted(&record.fact));
        if !has(|fact| matches!(fact, Fact::PromptSubmitted { .. })) {
            handle.send(SessionOp::prompt("go")).await;
        }
        let mut turn_ended = has(|fact| matches!(fact, Fact::TurnEnded { .. }));
        while !turn_ended {
            let next = tokio::time::timeout(Duration::from_secs(20), watcher.next()).await;
            let Some(event) = next.expect("the session hangs").unwrap() else { break };
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
                Fact::QuestionAsked { call, .. } => {
                    let replies = vec![vec!["one".to_owned()]];
                    handle
                        .send(SessionOp::AnswerQuestion {
                            call: *call,
                            answers: replies,
                            asked: None,
                        })
                        .await;
                }
                Fact::TurnEnded { .. } => turn_ended = record.session == handle.session,
                _ => {}
            }
        }
        let closed = handle.close().await;
        let failed_write = *hooked.hook().failed_write.lock().unwrap();
        FaultyDiskRun { closed, failed_write, writes: hooked.hook().writes.load(Ordering::SeqCst) }
    }

    /// Returns the logs of all sessions, the main session first, and checks that they are valid.
    async fn logs(&self) -> Vec<Vec<FactRecord>> {
        let log = self.open().await;
        let mut rows = log.list(&Default::default()).await.unwrap();
        rows.sort_by_key(|row| row.parent.is_some());
        let mut logs = Vec::new();
        for row in rows {
            let records = read_all(&*log, row.session, 0).await.unwrap();
            for (seq, record) in (1..).zip(&records) {
                assert_eq!(record.seq, seq, "a gap in the log");
            }
            log_grammar::check(records.iter().map(|record| &record.fact)).unwrap();
            logs.push(records);
        }
        logs
    }

    /// Counts how often each call is in the journal, and checks that its start was recorded.
    fn journal(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.at("journal")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for line in text.lines() {
            assert!(line.ends_with(" recorded"), "{line}");
            *counts.entry(line.split(' ').next().unwrap().to_owned()).or_default() += 1;
        }
        counts
    }

    /// Returns the files of the workspace with their content.
    fn files(&self) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(self.at("w")).unwrap().flatten();
        let file = |path: &Path| std::fs::read_to_string(path).unwrap();
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), file(&entry.path())))
            .collect()
    }

    /// Checks that every file is unchanged, or has its final content and its change is recorded.
    fn check_files(&self, logs: &[Vec<FactRecord>], expected: &BTreeMap<String, String>) {
        let recorded = |path: &str| {
            logs.iter().flatten().any(|record| match &record.fact {
                Fact::FilesChanging { changes, .. } => {
                    changes.iter().any(|change| change.path == path)
                }
                _ => false,
            })
        };
        for (name, text) in self.files() {
            if name == "README.md" && text == "# Hello\n" {
                continue;
            }
            assert_eq!(Some(&text), expected.get(&name), "{name} is incomplete or unexpected");
            assert!(recorded(&name), "{name} was changed without a record");
        }
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

/// Describes an outcome without the ids that differ from run to run.
fn describe_outcome(outcome: &CallOutcome) -> String {
    let text = outcome.text();
    let text = text.split("[session_id").next().unwrap();
    format!("{:?} {text}", std::mem::discriminant(outcome))
}

/// True if an outcome may differ from that of a run in which nothing failed.
fn may_differ(outcome: &CallOutcome) -> bool {
    let text = outcome.text();
    let messages =
        ["Windlass was stopped", "No space left", "could not save an output", "session failed"];
    matches!(outcome, CallOutcome::ResultUnknown)
        || messages.iter().any(|message| text.contains(message))
}

#[tokio::test]
async fn a_disk_that_fails_one_write_loses_nothing() {
    fail_at_every_write(WriteFault::FailOnce).await;
}

#[tokio::test]
async fn a_disk_that_reports_an_error_after_a_write_loses_nothing() {
    fail_at_every_write(WriteFault::FailAfterWrite).await;
}

#[tokio::test]
async fn a_disk_that_becomes_full_loses_nothing() {
    fail_at_every_write(WriteFault::DiskFull).await;
}

/// Injects the fault at every write of every scenario, and checks that nothing is lost and nothing
/// happens without a record.
async fn fail_at_every_write(fault: WriteFault) {
    let (mut faults, mut differences) = (BTreeMap::<_, usize>::new(), 0);
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        let undisturbed = FaultyDiskEnv::new(scenario);
        let run = undisturbed.run(WriteFault::FailOnce, usize::MAX).await;
        run.closed.unwrap();
        let logs = undisturbed.logs().await;
        let (expected, expected_outcomes) = summarize_transcript(&logs[0]);
        let (files, runs) = (undisturbed.files(), undisturbed.journal().len());
        assert!(
            expected_outcomes.iter().all(|outcome| !may_differ(outcome)),
            "{expected_outcomes:?}"
        );
        for at in 0..run.writes {
            let label = format!("scenario {number}, {fault:?} at write {at}");
            println!("{label}");
            let env = FaultyDiskEnv::new(scenario);
            let run = env.run(fault, at).await;
            let failed_write = run.failed_write.expect("the fault did not occur");
            let (kind, failed_session) = match failed_write {
                LogWriteKind::Facts(session) => ("append", Some(session)),
                LogWriteKind::Blob => ("blob", None),
                LogWriteKind::Copy => ("copy", None),
            };
            *faults.entry(kind).or_default() += 1;
            let logs = env.logs().await;
            env.check_files(&logs, &files);
            let main_session =
                logs.first().and_then(|log| log.first()).map(|record| record.session);
            let is_main_log = failed_session.is_some()
                && (main_session.is_none() || failed_session == main_session);
            if is_main_log || fault == WriteFault::DiskFull {
                let stopped = matches!(run.closed, Err(Fault::Storage { .. }));
                assert!(stopped, "{label}: {:?}", run.closed);
            } else {
                run.closed.unwrap();
            }

            env.run(WriteFault::FailOnce, usize::MAX).await.closed.unwrap();
            let logs = env.logs().await;
            env.check_files(&logs, &files);
            for log in &logs {
                // A failure of a subagent's log is reported to its parent session instead.
                if Some(log[0].session) == failed_session && !is_main_log {
                    continue;
                }
                log_grammar::check_settled(log.iter().map(|record| &record.fact)).unwrap();
            }
            let (lines, outcomes) = summarize_transcript(&logs[0]);
            assert_eq!(lines, expected, "{label}");
            // A loss in a subagent shows in its files and in its log.
            let has_loss =
                |log: &Vec<FactRecord>| summarize_transcript(log).1.iter().any(may_differ);
            let mut lost = logs.iter().skip(1).any(has_loss);
            for (outcome, expected) in outcomes.iter().zip(&expected_outcomes) {
                if may_differ(outcome) {
                    (lost, differences) = (true, differences + 1);
                } else {
                    assert_eq!(describe_outcome(outcome), describe_outcome(expected), "{label}");
                }
            }
            let journal = env.journal();
            assert!(journal.values().all(|count| *count == 1), "{label}: {journal:?}");
            if !lost {
                assert_eq!((env.files(), journal.len()), (files.clone(), runs), "{label}");
            }
        }
    }
    println!("{fault:?}: {faults:?} faults, {differences} outcomes reported as unknown or failed");
    assert!(["append", "blob", "copy"].iter().all(|what| faults.contains_key(what)), "{faults:?}");
    assert!(differences > 0, "no fault affected a running call");
}
