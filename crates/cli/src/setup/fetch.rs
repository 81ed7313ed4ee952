//! A repository that the person names is fetched: by git, in a sandbox that reaches its host and
//! nothing else, with nothing of the person's config and no programs of the repository.

use super::{Setup, real};
use anyhow::{anyhow, bail};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use windlass_project::Contents;
use windlass_protocol::Mode;
use windlass_sandbox::{Exit, Hold, Hosts, Keep, Servant, Workspace};
use windlass_toolkit::Berth;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Fetches one commit into a repository that nobody sees again, names it, and writes its files as an
/// archive. Nothing that a repository brings is run, and no other way is taken.
const SCRIPT: &str = r#"
set -euo pipefail
folder=$(mktemp -d)
export GIT_DIR="$folder/fetched"
git() {
  command git -c protocol.allow=never -c protocol.https.allow=always -c protocol.file.allow=always \
    -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper= \
    -c transfer.fsckObjects=true "$@"
}
git init --quiet --bare --template= "$GIT_DIR"
git fetch --quiet --depth=1 --no-tags --no-recurse-submodules -- "$1" "$2"
git rev-parse --verify 'FETCH_HEAD^{commit}'
git archive --format=tar FETCH_HEAD
"#;

impl Setup {
    /// Fetches a branch or a tag of a repository, or what it usually shows. Gives the commit and its
    /// files as an archive. The folder is empty and only there to be somewhere.
    pub(crate) async fn fetch_repository(
        &self,
        url: &str,
        name: Option<&str>,
        folder: &Path,
    ) -> anyhow::Result<(String, Vec<u8>)> {
        let network = host(url)?;
        let name = name.unwrap_or("HEAD");
        let plain = |letter: char| letter.is_alphanumeric() || "-_./".contains(letter);
        if name.is_empty() || name.starts_with('-') || !name.chars().all(plain) {
            bail!("`{name}` is no name of a branch or a tag");
        }
        let folder = real(folder);
        let workspace = Workspace::at(&folder)?.with_shell(self.shell()?);
        let ground = workspace.ground().ok_or_else(|| anyhow!("commands have no ground here"))?;
        let berth = Berth::new(&workspace, &self.policy(ground, Mode::Auto)?);
        let servant = Servant {
            name: "plugin/git".to_owned(),
            program: "bash".into(),
            arguments: ["-c", SCRIPT, "git", url, name].map(OsString::from).into(),
            env: environment(&folder),
            folder,
            keep: Keep { workspace: Hold::Read, write: Vec::new(), network, walls: None },
        };
        let said = said(&berth, servant).await.map_err(|why| {
            anyhow!("{url} could not be fetched: {why}. Clone it yourself, and add the folder")
        })?;
        let end = said.iter().position(|byte| *byte == b'\n');
        let parts = end.and_then(|end| said.split_at_checked(end + 1));
        let commit = parts.and_then(|(line, _)| std::str::from_utf8(line).ok()).map(str::trim);
        let hex =
            |commit: &&str| commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
        match (commit.filter(hex), parts) {
            (Some(commit), Some((_, archive))) => Ok((commit.to_owned(), archive.to_vec())),
            (None, _) | (_, None) => bail!("nobody knows what was fetched from {url}"),
        }
    }
}

fn environment(home: &Path) -> Vec<(OsString, OsString)> {
    let fixed = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "true"),
        ("GIT_ALLOW_PROTOCOL", "https:file"),
    ];
    let fixed = fixed.map(|(name, value)| (name.into(), value.into()));
    fixed.into_iter().chain([("HOME".into(), home.into())]).collect()
}

/// The host of an address, which is all that is reached.
fn host(url: &str) -> anyhow::Result<Hosts> {
    if url.starts_with("file://") {
        return Ok(Hosts::none());
    }
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        bail!("the address must not name a user: what is added keeps its address for all to see");
    }
    if host.is_empty() || host.contains('*') {
        bail!("{url} names no host");
    }
    Ok(Hosts::parse(&[host.to_owned()])?)
}

/// What a program says before it ends well, or why it did not.
async fn said(berth: &Berth, servant: Servant) -> Result<Vec<u8>, String> {
    let asking = async {
        let engaged = berth.engage(servant).await.map_err(|failure| failure.text)?;
        let (input, output, held) = engaged.split();
        drop(input);
        let (mut said, longest) = (Vec::new(), Contents::LONGEST_ARCHIVE);
        let read = output.take(longest).read_to_end(&mut said).await;
        read.map_err(|error| error.to_string())?;
        if said.len() as u64 >= longest {
            held.end(Duration::ZERO).await;
            return Err("it is larger than a plugin can be".to_owned());
        }
        match held.ended().await.exit {
            Exit::Code(0) => Ok(said),
            Exit::Code(_) | Exit::Signal(_) | Exit::Crowded(_) | Exit::Lost => {
                Err(held.last_words().unwrap_or_else(|| "git was ended".to_owned()))
            }
        }
    };
    let asked = tokio::time::timeout(PATIENCE, asking).await;
    asked.unwrap_or_else(|_| Err(format!("it took longer than {} s", PATIENCE.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn an_address_names_one_host_and_nobody() {
        for url in ["https://a.example/x", "https://a.example:8443/x.git", "file:///x"] {
            assert!(host(url).is_ok(), "{url}");
        }
        for url in
            ["https://", "https:///x", "https://me:key@a.example/x", "https://*/x", "http://a/x"]
        {
            assert!(host(url).is_err(), "{url}");
        }
    }
}
