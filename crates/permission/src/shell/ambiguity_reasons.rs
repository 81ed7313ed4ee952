//! The `ShellAmbiguity` type: reasons that a parsed command line may be incomplete or wrong, each with a
//! message for the user.

/// One reason for doubt. The order of variants is the order in which messages appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShellAmbiguity {
    TooLong,
    TooDeep,
    TooManySegments,
    ControlCharacters,
    InvisibleCharacters,
    SyntaxError,
    CommandSubstitution,
    Variable,
    Arithmetic,
    ProcessSubstitution,
    HeredocExpansion,
    DollarQuotes,
    BraceExpansion,
    PartlyQuotedWildcard,
    Tilde,
    Array,
    AppendAssignment,
    Loop,
    IfStatement,
    CaseStatement,
    FunctionDefinition,
    DoubleBracketTest,
    Background,
    Coprocess,
    TimeKeyword,
    ReservedWord,
    UnusualDescriptor,
    Comment,
    Unknown,
    ParsersDisagree,
}

impl ShellAmbiguity {
    pub(crate) fn message(self) -> &'static str {
        match self {
            ShellAmbiguity::TooLong => "it is longer than 64 KiB",
            ShellAmbiguity::TooDeep => "it is nested too deeply",
            ShellAmbiguity::TooManySegments => "it has more than 10,000 commands",
            ShellAmbiguity::ControlCharacters => "it contains control characters",
            ShellAmbiguity::InvisibleCharacters => "it contains invisible characters",
            ShellAmbiguity::SyntaxError => "it is incomplete, or not a valid shell command",
            ShellAmbiguity::CommandSubstitution => "it uses command substitution",
            ShellAmbiguity::Variable => "it uses a variable",
            ShellAmbiguity::Arithmetic => "it uses shell arithmetic",
            ShellAmbiguity::ProcessSubstitution => "it uses process substitution",
            ShellAmbiguity::HeredocExpansion => {
                "it expands variables or commands in a here-document"
            }
            ShellAmbiguity::DollarQuotes => "it uses $'…' or $\"…\"",
            ShellAmbiguity::BraceExpansion => "it uses brace expansion",
            ShellAmbiguity::PartlyQuotedWildcard => "it mixes quoted and unquoted wildcards",
            ShellAmbiguity::Tilde => "it uses ~ where it may or may not mean a home folder",
            ShellAmbiguity::Array => "it uses an array",
            ShellAmbiguity::AppendAssignment => "it appends to a variable",
            ShellAmbiguity::Loop => "it has a loop",
            ShellAmbiguity::IfStatement => "it has an `if` statement",
            ShellAmbiguity::CaseStatement => "it has a `case` statement",
            ShellAmbiguity::FunctionDefinition => "it defines a function",
            ShellAmbiguity::DoubleBracketTest => "it has a [[ test",
            ShellAmbiguity::Background => "it starts a background process with &",
            ShellAmbiguity::Coprocess => "it starts a coprocess",
            ShellAmbiguity::TimeKeyword => "it uses the `time` keyword",
            ShellAmbiguity::ReservedWord => "a shell keyword is used where a command should be",
            ShellAmbiguity::UnusualDescriptor => "it redirects a descriptor in an unusual way",
            ShellAmbiguity::Comment => "it contains a comment, which may be misleading",
            ShellAmbiguity::Unknown => "it contains unsupported syntax",
            ShellAmbiguity::ParsersDisagree => "it can be parsed in two ways",
        }
    }

    /// Returns true if the parsers find every command of such a text. Only values, order and
    /// repetition are unknown.
    pub(crate) fn hides_no_command(self) -> bool {
        match self {
            ShellAmbiguity::CommandSubstitution
            | ShellAmbiguity::Variable
            | ShellAmbiguity::ProcessSubstitution
            | ShellAmbiguity::DollarQuotes
            | ShellAmbiguity::BraceExpansion
            | ShellAmbiguity::PartlyQuotedWildcard
            | ShellAmbiguity::Loop
            | ShellAmbiguity::IfStatement
            | ShellAmbiguity::CaseStatement
            | ShellAmbiguity::DoubleBracketTest
            | ShellAmbiguity::TimeKeyword
            | ShellAmbiguity::Comment => true,
            ShellAmbiguity::TooLong
            | ShellAmbiguity::TooDeep
            | ShellAmbiguity::TooManySegments
            | ShellAmbiguity::ControlCharacters
            | ShellAmbiguity::InvisibleCharacters
            | ShellAmbiguity::SyntaxError
            // A variable in an arithmetic expression can contain a command substitution.
            | ShellAmbiguity::Arithmetic
            | ShellAmbiguity::HeredocExpansion
            | ShellAmbiguity::Tilde
            | ShellAmbiguity::Array
            | ShellAmbiguity::AppendAssignment
            | ShellAmbiguity::FunctionDefinition
            | ShellAmbiguity::Background
            | ShellAmbiguity::Coprocess
            | ShellAmbiguity::ReservedWord
            | ShellAmbiguity::UnusualDescriptor
            | ShellAmbiguity::Unknown
            | ShellAmbiguity::ParsersDisagree => false,
        }
    }
}
