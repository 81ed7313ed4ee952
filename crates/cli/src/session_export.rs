//! Exports of a session to a file: a web page, Markdown, or the log.

use crate::redact::redact_known;
use crate::setup::LoadedProject;
use crate::{html_export, markdown_export, session_lookup};
use std::io::Write;
use std::path::Path;
use windlass_engine::{Engine, ExportImportReport};
use windlass_protocol::frontend_messages::{HostResponse, SessionExportFormat};
use windlass_protocol::{SessionId, Transcript};

/// Maximum number of export files with the same name, told apart by a number.
const MAX_NUMBERED_NAMES: u32 = 99;
/// Beginning of the name of an export.
const NAME_PREFIX: &str = "windlass-";
/// Limit for the part of an export file name that comes from the title.
const MAX_NAME_CHARS: usize = 40;

/// Exports a session to a new file. The extension of `file` decides the format; without a name, the
/// file is named after the session and created in the current folder. Returns its name, and what is
/// missing in a log.
pub(crate) async fn export_to_file(
    engine: &Engine,
    session: SessionId,
    file: &str,
) -> anyhow::Result<(String, Option<ExportImportReport>)> {
    let target = ExportTarget::parse(file)?;
    // Fails before the file is created, so that an unreadable session leaves no empty file.
    let transcript = session_lookup::load_transcript(engine, session).await?;
    let (name, file) = match target.path {
        Some(path) => (path.clone(), LoadedProject::create_private_file(&path)?),
        None => create_numbered_file(
            &export_file_name(&transcript.title, session),
            extension_of(target.format),
        )?,
    };
    let mut file = std::io::BufWriter::new(file);
    let mut report = None;
    match target.format {
        SessionExportFormat::Html => file.write_all(render_html(&transcript).as_bytes())?,
        SessionExportFormat::Markdown => {
            let text = markdown_export::render_markdown(&transcript);
            file.write_all(redact_known(&text).as_bytes())?
        }
        SessionExportFormat::JsonLines => {
            let mut write = |line: &str| writeln!(file, "{line}");
            report = Some(export_log(engine, session, &mut write).await?);
        }
    }
    file.flush()?;
    Ok((name, report))
}

/// Returns a session in this format, and a name for a file.
pub(crate) async fn render_session(
    engine: &Engine,
    session: SessionId,
    format: SessionExportFormat,
) -> anyhow::Result<HostResponse> {
    let transcript = session_lookup::load_transcript(engine, session).await?;
    let name = export_file_name(&transcript.title, session);
    let text = match format {
        SessionExportFormat::Html => render_html(&transcript),
        SessionExportFormat::Markdown => {
            redact_known(&markdown_export::render_markdown(&transcript)).into_owned()
        }
        SessionExportFormat::JsonLines => {
            let mut text = String::new();
            let mut write = |line: &str| {
                text.push_str(line);
                text.push('\n');
                Ok(())
            };
            export_log(engine, session, &mut write).await?;
            text
        }
    };
    Ok(HostResponse::Export { name, text })
}

/// Returns the format of an export to this file; see [`export_to_file`].
pub(crate) fn format_of_file(file: &str) -> anyhow::Result<SessionExportFormat> {
    Ok(ExportTarget::parse(file)?.format)
}

/// Writes an export to a new file, or to one in the current folder if `file` names none. Its name is
/// made from `name`, which a server chose, so it must not decide where the file is. Returns the
/// path.
pub(crate) fn save_export(
    file: &str,
    (name, session): (&str, SessionId),
    text: &str,
) -> anyhow::Result<String> {
    let target = ExportTarget::parse(file)?;
    let name = local_file_name(name, session);
    let (path, mut file) = match target.path {
        Some(path) => (path.clone(), LoadedProject::create_private_file(&path)?),
        None => create_numbered_file(&name, extension_of(target.format))?,
    };
    file.write_all(text.as_bytes())?;
    Ok(path)
}

/// Exports the log of a session, line by line, without known API keys.
pub(crate) async fn export_log(
    engine: &Engine,
    session: SessionId,
    write: &mut (dyn FnMut(&str) -> std::io::Result<()> + Send),
) -> anyhow::Result<ExportImportReport> {
    let redact = |text: &str| redact_known(text).into_owned();
    Ok(engine.export(session, &redact, write).await?)
}

/// Renders a session as an HTML page without known API keys.
pub(crate) fn render_html(transcript: &Transcript) -> String {
    redact_known(&html_export::render_page(transcript)).into_owned()
}

fn format_of_extension(extension: &str) -> Option<SessionExportFormat> {
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => Some(SessionExportFormat::Html),
        "md" | "markdown" => Some(SessionExportFormat::Markdown),
        "json" | "jsonl" => Some(SessionExportFormat::JsonLines),
        _ => None,
    }
}

