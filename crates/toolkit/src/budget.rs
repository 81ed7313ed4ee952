//! How much a model is told at once of tools that others bring. Every request carries every
//! definition, so there is a limit; what is over it is found by a search instead.
//!
//! It is decided once, in order, when tools are admitted: what a model was told first is never
//! changed. Nothing here looks at anything but what it is handed.

use crate::slim::slim;
use crate::tool::Definition;
use serde_json::json;

/// How many tokens the tools of others cost a request, unless the person says otherwise.
const TOKENS: usize = 2_000;
/// How many of them are kept for the tools that search and call what is not told of.
pub const RESERVE: usize = 450;
/// How many bytes of a definition are taken for one token.
const BYTES: usize = 4;
/// What wire formats write around a definition, in bytes.
const FRAME: usize = 40;

/// What is left to spend. One goes around: custom tools first, then servers, in the order of the
/// config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    left: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(TOKENS)
    }
}

impl Budget {
    /// So many tokens in all, those of the search among them.
    pub fn new(tokens: usize) -> Budget {
        Budget { left: tokens.saturating_sub(RESERVE) }
    }

    /// True if all tools of one source are told of: all of them fit into what is left, which is
    /// then less. Otherwise none is, and nothing is spent.
    pub fn lists<'a>(
        &mut self,
        tools: impl IntoIterator<Item = (&'a str, &'a Definition)>,
    ) -> bool {
        let costs = tools.into_iter().map(|(name, definition)| cost(name, definition));
        let whole = costs.fold(0, usize::saturating_add);
        match self.left.checked_sub(whole) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// What is left, in tokens.
    pub fn left(&self) -> usize {
        self.left
    }
}

/// What a request costs more with this tool, in tokens: its bytes as a model is told it, by four.
pub fn cost(name: &str, definition: &Definition) -> usize {
    let Definition { description, schema } = definition;
    let parameters = slim(schema, description);
    let told = json!({"name": name, "description": description, "parameters": parameters});
    (told.to_string().len() + FRAME).div_ceil(BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool(bytes: usize) -> Definition {
        Definition { description: "x".repeat(bytes), schema: json!({"type": "object"}) }
    }

    #[test]
    fn a_source_is_listed_whole_or_not_at_all_and_a_smaller_one_behind_it_still_may_be() {
        let mut budget = Budget::default();
        let (small, large) = (tool(400), tool(4_000));
        assert!(budget.lists([("a", &small), ("b", &small)]));
        let left = budget.left();
        assert!(!budget.lists([("c", &large), ("d", &large)]));
        assert_eq!(budget.left(), left, "what is not listed costs nothing");
        assert!(budget.lists([("e", &small)]));
        assert!(budget.lists([]));
    }

    #[test]
    fn a_budget_below_what_searching_costs_lists_nothing() {
        for tokens in [0, 1, RESERVE] {
            assert!(!Budget::new(tokens).lists([("a", &tool(0))]), "{tokens}");
        }
        assert!(Budget::new(usize::MAX).lists([("a", &tool(100_000))]));
    }

    proptest! {
        #[test]
        fn what_is_listed_never_costs_more_than_the_budget(
            tokens in 0usize..6_000,
            sources in proptest::collection::vec(
                proptest::collection::vec(0usize..3_000, 0..6), 0..12),
        ) {
            let mut budget = Budget::new(tokens);
            let mut told = 0;
            for source in &sources {
                let tools: Vec<Definition> = source.iter().map(|bytes| tool(*bytes)).collect();
                if budget.lists(tools.iter().map(|tool| ("name", tool))) {
                    told += tools.iter().map(|tool| cost("name", tool)).sum::<usize>();
                }
            }
            prop_assert!(told <= tokens.saturating_sub(RESERVE));
            prop_assert_eq!(told + budget.left(), tokens.saturating_sub(RESERVE));
        }
    }
}
