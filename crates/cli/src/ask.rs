//! Questions to the person, one at a time, and the key that stops everything.

use crate::inquiry::{Form, Taken};
use crate::question::Question;
use crate::screen;
use std::collections::VecDeque;
use tokio::sync::mpsc;
use windlass_protocol::{CallId, Op};

/// Something the person is asked.
#[derive(Debug)]
pub(crate) enum Posed {
    /// Whether a call may be made.
    Permission(Question),
    /// What a call wants to know.
    Inquiry(Form),
}

/// What becomes of a line.
enum Heard {
    Said(Op),
    /// There is more to ask, or the same once more.
    Ask(String),
}

impl Posed {
    fn text(&self) -> String {
        match self {
            Posed::Permission(question) => question.text.clone(),
            Posed::Inquiry(form) => form.text(),
        }
    }

    fn hear(&mut self, call: CallId, line: Option<&str>) -> Heard {
        match self {
            Posed::Permission(question) => match question.answer(line) {
                Some(answer) => Heard::Said(Op::Answer { call, answer }),
                None => Heard::Ask(question.again.clone()),
            },
            Posed::Inquiry(form) => match form.take(line) {
                Taken::Done(replies) => Heard::Said(Op::Reply { call, replies }),
                Taken::Next => Heard::Ask(form.text()),
                Taken::Again(text) => Heard::Ask(text),
            },
        }
    }
}

/// The questions that wait, and the one that stands on the screen.
#[derive(Default)]
pub(crate) struct Questions {
    waiting: VecDeque<(CallId, Posed)>,
    open: Option<(CallId, Posed)>,
    reader: Option<Reader>,
}

impl Questions {
    /// Takes in a question, to be asked when its turn comes.
    pub(crate) fn add(&mut self, call: CallId, question: Posed) {
        self.waiting.push_back((call, question));
    }

    /// Takes back what no longer needs an answer.
    pub(crate) fn settle(&mut self, call: CallId) {
        self.waiting.retain(|(waiting, _)| *waiting != call);
        self.open.take_if(|(open, _)| *open == call);
    }

    /// Takes everything back: the person wants to stop.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.open = None;
    }

    /// True while the person is being asked.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The answer to the question on the screen. What cannot be answered is asked again; lines that
    /// were typed without a question answer nothing.
    pub(crate) async fn answered(&mut self) -> Op {
        loop {
            let line = match &mut self.reader {
                Some(reader) => reader.line().await,
                None => std::future::pending().await,
            };
            let Some((call, mut question)) = self.open.take() else {
                if line.is_none() {
                    // The end of the input: nothing more will be typed.
                    self.reader = None;
                }
                continue;
            };
            match question.hear(call, line.as_deref()) {
                Heard::Said(op) => return op,
                Heard::Ask(text) => {
                    self.put(&text);
                    self.open = Some((call, question));
                }
            }
        }
    }

    /// Asks the next one, unless one is being asked.
    pub(crate) fn next(&mut self) {
        if self.open.is_none()
            && let Some((call, question)) = self.waiting.pop_front()
        {
            self.put(&question.text());
            self.open = Some((call, question));
        }
    }

    /// Puts a question, and wants a line that is typed from now on.
    fn put(&mut self, text: &str) {
        screen::pose(text);
        self.reader.get_or_insert_with(Reader::new).want();
    }
}

/// Reads a line when one is wanted, where it holds nobody up: whoever never answers must not keep
/// the process from ending. There is one reader, so that an answer cannot reach another question
/// than the one on the screen.
struct Reader {
    wanted: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
    /// A line is wanted and has not come.
    reads: bool,
}

impl Reader {
    #[allow(
        clippy::disallowed_methods,
        reason = "a thread of its own may be left behind at the end"
    )]
    fn new() -> Reader {
        let (wanted, wants) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            while wants.recv().is_ok() {
                let line = screen::read_line();
                let end = line.is_none();
                if sender.blocking_send(line).is_err() || end {
                    return;
                }
            }
        });
        Reader { wanted, lines, reads: false }
    }

    /// Wants a line. One that came in the meantime was meant for something else.
    fn want(&mut self) {
        while self.lines.try_recv().is_ok() {
            self.reads = false;
        }
        if !self.reads {
            // Nobody receives it after the end of the input; then there is no line, either.
            self.reads = self.wanted.send(()).is_ok();
        }
    }

    async fn line(&mut self) -> Option<String> {
        let line = self.lines.recv().await.flatten();
        self.reads = false;
        line
    }
}

/// The signals that end the screen: it is closed in order, and the terminal left as it was. An
/// interrupt is none of them: it is meant for a program that has the terminal for a while.
pub(crate) struct Ends {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl Ends {
    pub(crate) fn new() -> std::io::Result<Ends> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = [
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::interrupt())?,
            ];
            Ok(Ends { signals })
        }
        #[cfg(not(unix))]
        Ok(Ends {})
    }

    /// Resolves when the screen is to end.
    pub(crate) async fn told(&mut self) {
        #[cfg(unix)]
        {
            let [terminate, hangup, _] = &mut self.signals;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// The person's Ctrl-C, as often as they press it. None is lost while something else is going on.
pub(crate) struct Stops {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl Stops {
    pub(crate) fn new() -> std::io::Result<Stops> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()?;
        Ok(Stops { signal })
    }

    pub(crate) async fn pressed(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending().await
        }
    }
}
