//! `skill`: what somebody wrote down of how to do something, read when it is needed.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use windlass_protocol::text::beginning;
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool, nearest};

/// How many bytes the list of skills takes in a description, and how many characters one of them.
const BUDGET: usize = 2_000;
const LONGEST: usize = 200;

/// The tool.
pub struct Skill;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The skill.
    name: String,
}

#[async_trait]
impl Tool for Skill {
    type Input = Input;

    fn name(&self) -> &str {
        "skill"
    }

    /// Where there is no skill, a model is not told of them.
    fn offered(&self, scene: &Scene) -> bool {
        !scene.skills.is_empty()
    }

    async fn describe(&self, scene: &Scene) -> Definition {
        let mut definition = Definition::of::<Input>(include_str!("description.md"));
        definition.description.push_str(&list(scene));
        definition
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        vec![Access::Skill { name: input.name.clone() }]
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let skills = &cx.scene.skills;
        let Some(skill) = skills.iter().find(|skill| skill.name == input.name) else {
            let names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
            let near = nearest(&input.name, &names);
            let near = if near.is_empty() { names } else { near };
            let text = format!("There is no skill {}. There is: {}", input.name, near.join(", "));
            return Err(Failure::new(text));
        };
        let mut text = format!("Skill {}, from {}\n", skill.name, skill.folder);
        if !skill.tools.is_empty() {
            text.push_str(&format!("It is meant for these tools: {}\n", skill.tools.join(", ")));
        }
        text.push('\n');
        text.push_str(&skill.body);
        Ok(Output { title: skill.name.clone(), text, ..Output::default() })
    }
}

/// The skills with what each is for, as far as there is room.
fn list(scene: &Scene) -> String {
    let mut list = String::new();
    let mut left = scene.skills.len();
    for skill in scene.skills.iter() {
        let line: Vec<&str> = skill.description.split_whitespace().collect();
        let line = format!("\n- {}: {}", skill.name, beginning(&line.join(" "), LONGEST));
        if list.len() + line.len() > BUDGET {
            break;
        }
        list.push_str(&line);
        left -= 1;
    }
    if left > 0 {
        list.push_str(&format!("\n({left} more are not listed)"));
    }
    list
}

#[cfg(test)]
mod tests;
