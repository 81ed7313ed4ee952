//! Exports telemetry to an OpenTelemetry collector: OTLP over HTTP, encoded as JSON.

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::time::Duration;
use windlass_protocol::Fault;

/// A client for an OpenTelemetry collector of traces and metrics.
pub struct OtlpExporter {
    http: reqwest::Client,
    headers: HeaderMap,
}

impl OtlpExporter {
    /// Creates an exporter. The header values may be secret.
    pub fn new(headers: &[(String, String)], timeout: Duration) -> Result<OtlpExporter, Fault> {
        let config = |message: String| Fault::Config { message };
        let mut header_map = HeaderMap::new();
        for (name, value) in headers {
            let pair = (HeaderName::try_from(name), HeaderValue::try_from(value));
            let (Ok(header_name), Ok(mut value)) = pair else {
                return Err(config(format!("the header `{name}` for the collector is invalid")));
            };
            value.set_sensitive(true);
            header_map.insert(header_name, value);
        }
        let http = reqwest::Client::builder()
            .timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| {
                config(format!("could not create the HTTP client for the collector: {error}"))
            })?;
        Ok(OtlpExporter { http, headers: header_map })
    }

    /// Sends one report to `url`, or returns the reason why the collector did not accept it.
    pub async fn send(&self, url: &str, report: &Value) -> Result<(), String> {
        let request = self.http.post(url).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(report.to_string());
        let response = request.send().await.map_err(|error| error.without_url().to_string())?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answered {status}")),
        }
    }
}
