//! System actions of the terminal UI: the user's editor, clipboard, and suspending the process.

use crate::setup::LoadedProject;
use crate::terminal::output;
use std::path::PathBuf;
use std::time::Duration;
use windlass_sandbox::editor_and_clipboard;
use windlass_tui::terminal::{ClipboardImageError, ExternalProcessActions};

/// No provider accepts a larger image.
const MAX_IMAGE_BYTES: u64 = 20 << 20;
const CLIPBOARD_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs the user's own programs (editor, clipboard tools) for [`ExternalProcessActions`].
pub(super) struct UserProgramRunner {
    /// Folder for drafts that are open in an editor.
    pub(super) drafts_folder: PathBuf,
}

impl ExternalProcessActions for UserProgramRunner {
    fn edit_text(&self, text: &str) -> Option<String> {
        let env_value =
            |name| LoadedProject::env_variable(name).filter(|value| !value.trim().is_empty());
        let editor =
            env_value("VISUAL").or_else(|| env_value("EDITOR")).unwrap_or_else(|| "vi".to_owned());
        match editor_and_clipboard::edit_in_editor(&editor, &self.drafts_folder, text) {
            // Editors add a final line break that the user did not type.
            Ok(written) => Some(written.strip_suffix('\n').map(str::to_owned).unwrap_or(written)),
            Err(error) => {
                output::print_note(&format!(
                    "Could not run the editor `{editor}`: {error}. Set VISUAL or EDITOR to \
                     another one."
                ));
                None
            }
        }
    }

    fn clipboard_image(&self) -> Result<Vec<u8>, ClipboardImageError> {
        let is_set =
            |name| LoadedProject::env_variable(name).is_some_and(|value| !value.is_empty());
        let programs: [(bool, &str, &[&str]); 3] = [
            (is_set("WAYLAND_DISPLAY"), "wl-paste", &["--no-newline", "--type", "image/png"]),
            (is_set("DISPLAY"), "xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
            (cfg!(target_os = "macos"), "pngpaste", &["-"]),
        ];
        let (mut program_ran, mut missing) = (false, None);
        for (_, name, arguments) in programs.into_iter().filter(|(is_available, ..)| *is_available)
        {
            match editor_and_clipboard::program_output(
                (name, arguments),
                MAX_IMAGE_BYTES,
                CLIPBOARD_TIMEOUT,
            ) {
                Ok(Some(bytes)) if !bytes.is_empty() => return Ok(bytes),
                Ok(_) => program_ran = true,
                Err(_) => {
                    missing.get_or_insert(name);
                }
            }
        }
        Err(match missing {
            _ if program_ran => {
                ClipboardImageError::NoImage("the clipboard contains no image".to_owned())
            }
            Some(name) => ClipboardImageError::NoProgram(format!(
                "this needs {name}; or paste the path of the image instead"
            )),
            None => ClipboardImageError::NoProgram(
                "no clipboard available; paste the path of the image instead".to_owned(),
            ),
        })
    }

    fn watch_terminal(
        &self,
        sequences: &str,
        line_settings: &str,
    ) -> Option<Box<dyn std::io::Write + Send>> {
        // Without the process, only `SIGKILL` leaves the terminal changed.
        let pipe =
            windlass_sandbox::terminal_watch::watch_terminal(sequences, line_settings).ok()?;
        Some(Box::new(pipe))
    }

    fn suspend_process(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Signal, kill_current_process_group};
            // If suspending fails, the UI just continues.
            let _ = kill_current_process_group(Signal::TSTP);
        }
    }
}
