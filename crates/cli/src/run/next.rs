//! What to do after something went wrong, at the command line.

use windlass_protocol::Fault;

/// The next step, in one sentence.
pub(super) fn hint(fault: &Fault) -> &'static str {
    match fault {
        Fault::Auth { .. } => {
            "`windlass auth login PROVIDER` keeps another key; `windlass auth list` says what there is."
        }
        Fault::RateLimited { .. } => "Wait a little, then run `windlass run --continue`.",
        Fault::Overflow { .. } => "Start a new session, or choose a model with more context.",
        Fault::Network { .. } => {
            "Check the network and `base_url`, then run `windlass run --continue`."
        }
        Fault::Refused { .. } => "Word the request differently.",
        Fault::Provider { status: Some(404), .. } => {
            "`windlass models` lists what is known; check the model's name and `base_url`."
        }
        Fault::Provider { .. } => "Try again with `windlass run --continue`.",
        Fault::Storage { .. } => {
            "Free some disk space or close the other windlass, then run `windlass run --continue`."
        }
        Fault::Config { .. } => {
            "`windlass config show` says what is set, `windlass session list` what there is."
        }
        Fault::Internal { .. } => "Please report this; WINDLASS_LOG=debug shows more.",
    }
}
