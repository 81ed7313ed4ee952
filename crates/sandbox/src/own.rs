//! Programs that a person starts themself: their editor, and whatever reads their clipboard.
//!
//! It is as if they had typed it at their own shell, so there is no sandbox and nothing to permit; no
//! model has a say in which program it is or in what it is given. What they write lies in a file that
//! only they can read, and is gone afterwards.
#![allow(clippy::disallowed_methods, reason = "a person's own programs are started here")]

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Nobody writes a longer text by hand.
const LONGEST: u64 = 4 << 20;

/// Has the person write a text in their editor, a line for the shell such as `code --wait`, and gives
/// back what it is then. The terminal is the editor's meanwhile. The folder is made if it is not there.
pub fn edit(editor: &str, folder: &Path, text: &str) -> std::io::Result<String> {
    let draft = Draft::new(folder, text)?;
    let mut command = line(editor);
    command.arg(&draft.path);
    let status = command.status()?;
    if !status.success() {
        return Err(Error::other(format!("the editor ended with {status}")));
    }
    let mut written = String::new();
    File::open(&draft.path)?.take(LONGEST + 1).read_to_string(&mut written)?;
    if written.len() as u64 > LONGEST {
        return Err(Error::new(ErrorKind::FileTooLarge, "the text is too long"));
    }
    Ok(written)
}

/// What a program of the person's writes to its standard output, up to so many bytes; nothing unless it
/// ends well in time. It sees the person's environment, and no terminal.
pub fn output(
    (name, arguments): (&str, &[&str]),
    longest: u64,
    patience: Duration,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut command = Command::new(name);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Ended(command.spawn()?);
    let Some(out) = child.0.stdout.take() else { return Ok(None) };
    let (tell, told) = mpsc::channel();
    let read = move || {
        let mut bytes = Vec::new();
        let read = out.take(longest + 1).read_to_end(&mut bytes);
        // Whoever waited too long does not hear it.
        let _ = tell.send(read.map(|_| bytes));
    };
    thread::Builder::new().spawn(read)?;
    let Ok(bytes) = told.recv_timeout(patience) else { return Ok(None) };
    let bytes = bytes?;
    let well = child.0.wait()?.success();
    Ok((well && bytes.len() as u64 <= longest).then_some(bytes))
}

/// The editor may be a program with arguments, quoted as a shell wants it.
#[cfg(unix)]
fn line(editor: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$@\""), editor]);
    command
}

#[cfg(not(unix))]
fn line(editor: &str) -> Command {
    let mut words = editor.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or(editor));
    command.args(words);
    command
}

/// A text in a file, until it is dropped.
struct Draft {
    path: PathBuf,
}

impl Draft {
    fn new(folder: &Path, text: &str) -> std::io::Result<Draft> {
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
        // One that a process of this number left behind when it was killed.
        let _ = std::fs::remove_file(&path);
        let mut file = options.open(&path)?;
        let draft = Draft { path };
        file.write_all(text.as_bytes())?;
        Ok(draft)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // The person may have removed it themself.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A child that does not outlive its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn left(folder: &Path) -> usize {
        folder.read_dir().map_or(usize::MAX, Iterator::count)
    }

    #[test]
    fn what_is_written_comes_back_and_no_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a b/drafts");
        let editor = "f() { stat -c %a \"$1\" >> \"$1\"; }; f";
        let written = edit(editor, &inner, "one\n").unwrap();
        assert_eq!(written, "one\n600\n", "only its owner can read it");
        assert_eq!(left(&inner), 0);
    }

    #[test]
    fn an_editor_that_fails_or_is_not_there_gives_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(edit("false", folder.path(), "x").is_err());
        assert!(edit("no-such-editor-anywhere", folder.path(), "x").is_err());
        assert_eq!(left(folder.path()), 0);
    }

    #[test]
    fn a_program_that_is_slow_loud_or_unwell_gives_nothing() {
        let second = Duration::from_secs(10);
        let of = |name, arguments: &[&str], patience| output((name, arguments), 3, patience);
        assert_eq!(of("printf", &["abc"], second).unwrap().as_deref(), Some(&b"abc"[..]));
        assert_eq!(of("printf", &["abcd"], second).unwrap(), None, "too long");
        assert_eq!(of("sh", &["-c", "printf a; exit 1"], second).unwrap(), None);
        assert_eq!(of("sleep", &["30"], Duration::from_millis(50)).unwrap(), None);
        let missing = of("no-such-program-anywhere", &[], second).unwrap_err();
        assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    }
}
