//! `windlass run` and `windlass tool call`: one turn, watched to its end.

mod inquire;
mod lead;
mod next;
mod report;

use crate::args::Output;
use crate::ask::{Posed, Questions, Stops};
use crate::attach::{Enclosed, enclose, system};
use crate::question::{Asked, told};
use crate::screen::{self, Stage};
use crate::shape::Shape;
use crate::watching::Watching;
use crate::{Exit, setup::Setup, setup::Wishes};
use anyhow::bail;
pub(crate) use report::{brief, gist};
use std::collections::HashMap;
use std::io::Read;
use std::time::Duration;
use windlass_engine::{Engine, Handle, Watcher};
use windlass_project::Run;
use windlass_protocol::{
    Answer, CallId, Cost, Delivery, Event, Fact, Fault, Files, Live, Millis, Mode, Op, Outcome,
    Point, Query, Reply, SessionId, Stream, Transcript, TurnEnd, Usage, Verdict,
};

/// How a turn is to be shown and answered for.
pub(crate) struct Manner {
    pub(crate) output: Output,
    pub(crate) yes: bool,
    /// What the answer has to look like.
    pub(crate) shape: Option<Shape>,
    /// The mode that was asked for, which counts for more than the one a session was left in.
    pub(crate) mode: Option<Mode>,
}

/// `windlass run`.
pub(crate) async fn run(args: crate::args::Run) -> anyhow::Result<Exit> {
    let goes_on = args.session.is_some() || args.r#continue;
    let said = match &args.command {
        Some(_) => args.prompt,
        None => prompt(args.prompt, goes_on)?,
    };
    let shape = args.output_schema.as_deref().map(Shape::read).transpose()?;
    let system = args.system.as_deref().map(system).transpose()?.unwrap_or_default();
    let setup = Setup::read(args.bounds.flags(args.model))?;
    let schema = shape.as_ref().map(|shape| shape.schema.clone());
    let model = setup.choose(args.variant.as_deref())?.asked(schema)?;
    if args.limits.max_cost.is_some() && model.model.price.input.is_none() {
        bail!(
            "what this model costs is not known, so --max-cost cannot hold. Use --max-tokens, or \
             a model that `windlass models` has a price for"
        );
    }
    let limits = args.limits.of_a_turn();
    let wishes = Wishes { limits, system, agent: args.agent, ..Wishes::default() };
    let engine = setup.host_with(model, wishes).await?;
    let (prompt, runs) = match &args.command {
        Some(name) => {
            let (text, runs) =
                crate::command::prompt(&setup, &engine, name, said.as_deref()).await?;
            (Some(text), runs)
        }
        None => (said, Vec::new()),
    };
    let session = match (&args.session, args.r#continue) {
        (Some(id), _) => Some(crate::session::find(&engine, id).await?),
        (None, true) => Some(last(&engine, &setup).await?),
        (None, false) => None,
    };
    let manner = Manner { output: args.output, yes: args.yes, shape, mode: args.bounds.mode };
    if prompt.is_none() && !args.file.is_empty() {
        bail!("a file goes with a prompt, and nothing was asked");
    }
    let Enclosed { attachments, texts } = enclose(&engine, &args.file).await?;
    let op = prompt.map(|text| {
        let text = text + &texts;
        Op::Prompt { text, attachments, when: Delivery::default() }
    });
    turn_after(&engine, session, &runs, (op, manner)).await
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

/// The session of this folder that a person worked in last.
pub(crate) async fn last(engine: &Engine, setup: &Setup) -> anyhow::Result<SessionId> {
    let workspace = Some(setup.workspace());
    let reply = engine.query(Query::Sessions { workspace }).await?;
    let Reply::Sessions { sessions } = reply else { bail!("the sessions could not be read") };
    // What a model began is gone on with by the model.
    let found = sessions.iter().find(|row| row.parent.is_none()).map(|row| row.session);
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
    turn_after(engine, session, &[], (op, manner)).await
}

/// The same after commands have run of which the output goes into the prompt.
async fn turn_after(
    engine: &Engine,
    session: Option<SessionId>,
    runs: &[Run],
    (op, manner): (Option<Op>, Manner),
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
            if !runs.is_empty() && (transcript.end.is_none() || !transcript.waiting.is_empty()) {
                bail!(
                    "session {session} is in the middle of something, and the command wants to run \
                     `{}` first. Let it end: `windlass run --session {session}`",
                    runs.iter().map(|run| run.command.as_str()).collect::<Vec<_>>().join("`, `")
                );
            }
            engine.open(session).await?
        }
    };
    if let Some(mode) = manner.mode.filter(|mode| transcript.mode.is_some_and(|it| it != *mode)) {
        handle.send(Op::Mode { mode }).await;
    }
    if let (Some(Op::Prompt { text, .. }), None, false) = (&op, session, runs.is_empty())
        && let Some(title) = crate::command::title(text)
    {
        // Else it would be called after the first command that runs.
        handle.send(Op::Rename { title }).await;
    }
    let mut show = Show::new(manner, transcript);
    show.watching = Watching::wanted(Setup::env);
    let watched = show.see_through(&handle, watcher, (runs, op)).await;
    let session = handle.session;
    let closed = handle.close().await;
    if let Some(watching) = &mut show.watching {
        watching.report().await;
    }
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
    /// What this run used, of tokens and of money, and changed.
    usage: Usage,
    cost: Cost,
    files: Files,
    /// The answer in the shape it has to have, or what is wrong with it.
    answer: Option<Result<serde_json::Value, String>>,
    /// A person's own call, without a model.
    direct: bool,
    streamed: bool,
    doing: String,
    questions: Questions,
    /// What is said when the question on the screen has been answered.
    held: Vec<String>,
    /// Who is told about it besides.
    watching: Option<Watching>,
}

