//! One run of a formatter: bytes in, bytes out, within its bounds.
//!
//! It can neither change the project nor reach the network, and it has ended when this returns. If
//! nobody waits for it any more, it is ended.

use std::ffi::OsString;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_sandbox::{Exit, Hold, Hosts, Keep, Servant};
use windlass_toolkit::Berth;

/// What a formatter may write besides twice what it read.
const SPARE: usize = 64 << 10;

/// How many lines of its complaints are told, and how long they may be.
const LINES: usize = 3;
const LINE: usize = 300;

/// How a formatter is started.
pub(super) struct Run<'a> {
    pub(super) berth: &'a Berth,
    pub(super) servant: Servant,
    pub(super) limit: Duration,
}

/// Why there is nothing that a formatter made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It does not like what it read, as far as anybody knows.
    Refused(String),
    /// It did something that no formatter does.
    Odd(String),
    /// It was not started.
    Absent(String),
}

/// A formatter as a servant that looks at the project and nothing else.
pub(super) fn servant(
    name: &str,
    program: std::path::PathBuf,
    folder: std::path::PathBuf,
) -> Servant {
    Servant {
        name: format!("format/{name}"),
        program,
        arguments: Vec::new(),
        folder,
        env: Vec::<(OsString, OsString)>::new(),
        keep: Keep {
            workspace: Hold::Read,
            write: Vec::new(),
            network: Hosts::none(),
            walls: None,
        },
    }
}

impl Run<'_> {
    /// What it makes of a text.
    pub(super) async fn over(self, input: &str) -> Result<String, Fault> {
        let Run { berth, servant, limit } = self;
        let engaged = berth.engage(servant).await;
        let engaged = engaged.map_err(|failure| Fault::Absent(failure.text))?;
        let (mut pipe, output, held) = engaged.split();
        let most = input.len().saturating_mul(2).saturating_add(SPARE);
        let talk = async {
            let write = async {
                // One that does not read all of it has its reasons, and its exit tells of them.
                let _ = pipe.write_all(input.as_bytes()).await;
                let _ = pipe.shutdown().await;
                drop(pipe);
            };
            let mut made = Vec::new();
            let mut output = output.take(most as u64 + 1);
            let ((), read) = tokio::join!(write, output.read_to_end(&mut made));
            // What writes more than fits is not waited for.
            let fits = read.is_ok_and(|read| read <= most);
            let exit = if fits { Some(held.ended().await.exit) } else { None };
            exit.map(|exit| (exit, made))
        };
        let talked = tokio::time::timeout(limit, talk).await;
        if !matches!(talked, Ok(Some(_))) {
            held.end(Duration::ZERO).await;
        }
        let (exit, made) = match talked {
            Ok(Some(ended)) => ended,
            Ok(None) => return Err(Fault::Odd("wrote far more than it read".to_owned())),
            Err(_) => {
                let limit = limit.as_secs_f64();
                return Err(Fault::Odd(format!("took longer than {limit} s")));
            }
        };
        match exit {
            Exit::Code(0) => sound(made, input),
            // What shells and `env` say where a program is missing.
            Exit::Code(code @ (126 | 127)) => {
                let why = complaint(&held.complaint(), code);
                Err(Fault::Odd(format!("could not be run ({why})")))
            }
            Exit::Code(code) => Err(Fault::Refused(complaint(&held.complaint(), code))),
            Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => {
                Err(Fault::Odd("was ended before it was done".to_owned()))
            }
        }
    }
}

/// What it wrote, if that can be a file.
fn sound(made: Vec<u8>, input: &str) -> Result<String, Fault> {
    if made.is_empty() && !input.trim().is_empty() {
        return Err(Fault::Refused("it gave nothing back".to_owned()));
    }
    let text = String::from_utf8(made).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Fault::Odd("wrote something that is no text".to_owned()))
}

/// The first lines of what it complained of.
fn complaint(said: &str, code: i32) -> String {
    let lines = said.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    let lines: Vec<String> =
        lines.take(LINES).map(|line| line.chars().take(LINE).collect()).collect();
    if lines.is_empty() { format!("it exited with code {code}") } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_taken_and_nothing_only_for_nothing() {
        assert_eq!(sound(Vec::new(), " \n"), Ok(String::new()));
        assert!(matches!(sound(Vec::new(), "a"), Err(Fault::Refused(_))));
        assert!(matches!(sound(vec![0xff, b'a'], "a"), Err(Fault::Odd(_))));
        assert!(matches!(sound(b"a\0b".to_vec(), "a"), Err(Fault::Odd(_))));
        assert_eq!(sound("ä\n".into(), "a"), Ok("ä\n".to_owned()));
    }

    #[test]
    fn a_complaint_is_short() {
        let long = format!("\n\n{}\n  b\nc\nd\n", "ä".repeat(1_000));
        let told = complaint(&long, 1);
        assert_eq!(told.lines().count(), 3, "{told}");
        assert!(told.chars().count() < 310 && told.ends_with("\n  b\nc"), "{told}");
        assert_eq!(complaint(" \n", 7), "it exited with code 7");
    }
}
