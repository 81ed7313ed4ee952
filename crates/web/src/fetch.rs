//! Fetches URLs, with one `HostRoute` and one HTTP client per hop.
//!
//! It keeps the invariant that nothing is sent to a host that the grant of the call does not allow:
//! every hop has its own route and client, and a redirect to a host outside the grant ends the call
//! with the URL, which the model can then request. Nothing is kept between two requests: no
//! cookies, no connections. Start reading at [`WebClient::fetch`].

use crate::content_kind::ContentKind;
use crate::html_conversion::{self, PageFormat};
use crate::response_body::{self, ResponseBody};
use crate::url_host::parse_url;
use crate::{WebClient, describe_error};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Response, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;
use windlass_sandbox::HostRoute;
use windlass_toolkit::{CallContext, CallFailure};

/// Limit for a response body, both on the wire and decompressed.
pub(crate) const MAX_BODY_BYTES: usize = 5 << 20;
/// Limit for the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 16 << 10;
/// Limit for the shown part of an error response.
const MAX_SHOWN_ERROR_CHARS: usize = 500;
const MAX_REDIRECTS: usize = 5;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for HTTP/2 response headers. For HTTP/1 the library has its own limit.
const MAX_HEADER_BYTES: u32 = 64 << 10;

/// A response fetched by [`WebClient::fetch`].
#[derive(Debug)]
pub struct FetchedContent {
    /// Final URL, after redirects.
    pub url: Url,
    /// Kind of the content, from [`ContentKind::detect`].
    pub kind: ContentKind,
    /// Charset of the `Content-Type` header.
    pub charset: Option<String>,
    /// Body, decompressed.
    pub bytes: Vec<u8>,
    /// True if the body was longer than the limit or broke off.
    pub truncated: bool,
    /// Hosts that redirected to the final one.
    pub redirect_hosts: Vec<String>,
}

/// Reasons for which [`WebClient::fetch`] returns no content.
#[derive(Debug)]
pub enum FetchError {
    /// A redirect leads to a host that the grant of this call does not allow.
    RedirectNotAllowed {
        /// URL that redirects.
        from: String,
        /// Target of the redirect.
        to: String,
    },
    /// Any other failure.
    Failed(CallFailure),
    /// The deadline passed.
    TimedOut,
}

impl From<CallFailure> for FetchError {
    fn from(failure: CallFailure) -> FetchError {
        FetchError::Failed(failure)
    }
}

/// Result of one request.
enum FetchHopResult {
    Finished(Box<FetchedContent>),
    Redirected(Url),
}

impl WebClient {
    /// Fetches a URL until `deadline` at the latest.
    pub async fn fetch(
        &self,
        cx: &CallContext<'_>,
        url: &Url,
        format: PageFormat,
        deadline: Instant,
    ) -> Result<FetchedContent, FetchError> {
        tokio::select! {
            fetched = timeout_at(deadline, self.follow_redirects(cx, url.clone(), format)) => {
                fetched.unwrap_or(Err(FetchError::TimedOut))
            }
            () = cx.cancel.cancelled() => Err(CallFailure::new("canceled before the page was fetched").into()),
        }
    }

    /// Sends requests from hop to hop.
    async fn follow_redirects(
        &self,
        cx: &CallContext<'_>,
        first: Url,
        format: PageFormat,
    ) -> Result<FetchedContent, FetchError> {
        let (mut url, mut host) = parse_url(first.as_str())?;
        let mut route = cx.world.route_to_host(&host).map_err(CallFailure::from)?;
        let mut hops: Vec<String> = Vec::new();
        for _ in 0..=MAX_REDIRECTS {
            let next = match self.send_request(cx, &route, (&url, &host), format).await? {
                FetchHopResult::Finished(fetched) => match meta_refresh_target(&fetched) {
                    // After `MAX_REDIRECTS` a page with a meta refresh is returned as it is.
                    Some(next)
                        if hops.len() < MAX_REDIRECTS && !is_same_page(&next, &fetched.url) =>
                    {
                        next
                    }
                    Some(_) | None => {
                        hops.retain(|hop| *hop != host);
                        return Ok(FetchedContent { redirect_hosts: hops, ..*fetched });
                    }
                },
                FetchHopResult::Redirected(next) => next,
            };
            let (next, next_host) = parse_url(next.as_str()).map_err(|failure| {
                CallFailure::new(format!("{url} redirects to {next}: {}", failure.text))
            })?;
            if url.scheme() == "https" && next.scheme() == "http" {
                let text = format!(
                    "{url} redirects to {next}, which is not encrypted. Fetch that URL if you \
                     need it"
                );
                return Err(CallFailure::new(text).into());
            }
            route = match cx.world.route_to_host(&next_host) {
                Ok(route) => route,
                Err(_) if next_host != host => {
                    return Err(FetchError::RedirectNotAllowed {
                        from: url.to_string(),
                        to: next.to_string(),
                    });
                }
                Err(error) => return Err(CallFailure::from(error).into()),
            };
            if !hops.contains(&host) {
                hops.push(host);
            }
            (url, host) = (next, next_host);
        }
        Err(CallFailure::new(format!("too many redirects: more than {MAX_REDIRECTS}")).into())
    }

