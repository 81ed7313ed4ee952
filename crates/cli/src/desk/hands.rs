//! What the screen has others do: the person's editor, their clipboard, a stop.

use crate::screen;
use crate::setup::Setup;
use std::path::PathBuf;
use std::time::Duration;
use windlass_sandbox::own;
use windlass_tui::shell::Hands;

/// No provider takes a larger picture.
const LONGEST: u64 = 20 << 20;
/// How long a clipboard may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The person's own programs.
pub(super) struct Own {
    /// Where a text lies while it is written.
    pub(super) drafts: PathBuf,
}

impl Hands for Own {
    fn edit(&self, text: &str) -> Option<String> {
        let set = |name| Setup::env(name).filter(|value| !value.trim().is_empty());
        let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        match own::edit(&editor, &self.drafts, text) {
            // An editor ends every text with a line's end; nobody typed it.
            Ok(written) => Some(written.strip_suffix('\n').map(str::to_owned).unwrap_or(written)),
            Err(error) => {
                screen::note(&format!(
                    "{editor} was of no use: {error}. Set VISUAL or EDITOR to the one you like"
                ));
                None
            }
        }
    }

    fn picture(&self) -> Result<Vec<u8>, String> {
        let set = |name| Setup::env(name).is_some_and(|value| !value.is_empty());
        let programs: [(bool, &str, &[&str]); 3] = [
            (set("WAYLAND_DISPLAY"), "wl-paste", &["--no-newline", "--type", "image/png"]),
            (set("DISPLAY"), "xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
            (cfg!(target_os = "macos"), "pngpaste", &["-"]),
        ];
        let mut why = None;
        for (_, name, arguments) in programs.into_iter().filter(|(here, ..)| *here) {
            match own::output((name, arguments), LONGEST, PATIENCE) {
                Ok(Some(bytes)) if !bytes.is_empty() => return Ok(bytes),
                Ok(_) => why = Some("there is no picture in the clipboard".to_owned()),
                Err(_) => {
                    let needs = format!("this needs {name}; or write @ and the picture's path");
                    why.get_or_insert(needs);
                }
            }
        }
        let nowhere = || "no clipboard is in reach; write @ and the picture's path".to_owned();
        Err(why.unwrap_or_else(nowhere))
    }

    fn suspend(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, kill_current_process_group};
            // If it fails, the person goes on where they are.
            let _ = kill_current_process_group(Signal::TSTP);
        }
    }
}