impl Show {
    fn new(manner: Manner, transcript: Transcript) -> Show {
        Show {
            manner,
            stage: Stage::new(),
            transcript,
            direct: false,
            wanted: None,
            calls: HashMap::new(),
            last_outcome: None,
            usage: Usage::default(),
            cost: Cost::default(),
            files: Files::default(),
            answer: None,
            streamed: false,
            doing: "waiting for the model".into(),
            questions: Questions::default(),
            held: Vec::new(),
            watching: None,
        }
    }

    /// Watches until what was wanted is done. `None` if the session stopped by itself.
    async fn watch(
        &mut self,
        handle: &Handle,
        watcher: &mut Watcher,
        stops: &mut Stops,
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
                op = self.questions.answered() => {
                    handle.send(op).await;
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
            Event::Live(glimpse) if glimpse.session != handle.session => None,
            Event::Fact(record) if record.session != handle.session => {
                self.see_child(&record.fact, handle).await;
                None
            }
            Event::Live(glimpse) => {
                self.see_live(&glimpse.live);
                // A call of the person's own that was turned down never begins.
                let noticed = matches!(glimpse.live, Live::Noticed { .. });
                (noticed && self.direct && self.wanted.is_some()).then_some(TurnEnd::Denied)
            }
            Event::Fact(record) => {
                self.watching.iter_mut().for_each(|watching| watching.telemetry.push(record));
                self.transcript.push(record.seq, &record.fact);
                self.files.push(record.seq, &record.fact);
                self.see_fact(record.at, &record.fact, handle).await
            }
        }
    }

    /// What a person has to know of a session that a call began: what it asks.
    async fn see_child(&mut self, fact: &Fact, handle: &Handle) {
        if let Fact::Asked { call, accesses, reason, preview, repaired, offer } = fact {
            let preview = told(preview.as_deref(), repaired.as_ref());
            let reason = &format!("an agent asks: {reason}");
            let asked = Asked { accesses, reason, preview, offer: offer.as_deref() };
            self.answer(*call, &asked, handle).await;
        }
        if let Fact::Answered { call, .. } | Fact::Settled { call, .. } = fact {
            self.questions.settle(*call);
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
            Live::Output { .. } | Live::Job { .. } => {}
            Live::Reached { host, refused: None, .. } => self.doing = format!("talking to {host}"),
            Live::Reached { host, refused: Some(why), .. } => {
                self.tell(&format!("the sandbox did not let a command reach {host}: {why}"));
            }
            Live::Hooked { call, hook, point, verdict, .. } => {
                self.tell_hooked(*call, (hook, *point), verdict);
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
            Fact::StepEnded { usage, cost, .. } => {
                self.usage += *usage;
                self.cost += cost.unwrap_or_default();
                self.tell_end_of_line();
            }
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
            Fact::Inquired { call, inquiries } => self.inquire(*call, inquiries, handle).await,
            Fact::ModeChanged { mode } => self.tell(&format!("the mode is {mode} now")),
            Fact::Answered { call, .. } | Fact::Replied { call, .. } => {
                self.questions.settle(*call);
            }
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
                self.tell_list(outcome);
                self.last_outcome = Some(outcome.clone());
            }
            Fact::Hooked { call, hook, point, verdict, .. } => {
                self.tell_hooked(*call, (hook, *point), verdict);
            }
            Fact::TurnEnded { end, .. } => {
                if self.wanted.is_none() && self.transcript.waiting.is_empty() {
                    return self.is_over(end, handle).await.then(|| end.clone());
                }
            }
            Fact::Opened { .. }
            | Fact::Briefed { .. }
            | Fact::Pruned { .. }
            | Fact::Steered { .. }
            | Fact::Spawned { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::Withdrawn { .. }
            | Fact::TurnStarted { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::ContextChanged { .. } => {}
        }
        None
    }

    /// Says what a hook would not let pass.
    fn tell_hooked(&mut self, call: Option<CallId>, by: (&str, Point), verdict: &Verdict) {
        let label = call.and_then(|call| self.calls.get(&call)).map(|(label, _)| label.as_str());
        if let Some(line) = report::hooked(by, label, verdict) {
            self.tell(&line);
        }
    }

    fn shaped(&self) -> bool {
        self.manner.shape.is_some()
    }

    /// True unless the answer misses its shape and the model is asked once more.
    async fn is_over(&mut self, end: &TurnEnd, handle: &Handle) -> bool {
        let answers = *end == TurnEnd::Done && !self.direct;
        let Some(shape) = self.manner.shape.as_mut().filter(|_| answers) else {
            return true;
        };
        let answer = shape.fit(&report::answer_of(&self.transcript));
        let again = answer.as_ref().err().and_then(|why| shape.again(why));
        self.answer = Some(answer);
        let Some(text) = again else { return true };
        self.tell("the answer does not fit the schema; asking again");
        let op = Op::prompt(text);
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
            let question = asked.question(screen::width());
            self.questions.add(call, Posed::Permission(question));
        } else {
            let hint = match asked.leaves() {
                true => "only a person at the terminal can let it out of the sandbox",
                false => "use --yes, or allow it in the config",
            };
            let wants = asked.wants().join("\n        ");
            let reason = windlass_protocol::text::one_line(asked.reason);
            screen::note(&format!("denied: {wants} ({reason}). Nobody is here to ask: {hint}"));
            handle.send(Op::Answer { call, answer: Answer::No { reason: None } }).await;
        }
    }
}
