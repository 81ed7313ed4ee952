//! Watching from outside: traces and numbers for an OpenTelemetry collector, and a log in a file.
//!
//! Both are off unless the environment asks for them. The variables are the standard ones; only
//! `http/json` is spoken.

use crate::redact::{self, Redacting};
use crate::screen;
use crate::setup::Setup;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::writer::MakeWriterExt;
use windlass_engine::telemetry::{Report, Telemetry};
use windlass_llm::Collector;
use windlass_project::Places;

/// How long a collector is waited for unless the environment says otherwise, in milliseconds.
const PATIENCE: u64 = 10_000;

/// A log that is longer than this is put aside when the next one begins.
const LONGEST_LOG: u64 = 8 << 20;

/// Where reports go.
pub(crate) struct Watching {
    pub(crate) telemetry: Telemetry,
    collector: Arc<Collector>,
    traces: Option<String>,
    metrics: Option<String>,
}

impl Watching {
    /// What the environment asks for, if it asks for anything.
    pub(crate) fn wanted(env: impl Fn(&str) -> Option<String>) -> Option<Watching> {
        let env = |name: &str| env(name).filter(|value| !value.trim().is_empty());
        if env("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        let base = env("OTEL_EXPORTER_OTLP_ENDPOINT");
        let address = |signal: &str, path: &str| {
            let exporter = env(&format!("OTEL_{signal}_EXPORTER"));
            if exporter.is_some_and(|exporter| exporter != "otlp") {
                return None;
            }
            let own = env(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
            own.or_else(|| {
                base.as_ref().map(|base| format!("{}{path}", base.trim_end_matches('/')))
            })
        };
        let (traces, metrics) =
            (address("TRACES", "/v1/traces"), address("METRICS", "/v1/metrics"));
        if traces.is_none() && metrics.is_none() {
            return None;
        }
        if env("OTEL_EXPORTER_OTLP_PROTOCOL").is_some_and(|protocol| protocol == "grpc") {
            screen::note(
                "traces are sent as http/json only; OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not spoken",
            );
            return None;
        }
        let headers = pairs(&env("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default());
        headers.iter().for_each(|(_, value)| redact::know(value));
        let patience = env("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
        let patience = Duration::from_millis(patience.unwrap_or(PATIENCE));
        let mut resource = pairs(&env("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        let named = resource.iter().any(|(key, _)| key == "service.name");
        if let Some(name) = env("OTEL_SERVICE_NAME") {
            resource.retain(|(key, _)| key != "service.name");
            resource.push(("service.name".into(), name));
        } else if !named {
            resource.push(("service.name".into(), "windlass".into()));
        }
        let collector = Collector::new(&headers, patience)
            .map_err(|fault| screen::note(&format!("nothing is traced: {fault}")))
            .ok()?;
        let (telemetry, collector) = (Telemetry::new(resource), Arc::new(collector));
        Some(Watching { telemetry, collector, traces, metrics })
    }

    /// Tells the collector what there is to tell. A collector that is not there never spoils a run.
    pub(crate) async fn report(&mut self) {
        if let Some(sending) = self.sending() {
            sending.await;
        }
    }

    /// The same beside whatever else is done; `None` if there is nothing to tell.
    pub(crate) fn sending(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let Report { traces, metrics } = self.telemetry.take()?;
        let collector = Arc::clone(&self.collector);
        let reports = [(self.traces.clone(), traces), (self.metrics.clone(), metrics)];
        Some(async move {
            for (address, report) in reports {
                if let Some(address) = address
                    && let Err(why) = collector.send(&address, &report).await
                {
                    tracing::warn!("the collector did not take a report: {why}");
                    screen::note(&format!("the collector did not take a report: {why}"));
                    return;
                }
            }
        })
    }
}

/// `a=b,c=d`, as the variables of OpenTelemetry have it; `%2C` and the like stand for themselves.
fn pairs(list: &str) -> Vec<(String, String)> {
    let pairs = list.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.trim().to_owned(), unescape(value.trim()))).collect()
}

fn unescape(text: &str) -> String {
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

/// `WINDLASS_LOG=debug` shows what happens inside, and keeps it in the data folder. What looks
/// like a key is blotted out in both.
#[allow(clippy::disallowed_methods, reason = "a log goes to standard error, beside the screen")]
pub(crate) fn log() {
    let wanted = Setup::env("WINDLASS_LOG").and_then(|level| level.parse::<LevelFilter>().ok());
    let Some(level) = wanted else { return };
    let file = Places::find().ok().and_then(|places| open(&places.data.join("log")).ok());
    // Not into the middle of a screen.
    let shown = || Redacting(std::io::stderr());
    let shown = shown.with_filter(|_| !screen::is_diverted());
    let builder = tracing_subscriber::fmt().with_max_level(level);
    match file {
        Some(file) => {
            let kept = Mutex::new(Redacting(file));
            builder.with_writer(kept.and(shown)).init();
        }
        None => builder.with_writer(shown).init(),
    }
}

/// The log's file, for its owner only.
#[allow(clippy::disallowed_methods, reason = "a log is written from before anything else is")]
fn open(folder: &Path) -> std::io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join("windlass.log");
    if std::fs::metadata(&path).is_ok_and(|log| log.len() > LONGEST_LOG) {
        std::fs::rename(&path, folder.join("windlass.log.1"))?;
    }
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::{Watching, pairs};

    fn wanted(variables: &[(&str, &str)]) -> Option<Watching> {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Watching::wanted(|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn nothing_is_told_unless_somebody_asks() {
        assert!(wanted(&[]).is_none());
        assert!(wanted(&[("OTEL_SERVICE_NAME", "x"), ("OTEL_TRACES_EXPORTER", "otlp")]).is_none());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318/");
        assert!(wanted(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]).is_none());
        assert!(wanted(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).is_none());
        let both = wanted(&[endpoint]).unwrap();
        assert_eq!(both.traces.as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        assert_eq!(both.metrics.as_deref(), Some("http://127.0.0.1:4318/v1/metrics"));
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h/t");
        let one = wanted(&[endpoint, own, ("OTEL_METRICS_EXPORTER", "none")]).unwrap();
        assert_eq!((one.traces.as_deref(), one.metrics), (Some("http://h/t"), None));
    }

    #[test]
    fn lists_are_read_as_they_are_written() {
        let read = pairs("a=1, b = x%2Cy=%zz,junk,=,c=%e");
        let read: Vec<(&str, &str)> = read.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(read, [("a", "1"), ("b", "x,y=%zz"), ("", ""), ("c", "%e")]);
    }
}
