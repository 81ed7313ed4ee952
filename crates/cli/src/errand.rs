//! Errands: this binary, started again by `windlass_sandbox` to read what may be hostile, or to keep
//! the processes of commands.
//!
//! One that reads first gives away what it does not need, then reads its input to the end, and says what
//! it found on standard output. It ends with 0, or with 1 and why not; anything else is a crash.

use crate::{Exit, screen};
use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windlass_sandbox::ERRAND;

/// Nothing of more bytes is looked at.
const LONGEST: u64 = 64 << 20;

/// Runs an errand, if that is what this process was started for.
pub(crate) fn run() -> Option<Exit> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ERRAND {
        return None;
    }
    // What fails is said in our words.
    std::panic::set_hook(Box::new(|_| {}));
    let found = match arguments.next() {
        Some(name) if name == "pdf" && arguments.next().is_none() => input().and_then(|b| pdf(&b)),
        Some(name) if name == "page" && arguments.next().is_none() => input().and_then(page),
        #[cfg(target_os = "linux")]
        Some(name) if name == "keeper" && arguments.next().is_none() => {
            let kept = windlass_sandbox::keeper();
            kept.map(|()| String::new()).map_err(|error| error.to_string())
        }
        Some(_) | None => Err("there is no such errand".to_owned()),
    };
    let (text, exit) = match found {
        Ok(text) => (text, Exit::Done),
        Err(words) => (words, Exit::Failed),
    };
    screen::raw(&text);
    Some(exit)
}

/// What is to be read, once this process is confined.
fn input() -> Result<Vec<u8>, String> {
    confine()?;
    let mut bytes = Vec::new();
    let read = std::io::stdin().take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it could not be read: {error}"))?;
    Ok(bytes)
}

/// What a page of the web says.
fn page(asked: Vec<u8>) -> Result<String, String> {
    let read = catch_unwind(|| windlass_web::page::errand(&asked));
    read.unwrap_or_else(|_| Err("its reader broke".to_owned()))
}

/// Gives away what reading a file does not need: more memory and time than that, opening files and
/// connections, starting processes, leaving a core behind. Nothing of it can be taken back.
#[cfg(unix)]
fn confine() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = [
        // Other systems do not count it, or refuse to.
        #[cfg(target_os = "linux")]
        (Resource::As, 1 << 30),
        (Resource::Cpu, 10),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, most) in limits {
        let most = getrlimit(resource).maximum.map_or(most, |maximum| most.min(maximum));
        let limit = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, limit)
            .map_err(|error| format!("the process could not be confined: {error}"))?;
    }
    Ok(())
}

/// Elsewhere the patience of whoever started it is the limit.
#[cfg(not(unix))]
fn confine() -> Result<(), String> {
    Ok(())
}

/// The text of a PDF, page by page. A page that cannot be read does not spoil the others.
fn pdf(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is larger than {} MB", LONGEST >> 20));
    }
    let damaged = || "it is damaged, or not a PDF".to_owned();
    let open = || Document::load_mem(bytes).map_err(|error| format!("{}: {error}", damaged()));
    let mut document = catch_unwind(open).map_err(|_| damaged())??;
    if document.is_encrypted() {
        let opened = catch_unwind(AssertUnwindSafe(|| document.decrypt("").is_ok()));
        if !opened.unwrap_or(false) {
            return Err("it is locked with a password".to_owned());
        }
    }
    let pages = catch_unwind(AssertUnwindSafe(|| document.get_pages())).map_err(|_| damaged())?;
    if pages.is_empty() {
        return Err("it has no pages".to_owned());
    }
    let mut text = String::new();
    let mut found = false;
    for number in pages.keys() {
        let page = catch_unwind(AssertUnwindSafe(|| {
            let mut page = String::new();
            let read = output_doc_page(&document, &mut PlainTextOutput::new(&mut page), *number);
            read.map(|()| page)
        }));
        let page = match &page {
            Ok(Ok(page)) => {
                found |= !page.trim().is_empty();
                page.trim()
            }
            Ok(Err(_)) | Err(_) => "(this page could not be read)",
        };
        if pages.len() > 1 {
            text.push_str(&format!("--- page {number} ---\n"));
        }
        text.push_str(page);
        text.push('\n');
    }
    match found {
        true => Ok(text),
        false => Err("it holds no text that could be read; it may be a scan".to_owned()),
    }
}
