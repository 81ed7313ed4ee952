//! `todowrite`: replaces the list of what is to be done. It touches nothing: the list is part of
//! the conversation, and the person watches it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use windlass_protocol::todo::TODOS;
use windlass_protocol::{Access, Display, Output, Todo};
use windlass_toolkit::bound::plain;
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// How many things a list holds.
const MOST: usize = 100;

/// How long one of them is, in characters.
const LONGEST: usize = 500;

/// How long the whole list is, in bytes: it must stand in the log beside its result.
const LARGEST: usize = 40_000;

/// The tool.
pub struct TodoWrite;

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The whole list, in order.
    todos: Vec<Todo>,
}

#[async_trait]
impl Tool for TodoWrite {
    type Input = Input;

    fn name(&self) -> &str {
        "todowrite"
    }

    fn offered(&self, scene: &Scene) -> bool {
        !crate::patches(scene)
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, _input: &Input) -> Vec<Access> {
        Vec::new()
    }

    async fn run(&self, input: Input, _cx: &Cx<'_>) -> Result<Output, Failure> {
        let mut todos = input.todos;
        if todos.len() > MOST {
            let text = format!("a list holds {MOST} things; join or drop some of them");
            return Err(Failure::new(text));
        }
        for (at, todo) in todos.iter_mut().enumerate() {
            todo.content = plain(&todo.content).split_whitespace().collect::<Vec<_>>().join(" ");
            let number = at + 1;
            if todo.content.is_empty() {
                return Err(Failure::new(format!("number {number} says nothing; say what to do")));
            }
            if todo.content.chars().count() > LONGEST {
                let text =
                    format!("number {number} is longer than {LONGEST} characters; shorten it");
                return Err(Failure::new(text));
            }
        }
        let list = json!(todos);
        if list.to_string().len() > LARGEST {
            return Err(Failure::new("the list is too long to keep; shorten or drop some of it"));
        }
        let title = progress(&todos);
        let metadata = [(TODOS.to_owned(), list)].into_iter().collect();
        let text = format!("The list is kept: {title}.");
        let display = Display::Checklist { items: todos };
        Ok(Output { title, text, display, metadata, ..Output::default() })
    }
}

/// How far a list is, in a few words.
pub(crate) fn progress(todos: &[Todo]) -> String {
    match todos.iter().filter(|todo| todo.status.is_open()).count() {
        0 if todos.is_empty() => "nothing to do".to_owned(),
        0 => "nothing left to do".to_owned(),
        open => format!("{open} of {} left to do", todos.len()),
    }
}

#[cfg(test)]
mod tests;
