//! Starts long-running processes: from a grant to a program in its sandbox, with three pipes.
//!
//! Processes belong to the workspace and not to a session, so they have their own supervisor. Each
//! has its own temporary folder, so that files one process leaves there do not affect another.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox crate is the only one that starts processes; it also creates the \
              folders they run in"
)]

use crate::command::environment::{CommandEnvironmentOptions, command_environment};
use crate::command::start::usable_folders;
use crate::command::workspace_jobs::{SessionJobs, WorkspaceJobs, create_temp_dir_in};
use crate::confine::{self, SandboxBackend, SandboxProfile};
use crate::network::command_network::{CommandNetwork, NetworkConsent};
use crate::network::policy::NetworkPolicy;
use crate::path_lookup::{MachinePathLookup, is_executable};
use crate::process::handle::ProcessHandle;
use crate::process::spec::{ProcessIo, ProcessSpec, WorkspaceAccess};
use crate::supervisor::client::{ProcessSpawnSpec, SpawnedProcess, SupervisedProcess};
use crate::{Error, SandboxMode, Workspace};
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::unix::pipe::{Receiver, Sender};
use windlass_permission::Grant;
use windlass_protocol::PermissionMode;

const PROCESSES_UNAVAILABLE: &str = "processes cannot be started here";
const NO_SANDBOX_MESSAGE: &str = "this machine has no sandbox for it. Run `windlass doctor` to \
                                  see what is missing, or set \"sandbox\": false for it in your \
                                  own config to start it without one";
const PLAN_MODE_MESSAGE: &str = "plan mode allows no changes, and without a sandbox nothing \
                                 would prevent them. Use it in another mode";

/// Variable that directs programs to the process's own cache folder.
const CACHE_HOME_VARIABLE: &str = "XDG_CACHE_HOME";
/// Cache variables of tools that have their own, each with a subfolder of the `CACHE_HOME_VARIABLE`
/// folder.
const TOOL_CACHE_VARIABLES: [(&str, &str); 3] =
    [("npm_config_cache", "npm"), ("PIP_CACHE_DIR", "pip"), ("UV_CACHE_DIR", "uv")];

impl Workspace {
    /// Starts a process that runs until its last [`ProcessHandle`] or the workspace is dropped. It
    /// runs in the sandbox that its [`crate::ProcessSandboxAccess`] describes or not at all. In plan mode
    /// it can change nothing but its own cache folder.
    pub async fn start_process(
        &self,
        grant: &Grant,
        process_spec: ProcessSpec,
    ) -> Result<ProcessIo, Error> {
        if !grant.covers(&process_spec.required_access()) {
            return Err(Error::NotGranted { path: process_spec.name });
        }
        let name = process_spec.name.clone();
        let to_process_error = |error: Error| match error {
            Error::NotStarted { reason } | Error::SandboxUnavailable { reason } => {
                Error::ProcessNotStarted { process: name.clone(), reason }
            }
            other => other,
        };
        self.spawn_process(grant.mode(), process_spec).await.map_err(to_process_error)
    }

    /// Ends all processes. None runs on return; new ones can be started.
    pub async fn stop_processes(&self) {
        let session_jobs =
            self.jobs.as_ref().and_then(|workspace_jobs| workspace_jobs.take_processes());
        if let Some(session_jobs) = session_jobs {
            session_jobs.supervisor.end_all().await;
        }
    }

