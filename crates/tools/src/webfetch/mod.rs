//! `webfetch`: what stands at an address, made readable.

use crate::picture;
use crate::read::{LARGEST_DOCUMENT, attach, pdf};
use crate::text::Text;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};
use windlass_web::{Fetched, Format, Kind, Stop, Web, address, decode, page};

/// How long it may take if nothing is said, and at most, in seconds.
const PATIENCE: u64 = 30;
const LONGEST: u64 = 120;
/// The least time for reading a page that was fetched.
const READING: Duration = Duration::from_secs(5);

/// The tool.
pub struct WebFetch(pub(crate) Arc<Web>);

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The address.
    url: String,
    format: Option<Shape>,
    /// Up to 120 s.
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Shape {
    Markdown,
    Text,
    Html,
}

impl Input {
    fn format(&self) -> Format {
        match self.format {
            Some(Shape::Text) => Format::Text,
            Some(Shape::Html) => Format::Html,
            Some(Shape::Markdown) | None => Format::Markdown,
        }
    }
}

#[async_trait]
impl Tool for WebFetch {
    type Input = Input;

    fn name(&self) -> &str {
        "webfetch"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    /// An address that names no host leads nowhere, and the call says why.
    fn access(&self, input: &Input) -> Vec<Access> {
        address(&input.url).map(|(_, host)| Access::Fetch { host }).into_iter().collect()
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let (url, _) = address(&input.url)?;
        let format = input.format();
        let patience = input.timeout.unwrap_or(PATIENCE).clamp(1, LONGEST);
        let deadline = Instant::now() + Duration::from_secs(patience);
        let title = url.to_string();
        let fetched = match self.0.fetch(cx, &url, format, deadline).await {
            Ok(fetched) => fetched,
            Err(Stop::Elsewhere { from, to }) => {
                let text = format!(
                    "{from} leads on to {to}, which is another host. Fetch that address if you \
                     need it."
                );
                return Ok(Output { title, text, ..Output::default() });
            }
            Err(Stop::Failed(failure)) => return Err(failure),
        };
        let head = head(&fetched);
        let mut output = match fetched.kind {
            Kind::Page | Kind::Text | Kind::Unknown => read(fetched, format, deadline, cx).await?,
            Kind::Picture => show(fetched, cx).await?,
            Kind::Document => document(fetched, cx).await?,
        };
        output.text.insert_str(0, &head);
        Ok(Output { title, ..output })
    }
}

/// Where it came from, and that anybody may have written it.
fn head(fetched: &Fetched) -> String {
    let by = match fetched.hops.as_slice() {
        [] => String::new(),
        hops => format!(" (by way of {})", hops.join(", ")),
    };
    format!("From {}{by}, which anybody may have written:\n\n", fetched.url)
}

/// Text, made readable if it is a page.
async fn read(
    fetched: Fetched,
    format: Format,
    deadline: Instant,
    cx: &Cx<'_>,
) -> Result<Output, Failure> {
    let Fetched { url, kind, charset, bytes, cut, .. } = fetched;
    let left = deadline.saturating_duration_since(Instant::now()).max(READING);
    let read = cx.blocking(move |_| {
        let mut notes = Vec::new();
        let text = match kind {
            Kind::Unknown => {
                let text = Text::decode(bytes).map_err(|binary| {
                    Failure::new(format!(
                        "{url} is {}; it is not shown. Get it with bash if you need it",
                        binary.kind
                    ))
                })?;
                text.view().to_owned()
            }
            Kind::Page | Kind::Text | Kind::Picture | Kind::Document => {
                let tld = url.host_str().and_then(|host| host.rsplit('.').next());
                let decoded = decode(&bytes, kind, charset.as_deref(), tld);
                notes.extend(decoded.note);
                decoded.text
            }
        };
        let mut text = match kind {
            Kind::Page => {
                let page = page::read_apart(&text, url.as_str(), format, left)?;
                if page.partial {
                    notes.push("the main text; format html gives the whole page".to_owned());
                }
                page.text
            }
            Kind::Text | Kind::Unknown | Kind::Picture | Kind::Document => text,
        };
        if cut {
            notes.push("only its beginning; the rest was too long to fetch".to_owned());
        }
        if text.trim().is_empty() {
            text = "(it is empty)".to_owned();
        }
        for note in notes {
            text.push_str(&format!("\n[{note}]"));
        }
        Ok(text)
    });
    let text = tokio::select! {
        text = read => text?,
        () = cx.cancel.cancelled() => return Err(Failure::new("stopped before it was read")),
    };
    Ok(Output { text, ..Output::default() })
}

/// A picture to look at.
async fn show(fetched: Fetched, cx: &Cx<'_>) -> Result<Output, Failure> {
    let Fetched { url, bytes, .. } = fetched;
    let fitted = cx.blocking(move |_| picture::fit(bytes).map_err(Failure::new));
    let picture::Picture { mime, bytes, note } = fitted.await?;
    let note = note.map(|note| format!(", {note}")).unwrap_or_default();
    let text = format!("[it is shown as {mime}{note}]");
    let attachments = vec![attach(url.path(), mime, bytes, cx).await?];
    Ok(Output { text, attachments, ..Output::default() })
}

/// A document to look at, or its text for a model that cannot.
async fn document(fetched: Fetched, cx: &Cx<'_>) -> Result<Output, Failure> {
    let Fetched { url, bytes, .. } = fetched;
    if cx.scene.pdfs && bytes.len() <= LARGEST_DOCUMENT {
        let attachments = vec![attach(url.path(), "application/pdf", bytes, cx).await?];
        let text = "[it is shown as application/pdf]".to_owned();
        return Ok(Output { text, attachments, ..Output::default() });
    }
    let text = cx.blocking(move |_| pdf::text(bytes).map_err(Failure::new)).await?;
    let text = format!("[the text of a PDF, without its pictures and layout]\n{text}");
    Ok(Output { text, ..Output::default() })
}

#[cfg(test)]
mod tests;
