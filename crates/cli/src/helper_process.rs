//! Helper processes: this binary, started again by `windlass_sandbox` to parse input that may be
//! hostile, or to run as the supervisor of command processes.
//!
//! A parsing helper first drops the rights it does not need, then reads its input to the end and
//! prints the result to standard output. It exits with 0, or with 1 and the reason; anything else
//! is a crash.

use crate::CliExit;
use crate::terminal::output;
use pdf_extract::{Document, PlainTextOutput, output_doc_page};
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use windlass_plugin::typescript::run_typescript_helper;
use windlass_sandbox::HELPER_ARGUMENT;
use windlass_web::html_conversion::run_page_helper;

/// Maximum input size of a helper; `extract_pdf_text` rejects more.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Runs a helper if this process was started as one; returns `None` otherwise.
pub(crate) fn run_helper() -> Option<CliExit> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != HELPER_ARGUMENT {
        return None;
    }
    // Failures are reported on standard output, so the panic message is suppressed.
    std::panic::set_hook(Box::new(|_| {}));
    let result = match arguments.next() {
        Some(name) if name == "pdf" && arguments.next().is_none() => {
            read_input().and_then(|bytes| extract_pdf_text(&bytes))
        }
        Some(name) if name == "page" && arguments.next().is_none() => {
            read_input().and_then(|input| run_parser(run_page_helper, &input))
        }
        Some(name) if name == "typescript" && arguments.next().is_none() => {
            read_input().and_then(|input| run_parser(run_typescript_helper, &input))
        }
        #[cfg(target_os = "linux")]
        Some(name) if name == "supervisor" && arguments.next().is_none() => {
            let result = windlass_sandbox::run_supervisor();
            result.map(|()| String::new()).map_err(|error| error.to_string())
        }
        Some(_) | None => Err("unknown helper".to_owned()),
    };
    let (text, exit) = match result {
        Ok(text) => (text, CliExit::Done),
        Err(message) => (message, CliExit::Failed),
    };
    output::print_raw(&text);
    Some(exit)
}

/// Confines this process, then reads its input from standard input.
fn read_input() -> Result<Vec<u8>, String> {
    confine_process()?;
    let mut bytes = Vec::new();
    let result = std::io::stdin().take(MAX_INPUT_BYTES + 1).read_to_end(&mut bytes);
    result.map_err(|error| format!("cannot read the input: {error}"))?;
    Ok(bytes)
}

/// Runs the parser of another crate, and turns a panic into an error.
fn run_parser(parse: fn(&[u8]) -> Result<String, String>, input: &[u8]) -> Result<String, String> {
    catch_unwind(|| parse(input)).unwrap_or_else(|_| Err("the parser crashed".to_owned()))
}

/// Drops the rights that parsing a file does not need: excess memory and CPU time, opening files
/// and connections, starting processes, writing core dumps. None of this can be undone.
#[cfg(unix)]
fn confine_process() -> Result<(), String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = [
        // Other systems do not count address space, or refuse the limit.
        #[cfg(target_os = "linux")]
        (Resource::As, 1 << 30),
        (Resource::Cpu, 10),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ];
    for (resource, limit) in limits {
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| limit.min(maximum));
        let rlimit = Rlimit { current: Some(limit), maximum: Some(limit) };
        setrlimit(resource, rlimit)
            .map_err(|error| format!("cannot restrict the helper process: {error}"))?;
    }
    Ok(())
}

/// Does nothing on other systems: the timeout of the parent process is the only limit there.
#[cfg(not(unix))]
fn confine_process() -> Result<(), String> {
    Ok(())
}

/// Extracts the text of a PDF page by page. Pages that cannot be read do not affect the others.
fn extract_pdf_text(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        return Err(format!("the file is larger than {} MB", MAX_INPUT_BYTES >> 20));
    }
    let damaged = || "the file is damaged or not a PDF".to_owned();
    let load = || Document::load_mem(bytes).map_err(|error| format!("{}: {error}", damaged()));
    let mut document = catch_unwind(load).map_err(|_| damaged())??;
    if document.is_encrypted() {
        let decrypted = catch_unwind(AssertUnwindSafe(|| document.decrypt("").is_ok()));
        if !decrypted.unwrap_or(false) {
            return Err("the file is protected by a password".to_owned());
        }
    }
    let pages = catch_unwind(AssertUnwindSafe(|| document.get_pages())).map_err(|_| damaged())?;
    if pages.is_empty() {
        return Err("the file has no pages".to_owned());
    }
    let mut text = String::new();
    let mut has_text = false;
    for number in pages.keys() {
        let page = catch_unwind(AssertUnwindSafe(|| {
            let mut page = String::new();
            let result = output_doc_page(&document, &mut PlainTextOutput::new(&mut page), *number);
            result.map(|()| page)
        }));
        let page = match &page {
            Ok(Ok(page)) => {
                has_text |= !page.trim().is_empty();
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
    match has_text {
        true => Ok(text),
        false => Err("the file contains no readable text; it may be a scan".to_owned()),
    }
}
