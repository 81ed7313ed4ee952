//! Hints printed after a failed run.

use windlass_protocol::Fault;

/// Returns the suggested next step for a [`Fault`], in one sentence.
pub(super) fn next_step_hint(fault: &Fault) -> &'static str {
    match fault {
        Fault::Auth { .. } => {
            "Save another key with `windlass auth login PROVIDER`; run `windlass auth list` to \
             see all keys."
        }
        Fault::RateLimited { retry_after_ms: Some(_), .. } => {
            "Run `windlass run --continue` after that time."
        }
        Fault::RateLimited { .. } => "Wait a little, then run `windlass run --continue`.",
        Fault::ContextOverflow { .. } => {
            "Start a new session, or choose a model with a larger context window."
        }
        Fault::Network { .. } | Fault::HostNotFound { .. } => {
            "Check the network and `base_url`, then run `windlass run --continue`."
        }
        Fault::ModelRefused { .. } => "Rephrase the request.",
        Fault::Provider { status: Some(404), .. } => {
            "Check the model's name and `base_url`; run `windlass models` to list known models."
        }
        Fault::Provider { .. } => "Try again with `windlass run --continue`.",
        Fault::Storage { .. } => {
            "Free some disk space or close the other Windlass process, then run `windlass run \
             --continue`."
        }
        Fault::SessionBusy { .. } => {
            "Close the session there. If the server has it: `windlass run --attach --continue`."
        }
        Fault::SessionMoved { .. } => "Open it again: `windlass run --continue`.",
        // The message says it.
        Fault::Refused { .. } => "",
        Fault::Config { .. } => {
            "Fix the setting named above; `windlass config show` shows where each one comes from."
        }
        Fault::Internal { .. } => "Please report this; set WINDLASS_LOG=debug for more details.",
    }
}
