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

    fn picture(&self) -> Option<Vec<u8>> {
        let set = |name| Setup::env(name).is_some_and(|value| !value.is_empty());
        let programs: [(bool, &[&str]); 3] = [
            (set("WAYLAND_DISPLAY"), &["wl-paste", "--no-newline", "--type", "image/png"]),
            (set("DISPLAY"), &["xclip", "-selection", "clipboard", "-t", "image/png", "-o"]),
            (cfg!(target_os = "macos"), &["pngpaste", "-"]),
        ];
        let here = programs.into_iter().filter(|(here, _)| *here);
        let mut given = here.filter_map(|(_, line)| own::output(line, LONGEST, PATIENCE));
        given.find(|bytes| !bytes.is_empty())
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
