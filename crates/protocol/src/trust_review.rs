//! The trust question: the content of a folder that Windlass would run or the model would follow,
//! the effect of each answer, and the words for both. Every front end shows the same words.

use crate::PermissionMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The review of a folder that the user may trust.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TrustReview {
    /// Files that Windlass would run, settings that it would apply and instructions that the model
    /// would follow, line by line.
    pub requested_actions: Vec<String>,
    /// Changes since the folder was trusted; `None` if it is not trusted, empty if nothing
    /// changed.
    #[serde(default)]
    pub changes: Option<Vec<String>>,
    /// Mode of new sessions after `TrustDecision::Trust`.
    pub trusted_mode: PermissionMode,
    /// Mode of new sessions while the folder is not trusted.
    pub untrusted_mode: PermissionMode,
    /// True if the folder is the home folder of the user, or contains it.
    pub is_home: bool,
    /// Digest of everything above, which the decision names: [`FrontendRequest::SetTrust`].
    ///
    /// [`FrontendRequest::SetTrust`]: crate::frontend_messages::FrontendRequest::SetTrust
    #[serde(default)]
    pub digest: String,
}

/// The user's answer to the trust question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustDecision {
    /// Trusts the folder and works in `TrustReview::trusted_mode`.
    Trust,
    /// Trusts the folder; the mode stays `ask`.
    TrustAndAsk,
    /// Declines trust, or revokes it.
    Decline,
}

impl TrustReview {
    /// Returns true if the folder is trusted in its current state.
    pub fn is_trusted(&self) -> bool {
        self.changes.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns true if trust alone changes the mode, so that the user can choose to keep asking.
    pub fn offers_ask(&self) -> bool {
        self.trusted_mode != self.untrusted_mode
    }

    /// Returns the answers to the trust question, in the order of the list. In the home folder the
    /// cautious ones come first.
    pub fn answers(&self) -> Vec<TrustDecision> {
        let mut answers = vec![TrustDecision::Trust, TrustDecision::TrustAndAsk];
        answers.retain(|answer| *answer != TrustDecision::TrustAndAsk || self.offers_ask());
        answers.push(TrustDecision::Decline);
        if self.is_home {
            answers.reverse();
        }
        answers
    }

    /// Returns the label of an answer.
    pub fn answer_label(&self, decision: TrustDecision) -> String {
        match decision {
            TrustDecision::Trust if self.offers_ask() => {
                format!("Trust this folder and work in mode {}", self.trusted_mode)
            }
            TrustDecision::Trust => "Trust this folder".to_owned(),
            TrustDecision::TrustAndAsk => "Trust this folder and keep asking".to_owned(),
            TrustDecision::Decline if self.changes.is_some() => "Not now".to_owned(),
            TrustDecision::Decline => "Do not trust this folder".to_owned(),
        }
    }

    /// Returns the warning for the home folder.
    pub fn warning(&self) -> Option<&'static str> {
        self.is_home.then_some(
            "This is your home folder, or contains it. If you trust it, all your projects and \
             documents count as one project. Start Windlass in a project folder instead.",
        )
    }

    /// Introduces `requested_actions`, for the folder with this name.
    pub fn introduction(&self, folder: &str) -> String {
        match (self.requested_actions.is_empty(), self.is_trusted()) {
            (true, _) => format!(
                "{folder} contains no settings that Windlass would run, and no instructions that \
                 the model would follow."
            ),
            (false, false) => {
                format!(
                    "{folder} contains files that Windlass would run or the model would follow:"
                )
            }
            (false, true) => {
                format!("{folder} contains files that Windlass runs or the model follows:")
            }
        }
    }

    /// Describes the effects of trust and of declining it, one sentence group per line.
    pub fn effects(&self) -> Vec<String> {
        let mut effects = vec![match self.requested_actions.is_empty() {
            true => "If you trust this folder, Windlass starts language servers and formatters \
                     for its files, until settings such as `.windlass` appear in it."
                .to_owned(),
            false => "If you trust this folder, Windlass runs and follows this, and starts \
                      language servers and formatters for its files, until a setting changes. \
                      AGENTS.md may change without a new question."
                .to_owned(),
        }];
        effects.push(match (self.trusted_mode, self.offers_ask()) {
            (PermissionMode::Auto, true) => "In mode auto, edits in this folder and sandboxed \
                                             commands run without asking. In mode ask, you \
                                             approve them."
                .to_owned(),
            (mode, true) => format!("The mode changes to {mode}."),
            (mode, false) => format!("The mode stays {mode}."),
        });
        effects.push(format!(
            "If you do not, its settings and AGENTS.md are ignored and the mode stays {}.",
            self.untrusted_mode
        ));
        effects
    }

    /// Tells when the question comes back after `TrustDecision::Decline`. A folder that changed
    /// keeps its entry, so that the next question can show the changes.
    pub fn decline_effect(&self) -> &'static str {
        match self.changes {
            Some(_) => "Then you are asked again at the next start.",
            None => "Then you are asked again when other settings appear in it.",
        }
    }

    /// Introduces `changes`.
    pub const CHANGES_HEADING: &str = "Changed since you trusted it:";

    /// The effect of revoking trust.
    pub const REVOKE_EFFECTS: &str = "If you revoke trust, Windlass stops the programs it started \
                                      for this folder, ignores its settings and AGENTS.md, reads \
                                      its files only as text, and asks before changes unless your \
                                      config sets another mode.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_follow_the_modes_and_the_folder() {
        let review = TrustReview {
            trusted_mode: PermissionMode::Auto,
            untrusted_mode: PermissionMode::Ask,
            ..TrustReview::default()
        };
        use TrustDecision::{Decline, Trust, TrustAndAsk};
        assert_eq!(review.answers(), [Trust, TrustAndAsk, Decline]);
        assert_eq!(review.warning(), None);
        let home = TrustReview { is_home: true, ..review.clone() };
        assert_eq!(home.answers(), [Decline, TrustAndAsk, Trust]);
        assert!(home.warning().is_some());
        let configured = TrustReview { trusted_mode: PermissionMode::Ask, ..review };
        assert_eq!(configured.answers(), [Trust, Decline]);
        assert!(configured.effects().concat().contains("The mode stays ask."));
        // The label tells how long the answer lasts.
        assert_eq!(configured.answer_label(Decline), "Do not trust this folder");
        assert!(configured.decline_effect().contains("when other settings appear"));
        let changed = TrustReview { changes: Some(vec!["new: .mcp.json".into()]), ..configured };
        assert_eq!(changed.answer_label(Decline), "Not now");
        assert!(changed.decline_effect().contains("at the next start"));
    }
}
