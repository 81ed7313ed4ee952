//! `windlass run` and `windlass tool call`: one turn, watched to its end.

use crate::args::Output;
use crate::ask::{Questions, Stops};
use crate::attach::attach;
use crate::question::Asked;
use crate::screen::{self, Stage};
use crate::shape::Shape;
use crate::{Exit, setup::Setup};
use anyhow::bail;
use serde_json::json;
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;
use windlass_engine::{Engine, Handle, Watcher};
use windlass_protocol::{
    Answer, CallId, Event, Fact, Fault, Live, Millis, Op, Outcome, Part, Query, Repair, Reply,
    Role, SessionId, Stream, Transcript, TurnEnd,
};

/// How a turn is to be shown and answered for.
pub(crate) struct Manner {
    pub(crate) output: Output,
    pub(crate) yes: bool,
    /// What the answer has to look like.
    pub(crate) shape: Option<Shape>,
}

/// `windlass run`.
pub(crate) async fn run(args: crate::args::Run) -> anyhow::Result<Exit> {
    let goes_on = args.session.is_some() || args.r#continue;
    let prompt = prompt(args.prompt, goes_on)?;
    let shape = args.schema.as_deref().map(Shape::read).transpose()?;
    let setup = Setup::read(args.bounds.flags(args.model))?;
    let schema = shape.as_ref().map(|shape| shape.schema.clone());
    let model = setup.choose(args.variant.as_deref())?.asked(schema)?;
    let engine = setup.host_with(model).await?;
    let session = match (&args.session, args.r#continue) {
        (Some(id), _) => Some(crate::session::find(&engine, id).await?),
        (None, true) => Some(last(&engine, &setup).await?),
        (None, false) => None,
    };
    let manner = Manner { output: args.output, yes: args.yes, shape };
    let attachments = attach(&engine, &args.attach).await?;
    if prompt.is_none() && !attachments.is_empty() {
        bail!("a file goes with a prompt, and nothing was asked");
    }
    let op = prompt.map(|text| Op::Prompt { text, attachments });
    turn(&engine, session, op, manner).await
}

/// What is asked: the argument, or what stands on standard input.
fn prompt(argument: Option<String>, goes_on: bool) -> anyhow::Result<Option<String>> {
    use std::io::IsTerminal;
    let text = match argument {
        Some(text) if text != "-" => Some(text),
        Some(_) => Some(read_input()?),
        None if std::io::stdin().is_terminal() => None,
        None => Some(read_input()?),
    };
    let text = text.filter(|text| !text.trim().is_empty());
    if text.is_none() && !goes_on {
        bail!("nothing was asked. Write it after `windlass run`, or pipe it in");
    }
    Ok(text)
}

/// What stands on standard input.
pub(crate) fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin().take(16 << 20).read_to_string(&mut text)?;
    Ok(text)
}

async fn last(engine: &Engine, setup: &Setup) -> anyhow::Result<SessionId> {
    let workspace = Some(setup.workspace());
    let found = match engine.query(Query::Sessions { workspace }).await? {
        Reply::Sessions { sessions } => sessions.first().map(|row| row.session),
        Reply::Events { .. }
        | Reply::Transcript { .. }
        | Reply::Changes { .. }
        | Reply::Tools { .. } => None,
    };
    found.ok_or_else(|| {
        anyhow::anyhow!("this folder has no session yet. Leave out --continue to begin one")
    })
}

/// Opens or begins a session, says what is wanted, and watches until it is done.
pub(crate) async fn turn(
    engine: &Engine,
    session: Option<SessionId>,
    op: Option<Op>,
    manner: Manner,
) -> anyhow::Result<Exit> {
    let mut transcript = Transcript::default();
    let (handle, watcher) = match session {
        None => engine.create().await?,
        Some(session) => {
            if let Reply::Transcript { transcript: past } =
                engine.query(Query::Transcript { session }).await?
            {
                transcript = *past;
            }
            if op.is_none() && transcript.end.is_some() && transcript.waiting.is_empty() {
                bail!("session {session} has nothing left to do. Ask it something");
            }
            engine.open(session).await?
        }
    };
    if let Some(op) = op.clone() {
        handle.send(op).await;
    }
    let mut show = Show::new(manner, transcript, op);
    let stops = Stops::new()?;
    let watched = show.watch(&handle, watcher, stops).await;
    let session = handle.session;
    let closed = handle.close().await;
    let end = match (watched, closed) {
        (Err(fault), _) | (Ok(None), Err(fault)) => TurnEnd::Failed { fault },
        (Ok(Some(end)), _) => end,
        (Ok(None), Ok(())) => TurnEnd::Interrupted,
    };
    Ok(show.finish(session, end))
}

