//! The pool of all language servers of a workspace, and the selection of servers for a file.
//!
//! The pool evaluates matching rows, project roots and installed programs anew for every file, and
//! starts nothing to do so. Start reading at [`ServerPool::servers_for`].

pub(crate) mod context;
pub(crate) mod server;
pub(crate) mod start;

use crate::background_tasks::BackgroundTasks;
use crate::config::{LspConfig, LspServerConfig, LspTimeouts};
use crate::diagnostics::late::LateDiagnostics;
use crate::pool::context::{PoolContext, file_exists, parent_folder};
use crate::pool::server::LspServer;
use crate::pool::server::started_servers::StartedServers;
use crate::project_markers::{ancestors, join_path};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use windlass_protocol::PermissionMode;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::{CallWorkspace, Workspace, WorkspaceAccess};
use windlass_toolkit::process_health::ProcessHealthState;

const MAX_SERVERS_PER_FILE: usize = 3;

/// All language servers of a workspace.
pub(crate) struct ServerPool {
    configs: Vec<Arc<LspServerConfig>>,
    context: Arc<PoolContext>,
    /// Servers by row, root and `WorkspaceAccess`.
    servers: Mutex<BTreeMap<(usize, String, WorkspaceAccess), Arc<LspServer>>>,
    started: Arc<StartedServers>,
    background_tasks: BackgroundTasks,
    late_diagnostics: Arc<LateDiagnostics>,
}

/// Result of matching a server row with a file.
enum ServerConfigMatch {
    /// The server serves the file from this project root.
    Serves(String),
    NotInstalled,
    /// The file belongs to no project of the server's kind.
    NoProject,
}

impl ServerPool {
    pub(crate) fn new(config: LspConfig) -> ServerPool {
        let LspConfig { servers, launcher, log, timeouts, changes } = config;
        ServerPool {
            configs: servers.into_iter().map(Arc::new).collect(),
            context: Arc::new(PoolContext::new(launcher, log, timeouts, changes)),
            servers: Mutex::default(),
            started: Arc::default(),
            background_tasks: BackgroundTasks::default(),
            late_diagnostics: Arc::default(),
        }
    }

    /// Returns the workspace of the servers.
    pub(crate) fn workspace(&self) -> &Workspace {
        self.context.workspace()
    }

    /// Returns the time limits.
    pub(crate) fn timeouts(&self) -> &LspTimeouts {
        &self.context.timeouts
    }

    /// Returns the `LateDiagnostics` that sessions still wait for.
    pub(crate) fn late_diagnostics(&self) -> &Arc<LateDiagnostics> {
        &self.late_diagnostics
    }

    /// Returns the servers of a file: that of its language first, then the `additional` ones.
    /// Starts nothing and never waits.
    pub(crate) fn servers_for(&self, granted: &CallWorkspace, path: &str) -> Vec<Arc<LspServer>> {
        // No server serves a file outside the workspace.
        if path.starts_with('/') {
            return Vec::new();
        }
        let mut main: Vec<(&str, Arc<LspServer>)> = Vec::new();
        let mut additional = Vec::new();
        for (index, config) in self.configs.iter().enumerate() {
            let is_taken = |(language, _): &(&str, _)| *language == config.language;
            if config.language_id(path).is_none()
                || (!config.additional && main.iter().any(is_taken))
            {
                continue;
            }
            if let ServerConfigMatch::Serves(root) = self.match_config(granted, config, path) {
                let server = self.get_or_create(index, config, root, granted.mode());
                if config.additional {
                    additional.push(server);
                } else {
                    main.push((&config.language, server));
                }
            }
        }
        let main = main.into_iter().map(|(_, server)| server);
        main.chain(additional).take(MAX_SERVERS_PER_FILE).collect()
    }

    /// Explains to the model why no server serves a file; `None` if one does.
    pub(crate) fn no_server_text(&self, granted: &CallWorkspace, path: &str) -> Option<String> {
        let mut missing = None;
        for config in self.configs.iter().filter(|config| config.language_id(path).is_some()) {
            match self.match_config(granted, config, path) {
                ServerConfigMatch::Serves(_) => return None,
                ServerConfigMatch::NotInstalled if missing.is_none() => {
                    missing = Some(config.not_installed_text())
                }
                ServerConfigMatch::NotInstalled | ServerConfigMatch::NoProject => {}
            }
        }
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let files = match name.rsplit_once('.') {
            Some((_, extension)) => format!(".{extension} files"),
            None => name.to_owned(),
        };
        let hint = missing.map_or("; use grep".to_owned(), |reason| format!(": {reason}"));
        Some(format!("no language server is available for {files}{hint}"))
    }

    /// Returns the servers in the state `Ready`.
    pub(crate) fn running_servers(&self) -> Vec<Arc<LspServer>> {
        self.find_servers(|server| matches!(server.state(), ProcessHealthState::Ready { .. }))
    }

