//! The `ProgramRow` type: a row of the program table, with its templates.

use super::risk::{Risk, RiskFinding};
use crate::shell::ShellWord;

/// A row of the program table: facts about a program or some of its subcommands.
#[derive(Debug)]
pub(super) struct ProgramRow {
    /// Programs, or programs with subcommands, separated by `|`.
    pub(super) names: &'static str,
    pub(super) risk: Risk,
    /// The programs need the network only to download packages from registries. Publishing, logging
    /// in and running what was downloaded are not among them.
    pub(super) only_downloads_packages: bool,
    /// The options that do not change the risk, in the syntax of `option_grammar`.
    pub(super) options: &'static str,
    pub(super) operands: OperandKind,
    /// The row applies only if one of these options or operands is present, and none of those
    /// marked with `!`.
    pub(super) condition: &'static str,
    /// The risk if an argument is unknown.
    pub(super) unknown_argument_risk: Risk,
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests read them"))]
    pub(super) examples: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests read them"))]
    pub(super) counterexamples: &'static [&'static str],
}

impl ProgramRow {
    /// Template for rows of programs that only read (`Risk::ReadOnly`).
    pub(super) const READ_ONLY: ProgramRow = ProgramRow {
        names: "",
        risk: Risk::ReadOnly,
        only_downloads_packages: false,
        options: "",
        operands: OperandKind::ReadPaths,
        condition: "",
        unknown_argument_risk: Risk::WorkspaceWrite,
        examples: &[],
        counterexamples: &[],
    };
    /// Template for rows of programs that change the workspace.
    pub(super) const WORKSPACE_WRITE: ProgramRow = ProgramRow {
        risk: Risk::WorkspaceWrite,
        operands: OperandKind::Text,
        ..ProgramRow::READ_ONLY
    };
    /// Template for rows of programs that use the network.
    pub(super) const NETWORK_ACCESS: ProgramRow =
        ProgramRow { risk: Risk::Network, ..ProgramRow::WORKSPACE_WRITE };
    /// Template for rows of programs that download packages.
    pub(super) const PACKAGE_DOWNLOAD: ProgramRow =
        ProgramRow { only_downloads_packages: true, ..ProgramRow::NETWORK_ACCESS };
    /// Template for rows of programs that destroy data or gain privileges.
    pub(super) const DESTRUCTIVE_ACTION: ProgramRow =
        ProgramRow { risk: Risk::Destructive, ..ProgramRow::WORKSPACE_WRITE };

    /// Returns the finding for an argument that the row does not know.
    pub(super) fn unknown_argument(&self, program: &str, argument: &str) -> RiskFinding {
        let reason = format!("`{program}` is not known to be safe with {argument}");
        RiskFinding::new(self.unknown_argument_risk, reason)
    }

    /// Returns the finding for an argument that should only read. Whatever a program that reads
    /// makes of it, a sandbox without write access confines it.
    pub(super) fn confined_argument(&self, program: &str, argument: &str) -> RiskFinding {
        let finding = self.unknown_argument(program, argument);
        match (self.risk, self.unknown_argument_risk) {
            (Risk::ReadOnly, Risk::WorkspaceWrite) => {
                RiskFinding::new(Risk::ConfinedRead, finding.reason)
            }
            _ => finding,
        }
    }

    /// Returns the finding for a word that the row does not know, or whose value is unknown.
    pub(super) fn unknown_word(&self, program: &str, word: &ShellWord) -> RiskFinding {
        match word {
            ShellWord::Opaque(text) => self.confined_argument(program, text),
            ShellWord::Plain(text) | ShellWord::Pattern(text) => {
                self.unknown_argument(program, text)
            }
        }
    }
}

/// The meaning of a program's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperandKind {
    /// The program takes no operands.
    None,
    /// Operands have no effect on files.
    Text,
    ReadPaths,
    /// Output formats that begin with `+`.
    PlusFormats,
    /// Names of branches and similar, but no subcommand.
    GitRefs,
    /// Columns for `ps`, but not the environment of processes.
    PsColumns,
    /// A branch, or paths that git overwrites.
    GitCheckout,
    WritePaths,
    /// A pattern, unless an option provides it, then paths that are read.
    PatternThenReads,
    /// The first operand is read, the second is written.
    ReadThenWrite,
    /// The last operand is written, the others are read.
    ReadsThenWrite,
    /// The last of several operands is written; the others are read later.
    LastIsWritten,
    /// The only argument is one of the row's options.
    ExactOptions,
    /// A `sed` script, then paths.
    SedScript,
    /// An `awk` program, then paths.
    AwkProgram,
    /// A `jq` or `yq` filter, then paths.
    JqFilter,
    /// An expression of `test`.
    TestExpression,
    /// An expression of `find`.
    FindExpression,
    /// Paths that `rm` removes.
    RemovedPaths,
    /// Paths that are changed recursively.
    RecursivePaths,
    /// `of=PATH` and `if=PATH`.
    DdOperands,
    /// Options of a container, which may mount folders of the host.
    ContainerArguments,
    /// The name and value of a git setting.
    GitSetting,
}
