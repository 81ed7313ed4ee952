//! The start of a server: its program in a cage of its own, and the first words.

use crate::Row;
use crate::estate::Estate;
use crate::reply::Terms;
use crate::talk::{Link, Meeting};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;
use windlass_sandbox::{Held, Hold, Hosts, Keep, Servant};

/// One that ends sooner and says that it is not installed, is not.
const SHIM: Duration = Duration::from_secs(3);
/// What is said by programs that only stand for others.
const NOT_THERE: [&str; 4] =
    ["unknown binary", "not installed", "is not there", "command not found"];
/// How long one that failed may take to say why.
const WHY: Duration = Duration::from_millis(200);

/// What is started, and where.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) row: Arc<Row>,
    pub(crate) root: String,
    pub(crate) hold: Hold,
}

/// Why a server did not start.
#[derive(Debug)]
pub(crate) enum Broken {
    /// It is not installed.
    Absent,
    /// Something else.
    Failed(String),
}

impl Broken {
    pub(crate) fn late(limit: Duration) -> Broken {
        let after = limit.as_secs_f32();
        Broken::Failed(format!("it did not answer `initialize` within {after} s"))
    }
}

impl Row {
    /// What a model hears where its program is not there.
    pub(crate) fn absence(&self) -> String {
        let Row { name, install, .. } = self;
        let how = match install.as_str() {
            "" => String::new(),
            install => format!(" The person can get it: {install}."),
        };
        format!("{name} is not installed.{how} Search with grep meanwhile")
    }
}

impl Plan {
    /// Starts it and says hello. What keeps it running is there as soon as it runs.
    pub(crate) async fn meet(
        &self,
        estate: &Arc<Estate>,
        kept: &mut Option<Arc<Held>>,
    ) -> Result<Link, Broken> {
        let began = Instant::now();
        let servant = self.servant(estate).ok_or(Broken::Absent)?;
        let name = servant.name.clone();
        let engaged = estate.berth.engage(servant).await.map_err(|failure| match failure.text {
            text if says_missing(&text) => Broken::Absent,
            text => Broken::Failed(text),
        })?;
        let (writer, reader, held) = engaged.split();
        *kept = Some(Arc::clone(&held));
        let workspace = estate.workspace().root().to_owned();
        let folder = estate.whole(&self.root);
        let uri = Url::from_file_path(&folder).map(String::from);
        let uri = uri.map_err(|()| Broken::Failed("its folder has no address".into()))?;
        let called = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let terms = Terms {
            settings: estate.filled_in(&self.row.settings, &name),
            uri,
            name: called.unwrap_or_else(|| "root".into()),
        };
        let options = estate.filled_in(&self.row.initialization, &name);
        let met = Link::meet(Meeting {
            reader,
            writer,
            held: Some(Arc::clone(&held)),
            row: Arc::clone(&self.row),
            keeping: Arc::clone(&estate.keeping),
            workspace,
            root: folder,
            first: hello(&terms, options),
            terms,
            silence: estate.patience.answer,
        });
        let why = match met.await {
            Ok(link) => return Ok(link),
            Err(why) => why,
        };
        let ended = tokio::time::timeout(WHY, held.ended()).await.is_ok();
        if ended && began.elapsed() < SHIM && says_missing(&held.complaint()) {
            return Err(Broken::Absent);
        }
        Err(Broken::Failed(why))
    }

    /// `None` if its program is not there.
    fn servant(&self, estate: &Estate) -> Option<Servant> {
        let Plan { row, root, hold } = self;
        let name = format!("lsp/{}", row.name);
        let program = estate.program(row, root)?;
        let arguments = row.command.iter().skip(1);
        let arguments = arguments.filter_map(|word| estate.filled(word, &name)).map(OsString::from);
        let env = row.env.iter().filter_map(|(key, value)| {
            Some((OsString::from(key), OsString::from(estate.filled(value, &name)?)))
        });
        let keep =
            Keep { workspace: *hold, write: Vec::new(), network: Hosts::none(), walls: None };
        Some(Servant {
            program,
            arguments: arguments.collect(),
            env: env.collect(),
            folder: estate.whole(root),
            keep,
            name,
        })
    }
}

fn says_missing(text: &str) -> bool {
    let text = text.to_lowercase();
    NOT_THERE.iter().any(|words| text.contains(words))
}

/// What a server is told first. Our process has no number: it could not see it from its cage, and
/// many servers end when they do not see who started them.
fn hello(terms: &Terms, options: Value) -> Value {
    let mut params = json!({
        "processId": null,
        "clientInfo": {"name": "windlass", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": terms.uri,
        "workspaceFolders": terms.folders(),
        "capabilities": capabilities(),
    });
    if let (Some(params), false) = (params.as_object_mut(), options.is_null()) {
        params.insert("initializationOptions".into(), options);
    }
    params
}

/// What we say of ourselves.
fn capabilities() -> Value {
    let prose = json!(["markdown", "plaintext"]);
    json!({
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "textDocument": {
            "synchronization": {"didSave": true, "dynamicRegistration": false},
            "publishDiagnostics": {"versionSupport": true, "relatedInformation": true},
            // Some servers answer questions about findings only to those who say this.
            "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
            "hover": {"contentFormat": prose},
            "definition": {"linkSupport": true},
            "implementation": {"linkSupport": true},
            "references": {},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            "callHierarchy": {},
        },
        "workspace": {
            "applyEdit": false,
            "configuration": true,
            "workspaceFolders": true,
            "symbol": {},
            "didChangeConfiguration": {},
            "didChangeWatchedFiles": {
                "dynamicRegistration": true,
                "relativePatternSupport": true,
            },
            "diagnostics": {"refreshSupport": true},
        },
        "window": {"workDoneProgress": true},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_installed_is_known_by_what_is_said() {
        for text in [
            "error: Unknown binary 'rust-analyzer' in official toolchain 'stable'",
            "pyenv: pyright: command not found",
            "'rust-analyzer' is not installed for the toolchain",
        ] {
            assert!(says_missing(text), "{text}");
        }
        assert!(!says_missing("thread main panicked at index.rs"));
    }

    #[test]
    fn nobody_is_told_our_number() {
        let terms = Terms { settings: Value::Null, uri: "file:///w".into(), name: "w".into() };
        let said = hello(&terms, Value::Null);
        assert_eq!(said.get("processId"), Some(&Value::Null));
        assert!(said.get("initializationOptions").is_none());
        assert_eq!(hello(&terms, json!({"a": 1}))["initializationOptions"]["a"], 1);
    }
}
