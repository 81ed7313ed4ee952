//! Risk classes of commands, from harmless to forbidden.

use crate::PermissionLevel;
use crate::SandboxStatus;
use windlass_protocol::PermissionMode;

/// The risk of a command, ordered from permissive to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Risk {
    /// The command provably only reads.
    ReadOnly,
    /// The command only reads by the words that are known. A sandbox without write access confines
    /// what the others mean.
    ConfinedRead,
    /// The command changes at most the workspace, if a sandbox confines it.
    WorkspaceWrite,
    /// The command touches paths outside the workspace, or private files.
    OutsideWorkspace,
    /// The command needs the network.
    Network,
    /// The command destroys data or gains privileges.
    Destructive,
    /// It is unknown which program runs.
    Unknown,
    /// The command runs a script whose text is unknown.
    UnseenScript,
    /// The command talks to a service on this machine that may control an agent, or may reveal
    /// files that a rule denies. `PermissionMode::Full`, which never asks, denies it.
    LocalService,
    /// The command is always denied.
    Forbidden,
}

/// `Risk::danger` of a command that needs the network, and of one that runs an unknown script.
pub(crate) const NETWORK_DANGER: u8 = 3;
pub(crate) const UNSEEN_SCRIPT_DANGER: u8 = 5;

impl Risk {
    /// Returns true if only a sandbox could keep the command from changing something in
    /// `PermissionMode::Plan`. No rule overrides this.
    pub(super) fn violates_plan_mode(
        self,
        mode: PermissionMode,
        sandbox_status: SandboxStatus,
    ) -> bool {
        mode == PermissionMode::Plan
            && sandbox_status != SandboxStatus::Active
            && self > Risk::ReadOnly
    }

    /// Ranks risks by what a command can do to the user, for the reason that a question shows.
    pub(super) fn danger(self) -> u8 {
        match self {
            Risk::ReadOnly | Risk::ConfinedRead => 0,
            Risk::WorkspaceWrite => 1,
            Risk::Unknown => 2,
            Risk::Network => NETWORK_DANGER,
            Risk::OutsideWorkspace => 4,
            Risk::UnseenScript => UNSEEN_SCRIPT_DANGER,
            Risk::Destructive => 6,
            Risk::LocalService => 7,
            Risk::Forbidden => 8,
        }
    }

    /// Returns true if it is unknown what runs, so that a deny rule could be missed.
    pub(super) fn hides_command(self) -> bool {
        matches!(self, Risk::Unknown | Risk::UnseenScript)
    }

    /// Returns the level for this risk if no rule matches.
    pub(super) fn default_level(
        self,
        mode: PermissionMode,
        sandbox_status: SandboxStatus,
    ) -> PermissionLevel {
        let max_risk = match (mode, sandbox_status) {
            // Without a sandbox every command requires approval, even one that only reads.
            (_, SandboxStatus::Unavailable) => None,
            // These modes give no write access to commands that run without approval.
            (PermissionMode::Plan | PermissionMode::Ask, SandboxStatus::Active) => {
                Some(Risk::ConfinedRead)
            }
            (
                PermissionMode::Plan | PermissionMode::Ask | PermissionMode::Auto,
                SandboxStatus::Off,
            ) => Some(Risk::ReadOnly),
            (PermissionMode::Auto, SandboxStatus::Active) => Some(Risk::WorkspaceWrite),
            (PermissionMode::Full, SandboxStatus::Active | SandboxStatus::Off) => {
                Some(Risk::UnseenScript)
            }
        };
        match self {
            Risk::Forbidden => PermissionLevel::Deny,
            Risk::LocalService if mode == PermissionMode::Full => PermissionLevel::Deny,
            risk if risk.violates_plan_mode(mode, sandbox_status) => PermissionLevel::Deny,
            risk if max_risk.is_some_and(|max_risk| risk <= max_risk) => PermissionLevel::Allow,
            Risk::ReadOnly
            | Risk::ConfinedRead
            | Risk::WorkspaceWrite
            | Risk::OutsideWorkspace
            | Risk::Network
            | Risk::Destructive
            | Risk::Unknown
            | Risk::UnseenScript
            | Risk::LocalService => PermissionLevel::Ask,
        }
    }
}

const READ_ONLY_REASON: &str = "it only reads";

/// The hosts that a command needs to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NetworkNeed {
    #[default]
    None,
    /// Package registries only.
    Registries,
    /// Any hosts.
    Any,
}

/// A `Risk` with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RiskFinding {
    pub(super) risk: Risk,
    pub(super) reason: String,
    /// The hosts that the command needs, even if another risk is higher.
    pub(super) network: NetworkNeed,
    /// The highest risk other than `Risk::Network`, with its reason.
    pub(super) offline: (Risk, String),
    /// True if the command reveals a secret file.
    pub(super) exposes_secrets: bool,
    /// True if the command may reveal files that a file rule closes. Then no `bash` rule can allow
    /// it.
    pub(super) overlaps_file_rule: bool,
}

impl RiskFinding {
    pub(super) fn harmless() -> RiskFinding {
        RiskFinding::new(Risk::ReadOnly, READ_ONLY_REASON)
    }

    pub(super) fn new(risk: Risk, reason: impl Into<String>) -> RiskFinding {
        let reason = reason.into();
        let (network, offline) = match risk {
            Risk::Network => (NetworkNeed::Any, (Risk::ReadOnly, READ_ONLY_REASON.to_owned())),
            _ => (NetworkNeed::None, (risk, reason.clone())),
        };
        RiskFinding {
            risk,
            reason,
            network,
            offline,
            exposes_secrets: false,
            overlaps_file_rule: false,
        }
    }

    /// Returns the finding for the same command if it runs without network.
    pub(super) fn without_network(self) -> RiskFinding {
        let (risk, reason) = self.offline.clone();
        RiskFinding { risk, reason, network: NetworkNeed::None, ..self }
    }

    /// Returns true if the command requires no approval once it may reach registries.
    pub(super) fn needs_only_registries(
        &self,
        mode: PermissionMode,
        sandbox_status: SandboxStatus,
    ) -> bool {
        let (offline_risk, _) = self.offline;
        let is_download =
            self.network == NetworkNeed::Registries && offline_risk <= Risk::WorkspaceWrite;
        is_download || offline_risk.default_level(mode, sandbox_status) == PermissionLevel::Allow
    }

    /// Returns the finding for a command that changes files and downloads packages.
    pub(super) fn package_download(command: &str) -> RiskFinding {
        let mut finding = RiskFinding::new(
            Risk::Network,
            format!("`{command}` downloads packages, which needs network access"),
        );
        finding.network = NetworkNeed::Registries;
        let reason = format!("`{command}` can change files in the workspace");
        finding.offline = (Risk::WorkspaceWrite, reason);
        finding
    }

    /// Keeps the higher risk, or the first of two equal ones. The flags accumulate.
    pub(super) fn merge(&mut self, other: RiskFinding) {
        let network = self.network.max(other.network);
        let exposes_secrets = self.exposes_secrets || other.exposes_secrets;
        let overlaps_file_rule = self.overlaps_file_rule || other.overlaps_file_rule;
        let offline = match other.offline.0 > self.offline.0 {
            true => other.offline.clone(),
            false => self.offline.clone(),
        };
        if other.risk > self.risk {
            *self = other;
        }
        self.offline = offline;
        self.network = network;
        self.exposes_secrets = exposes_secrets;
        self.overlaps_file_rule = overlaps_file_rule;
    }
}
