//! Starts a language server in its own sandbox and performs the `initialize` handshake.

use crate::config::LspServerConfig;
use crate::connection::handshake::HandshakeParams;
use crate::connection::server_requests::ServerWorkspaceInfo;
use crate::documents::documents_and_diagnostics::DocumentsAndDiagnostics;
use crate::documents::lsp_client::LspClient;
use crate::pool::context::PoolContext;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use url::Url;
use windlass_sandbox::{
    HostAllowlist, ProcessHandle, ProcessSandboxAccess, ProcessSpec, WorkspaceAccess,
};

/// A program that exits sooner and prints one of `NOT_INSTALLED_PHRASES` counts as not installed.
const SHIM_EXIT_TIME: Duration = Duration::from_secs(3);
/// Messages of shims whose actual program is missing.
const NOT_INSTALLED_PHRASES: [&str; 4] =
    ["unknown binary", "not installed", "does not exist", "not found"];
/// Time for a failed server to exit, so that its stderr gives the reason.
const EXIT_REASON_TIMEOUT: Duration = Duration::from_millis(200);

/// `LspServerConfig`, project root and workspace access of a start.
#[derive(Clone)]
pub(crate) struct ServerStartPlan {
    pub(crate) config: Arc<LspServerConfig>,
    pub(crate) root: String,
    pub(crate) workspace_access: WorkspaceAccess,
}

/// Reasons for which a server did not start.
#[derive(Debug)]
pub(crate) enum LspStartError {
    NotInstalled,
    /// Any other reason.
    Failed(String),
}

impl LspStartError {
    pub(crate) fn timed_out(limit: Duration) -> LspStartError {
        let seconds = limit.as_secs_f32();
        LspStartError::Failed(format!("it did not answer `initialize` within {seconds} s"))
    }
}

impl LspServerConfig {
    /// Explains to the model that the program is missing, and how the user can install it.
    pub(crate) fn not_installed_text(&self) -> String {
        let LspServerConfig { name, install, .. } = self;
        let instructions = match install.as_str() {
            "" => String::new(),
            install => format!(" The user can install it: {install}."),
        };
        format!("{name} is not installed.{instructions} Use grep meanwhile")
    }
}

impl ServerStartPlan {
    /// Starts the process and performs the handshake. Sets `process_slot` as soon as the process
    /// runs.
    pub(crate) async fn start_and_initialize(
        &self,
        context: &Arc<PoolContext>,
        process_slot: &mut Option<Arc<ProcessHandle>>,
    ) -> Result<LspClient, LspStartError> {
        let started_at = Instant::now();
        let spec = self.process_spec(context).ok_or(LspStartError::NotInstalled)?;
        let name = spec.name.clone();
        let io = context.launcher.launch(spec).await.map_err(|failure| match failure.text {
            text if is_not_installed_message(&text) => LspStartError::NotInstalled,
            text => LspStartError::Failed(text),
        })?;
        let (writer, reader, process) = io.split();
        *process_slot = Some(Arc::clone(&process));
        let workspace = context.workspace().root();
        let folder = context.absolute_path(&self.root);
        let uri = Url::from_file_path(&folder).map(String::from);
        let uri = uri.map_err(|()| LspStartError::Failed("its folder has no valid URI".into()))?;
        let root_name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let workspace_info = ServerWorkspaceInfo {
            settings: context.fill_cache_placeholders(&self.config.settings, &name),
            root_uri: uri,
            root_name: root_name.unwrap_or_else(|| "root".into()),
        };
        let options = context.fill_cache_placeholders(&self.config.initialization, &name);
        let params = HandshakeParams {
            reader,
            writer,
            process: Some(Arc::clone(&process)),
            server_name: self.config.name.clone(),
            log: Arc::clone(&context.log),
            workspace: workspace.to_owned(),
            root: folder,
            initialize_params: initialize_params(&workspace_info, options),
            workspace_info,
            silence_limit: context.timeouts.answer,
        };
        let handshake = LspClient::handshake(params, |encoding| {
            DocumentsAndDiagnostics::new(workspace, encoding, &self.config)
        });
        let reason = match handshake.await {
            Ok(connection) => return Ok(connection),
            Err(reason) => reason,
        };
        let exited =
            tokio::time::timeout(EXIT_REASON_TIMEOUT, process.wait_for_exit()).await.is_ok();
        if exited
            && started_at.elapsed() < SHIM_EXIT_TIME
            && is_not_installed_message(&process.stderr_tail())
        {
            return Err(LspStartError::NotInstalled);
        }
        Err(LspStartError::Failed(reason))
    }