    /// Sends one request.
    async fn send_request(
        &self,
        cx: &CallContext<'_>,
        route: &HostRoute,
        (url, host): (&Url, &str),
        format: PageFormat,
    ) -> Result<FetchHopResult, CallFailure> {
        let request = self
            .build_client(route.proxy_url())?
            .get(url.clone())
            .headers(accept_headers(format))
            .send();
        let response = request.await;
        if let Some(reason) = route.refusal() {
            cx.caller.report_host(host.to_owned(), Some(reason.clone()));
            return Err(CallFailure::new(format!(
                "{url} was not fetched: {reason}. Only public hosts can be fetched, and those that \
                 the user lists in web.private_hosts"
            )));
        }
        cx.caller.report_host(host.to_owned(), None);
        let response = response.map_err(|error| {
            let reason = describe_error(&error);
            CallFailure::new(format!(
                "{host} could not be reached: {reason}. Check the URL, or try again later"
            ))
        })?;
        let status = response.status();
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return redirect_target(url, &response).map(FetchHopResult::Redirected);
        }
        if !status.is_success() || status == StatusCode::NO_CONTENT {
            return Err(failure_from_response(url, response).await);
        }
        let (content_type, charset) = parse_content_type(response.headers());
        let content_length = response.content_length().unwrap_or_default();
        let ResponseBody { bytes, truncated } =
            response_body::read_body(response, MAX_BODY_BYTES).await?;
        let kind = ContentKind::detect(content_type.as_deref(), &bytes);
        if truncated && !matches!(kind, ContentKind::Html | ContentKind::Text) {
            let size = match content_length {
                0 => "more".to_owned(),
                size => format!("{} MB", size.div_ceil(1 << 20)),
            };
            return Err(CallFailure::new(format!(
                "the content has {size}; the limit is {} MB. Download it with bash if you need it",
                MAX_BODY_BYTES >> 20
            )));
        }
        let url = url.clone();
        let fetched =
            FetchedContent { url, kind, charset, bytes, truncated, redirect_hosts: Vec::new() };
        Ok(FetchHopResult::Finished(Box::new(fetched)))
    }

    /// Builds a client that uses only the given proxy, follows no redirects and keeps no state.
    fn build_client(&self, proxy: &str) -> Result<Client, CallFailure> {
        let client_error = |_| CallFailure::new("could not create the HTTP client");
        let client = Client::builder()
            .user_agent(&self.user_agent)
            .proxy(Proxy::all(proxy).map_err(client_error)?)
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_max_header_list_size(MAX_HEADER_BYTES)
            .build();
        client.map_err(client_error)
    }
}

/// Returns the `Accept` headers for a format.
fn accept_headers(format: PageFormat) -> HeaderMap {
    let accept = match format {
        PageFormat::Markdown => "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
        PageFormat::Text => "text/plain, text/html;q=0.9, */*;q=0.5",
        PageFormat::Html => "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
    };
    let pairs = [(ACCEPT, accept), (ACCEPT_ENCODING, "gzip, deflate")];
    pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}

/// Returns the target of a redirect, from its `Location` header.
fn redirect_target(url: &Url, response: &Response) -> Result<Url, CallFailure> {
    let status = response.status().as_u16();
    let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let target = target.and_then(|target| url.join(target).ok());
    target.ok_or_else(|| {
        CallFailure::new(format!("{url} answered HTTP {status} without a redirect target"))
    })
}

/// Converts an error response into a `Failure`.
async fn failure_from_response(url: &Url, response: Response) -> CallFailure {
    let status = response.status();
    let (content_type, charset) = parse_content_type(response.headers());
    let mut text = format!("{url} answered HTTP {status}");
    let Ok(ResponseBody { bytes, .. }) =
        response_body::read_body(response, MAX_ERROR_BODY_BYTES).await
    else {
        return CallFailure::new(text);
    };
    let shown = match ContentKind::detect(content_type.as_deref(), &bytes) {
        kind @ (ContentKind::Html | ContentKind::Text) => {
            crate::decode_text(&bytes, kind, charset.as_deref(), None).text
        }
        ContentKind::Image | ContentKind::Pdf | ContentKind::Unknown => String::new(),
    };
    // There are few tags, and only one line is shown, so this is not worth a helper process.
    let shown = html_conversion::plain_text_line(&shown, MAX_SHOWN_ERROR_CHARS);
    if !shown.is_empty() {
        text.push_str(&format!(": {shown}"));
    }
    CallFailure::new(text)
}

/// Returns the `Content-Type` of a response, and its charset.
fn parse_content_type(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let Some(content_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return (None, None);
    };
    let mut parts = content_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let charset = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned());
    (Some(content_type.to_owned()), charset)
}

/// Returns the target of a `<meta http-equiv="refresh">`, if the page redirects soon.
fn meta_refresh_target(fetched: &FetchedContent) -> Option<Url> {
    if fetched.kind != ContentKind::Html {
        return None;
    }
    let target = html_conversion::find_meta_refresh(&fetched.bytes)?;
    fetched.url.join(&target).ok()
}

/// Returns true if two URLs differ at most in their fragment.
fn is_same_page(first: &Url, second: &Url) -> bool {
    let without_fragment = |url: &Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url
    };
    without_fragment(first) == without_fragment(second)
}
