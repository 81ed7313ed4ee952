//! What every engine under test is made of: a folder to work in, rules, a log and a model.
#![allow(dead_code, unreachable_pub, reason = "each test uses its part of it")]

use std::path::Path;
use std::sync::Arc;
use windlass_engine::Asked;
use windlass_llm::wire::Format;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{Policy, Rules};
use windlass_sandbox::Workspace;
use windlass_storage::Sqlite;
use windlass_toolkit::{Registry, Runtime};

/// Rules as a config has them.
pub fn policy(rules: &str) -> Policy {
    Policy::new(Rules::parse(&serde_json::from_str(rules).unwrap()).unwrap())
}

/// No tools yet, in a folder.
pub fn runtime(folder: &Path, policy: Policy) -> Runtime {
    Runtime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy,
        workspace: Workspace::at(folder).unwrap(),
        limits: Default::default(),
    }
}

/// A model at an address.
pub fn asked(url: &str, format: Format) -> Asked {
    Asked::plainly(Client::new(Endpoint::plain(format, url.to_owned())).unwrap(), "m")
}

/// A log on the disk.
pub async fn log(folder: &Path) -> Arc<Sqlite> {
    Arc::new(Sqlite::open(&folder.join("data")).await.unwrap())
}
