//! The system prompt of a session.
//!
//! It is rendered from plain values without I/O, limits the size of the instructions, and never
//! changes within a session, so that every request starts with the same bytes. Later messages state
//! what has changed; `ChangeablePromptParts` computes the difference. Start reading at
//! [`SystemPromptValues::render`].

mod changeable_parts;

pub use changeable_parts::RenderedSystemPrompt;
pub(crate) use changeable_parts::set_known_mode;

use changeable_parts::ChangeablePromptParts;
use std::path::PathBuf;
use windlass_protocol::display_text::is_hidden_or_bidi;
use windlass_protocol::{PermissionMode, UnixMillis};
use windlass_toolkit::UserPresence;

/// Values that the system prompt is rendered from.
#[derive(Clone, Debug, Default)]
pub struct SystemPromptValues {
    /// Workspace folder of the session.
    pub folder: String,
    /// Folder below the workspace in which the user started.
    pub working_folder: Option<String>,
    /// Folders outside that are used like the workspace.
    pub additional_folders: Vec<PathBuf>,
    /// Operating system, such as `linux`.
    pub platform: String,
    /// Current time, for the date.
    pub now: Option<UnixMillis>,
    /// Offset of the user's time zone.
    pub utc_offset_seconds: i32,
    /// Git state of the folder.
    pub git: GitState,
    /// Permission mode of the session.
    pub mode: Option<PermissionMode>,
    /// Tells if a user can be asked.
    pub user: UserPresence,
    /// True if calls that need approval are approved without a user.
    pub approves_calls: bool,
    /// True if the user has approved downloads from package registries in this project.
    pub registries_approved: bool,
    /// Contents of the workspace when the session starts.
    pub start: ProjectSnapshot,
    /// Instruction files of the user and the project, most general first.
    pub instructions: Vec<InstructionFile>,
    /// Texts of MCP servers about their tools, each with the name of its server.
    pub server_texts: Vec<(String, String)>,
}

/// An instruction file for the model, such as `AGENTS.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionFile {
    /// Path shown to the model.
    pub path: String,
    /// Contents, or the start of them.
    pub text: String,
    /// Size of the whole file.
    pub total_bytes: u64,
}

/// Contents of a workspace at one moment. It is stated once and never updated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectSnapshot {
    /// Names in the top folder, folders with a slash at the end.
    pub names: Vec<String>,
    /// Lines of `git status --porcelain`, if they are known.
    pub git_status: Option<Vec<String>>,
}

/// Version control state of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GitState {
    /// Not checked.
    #[default]
    Unknown,
    /// Not in a Git repository.
    NoRepository,
    /// In a Git repository.
    Repository,
    /// In a Git repository, with this branch checked out.
    Branch(String),
}

/// A date in the user's time zone. The system prompt contains no finer time, which would differ in
/// every session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalDate(String);

/// Maximum bytes of each list of a `ProjectSnapshot`.
const MAX_SNAPSHOT_BYTES: usize = 600;

/// Maximum bytes of all texts of MCP servers together.
const MAX_SERVER_TEXT_BYTES: usize = 4 << 10;

/// Maximum bytes of all `InstructionFile` texts together.
const MAX_INSTRUCTIONS_BYTES: usize = 32 << 10;

/// The environment line of a session that was started below the root of the workspace.
const WORKING_FOLDER_RULES: &str = "commands run and searches look there by default; relative \
                                    paths are looked up there first, then in the workspace; \
                                    results show paths relative to the workspace";

/// The environment line of a project with approved package registries.
const REGISTRIES_APPROVED: &str = "downloads from package registries are approved";

/// The environment line of a run without a user.
const ABSENT_USER: &str = "absent; no question can be answered and no call approved, so decide \
                           yourself and state your assumptions";
/// The environment line of a run without a user in which every call is approved.
const ABSENT_APPROVING_USER: &str = "absent; calls that need approval are approved, but no question \
                                     can be answered, so decide yourself and state your assumptions";

