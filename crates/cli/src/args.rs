//! The command line: one definition that gives parsing, help, completions and the man page.

mod screen;

pub(crate) use screen::{Init, Screen};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use windlass_engine::Point;
use windlass_project::Flags;
use windlass_protocol::{Cost, Mode};

/// What a run's exit code means.
const EXIT_CODES: &str = "\
Exit codes:
    0  done
    1  failed: the model, the network, the log, or an answer that does not fit its schema
    2  not started: a wrong argument, a config or a log that cannot be used
    3  denied: somebody said no, or nobody was there to say yes
    4  a limit was reached: of the model's output, or of requests, time, tokens or money in a turn;
       or the model went in circles
  130  interrupted";

/// A coding agent: a model acts on this project through tools, each act permitted, bounded and
/// recorded.
///
/// Alone, or with options and no command, it opens its screen in this terminal.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) screen: Screen,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Asks the model for something and shows what it does.
    #[command(after_help = EXIT_CODES)]
    Run(Box<Run>),
    /// Has the model look at this project and write AGENTS.md, which advises it from then on.
    ///
    /// It may change that one file and nothing else, and runs no commands. If the file is there, it is
    /// improved.
    #[command(after_help = EXIT_CODES)]
    Init(Init),
    /// Looks at past sessions and takes care of them.
    #[command(subcommand)]
    Session(Session),
    /// Looks at tools, and calls them without a model.
    #[command(subcommand)]
    Tool(Tool),
    /// Looks at the agents: ways of working, built in and from files.
    #[command(subcommand)]
    Agent(Agent),
    /// Keeps the keys of providers, in the keyring or in a file that only you can read.
    #[command(subcommand)]
    Auth(Auth),
    /// Servers of the Model Context Protocol: other people's tools here, and ours for others.
    #[command(subcommand)]
    Mcp(crate::mcp::Mcp),
    /// Takes over what you set up for another program, after showing what would become of it.
    ///
    /// Its config, agents, commands, skills, tools, servers, hooks and rules go into your own config
    /// folder, or with --project into this project's. Nothing that is there is overwritten, nothing is
    /// run, and whatever is not carried over is listed with the reason.
    Import(crate::import::Args),
    /// Plugins: folders of other people with skills, commands, agents, servers, hooks and tools.
    #[command(subcommand)]
    Plugin(crate::plugin::Plugin),
    /// Lists the models that are known: what they take in and give, what a million tokens cost,
    /// and what they can do.
    Models {
        /// Only those of this provider.
        #[arg(long, short, value_name = "NAME")]
        provider: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Looks at the config.
    #[command(subcommand)]
    Config(Config),
    /// Looks at what is allowed in this project, and takes it back.
    #[command(subcommand)]
    Permission(Permission),
    /// Trusts this folder as it is now, after showing what it would have Windlass run or obey.
    ///
    /// That is windlass.jsonc, .mcp.json and everything in .windlass. All of it is ignored until the
    /// folder is trusted, and again whenever something of it changes; the difference is shown then.
    /// Even after that a project can only tighten permissions, and never uses your keys. AGENTS.md
    /// is not part of it: it advises the model and runs nothing.
    Trust(Trust),
    /// Says what there is to work with on this machine, and what is missing: the terminal, the
    /// sandbox, the model and its key, language servers, the disk, the config.
    Doctor {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints a published JSON Schema.
    Schema {
        /// Which one.
        which: Schema,
    },
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Prints the manual page.
    Man,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// What to do. Read from standard input if it is not given, or given as `-`.
    pub(crate) prompt: Option<String>,
    /// Asks what a command says: NAME.md in `commands` of your config folder, or in
    /// `.windlass/commands` of a project that you trust. The prompt is what it is given. SERVER:NAME
    /// is a prompt that an MCP server brings, and is given `argument=value …`.
    #[arg(long, value_name = "NAME")]
    pub(crate) command: Option<String>,
    /// The model, as `provider/model`.
    #[arg(long, short, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The agent that works in a new session; `windlass agent list` lists them.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["session", "continue"])]
    pub(crate) agent: Option<String>,
    /// A variant of the model that the config names: other options.
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    /// A file that goes with the prompt: text, an image or a PDF. May be given several times.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Vec<String>,
    /// A file with the JSON Schema the answer has to fit. The answer is then JSON and nothing else.
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<String>,
    /// Added to what the model of a new session is told before everything else; `@FILE` takes it
    /// from a file.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["session", "continue"])]
    pub(crate) system: Option<String>,
    /// Goes on with a session; whatever it left unfinished is finished first.
    #[arg(long, short, value_name = "ID", conflicts_with = "continue")]
    pub(crate) session: Option<String>,
    /// Goes on with this folder's last session.
    #[arg(long, short)]
    pub(crate) r#continue: bool,
    /// What is printed: the answer, one JSON object at the end, or every event as a JSON line.
    #[arg(long, short, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    /// Answers yes to whatever would be asked, except to leaving the sandbox, which only a person
    /// at the terminal can allow. What a rule denies stays denied.
    #[arg(long, short)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Where a turn ends, done or not.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Limits {
    /// After so many requests to the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// When this much is spent, in dollars.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(crate) max_cost: Option<Cost>,
    /// After so many tokens, read and written.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// After so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    timeout: Option<u64>,
}

impl Limits {
    /// As a session takes them.
    pub(crate) fn of_a_turn(self) -> windlass_engine::session::Limits {
        let usual = windlass_engine::session::Limits::default();
        windlass_engine::session::Limits {
            steps: self.max_steps.unwrap_or(usual.steps),
            time_ms: self.timeout.map(|seconds| seconds.saturating_mul(1000)).or(usual.time_ms),
            tokens: self.max_tokens.or(usual.tokens),
            cost: self.max_cost.or(usual.cost),
            ..usual
        }
    }
}

/// An amount of money, such as `0.50`.
fn dollars(text: &str) -> Result<Cost, String> {
    const MOST: f64 = 1e9;
    let amount: f64 = text.parse().map_err(|_| "write an amount such as 0.50".to_owned())?;
    if !(0.000_001..=MOST).contains(&amount) {
        return Err("write an amount above 0, such as 0.50".to_owned());
    }
    Ok(Cost((amount * 1e6).round() as u64))
}

/// What holds for this time only. The managed policy of a machine stays stronger.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Bounds {
    /// How much is done without asking. `plan`: only looking, nothing in the project is changed.
    /// `ask`: looking; everything else is asked about. `auto`: also edits in the project, and
    /// commands that stay in it and in the sandbox. `full`: everything but what is denied. Without
    /// it, as the config says, or `auto` in a folder that you trust where there is a sandbox, and
    /// `ask` elsewhere.
    #[arg(long, value_name = "MODE", value_parser = modes())]
    pub(crate) mode: Option<Mode>,
    /// Whether commands are kept in a sandbox. WARNING: with `off` they run with all your rights:
    /// they can read your keys, change any file of yours and reach the network.
    #[arg(long, value_enum)]
    pub(crate) sandbox: Option<Switch>,
}

