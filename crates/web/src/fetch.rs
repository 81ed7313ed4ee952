//! Fetching: one request after the other, each through a passage to one host.
//!
//! It keeps the invariant that nothing is sent to a host that the call's grant does not open: every
//! hop has a passage and a client of its own, and what a grant does not open ends the call with the
//! address, for the model to ask for. Nothing is kept between two requests: no cookies, no
//! connections. Start reading at [`Web::fetch`].

use crate::address::address;
use crate::body::{self, Body};
use crate::kind::Kind;
use crate::page::{self, Format};
use crate::{Web, words};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Proxy, Response, StatusCode};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use url::Url;
use windlass_sandbox::Passage;
use windlass_toolkit::{Cx, Failure};

/// The most that is read of an answer, as it comes and unpacked.
pub(crate) const LARGEST: usize = 5 << 20;
/// The most that is read of an answer that says no.
const LARGEST_ERROR: usize = 16 << 10;
/// How much of it is shown.
const SHOWN: usize = 500;
/// How many redirects are followed.
const HOPS: usize = 5;
const CONNECTING: Duration = Duration::from_secs(10);
/// The longest head of an answer over HTTP/2. Over HTTP/1 the library has a bound of its own.
const LONGEST_HEAD: u32 = 64 << 10;

/// What was fetched.
#[derive(Debug)]
pub struct Fetched {
    /// Where it came from in the end.
    pub url: Url,
    /// What it is.
    pub kind: Kind,
    /// The encoding it says it is in.
    pub charset: Option<String>,
    /// It, unpacked.
    pub bytes: Vec<u8>,
    /// True if there was more.
    pub cut: bool,
    /// The hosts that were asked before the last one.
    pub hops: Vec<String>,
}

/// Why nothing was fetched.
#[derive(Debug)]
pub enum Stop {
    /// It leads to a host that this call may not ask.
    Elsewhere {
        /// Where it was asked for.
        from: String,
        /// Where it leads.
        to: String,
    },
    /// It failed.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

/// What one request came to.
enum Hop {
    Arrived(Box<Fetched>),
    Led(Url),
}

impl Web {
    /// Fetches an address, until a moment at the latest.
    pub async fn fetch(
        &self,
        cx: &Cx<'_>,
        url: &Url,
        format: Format,
        deadline: Instant,
    ) -> Result<Fetched, Stop> {
        tokio::select! {
            fetched = timeout_at(deadline, self.follow(cx, url.clone(), format)) => {
                fetched.unwrap_or_else(|_| {
                    Err(Failure::new("it took too long. Try again with a longer timeout").into())
                })
            }
            () = cx.cancel.cancelled() => Err(Failure::new("stopped before it was fetched").into()),
        }
    }

    /// Goes from hop to hop.
    async fn follow(&self, cx: &Cx<'_>, first: Url, format: Format) -> Result<Fetched, Stop> {
        let (mut plain, mut host) = address(first.as_str())?;
        let mut passage = cx.world.passage(&host).map_err(Failure::from)?;
        let mut hops: Vec<String> = Vec::new();
        for _ in 0..=HOPS {
            let next = match self.ask(cx, &passage, (&plain, &host), format).await? {
                Hop::Arrived(fetched) => match refresh(&fetched) {
                    // A page that sends on once more is shown as it is.
                    Some(next) if hops.len() < HOPS && !same(&next, &fetched.url) => next,
                    Some(_) | None => {
                        hops.retain(|hop| *hop != host);
                        return Ok(Fetched { hops, ..*fetched });
                    }
                },
                Hop::Led(next) => next,
            };
            let (next, there) = address(next.as_str()).map_err(|failure| {
                Failure::new(format!("{plain} leads on to {next}, and {}", failure.text))
            })?;
            if plain.scheme() == "https" && next.scheme() == "http" {
                let text = format!(
                    "{plain} leads on to {next}, which is not encrypted. Fetch that address if you \
                     need it"
                );
                return Err(Failure::new(text).into());
            }
            passage = match cx.world.passage(&there) {
                Ok(passage) => passage,
                Err(_) if there != host => {
                    return Err(Stop::Elsewhere { from: plain.to_string(), to: next.to_string() });
                }
                Err(error) => return Err(Failure::from(error).into()),
            };
            if !hops.contains(&host) {
                hops.push(host);
            }
            (plain, host) = (next, there);
        }
        Err(Failure::new(format!("it leads on and on: more than {HOPS} redirects")).into())
    }

