//! What a program does with its arguments, by the rows of the table.
//!
//! A program that has no row works at most; what its words name is looked at all the same. Start
//! reading at [`weigh`].

use super::class::{Class, Finding};
use super::grammar::{self, Argument, Known, Operands, Row, Takes};
use super::operands::{judge_operands, weigh_range};
use super::paths::{Folders, Ground, Stranger, Use};
use super::programs;
use crate::shell::Word;

/// Where a program runs.
pub(super) struct Spot<'a> {
    pub(super) ground: &'a Ground<'a>,
    pub(super) folders: &'a Folders,
    /// It is fed by a pipe.
    pub(super) piped: bool,
}

/// What comes of a program, by its name, and its arguments.
pub(super) fn weigh(spot: &Spot<'_>, program: &str, words: &[Word]) -> Finding {
    let rows = programs::rows(program);
    if rows.is_empty() {
        let mut finding = Finding::new(Class::Work, format!("nothing is known about {program}"));
        if program.starts_with("mkfs") {
            finding
                .add(Finding::new(Class::Guard, format!("{program} destroys what is on a disk")));
        }
        finding.add(mentions(spot, words, Stranger::Yes));
        finding.add(addresses(program, words));
        return finding;
    }
    let mut finding = choose(spot, program, words);
    let root = spot.ground.places().root();
    if program == "git" && spot.folders.0.iter().any(|folder| folder != root) {
        let reason = "git obeys the settings of the folder it runs in";
        finding.add(Finding::new(Class::Work, reason));
    }
    if program == "git" && shows_signature(words) {
        finding.add(Finding::new(Class::Work, "git runs another program to check a signature"));
    }
    let fetches = program == "go"
        && words.first().is_some_and(|word| word.text() == "run")
        && words.iter().any(|word| word.text().contains('@'));
    if fetches {
        finding.add(Finding::new(Class::Network, "go fetches what it runs"));
    }
    if program == "deno" {
        finding.add(addresses(program, words));
    }
    // Its oldest way to give options has no dash.
    let bundle = words.first().map(Word::text).filter(|text| !text.starts_with('-'));
    if program.ends_with("tar") && bundle.is_some_and(|text| text.contains('P')) {
        finding.add(Finding::new(Class::Beyond, "tar would follow absolute paths"));
    }
    if finding.class != Class::Read {
        finding.add(mentions(spot, words, Stranger::No));
    }
    if finding.connects && words.iter().any(|word| is_loopback(word.text())) {
        let reason = "a server on this machine may steer an agent";
        finding.add(Finding::new(Class::Near, reason));
    }
    finding
}

/// What comes of an address among the words of a program that may go there.
fn addresses(program: &str, words: &[Word]) -> Finding {
    let schemes = ["http://", "https://", "ftp://"];
    let far = |word: &Word| schemes.iter().any(|scheme| word.text().contains(scheme));
    match words.iter().any(far) {
        true => Finding::new(Class::Network, format!("{program} is given an address")),
        false => Finding::harmless(),
    }
}

fn mentions(spot: &Spot<'_>, words: &[Word], stranger: Stranger) -> Finding {
    let mut finding = Finding::harmless();
    for word in words {
        finding.add(spot.ground.mention(spot.folders, word, stranger));
        if is_metadata(word.text()) {
            let reason = "it asks the machine's provider for its keys";
            finding.add(Finding::new(Class::Forbidden, reason));
        }
    }
    finding
}

/// True for a format that shows who signed.
fn shows_signature(words: &[Word]) -> bool {
    let shapes = |text: &str| ["--fo", "--so", "--pr"].iter().any(|start| text.starts_with(start));
    let mut shaped = false;
    words.iter().map(Word::text).any(|text| {
        let value = std::mem::replace(&mut shaped, shapes(text)) || shapes(text);
        ["%G", "%+G", "%-G", "% G"].iter().any(|sign| text.contains(sign))
            || text.contains("signature") && (value || text.contains("%("))
    })
}