/// A turn as it is shown.
struct Show {
    manner: Manner,
    stage: Stage,
    transcript: Transcript,
    /// What was asked for and has not been taken up yet.
    wanted: Option<Op>,
    calls: HashMap<CallId, (String, Millis)>,
    last_outcome: Option<Outcome>,
    /// The answer in the shape it has to have, or what is wrong with it.
    answer: Option<Result<serde_json::Value, String>>,
    /// A person's own call, without a model.
    direct: bool,
    streamed: bool,
    doing: String,
    questions: Questions,
    /// What is said when the question on the screen has been answered.
    held: Vec<String>,
}

impl Show {
    fn new(manner: Manner, transcript: Transcript, wanted: Option<Op>) -> Show {
        Show {
            manner,
            stage: Stage::new(),
            transcript,
            direct: matches!(wanted, Some(Op::Call { .. } | Op::Undo { .. })),
            wanted,
            calls: HashMap::new(),
            last_outcome: None,
            answer: None,
            streamed: false,
            doing: "waiting for the model".into(),
            questions: Questions::default(),
            held: Vec::new(),
        }
    }

    /// Watches until what was wanted is done. `None` if the session stopped by itself.
    async fn watch(
        &mut self,
        handle: &Handle,
        mut watcher: Watcher,
        mut stops: Stops,
    ) -> Result<Option<TurnEnd>, Fault> {
        let mut quiet = Duration::ZERO;
        let mut pressed = 0;
        loop {
            if !self.questions.is_open() {
                for text in std::mem::take(&mut self.held) {
                    self.stage.tell(&text);
                }
                self.questions.next();
            }
            let beat = tokio::time::sleep(Duration::from_secs(1));
            tokio::select! {
                biased;
                () = stops.pressed() => {
                    pressed += 1;
                    match pressed {
                        1 => self.stage.tell("\nstopping; once more stops at once"),
                        2 => self.stage.tell("\nstopping at once"),
                        _ => return Ok(Some(TurnEnd::Interrupted)),
                    }
                    handle.send(Op::Interrupt).await;
                }
                event = watcher.next() => {
                    let event = event.map_err(|error| Fault::Storage { message: error.to_string() })?;
                    let Some(event) = event else { return Ok(None) };
                    quiet = Duration::ZERO;
                    if let Some(end) = self.see(&event, handle).await {
                        return Ok(Some(end));
                    }
                }
                (call, answer) = self.questions.answered() => {
                    handle.send(Op::Answer { call, answer }).await;
                }
                () = beat => {
                    quiet += Duration::from_secs(1);
                    if self.manner.output == Output::Text && !self.questions.is_open() {
                        self.stage.wait(&self.doing, quiet);
                    }
                }
            }
        }
    }

    async fn see(&mut self, event: &Event, handle: &Handle) -> Option<TurnEnd> {
        if self.manner.output == Output::Events
            && let Ok(json) = serde_json::to_string(event)
        {
            screen::json(&json);
        }
        match event {
            Event::Live(glimpse) => {
                self.see_live(&glimpse.live);
                // A call of the person's own that was turned down never begins.
                let noticed = matches!(glimpse.live, Live::Noticed { .. });
                (noticed && self.direct && self.wanted.is_some()).then_some(TurnEnd::Denied)
            }
            Event::Fact(record) => {
                self.transcript.push(record.seq, &record.fact);
                self.see_fact(record.at, &record.fact, handle).await
            }
        }
    }

