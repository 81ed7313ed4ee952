//! Implements `windlass serve`: sessions that outlive the terminal, for clients over a socket and TCP.
//!
//! The order of the start matters: lock, TCP, socket, sessions that were under way, clients. An
//! address that is in use cuts no turn off, and clients that connect early wait until the sessions
//! of the last server are open again. A node of a fleet joins it after TCP, because the other nodes
//! learn its address, and claims sessions instead of opening the last ones. Start reading at
//! [`run_serve`].

mod access_log;
mod fleet;
mod fleet_metrics;
mod metrics;
mod served_sessions;
mod tenant_hubs;
mod tokens;

pub(crate) use tokens::describe_expiry;

use crate::args::{ServeArgs, ServeCommand};
use crate::checkouts::Checkouts;
use crate::fleet_node;
use crate::sealed_keys::SealingKeys;
use crate::setup::LoadedProject;
use crate::terminal::output;
use crate::terminal::question_queue::ServerSignals;
use crate::{CliExit, now_millis};
use access_log::AccessLog;
use anyhow::{Context, bail};
use fleet::JoinedFleet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenant_hubs::TenantHubs;
use tokens::LockedTokens;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass_project::{Dirs, MAX_SOCKET_PATH_BYTES, ServerFiles, ServerLock};
use windlass_protocol::{ClientKind, Fault};
use windlass_server::{
    ApiServer, FrontendService, ServerConfig, SocketEndpoint, TcpEndpoint, TcpSecurity, TlsIdentity,
};
use windlass_storage::postgres::ObjectStorage;

/// Time for sessions to end when the lease of the node was lost. With the time without a renewal, it
/// is shorter than the lease.
const LEASE_LOST_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for sessions to end when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a server to stop that `windlass serve stop` has asked to.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Number of files that may be open: those of all connections and streams, and of sessions.
const MAX_OPEN_FILES: u64 = 4096;
/// Limit for a file with a certificate or a key.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Runs `windlass serve` and its subcommands.
pub(crate) async fn run_serve(args: ServeArgs) -> anyhow::Result<CliExit> {
    let (mut dirs, root) = LoadedProject::find_dirs()?;
    let files = ServerFiles::new(&dirs);
    match args.command {
        Some(ServeCommand::Token(command)) => return tokens::run_token(command, &files).await,
        Some(ServeCommand::Stop) => return stop_server(&files).await,
        None => {}
    }
    if cfg!(not(unix)) && args.listen.is_none() {
        bail!("this system has no Unix sockets. Name an address, such as --listen 127.0.0.1:4270");
    }
    LoadedProject::raise_open_file_limit(MAX_OPEN_FILES);
    let socket = socket_path(&args, &files)?;
    let Some(lock) = files.try_lock(&socket)? else {
        bail!("a server is running already; see `windlass ps`. To end it: `windlass serve stop`");
    };
    let tokens = LockedTokens::load(&files)?;
    let roots = served_roots(&args.root, &dirs, root)?;
    let checkouts = args.checkouts.as_ref().map(|folder| Checkouts::new(folder, &roots));
    let checkouts = checkouts.transpose()?.map(Arc::new);
    if let Some(checkouts) = &checkouts {
        dirs.checkouts = checkouts.folders();
    }
    let objects = args.object_store.as_deref().map(fleet_node::open_object_store).transpose()?;
    let sealing_keys = args.key_file.as_deref().map(SealingKeys::read).transpose()?;
    let setup = ServeSetup {
        roots,
        checkouts,
        objects,
        sealing_keys,
        security: tcp_security(&args)?,
        args,
        dirs,
        files,
        socket,
        lock,
        tokens,
    };
    let mut signals = ServerSignals::new()?;
    let mut has_joined = false;
    while let ServeEnd::LeaseLost = setup.serve(&mut signals, has_joined).await? {
        has_joined = true;
        output::print_note("joining the fleet again");
    }
    Ok(CliExit::Done)
}

/// The parts of a server that stay when a node of a fleet has to start again.
struct ServeSetup {
    args: ServeArgs,
    dirs: Dirs,
    roots: Vec<PathBuf>,
    /// The checkouts of sessions, if they have their own.
    checkouts: Option<Arc<Checkouts>>,
    /// The store of large blobs, if the fleet has one.
    objects: Option<ObjectStorage>,
    /// Open the API keys of tenants.
    sealing_keys: Option<SealingKeys>,
    security: TcpSecurity,
    files: ServerFiles,
    socket: PathBuf,
    lock: ServerLock,
    tokens: LockedTokens,
}

/// The reason why a server ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServeEnd {
    /// The user has stopped it.
    Stopped,
    /// The lease of the node was lost: other nodes go on with its sessions.
    LeaseLost,
}

