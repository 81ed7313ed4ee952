//! Why a reading may be wrong, each in a sentence for people.

/// A comment, in words.
pub(crate) const COMMENT: &str = "it holds a comment, which may not be true";

/// One reason. The order is the order in which people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Doubt {
    Length,
    Depth,
    Segments,
    Control,
    Hidden,
    Broken,
    Substitution,
    Variable,
    Arithmetic,
    Process,
    Document,
    Escapes,
    Braces,
    Mixed,
    Tilde,
    Array,
    Append,
    Loop,
    Condition,
    Case,
    Function,
    Test,
    Background,
    Coprocess,
    Time,
    Reserved,
    Descriptor,
    Comment,
    Unknown,
    Differ,
}

impl Doubt {
    pub(super) fn says(self) -> &'static str {
        match self {
            Doubt::Length => "it is longer than 64 KiB",
            Doubt::Depth => "it is nested too deeply",
            Doubt::Segments => "it has more than 10,000 commands",
            Doubt::Control => "it holds control characters",
            Doubt::Hidden => "it holds characters that cannot be seen",
            Doubt::Broken => "it is not complete, or not a shell command",
            Doubt::Substitution => "it puts the output of a command into another one",
            Doubt::Variable => "it uses a variable",
            Doubt::Arithmetic => "it calculates",
            Doubt::Process => "it passes a running command as a file",
            Doubt::Document => "it expands what stands in a here-document",
            Doubt::Escapes => "it uses $'…' or $\"…\"",
            Doubt::Braces => "it expands braces",
            Doubt::Mixed => "it mixes wildcards with the same characters in quotes",
            Doubt::Tilde => "it uses ~ where it is hard to tell whether it is a folder",
            Doubt::Array => "it uses an array",
            Doubt::Append => "it appends to a variable",
            Doubt::Loop => "it has a loop",
            Doubt::Condition => "it has an if",
            Doubt::Case => "it has a case",
            Doubt::Function => "it defines a function",
            Doubt::Test => "it has a [[ test",
            Doubt::Background => "it leaves something running with &",
            Doubt::Coprocess => "it starts a coprocess",
            Doubt::Time => "it measures time",
            Doubt::Reserved => "a word of the shell's own language stands where a command should",
            Doubt::Descriptor => "it redirects a descriptor in an unusual way",
            Doubt::Comment => COMMENT,
            Doubt::Unknown => "it holds something that is not understood",
            Doubt::Differ => "it can be read in two ways",
        }
    }
}
