//! `windlass run --command`: a prompt that somebody wrote down, with what it is given put in.

use crate::screen;
use crate::setup::Setup;
use anyhow::bail;
use serde_json::json;
use windlass_engine::Engine;
use windlass_project::{Commands, Draft, Run};
use windlass_protocol::{Outcome, Output};

/// How many bytes of files a prompt takes along.
const MOST: usize = 256 << 10;

/// How many commands of the shell a prompt waits for.
const MOST_RUNS: usize = 16;

/// How many bytes of what a command gives go into a prompt.
const LONGEST: usize = 30 << 10;

/// What a command gives that did what it was to do.
const WELL: &str = "\n(exit code 0)";

/// As long as the first line of a prompt is where it is the title.
const LONGEST_TITLE: usize = 80;

/// What a command asks, and what is to run before. The files it names stand below it, as far as
/// they may be read without asking.
pub(crate) async fn prompt(
    setup: &Setup,
    engine: &Engine,
    name: &str,
    arguments: Option<&str>,
) -> anyhow::Result<(String, Vec<Run>)> {
    if let Some((server, prompt)) = name.split_once(':') {
        return Ok((brought(setup, server, prompt, arguments).await?, Vec::new()));
    }
    let commands = Commands::load(&setup.places, &setup.config)?;
    for diagnostic in &commands.diagnostics {
        screen::note(&format!("note: {diagnostic}"));
    }
    let Some(command) = commands.find(name) else {
        let names: Vec<&str> = commands.all.iter().map(|command| command.name.as_str()).collect();
        match names.as_slice() {
            [] => bail!(
                "there is no command `{name}`, nor any other. Write one: {}",
                setup.places.config.join("commands").join(format!("{name}.md")).display()
            ),
            names => bail!("there is no command `{name}`; there is {}", names.join(", ")),
        }
    };
    let Draft { mut text, files, runs } = command.draft(arguments.unwrap_or_default());
    if runs.len() > MOST_RUNS {
        bail!(
            "the command `{name}` wants {} commands run first, and {MOST_RUNS} are the most. Put \
             some of them together in a script",
            runs.len()
        );
    }
    let mut size = 0;
    for file in files {
        let arguments = json!({"filePath": file}).to_string();
        match engine.look("read", arguments).await {
            Outcome::Completed { output: Output { text: said, .. } } => {
                size += said.len();
                if size > MOST {
                    bail!("the files that `{name}` names are more than {} kB", MOST >> 10);
                }
                text.push_str(&format!(
                    "\n\n<file path={}>\n{}\n</file>",
                    json!(file),
                    said.trim_end()
                ));
            }
            Outcome::Denied { text: why } => bail!("@{file} cannot be put in: {why}"),
            // Not every word behind an @ is a file.
            Outcome::Failed { text: why } => {
                screen::note(&format!("note: @{file} is no file: {why}"))
            }
            Outcome::Interrupted { .. } | Outcome::Unknown => bail!("@{file} cannot be read"),
        }
    }
    Ok((text, runs))
}

/// A prompt that a server brings. It is text: nothing in it is put in or run.
async fn brought(
    setup: &Setup,
    server: &str,
    prompt: &str,
    arguments: Option<&str>,
) -> anyhow::Result<String> {
    crate::mcp::found(setup, server)?;
    let (_kept, servers) = setup.servers_alone()?;
    screen::note(&format!("asking {server} for {prompt} …"));
    let text = servers.prompt(server, prompt, arguments.unwrap_or_default()).await;
    let text = text.map_err(|failure| anyhow::anyhow!(failure.text))?;
    servers.close().await;
    Ok(text)
}

/// What a prompt's session is called.
pub(crate) fn title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(windlass_protocol::text::beginning(line, LONGEST_TITLE))
}

/// What of a run goes into the prompt.
pub(crate) fn given(output: &Output) -> String {
    let well = output.exit() == Some(0);
    let text = output.text.trim_end();
    let text = text.strip_suffix(WELL).filter(|_| well).unwrap_or(text).trim_end();
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let fits = text.floor_char_boundary(LONGEST);
    let (shown, rest) = text.split_at_checked(fits).unwrap_or_default();
    format!("{shown}\n({} bytes more were left out)", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, exit: i64) -> Output {
        let metadata = serde_json::Map::from_iter([("exit".to_owned(), exit.into())]);
        Output { text: text.to_owned(), metadata, ..Output::default() }
    }

    #[test]
    fn how_a_command_ended_is_told_unless_it_ended_well() {
        assert_eq!(given(&output("main\n(exit code 0)", 0)), "main");
        assert_eq!(given(&output("oh\n(exit code 1)", 1)), "oh\n(exit code 1)");
        let said = "it says\n(exit code 0)\n(exit code 3)";
        assert_eq!(given(&output(said, 3)), said);
        assert_eq!(given(&output("a\n(exit code 0)", 3)), "a\n(exit code 0)", "its own words");
    }

    #[test]
    fn much_of_it_is_cut_between_characters() {
        let long = "é".repeat(LONGEST);
        let text = given(&output(&format!("x{long}"), 0));
        let (shown, told) = text.split_once('\n').unwrap();
        assert!(shown.len() <= LONGEST && shown.len() > LONGEST - 3, "{}", shown.len());
        assert!(told.contains(&format!("{} bytes", 2 * LONGEST + 1 - shown.len())), "{told}");
    }
}
