//! The cases of `tool_search`, and what a model is told of many sources.

use crate::harness;
use serde_json::json;
use windlass_protocol::ToolSummary;
use windlass_toolkit::{Found, RESERVE, Scene, Tool, cost};

windlass_testkit::cases!(harness::run, "tool_search/cases":
    a_tool_is_found_with_its_schema,
    nothing_that_fits_says_so,
    who_is_not_there_is_named_with_the_reason,
    what_a_rule_denies_is_not_found,
    where_everything_is_told_it_is_not_there,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::ToolSearch, expect_test::expect_file!["schema.json"]);
}

fn scene(lines: Vec<String>) -> Scene {
    Scene { elsewhere: lines.into(), ..Scene::default() }
}

#[tokio::test]
async fn searching_and_calling_cost_no_more_than_what_is_kept_for_them() {
    for (line, counts) in
        [("x".repeat(10_000), [0, 1, 8, 500]), ("é\n\u{1b}[2J".repeat(40), [0, 2, 9, 200])]
    {
        for count in counts {
            let scene = scene(vec![line.clone(); count]);
            let search = super::ToolSearch.describe(&scene).await;
            let call = crate::call_tool::CallTool.describe(&scene).await;
            let tokens = cost("tool_search", &search) + cost("call_tool", &call);
            assert!(tokens <= RESERVE, "{tokens}");
            assert!(!search.description.contains('\u{1b}'));
            let shown = search.description.lines().filter(|line| line.starts_with("- ")).count();
            let left =
                search.description.rsplit_once("\n(").and_then(|(_, rest)| rest.split(' ').next());
            let left: usize = left.map_or(0, |left| left.parse().unwrap());
            assert_eq!(shown + left, count);
        }
    }
}

#[test]
fn many_long_tools_are_cut_to_what_a_model_can_read() {
    let tool = |n: usize| ToolSummary {
        name: format!("t{n}"),
        description: "long ".repeat(2_000),
        schema: json!({"type": "object", "description": "x".repeat(3_000)}),
    };
    let text = super::text(Found { tools: (0..10).map(tool).collect(), more: 5, missing: vec![] });
    assert!(text.len() < 17 * 1024, "{}", text.len());
    let shown = text.matches(" — ").count();
    assert!(text.contains(&format!("{} more fit", 15 - shown)), "{text}");
}

#[test]
fn what_a_model_must_know_is_said() {
    let told = [
        (include_str!("description.md"), ["not in your list", "schema", "call_tool"]),
        (include_str!("../call_tool/description.md"), ["tool_search", "fit its schema", "rules"]),
    ];
    for (told, facts) in told {
        assert!(facts.iter().all(|fact| told.contains(fact)), "{told}");
    }
}
