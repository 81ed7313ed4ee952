//! What a session works with: bounds, the model's window and price, and what becomes of loops.

use std::sync::Arc;
use windlass_llm::catalog::Price;
use windlass_protocol::Cost;

/// Bounds on what one turn may do.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests to the model in one turn.
    pub steps: u32,
    /// Calls in one step; further ones are turned back.
    pub calls: usize,
    /// Bytes of one answer.
    pub answer: usize,
    /// How long a turn may take.
    pub time_ms: Option<u64>,
    /// Tokens that a turn may use, its children's among them.
    pub tokens: Option<u64>,
    /// What a turn may cost, its children's among it.
    pub cost: Option<Cost>,
    /// So often the same is done in a row before it is taken for a loop.
    pub repeats: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            steps: 5_000,
            calls: 64,
            answer: 8 << 20,
            time_ms: None,
            tokens: None,
            cost: None,
            repeats: 3,
        }
    }
}

/// What a session works with from the outside. None of it is in the log.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The model, as `provider/model`.
    pub model: String,
    /// How much it takes in and gives.
    pub window: Window,
    /// What it costs.
    pub price: Price,
    /// Bounds on a turn.
    pub limits: Limits,
    /// What becomes of a model that goes in circles.
    pub looping: Looping,
    /// What a new session's model is told before everything else.
    pub brief: Arc<str>,
}

/// How many tokens a model takes in, and how many of them are kept free for its answer; 0 where
/// that is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// All in all.
    pub context: u64,
    /// For the answer.
    pub output: u64,
}

/// What becomes of a model that does the same again and again: the permission key `doom_loop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Looping {
    /// It goes on.
    Allow,
    /// Somebody is asked.
    #[default]
    Ask,
    /// The turn ends.
    Deny,
}
