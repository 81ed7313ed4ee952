//! Compaction with any context window: if the provider rejects a request, the session continues,
//! and its state is in the next request.

use crate::session::token_estimate::TokenEstimator;
use crate::session::{
    ContextWindow, InputTimeAndId, Session, SessionConfig, SessionEffect, SessionInput, TurnLimits,
    token_estimate,
};
use proptest::prelude::*;
use uuid::Uuid;
use windlass_llm::ModelEvent;
use windlass_protocol::todo_list::{TodoItem, TodoPriority, TodoStatus};
use windlass_protocol::{
    BlobRef, CallAuthor, CallId, CallOutcome, Fact, FactRecord, Fault, FinishReason, MessagePart,
    Messages, PermissionMode, SeenFileDigest, SessionId, SessionOp, StepPurpose, TokenUsage,
    ToolAccess, ToolOutput, Transcript, TurnEndReason, UnixMillis,
};
use windlass_testkit::log_grammar;
use windlass_toolkit::CallIntent;

/// State that must be in every request after a summary.
const REQUIRED_STATE: [&str; 5] = [
    "fix the roof before it rains",
    "find the hole",
    "job 7: watch the sky",
    "src/roof.rs",
    "The mode is now plan",
];

/// The limits of a simulated provider.
#[derive(Clone)]
struct SimulatedProviderLimits {
    max_tokens: u64,
    /// The answer whose request it rejects, independent of its length, and how often.
    rejects: Option<(usize, usize)>,
    /// Its summaries are empty.
    empty_summaries: bool,
}

struct CompactionTestSession {
    session: Session,
    config: SessionConfig,
    log: Vec<Fact>,
    clock: u128,
    provider: SimulatedProviderLimits,
    /// Length of each step's output, in words.
    outputs: Vec<usize>,
    answers: usize,
    rejected: usize,
    requests: Vec<(StepPurpose, Messages)>,
    /// The number of facts at which the process dies.
    crash: Option<usize>,
}

impl CompactionTestSession {
    fn new(
        window: ContextWindow,
        provider: SimulatedProviderLimits,
        outputs: Vec<usize>,
    ) -> CompactionTestSession {
        let limits = TurnLimits { steps: 500, ..TurnLimits::default() };
        let config = SessionConfig { context_window: window, ..super::config(limits) };
        let session = Session::new(Fact::session_opened("/w", "0"), config.clone());
        CompactionTestSession {
            session,
            config,
            log: Vec::new(),
            clock: 0,
            provider,
            outputs,
            answers: 0,
            rejected: 0,
            requests: Vec::new(),
            crash: None,
        }
    }