    fn see_live(&mut self, live: &Live) {
        if self.manner.output != Output::Text {
            return;
        }
        match live {
            // A pipe gets whole texts: what was half said before a retry is not part of them.
            Live::Delta { stream: Stream::Text, .. } if !self.stage.watched || self.shaped() => {}
            Live::Delta { stream: Stream::Text, text } => {
                self.streamed = true;
                self.stage.say(text);
            }
            Live::Delta { stream: Stream::Reasoning, .. } => self.doing = "thinking".into(),
            Live::Progress { text, .. } => self.doing.clone_from(text),
            Live::Reached { host, refused: None, .. } => self.doing = format!("talking to {host}"),
            Live::Reached { host, refused: Some(why), .. } => {
                self.tell(&format!("the sandbox did not let a command reach {host}: {why}"));
            }
            Live::Noticed { text } => self.stage.tell(text),
        }
    }

    async fn see_fact(&mut self, at: Millis, fact: &Fact, handle: &Handle) -> Option<TurnEnd> {
        match fact {
            Fact::Prompted { .. } | Fact::TurnStarted { prompt: None, .. } => self.wanted = None,
            Fact::StepStarted { model, .. } => {
                self.doing = format!("waiting for {model}");
                self.streamed = false;
            }
            Fact::StepEnded { .. } => self.tell_end_of_line(),
            // Text that was not shown as it came.
            Fact::Said { text, .. }
                if !self.streamed && !self.shaped() && self.manner.output == Output::Text =>
            {
                self.stage.say(text);
            }
            Fact::Retrying { fault, wait_ms, .. } => {
                self.tell(&format!("{fault}; trying again in {} s", wait_ms.div_ceil(1000)));
            }
            Fact::Called { call, tool, arguments, .. } => {
                let label = format!("{tool} {}", brief(arguments));
                self.calls.insert(*call, (label, at));
            }
            Fact::Asked { call, accesses, reason, preview, repaired, offer } => {
                let preview = told(preview.as_deref(), repaired.as_ref());
                let asked = Asked { accesses, reason, preview, offer: offer.as_deref() };
                self.answer(*call, &asked, handle).await;
            }
            Fact::Answered { call, .. } => self.questions.settle(*call),
            Fact::Interrupted { .. } => self.questions.clear(),
            Fact::Started { call, .. } => {
                if let Some((label, since)) = self.calls.get_mut(call) {
                    *since = at;
                    self.doing.clone_from(label);
                }
            }
            Fact::Settled { call, outcome, .. } => {
                self.questions.settle(*call);
                if let Some((label, since)) = self.calls.remove(call).filter(|_| !self.direct) {
                    let time = at.0.saturating_sub(since.0);
                    self.tell(&format!("• {label}: {} ({time} ms)", gist(outcome)));
                }
                self.last_outcome = Some(outcome.clone());
            }
            Fact::TurnEnded { end, .. } => {
                if self.wanted.is_none() && self.transcript.waiting.is_empty() {
                    return self.is_over(end, handle).await.then(|| end.clone());
                }
            }
            Fact::Opened { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::TurnStarted { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::ContextChanged { .. } => {}
        }
        None
    }

    fn shaped(&self) -> bool {
        self.manner.shape.is_some()
    }

    /// True unless the answer misses its shape and the model is asked once more.
    async fn is_over(&mut self, end: &TurnEnd, handle: &Handle) -> bool {
        let Some(shape) = self.manner.shape.as_mut().filter(|_| *end == TurnEnd::Done) else {
            return true;
        };
        let answer = shape.fit(&answer_of(&self.transcript));
        let again = answer.as_ref().err().and_then(|why| shape.again(why));
        self.answer = Some(answer);
        let Some(text) = again else { return true };
        self.tell("the answer does not fit the schema; asking again");
        let op = Op::Prompt { text, attachments: Vec::new() };
        self.wanted = Some(op.clone());
        handle.send(op).await;
        false
    }

    /// Says what happens, but not into a question that stands on the screen.
    fn tell(&mut self, text: &str) {
        match self.manner.output {
            Output::Text if self.questions.is_open() => self.held.push(text.to_owned()),
            Output::Text => self.stage.tell(text),
            Output::Json | Output::Events => {}
        }
    }

    fn tell_end_of_line(&mut self) {
        if self.manner.output == Output::Text {
            self.stage.end_line();
        }
    }

    /// Answers a question: as `--yes` says, as the person says, or no if nobody is there.
    async fn answer(&mut self, call: CallId, asked: &Asked<'_>, handle: &Handle) {
        if self.manner.yes && !asked.leaves() {
            handle.send(Op::Answer { call, answer: Answer::Once }).await;
        } else if screen::is_interactive() && self.manner.output == Output::Text {
            self.stage.end_line();
            self.questions.add(call, asked.question(screen::width()));
        } else {
            let hint = match asked.leaves() {
                true => "only a person at the terminal can let it out of the sandbox",
                false => "use --yes, or allow it in the config",
            };
            let wants = asked.wants().join("\n        ");
            let reason = crate::question::one_line(asked.reason);
            screen::note(&format!("denied: {wants} ({reason}). Nobody is here to ask: {hint}"));
            handle.send(Op::Answer { call, answer: Answer::No { reason: None } }).await;
        }
    }

    /// Says how it ended.
    fn finish(mut self, session: SessionId, end: TurnEnd) -> Exit {
        let failed = self.direct && !matches!(self.last_outcome, Some(Outcome::Completed { .. }))
            || matches!(self.answer, Some(Err(_)));
        match self.manner.output {
            Output::Text => {
                self.stage.end_line();
                if let (true, Some(outcome)) = (self.direct, &self.last_outcome) {
                    print_outcome(outcome);
                }
                if let Some(Ok(answer)) = &self.answer {
                    screen::json(&answer.to_string());
                }
                if let TurnEnd::Limit { what } = &end {
                    screen::note(&format!(
                        "stopped: {what} was reached; `windlass run --continue` goes on"
                    ));
                }
                if end == TurnEnd::Interrupted {
                    screen::note("interrupted; `windlass run --continue` goes on");
                }
            }
            Output::Json => {
                let result = json!({
                    "session": session,
                    "end": end,
                    "text": answer_of(&self.transcript),
                    "answer": self.answer.as_ref().and_then(|answer| answer.as_ref().ok()),
                    "usage": self.transcript.usage,
                    "outcome": self.last_outcome.filter(|_| self.direct),
                });
                screen::json(&result.to_string());
            }
            Output::Events => {}
        }
        if let TurnEnd::Failed { fault } = &end {
            screen::error(&format!("{fault}. {}", fault.hint()));
        }
        if let Some(Err(why)) = &self.answer {
            screen::error(&format!("the answer does not fit the schema: {why}"));
        }
        match (&end, &failed) {
            (TurnEnd::Done, true) => Exit::Failed,
            _ => Exit::of(&end),
        }
    }
}

/// What a person is shown of a call that is asked about: what it would do and, where it was not
/// quite right, what was made of it.
fn told(preview: Option<&str>, repaired: Option<&Repair>) -> Option<String> {
    let repaired = repaired.map(|repair| {
        let Repair { arguments, changes } = repair;
        format!("The call was repaired ({}); it means: {arguments}", changes.join("; "))
    });
    let parts: Vec<String> = preview.map(str::to_owned).into_iter().chain(repaired).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The text of the model's last message.
fn answer_of(transcript: &Transcript) -> String {
    let last = transcript.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let text = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
    };
    last.map(|message| message.parts.iter().filter_map(text).collect()).unwrap_or_default()
}

/// The arguments of a call on one short line: the value of a single field, or all of it.
pub(crate) fn brief(arguments: &str) -> String {
    const LONGEST: usize = 60;
    let first = serde_json::from_str::<serde_json::Value>(arguments).ok().and_then(|value| {
        let first = value.as_object()?.values().next()?.as_str()?.to_owned();
        Some(first)
    });
    let text = first.unwrap_or_else(|| arguments.to_owned()).replace('\n', " ");
    windlass_protocol::text::beginning(&text, LONGEST)
}

/// What became of a call, in a few words.
pub(crate) fn gist(outcome: &Outcome) -> String {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match outcome {
        Outcome::Completed { output } => match output.text.lines().count() {
            0 | 1 => first(&output.text),
            lines => format!("{lines} lines"),
        },
        Outcome::Failed { text } => format!("failed, {}", first(text)),
        Outcome::Denied { text } => format!("denied, {}", first(text)),
        Outcome::Interrupted { .. } => "interrupted".into(),
        Outcome::Unknown => "may have run; its result was lost".into(),
    }
}

/// Prints what a person's own call gave.
pub(crate) fn print_outcome(outcome: &Outcome) {
    match outcome {
        Outcome::Completed { output } => screen::raw(&with_line_end(&output.text)),
        other => screen::error(other.text()),
    }
}

fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