    /// Builds the process specification; `None` if the program is missing.
    fn process_spec(&self, context: &PoolContext) -> Option<ProcessSpec> {
        let ServerStartPlan { config, root, workspace_access } = self;
        let name = format!("lsp/{}", config.name);
        let program = context.find_program(config, root)?;
        let arguments = config.command.iter().skip(1);
        let arguments = arguments
            .filter_map(|argument| context.fill_cache_placeholder(argument, &name))
            .map(OsString::from);
        let env = config.env.iter().filter_map(|(key, value)| {
            Some((
                OsString::from(key),
                OsString::from(context.fill_cache_placeholder(value, &name)?),
            ))
        });
        let sandbox_access = ProcessSandboxAccess {
            workspace: *workspace_access,
            writable_folders: Vec::new(),
            hosts: HostAllowlist::none(),
            sandbox_mode: None,
        };
        Some(ProcessSpec {
            program,
            arguments: arguments.collect(),
            env: env.collect(),
            folder: context.absolute_path(root),
            sandbox_access,
            name,
        })
    }
}

fn is_not_installed_message(text: &str) -> bool {
    let text = text.to_lowercase();
    NOT_INSTALLED_PHRASES.iter().any(|phrase| text.contains(phrase))
}

/// Builds the parameters of `initialize`. `processId` is null: the server cannot see our process
/// from its sandbox, and many servers exit when they do not see their parent.
fn initialize_params(workspace_info: &ServerWorkspaceInfo, options: Value) -> Value {
    let mut params = json!({
        "processId": null,
        "clientInfo": {"name": "windlass", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": workspace_info.root_uri,
        "workspaceFolders": workspace_info.workspace_folders(),
        "capabilities": client_capabilities(),
    });
    if !options.is_null()
        && let Some(params) = params.as_object_mut()
    {
        params.insert("initializationOptions".into(), options);
    }
    params
}

/// Returns the client capabilities for `initialize`.
fn client_capabilities() -> Value {
    let formats = json!(["markdown", "plaintext"]);
    json!({
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "textDocument": {
            "synchronization": {"didSave": true, "dynamicRegistration": false},
            "publishDiagnostics": {"versionSupport": true, "relatedInformation": true},
            // Some servers answer diagnostic pulls only if the client announces this.
            "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
            "hover": {"contentFormat": formats},
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
    fn a_missing_program_is_recognized_by_its_message() {
        for text in [
            "error: Unknown binary 'rust-analyzer' in official toolchain 'stable'",
            "pyenv: pyright: command not found",
            "'rust-analyzer' is not installed for the toolchain",
        ] {
            assert!(is_not_installed_message(text), "{text}");
        }
        assert!(!is_not_installed_message("thread main panicked at index.rs"));
    }

    #[test]
    fn our_process_id_is_not_sent() {
        let workspace_info = ServerWorkspaceInfo {
            settings: Value::Null,
            root_uri: "file:///w".into(),
            root_name: "w".into(),
        };
        let params = initialize_params(&workspace_info, Value::Null);
        assert_eq!(params.get("processId"), Some(&Value::Null));
        assert!(params.get("initializationOptions").is_none());
        assert_eq!(
            initialize_params(&workspace_info, json!({"a": 1}))["initializationOptions"]["a"],
            1
        );
    }
}
