//! The cases of `skill`, and what a model is told of many.

use crate::harness;
use windlass_toolkit::{Scene, Skill, Tool};

windlass_testkit::cases!(harness::run, "skill/cases":
    a_skill_is_given_with_its_folder,
    a_rule_may_name_a_skill,
    a_skill_that_is_not_there_names_the_nearest,
    nobody_is_asked_in_plan_mode,
);

#[test]
fn the_schema_is_current() {
    harness::check_schema(&super::Skill, expect_test::expect_file!["schema.json"]);
}

fn scene(skills: Vec<Skill>) -> Scene {
    Scene { skills: skills.into(), ..Scene::default() }
}

#[test]
fn the_list_keeps_to_its_budget_and_says_what_it_leaves_out() {
    for description in ["x".repeat(10_000), "é".repeat(150), "a\nb\n\n== c".to_owned()] {
        for count in [0, 1, 3, 500] {
            let skill = |n: usize| Skill {
                name: format!("skill-{n:03}"),
                description: description.clone(),
                ..Skill::default()
            };
            let skills: Vec<Skill> = (0..count).map(skill).collect();
            let list = super::list(&scene(skills));
            assert!(list.len() <= super::BUDGET + 40, "{}", list.len());
            let shown = list.lines().filter(|line| line.starts_with("- skill-")).count();
            let left = list.rsplit_once('(').and_then(|(_, rest)| rest.split(' ').next());
            let left: usize = left.map_or(0, |left| left.parse().unwrap());
            assert_eq!(shown + left, count);
        }
    }
}

#[test]
fn without_skills_it_is_not_offered() {
    assert!(!super::Skill.offered(&scene(Vec::new())));
    assert!(super::Skill.offered(&scene(vec![Skill::default()])));
}
