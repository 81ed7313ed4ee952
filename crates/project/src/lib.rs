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
pub mod edit;
mod error;
mod file;
mod front;
pub mod import;
mod instructions;
mod journal;
mod keys;
mod pins;
mod places;
mod plugins;
mod pointer;
mod private;
mod skills;
mod tools;
mod trust;

pub use agents::{Employer, Profile, Profiles};
pub use approvals::{Approval, Approvals};
pub use commands::{Command, Commands, Draft, Run};
pub use config::{
    Agent, Chosen, Config, Flags, Form, Formatter, HookCommand, HookSpec, LanguageServer,
    McpClient, McpKind, McpLogin, McpServer, Model, OAuth, Outside, PROJECT_FILES, Permission,
    Provider, Rows, Said, Sandbox, ScreenSettings, Search, SearchEngine, Senses, Server, Settings,
    Timeouts, ToolSettings, Walls, Way, WebSettings,
};
pub use error::Error;
pub use file::{Diagnostic, Layer, Origin};
pub use instructions::{Instruction, branch, has_instructions, instructions, is_repository};
pub use journal::Journal;
pub use keys::{Keys, Source};
pub use pins::{Brought, Pins};
pub use places::{Places, find_root};
pub use plugins::{
    Change, Contents, Format, Implement, Loaded, Lodging, Manifest, Offer, Parts, Plugin, Plugins,
    Scratch, Source as PluginSource,
};
pub use skills::{Skill, Skills};
pub use tools::{Allowed, Sayings, Taken, ToolFile, ToolFiles, lay_out};
pub use trust::{Request, Since, Standing, Surveyed, Trust};

/// The JSON Schema of a config file: a published interface.
pub fn schema() -> schemars::Schema {
    let mut schema = schemars::schema_for!(Settings);
    schema.insert("title".into(), "Windlass config".into());
    schema
}
