//! A program that answers calls: started when it is first wanted, kept running, started again when
//! its file has changed or it was lost.
//!
//! There is one process for each cage that its tools are called in, so that what may only look is
//! never answered by a process that can change something. Start reading at [`Program::call`].

use crate::lines::{Broken, Exchange, Lines};
use crate::reply::{Reply, Said};
use crate::terms::{Terms, Wishes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use windlass_protocol::{Inquiry, Mode};
use windlass_sandbox::{Hold, Hosts, Keep, Servant};
use windlass_toolkit::health::{Health, Want};
use windlass_toolkit::{Berth, Cx, Failure, Stake};

/// How long a program may take until it runs and has said what it is.
const START: Duration = Duration::from_secs(10);
/// How long it may take to say what it is.
const DESCRIBE: Duration = Duration::from_secs(5);
/// How long a call may take, unless somebody says otherwise, and at most.
const CALL: Duration = Duration::from_secs(120);
const LONGEST_CALL: Duration = Duration::from_secs(600);
/// How long one that was told to stop may take for it, and then to end.
const STOP: Duration = Duration::from_millis(1_200);
const END: Duration = Duration::from_millis(300);
/// How long an answer that nobody waits for any more may hold up the next call.
const LATE: Duration = Duration::from_secs(2);
/// How often a call may tell how far it is, and how many questions it may ask.
const REPORTS: usize = 1_000;
const QUESTIONS: usize = 20;

/// What is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program, as a whole path.
    pub program: PathBuf,
    /// What it is called with.
    pub arguments: Vec<OsString>,
    /// Names the bytes that count: another digest is another program.
    pub digest: String,
}

/// Where a program's file lies.
pub trait Shelf: Send + Sync {
    /// What is different when the file may be: sizes and times. It is asked before each call, so it
    /// is quick.
    fn stamp(&self) -> String;

    /// Looks at the file and says what to start, or why it must not be. It is asked before each
    /// start. Blocks.
    fn take(&self) -> Result<Launch, String>;
}

/// What one process of a program may touch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cage {
    pub(crate) hold: Hold,
    pub(crate) network: Network,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Network {
    /// No host.
    Shut,
    /// What commands reach.
    Usual,
    /// These.
    Named(Vec<String>),
}

impl Cage {
    /// The one that nothing can be done from but looking.
    pub(crate) const SHUT: Cage = Cage { hold: Hold::Read, network: Network::Shut };
}

/// A program whose tools can be called.
pub struct Program {
    name: String,
    berth: Berth,
    shelf: Arc<dyn Shelf>,
    terms: Terms,
    began: Instant,
    slots: Mutex<BTreeMap<Cage, Arc<Slot>>>,
}

/// The place of one process.
struct Slot {
    /// Whose call is being answered.
    turn: tokio::sync::Mutex<()>,
    state: tokio::sync::Mutex<State>,
}

struct State {
    health: Health,
    running: Option<Running>,
    /// What the file was when it was last started.
    tried: Option<String>,
}

struct Running {
    lines: Arc<Lines>,
    launch: Launch,
    stamp: String,
    /// What it says of itself.
    described: Value,
}

/// One call as a program gets it.
pub(crate) struct Errand<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: Value,
    pub(crate) cage: Cage,
    pub(crate) timeout: Option<Duration>,
    /// Others may be answered at the same time.
    pub(crate) manner: Manner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    OneByOne,
    Together,
}

impl Program {
    /// A program by the name its tools begin with. Nothing is started.
    pub fn new(name: &str, berth: &Berth, shelf: Arc<dyn Shelf>, terms: Terms) -> Arc<Program> {
        Arc::new(Program {
            name: name.to_owned(),
            berth: berth.clone(),
            shelf,
            terms,
            began: Instant::now(),
            slots: Mutex::default(),
        })
    }

    /// The name its tools begin with.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Asks it what its tools are. It runs where it can only look.
    pub async fn describe(&self) -> Result<Value, Failure> {
        let slot = self.slot(&Cage::SHUT);
        self.running(&slot, &Cage::SHUT, self.berth.mode()).await.map(|(_, described)| described)
    }

