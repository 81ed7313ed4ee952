//! `codesearch`: finds code examples and documentation with a search engine that the user chose.

use crate::websearch::{run_search, search_access};
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};
use windlass_web::{SearchQuery, WebClient};

/// Default, minimum and maximum length of an answer, in tokens.
const DEFAULT_TOKENS: u32 = 5_000;
const MIN_TOKENS: u32 = 1_000;
const MAX_TOKENS: u32 = 50_000;

/// The `codesearch` tool.
pub struct WebCodeSearchTool(pub(crate) Arc<WebClient>);

/// Input of the `codesearch` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebCodeSearchInput {
    /// The library, and the task to solve with it.
    query: String,
    /// Length of the answer, 1000 to 50000 tokens; default 5000.
    #[schemars(range(min = 1000, max = 50000))]
    tokens_num: Option<u32>,
}

#[async_trait]
impl Tool for WebCodeSearchTool {
    type Input = WebCodeSearchInput;

    fn name(&self) -> &str {
        "codesearch"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn describe_call(&self, input: &WebCodeSearchInput, _root: &str) -> Option<CallDescription> {
        Some(CallDescription::new("Search code", "searching code:", &input.query))
    }

    fn permission_key(&self) -> &str {
        "webfetch"
    }

    fn is_offered(&self, _context: &StepContext) -> bool {
        self.0.code_engine().is_some()
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<WebCodeSearchInput>(include_str!("description.md"))
    }

    fn access(&self, _input: &WebCodeSearchInput) -> Vec<ToolAccess> {
        search_access(self.0.code_engine())
    }

    async fn run(
        &self,
        input: WebCodeSearchInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let engine = self.0.code_engine().and_then(|engine| Some((engine, engine.code.as_ref()?)));
        let tokens = input.tokens_num.unwrap_or(DEFAULT_TOKENS).clamp(MIN_TOKENS, MAX_TOKENS);
        let query = SearchQuery {
            text: input.query,
            max_results: 8,
            max_characters: tokens.saturating_mul(4),
            max_tokens: tokens,
            ..SearchQuery::default()
        };
        run_search(&self.0, engine, query, cx).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case_runner;

    #[test]
    fn the_schema_is_current() {
        case_runner::check_schema(
            &WebCodeSearchTool(Arc::default()),
            expect_test::expect_file!["schema.json"],
        );
    }
}
