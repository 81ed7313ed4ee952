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
use std::time::{Duration, Instant};

/// Time between two checks for the exit of a program that has closed its output.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(2);
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
/// does not end within `time_limit`. The program gets the user's environment and no terminal. The
/// processes that it started are killed when it ends or the time is over.
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
    let deadline = Instant::now() + time_limit;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = ChildGroup(command.spawn()?);
    if let Some(mut stdin) = child.0.stdin.take() {
        let input = input.to_owned();
        // Both threads end with the processes of the group, which hold the other ends of the pipes.
        thread::Builder::new().spawn(move || {
            // A program that does not read its input may end first.
            let _ = stdin.write_all(&input);
        })?;
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
    let succeeded = child.wait_until(deadline)?;
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

/// A child process that leads its own process group. On drop, the group is killed and the child is
/// reaped.
struct ChildGroup(Child);

impl ChildGroup {
    /// Waits for the child and returns true if it succeeded; false if it failed or runs longer.
    fn wait_until(&mut self, deadline: Instant) -> std::io::Result<bool> {
        loop {
            if self.has_exited()? {
                // Until the child is reaped, its group ID belongs to no other process.
                self.kill();
                return Ok(self.0.wait()?.success());
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            // The child has closed its output, so it is about to exit.
            thread::sleep(EXIT_POLL_INTERVAL);
        }
    }

    /// Returns true if the child has exited, without reaping it.
    #[cfg(unix)]
    fn has_exited(&mut self) -> std::io::Result<bool> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(Pid::from_child(&self.0)), options)?.is_some())
    }

    #[cfg(not(unix))]
    fn has_exited(&mut self) -> std::io::Result<bool> {
        Ok(self.0.try_wait()?.is_some())
    }

    fn kill(&mut self) {
        // It fails only if no process is left.
        #[cfg(unix)]
        let _ = {
            use rustix::process::{Pid, Signal, kill_process_group};
            kill_process_group(Pid::from_child(&self.0), Signal::KILL)
        };
        #[cfg(not(unix))]
        let _ = self.0.kill();
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        // A child that was reaped already may have left its ID to another process.
        if self.has_exited().is_ok() {
            self.kill();
            let _ = self.0.wait();
        }
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

    /// Returns true while a process runs; one that was killed and not reaped yet does not.
    fn is_running(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn no_process_of_a_command_survives_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let name = file.display();
        let cases = [
            // It waits for its child, with the output open.
            (format!("sleep 1000 & echo $! > {name}; wait"), false),
            // It closes its output and never ends.
            (format!("exec >&-; sleep 1000 & echo $! > {name}; wait"), false),
            // It ends, and its child goes on with the output closed.
            (format!("sleep 1000 >/dev/null & echo $! > {name}; echo over"), true),
        ];
        for (command, succeeds) in cases {
            let limit = Duration::from_millis(if succeeds { 9_000 } else { 400 });
            let started_at = Instant::now();
            let output = shell_output(&command, b"{}", 100, limit).unwrap();
            assert_eq!(output.is_some(), succeeds, "{command}");
            assert!(started_at.elapsed() < Duration::from_secs(8), "{command}");
            let pid = std::fs::read_to_string(&file).unwrap();
            let is_gone = || {
                thread::sleep(Duration::from_millis(10));
                !is_running(pid.trim())
            };
            assert!((0..300).any(|_| is_gone()), "{command}: its child still runs");
        }
    }

    #[test]
    fn input_that_is_not_read_does_not_block() {
        let input = vec![b'x'; 1 << 20];
        let output = shell_output("echo hi", &input, 100, Duration::from_secs(9));
        assert_eq!(output.unwrap().as_deref(), Some(b"hi\n".as_slice()));
        let slow = shell_output("sleep 9", &input, 100, Duration::from_millis(50));
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
