//! The cases of `skill`, and tests of the list of skills in the tool description.

use crate::case_runner;
use windlass_toolkit::{SkillDefinition, StepContext, Tool};

windlass_testkit::cases!(case_runner::run_case, "skill/cases":
    a_skill_is_returned_with_its_folder,
    a_rule_may_name_a_skill,
    an_unknown_skill_suggests_similar_names,
    no_approval_is_needed_in_plan_mode,
);

#[test]
fn the_schema_is_current() {
    case_runner::check_schema(&super::SkillTool, expect_test::expect_file!["schema.json"]);
}

fn context(skills: Vec<SkillDefinition>) -> StepContext {
    StepContext { skills: skills.into(), ..StepContext::default() }
}

#[test]
fn the_list_is_limited_and_counts_the_omitted_skills() {
    for description in ["x".repeat(10_000), "é".repeat(150), "a\nb\n\n== c".to_owned()] {
        for count in [0, 1, 3, 500] {
            let skill = |n: usize| SkillDefinition {
                name: format!("skill-{n:03}"),
                description: description.clone(),
                ..SkillDefinition::default()
            };
            let skills: Vec<SkillDefinition> = (0..count).map(skill).collect();
            let list = super::list_skills(&context(skills));
            assert!(list.len() <= super::MAX_SKILL_LIST_BYTES + 40, "{}", list.len());
            let shown = list.lines().filter(|line| line.starts_with("- skill-")).count();
            let omitted = list.rsplit_once('(').and_then(|(_, rest)| rest.split(' ').next());
            let omitted: usize = omitted.map_or(0, |omitted| omitted.parse().unwrap());
            assert_eq!(shown + omitted, count);
        }
    }
}

#[test]
fn every_skill_is_listed_by_name_before_descriptions_are_long() {
    for count in [39, 60, 150] {
        let skill = |n: usize| SkillDefinition {
            name: format!("a-skill-with-name-{n:03}"),
            description: format!("Number {n}. {}", "Use it when needed. ".repeat(20)),
            ..SkillDefinition::default()
        };
        let list = super::list_skills(&context((0..count).map(skill).collect()));
        for n in 0..count {
            assert!(list.contains(&format!("\n- a-skill-with-name-{n:03}")), "{count}: {n}");
        }
        assert!(!list.contains("not listed"), "{count}: {list}");
    }
}

#[test]
fn without_skills_it_is_not_offered() {
    assert!(!super::SkillTool.is_offered(&context(Vec::new())));
    assert!(super::SkillTool.is_offered(&context(vec![SkillDefinition::default()])));
}