impl SystemPromptValues {
    /// Renders the system prompt.
    pub fn render(&self) -> RenderedSystemPrompt {
        let parts = ChangeablePromptParts {
            environment: self.environment_lines(),
            instructions: self.instruction_bodies(),
        };
        let mut text = changeable_parts::GENERAL_INSTRUCTIONS.trim_end().to_owned();
        text.push('\n');
        let lines = parts.environment.iter().map(|(label, value)| format!("{label}: {value}\n"));
        text.push_str(&xml_block("environment", &lines.collect::<String>()));
        let start_block = self.start.render();
        text.push_str(&start_block);
        for (path, body) in &parts.instructions {
            text.push_str(&instructions_block(path, body));
        }
        text.push_str(&self.server_blocks());
        RenderedSystemPrompt::new(text, parts, start_block, self.utc_offset_seconds)
    }

    /// Renders what MCP servers say about their tools. The text is theirs and not the user's, so it
    /// is no `<instructions>` block.
    fn server_blocks(&self) -> String {
        let texts = self.server_texts.iter().map(|(_, text)| strip_invisible(text.trim()));
        let texts: Vec<String> = texts.collect();
        let shares = allocate_bytes(&texts, MAX_SERVER_TEXT_BYTES);
        let blocks = self.server_texts.iter().zip(&texts).zip(shares);
        let blocks = blocks.map(|(((name, _), text), share)| {
            let name = sanitize_path(&to_one_line(name));
            let text = truncate_at_line(text, share).replace("</mcp_server", "< /mcp_server");
            format!(
                "\n<mcp_server name=\"{name}\">\nThe server says about its tools:\n{text}\n\
                 </mcp_server>\n"
            )
        });
        blocks.collect()
    }

    fn environment_lines(&self) -> Vec<(String, String)> {
        let git = match &self.git {
            GitState::Unknown => None,
            GitState::NoRepository => Some("no".to_owned()),
            GitState::Repository => Some("yes".to_owned()),
            GitState::Branch(name) => Some(format!("yes, branch {}", to_one_line(name))),
        };
        let non_empty = |text: &str| (!text.is_empty()).then(|| to_one_line(text));
        let additional: Vec<String> =
            self.additional_folders.iter().map(|folder| folder.display().to_string()).collect();
        let user = match (self.user, self.approves_calls) {
            (UserPresence::Present, _) => None,
            (UserPresence::Absent, false) => Some(ABSENT_USER),
            (UserPresence::Absent, true) => Some(ABSENT_APPROVING_USER),
        };
        let lines = [
            ("Workspace", non_empty(&self.folder)),
            (
                "Working directory",
                self.working_folder
                    .as_ref()
                    .map(|folder| format!("{}; {WORKING_FOLDER_RULES}", to_one_line(folder))),
            ),
            ("Also usable", non_empty(&additional.join(", "))),
            ("Platform", non_empty(&self.platform)),
            (
                changeable_parts::DATE_LABEL,
                self.now.map(|now| LocalDate::from_millis(now, self.utc_offset_seconds).0),
            ),
            ("Git", git),
            (changeable_parts::MODE_LABEL, self.mode.map(describe_mode)),
            ("User", user.map(str::to_owned)),
            ("Network", self.registries_approved.then(|| REGISTRIES_APPROVED.to_owned())),
        ];
        lines.into_iter().filter_map(|(label, value)| Some((label.to_owned(), value?))).collect()
    }

    /// Returns the paths and bodies of the instructions, each truncated to its share of
    /// `MAX_INSTRUCTIONS_BYTES`.
    fn instruction_bodies(&self) -> Vec<(String, String)> {
        let texts = self.instructions.iter().map(|file| strip_invisible(&file.text));
        let texts: Vec<String> = texts.map(|text| text.trim().to_owned()).collect();
        let shares = allocate_bytes(&texts, MAX_INSTRUCTIONS_BYTES);
        let parts = self.instructions.iter().zip(&texts).zip(shares);
        let parts = parts.filter(|((_, text), _)| !text.is_empty());
        parts
            .map(|((file, text), share)| {
                let kept = truncate_at_line(text, share);
                let path = sanitize_path(&file.path);
                let mut body = format!("{}\n", escape_closing_tag(kept));
                if kept.len() < text.len() || file.total_bytes > file.text.len() as u64 {
                    let total = file.total_bytes.max(text.len() as u64);
                    let kept = kept.len();
                    body.push_str(&format!(
                        "[truncated: {kept} of {total} bytes; read {path} for the rest]\n"
                    ));
                }
                (path, body)
            })
            .collect()
    }
}

