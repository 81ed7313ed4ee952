//! The hubs of a server: that of its operator, and one for each tenant of its fleet.
//!
//! A hub reads and writes the log of one tenant, so no request of a tenant can reach the sessions,
//! files or events of another one.

use super::{CLOSE_TIMEOUT, ServeSetup};
use crate::fleet_node::{DEFAULT_TENANT, FleetNode};
use crate::session_hub::{HubOptions, SessionHub};
use crate::setup::{ProjectContext, ProviderKeys};
use crate::tenant_quota::{TenantQuota, today};
use crate::terminal::output;
use anyhow::Context;
use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::stream::BoxStream;
use secrecy::ExposeSecret;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{MAIN_SEPARATOR, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use windlass_engine::UnattendedPolicy;
use windlass_project::Dirs;
use windlass_protocol::display_text::workspace_name;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::{HostStreamItem, OpenSessionState, SessionStreamItem};
use windlass_protocol::{ApprovalScope, PermissionAnswer, RequestError, SessionId, SessionOp};
use windlass_server::{Caller, FrontendService, TeamToken, WatchOptions};
use windlass_storage::StorageError;
use windlass_storage::postgres::{SessionFolder, TenantId, TenantRow, ValidToken};

/// The hubs of a server.
pub(super) struct TenantHubs {
    /// The hub of clients without a tenant.
    pub(super) own: Arc<SessionHub>,
    own_quota: Option<Arc<TenantQuota>>,
    fleet: Option<Arc<FleetNode>>,
    tenants: Mutex<HashMap<String, TenantHub>>,
    /// The hubs of tenants that are no longer served, until their sessions are closed.
    closing: Mutex<Vec<Arc<SessionHub>>>,
    /// The places of open sessions, which all hubs share.
    room: Arc<Semaphore>,
    /// Notes about tenants that are not served, which are printed once.
    notes: Mutex<BTreeSet<String>>,
}

/// The hub of a tenant.
#[derive(Clone)]
struct TenantHub {
    id: TenantId,
    roots: Vec<PathBuf>,
    policy: Option<String>,
    /// Its API keys by provider, sealed.
    sealed: BTreeMap<String, Vec<u8>>,
    hub: Arc<SessionHub>,
    quota: Arc<TenantQuota>,
}

impl TenantHubs {
    pub(super) fn new(setup: &ServeSetup, fleet: Option<&Arc<FleetNode>>) -> Arc<TenantHubs> {
        let room = Arc::new(Semaphore::new(setup.args.capacity as usize));
        let quota = fleet.map(|fleet| Arc::new(TenantQuota::new(fleet.tenant, DEFAULT_TENANT)));
        let dirs = setup.dirs.clone();
        let own_keys = ProviderKeys::default();
        let own =
            new_hub((setup, dirs, own_keys), (fleet, quota.clone()), (setup.roots.clone(), &room));
        let (fleet, tenants, closing) = (fleet.cloned(), Mutex::default(), Mutex::default());
        let notes = Mutex::default();
        Arc::new(TenantHubs { own, own_quota: quota, fleet, tenants, closing, room, notes })
    }

    /// Reads the tenants and the tokens of their users. Sessions of tenants that this node serves no
    /// longer are closed.
    pub(super) async fn refresh(&self, setup: &ServeSetup) -> Result<(), StorageError> {
        let Some(fleet) = &self.fleet else { return Ok(()) };
        // Tokens first: those that were revoked count no longer, whatever fails later.
        let tokens = fleet.database.valid_tokens().await?;
        setup.tokens.tokens.set_team_tokens(tokens.into_iter().map(team_token));
        let tenants = fleet.database.tenants().await?;
        let mut sealed: HashMap<TenantId, BTreeMap<String, Vec<u8>>> = HashMap::new();
        for row in fleet.database.provider_keys(None).await? {
            sealed.entry(row.tenant).or_default().insert(row.provider, row.sealed);
        }
        let mut closed = Vec::new();
        {
            let mut hubs = lock(&self.tenants);
            let served = |tenant: &TenantRow| served_roots(tenant, &setup.roots);
            // Other folders, keys or another policy need a new hub: its sessions are opened again.
            let is_served = |name: &str, hub: &TenantHub| {
                tenants.iter().any(|tenant| {
                    tenant.name == name
                        && tenant.policy == hub.policy
                        && sealed.get(&tenant.id).unwrap_or(&BTreeMap::new()) == &hub.sealed
                        && served(tenant).as_ref() == Some(&hub.roots)
                })
            };
            let ended = hubs.extract_if(|name, hub| !is_served(name, hub));
            closed.extend(ended.map(|(_, tenant)| tenant.hub));
            for tenant in &tenants {
                if hubs.contains_key(&tenant.name) {
                    continue;
                }
                let Some(roots) = served(tenant) else { continue };
                let sealed = sealed.remove(&tenant.id).unwrap_or_default();
                let keys = match open_keys(setup, tenant, &sealed) {
                    Ok(keys) => keys,
                    // It must not use the keys of others instead.
                    Err(error) => {
                        self.note_once(&format!(
                            "the tenant {} is not served: {error:#}",
                            tenant.name
                        ));
                        continue;
                    }
                };
                let fleet = Arc::new(fleet.for_tenant(tenant.id));
                let quota = Arc::new(TenantQuota::new(tenant.id, &tenant.name));
                let limited = (Some(&fleet), Some(Arc::clone(&quota)));
                let policy = tenant.policy.clone();
                let dirs = Dirs { tenant_policy: policy.clone(), ..setup.dirs.clone() };
                let hub = new_hub((setup, dirs, keys), limited, (roots.clone(), &self.room));
                let hub = TenantHub { id: tenant.id, roots, policy, sealed, hub, quota };
                hubs.insert(tenant.name.clone(), hub);
            }
        }
        self.share_usage(fleet, &tenants).await?;
        fleet.update_backlog().await?;
        // They are shut down with the others if this one is not waited for.
        lock(&self.closing).extend(closed.iter().cloned());
        join_all(closed.iter().map(|hub| hub.shut_down(CLOSE_TIMEOUT))).await;
        lock(&self.closing).retain(|hub| !closed.iter().any(|closed| Arc::ptr_eq(hub, closed)));
        Ok(())
    }

    /// Prints a note, unless it was printed before.
    fn note_once(&self, text: &str) {
        if lock(&self.notes).insert(text.to_owned()) {
            output::print_error(text);
        }
    }

    /// Stores what the sessions of this node have used, and reads what those of other nodes have.
    async fn share_usage(
        &self,
        fleet: &FleetNode,
        tenants: &[TenantRow],
    ) -> Result<(), StorageError> {
        let mut quotas: Vec<Arc<TenantQuota>> =
            lock(&self.tenants).values().map(|tenant| Arc::clone(&tenant.quota)).collect();
        quotas.extend(self.own_quota.clone());
        let unsaved: Vec<_> = quotas.iter().map(|quota| (quota, quota.take_unsaved())).collect();
        let rows: Vec<_> = unsaved.iter().flat_map(|(_, rows)| rows).copied().collect();
        if let Err(error) = fleet.node.save_usage(&rows).await {
            for (quota, rows) in unsaved {
                quota.put_back(rows.into_iter().map(|(_, day, _)| day));
            }
            return Err(error);
        }
        let day = today();
        let others = fleet.node.usage_of_others(day).await?;
        for quota in quotas {
            let limits = tenants.iter().find(|tenant| tenant.id == quota.tenant);
            let others = others.get(&quota.tenant).copied().unwrap_or_default();
            quota.update(limits.map(|tenant| tenant.limits).unwrap_or_default(), others, day);
        }
        Ok(())
    }

    /// Returns the hub of a tenant.
    pub(super) fn hub_of(&self, tenant: TenantId) -> Option<Arc<SessionHub>> {
        if self.fleet.as_ref().is_some_and(|fleet| fleet.tenant == tenant) {
            return Some(Arc::clone(&self.own));
        }
        let hubs = lock(&self.tenants);
        let found = hubs.values().find(|hub| hub.id == tenant);
        found.map(|found| Arc::clone(&found.hub))
    }

    /// Returns the folders of the sessions that this node can run.
    pub(super) fn session_folders(&self, setup: &ServeSetup) -> Vec<SessionFolder> {
        let Some(fleet) = &self.fleet else { return Vec::new() };
        let tenants = lock(&self.tenants).clone();
        let mut served: Vec<(TenantId, &[PathBuf])> = vec![(fleet.tenant, &setup.roots)];
        let has_place = |tenant: &&TenantHub| {
            tenant.quota.session_limit_reached(tenant.hub.open_count()).is_none()
        };
        let others = tenants.values().filter(has_place);
        served.extend(others.map(|tenant| (tenant.id, &*tenant.roots)));
        let mut folders = Vec::new();
        for (tenant, roots) in served {
            for root in roots {
                let exact =
                    SessionFolder { tenant, folder: workspace_name(root), is_prefix: false };
                folders.push(exact);
                let checkouts = setup.dirs.checkouts.iter().filter(|(_, project)| *project == root);
                folders.extend(checkouts.map(|(folder, _)| SessionFolder {
                    tenant,
                    folder: format!("{}{MAIN_SEPARATOR}", workspace_name(folder)),
                    is_prefix: true,
                }));
            }
        }
        folders
    }

    /// Returns the number of sessions that can be opened without closing one that is at work.
    pub(super) fn free_places(&self) -> usize {
        let closable: usize = self.all().iter().map(|hub| hub.closable_count()).sum();
        self.room.available_permits() + closable
    }

    /// Returns the states of all open sessions.
    pub(super) fn open_session_states(&self) -> Vec<OpenSessionState> {
        self.all().iter().flat_map(|hub| hub.open_session_states()).collect()
    }

    /// Closes all sessions, within a time limit, and ends all tasks.
    pub(super) async fn shut_down(&self, limit: Duration) {
        join_all(self.all().iter().map(|hub| hub.shut_down(limit))).await;
    }

    /// Like [`TenantHubs::shut_down`], without waiting for calls that are running.
    pub(super) async fn shut_down_at_once(&self, limit: Duration) {
        join_all(self.all().iter().map(|hub| hub.shut_down_at_once(limit))).await;
    }

    fn all(&self) -> Vec<Arc<SessionHub>> {
        let tenants = lock(&self.tenants);
        let closing = lock(&self.closing);
        let hubs = tenants.values().map(|tenant| &tenant.hub).chain(&*closing);
        std::iter::once(&self.own).chain(hubs).cloned().collect()
    }

    /// Closes the session of any tenant that has been idle for the longest time.
    pub(super) async fn close_idle_session(&self) {
        let hubs = self.all();
        let idle = hubs.iter().filter_map(|hub| Some((hub.longest_idle()?, hub)));
        if let Some(((_, session), hub)) = idle.min_by_key(|((since, _), _)| *since) {
            hub.close_if_idle(session).await;
        }
    }

    /// Returns the hub for a request.
    fn hub_for(&self, caller: &Caller) -> Result<Arc<SessionHub>, RequestError> {
        let Some(tenant) = &caller.tenant else { return Ok(Arc::clone(&self.own)) };
        let hub = lock(&self.tenants).get(tenant).map(|tenant| Arc::clone(&tenant.hub));
        hub.ok_or_else(|| RequestError::Unavailable {
            text: format!("this server has none of the folders of {tenant}"),
        })
    }

    /// Returns the folders that clients of a tenant may work in.
    pub(super) fn root_names(&self, tenant: Option<&str>, own: &[PathBuf]) -> Vec<String> {
        let names = |roots: &[PathBuf]| roots.iter().map(|root| workspace_name(root)).collect();
        match tenant {
            None => names(own),
            Some(tenant) => {
                lock(&self.tenants).get(tenant).map_or_else(Vec::new, |tenant| names(&tenant.roots))
            }
        }
    }
}

#[async_trait]
impl FrontendService for TenantHubs {
    async fn request(
        &self,
        caller: &Caller,
        request: FrontendRequest,
    ) -> Result<HostResponse, RequestError> {
        let hub = self.hub_for(caller)?;
        let request = match &caller.tenant {
            Some(_) => without_project_approval(request),
            None => request,
        };
        let answer = hub.request(caller, request.clone()).await;
        if let Err(RequestError::TooMany { .. }) = &answer
            && self.room.available_permits() == 0
        {
            // The session of another tenant may have its place.
            self.close_idle_session().await;
            return hub.request(caller, request).await;
        }
        answer
    }

    async fn watch_session(
        &self,
        caller: &Caller,
        session: SessionId,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, SessionStreamItem>, RequestError> {
        self.hub_for(caller)?.watch_session(caller, session, options).await
    }

    async fn watch_host(
        &self,
        caller: &Caller,
    ) -> Result<BoxStream<'static, HostStreamItem>, RequestError> {
        self.hub_for(caller)?.watch_host(caller).await
    }
}

/// Limits an approval of a user to the session: the stored approvals of a project are those of the
/// server, for all tenants.
fn without_project_approval(mut request: FrontendRequest) -> FrontendRequest {
    if let FrontendRequest::SessionOp { op: SessionOp::AnswerPermission { answer, .. }, .. } =
        &mut request
    {
        match answer {
            PermissionAnswer::Project => *answer = PermissionAnswer::Session,
            PermissionAnswer::Kind { scope } => *scope = ApprovalScope::Session,
            PermissionAnswer::Once
            | PermissionAnswer::Session
            | PermissionAnswer::No { .. }
            | PermissionAnswer::Unavailable { .. } => {}
        }
    }
    request
}

/// Returns a token as the server checks it.
fn team_token(token: ValidToken) -> TeamToken {
    TeamToken {
        digest: token.digest,
        tenant: (token.tenant_name != DEFAULT_TENANT).then_some(token.tenant_name),
        user: token.user,
        name: token.name,
        right: token.right,
        expires_at: token.expires_at,
    }
}

/// Opens the API keys of a tenant.
fn open_keys(
    setup: &ServeSetup,
    tenant: &TenantRow,
    sealed: &BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<ProviderKeys> {
    let open = |(provider, sealed): (&String, &Vec<u8>)| {
        let keys = setup.sealing_keys.as_ref();
        let keys = keys.context("it has API keys, which need `--key-file`")?;
        let key = keys.open((tenant.id, provider), sealed)?;
        crate::redact::add_secret(key.expose_secret());
        Ok((provider.clone(), key))
    };
    sealed.iter().map(open).collect()
}

/// Returns the folders of a tenant that this node has, if the node serves the tenant.
fn served_roots(tenant: &TenantRow, own: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let names: BTreeSet<&str> = tenant.roots.iter().map(String::as_str).collect();
    let roots: Vec<PathBuf> =
        own.iter().filter(|root| names.contains(&*workspace_name(root))).cloned().collect();
    let is_served = tenant.name != DEFAULT_TENANT && !tenant.is_disabled && !roots.is_empty();
    is_served.then_some(roots)
}

fn new_hub(
    (setup, dirs, keys): (&ServeSetup, Dirs, ProviderKeys),
    (fleet, quota): (Option<&Arc<FleetNode>>, Option<Arc<TenantQuota>>),
    (roots, room): (Vec<PathBuf>, &Arc<Semaphore>),
) -> Arc<SessionHub> {
    let args = &setup.args;
    let options = HubOptions {
        roots: Some(roots),
        flags: args.mode_args.to_config_flags(args.model.clone()),
        agent: None,
        unattended: UnattendedPolicy::Wait,
        idle_timeout: Some(Duration::from_secs(args.idle_timeout)),
        max_open_sessions: args.capacity as usize,
        room: Some(Arc::clone(room)),
        fleet: fleet.cloned(),
        quota,
        checkouts: setup.checkouts.clone(),
    };
    let context = match fleet {
        Some(node) => ProjectContext::with_log(node.shared_log()),
        None => ProjectContext::default(),
    };
    SessionHub::new(dirs, context.with_provider_keys(keys), options)
}