fn extension_of(format: SessionExportFormat) -> &'static str {
    match format {
        SessionExportFormat::Html => "html",
        SessionExportFormat::Markdown => "md",
        SessionExportFormat::JsonLines => "jsonl",
    }
}

/// The file that an export writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ExportTarget {
    format: SessionExportFormat,
    /// `None` to name the file after the session.
    path: Option<String>,
}

impl ExportTarget {
    /// Parses the argument of `/export` or `session export --file`: a file name, a format such as
    /// `md`, or nothing.
    fn parse(text: &str) -> anyhow::Result<ExportTarget> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(ExportTarget { format: SessionExportFormat::Html, path: None });
        }
        if let Some(format) = format_of_extension(text.trim_start_matches('.')) {
            return Ok(ExportTarget { format, path: None });
        }
        let extension = Path::new(text).extension().and_then(|extension| extension.to_str());
        match extension.map(format_of_extension) {
            Some(Some(format)) => Ok(ExportTarget { format, path: Some(text.to_owned()) }),
            Some(None) => anyhow::bail!(
                "cannot export to `{text}`: use a name that ends in .html, .md or .jsonl"
            ),
            None => Ok(ExportTarget {
                format: SessionExportFormat::Html,
                path: Some(format!("{text}.{}", extension_of(SessionExportFormat::Html))),
            }),
        }
    }
}

/// Creates a file with an unused name such as `stem-2.html`, and returns both.
fn create_numbered_file(stem: &str, extension: &str) -> anyhow::Result<(String, std::fs::File)> {
    let names = (1..=MAX_NUMBERED_NAMES).map(|number| match number {
        1 => format!("{stem}.{extension}"),
        _ => format!("{stem}-{number}.{extension}"),
    });
    let mut last_error = None;
    for name in names {
        match LoadedProject::create_private_file(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if LoadedProject::path_exists(Path::new(&name)) => last_error = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last_error.unwrap_or_else(|| anyhow::anyhow!("no unused file name found")))
}

/// Returns the file name for an export: the title, reduced to characters that are valid on every
/// system.
fn export_file_name(title: &str, session: SessionId) -> String {
    let mut name = String::new();
    for character in title.to_lowercase().chars() {
        if name.len() >= MAX_NAME_CHARS {
            break;
        }
        match character.is_ascii_alphanumeric() {
            true => name.push(character),
            false if name.ends_with('-') || name.is_empty() => {}
            false => name.push('-'),
        }
    }
    match name.trim_end_matches('-') {
        "" => format!("{NAME_PREFIX}{session}"),
        name => format!("{NAME_PREFIX}{name}"),
    }
}

/// Returns the file name for an export that the host gave this name.
fn local_file_name(name: &str, session: SessionId) -> String {
    export_file_name(name.strip_prefix(NAME_PREFIX).unwrap_or(name), session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_of_an_export_decides_its_format() {
        for (text, format, path) in [
            ("", SessionExportFormat::Html, None),
            ("md", SessionExportFormat::Markdown, None),
            (".jsonl", SessionExportFormat::JsonLines, None),
            ("notes/today.MD", SessionExportFormat::Markdown, Some("notes/today.MD")),
            ("talk.json", SessionExportFormat::JsonLines, Some("talk.json")),
            ("talk", SessionExportFormat::Html, Some("talk.html")),
        ] {
            let target = ExportTarget::parse(text).unwrap();
            assert_eq!((target.format, target.path.as_deref()), (format, path), "{text}");
        }
        assert!(ExportTarget::parse("talk.pdf").unwrap_err().to_string().contains(".md"));
    }

    #[test]
    fn an_export_is_named_after_the_title_or_the_session() {
        let session: SessionId = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
        for (title, name) in [
            ("Fix the parser", "windlass-fix-the-parser"),
            ("../../etc/passwd\n", "windlass-etc-passwd"),
            ("  Ünïcode & more!!", "windlass-n-code-more"),
            ("名前", "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a"),
        ] {
            assert_eq!(export_file_name(title, session), name);
        }
        assert!(export_file_name(&"long words ".repeat(30), session).len() <= 9 + MAX_NAME_CHARS);
    }

    #[test]
    fn a_server_does_not_choose_the_place_of_an_export() {
        let session: SessionId = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
        for (name, reduced) in [
            ("../x", "windlass-x"),
            ("/x", "windlass-x"),
            ("/home/u/.config/autostart/x", "windlass-home-u-config-autostart-x"),
            ("windlass-../x", "windlass-x"),
            ("..", "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a"),
            ("windlass-fix-the-parser", "windlass-fix-the-parser"),
            (
                "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a",
                "windlass-0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a",
            ),
        ] {
            assert_eq!(local_file_name(name, session), reduced);
        }
    }
}