    async fn spawn_process(
        &self,
        mode: PermissionMode,
        process_spec: ProcessSpec,
    ) -> Result<ProcessIo, Error> {
        let workspace_jobs =
            self.jobs.as_ref().ok_or_else(|| not_started(PROCESSES_UNAVAILABLE))?;
        let backend = choose_backend(&process_spec, &workspace_jobs.config.sandbox_mode, mode)?;
        let cache_folder = self
            .process_folder(&process_spec.name)
            .map(|folder| create_process_folder(&folder))
            .transpose()?;
        if !process_spec.folder.is_absolute() || !process_spec.folder.is_dir() {
            let folder = process_spec.folder.display();
            return Err(not_started(format!("the folder {folder} does not exist")));
        }
        let program = find_program(&process_spec, &workspace_jobs.machine_paths)?;
        let hosts = match &workspace_jobs.config.network_policy {
            NetworkPolicy::Listed(_) => process_spec.sandbox_access.hosts.clone(),
            NetworkPolicy::Enforced(enforced) => {
                process_spec.sandbox_access.hosts.clone().intersect(enforced.clone())
            }
        };
        let network = CommandNetwork::prepare(
            &backend,
            &NetworkPolicy::Listed(hosts),
            NetworkConsent::None,
            self.network.upstream.clone(),
        )?;
        let session_jobs = workspace_jobs.get_or_open_processes()?;
        let temp_dir = create_temp_dir_in(session_jobs.temp_dir.path()).map_err(not_started)?;
        let (mut profile, mut notes) = self.process_sandbox_profile(
            workspace_jobs,
            &process_spec,
            mode,
            cache_folder.as_deref(),
        );
        profile.backend = backend;
        profile.network = network.network_access();
        profile.temp_dir = temp_dir.path().to_owned();
        notes.extend(network.note().map(str::to_owned));
        let env = process_environment(
            workspace_jobs,
            &network,
            cache_folder.as_deref(),
            process_spec.env,
        );
        let spawn_spec = ProcessSpawnSpec {
            name: process_spec.name.clone(),
            program,
            arguments: process_spec.arguments,
            folder: process_spec.folder,
            env,
            sandbox: profile.clone(),
        };
        let SpawnedProcess { process, stdin, stdout } =
            session_jobs.supervisor.start_process(spawn_spec).await?;
        clean_up_on_exit(Arc::downgrade(&session_jobs), process.clone(), temp_dir);
        let secrets = network.secrets();
        // From here on the process ends with its handle, also if a step fails.
        let host_log = network
            .serve_proxy(&process)
            .inspect_err(|_| process.kill_without_waiting(Duration::ZERO))?;
        let handle = Arc::new(ProcessHandle::new(
            process_spec.name,
            process,
            profile,
            host_log,
            notes,
            secrets,
        ));
        let stdin = Sender::from_owned_fd(stdin).map_err(not_started)?;
        let stdout = Receiver::from_owned_fd(stdout).map_err(not_started)?;
        Ok(ProcessIo { stdin, stdout, handle })
    }

    /// Returns the [`SandboxProfile`] of a process, without the backend, the network access and the
    /// temporary folder.
    fn process_sandbox_profile(
        &self,
        workspace_jobs: &WorkspaceJobs,
        process_spec: &ProcessSpec,
        mode: PermissionMode,
        cache_folder: Option<&Path>,
    ) -> (SandboxProfile, Vec<String>) {
        let root = self.root().to_owned();
        let may_change = mode != PermissionMode::Plan;
        let workspace_writable =
            process_spec.sandbox_access.workspace.in_mode(mode) == WorkspaceAccess::Write;
        let (mut extra_writable, notes) = match may_change {
            true => usable_folders(
                &process_spec.sandbox_access.writable_folders,
                &root,
                &process_spec.name,
            ),
            false => (Vec::new(), Vec::new()),
        };
        extra_writable.extend(cache_folder.map(Path::to_owned));
        let home = workspace_jobs.config.home.as_deref();
        let hidden_paths = home.map(confine::secret_paths).unwrap_or_default();
        let profile = SandboxProfile {
            backend: SandboxBackend::Off,
            workspace_writable,
            extra_writable,
            cache_folders: Vec::new(),
            temp_dir: PathBuf::new(),
            readable_paths: paths_below_temp_folders(process_spec, &root, &hidden_paths),
            hidden_paths,
            private_paths: workspace_jobs.config.private_paths.clone(),
            protected_paths: if workspace_writable {
                confine::protected_paths(&root)
            } else {
                Vec::new()
            },
            network: confine::NetworkAccess::None,
            loopback: confine::LoopbackScope::Command,
            root,
        };
        (profile, notes)
    }
}

/// Returns the files that the process is started with, if they lie below a folder for temporary
/// files, which the sandbox replaces: its program, and the arguments and variables that are paths.
/// The folder around a file is included, because a program has other files beside it. Hidden paths
/// stay hidden, and the workspace is shown in any case.
fn paths_below_temp_folders(
    process_spec: &ProcessSpec,
    root: &Path,
    hidden: &[PathBuf],
) -> Vec<PathBuf> {
    let temp_folders = ["/tmp", "/var/tmp"].map(Path::new);
    let arguments = process_spec.arguments.iter().map(PathBuf::from);
    let variables = process_spec.env.iter().map(|(_, value)| PathBuf::from(value));
    let named = [process_spec.program.clone()].into_iter().chain(arguments).chain(variables);
    let mut paths = Vec::new();
    let is_normal = |path: &PathBuf| {
        path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
    };
    for path in named.filter(is_normal) {
        let real = path.canonicalize().ok();
        for path in [Some(path), real].into_iter().flatten() {
            let base = temp_folders.iter().find(|base| path.starts_with(base));
            let Some(base) = base.filter(|_| path.is_file() || path.is_dir()) else { continue };
            let folder = path.parent().filter(|_| path.is_file()).unwrap_or(&path);
            let prefix = folder.parent().filter(|_| folder.ends_with("bin")).unwrap_or(folder);
            let shown = [prefix, folder, &path].into_iter().find(|shown| shown != base);
            // A link may lead elsewhere.
            let Some(shown) = shown.and_then(|shown| shown.canonicalize().ok()) else { continue };
            let is_hidden =
                hidden.iter().any(|hidden| shown.starts_with(hidden) || hidden.starts_with(&shown));
            let is_inside = shown.starts_with(root) || root.starts_with(&shown);
            let is_temporary =
                temp_folders.iter().any(|base| shown.starts_with(base) && shown != *base);
            if is_temporary && !is_hidden && !is_inside {
                paths.push(shown);
            }
        }
    }
    paths
}

