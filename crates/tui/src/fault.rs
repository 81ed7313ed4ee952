//! What went wrong, and what to do about it here: in the words of the screen and of the linear mode.

use windlass_protocol::Fault;

/// What happened, and the next step.
pub(crate) fn told(fault: &Fault) -> String {
    format!("{fault}. {}", hint(fault))
}

/// The next step, in one sentence.
pub(crate) fn hint(fault: &Fault) -> &'static str {
    match fault {
        Fault::Auth { .. } => "/login keeps another key, /model chooses another model.",
        Fault::RateLimited { .. } => "Wait a little, then say: go on.",
        Fault::Overflow { .. } => {
            "/compact sums it up, /new begins anew, /model chooses one that takes more."
        }
        Fault::Network { .. } => "Check the network and the model's `base_url`, then say: go on.",
        Fault::Refused { .. } => "Word the request differently.",
        Fault::Provider { status: Some(404), .. } => {
            "/model lists what can be asked; or check the model's name and `base_url`."
        }
        Fault::Provider { .. } => "To try again, say: go on.",
        Fault::Storage { .. } => {
            "Free some disk space or close the other windlass; then /sessions opens it again."
        }
        Fault::Config { .. } => "/doctor says what there is to work with.",
        Fault::Internal { .. } => "Please report this; WINDLASS_LOG=debug shows more.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::TABLE;

    #[test]
    fn every_command_that_is_named_is_one_of_the_terminal() {
        let message = String::new;
        let faults = [
            Fault::Auth { message: message() },
            Fault::RateLimited { message: message(), wait_ms: None },
            Fault::Overflow { message: message() },
            Fault::Network { message: message() },
            Fault::Refused { message: message() },
            Fault::provider(Some(404), ""),
            Fault::provider(None, ""),
            Fault::Storage { message: message() },
            Fault::Config { message: message() },
            Fault::Internal { message: message() },
        ];
        let mut named = 0;
        for fault in &faults {
            let hint = hint(fault);
            assert!(!hint.contains("windlass run"), "{hint}");
            let end = |sign: char| !sign.is_ascii_lowercase();
            for name in hint.split('/').skip(1).filter_map(|behind| behind.split(end).next()) {
                assert!(TABLE.iter().any(|entry| entry.slash && entry.name == name), "{hint}");
                named += 1;
            }
        }
        assert!(named >= 6, "{named}");
    }
}