    /// Calls one of its tools.
    pub(crate) async fn call(&self, errand: Errand<'_>, cx: &Cx<'_>) -> Result<Reply, Failure> {
        let mode = cx.world.mode();
        let hold = errand.cage.hold.min(self.terms.most).in_mode(mode);
        let cage = Cage { hold, network: errand.cage.network.clone() };
        let slot = self.slot(&cage);
        let turn = match errand.manner {
            Manner::OneByOne => Some(slot.turn.lock().await),
            Manner::Together => None,
        };
        let (mut lines, _) = self.running(&slot, &cage, mode).await?;
        if !matches!(timeout(LATE, lines.settled()).await, Ok(Ok(()))) {
            self.end(&slot, &lines, "it did not stop what nobody waited for any more").await;
            (lines, _) = self.running(&slot, &cage, mode).await?;
        }
        let reached = lines.held().reached(0).len();
        let answer = self.converse(&slot, &lines, errand, cx).await;
        for reached in lines.held().reached(reached) {
            cx.caller.reached(reached.host, reached.refused);
        }
        drop(turn);
        answer
    }

    async fn converse(
        &self,
        slot: &Slot,
        lines: &Lines,
        errand: Errand<'_>,
        cx: &Cx<'_>,
    ) -> Result<Reply, Failure> {
        let patience = errand.timeout.or(self.terms.timeout).unwrap_or(CALL).min(LONGEST_CALL);
        let mut deadline = Instant::now() + patience;
        let asked = timeout_at(deadline, lines.request(self.request(&errand, cx))).await;
        let mut exchange = match asked {
            Ok(Ok(exchange)) => exchange,
            Ok(Err(broken)) => return Err(self.broke(slot, lines, broken).await),
            Err(_) => {
                self.end(slot, lines, "it reads nothing").await;
                let text = format!("{} read nothing for {} s", errand.tool, patience.as_secs());
                return Err(Failure::new(text));
            }
        };
        let (mut reports, mut questions) = (0, 0);
        loop {
            let line = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    self.stop(slot, lines, exchange).await;
                    return Err(Failure::new(format!("{} was stopped", errand.tool)));
                }
                line = timeout_at(deadline, exchange.next()) => line,
            };
            let line = match line {
                // One that never pauses leaves no time to look at the clock in between.
                Ok(Ok(line)) if Instant::now() < deadline => line,
                Ok(Err(broken)) => return Err(self.broke(slot, lines, broken).await),
                Ok(Ok(_)) | Err(_) => {
                    self.stop(slot, lines, exchange).await;
                    return Err(Failure::new(late(errand.tool, patience, lines)));
                }
            };
            match Said::read(&line) {
                Ok(Said::Progress(text)) if reports < REPORTS => {
                    reports += 1;
                    cx.caller.progress(text);
                }
                Ok(Said::Progress(_)) => {}
                Ok(Said::Ask(_)) if questions == QUESTIONS => {
                    self.stop(slot, lines, exchange).await;
                    let text = format!("{} asked more than {QUESTIONS} questions", errand.tool);
                    return Err(Failure::new(text));
                }
                Ok(Said::Ask(inquiry)) => {
                    questions += 1;
                    let since = Instant::now();
                    let chosen = chosen(inquiry, lines, cx).await;
                    deadline += since.elapsed();
                    if let Err(broken) = exchange.say(json!({"answer": chosen})).await {
                        return Err(self.broke(slot, lines, broken).await);
                    }
                }
                Ok(Said::Done(reply)) => {
                    exchange.close();
                    return Ok(*reply);
                }
                Ok(Said::Failed(text)) => {
                    exchange.close();
                    return Err(Failure::new(text));
                }
                Err(why) => {
                    exchange.close();
                    return Err(Failure::new(format!("{} {why}", errand.tool)));
                }
            }
        }
    }

    fn request(&self, errand: &Errand<'_>, cx: &Cx<'_>) -> Value {
        json!({
            "method": "call",
            "tool": errand.tool,
            "arguments": errand.arguments,
            "context": {
                "session": cx.session,
                "call": cx.call,
                "folder": self.terms.folder.display().to_string(),
                "mode": cx.world.mode(),
            },
        })
    }

    /// Tells a call to stop, and ends the process if it does not.
    async fn stop(&self, slot: &Slot, lines: &Lines, mut exchange: Exchange<'_>) {
        let stopped = async {
            exchange.say(json!({"method": "cancel"})).await?;
            loop {
                let line = exchange.next().await?;
                if !matches!(Said::read(&line), Ok(Said::Progress(_) | Said::Ask(_))) {
                    return Ok::<(), Broken>(());
                }
            }
        };
        let stopped = timeout(STOP, stopped).await;
        exchange.close();
        if !matches!(stopped, Ok(Ok(()))) {
            self.end(slot, lines, "it did not stop when it was told to").await;
        }
    }

    /// What a call hears whose program can no longer be talked to.
    async fn broke(&self, slot: &Slot, lines: &Lines, Broken(why): Broken) -> Failure {
        self.end(slot, lines, &why).await;
        Failure::new(format!("{why}. The call may have done something before that."))
    }

    /// Ends a process that is not to be talked to again.
    async fn end(&self, slot: &Slot, lines: &Lines, why: &str) {
        lines.held().end(END).await;
        let mut state = slot.state.lock().await;
        let same = |running: &Running| std::ptr::eq(Arc::as_ptr(&running.lines), lines);
        if state.running.as_ref().is_some_and(same) {
            state.running = None;
            state.health.lost(self.began.elapsed(), why.to_owned());
        }
    }

    fn slot(&self, cage: &Cage) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.entry(cage.clone()).or_insert_with(|| {
            let health = Health::new(&self.name);
            let state = State { health, running: None, tried: None };
            Arc::new(Slot {
                turn: tokio::sync::Mutex::default(),
                state: tokio::sync::Mutex::new(state),
            })
        });
        Arc::clone(slot)
    }

    /// The process of a cage, started if it does not run as the file is now.
    async fn running(
        &self,
        slot: &Slot,
        cage: &Cage,
        mode: Mode,
    ) -> Result<(Arc<Lines>, Value), Failure> {
        let mut state = slot.state.lock().await;
        let stamp = self.shelf.stamp();
        if let Some(running) = state.running.take_if(|running| running.lines.is_over()) {
            let why = running.lines.held().last_words().unwrap_or_else(|| "it was ended".into());
            state.health.lost(self.began.elapsed(), why);
        }
        if let Some(mut running) = state.running.take() {
            if running.stamp == stamp {
                let found = (Arc::clone(&running.lines), running.described.clone());
                state.running = Some(running);
                return Ok(found);
            }
            // Whatever becomes of the new one, the old one is not called any more.
            state.health.lost(self.began.elapsed(), "its file has changed".into());
            match self.take().await {
                Ok(launch) if launch == running.launch => {
                    running.stamp = stamp;
                    let found = (Arc::clone(&running.lines), running.described.clone());
                    state.running = Some(running);
                    state.health.forget();
                    let _ = state.health.want(self.began.elapsed());
                    state.health.started(self.began.elapsed());
                    return Ok(found);
                }
                Ok(_) => running.lines.held().end(END).await,
                Err(why) => {
                    running.lines.held().end(END).await;
                    return Err(Failure::new(why));
                }
            }
        }
        if state.tried.as_ref() != Some(&stamp) {
            state.health.forget();
        }
        match state.health.want(self.began.elapsed()) {
            // Whoever was to start it was dropped: nobody else holds the state.
            Want::Go | Want::Start | Want::Wait => {}
            Want::Fail(text) => return Err(Failure::new(text)),
        }
        state.tried = Some(stamp.clone());
        let begun = timeout(START, self.start(cage, mode, stamp)).await;
        let begun = begun.unwrap_or_else(|_| {
            Err(Failure::new(format!("{} did not start within {} s", self.name, START.as_secs())))
        });
        match begun {
            Ok(running) => {
                state.health.started(self.began.elapsed());
                let found = (Arc::clone(&running.lines), running.described.clone());
                state.running = Some(running);
                Ok(found)
            }
            Err(failure) => {
                state.health.failed(self.began.elapsed(), failure.text.clone());
                Err(failure)
            }
        }
    }

    /// Starts a process and has it say what it is.
    async fn start(&self, cage: &Cage, mode: Mode, stamp: String) -> Result<Running, Failure> {
        let launch = self.take().await.map_err(Failure::new)?;
        let servant = Servant {
            name: format!("tool/{}", self.name),
            program: launch.program.clone(),
            arguments: launch.arguments.clone(),
            folder: self.terms.folder.clone(),
            env: self.terms.env.clone(),
            keep: Keep {
                workspace: cage.hold,
                write: self.terms.write.clone(),
                network: self.hosts(&cage.network)?,
                walls: None,
            },
        };
        let engaged = self.berth.in_mode(mode).engage(servant).await?;
        let lines = Lines::new(engaged);
        let folder = self.terms.folder.display().to_string();
        let question = json!({"method": "describe", "windlass": 1, "folder": folder});
        let asked = async {
            let mut exchange = lines.request(question).await?;
            let line = exchange.next().await?;
            exchange.close();
            Ok::<_, Broken>(line)
        };
        let line = match timeout(DESCRIBE, asked).await {
            Ok(Ok(line)) => line,
            Ok(Err(Broken(why))) => {
                lines.held().end(END).await;
                return Err(Failure::new(why));
            }
            Err(_) => {
                let said = complaint(&lines);
                lines.held().end(END).await;
                return Err(Failure::new(format!(
                    "{} did not answer `describe` within {} s{said}",
                    self.name,
                    DESCRIBE.as_secs()
                )));
            }
        };
        let described = crate::reply::described(&line);
        match described {
            Ok(described) => Ok(Running { lines: Arc::new(lines), launch, stamp, described }),
            Err(why) => {
                lines.held().end(END).await;
                Err(Failure::new(format!("{} {why}", self.name)))
            }
        }
    }

    async fn take(&self) -> Result<Launch, String> {
        let shelf = Arc::clone(&self.shelf);
        let taken = tokio::task::spawn_blocking(move || shelf.take()).await;
        taken.unwrap_or_else(|_| Err("its file could not be looked at".to_owned()))
    }

    fn hosts(&self, network: &Network) -> Result<Hosts, Failure> {
        match (network, &self.terms.wishes) {
            (Network::Shut, _) => Ok(Hosts::none()),
            (Network::Usual, _) | (Network::Named(_), Wishes::Held | Wishes::Shown(_)) => {
                Ok(self.terms.hosts.clone())
            }
            (Network::Named(named), Wishes::Granted) => {
                Hosts::parse(named).map_err(|error| Failure::new(format!("{}: {error}", self.name)))
            }
        }
    }
}

/// What the person answers to a program; nothing where nobody does.
async fn chosen(inquiry: Inquiry, lines: &Lines, cx: &Cx<'_>) -> Vec<String> {
    let replies = tokio::select! {
        biased;
        replies = cx.caller.inquire(vec![inquiry], Stake::Words) => replies.unwrap_or_default(),
        _ = lines.held().ended() => Vec::new(),
        () = cx.cancel.cancelled() => Vec::new(),
    };
    replies.into_iter().next().unwrap_or_default()
}

/// The end of what a program complained of, to go behind a sentence.
fn complaint(lines: &Lines) -> String {
    let said = lines.held().complaint();
    if said.is_empty() { String::new() } else { format!("; it said: {said}") }
}

fn late(tool: &str, patience: Duration, lines: &Lines) -> String {
    let took = match patience.subsec_millis() {
        0 => format!("{} s", patience.as_secs()),
        _ => format!("{} ms", patience.as_millis()),
    };
    format!(
        "{tool} did not answer within {took}{}. Try it with less to do, or otherwise.",
        complaint(lines)
    )
}