impl Bounds {
    /// As the config takes it, with the model that was chosen.
    pub(crate) fn flags(self, model: Option<String>) -> Flags {
        let sandbox = self.sandbox.map(|switch| match switch {
            Switch::On => true,
            Switch::Off => false,
        });
        Flags { model, mode: self.mode, sandbox }
    }
}

/// Something that can be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

fn point(text: &str) -> Result<Point, String> {
    let wrong = || "write the number of a turn, or `seq:` and a position".to_owned();
    match text.strip_prefix("seq:") {
        Some(seq) => seq.parse().map(Point::At).map_err(|_| wrong()),
        None => text.parse().map(Point::Turn).map_err(|_| wrong()),
    }
}

fn modes() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name)).try_map(|name| name.parse::<Mode>())
}

/// What a run prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// The answer on standard output, what happens on standard error.
    Text,
    /// One object when it is over.
    Json,
    /// The event stream; `windlass schema events` describes it.
    Events,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    /// Lists the sessions of this folder, the last one first.
    List {
        /// Of all folders, and those that a model began.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Finds the sessions of this folder in which some words were said, by anybody.
    Search {
        /// The words. All of them have to stand in one text; capitals make no difference.
        #[arg(required = true)]
        words: Vec<String>,
        /// In the sessions of all folders.
        #[arg(long)]
        all: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows what was said and done.
    Show {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Begins a session with a copy of another one, up to the end of a turn.
    Fork {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// The turn, counted from 1, or `seq:N` for the last turn that had ended at a position of
        /// the log. Without it, the last turn that has ended.
        #[arg(long, value_name = "TURN|seq:N", value_parser = point)]
        at: Option<Point>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Gives a session another title.
    Rename {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// The title.
        title: String,
    },
    /// Writes a session as one file: its log and the outputs it keeps, as JSON lines.
    Export {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// The file, which must not be there yet. Without it, standard output.
        #[arg(long, short, value_name = "FILE")]
        file: Option<String>,
    },
    /// Takes in a session that `export` wrote. It then works in this folder.
    Import {
        /// The file; `-` is standard input.
        file: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Writes a session as a page for a browser, complete in one file, without scripts.
    Share {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// The file, which must not be there yet. Without it, standard output.
        #[arg(long, short, value_name = "FILE")]
        file: Option<String>,
    },
    /// Shows what a session changed in files, as far as it still stands there.
    Diff {
        /// The session: its id, or the beginning or end of it.
        id: String,
    },
    /// Takes back what a session's last turn changed in files, and nothing that others changed.
    #[command(after_help = EXIT_CODES)]
    Undo {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// Everything it changed, not only in its last turn.
        #[arg(long)]
        all: bool,
        /// Does it without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// Does again what was taken back last.
    #[command(after_help = EXIT_CODES)]
    Redo {
        /// The session: its id, or the beginning or end of it.
        id: String,
        /// Does it without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// Removes a session, those that it began, and the outputs that only they kept.
    Delete {
        /// The session: its id, or the beginning or end of it.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Tool {
    /// Lists the tools a model is offered.
    List {
        /// As JSON, with descriptions and schemas.
        #[arg(long)]
        json: bool,
    },
    /// Calls a tool, under the same rules as a model's call.
    #[command(after_help = EXIT_CODES)]
    Call {
        /// Answers yes to whatever would be asked, except to leaving the sandbox, which only a person
        /// at the terminal can allow. What a rule denies stays denied.
        #[arg(long, short)]
        yes: bool,
        /// What is printed.
        #[arg(long, short, value_enum, default_value_t = Output::Text)]
        output: Output,
        #[command(flatten)]
        bounds: Bounds,
        /// The tool.
        name: String,
        /// Its arguments, as a JSON object; `-` reads them from standard input.
        json: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Lists the agents: who may have each work, what it is for and where it comes from.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Keeps a provider's key: the line you type, unseen, or a line of standard input.
    Login {
        /// The provider.
        provider: String,
    },
    /// Lists the providers there is a key of and where it is. Keys are not shown.
    List,
    /// Forgets a provider's key.
    Logout {
        /// The provider.
        provider: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Shows every value that is in force and where it came from. Keys are not shown.
    Show,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Permission {
    /// Lists the rules in force and where each stands, and what you allowed here for good.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Takes back something that you allowed here for good.
    Revoke {
        /// Its number in `windlass permission list`.
        #[arg(required_unless_present = "all")]
        number: Option<usize>,
        /// Everything that you allowed here for good.
        #[arg(long, conflicts_with = "number")]
        all: bool,
    },
    /// Says what would become of a command, part by part, and why. Runs nothing.
    Explain {
        /// The command, as a model would give it.
        command: String,
        /// What is printed.
        #[arg(long, short, value_enum, default_value_t = Form::Text)]
        output: Form,
        /// The project; without it, the one this folder belongs to.
        #[arg(long, value_name = "DIR")]
        workspace: Option<std::path::PathBuf>,
        /// How much is done without asking; without it, as the config says.
        #[arg(long, value_name = "MODE", value_parser = modes())]
        mode: Option<Mode>,
    },
}

/// How something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For a person.
    Text,
    /// One object, for a program.
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Trust {
    /// Does not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Takes the trust back.
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
}

/// The published schemas.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Schema {
    /// Of one line of `--output events`.
    Events,
    /// Of windlass.jsonc.
    Config,
}
