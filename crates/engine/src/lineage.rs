//! The lineage of a session: its ancestors, and what it shares with them.

use crate::attendance::Attendance;
use crate::turn_budget::TurnBudget;
use std::sync::Arc;
use windlass_protocol::SessionId;

/// Maximum nesting depth of subagents.
pub(crate) const MAX_SUBAGENT_DEPTH: usize = 3;

/// A session's ancestors, and the `TurnBudget` and `Attendance` that the whole family shares.
#[derive(Clone)]
pub(crate) struct Lineage {
    pub(crate) budget: Arc<TurnBudget>,
    pub(crate) attendance: Attendance,
    /// Ancestor sessions, the top-level session first.
    pub(crate) ancestors: Arc<[SessionId]>,
}

impl Lineage {
    /// Creates the lineage of a top-level session.
    pub(crate) fn root(budget: TurnBudget) -> Lineage {
        Lineage { budget: Arc::new(budget), attendance: Attendance::new(), ancestors: Arc::new([]) }
    }

    /// Creates the lineage of a subagent that `parent` starts.
    pub(crate) fn for_subagent_of(&self, parent: SessionId) -> Lineage {
        let ancestors = self.ancestors.iter().copied().chain([parent]).collect();
        Lineage { ancestors, ..self.clone() }
    }
}
