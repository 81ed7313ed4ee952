//! Parts of an engine under test: a workspace, permission rules, a log and a model.
#![allow(dead_code, unreachable_pub, reason = "each test uses some of the functions")]

use std::path::Path;
use std::sync::Arc;
use windlass_engine::ModelHandle;
use windlass_llm::wire_format::WireFormat;
use windlass_llm::{Client, Endpoint};
use windlass_permission::{PermissionRules, Policy};
use windlass_sandbox::Workspace;
use windlass_storage::SqliteLog;
use windlass_toolkit::{Registry, ToolRuntime};

/// Parses permission rules in the format of the config.
pub fn policy(rules: &str) -> Policy {
    Policy::new(PermissionRules::parse(&serde_json::from_str(rules).unwrap()).unwrap())
}

/// Returns a runtime without tools for a workspace folder.
pub fn runtime(folder: &Path, policy: Policy) -> ToolRuntime {
    ToolRuntime {
        registry: Registry::default(),
        hooks: Vec::new(),
        policy,
        workspace: Workspace::open(folder).unwrap(),
        limits: Default::default(),
    }
}

/// Returns a handle for a model server.
pub fn model_handle(url: &str, format: WireFormat) -> ModelHandle {
    ModelHandle::from_model_name(
        Client::new(Endpoint::generic(format, url.to_owned())).unwrap(),
        "m",
    )
}

/// Opens a log on disk.
pub async fn log(folder: &Path) -> Arc<SqliteLog> {
    Arc::new(SqliteLog::open(&folder.join("data")).await.unwrap())
}
