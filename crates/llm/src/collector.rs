//! The way to an OpenTelemetry collector: OTLP over HTTP, as JSON.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;
use windlass_protocol::Fault;

/// Somebody who collects traces and numbers.
pub struct Collector {
    http: reqwest::Client,
    headers: HeaderMap,
}

impl Collector {
    /// A way to it. The headers may be secret.
    pub fn new(headers: &[(String, String)], patience: Duration) -> Result<Collector, Fault> {
        let config = |message: String| Fault::Config { message };
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(known), Ok(mut value)) = pair else {
                return Err(config(format!(
                    "the header `{name}` for the collector cannot be sent"
                )));
            };
            value.set_sensitive(true);
            sent.insert(known, value);
        }
        let http = reqwest::Client::builder()
            .timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| config(format!("the collector cannot be reached: {error}")))?;
        Ok(Collector { http, headers: sent })
    }

    /// Sends one report to an address, or says why it was not taken.
    pub async fn send(&self, url: &str, report: &Value) -> Result<(), String> {
        let call = self.http.post(url).headers(self.headers.clone());
        let call = call.header(CONTENT_TYPE, "application/json").body(report.to_string());
        let response = call.send().await.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it said {status}")),
        }
    }
}