    fn run(&mut self) -> TurnEndReason {
        let mut inputs = vec![
            SessionInput::Op(SessionOp::SetMode { mode: PermissionMode::Plan }),
            SessionInput::Op(SessionOp::prompt("fix the roof before it rains")),
        ];
        while !inputs.is_empty() {
            let input = inputs.remove(0);
            self.clock += 1;
            let stamp = InputTimeAndId { at: UnixMillis(0), id: Uuid::from_u128(self.clock) };
            for effect in self.session.apply(stamp, input) {
                inputs.extend(self.perform(effect));
            }
            log_grammar::check(&self.log).unwrap();
            assert!(self.requests.len() < 400, "the turn does not end");
            if self.crash.take_if(|length| self.log.len() >= *length).is_some() {
                self.session = Session::replay(&self.records(), self.config.clone());
                inputs = vec![SessionInput::Resume];
            }
        }
        match self.log.last() {
            Some(Fact::TurnEnded { end, .. }) => end.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn records(&self) -> Vec<FactRecord> {
        let session = SessionId(Uuid::nil());
        let record =
            |(seq, fact): (u64, &Fact)| FactRecord::new(session, seq, UnixMillis(0), fact.clone());
        (1..).zip(&self.log).map(record).collect()
    }

    fn perform(&mut self, effect: SessionEffect) -> Vec<SessionInput> {
        match effect {
            SessionEffect::Append(facts) => {
                self.log.extend(facts);
                Vec::new()
            }
            SessionEffect::CallModel { turn, step, purpose, messages, .. } => {
                let events = self.reply(purpose, &messages);
                self.requests.push((purpose, messages));
                events.into_iter().map(|event| SessionInput::Model { turn, step, event }).collect()
            }
            SessionEffect::CallTool { turn, call, tool, .. } => {
                let accesses = vec![ToolAccess::UseTool { tool }];
                let intent = CallIntent {
                    danger: Default::default(),
                    accesses,
                    read_only: true,
                    ask_reason: None,
                    approval_kind: None,
                    accepts_earlier_approval: true,
                    repair: None,
                };
                vec![SessionInput::PermissionRequested { turn, call, intent }]
            }
            SessionEffect::SendPermission { call, .. } => vec![self.settle(call)],
            SessionEffect::RetryAfter { turn, step, .. } => {
                vec![SessionInput::RetryTimer { turn, step }]
            }
            _ => Vec::new(),
        }
    }

    fn settle(&self, id: CallId) -> SessionInput {
        let is_call = |fact: &&Fact| matches!(fact, Fact::ToolCalled { call, .. } if *call == id);
        let Some(Fact::ToolCalled { tool, arguments, .. }) = self.log.iter().find(is_call) else {
            panic!("{id:?}");
        };
        let mut output = ToolOutput::default();
        let mut seen_files = Vec::new();
        match tool.as_str() {
            "todowrite" => {
                let todo = TodoItem {
                    content: "find the hole".into(),
                    status: TodoStatus::Pending,
                    priority: TodoPriority::Medium,
                };
                (output.todos, output.retained) = (Some(vec![todo]), true);
            }
            "bash" => output.started_jobs.push(7),
            "read" => {
                let digest = BlobRef::for_bytes(b"roof");
                seen_files.push(SeenFileDigest { path: "src/roof.rs".into(), digest });
            }
            _ => {
                let words = self.outputs[arguments.parse::<usize>().unwrap()];
                output.text = "word ".repeat(words);
            }
        }
        SessionInput::CallSettled {
            turn: 1,
            call: id,
            outcome: CallOutcome::Completed { output },
            seen_files,
        }
    }

    fn reply(&mut self, purpose: StepPurpose, messages: &Messages) -> Vec<ModelEvent> {
        let size: u64 =
            messages.iter().map(|message| token_estimate::message_tokens(message)).sum();
        let usage = TokenUsage { input: size, output: 20, ..TokenUsage::default() };
        let reject = |rejected: &mut usize| {
            *rejected += 1;
            vec![ModelEvent::Failed(Fault::ContextOverflow { message: "too long".into() })]
        };
        if size > self.provider.max_tokens {
            return reject(&mut self.rejected);
        }
        if purpose == StepPurpose::Summary {
            let text = if self.provider.empty_summaries { " " } else { "It went on." };
            let ended = ModelEvent::Ended { finish: FinishReason::Stop, usage };
            return vec![ModelEvent::Text(text.into()), ended];
        }
        let is_answer = |fact: &&Fact| {
            matches!(fact, Fact::StepEnded { finish_reason: FinishReason::ToolCalls, .. })
        };
        self.answers = self.log.iter().filter(is_answer).count();
        match &mut self.provider.rejects {
            Some((answer, times)) if *answer == self.answers && *times > 0 => {
                *times -= 1;
                return reject(&mut self.rejected);
            }
            _ => {}
        }
        let call = |tool: &str, arguments: String| ModelEvent::Call {
            reference: "r".into(),
            tool: tool.into(),
            arguments,
            provider_signature: None,
            repairs: Vec::new(),
        };
        let mut events = match self.answers {
            0 => vec![
                call("todowrite", "{}".into()),
                call("bash", r#"{"command": "watch the sky"}"#.into()),
                call("read", "{}".into()),
            ],
            n if n <= self.outputs.len() => {
                vec![ModelEvent::Text(format!("Step {n}.")), call("grep", (n - 1).to_string())]
            }
            _ => vec![ModelEvent::Text("Done.".into())],
        };
        let finish = if self.answers <= self.outputs.len() {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        };
        events.push(ModelEvent::Ended { finish, usage });
        events
    }

    /// Checks that `REQUIRED_STATE` is in every request for an answer after a summary. Returns the
    /// number of such requests.
    fn check_requests(&self) -> usize {
        let mut summarized = 0;
        let answers = self.requests.iter().filter(|(purpose, _)| *purpose == StepPurpose::Answer);
        for (_, messages) in answers {
            let head = messages.get(0).map(|first| text(&Messages::from_iter([first.clone()])));
            if !head.is_some_and(|head| head.contains("was summarized")) {
                continue;
            }
            summarized += 1;
            let request = text(messages);
            for state in REQUIRED_STATE {
                assert!(request.contains(state), "{state} is not in\n{request}");
            }
        }
        summarized
    }
}

fn text(messages: &Messages) -> String {
    let parts = messages.iter().flat_map(|message| &message.parts);
    let texts = parts.filter_map(|part| match part {
        MessagePart::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

const UNKNOWN_WINDOW: ContextWindow = ContextWindow { context: 0, output: 0 };

fn provider_with_limit(max_tokens: u64) -> SimulatedProviderLimits {
    SimulatedProviderLimits { max_tokens, rejects: None, empty_summaries: false }
}

#[test]
fn a_conversation_rejected_at_any_step_continues() {
    // Before the second answer there is nothing to compact.
    for answer in 2..=9 {
        for times in 1..=2 {
            if answer < 4 && times > 1 {
                continue;
            }
            let rejects = Some((answer, times));
            let provider = SimulatedProviderLimits { rejects, ..provider_with_limit(u64::MAX) };
            let mut env = CompactionTestSession::new(UNKNOWN_WINDOW, provider, vec![400; 8]);
            assert_eq!(env.run(), TurnEndReason::Completed, "rejected {times} times at {answer}");
            assert_eq!(env.rejected, times);
            let is_pruning = |fact: &Fact| matches!(fact, Fact::OutputsPruned { .. });
            assert!(env.check_requests() > 0 || env.log.iter().any(is_pruning));
        }
    }
}

#[test]
fn a_provider_that_rejects_every_request_ends_the_turn() {
    for answer in 0..=5 {
        let provider = SimulatedProviderLimits {
            rejects: Some((answer, usize::MAX)),
            ..provider_with_limit(u64::MAX)
        };
        let mut env = CompactionTestSession::new(UNKNOWN_WINDOW, provider, vec![400; 8]);
        let end = env.run();
        let is_overflow =
            matches!(&end, TurnEndReason::Failed { fault: Fault::ContextOverflow { .. } });
        assert!(is_overflow, "{end:?}");
        assert!(env.rejected <= 3, "rejected {} times", env.rejected);
    }
}

#[test]
fn empty_summaries_end_the_turn() {
    let provider = SimulatedProviderLimits { empty_summaries: true, ..provider_with_limit(900) };
    let mut env = CompactionTestSession::new(
        ContextWindow { context: 900, output: 100 },
        provider,
        vec![250; 12],
    );
    let end = env.run();
    assert!(
        matches!(&end, TurnEndReason::Failed { fault: Fault::ContextOverflow { .. } }),
        "{end:?}"
    );
    let summaries = env.requests.iter().filter(|(purpose, _)| *purpose == StepPurpose::Summary);
    assert_eq!(summaries.count(), 2);
}

/// With a known window, the provider never rejects a request.
#[test]
fn a_known_window_is_never_exceeded() {
    let mut env = CompactionTestSession::new(
        ContextWindow { context: 1_600, output: 200 },
        provider_with_limit(1_600),
        vec![300; 30],
    );
    assert_eq!(env.run(), TurnEndReason::Completed);
    assert_eq!(env.rejected, 0);
    assert!(env.check_requests() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 96,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn sessions_that_overflow_continue_and_keep_their_state(
        outputs in proptest::collection::vec(0_usize..900, 1..14),
        max_tokens in 900_u64..3_000,
        window_known in any::<bool>(),
        crash in proptest::option::of(4_usize..60),
    ) {
        let window = if window_known {
            ContextWindow { context: max_tokens, output: max_tokens / 8 }
        } else {
            UNKNOWN_WINDOW
        };
        let mut env = CompactionTestSession::new(window, provider_with_limit(max_tokens), outputs);
        env.crash = crash;
        prop_assert_eq!(env.run(), TurnEndReason::Completed);
        env.check_requests();
        log_grammar::check_settled(&env.log).unwrap();
        let replayed = Session::replay(&env.records(), env.config.clone());
        prop_assert_eq!(replayed.transcript(), env.session.transcript());
        let estimate = env.session.token_estimator.estimate();
        prop_assert_eq!(replayed.token_estimator.estimate(), estimate);
    }
}

/// The output of a command's own call is part of its prompt, so it counts once and is not pruned.
#[test]
fn calls_of_a_custom_command_are_not_counted() {
    let estimate_after = |author: CallAuthor| {
        let call = CallId(Uuid::from_u128(1));
        let output = ToolOutput { text: "a line of output\n".repeat(1_000), ..Default::default() };
        let facts = [
            Fact::TurnStarted { turn: 1, prompt: None },
            Fact::ToolCalled {
                call,
                provider_call_id: "c1".into(),
                tool: "bash".into(),
                arguments: r#"{"command":"git log"}"#.into(),
                author,
                description: Default::default(),
                repair: Vec::new(),
                provider_signature: None,
            },
            Fact::CallSettled {
                call,
                outcome: CallOutcome::Completed { output },
                seen_files: Vec::new(),
            },
        ];
        let (mut transcript, mut estimator) = (Transcript::default(), TokenEstimator::default());
        for (seq, fact) in (1..).zip(&facts) {
            transcript.push(seq, fact);
            estimator.apply_fact(fact, &transcript);
        }
        let message = transcript.messages.last().unwrap();
        (estimator.estimate(), token_estimate::message_tokens(message))
    };
    assert_eq!(estimate_after(CallAuthor::Command), (0, 0));
    let (estimate, tokens) = estimate_after(CallAuthor::User);
    assert!(estimate > 4_000 && tokens == estimate, "{estimate} {tokens}");
}
