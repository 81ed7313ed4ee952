//! Asks the user questions one at a time, and listens for Ctrl-C and shutdown signals.

use crate::terminal::output;
use crate::terminal::permission_question::PermissionPrompt;
use crate::terminal::user_question::{QuestionFormProgress, TerminalQuestionForm};
use std::collections::VecDeque;
use tokio::sync::mpsc;
use windlass_protocol::{CallId, LogSeq, SessionOp};

/// A question to the user.
#[derive(Debug)]
pub(crate) enum TerminalQuestion {
    /// A permission request for a call, answered with `SessionOp::AnswerPermission`.
    Permission(PermissionPrompt),
    /// Questions that a tool asks the user, answered with `SessionOp::AnswerQuestion`.
    UserQuestion(TerminalQuestionForm),
}

/// The effect of an input line on the current question.
enum AnswerLineOutcome {
    Answered(SessionOp),
    /// Asks the next question, or the same one again.
    AskAgain(String),
}

impl TerminalQuestion {
    fn text(&self) -> String {
        match self {
            TerminalQuestion::Permission(question) => question.text.clone(),
            TerminalQuestion::UserQuestion(form) => form.question_text(),
        }
    }

    fn answer_line(
        &mut self,
        (call, asked): (CallId, LogSeq),
        line: Option<&str>,
    ) -> AnswerLineOutcome {
        let asked = Some(asked);
        match self {
            TerminalQuestion::Permission(question) => match question.parse_answer(line) {
                Some(answer) => {
                    AnswerLineOutcome::Answered(SessionOp::AnswerPermission { call, answer, asked })
                }
                None => AnswerLineOutcome::AskAgain(question.retry_text.clone()),
            },
            TerminalQuestion::UserQuestion(form) => match form.answer_line(line) {
                QuestionFormProgress::Done(answers) => {
                    AnswerLineOutcome::Answered(SessionOp::AnswerQuestion { call, answers, asked })
                }
                QuestionFormProgress::Next => AnswerLineOutcome::AskAgain(form.question_text()),
                QuestionFormProgress::Retry(text) => AnswerLineOutcome::AskAgain(text),
            },
        }
    }
}

/// A question, the call that asks it, and the position of the fact that asked.
type AskedQuestion = ((CallId, LogSeq), TerminalQuestion);

/// The queue of questions, and the one on the screen.
#[derive(Default)]
pub(crate) struct TerminalQuestionQueue {
    waiting: VecDeque<AskedQuestion>,
    current: Option<AskedQuestion>,
    reader: Option<StdinReader>,
}

impl TerminalQuestionQueue {
    /// Queues a question.
    pub(crate) fn add(&mut self, asked: (CallId, LogSeq), question: TerminalQuestion) {
        self.waiting.push_back((asked, question));
    }

    /// Removes the questions of a call that no longer need an answer.
    pub(crate) fn remove(&mut self, call: CallId) {
        self.waiting.retain(|((other, _), _)| *other != call);
        self.current.take_if(|((open, _), _)| *open == call);
    }

    /// Removes all questions, because the user wants to stop.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.current = None;
    }

    /// Returns true while a question is on the screen.
    pub(crate) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// Waits for the answer to the current question. Asks again after an invalid answer; ignores
    /// lines typed while no question is open.
    pub(crate) async fn next_answer(&mut self) -> SessionOp {
        loop {
            let line = match &mut self.reader {
                Some(reader) => reader.next_line().await,
                None => std::future::pending().await,
            };
            let Some((call, mut question)) = self.current.take() else {
                if line.is_none() {
                    // End of input: no more lines will come.
                    self.reader = None;
                }
                continue;
            };
            match question.answer_line(call, line.as_deref()) {
                AnswerLineOutcome::Answered(op) => return op,
                AnswerLineOutcome::AskAgain(text) => {
                    self.print_question(&text);
                    self.current = Some((call, question));
                }
            }
        }
    }

    /// Asks the next question, unless one is open.
    pub(crate) fn ask_next(&mut self) {
        if self.current.is_none()
            && let Some((call, question)) = self.waiting.pop_front()
        {
            self.print_question(&question.text());
            self.current = Some((call, question));
        }
    }

    /// Prints a question and requests a line typed from now on.
    fn print_question(&mut self, text: &str) {
        output::print_question(text);
        self.reader.get_or_insert_with(StdinReader::new).request_line();
    }
}

/// Reads lines on request in a separate thread, so that a missing answer does not keep the process
/// from exiting. There is only one reader, so that an answer cannot reach a question other than the
/// one on the screen.
struct StdinReader {
    requests: std::sync::mpsc::Sender<()>,
    lines: mpsc::Receiver<Option<String>>,
    /// A line was requested and has not arrived.
    is_reading: bool,
}

impl StdinReader {
    #[allow(
        clippy::disallowed_methods,
        reason = "the reader thread may still be waiting for input at exit"
    )]
    fn new() -> StdinReader {
        let (requests, request_receiver) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            while request_receiver.recv().is_ok() {
                let line = output::read_line();
                let is_end = line.is_none();
                if sender.blocking_send(line).is_err() || is_end {
                    return;
                }
            }
        });
        StdinReader { requests, lines, is_reading: false }
    }

    /// Requests a line. Discards lines that arrived earlier, which were meant for something else.
    fn request_line(&mut self) {
        while self.lines.try_recv().is_ok() {
            self.is_reading = false;
        }
        if !self.is_reading {
            // After the end of the input the thread is gone; no line will come then.
            self.is_reading = self.requests.send(()).is_ok();
        }
    }

    async fn next_line(&mut self) -> Option<String> {
        let line = self.lines.recv().await.flatten();
        self.is_reading = false;
        line
    }
}

/// The signals that end the terminal UI in order, with the terminal restored: `SIGTERM` and
/// `SIGHUP`. An interrupt does not: it is meant for a program that has the terminal for a while.
pub(crate) struct ShutdownSignals {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 3],
}

impl ShutdownSignals {
    pub(crate) fn new() -> std::io::Result<ShutdownSignals> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = [
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
                signal(SignalKind::interrupt())?,
            ];
            Ok(ShutdownSignals { signals })
        }
        #[cfg(not(unix))]
        Ok(ShutdownSignals {})
    }

    /// Resolves when a signal asks the terminal UI to end.
    pub(crate) async fn wait(&mut self) {
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

/// The signals that ask a server to stop: `SIGINT` (Ctrl-C), `SIGTERM` and `SIGHUP`.
pub(crate) struct ServerSignals {
    ctrl_c: CtrlC,
    others: ShutdownSignals,
}

impl ServerSignals {
    pub(crate) fn new() -> std::io::Result<ServerSignals> {
        Ok(ServerSignals { ctrl_c: CtrlC::new()?, others: ShutdownSignals::new()? })
    }

    /// Resolves when a signal asks the server to stop.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            () = self.ctrl_c.wait() => {}
            () = self.others.wait() => {}
        }
    }
}

/// The user's Ctrl-C presses. None is lost while other work runs.
pub(crate) struct CtrlC {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
    #[cfg(windows)]
    signal: tokio::signal::windows::CtrlC,
}

impl CtrlC {
    pub(crate) fn new() -> std::io::Result<CtrlC> {
        #[cfg(unix)]
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
        #[cfg(windows)]
        let signal = tokio::signal::windows::ctrl_c()?;
        Ok(CtrlC { signal })
    }

    pub(crate) async fn wait(&mut self) {
        if self.signal.recv().await.is_none() {
            std::future::pending().await
        }
    }
}