impl ServeSetup {
    /// Serves clients until the user stops the server, or the node loses its lease.
    /// A server that has been part of the fleet waits for the database.
    async fn serve(
        &self,
        signals: &mut ServerSignals,
        has_joined: bool,
    ) -> anyhow::Result<ServeEnd> {
        let tcp_endpoint = bind_tcp(&self.args, &self.security).await?;
        let fleet = match &self.args.fleet {
            Some(url) => {
                let joining = fleet::join(url, self, (tcp_endpoint.as_ref(), has_joined));
                tokio::select! {
                    joined = joining => Some(joined?),
                    () = signals.wait() => return Ok(ServeEnd::Stopped),
                }
            }
            None => None,
        };
        let hubs = TenantHubs::new(self, fleet.as_ref().map(|joined| &joined.node));
        let hub = Arc::clone(&hubs.own);
        // A broken config of a root is reported before anything is served.
        for root in &self.roots {
            hub.workspace(root).await?.state().inspect_engine().await?;
        }
        // A client of a tenant that connects at once is known.
        if let Err(error) = hubs.refresh(self).await {
            if !has_joined {
                return Err(error.into());
            }
            output::print_error(&format!("the tenants were not read: {error}"));
            hubs.shut_down_at_once(LEASE_LOST_TIMEOUT).await;
            return Ok(ServeEnd::LeaseLost);
        }
        let server = new_server(self, &hubs, fleet.as_ref());
        let endpoint = bind_socket(&self.files, (&self.lock, &self.socket))?;
        if fleet.is_none() {
            served_sessions::resume_sessions(&hub, &self.files).await?;
        }
        let stop = CancellationToken::new();
        let listeners = self.start_listeners(&server, (endpoint, tcp_endpoint), &stop);
        let names: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        output::print_note(&format!(
            "serving {}. `windlass attach` opens the terminal UI, Ctrl-C stops the server",
            names.join(", ")
        ));
        let end = match &fleet {
            Some(joined) => {
                fleet::follow_fleet(&hubs, joined);
                let is_leaving = Notify::new();
                tokio::select! {
                    () = signals.wait() => ServeEnd::Stopped,
                    () = is_leaving.notified() => ServeEnd::Stopped,
                    () = fleet::claim_and_refresh(&hubs, self, joined) => ServeEnd::Stopped,
                    reason = joined.node.keep_lease(|| is_leaving.notify_one()) => {
                        output::print_error(&format!(
                            "{reason}. Its sessions are closed here, and go on where a node has \
                             a lease"
                        ));
                        ServeEnd::LeaseLost
                    }
                }
            }
            None => {
                hub.follow_served_sessions(self.files.clone(), stop.clone());
                signals.wait().await;
                ServeEnd::Stopped
            }
        };
        if end == ServeEnd::Stopped {
            let next = match &fleet {
                Some(_) => "the other nodes of the fleet go on with turns under way",
                None => "turns under way resume when the server starts again",
            };
            output::print_note(&format!("stopping; {next}"));
        }
        // The streams of clients end before their sessions fail.
        stop.cancel();
        if let (Some(joined), ServeEnd::LeaseLost) = (&fleet, end) {
            joined.node.node.abandon();
        }
        if fleet.is_none() {
            // Sessions of a server that stops in order are not the reason.
            let open = hub.subscribe_to_open_sessions().borrow().clone();
            served_sessions::save_open(&self.files, &open, true)?;
        }
        let end = tokio::select! {
            () = self.close(&hubs, listeners, (fleet.as_ref(), end)) => end,
            // A second signal ends a server that stops, and one that would join again.
            () = signals.wait() => ServeEnd::Stopped,
        };
        // The next server would remove it, too. It must not be that one's socket, so the lock is held.
        let _ = LoadedProject::remove_socket(&self.socket);
        Ok(end)
    }

    /// Ends the listeners and all sessions.
    async fn close(
        &self,
        hubs: &TenantHubs,
        mut listeners: JoinSet<()>,
        (fleet, end): (Option<&JoinedFleet>, ServeEnd),
    ) {
        let end_of_listeners = async { while listeners.join_next().await.is_some() {} };
        let Some(joined) = fleet else {
            end_of_listeners.await;
            hubs.shut_down(CLOSE_TIMEOUT).await;
            return;
        };
        if end == ServeEnd::Stopped {
            let leaving = async { tokio::join!(end_of_listeners, fleet::leave(hubs, joined)) };
            tokio::select! {
                _ = leaving => return,
                // The sessions may be those of other nodes now.
                _ = joined.node.keep_lease(|| {}) => joined.node.node.abandon(),
            }
        }
        hubs.shut_down_at_once(LEASE_LOST_TIMEOUT).await;
    }

    fn start_listeners(
        &self,
        server: &Arc<ApiServer>,
        (socket, tcp): (Option<SocketEndpoint>, Option<TcpEndpoint>),
        stop: &CancellationToken,
    ) -> JoinSet<()> {
        let mut listeners = JoinSet::new();
        if let Some(endpoint) = socket {
            listeners.spawn(Arc::clone(server).serve_socket(endpoint, stop.clone()));
        }
        if let Some(endpoint) = tcp {
            let (server, stop) = (Arc::clone(server), stop.clone());
            let security = self.security.clone();
            listeners.spawn(async move {
                if let Err(error) = server.serve_tcp(endpoint, security, stop).await {
                    output::print_error(&format!("the TCP listener failed: {error}"));
                }
            });
        }
        listeners
    }
}