    /// Returns the servers whose project root is the workspace root (`.`).
    pub(crate) fn root_servers(&self, granted: &CallWorkspace) -> Vec<Arc<LspServer>> {
        let workspace = self.workspace();
        let mut servers: Vec<(&str, Arc<LspServer>)> = Vec::new();
        for (index, config) in self.configs.iter().enumerate() {
            let is_taken = servers.iter().any(|(language, _)| *language == config.language);
            let is_root = || config.roots.iter().flatten().any(|name| file_exists(workspace, name));
            let is_installed = || self.context.find_program(config, ".").is_some();
            let meets_requirements =
                || config.requires.iter().all(|marker| marker.is_present(granted, "."));
            if !is_taken
                && !config.additional
                && is_root()
                && is_installed()
                && meets_requirements()
            {
                servers.push((
                    &config.language,
                    self.get_or_create(index, config, ".".into(), granted.mode()),
                ));
            }
        }
        servers.into_iter().map(|(_, server)| server).collect()
    }

    /// Returns name, root and `ProcessHealthState` of every server requested so far.
    pub(crate) fn states(&self) -> Vec<(String, String, ProcessHealthState)> {
        let servers = lock(&self.servers);
        let state = |server: &Arc<LspServer>| {
            (server.config().name.clone(), server.root().to_owned(), server.state())
        };
        servers.values().map(state).collect()
    }

    /// Stops the servers of this name and starts them again, also those that are `GivenUp`. The
    /// error is a sentence for the user.
    pub(crate) async fn restart(&self, name: &str) -> Result<(), String> {
        let servers = self.find_servers(|server| server.config().name == name);
        if servers.is_empty() {
            return Err(format!("{name} is not running; it starts with the first file it serves"));
        }
        for server in &servers {
            server.suspend();
        }
        for server in &servers {
            server.connect(self.timeouts().start).await?;
        }
        Ok(())
    }

    /// Waits until no server is starting. A start has a time limit.
    pub(crate) async fn wait_until_settled(&self) {
        let is_starting = |server: &LspServer| server.state() == ProcessHealthState::Starting;
        for server in self.find_servers(is_starting) {
            // The state of the server tells the result.
            let _ = server.connect(self.timeouts().start).await;
        }
    }

    fn find_servers(&self, is_wanted: impl Fn(&LspServer) -> bool) -> Vec<Arc<LspServer>> {
        let servers = lock(&self.servers);
        servers.values().filter(|server| is_wanted(server)).cloned().collect()
    }

    /// Returns the background tasks, which stop with the pool.
    pub(crate) fn background_tasks(&self) -> &BackgroundTasks {
        &self.background_tasks
    }

    /// Stops all servers for good.
    pub(crate) async fn close(&self) {
        self.background_tasks.abort_all();
        let servers: Vec<_> = lock(&self.servers).values().cloned().collect();
        let mut shutdowns = JoinSet::new();
        for server in servers {
            shutdowns.spawn(async move { server.close().await });
        }
        while shutdowns.join_next().await.is_some() {}
    }

    fn match_config(
        &self,
        granted: &CallWorkspace,
        config: &LspServerConfig,
        path: &str,
    ) -> ServerConfigMatch {
        let Some(root) = self.project_root(config, path) else {
            return ServerConfigMatch::NoProject;
        };
        let is_installed = self.context.find_program(config, root).is_some();
        if !config.requires.iter().all(|marker| marker.is_present(granted, parent_folder(path))) {
            ServerConfigMatch::NoProject
        } else if is_installed {
            ServerConfigMatch::Serves(root.to_owned())
        } else {
            ServerConfigMatch::NotInstalled
        }
    }

    /// Returns the root of the project that a file belongs to.
    fn project_root<'a>(&self, config: &LspServerConfig, path: &'a str) -> Option<&'a str> {
        let workspace = self.workspace();
        let find_root = |tier: &Vec<String>| {
            let has_marker = |folder: &&str| {
                tier.iter().any(|name| file_exists(workspace, &join_path(folder, name)))
            };
            ancestors(parent_folder(path)).find(has_marker)
        };
        config.roots.iter().find_map(find_root).or(config.single_file.then_some("."))
    }

    fn get_or_create(
        &self,
        index: usize,
        config: &Arc<LspServerConfig>,
        root: String,
        mode: PermissionMode,
    ) -> Arc<LspServer> {
        let access =
            if config.write { WorkspaceAccess::Write.in_mode(mode) } else { WorkspaceAccess::Read };
        let mut servers = lock(&self.servers);
        let server = servers.entry((index, root.clone(), access));
        let create =
            || LspServer::new(Arc::clone(config), root, access, &self.context, &self.started);
        Arc::clone(server.or_insert_with(create))
    }
}

#[cfg(test)]
mod tests;
