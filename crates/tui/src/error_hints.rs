//! Error messages for a `Fault` with the next step to take, shared by the screen and the linear
//! mode.

use windlass_protocol::Fault;

/// Message for a turn that the model ended without text.
pub(crate) const NO_ANSWER: &str =
    "The model ended its turn without an answer. Ask again, or use /model to choose another model.";

/// Message for a turn that was interrupted before the model had answered. Text that the model was
/// writing when the process was killed is not in the log.
pub(crate) const CUT_OFF: &str = "The answer was cut off; /retry tries again";

/// The prompt that continues a failed turn.
pub(crate) const RETRY_PROMPT: &str = "continue";

/// Returns the message of the fault followed by `next_step`.
pub(crate) fn describe(fault: &Fault) -> String {
    let message = fault.to_string();
    let message = message.strip_suffix('.').unwrap_or(&message);
    format!("{message}. {}", next_step(fault)).trim_end().to_owned()
}

/// Returns the next step for a `Fault` as one sentence.
pub(crate) fn next_step(fault: &Fault) -> &'static str {
    match fault {
        Fault::Auth { .. } => {
            "Use /login to save another API key, or /model to choose another \
                               model."
        }
        Fault::RateLimited { retry_after_ms: Some(_), .. } => {
            "Use /retry after that time to try again."
        }
        Fault::RateLimited { .. } => "Wait a moment, then use /retry to try again.",
        Fault::ContextOverflow { .. } => {
            "Use /compact to summarize the conversation, /new to start over, or /model to choose \
             one with a larger context window."
        }
        Fault::Network { .. } | Fault::HostNotFound { .. } => {
            "Check the network and the model's `base_url`, then use /retry to try again."
        }
        Fault::ModelRefused { .. } => "Rephrase the request.",
        Fault::Provider { status: Some(404), .. } => {
            "Use /model to list the available models, or check the model's name and `base_url`."
        }
        Fault::Provider { .. } => "Use /retry to try again.",
        Fault::Storage { .. } => {
            "Free some disk space or close the other windlass process, then use /sessions to \
             open the session again."
        }
        Fault::SessionBusy { .. } => "Close the session there, then use /sessions to open it here.",
        Fault::SessionMoved { .. } => "Use /sessions to watch it or to open it again.",
        // The message says it.
        Fault::Refused { .. } => "",
        Fault::Config { .. } => "Use /doctor to check the installation.",
        Fault::Internal { .. } => "Please report this; set WINDLASS_LOG=debug to log more.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::COMMAND_TABLE;

    #[test]
    fn every_command_in_a_hint_is_a_slash_command() {
        let message = String::new;
        let faults = [
            Fault::Auth { message: message() },
            Fault::RateLimited { message: message(), retry_after_ms: None },
            Fault::ContextOverflow { message: message() },
            Fault::Network { message: message() },
            Fault::HostNotFound { message: message() },
            Fault::ModelRefused { message: message() },
            Fault::from_provider(Some(404), ""),
            Fault::from_provider(None, ""),
            Fault::Storage { message: message() },
            Fault::SessionBusy { message: message() },
            Fault::SessionMoved { message: message() },
            Fault::Config { message: message() },
            Fault::Refused { message: message() },
            Fault::Internal { message: message() },
        ];
        let mut command_count = 0;
        for fault in &faults {
            let hint = next_step(fault);
            assert!(!hint.contains("windlass run"), "{hint}");
            let is_end = |character: char| !character.is_ascii_lowercase();
            for name in hint.split('/').skip(1).filter_map(|rest| rest.split(is_end).next()) {
                assert!(
                    COMMAND_TABLE.iter().any(|entry| entry.is_slash_command && entry.name == name),
                    "{hint}"
                );
                command_count += 1;
            }
        }
        assert!(command_count >= 6, "{command_count}");
    }
}