/// Listens on the socket, if this system has Unix sockets.
fn bind_socket(
    files: &ServerFiles,
    (lock, socket): (&ServerLock, &Path),
) -> anyhow::Result<Option<SocketEndpoint>> {
    if cfg!(not(unix)) {
        return Ok(None);
    }
    files.remove_stale_socket(lock, socket)?;
    let endpoint = SocketEndpoint::bind(socket);
    Ok(Some(endpoint.with_context(|| format!("cannot listen on {}", socket.display()))?))
}

/// Listens on the address of `--listen`, if there is one.
async fn bind_tcp(args: &ServeArgs, security: &TcpSecurity) -> anyhow::Result<Option<TcpEndpoint>> {
    let Some(address) = &args.listen else { return Ok(None) };
    let endpoint = TcpEndpoint::bind(address, security)
        .await
        .with_context(|| format!("cannot listen on {address}"))?;
    let scheme = if matches!(security, TcpSecurity::Tls(_)) { "https" } else { "http" };
    output::print_note(&format!("listening on {scheme}://{}", endpoint.local_address()?));
    Ok(Some(endpoint))
}

/// Returns the folders of `--root`, or the current project.
fn served_roots(
    folders: &[PathBuf],
    dirs: &Dirs,
    project: PathBuf,
) -> anyhow::Result<Vec<PathBuf>> {
    if folders.is_empty() {
        return Ok(vec![LoadedProject::real_folder(&project).unwrap_or(project)]);
    }
    let mut roots = Vec::new();
    for folder in folders {
        let root = LoadedProject::real_folder(folder)
            .with_context(|| format!("{} is not a folder", folder.display()))?;
        LoadedProject::check_root(dirs, &root)?;
        if !roots.contains(&root) {
            roots.push(root);
        }
    }
    Ok(roots)
}

fn new_server(
    setup: &ServeSetup,
    hubs: &Arc<TenantHubs>,
    fleet: Option<&JoinedFleet>,
) -> Arc<ApiServer> {
    let (roots, known) = (setup.roots.clone(), Arc::downgrade(hubs));
    let log = AccessLog::default();
    let own_host = fleet.and_then(|joined| joined.host.clone());
    let config = ServerConfig {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host_name: LoadedProject::host_name(),
        roots: Box::new(move |tenant| {
            known.upgrade().map(|hubs| hubs.root_names(tenant, &roots)).unwrap_or_default()
        }),
        user_name: crate::local_client(ClientKind::Program).name,
        extra_hosts: setup.args.host.iter().cloned().chain(own_host).collect(),
        tokens: Arc::clone(&setup.tokens.tokens),
        node_token: fleet.map(|joined| joined.token.clone()),
        clock: Box::new(now_millis),
        random: Box::new(|| {
            let bits = LoadedProject::random_bytes();
            bits.map_err(|error| Fault::Internal { message: error.to_string() })
        }),
        access_log: Box::new(move |entry| log.write(entry)),
        metrics: metrics::hub_metrics(hubs, fleet.map(|joined| &joined.node)),
    };
    let service: Arc<dyn FrontendService> = Arc::<TenantHubs>::clone(hubs);
    ApiServer::new(config, service)
}

fn tcp_security(args: &ServeArgs) -> anyhow::Result<TcpSecurity> {
    let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) else {
        return Ok(if args.plain { TcpSecurity::External } else { TcpSecurity::LoopbackOnly });
    };
    LoadedProject::check_private(key)?;
    let read = |path: &Path| LoadedProject::read_file(&path.to_string_lossy(), MAX_PEM_BYTES);
    Ok(TcpSecurity::Tls(TlsIdentity::from_pem(&read(certificates)?, &read(key)?)?))
}

fn socket_path(args: &ServeArgs, files: &ServerFiles) -> anyhow::Result<PathBuf> {
    let path = args.socket.clone().unwrap_or_else(|| files.socket_path());
    // Clients in other folders find it by this path.
    let path = std::path::absolute(path).context("the path of the socket is not valid")?;
    if path.as_os_str().len() > MAX_SOCKET_PATH_BYTES {
        bail!(
            "the path of the socket is longer than {MAX_SOCKET_PATH_BYTES} bytes: {}. Choose a \
             shorter one with --socket",
            path.display()
        );
    }
    Ok(path)
}

/// Stops the server that runs.
async fn stop_server(files: &ServerFiles) -> anyhow::Result<CliExit> {
    let Some(running) = files.running_server()? else { bail!("no server runs on this machine") };
    LoadedProject::ask_process_to_stop(running.pid)?;
    let asked_at = tokio::time::Instant::now();
    while files.running_server()?.is_some_and(|current| current.pid == running.pid) {
        if asked_at.elapsed() > STOP_TIMEOUT {
            bail!("the server is still stopping; `windlass serve stop` again stops it at once");
        }
        tokio::time::sleep(STOP_POLL_INTERVAL).await;
    }
    output::print_note(
        "the server has stopped; turns under way go on when it starts again, or at another node of \
         its fleet",
    );
    Ok(CliExit::Done)
}
