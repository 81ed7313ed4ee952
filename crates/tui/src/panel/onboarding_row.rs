//! The rows of the onboarding panel.

use windlass_protocol::frontend_messages::ProviderListItem;

/// The reason an `OnboardingPanel` is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnboardingPurpose {
    ChooseModel,
    Login,
}

/// A row that the user can choose.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnboardingRow<'a> {
    Provider(&'a ProviderListItem),
    /// The form for an OpenAI-compatible server that is not listed.
    OtherServer,
}

impl<'a> OnboardingRow<'a> {
    /// Returns the model that a choice would take, or the name of the provider.
    pub(super) fn name(self, purpose: OnboardingPurpose) -> &'a str {
        match self {
            OnboardingRow::OtherServer => "Another OpenAI-compatible server",
            OnboardingRow::Provider(option) => {
                let takes_model = option.is_ready && purpose == OnboardingPurpose::ChooseModel;
                let model = option.models.first().filter(|_| takes_model);
                model.map_or_else(|| name_of(option), String::as_str)
            }
        }
    }

    pub(super) fn is_ready(self) -> bool {
        matches!(self, OnboardingRow::Provider(option) if option.is_ready)
    }
}

/// Returns the provider's name for people.
pub(super) fn name_of(option: &ProviderListItem) -> &str {
    match option.display_name.as_str() {
        "" => &option.provider,
        name => name,
    }
}