/// True if a word is an address on this very machine.
fn is_loopback(text: &str) -> bool {
    let after = text.split_once("://").map_or(text, |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or(after).to_ascii_lowercase();
    let host = authority.rsplit('@').next().unwrap_or(&authority);
    let host = host.strip_prefix('[').unwrap_or(host);
    let here = ["127.", "localhost", "0.0.0.0", "::1", "0x7f", "2130706433", "[::ffff:127."];
    here.iter().any(|start| host.starts_with(start))
}

/// True if a word names the place where the provider of a machine tells its keys.
fn is_metadata(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let hosts = [
        "169.254.169.254",
        "169.254.170.2",
        "metadata.google.internal",
        "fd00:ec2::254",
        "100.100.100.200",
        "//2852039166",
        "0xa9fea9fe",
    ];
    hosts.iter().any(|host| text.contains(host))
}

/// A way to read the words: the name of a subcommand, and what follows it.
struct Choice<'a> {
    name: String,
    rest: &'a [Word],
}

/// Picks the rows of the longest name that count, and weighs the arguments by them.
fn choose(spot: &Spot<'_>, program: &str, words: &[Word]) -> Finding {
    let exact = |name: &str, rest: &[Word]| {
        let named = programs::rows(program).iter().filter(|(known, _)| *known == name);
        named.into_iter().any(|(_, row)| is_exactly(row, rest))
    };
    if exact(program, words) {
        return Finding::harmless();
    }
    let (choices, mut finding) = choices(spot, program, words);
    let mut found = false;
    for choice in &choices {
        if exact(&choice.name, choice.rest) {
            return finding;
        }
        let rows: Vec<&Row> = programs::rows(program)
            .iter()
            .filter(|(name, row)| *name == choice.name && grammar::counts(row, choice.rest))
            .map(|(_, row)| *row)
            .collect();
        // Rows of exact arguments say something only where no other row does.
        let (exact, open): (Vec<&Row>, Vec<&Row>) =
            rows.into_iter().partition(|row| row.operands == Operands::Exactly);
        for row in if open.is_empty() { exact } else { open } {
            found = true;
            finding.add(evaluate(spot, program, row, choice.rest));
        }
        if found {
            break;
        }
    }
    if !found {
        let reason = format!("nothing is known about what {program} does with this");
        finding.add(Finding::new(Class::Work, reason));
    }
    finding
}

fn is_exactly(row: &Row, rest: &[Word]) -> bool {
    let [Word::Plain(word)] = rest else { return false };
    row.operands == Operands::Exactly && row.options.split_whitespace().any(|option| option == word)
}

/// The names that the words can mean, the longest first, and what the options before them do.
fn choices<'a>(spot: &Spot<'_>, program: &str, words: &'a [Word]) -> (Vec<Choice<'a>>, Finding) {
    let mut finding = Finding::harmless();
    let whole = Choice { name: program.to_owned(), rest: words };
    let rows = programs::rows(program);
    if !rows.iter().any(|(name, _)| name.contains(' ')) {
        return (vec![whole], finding);
    }
    let options = programs::before_subcommand(program);
    let (at, sure) = subcommand(spot, options, words, &mut finding);
    let mut choices = Vec::new();
    let starts = match sure {
        Sure::Yes => at..at.saturating_add(1),
        Sure::No => at..words.len(),
    };
    for start in starts {
        let Some(rest) = words.get(start..) else { break };
        if let Some(Word::Opaque(text) | Word::Pattern(text)) = rest.first() {
            let reason = format!("nobody knows what {program} does with {text}");
            finding.add(Finding::new(Class::Unknown, reason));
        }
        for length in [2, 1] {
            let Some((names, rest)) = rest.split_at_checked(length) else { continue };
            let names: Option<Vec<&str>> = names.iter().map(Word::plain).collect();
            let name = names.map(|names| format!("{program} {}", names.join(" ")));
            choices.extend(name.map(|name| Choice { name, rest }));
        }
    }
    choices.push(whole);
    (choices, finding)
}

/// Whether the place of the subcommand is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sure {
    Yes,
    No,
}

