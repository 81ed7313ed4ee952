//! The cases of `tool_search`, and tests of its description and results.

use crate::case_runner;
use serde_json::json;
use windlass_protocol::ModelToolDefinition;
use windlass_toolkit::{
    SEARCH_TOOLS_RESERVE_TOKENS, SearchableSource, StepContext, Tool, ToolSearchResults,
    definition_tokens,
};

windlass_testkit::cases!(case_runner::run_case, "tool_search/cases":
    a_tool_is_found_with_its_schema,
    no_match_is_reported,
    an_unavailable_server_is_reported,
    denied_tools_are_not_found,
    tool_search_is_hidden_if_all_tools_are_listed,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::ToolSearchTool, expect_test::expect_file!["schema.json"]);
}

fn context(lines: Vec<String>) -> StepContext {
    let tool_names = vec!["create_issue".to_owned(); 40];
    let sources = lines
        .into_iter()
        .map(|summary| SearchableSource { summary, tool_names: tool_names.clone() });
    StepContext { searchable_sources: sources.collect(), ..StepContext::default() }
}

#[test]
fn a_source_is_listed_with_some_names_of_its_tools() {
    let source = |count: usize| SearchableSource {
        summary: format!("hub: {count} tools"),
        tool_names: (0..count).map(|n| format!("get-{n}")).collect(),
    };
    assert_eq!(super::list_sources(&[source(2)]), "\n- hub: 2 tools: get-0, get-1");
    let list = super::list_sources(&[source(90)]);
    assert!(
        list.starts_with("\n- hub: 90 tools: get-0, get-1,") && list.ends_with(", …"),
        "{list}"
    );
    assert!(list.len() <= super::MAX_SOURCE_LINE_CHARS + 3, "{list}");
    let many = vec![source(90); 30];
    let list = super::list_sources(&many);
    assert_eq!(list.matches("hub").count(), 30, "names displace no source: {list}");
}

#[test]
fn a_search_that_omits_tools_says_how_to_see_them() {
    let text = super::render_found_tools(ToolSearchResults { omitted: 3, ..Default::default() });
    assert!(text.contains("3 more match; narrow the search or raise `limit`."), "{text}");
}

#[tokio::test]
async fn the_definitions_fit_into_the_token_reserve() {
    for (line, counts) in
        [("x".repeat(10_000), [0, 1, 8, 500]), ("é\n\u{1b}[2J".repeat(40), [0, 2, 9, 200])]
    {
        for count in counts {
            let context = context(vec![line.clone(); count]);
            let search = super::ToolSearchTool.describe(&context).await;
            let call = crate::call_tool::CallTool.describe(&context).await;
            let tokens =
                definition_tokens("tool_search", &search) + definition_tokens("call_tool", &call);
            assert!(tokens <= SEARCH_TOOLS_RESERVE_TOKENS, "{tokens}");
            assert!(!search.description.contains('\u{1b}'));
            let shown = search.description.lines().filter(|line| line.starts_with("- ")).count();
            let omitted =
                search.description.rsplit_once("\n(").and_then(|(_, rest)| rest.split(' ').next());
            let omitted: usize = omitted.map_or(0, |omitted| omitted.parse().unwrap());
            assert_eq!(shown + omitted, count);
        }
    }
}

#[test]
fn long_results_are_truncated() {
    let tool = |n: usize| ModelToolDefinition {
        name: format!("t{n}"),
        description: "long ".repeat(2_000),
        schema: json!({"type": "object", "description": "x".repeat(3_000)}),
    };
    let text = super::render_found_tools(ToolSearchResults {
        tools: (0..10).map(tool).collect(),
        omitted: 5,
        unavailable: vec![],
    });
    assert!(text.len() < 17 * 1024, "{}", text.len());
    let shown = text.matches(" — ").count();
    assert!(text.contains(&format!("{} more match", 15 - shown)), "{text}");
}

#[test]
fn the_descriptions_contain_the_required_facts() {
    let expected = [
        (include_str!("description.md"), ["not in your list", "schema", "call_tool"]),
        (include_str!("../call_tool/description.md"), ["tool_search", "fit its schema", "rules"]),
    ];
    for (description, phrases) in expected {
        assert!(phrases.iter().all(|phrase| description.contains(phrase)), "{description}");
    }
}
