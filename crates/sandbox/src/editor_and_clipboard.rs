//! Programs that the user starts: the editor, and programs that read the clipboard.
//!
//! They run as if the user had typed them in a shell, so there is no sandbox and no approval. The
//! model influences neither the choice of the program nor its input. The edited text is in a file
//! that only the user can read, and the file is removed afterwards.
#![allow(clippy::disallowed_methods, reason = "starts the user's own programs")]

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Bounds the edited text; a text written by hand is never longer.
const MAX_TEXT_BYTES: u64 = 4 << 20;

/// Lets the user edit `text` in an editor and returns the result. `editor` is a shell command line
/// such as `code --wait`. The editor owns the terminal while it runs. Creates `folder` if it does
/// not exist.
pub fn edit_in_editor(editor: &str, folder: &Path, text: &str) -> std::io::Result<String> {
    let draft = EditorTempFile::new(folder, text)?;
    let mut command = editor_command(editor);
    command.arg(&draft.path);
    let status = command.status()?;
    if !status.success() {
        return Err(Error::other(format!("the editor failed ({status})")));
    }
    let mut written = String::new();
    File::open(&draft.path)?.take(MAX_TEXT_BYTES + 1).read_to_string(&mut written)?;
    if written.len() as u64 > MAX_TEXT_BYTES {
        return Err(Error::new(ErrorKind::FileTooLarge, "the text is too long"));
    }
    Ok(written)
}

/// Returns the standard output of a program, or `None` if it exceeds `max_bytes` bytes, fails, or
/// does not end within `time_limit`. The program gets the user's environment and no terminal.
pub fn program_output(
    (name, arguments): (&str, &[&str]),
    max_bytes: u64,
    time_limit: Duration,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut command = Command::new(name);
    command.args(arguments);
    run_with_input(command, &[], max_bytes, time_limit)
}

/// Returns the standard output of a shell command line of the user, which reads `input`; see
/// [`program_output`].
pub fn shell_output(
    command_line: &str,
    input: &[u8],
    max_bytes: u64,
    time_limit: Duration,
) -> std::io::Result<Option<Vec<u8>>> {
    let (shell, option) = if cfg!(unix) { ("sh", "-c") } else { ("cmd", "/C") };
    let mut command = Command::new(shell);
    command.args([option, command_line]);
    run_with_input(command, input, max_bytes, time_limit)
}

fn run_with_input(
    mut command: Command,
    input: &[u8],
    max_bytes: u64,
    time_limit: Duration,
) -> std::io::Result<Option<Vec<u8>>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = KillOnDropChild(command.spawn()?);
    if let Some(mut stdin) = child.0.stdin.take() {
        // The input fits into the buffer of the pipe. A program that does not read it may end first.
        let _ = stdin.write_all(input);
    }
    let Some(stdout) = child.0.stdout.take() else { return Ok(None) };
    let (sender, receiver) = mpsc::channel();
    let read_output = move || {
        let mut bytes = Vec::new();
        let result = stdout.take(max_bytes + 1).read_to_end(&mut bytes);
        // The receiver is gone if the wait timed out.
        let _ = sender.send(result.map(|_| bytes));
    };
    thread::Builder::new().spawn(read_output)?;
    let Ok(bytes) = receiver.recv_timeout(time_limit) else { return Ok(None) };
    let bytes = bytes?;
    let succeeded = child.0.wait()?.success();
    Ok((succeeded && bytes.len() as u64 <= max_bytes).then_some(bytes))
}

/// Builds the command through `sh`, because `editor` may contain arguments with shell quoting.
#[cfg(unix)]
fn editor_command(editor: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), editor]);
    command
}

#[cfg(not(unix))]
fn editor_command(editor: &str) -> Command {
    let mut arguments = editor.split_whitespace();
    let mut command = Command::new(arguments.next().unwrap_or(editor));
    command.args(arguments);
    command
}

/// A temporary file with the text to edit, removed on drop.
struct EditorTempFile {
    path: PathBuf,
}

impl EditorTempFile {
    fn new(folder: &Path, text: &str) -> std::io::Result<EditorTempFile> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let path = folder.join(format!("prompt-{}.md", std::process::id()));
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        // A killed process with the same pid may have left its file behind.
        let _ = std::fs::remove_file(&path);
        let mut file = options.open(&path)?;
        let draft = EditorTempFile { path };
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for EditorTempFile {
    fn drop(&mut self) {
        // The user may have removed the file already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A child process that is killed and reaped on drop.
struct KillOnDropChild(Child);

impl Drop for KillOnDropChild {
    fn drop(&mut self) {
        // `kill` and `wait` fail only if the child has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn count_entries(folder: &Path) -> usize {
        folder.read_dir().map_or(usize::MAX, Iterator::count)
    }

    #[test]
    fn the_edited_text_is_returned_and_no_file_remains() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a b/drafts");
        let editor = "f() { stat -c %a \"$1\" >> \"$1\"; }; f";
        let written = edit_in_editor(editor, &inner, "one\n").unwrap();
        assert_eq!(written, "one\n600\n", "only the owner can read the file");
        assert_eq!(count_entries(&inner), 0);
    }

    #[test]
    fn a_failing_or_missing_editor_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(edit_in_editor("false", folder.path(), "x").is_err());
        assert!(edit_in_editor("no-such-editor-anywhere", folder.path(), "x").is_err());
        assert_eq!(count_entries(folder.path()), 0);
    }

    #[test]
    fn a_shell_command_line_reads_its_input() {
        let output = shell_output("read x; echo got $x", b"this", 100, Duration::from_secs(5));
        assert_eq!(output.unwrap().as_deref(), Some(b"got this\n".as_slice()));
        let ignores_input = shell_output("echo hi", b"this", 100, Duration::from_secs(5));
        assert_eq!(ignores_input.unwrap().as_deref(), Some(b"hi\n".as_slice()));
        let slow = shell_output("sleep 9", b"", 100, Duration::from_millis(50));
        assert_eq!(slow.unwrap(), None);
    }

    #[test]
    fn a_slow_verbose_or_failing_program_returns_nothing() {
        let long_limit = Duration::from_secs(10);
        let output_of =
            |name, arguments: &[&str], time_limit| program_output((name, arguments), 3, time_limit);
        assert_eq!(
            output_of("printf", &["abc"], long_limit).unwrap().as_deref(),
            Some(&b"abc"[..])
        );
        assert_eq!(
            output_of("printf", &["abcd"], long_limit).unwrap(),
            None,
            "the output is too long"
        );
        assert_eq!(output_of("sh", &["-c", "printf a; exit 1"], long_limit).unwrap(), None);
        assert_eq!(output_of("sleep", &["30"], Duration::from_millis(50)).unwrap(), None);
        let missing = output_of("no-such-program-anywhere", &[], long_limit).unwrap_err();
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    }
}
