//! `webfetch`: fetches a URL and renders its content readably.

use crate::image;
use crate::read::{MAX_DOCUMENT_BYTES, pdf, store_attachment};
use crate::text::FileText;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};
use windlass_web::{
    ContentKind, FetchError, FetchedContent, PageFormat, WebClient, decode_text, html_conversion,
    parse_url,
};

/// Default and maximum timeout of a call, in seconds.
const DEFAULT_TIMEOUT_SECS: u64 = 30;
const MAX_TIMEOUT_SECS: u64 = 120;
/// The minimum time for converting a page that was fetched.
const MIN_READING_TIME: Duration = Duration::from_secs(5);

/// The `webfetch` tool.
pub struct WebFetchTool(pub(crate) Arc<WebClient>);

/// Input of the `webfetch` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebFetchInput {
    /// The URL.
    url: String,
    format: Option<FetchFormat>,
    /// Up to 120 s.
    timeout: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum FetchFormat {
    Markdown,
    Text,
    Html,
}

impl WebFetchInput {
    fn page_format(&self) -> PageFormat {
        match self.format {
            Some(FetchFormat::Text) => PageFormat::Text,
            Some(FetchFormat::Html) => PageFormat::Html,
            Some(FetchFormat::Markdown) | None => PageFormat::Markdown,
        }
    }
}

#[async_trait]
impl Tool for WebFetchTool {
    type Input = WebFetchInput;

    fn name(&self) -> &str {
        "webfetch"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn claude_names(&self) -> &'static [&'static str] {
        &["WebFetch"]
    }

    fn describe_call(&self, input: &WebFetchInput, _root: &str) -> Option<CallDescription> {
        let url = input.url.as_str();
        let without_scheme = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let page = without_scheme.unwrap_or(url).trim_end_matches('/');
        Some(CallDescription::new("Fetch", "fetching", page))
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<WebFetchInput>(include_str!("description.md"))
    }

    /// Returns no access for a URL without a host: `run` fetches nothing and reports the error.
    fn access(&self, input: &WebFetchInput) -> Vec<ToolAccess> {
        parse_url(&input.url).map(|(_, host)| ToolAccess::Fetch { host }).into_iter().collect()
    }

    async fn run(
        &self,
        input: WebFetchInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let (url, _) = parse_url(&input.url)?;
        let format = input.page_format();
        let timeout = input.timeout.unwrap_or(DEFAULT_TIMEOUT_SECS).clamp(1, MAX_TIMEOUT_SECS);
        let deadline = Instant::now() + Duration::from_secs(timeout);
        let fetched = match self.0.fetch(cx, &url, format, deadline).await {
            Ok(fetched) => fetched,
            Err(FetchError::RedirectNotAllowed { from, to }) => {
                let text = format!(
                    "{from} redirects to {to}, which is another host. Fetch that URL if you need \
                     it."
                );
                return Ok(ToolOutput { text, ..ToolOutput::default() });
            }
            Err(FetchError::Failed(failure)) => return Err(failure),
            Err(FetchError::TimedOut) => return Err(CallFailure::new(timeout_text(timeout))),
        };
        let header = source_header(&fetched);
        let mut output = match fetched.kind {
            ContentKind::Html | ContentKind::Text | ContentKind::Unknown => {
                render_text(fetched, format, deadline, cx).await?
            }
            ContentKind::Image => attach_image(fetched, cx).await?,
            ContentKind::Pdf => attach_pdf(fetched, cx).await?,
        };
        output.text.insert_str(0, &header);
        Ok(output)
    }
}

/// Describes a request that was not answered within `timeout` seconds.
fn timeout_text(timeout: u64) -> String {
    let advice = match timeout < MAX_TIMEOUT_SECS {
        true => "Try again with a longer timeout",
        false => "That is the longest timeout; try another page",
    };
    format!("the request timed out after {timeout} s. {advice}.")
}

