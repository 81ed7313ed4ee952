//! Runs a hook that is an HTTP endpoint: the payload is the body of a POST request, and the body of
//! the answer is the output of the hook.

use super::run::MAX_OUTPUT_BYTES;
use serde_json::Value;
use std::time::Duration;
use windlass_toolkit::HookError;

/// The endpoint of a hook.
#[derive(Clone)]
pub struct HttpHookEndpoint {
    url: String,
    /// Headers of the request, whose values may be secret.
    headers: Vec<(String, String)>,
    client: reqwest::Client,
}

impl HttpHookEndpoint {
    /// Creates an endpoint at an `http` or `https` URL, or returns the problem with it. Redirects
    /// are not followed, because the payload is meant for this host.
    pub fn new(url: String, headers: Vec<(String, String)>) -> Result<HttpHookEndpoint, String> {
        match reqwest::Url::parse(&url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.host().is_some() => {}
            Ok(_) | Err(_) => return Err(format!("`{url}` is not an http or https URL")),
        }
        // A connection that the server has closed in the meantime would fail the hook.
        let client = reqwest::Client::builder()
            .pool_max_idle_per_host(0)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| format!("could not create an HTTP client: {error}"))?;
        Ok(HttpHookEndpoint { url, headers, client })
    }

    /// Sends the payload, and returns the body of an answer with a status of success.
    pub(super) async fn post(
        &self,
        payload: &Value,
        time_limit: Duration,
    ) -> Result<String, HookError> {
        let failed = |reason: String| HookError::failed(reason);
        let mut request = self.client.post(&self.url).timeout(time_limit).json(payload);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(|error| failed(describe_error(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(failed(format!("its endpoint answered with status {status}")));
        }
        let mut body = Vec::new();
        let mut response = response;
        while let Some(chunk) =
            response.chunk().await.map_err(|error| failed(describe_error(&error)))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_OUTPUT_BYTES {
                let limit = MAX_OUTPUT_BYTES >> 10;
                return Err(failed(format!("it answered with more than {limit} KiB")));
            }
        }
        String::from_utf8(body).map_err(|_| failed("its answer is not UTF-8 text".to_owned()))
    }
}

/// Describes an error without the URL, which may contain a key.
fn describe_error(error: &reqwest::Error) -> String {
    match error {
        error if error.is_timeout() => "its endpoint did not answer in time".to_owned(),
        error if error.is_connect() => "its endpoint cannot be reached".to_owned(),
        _ => "the request to its endpoint failed".to_owned(),
    }
}
