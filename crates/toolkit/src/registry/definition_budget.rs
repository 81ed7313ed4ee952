//! The token budget for definitions of external tools. Every request carries every listed
//! definition, so their size is limited; tools beyond the limit are found by a search instead.
//!
//! The decision is made once, in order, when tools are registered: a definition that the model has
//! seen never changes. The functions here are pure.

use crate::registry::compact_schema::{SchemaOrigin, compact};
use crate::tool_definition::ToolDefinition;
use serde_json::json;

/// Tokens per request for external tools, unless the user sets another budget.
const DEFAULT_BUDGET_TOKENS: usize = 1_500;
/// The part of the budget that is reserved for the tools that search and call unlisted tools.
pub const SEARCH_TOOLS_RESERVE_TOKENS: usize = 450;
/// Estimates the tokens of a definition from its bytes.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes that wire formats add around a definition.
const DEFINITION_OVERHEAD_BYTES: usize = 40;

/// The remaining token budget. All sources share one: custom tools first, then servers in the order
/// of the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDefinitionBudget {
    remaining_tokens: usize,
}

impl Default for ToolDefinitionBudget {
    fn default() -> ToolDefinitionBudget {
        ToolDefinitionBudget::new(DEFAULT_BUDGET_TOKENS)
    }
}

impl ToolDefinitionBudget {
    /// Creates a budget of this many tokens, including those for the search tools.
    pub fn new(tokens: usize) -> ToolDefinitionBudget {
        ToolDefinitionBudget {
            remaining_tokens: tokens.saturating_sub(SEARCH_TOOLS_RESERVE_TOKENS),
        }
    }

    /// Spends the cost of all tools of one source and returns true if they fit. Otherwise returns
    /// false, and nothing is spent.
    pub fn try_spend<'a>(
        &mut self,
        tools: impl IntoIterator<Item = (&'a str, &'a ToolDefinition)>,
    ) -> bool {
        let costs = tools.into_iter().map(|(name, definition)| definition_tokens(name, definition));
        let total = costs.fold(0, usize::saturating_add);
        match self.remaining_tokens.checked_sub(total) {
            Some(remaining) => {
                self.remaining_tokens = remaining;
                true
            }
            None => false,
        }
    }

    /// Returns the remaining tokens.
    pub fn remaining_tokens(&self) -> usize {
        self.remaining_tokens
    }
}

/// Estimates the tokens that a tool adds to a request: the bytes of its compact definition, divided
/// by four.
pub fn definition_tokens(name: &str, definition: &ToolDefinition) -> usize {
    let ToolDefinition { description, schema } = definition;
    let parameters = compact(schema, description, SchemaOrigin::External);
    let json_definition =
        json!({"name": name, "description": description, "parameters": parameters});
    (json_definition.to_string().len() + DEFINITION_OVERHEAD_BYTES).div_ceil(BYTES_PER_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool(bytes: usize) -> ToolDefinition {
        ToolDefinition { description: "x".repeat(bytes), schema: json!({"type": "object"}) }
    }

    #[test]
    fn a_source_that_does_not_fit_spends_nothing_and_a_smaller_one_may_still_fit() {
        let mut budget = ToolDefinitionBudget::default();
        let (small, large) = (tool(400), tool(4_000));
        assert!(budget.try_spend([("a", &small), ("b", &small)]));
        let remaining = budget.remaining_tokens();
        assert!(!budget.try_spend([("c", &large), ("d", &large)]));
        assert_eq!(budget.remaining_tokens(), remaining, "tools that are not listed cost nothing");
        assert!(budget.try_spend([("e", &small)]));
        assert!(budget.try_spend([]));
    }

    #[test]
    fn a_budget_below_the_search_reserve_lists_nothing() {
        for tokens in [0, 1, SEARCH_TOOLS_RESERVE_TOKENS] {
            assert!(!ToolDefinitionBudget::new(tokens).try_spend([("a", &tool(0))]), "{tokens}");
        }
        assert!(ToolDefinitionBudget::new(usize::MAX).try_spend([("a", &tool(100_000))]));
    }

    proptest! {
        #[test]
        fn listed_tools_never_cost_more_than_the_budget(
            tokens in 0usize..6_000,
            sources in proptest::collection::vec(
                proptest::collection::vec(0usize..3_000, 0..6), 0..12),
        ) {
            let mut budget = ToolDefinitionBudget::new(tokens);
            let mut spent = 0;
            for source in &sources {
                let tools: Vec<ToolDefinition> = source.iter().map(|bytes| tool(*bytes)).collect();
                if budget.try_spend(tools.iter().map(|tool| ("name", tool))) {
                    let costs = tools.iter().map(|tool| definition_tokens("name", tool));
                    spent += costs.sum::<usize>();
                }
            }
            let available = tokens.saturating_sub(SEARCH_TOOLS_RESERVE_TOKENS);
            prop_assert!(spent <= available);
            prop_assert_eq!(spent + budget.remaining_tokens(), available);
        }
    }
}
