//! Settings of the sandbox that commands run in: folders, hosts and lookup of paths.

use super::{LoadedProject, real_path};
use std::path::PathBuf;
use std::sync::Arc;
use windlass_project::{ConfigLayer, ConfigOrigin, FolderTrust};
use windlass_sandbox::{
    CommandSandboxConfig, GitHookMode, HostAllowlist, HostAllowlistError, MachinePathLookup,
    NetworkPolicy,
};

impl LoadedProject {
    /// Returns the settings for running commands.
    pub(super) fn shell_config(&self) -> anyhow::Result<CommandSandboxConfig> {
        let is_trusted = self.config.trust == FolderTrust::Trusted;
        let hosts = self.command_hosts()?;
        let is_managed = self.config.is_network_managed();
        Ok(CommandSandboxConfig {
            sandbox_mode: self.sandbox_mode(),
            inherited_env: std::env::vars_os().collect(),
            network_policy: if is_managed {
                NetworkPolicy::Enforced(hosts)
            } else {
                NetworkPolicy::Listed(hosts)
            },
            readable_folders: self.readable_folders(),
            writable_folders: self.writable_folders().0,
            home: Some(real_path(&self.dirs.home)),
            additional_folders: self.additional_folders(),
            private_paths: [&self.dirs.config, &self.dirs.data]
                .map(|folder| real_path(folder))
                .into(),
            cache_folder: Some(self.dirs.cache.clone()),
            git_hooks: if is_trusted { GitHookMode::Run } else { GitHookMode::Skip },
        })
    }

    /// Returns the hosts in `sandbox.network` that commands may reach; an error names the invalid
    /// entry.
    pub(crate) fn command_hosts(&self) -> anyhow::Result<HostAllowlist> {
        let parser = |layer: ConfigLayer| match layer {
            ConfigLayer::User | ConfigLayer::Flag | ConfigLayer::Managed => {
                HostAllowlist::parse_with_private
            }
            ConfigLayer::Plugin | ConfigLayer::Project => HostAllowlist::parse,
        };
        parse_hosts("sandbox.network", &self.config.sandbox.network, parser)
    }

    /// Returns the non-public hosts in `web.private_hosts` that may be fetched from; an error names
    /// the invalid entry.
    pub(super) fn private_hosts(&self) -> anyhow::Result<HostAllowlist> {
        let hosts = &self.config.integrations.private_hosts;
        parse_hosts("web.private_hosts", hosts, |_| HostAllowlist::parse)
    }

    /// Returns the folders that are used like the project.
    pub(super) fn additional_folders(&self) -> Vec<PathBuf> {
        self.config.sandbox.additional_directories.iter().map(PathBuf::from).collect()
    }

    /// Returns the folders that tools and commands may read: those of the config, and the files of
    /// skills and plugins.
    fn readable_folders(&self) -> Vec<PathBuf> {
        let sandbox = &self.config.sandbox;
        let listed = sandbox.read.iter().chain(&sandbox.additional_directories).map(PathBuf::from);
        let own =
            [windlass_project::skill_copies_folder(&self.dirs), self.dirs.plugins.join("store")];
        listed.chain(own).map(|folder| real_path(&folder)).collect()
    }

    /// Returns the folders outside the project that commands may write to, and the reasons for
    /// skipping others in the lists. A folder must exist and must not be reached through a link,
    /// because a command may have chosen the link's target.
    pub(crate) fn writable_folders(&self) -> (Vec<PathBuf>, Vec<String>) {
        let (mut folders, mut notes) = (Vec::new(), Vec::new());
        let sandbox = &self.config.sandbox;
        let listed = sandbox.write.iter().map(|folder| (folder, "sandbox.write"));
        let added = sandbox.additional_directories.iter();
        let added = added.map(|folder| (folder, "additional_directories"));
        for (folder, key) in listed.chain(added) {
            let folder = PathBuf::from(folder);
            let name = folder.display().to_string();
            let reason = match folder.canonicalize() {
                Err(_) => "it does not exist".to_owned(),
                Ok(target) if target != folder => {
                    format!("it resolves to {} through a link", target.display())
                }
                Ok(_) if !folder.is_dir() => "it is not a folder".to_owned(),
                Ok(target) => {
                    folders.push(target);
                    continue;
                }
            };
            notes.push(format!("commands cannot write to {name} ({key}): {reason}"));
        }
        (folders, notes)
    }

    /// Returns the [`MachinePathLookup`] that resolve paths in commands.
    pub(crate) fn machine_paths(&self) -> anyhow::Result<Arc<MachinePathLookup>> {
        let shell = self.shell_config()?;
        let home = shell.home.as_deref();
        let sandbox_mode = shell.sandbox_mode.clone();
        let machine_paths =
            MachinePathLookup::new(&self.root, home, &shell.inherited_env, sandbox_mode);
        Ok(Arc::new(
            machine_paths
                .with_trust(self.config.trust == FolderTrust::Trusted)
                .with_folders(shell.additional_folders, shell.private_paths)
                .with_readable_folders(shell.readable_folders),
        ))
    }
}

type HostListParser = fn(&[String]) -> Result<HostAllowlist, HostAllowlistError>;

/// Parses a list of hosts, each with the parser for its `ConfigLayer`; an error names the
/// `ConfigOrigin` of the invalid one.
fn parse_hosts(
    key: &str,
    list: &[(String, ConfigOrigin)],
    parser: fn(ConfigLayer) -> HostListParser,
) -> anyhow::Result<HostAllowlist> {
    list.iter().try_fold(HostAllowlist::none(), |hosts, (host, origin)| {
        let parsed = parser(origin.layer)(std::slice::from_ref(host));
        let parsed = parsed.map_err(|error| anyhow::anyhow!("{origin}: {key}: {error}"))?;
        Ok(hosts.union(parsed))
    })
}
