//! The input that the user submits from the prompt editor.

use crate::keys::UiCommand;
use windlass_protocol::{Attachment, PromptDelivery, PromptSettings};

/// A submission of the user: a prompt or a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Submission {
    /// A prompt for the model.
    Prompt {
        /// The text, with pasted text expanded.
        text: String,
        /// Images and documents.
        attachments: Vec<Attachment>,
        /// The `PromptDelivery` of the prompt if a turn is running.
        delivery: PromptDelivery,
        /// Settings of the custom command that it comes from.
        settings: PromptSettings,
    },
    /// A shell command, typed after `!`.
    ShellCommand(String),
    /// A built-in `UiCommand` with its argument.
    BuiltinCommand(UiCommand, String),
    /// A custom command of the user.
    CustomCommand {
        /// The name of the command.
        name: String,
        /// The text typed after the name.
        arguments: String,
    },
}

impl Submission {
    /// Creates a prompt without attachments, delivered as soon as possible (`PromptDelivery::Steer`).
    pub fn from_text(text: String) -> Submission {
        let (attachments, delivery) = (Vec::new(), PromptDelivery::Steer);
        let settings = PromptSettings::default();
        Submission::Prompt { text, attachments, delivery, settings }
    }

    /// Returns the text typed for this submission and its attachments; `None` for a built-in
    /// command, which runs at once.
    pub fn typed_text(&self) -> Option<(String, &[Attachment])> {
        match self {
            Submission::Prompt { text, attachments, .. } => Some((text.clone(), attachments)),
            Submission::ShellCommand(command) => Some((format!("!{command}"), &[])),
            Submission::CustomCommand { name, arguments } => {
                Some((format!("/{name} {arguments}").trim_end().to_owned(), &[]))
            }
            Submission::BuiltinCommand(..) => None,
        }
    }
}