    /// Makes one request.
    async fn ask(
        &self,
        cx: &Cx<'_>,
        passage: &Passage,
        (url, host): (&Url, &str),
        format: Format,
    ) -> Result<Hop, Failure> {
        let sent = self.client(passage.proxy())?.get(url.clone()).headers(wanted(format)).send();
        let answer = sent.await;
        if let Some(why) = passage.refused() {
            cx.caller.reached(host.to_owned(), Some(why.clone()));
            return Err(Failure::new(format!(
                "{url} was not fetched: {why}. Only public hosts can be fetched from, and those that \
                 the person names in web.inside"
            )));
        }
        cx.caller.reached(host.to_owned(), None);
        let answer = answer.map_err(|error| {
            let why = words(&error);
            Failure::new(format!(
                "{host} could not be reached: {why}. Check the address, or try later"
            ))
        })?;
        let status = answer.status();
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            return led(url, &answer).map(Hop::Led);
        }
        if !status.is_success() || status == StatusCode::NO_CONTENT {
            return Err(refusal(url, answer).await);
        }
        let (said, charset) = content_type(answer.headers());
        let announced = answer.content_length().unwrap_or_default();
        let Body { bytes, cut } = body::read(answer, LARGEST).await?;
        let kind = Kind::of(said.as_deref(), &bytes);
        if cut && !matches!(kind, Kind::Page | Kind::Text) {
            let size = match announced {
                0 => "more".to_owned(),
                size => format!("{} MB", size.div_ceil(1 << 20)),
            };
            return Err(Failure::new(format!(
                "it has {size}; at most {} MB are fetched. Get it with bash if you need it",
                LARGEST >> 20
            )));
        }
        let url = url.clone();
        let fetched = Fetched { url, kind, charset, bytes, cut, hops: Vec::new() };
        Ok(Hop::Arrived(Box::new(fetched)))
    }

    /// A client that knows one way and keeps nothing.
    fn client(&self, proxy: &str) -> Result<Client, Failure> {
        let failed = |_| Failure::new("no HTTP client can be made here");
        let client = Client::builder()
            .user_agent(&self.agent)
            .proxy(Proxy::all(proxy).map_err(failed)?)
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECTING)
            .http2_max_header_list_size(LONGEST_HEAD)
            .build();
        client.map_err(failed)
    }
}

/// What is asked for.
fn wanted(format: Format) -> HeaderMap {
    let accept = match format {
        Format::Markdown => "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
        Format::Text => "text/plain, text/html;q=0.9, */*;q=0.5",
        Format::Html => "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
    };
    let pairs = [(ACCEPT, accept), (ACCEPT_ENCODING, "gzip, deflate")];
    pairs.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}

/// Where a redirect leads.
fn led(url: &Url, answer: &Response) -> Result<Url, Failure> {
    let status = answer.status().as_u16();
    let place = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let place = place.and_then(|place| url.join(place).ok());
    place.ok_or_else(|| {
        Failure::new(format!("{url} answered HTTP {status}, and does not say where it leads"))
    })
}

/// What an answer that says no is told as.
async fn refusal(url: &Url, answer: Response) -> Failure {
    let status = answer.status();
    let (said, charset) = content_type(answer.headers());
    let mut text = format!("{url} answered HTTP {status}");
    let Ok(Body { bytes, .. }) = body::read(answer, LARGEST_ERROR).await else {
        return Failure::new(text);
    };
    let shown = match Kind::of(said.as_deref(), &bytes) {
        kind @ (Kind::Page | Kind::Text) => {
            crate::decode(&bytes, kind, charset.as_deref(), None).text
        }
        Kind::Picture | Kind::Document | Kind::Unknown => String::new(),
    };
    // Few tags, and no more of the page than a line: it is not worth a process of its own.
    let shown = page::plain(&shown, SHOWN);
    if !shown.is_empty() {
        text.push_str(&format!(": {shown}"));
    }
    Failure::new(text)
}

/// The type of an answer, and its encoding.
fn content_type(headers: &HeaderMap) -> (Option<String>, Option<String>) {
    let Some(said) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return (None, None);
    };
    let mut parts = said.split(';').skip(1).filter_map(|part| part.split_once('='));
    let charset = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned());
    (Some(said.to_owned()), charset)
}

/// Where a page sends whoever opens it, if it does so soon.
fn refresh(fetched: &Fetched) -> Option<Url> {
    if fetched.kind != Kind::Page {
        return None;
    }
    let place = page::refresh(&fetched.bytes)?;
    fetched.url.join(&place).ok()
}

/// True for one page, but for its fragment.
fn same(one: &Url, other: &Url) -> bool {
    let plain = |url: &Url| {
        let mut url = url.clone();
        url.set_fragment(None);
        url
    };
    plain(one) == plain(other)
}
