//! What a tool is, the registry, and the one road every call takes.
//!
//! It knows no particular tool and no session. It keeps the invariant that no tool runs without a
//! grant: built-in, custom and foreign tools alike are reached only through [`Runtime::travel`],
//! which validates, asks, opens a world as wide as the answer, runs and bounds. Start reading at
//! [`tool`], then [`road`].

mod batch;
mod berth;
pub mod bound;
mod bounds;
mod budget;
mod finish;
pub mod foreign;
pub mod health;
pub mod hook;
mod ledger;
mod meaning;
mod name;
mod reconcile;
pub mod registry;
pub mod repair;
pub mod road;
mod schema;
mod search;
mod slim;
pub mod tool;

pub use berth::Berth;
pub use bounds::Bounds;
pub use budget::{Budget, RESERVE, cost};
pub use hook::{Firing, Heard, Hook, Matter, Moment, Refusal, Said, Stopped};
pub use name::nearest;
pub use registry::{Clash, Loose, Registry, Snapshot, Source};
pub use road::{Call, Runtime};
pub use schema::fits;
pub use windlass_sandbox::{Content, Glance, Pending, Task, Word};

pub use tool::{
    AgentCard, Caller, Cx, Definition, Ends, Failure, Found, Intent, NOBODY, Part, Permit, Report,
    Scene, Seen, Skill, Spawn, Stake, Tool,
};
