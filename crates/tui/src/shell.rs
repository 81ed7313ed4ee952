//! The shell around the screen: the only part that touches the terminal and the clock.
//!
//! It draws when something happened and not otherwise, at most once in [`FRAME`]; and whatever ends
//! it, a panic too, the terminal is left as it was found.
#![allow(clippy::disallowed_methods, reason = "this is the door to the terminal")]

mod ear;

use crate::app::{App, Input, Options};
use crate::cx::Act;
use crate::theme::Depth;
use base64::Engine as _;
use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, EventStream, KeyCode, KeyEvent,
    KeyModifiers,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue};
use ear::Ear;
use futures_util::StreamExt as _;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{Stdout, Write as _, stdout};
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use windlass_protocol::wire::{Down, Up};

/// The least time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// So many arrows at once are a wheel: nobody types that fast.
const WHEEL: usize = 3;
/// Whoever leaves so soon after the start that the terminal may still answer waits for it: in the
/// shell it would be typed.
const ANSWER: Duration = Duration::from_secs(1);

/// What the shell has others do, because processes are not started here.
pub trait Hands {
    /// Has the person write a text in their editor; the terminal is theirs meanwhile.
    fn edit(&self, text: &str) -> Option<String>;
    /// The picture in the clipboard, or why there is none and what to do instead.
    fn picture(&self) -> Result<Vec<u8>, String>;
    /// Stops this process until it is told to go on.
    fn suspend(&self);
}

/// Runs the screen until the person leaves.
pub async fn run(
    options: Options,
    up: mpsc::Sender<Up>,
    mut down: mpsc::Receiver<Down>,
    hands: &dyn Hands,
) -> std::io::Result<()> {
    let began = Instant::now();
    // Since 1970, for ages; but never backwards, whatever is done to the clock meanwhile.
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = || (start + began.elapsed()).as_millis() as u64;
    let mut shell = Shell::enter()?;
    if options.look.theme.depth > Depth::None {
        shell.ask()?;
    }
    let (mut app, acts) = App::new(options, now());
    let mut typed = Some(EventStream::new());
    let mut drawn = None;
    let mut stays = shell.carry_out(acts, &up, hands, &mut app, &mut typed, now()).await?;
    let mut stale = true;
    while stays {
        if stale && drawn.is_none_or(|at: Instant| at.elapsed() >= FRAME) {
            shell.draw(&mut app)?;
            (drawn, stale) = (Some(Instant::now()), false);
        }
        let wakes = [app.wakes(), shell.ear.wakes()].into_iter().flatten().min();
        let sleep = match (stale, drawn, wakes) {
            (true, Some(at), _) => FRAME.saturating_sub(at.elapsed()),
            (_, _, Some(wakes)) => Duration::from_millis(wakes.saturating_sub(now())),
            (_, _, None) => Duration::from_secs(3600),
        };
        let stream = typed.get_or_insert_with(EventStream::new);
        let mut inputs = Vec::new();
        tokio::select! {
            biased;
            event = read(stream) => match event {
                Some(Ok(event)) => {
                    let mut events = vec![event];
                    while let Some(Ok(event)) = at_once(stream).await {
                        events.push(event);
                    }
                    // A terminal that is as large as before may have been smaller meanwhile.
                    shell.anew |= events.iter().any(|event| matches!(event, Event::Resize(..)));
                    let (typed, ground) = shell.ear.sift(events, now());
                    inputs = meant(typed);
                    inputs.extend(ground.map(Input::Ground));
                    // What was typed is seen at once.
                    (drawn, stale) = (None, stale || shell.anew);
                }
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            message = down.recv() => match message {
                Some(message) => inputs.push(Input::Down(Box::new(message))),
                None => return Ok(()),
            },
            () = tokio::time::sleep(sleep) => {
                inputs = meant(shell.ear.give_up(now()));
                if !stale {
                    inputs.push(Input::Tick);
                }
            }
        }
        while inputs.len() < 256
            && let Ok(message) = down.try_recv()
        {
            inputs.push(Input::Down(Box::new(message)));
        }
        for input in inputs {
            stale = true;
            let acts = app.update(input, now());
            stays &= shell.carry_out(acts, &up, hands, &mut app, &mut typed, now()).await?;
        }
    }
    shell.hear_out(&mut typed).await;
    Ok(())
}

/// The next event; none when the terminal is gone. That is looked at before anything is read: it
/// reads as an end that never ends, and crossterm would read on for good.
///
/// crossterm is told once of what was typed, and forgets it where a new size was told with it, or
/// where more came than it reads at a time; the keys would wait for the next one. So if there is
/// something to read and it has no event, it is told again.
async fn read(stream: &mut EventStream) -> Option<std::io::Result<Event>> {
    std::future::poll_fn(|cx| {
        let line = Line::look();
        if line == Line::Gone {
            return Poll::Ready(None);
        }
        let event = stream.poll_next_unpin(cx);
        if event.is_pending() && line == Line::Typed {
            tell_again();
        }
        event
    })
    .await
}

/// What there is to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Quiet,
    Typed,
    /// Nothing will ever be typed again.
    Gone,
}

impl Line {
    #[cfg(unix)]
    fn look() -> Line {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let stdin = std::io::stdin();
        let mut look = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if rustix::event::poll(&mut look, Some(&at_once)).is_err() {
            return Line::Quiet;
        }
        let seen = look[0].revents();
        if seen.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
            Line::Gone
        } else if seen.contains(PollFlags::IN) {
            Line::Typed
        } else {
            Line::Quiet
        }
    }

    #[cfg(not(unix))]
    fn look() -> Line {
        Line::Quiet
    }
}

