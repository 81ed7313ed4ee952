//! The terminal modes: raw mode, the alternate screen, and the reports of `TerminalFeatures`.
//!
//! It keeps the invariant that every mode that was switched on is switched off again when another
//! program gets the terminal, however that happens. A panic calls `restore`; after `SIGKILL` a
//! process outside does it, which learns through a pipe whether the modes are on.

use super::features::{NotificationMethod, TerminalFeatures};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::style::Print;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{Command as _, cursor, execute};
use std::io::{Write, stdout};
use std::sync::Mutex;

/// The pipe to the process that restores the terminal after `SIGKILL`.
type WatchPipe = Box<dyn Write + Send>;

/// The modes of this process, also for the panic hook.
static MODES: Mutex<TerminalModes> = Mutex::new(TerminalModes { features: None, watch: None });

struct TerminalModes {
    /// The features to switch on and off; `None` before the first `set_up`.
    features: Option<TerminalFeatures>,
    watch: Option<WatchPipe>,
}

/// Returns the sequences that switch the reports on. No sequence asks for an answer.
fn enable_reports(features: &TerminalFeatures) -> String {
    let mut sequences = String::new();
    if features.reports {
        // Focus reports; the kitty protocol with unambiguous keys.
        sequences += "\x1b[?1004h\x1b[>1u";
    }
    if features.modify_other_keys {
        // Level 1 keeps Ctrl+C and the like as they are. The second sequence asks for the format
        // `CSI … u`, the only one that crossterm parses.
        sequences += "\x1b[>4;1m\x1b[>4;1f";
    }
    if features.mouse {
        // Presses and the wheel, in the SGR format; no motion.
        sequences += "\x1b[?1000h\x1b[?1006h";
    }
    if features.notification != NotificationMethod::Off {
        // Saves the title.
        sequences += "\x1b[22;0t";
    }
    sequences
}

/// Returns the sequences that undo `enable_reports`.
fn disable_reports(features: &TerminalFeatures) -> String {
    let mut sequences = String::new();
    if features.progress {
        sequences += super::notification::progress_sequence(false);
    }
    if features.notification != NotificationMethod::Off {
        sequences += "\x1b[23;0t";
    }
    if features.mouse {
        sequences += "\x1b[?1006l\x1b[?1000l";
    }
    if features.modify_other_keys {
        sequences += "\x1b[>4f\x1b[>4m";
    }
    if features.reports {
        sequences += "\x1b[<1u\x1b[?1004l";
    }
    sequences
}

/// Returns all sequences of `restore`, for the process that restores the terminal after `SIGKILL`.
pub(super) fn restore_sequences(features: &TerminalFeatures) -> String {
    let mut sequences = disable_reports(features);
    // Writing to a string cannot fail.
    let _ = DisableBracketedPaste.write_ansi(&mut sequences);
    let _ = LeaveAlternateScreen.write_ansi(&mut sequences);
    let _ = cursor::Show.write_ansi(&mut sequences);
    sequences
}

/// Returns the names in `stty` of those line settings that raw mode switches off.
#[cfg(unix)]
pub(super) fn line_settings() -> String {
    use rustix::termios::{InputModes, LocalModes, OutputModes, tcgetattr};
    let Ok(settings) = tcgetattr(std::io::stdin()) else { return String::new() };
    let names = [
        (settings.input_modes.contains(InputModes::BRKINT), "brkint"),
        (settings.input_modes.contains(InputModes::ICRNL), "icrnl"),
        (settings.input_modes.contains(InputModes::IXON), "ixon"),
        (settings.output_modes.contains(OutputModes::OPOST), "opost"),
        (settings.local_modes.contains(LocalModes::ISIG), "isig"),
        (settings.local_modes.contains(LocalModes::ICANON), "icanon"),
        (settings.local_modes.contains(LocalModes::IEXTEN), "iexten"),
        (settings.local_modes.contains(LocalModes::ECHO), "echo"),
    ];
    names.iter().filter(|(is_on, _)| *is_on).map(|(_, name)| *name).collect::<Vec<_>>().join(" ")
}

#[cfg(not(unix))]
pub(super) fn line_settings() -> String {
    String::new()
}

/// Switches the modes on.
pub(super) fn set_up(features: TerminalFeatures) -> std::io::Result<()> {
    if let Ok(mut modes) = MODES.try_lock() {
        modes.features = Some(features);
        modes.report("on");
    }
    crossterm::terminal::enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Print(enable_reports(&features)))
}

/// Switches the modes off.
pub(super) fn restore() {
    // The lock is taken only if a panic happened while it was held.
    let mut modes = MODES.try_lock().ok();
    let features = modes.as_ref().and_then(|modes| modes.features).unwrap_or_default();
    // There is nowhere left to report a failure.
    let _ = execute!(
        stdout(),
        Print(disable_reports(&features)),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = crossterm::terminal::disable_raw_mode();
    if let Some(modes) = &mut modes {
        modes.report("off");
    }
}

/// Sets the pipe to the process that restores the terminal after `SIGKILL`.
pub(super) fn set_watch(watch: Option<WatchPipe>) {
    if let Ok(mut modes) = MODES.try_lock() {
        modes.watch = watch;
        modes.report("on");
    }
}

impl TerminalModes {
    /// Tells the process outside whether the modes are on.
    fn report(&mut self, state: &str) {
        if let Some(watch) = &mut self.watch {
            // Without that process, only `SIGKILL` leaves the modes on.
            let _ = writeln!(watch, "{state}").and_then(|()| watch.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_switched_off_again() {
        let all = TerminalFeatures {
            mouse: true,
            reports: true,
            modify_other_keys: true,
            notification: NotificationMethod::Bell,
            progress: true,
        };
        let (on, off) = (enable_reports(&all), restore_sequences(&all));
        for mode in ["1004", "1000", "1006"] {
            assert!(on.contains(&format!("\x1b[?{mode}h")), "{mode}");
            assert!(off.contains(&format!("\x1b[?{mode}l")), "{mode}");
        }
        for (enabled, disabled) in [("[>1u", "[<1u"), ("[>4;1m", "[>4m"), ("[22;0t", "[23;0t")] {
            assert!(on.contains(enabled) && off.contains(disabled), "{enabled}");
        }
        // The kitty flags belong to the alternate screen.
        assert!(off.find("[<1u") < off.find("[?1049l"));
        assert!(off.contains("\x1b[?2004l") && off.contains("\x1b[?25h"));
        let none = TerminalFeatures::default();
        assert_eq!(enable_reports(&none), "");
        assert!(!restore_sequences(&none).contains("[<1u"));
    }
}
