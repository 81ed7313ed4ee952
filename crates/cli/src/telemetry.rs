//! Telemetry: traces and metrics for an OpenTelemetry collector, and a log file.
//!
//! Both are off unless the environment enables them. Export uses the standard `OTEL_…` variables;
//! `http/json` is the only supported protocol.

use crate::log_file::LogFile;
use crate::redact::{self, RedactingWriter};
use crate::setup::LoadedProject;
use crate::terminal::output;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use windlass_engine::telemetry::{SessionTelemetry, TelemetryReport};
use windlass_llm::OtlpExporter;
use windlass_project::Dirs;

/// Default export timeout in milliseconds; `OTEL_EXPORTER_OTLP_TIMEOUT` overrides it.
const DEFAULT_EXPORT_TIMEOUT_MS: u64 = 10_000;

/// Exports telemetry reports to an OTLP collector.
pub(crate) struct TelemetryExport {
    pub(crate) telemetry: SessionTelemetry,
    exporter: Arc<OtlpExporter>,
    traces_url: Option<String>,
    metrics_url: Option<String>,
}

impl TelemetryExport {
    /// Creates the exporter that the environment asks for; `None` if it asks for none.
    pub(crate) fn from_env(env: impl Fn(&str) -> Option<String>) -> Option<TelemetryExport> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        if env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let base = env("OTEL_EXPORTER_OTLP_ENDPOINT");
        let signal_url = |signal: &str, path: &str| {
            let exporter = env(&format!("OTEL_{signal}_EXPORTER"));
            if exporter.is_some_and(|exporter| exporter != "otlp") {
                return None;
            }
            let endpoint = env(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
            endpoint.or_else(|| {
                base.as_ref().map(|base| format!("{}{path}", base.trim_end_matches('/')))
            })
        };
        let traces_url = signal_url("TRACES", "/v1/traces");
        let metrics_url = signal_url("METRICS", "/v1/metrics");
        if traces_url.is_none() && metrics_url.is_none() {
            return None;
        }
        if env("OTEL_EXPORTER_OTLP_PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
            output::print_note(
                "telemetry is off: OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported. Use \
                 http/json",
            );
            return None;
        }
        let headers = parse_pairs(&env("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default());
        headers.iter().for_each(|(_, value)| redact::add_secret(value));
        let timeout = env("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
        let timeout = Duration::from_millis(timeout.unwrap_or(DEFAULT_EXPORT_TIMEOUT_MS));
        let mut resource = parse_pairs(&env("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        let has_service_name = resource.iter().any(|(key, _)| key == "service.name");
        if let Some(name) = env("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".into(), name));
        } else if !has_service_name {
            resource.push(("service.name".into(), "windlass".into()));
        }
        let exporter = OtlpExporter::new(&headers, timeout)
            .map_err(|fault| output::print_note(&format!("telemetry is off: {fault}")))
            .ok()?;
        Some(TelemetryExport {
            telemetry: SessionTelemetry::new(resource),
            exporter: Arc::new(exporter),
            traces_url,
            metrics_url,
        })
    }

    /// Sends the pending report to the collector. An unreachable collector never fails a run.
    pub(crate) async fn export(&mut self) {
        if let Some(sending) = self.export_in_background() {
            sending.await;
        }
    }

    /// Returns a future that sends the pending report, to run alongside other work; `None` if there
    /// is nothing to send.
    pub(crate) fn export_in_background(
        &mut self,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let TelemetryReport { traces, metrics } = self.telemetry.take_report()?;
        let exporter = Arc::clone(&self.exporter);
        let reports = [(self.traces_url.clone(), traces), (self.metrics_url.clone(), metrics)];
        Some(async move {
            for (url, report) in reports {
                if let Some(url) = url
                    && let Err(error) = exporter.send(&url, &report).await
                {
                    tracing::warn!("cannot send telemetry to the collector: {error}");
                    output::print_note(&format!("cannot send telemetry to the collector: {error}"));
                    return;
                }
            }
        })
    }
}

/// Parses `a=b,c=d` as used in OpenTelemetry variables; decodes percent escapes such as `%2C` in
/// values.
fn parse_pairs(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), percent_decode(value.trim()))).collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        rest = code.and_then(|_| after.get(2..)).unwrap_or(after);
        bytes.push(code.unwrap_or(*byte));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sets up logging if `WINDLASS_LOG` names a level, for example `debug`: to standard error and to a
/// file in the data folder. Text that looks like a key is redacted in both.
#[allow(clippy::disallowed_methods, reason = "logs go to standard error, not to the UI")]
///
/// A server always writes its access log, but only to the file.
pub(crate) fn init_logging(is_server: bool) {
    let chosen = LoadedProject::env_variable("WINDLASS_LOG")
        .and_then(|level| level.parse::<LevelFilter>().ok());
    let Some(level) = chosen.or(is_server.then_some(LevelFilter::INFO)) else { return };
    let file = Dirs::locate().ok().and_then(|dirs| LogFile::open(&dirs.data.join("log")).ok());
    // Log lines must not appear in the middle of the terminal UI.
    let stderr_writer = || RedactingWriter(std::io::stderr());
    let stderr_writer =
        stderr_writer.with_filter(move |_| chosen.is_some() && !output::are_notes_diverted());
    let builder = tracing_subscriber::fmt().with_max_level(level);
    match file {
        Some(file) => {
            let file_writer = Mutex::new(RedactingWriter(file));
            builder.with_writer(file_writer.and(stderr_writer)).init();
        }
        None => builder.with_writer(stderr_writer).init(),
    }
}

#[cfg(test)]
mod tests {
    use super::{TelemetryExport, parse_pairs};

    fn export_for(variables: &[(&str, &str)]) -> Option<TelemetryExport> {
        let find = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        TelemetryExport::from_env(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_exported_unless_an_endpoint_is_set() {
        assert!(export_for(&[]).is_none());
        assert!(
            export_for(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_EXPORTER", "otlp")]).is_none()
        );
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        assert!(export_for(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]).is_none());
        assert!(export_for(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_none());
        let both = export_for(&[endpoint]).unwrap();
        assert_eq!(both.traces_url.as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(both.metrics_url.as_deref(), Some("http://127.0.0.1:4318/v1/metrics"));
        let traces_endpoint = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h/t");
        let traces_only =
            export_for(&[endpoint, traces_endpoint, ("OTEL_METRICS_EXPORTER", "none")]).unwrap();
        assert_eq!(
            (traces_only.traces_url.as_deref(), traces_only.metrics_url),
            (Some("http://h/t"), None)
        );
    }

    #[test]
    fn pairs_are_parsed_and_percent_decoded() {
        let pairs = parse_pairs("a=1, b = x%2Cy=%zz,junk,=,c=%e");
        let pairs: Vec<(&str, &str)> =
            pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("a", "1"), ("b", "x,y=%zz"), ("", ""), ("c", "%e")]);
    }
}
