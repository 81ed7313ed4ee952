//! What a person and a project say about themselves: config files, instructions, which folders are
//! trusted, what was allowed for good, and the keys of providers.
//!
//! It reads and reports; it starts nothing and decides no permission. It keeps the invariant that
//! no byte of a project is interpreted before its folder is trusted, and that what was trusted is
//! the content, not the path. Start reading at [`Config::load`].

mod agents;
mod approvals;
mod commands;
mod config;
mod error;
mod file;
mod front;
mod instructions;
mod keys;
mod places;
mod pointer;
mod private;
mod skills;
mod trust;

pub use agents::{Employer, Profile, Profiles};
pub use approvals::{Approval, Approvals};
pub use commands::{Command, Commands, Draft, Run};
pub use config::{
    Agent, Chosen, Config, Flags, Model, Outside, PROJECT_FILES, Permission, Provider, Sandbox,
    Settings, Timeouts, Walls,
};
pub use error::Error;
pub use file::{Diagnostic, Layer, Origin};
pub use instructions::{Instruction, branch, has_instructions, instructions, is_repository};
pub use keys::{Keys, Source};
pub use places::{Places, find_root};
pub use skills::{Skill, Skills};
pub use trust::{Request, Since, Standing, Trust};

/// The JSON Schema of a config file: a published interface.
pub fn schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Settings);
    schema.insert("title".into(), "Windlass config".into());
    schema
}