/// Returns a header with the source, and a warning that anyone may have written the content.
fn source_header(fetched: &FetchedContent) -> String {
    let via = match fetched.redirect_hosts.as_slice() {
        [] => String::new(),
        hosts => format!(" (via {})", hosts.join(", ")),
    };
    format!("Untrusted content from {}{via}:\n\n", fetched.url)
}

/// Renders text; a web page is converted to the requested `PageFormat`.
async fn render_text(
    fetched: FetchedContent,
    format: PageFormat,
    deadline: Instant,
    cx: &CallContext<'_>,
) -> Result<ToolOutput, CallFailure> {
    let FetchedContent { url, kind, charset, bytes, truncated, .. } = fetched;
    let remaining_time = deadline.saturating_duration_since(Instant::now()).max(MIN_READING_TIME);
    let rendering = cx.run_blocking(move |_| {
        let mut notes = Vec::new();
        let text = match kind {
            ContentKind::Unknown => {
                let text = FileText::decode(bytes).map_err(|binary| {
                    CallFailure::new(format!(
                        "{url} is {}; it is not shown. Download it with bash if you need it",
                        binary.kind
                    ))
                })?;
                text.view().to_owned()
            }
            ContentKind::Html | ContentKind::Text | ContentKind::Image | ContentKind::Pdf => {
                let tld = url.host_str().and_then(|host| host.rsplit('.').next());
                let decoded = decode_text(&bytes, kind, charset.as_deref(), tld);
                notes.extend(decoded.note);
                decoded.text
            }
        };
        let mut text = match kind {
            ContentKind::Html => {
                let page = html_conversion::convert_page_isolated(
                    &text,
                    url.as_str(),
                    format,
                    remaining_time,
                )?;
                if page.partial {
                    notes.push("main text only; use format html for the whole page".to_owned());
                }
                page.text
            }
            ContentKind::Text | ContentKind::Unknown | ContentKind::Image | ContentKind::Pdf => {
                text
            }
        };
        if truncated {
            notes.push("only the beginning; the rest was too long to fetch".to_owned());
        }
        if text.trim().is_empty() {
            text = "(empty)".to_owned();
        }
        for note in notes {
            text.push_str(&format!("\n[{note}]"));
        }
        Ok(text)
    });
    let text = tokio::select! {
        text = rendering => text?,
        () = cx.cancel.cancelled() => return Err(CallFailure::new("interrupted before it was read")),
    };
    Ok(ToolOutput { text, ..ToolOutput::default() })
}

/// Attaches an image for the model.
async fn attach_image(
    fetched: FetchedContent,
    cx: &CallContext<'_>,
) -> Result<ToolOutput, CallFailure> {
    let FetchedContent { url, bytes, .. } = fetched;
    let prepared = cx.run_blocking(move |_| image::prepare_image(bytes).map_err(CallFailure::new));
    let image::PreparedImage { mime, bytes, note } = prepared.await?;
    let note = note.map(|note| format!(", {note}")).unwrap_or_default();
    let text = format!("[shown as {mime}{note}]");
    let attachments = vec![store_attachment(url.path(), mime, bytes, cx).await?];
    Ok(ToolOutput { text, attachments, ..ToolOutput::default() })
}

/// Attaches a PDF, or renders its text for a model without `supports_pdfs`.
async fn attach_pdf(
    fetched: FetchedContent,
    cx: &CallContext<'_>,
) -> Result<ToolOutput, CallFailure> {
    let FetchedContent { url, bytes, .. } = fetched;
    if cx.step.supports_pdfs && bytes.len() <= MAX_DOCUMENT_BYTES {
        let attachments = vec![store_attachment(url.path(), "application/pdf", bytes, cx).await?];
        let text = "[shown as application/pdf]".to_owned();
        return Ok(ToolOutput { text, attachments, ..ToolOutput::default() });
    }
    let text = cx.run_blocking(move |_| pdf::extract_text(bytes).map_err(CallFailure::new)).await?;
    let text = format!("[text of a PDF, without images and layout]\n{text}");
    Ok(ToolOutput { text, ..ToolOutput::default() })
}

#[cfg(test)]
mod tests;