impl ProjectSnapshot {
    fn render(&self) -> String {
        let mut lines = String::new();
        if !self.names.is_empty() {
            lines.push_str(&format!("Files: {}\n", join_within(&self.names, MAX_SNAPSHOT_BYTES)));
        }
        match self.git_status.as_deref() {
            None => {}
            Some([]) => lines.push_str("Git status: clean\n"),
            Some(changes) => {
                lines.push_str(&format!(
                    "Git status: {}\n",
                    join_within(changes, MAX_SNAPSHOT_BYTES)
                ));
            }
        }
        match lines.is_empty() {
            true => String::new(),
            false => xml_block("workspace_at_start", &lines),
        }
    }
}

/// Joins names of files as long as they fit into `max_bytes`, and counts the rest.
fn join_within(texts: &[String], max_bytes: usize) -> String {
    let mut joined = String::new();
    for (index, text) in texts.iter().enumerate() {
        let text = sanitize_path(&to_one_line(text));
        let separator = if joined.is_empty() { "" } else { ", " };
        if joined.len() + text.len() > max_bytes {
            joined.push_str(&format!("{separator}and {} more", texts.len() - index));
            break;
        }
        joined.push_str(&format!("{separator}{text}"));
    }
    joined
}

impl LocalDate {
    /// Returns the date of a timestamp.
    pub fn from_millis(at: UnixMillis, utc_offset_seconds: i32) -> LocalDate {
        let local = at.0.saturating_add_signed(i64::from(utc_offset_seconds) * 1000);
        // Years are counted from March, so that a leap day is the last day of its year.
        let days = local / 86_400_000 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        let year = era * 400 + year_of_era + next_year;
        LocalDate(format!("{year:04}-{month:02}-{day:02}"))
    }
}

/// Describes a mode to the model in one sentence. This text informs; it enforces nothing.
pub fn describe_mode(mode: PermissionMode) -> String {
    let meaning = match mode {
        PermissionMode::Plan => {
            "nothing may be changed; explore, and answer with a plan of what you would do"
        }
        PermissionMode::Ask => "every change and most commands require the user's approval",
        PermissionMode::Auto => {
            "work inside the workspace and the sandbox needs no approval, except edits of protected \
             files such as .vscode"
        }
        PermissionMode::Full => "nothing requires approval; the sandbox stays, so be extra careful",
    };
    format!("{mode}: {meaning}")
}

/// Allocates bytes to texts, so that all fit and a long text does not starve the others.
fn allocate_bytes(texts: &[String], max_bytes: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..texts.len()).collect();
    let length = |index: &usize| texts.get(*index).map_or(0, String::len);
    order.sort_by_key(length);
    let mut shares = vec![0; texts.len()];
    let (mut free_bytes, mut remaining) = (max_bytes, texts.len());
    for index in order {
        let share = length(&index).min(free_bytes / remaining.max(1));
        if let Some(slot) = shares.get_mut(index) {
            *slot = share;
        }
        free_bytes -= share;
        remaining -= 1;
    }
    shares
}

/// Truncates a text to `max_bytes`, at the end of a line if one is near.
fn truncate_at_line(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let kept = text.get(..text.floor_char_boundary(max_bytes)).unwrap_or_default();
    match kept.rfind('\n') {
        Some(line) if line * 2 > max_bytes => {
            kept.split_at_checked(line).map_or(kept, |(kept, _)| kept)
        }
        Some(_) | None => kept,
    }
}

/// Removes characters that a reader of the text would not see.
fn strip_invisible(text: &str) -> String {
    let is_visible = |c: &char| {
        let is_control = c.is_control() && !matches!(c, '\n' | '\t');
        !is_control && !is_hidden_or_bidi(*c)
    };
    text.chars().filter(is_visible).collect()
}

fn to_one_line(text: &str) -> String {
    strip_invisible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Replaces characters of a path that would break the `from` attribute.
fn sanitize_path(path: &str) -> String {
    strip_invisible(path)
        .chars()
        .map(|c| if matches!(c, '"' | '<' | '>' | '\n') { '_' } else { c })
        .collect()
}

/// Escapes the closing tag, so that a text cannot end its own block.
fn escape_closing_tag(text: &str) -> String {
    text.replace("</instructions", "< /instructions")
}

fn xml_block(name: &str, body: &str) -> String {
    format!("\n<{name}>\n{body}</{name}>\n")
}

fn instructions_block(path: &str, body: &str) -> String {
    format!("\n<instructions from=\"{path}\">\n{body}</instructions>\n")
}

#[cfg(test)]
mod tests;