/// Chooses the sandbox backend. Returns `Backend::Off` only if the configuration says so.
fn choose_backend(
    process_spec: &ProcessSpec,
    sandbox: &SandboxMode,
    mode: PermissionMode,
) -> Result<SandboxBackend, Error> {
    let sandbox = process_spec.sandbox_access.sandbox_mode.as_ref().unwrap_or(sandbox);
    match (sandbox, sandbox.backend()) {
        (SandboxMode::Best | SandboxMode::Exactly(_), SandboxBackend::Off) => {
            Err(not_started(NO_SANDBOX_MESSAGE))
        }
        (_, SandboxBackend::Off) if mode == PermissionMode::Plan => {
            Err(not_started(PLAN_MODE_MESSAGE))
        }
        (_, backend) => Ok(backend),
    }
}

/// Creates the process's own cache folder and returns its real path.
fn create_process_folder(folder: &Path) -> Result<PathBuf, Error> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created
        .and_then(|()| folder.canonicalize())
        .map_err(|error| not_started(format!("{}: {error}", folder.display())))
}

/// Finds the program of a [`ProcessSpec`] and checks that it is executable.
fn find_program(process_spec: &ProcessSpec, paths: &MachinePathLookup) -> Result<PathBuf, Error> {
    let name = &process_spec.program;
    let is_bare = name.parent() == Some(Path::new(""));
    let program = match is_bare {
        true => paths.find_installed(name),
        false => Some(process_spec.folder.join(name)),
    };
    let name = name.display();
    let missing = || match is_bare {
        true => format!("{name} is not installed, or not in PATH"),
        false => format!("{name} does not exist"),
    };
    let program = program.ok_or_else(|| not_started(missing()))?;
    match program.is_file() {
        true if is_executable(&program) => Ok(program),
        true => Err(not_started(format!("{name} is not executable; run `chmod +x` on it"))),
        false => Err(not_started(missing())),
    }
}

/// Returns the whole environment of a process. Later entries override earlier ones.
fn process_environment(
    workspace_jobs: &WorkspaceJobs,
    network: &CommandNetwork,
    cache_folder: Option<&Path>,
    extra: Vec<(OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let shell = &workspace_jobs.config;
    let options = CommandEnvironmentOptions { has_terminal: false, git_hooks: shell.git_hooks };
    let mut env = command_environment(shell.inherited_env.iter().cloned(), &options);
    env.extend(
        network.proxy_variables().into_iter().map(|(name, value)| (name.into(), value.into())),
    );
    if let Some(cache_folder) = cache_folder {
        env.push((CACHE_HOME_VARIABLE.into(), cache_folder.as_os_str().to_owned()));
        env.extend(
            TOOL_CACHE_VARIABLES.map(|(name, subfolder)| {
                (name.into(), cache_folder.join(subfolder).into_os_string())
            }),
        );
    }
    env.extend(extra);
    env
}

/// Forgets a process and removes its temporary files once `wait_until_gone` returns.
fn clean_up_on_exit(
    session_jobs: Weak<SessionJobs>,
    process: SupervisedProcess,
    temp_dir: TempDir,
) {
    // The task ends with the process, which ends with the workspace.
    tokio::spawn(async move {
        process.wait_until_gone().await;
        if let Some(session_jobs) = session_jobs.upgrade() {
            session_jobs.supervisor.forget(&process);
        }
        // If the runtime shuts down, it still drops `temp`.
        let _ = tokio::task::spawn_blocking(move || drop(temp_dir)).await;
    });
}

fn not_started(reason: impl ToString) -> Error {
    Error::NotStarted { reason: reason.to_string() }
}
