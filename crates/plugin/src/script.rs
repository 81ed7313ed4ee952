//! Tools in JavaScript and TypeScript: which program runs them, and the host that speaks lines of
//! JSON for them. Pure: whoever uses it finds programs and lays the host out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use windlass_protocol::BlobRef;

/// The files of the host. They lie side by side; the first is started.
pub const HOST: [(&str, &str); 2] = [
    ("host.mjs", include_str!("../host/host.mjs")),
    ("schema.mjs", include_str!("../host/schema.mjs")),
];

/// How names of such tools end.
pub const ENDINGS: [&str; 4] = ["ts", "mts", "js", "mjs"];

/// Names the files of the host.
pub fn digest() -> String {
    let whole: String = HOST.iter().map(|(name, text)| format!("{name}\0{text}\0")).collect();
    BlobRef::of(whole.as_bytes()).as_str().chars().take(16).collect()
}

/// What there is to run scripts with.
#[derive(Clone, Debug, Default)]
pub struct Runtimes {
    /// Node, and what it says its version is.
    pub node: Option<(PathBuf, String)>,
    /// Bun.
    pub bun: Option<PathBuf>,
}

/// The first Node that runs plain scripts as the host needs it, that strips types if it is told to,
/// and that does so anyway.
const SCRIPTS: (u32, u32) = (20, 6);
const STRIPS: (u32, u32) = (22, 6);
const TYPES: (u32, u32) = (22, 18);

impl Runtimes {
    /// The program that runs a script, and what comes before the host; or what is missing.
    pub fn choose(&self, script: &Path) -> Result<(PathBuf, Vec<OsString>), String> {
        let file = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let typed = script.extension().is_some_and(|ending| ending == "ts" || ending == "mts");
        let version = self.node.as_ref().and_then(|(_, said)| version(said));
        let with = |words: &[&str]| words.iter().map(OsString::from).collect();
        let node = self.node.as_ref().map(|(path, _)| path.clone());
        match (node, version) {
            (Some(node), Some(version)) if !typed && version >= SCRIPTS => Ok((node, Vec::new())),
            (Some(node), Some(version)) if typed && version >= TYPES => Ok((node, Vec::new())),
            (Some(node), Some(version)) if typed && version >= STRIPS => {
                Ok((node, with(&["--experimental-strip-types"])))
            }
            (_, version) => match &self.bun {
                // Without this it may fetch packages that nobody asked for.
                Some(bun) => Ok((bun.clone(), with(&["--no-install"]))),
                None => {
                    let needs = if typed { "22.6" } else { "20.6" };
                    let there = match version {
                        Some((major, minor)) => format!("this is node {major}.{minor}"),
                        None => "neither is here".to_owned(),
                    };
                    Err(format!("{file} needs node {needs} or bun; {there}"))
                }
            },
        }
    }
}

/// `v22.18.1` as numbers.
fn version(said: &str) -> Option<(u32, u32)> {
    let mut parts = said.trim().trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(node: &str, bun: bool, file: &str) -> Result<String, String> {
        let node = (!node.is_empty()).then(|| (PathBuf::from("/n/node"), node.to_owned()));
        let runtimes = Runtimes { node, bun: bun.then(|| "/b/bun".into()) };
        runtimes.choose(Path::new(file)).map(|(program, words)| {
            let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
            format!("{} {}", program.display(), words.join(" ")).trim().to_owned()
        })
    }

    #[test]
    fn what_runs_a_script_depends_on_what_there_is() {
        for (node, bun, file, expected) in [
            ("v20.20.2", false, "a.mjs", Ok("/n/node")),
            ("v20.20.2", true, "a.ts", Ok("/b/bun --no-install")),
            ("v20.20.2", false, "a.ts", Err("a.ts needs node 22.6 or bun; this is node 20.20")),
            ("v22.6.0", false, "a.ts", Ok("/n/node --experimental-strip-types")),
            ("v22.18.0", true, "a.mts", Ok("/n/node")),
            ("v24.1.0", false, "a.ts", Ok("/n/node")),
            ("v18.0.0", false, "a.js", Err("a.js needs node 20.6 or bun; this is node 18.0")),
            ("", false, "a.js", Err("a.js needs node 20.6 or bun; neither is here")),
            ("nonsense", false, "a.js", Err("a.js needs node 20.6 or bun; neither is here")),
            ("", true, "a.js", Ok("/b/bun --no-install")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(chosen(node, bun, file), expected, "{node} {bun} {file}");
        }
    }
}