/// Has whoever waits for the terminal look at it: Linux wakes them whenever its settings are set, to
/// what they are, too.
#[cfg(unix)]
fn tell_again() {
    use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    // If it cannot be set, the next key tells it.
    let _ = tcgetattr(&stdin).and_then(|now| tcsetattr(&stdin, OptionalActions::Now, &now));
}

#[cfg(not(unix))]
fn tell_again() {}

/// An event that is there already. The stream keeps whoever asks it last as the one to wake, so it
/// is asked in our name; one that asks for nobody would leave us asleep at the next key.
async fn at_once(stream: &mut EventStream) -> Option<std::io::Result<Event>> {
    std::future::poll_fn(|cx| match stream.poll_next_unpin(cx) {
        Poll::Ready(event) => Poll::Ready(event),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// What events mean: many arrows at once are the wheel, where the terminal makes arrows of it.
fn meant(events: Vec<Event>) -> Vec<Input> {
    let arrow = |event: &Event| match event {
        Event::Key(KeyEvent { code: KeyCode::Up, modifiers: KeyModifiers::NONE, .. }) => Some(-1),
        Event::Key(KeyEvent { code: KeyCode::Down, modifiers: KeyModifiers::NONE, .. }) => Some(1),
        _ => None,
    };
    let turned: Vec<i32> = events.iter().filter_map(arrow).collect();
    if turned.len() >= WHEEL && turned.len() == events.len() {
        return vec![Input::Wheel(turned.into_iter().sum())];
    }
    let meaning = |event| match event {
        Event::Key(key) => Some(Input::Key(key)),
        Event::Paste(text) => Some(Input::Paste(text)),
        Event::Resize(..) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    };
    events.into_iter().filter_map(meaning).collect()
}

/// The terminal while it is ours.
struct Shell {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    ear: Ear,
    asked: Instant,
    /// Nothing that was drawn can be relied on.
    anew: bool,
}

impl Shell {
    fn enter() -> std::io::Result<Shell> {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            usual(panic);
        }));
        take()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(Shell { terminal, ear: Ear::default(), asked: Instant::now(), anew: false })
    }

    /// Asks the terminal for its ground. The answer comes among the keys, when it comes.
    #[cfg(unix)]
    fn ask(&mut self) -> std::io::Result<()> {
        self.ear = Ear::Open;
        execute!(stdout(), crossterm::style::Print(ear::QUESTION))
    }

    /// Elsewhere keys do not come as bytes, and nobody has tried what becomes of answers.
    #[cfg(not(unix))]
    fn ask(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Waits for an answer that may still come, before the terminal is another's.
    async fn hear_out(&mut self, typed: &mut Option<EventStream>) {
        let left = ANSWER.saturating_sub(self.asked.elapsed());
        if left.is_zero() {
            return;
        }
        let stream = typed.get_or_insert_with(EventStream::new);
        let answer = async {
            while self.ear.listens()
                && let Some(Ok(event)) = read(stream).await
            {
                self.ear.sift(vec![event], 0);
            }
        };
        // Whether it came or not is all the same now.
        let _ = tokio::time::timeout(left, answer).await;
    }

    fn draw(&mut self, app: &mut App) -> std::io::Result<()> {
        queue!(stdout(), BeginSynchronizedUpdate)?;
        if std::mem::take(&mut self.anew) {
            // Not `clear`: that asks the terminal where its cursor is, and waits for the answer.
            self.terminal.resize(self.terminal.size()?.into())?;
        }
        self.terminal.draw(|frame| {
            if let Some(cursor) = app.draw(frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        })?;
        execute!(stdout(), EndSynchronizedUpdate)
    }

    /// Does what the screen cannot; false when it is over.
    async fn carry_out(
        &mut self,
        acts: Vec<Act>,
        up: &mpsc::Sender<Up>,
        hands: &dyn Hands,
        app: &mut App,
        typed: &mut Option<EventStream>,
        now: u64,
    ) -> std::io::Result<bool> {
        let mut acts = std::collections::VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Send(message) => {
                    if up.send(*message).await.is_err() {
                        return Ok(false);
                    }
                }
                Act::Quit => return Ok(false),
                Act::Copy(text) => {
                    let text = base64::engine::general_purpose::STANDARD.encode(text);
                    let mut out = stdout().lock();
                    write!(out, "\x1b]52;c;{text}\x07")?;
                    out.flush()?;
                }
                Act::Edit(text) => {
                    self.hear_out(typed).await;
                    *typed = None;
                    leave();
                    let written = hands.edit(&text);
                    take()?;
                    self.anew = true;
                    acts.extend(app.update(Input::Written(written), now));
                }
                Act::Picture => acts.extend(app.update(Input::Picture(hands.picture()), now)),
                Act::Bell => execute!(stdout(), crossterm::style::Print('\x07'))?,
                Act::Redraw => self.anew = true,
                Act::Suspend => {
                    self.hear_out(typed).await;
                    *typed = None;
                    leave();
                    hands.suspend();
                    take()?;
                    self.anew = true;
                }
            }
        }
        Ok(true)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        leave();
    }
}

fn take() -> std::io::Result<()> {
    crossterm::terminal::enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
}

fn leave() {
    // There is nobody left to tell if this fails.
    let _ =
        execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = crossterm::terminal::disable_raw_mode();
}
