//! `codesearch`: how something is programmed, by an engine that the person chose.

use crate::websearch::{ask, asked};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};
use windlass_web::{Lookup, Web};

/// How long an answer is if nothing is said, at least and at most, in tokens.
const TOKENS: u32 = 5_000;
const LEAST: u32 = 1_000;
const MOST: u32 = 50_000;

/// The tool.
pub struct CodeSearch(pub(crate) Arc<Web>);

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// What to look for: the library, and what is done with it.
    query: String,
    /// How long the answer may be, from 1000 to 50000 tokens; 5000 if not given.
    #[schemars(range(min = 1000, max = 50000))]
    tokens_num: Option<u32>,
}

#[async_trait]
impl Tool for CodeSearch {
    type Input = Input;

    fn name(&self) -> &str {
        "codesearch"
    }

    fn key(&self) -> &str {
        "webfetch"
    }

    fn offered(&self, _scene: &Scene) -> bool {
        self.0.code().is_some()
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        asked(self.0.code())
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let found = self.0.code().and_then(|engine| Some((engine, engine.code.as_ref()?)));
        let tokens = input.tokens_num.unwrap_or(TOKENS).clamp(LEAST, MOST);
        let lookup = Lookup {
            query: input.query,
            results: 8,
            characters: tokens.saturating_mul(4),
            tokens,
            ..Lookup::default()
        };
        ask(&self.0, found, lookup, cx).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness;

    #[test]
    fn the_schema_is_current() {
        harness::check_schema(
            &CodeSearch(Arc::default()),
            expect_test::expect_file!["schema.json"],
        );
    }
}