/// Where the subcommand stands, past the options of the program itself.
fn subcommand(
    spot: &Spot<'_>,
    options: &str,
    words: &[Word],
    finding: &mut Finding,
) -> (usize, Sure) {
    let mut at = 0;
    let mut sure = Sure::Yes;
    while let Some(word) = words.get(at) {
        let text = word.text();
        if text.starts_with('+') {
            finding.add(Finding::new(Class::Work, format!("{text} chooses what runs")));
            at += 1;
            continue;
        }
        if !text.starts_with('-') || matches!(word, Word::Opaque(_)) {
            break;
        }
        let rest = words.get(at..).unwrap_or_default();
        let parsed = grammar::parse(options, rest.get(..2).unwrap_or(rest));
        let Some(Argument::Option { name, known, takes, value }) = parsed.into_iter().next() else {
            at += 1;
            continue;
        };
        let listed = options
            .split_whitespace()
            .any(|option| option.trim_end_matches([':', '<', '>', '?', '!']) == name);
        let bundled = name.len() == 2 && text.len() > 2 && takes == Takes::Nothing;
        if !listed || bundled {
            sure = Sure::No;
            finding.add(Finding::new(Class::Work, format!("{text} is not known")));
        }
        if known == Known::NotHarmless && text != "--version" {
            finding.add(Finding::new(Class::Work, format!("{name} changes what runs")));
        }
        if let (Takes::Reads | Takes::Writes, Some(path)) = (takes, &value) {
            finding.add(spot.ground.weigh(spot.folders, path, Use::Read));
        }
        let apart = value.is_some_and(|value| rest.get(1) == Some(&value) && text == name);
        at += if apart { 2 } else { 1 };
    }
    (at, sure)
}

fn evaluate(spot: &Spot<'_>, program: &str, row: &Row, words: &[Word]) -> Finding {
    let reason = match row.class {
        Class::Read => "it only reads".to_owned(),
        Class::Work => format!("{program} changes the workspace"),
        Class::Network => format!("{program} wants the network"),
        Class::Guard => format!("{program} destroys or gains rights with this"),
        Class::Beyond => format!("{program} reaches out of the workspace with this"),
        Class::Unknown | Class::Unseen | Class::Near | Class::Forbidden => {
            format!("{program} changes what later commands do")
        }
    };
    let mut finding = Finding::new(row.class, reason);
    if row.operands == Operands::Exactly {
        finding.add(strange(program, row, "this"));
        return finding;
    }
    let arguments = grammar::parse(row.options, words);
    // `--print KIND=FILE` writes.
    let writes = |word: &Word| word.text().trim_start_matches("--print=").contains('=');
    if program == "rustc" && words.iter().any(writes) {
        finding.add(strange(program, row, "a file to print to"));
    }
    // These take `@FILE` for a list of arguments, wherever it stands.
    let lists = |word: &&Word| word.text().starts_with('@');
    if let Some(word) = words.iter().find(lists).filter(|_| matches!(program, "strings" | "rustc"))
    {
        finding.add(strange(program, row, word.text()));
    }
    // Where a user is not known, ps reads such a word as another one.
    let other = |word: &Word| word.text().contains("ux") && word.text().contains('e');
    if program == "ps" && words.iter().any(other) {
        finding.add(strange(program, row, "a mix of options"));
    }
    let mut operands = Vec::new();
    for argument in &arguments {
        match argument {
            Argument::Option { name, known, takes, value } => {
                if *known == Known::NotHarmless {
                    finding.add(strange(program, row, name));
                }
                let how = match takes {
                    Takes::Reads => Some(Use::Read),
                    Takes::Writes => Some(Use::Write),
                    Takes::Nothing | Takes::Text | Takes::Glued => None,
                };
                if let (Some(how), Some(path)) = (how, value) {
                    finding.add(spot.ground.weigh(spot.folders, path, how));
                }
                if let (Some(range), "git", "-L") = (value, program, name.as_str()) {
                    finding.add(weigh_range(spot, range.text()));
                }
            }
            Argument::Operand(word) => {
                // A shell looks for what a pattern matches, whatever the program does with it.
                if matches!(word, Word::Pattern(_)) && row.operands == Operands::Text {
                    finding.add(spot.ground.weigh(spot.folders, word, Use::Read));
                }
                operands.push(word);
            }
            Argument::Loose(word) => {
                finding.add(spot.ground.weigh(spot.folders, word, Use::Read));
                if grammar::can_harm(row.options, word.text()) {
                    finding.add(strange(program, row, word.text()));
                }
                operands.push(word);
            }
            Argument::Opaque(word) => {
                finding.add(strange(program, row, word.text()));
                operands.push(word);
            }
        }
    }
    finding.add(judge_operands(spot, program, row, &arguments, &operands));
    finding
}

/// What comes of an argument that a row does not know.
pub(super) fn strange(program: &str, row: &Row, what: &str) -> Finding {
    let reason = format!("{what} is not known to be harmless for {program}");
    Finding::new(row.otherwise, reason)
}
