//! Sessions of the agent: `session` makes the decisions, `driver` carries them out.
//!
//! This crate knows no wire format, database or particular tool; `session` does not even read the
//! clock. It keeps the invariant that a session's state is the fold of its log: the same function
//! applies a fact that was just decided and one read back after a crash. Start reading at
//! [`session::Session::apply`], then [`driver`], the only loop.

mod agent_definitions;
mod attachments;
mod attendance;
mod clock_and_ids;
pub mod driver;
mod engine;
mod faults;
mod file_tracker;
mod lineage;
mod model_handle;
mod queries;
pub mod session;
mod session_archive;
mod session_tool_caller;
mod session_watcher;
mod settings;
mod shared_mutex;
mod stored_sessions;
mod subagents;
pub mod system_prompt;
pub mod telemetry;
mod turn_budget;

pub use agent_definitions::AgentDefinition;
pub use attendance::{AttendanceGuard, OpenQuestions, UnattendedPolicy};
pub use clock_and_ids::new_op_id;
pub use driver::op_ledger::OpSender;
pub use driver::session_handle::{SessionActivity, SessionHandle};
pub use engine::{Engine, UnfinishedTurn};
pub use model_handle::{ModelHandle, NamedModel};
pub use session_archive::ExportImportReport;
pub use session_watcher::{SessionWatcher, WatchedEvent};
pub use settings::{BeforeRelease, EngineSettings, ModelResolver, SaveApprovals, TitleGeneration};
pub use stored_sessions::ForkPoint;
pub use system_prompt::SystemPromptValues;
pub use turn_budget::SharedQuota;
