//! Runs tools written in JavaScript and TypeScript: selects the runtime and provides the script
//! host, which speaks JSON lines for them. Pure: the caller finds the runtimes and writes the host
//! files to disk.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use windlass_protocol::BlobRef;

/// The files of the script host. They must be in one folder; the first is the entry point.
pub const SCRIPT_HOST_FILES: [(&str, &str); 8] = [
    ("host.mjs", include_str!("../host/host.mjs")),
    ("bun_shim.mjs", include_str!("../host/bun_shim.mjs")),
    ("client.mjs", include_str!("../host/client.mjs")),
    ("conversation.mjs", include_str!("../host/conversation.mjs")),
    ("loader.mjs", include_str!("../host/loader.mjs")),
    ("schema.mjs", include_str!("../host/schema.mjs")),
    ("shell.mjs", include_str!("../host/shell.mjs")),
    ("sqlite_shim.mjs", include_str!("../host/sqlite_shim.mjs")),
];

/// Returns a digest that identifies the version of the script host files.
pub fn host_digest() -> String {
    let contents: String =
        SCRIPT_HOST_FILES.iter().map(|(name, text)| format!("{name}\0{text}\0")).collect();
    BlobRef::for_bytes(contents.as_bytes()).as_str().chars().take(16).collect()
}

/// The installed JavaScript runtimes.
#[derive(Clone, Debug, Default)]
pub struct ScriptRuntimes {
    /// The path of Node and the version it reports.
    pub node: Option<(PathBuf, String)>,
    /// The path of Bun.
    pub bun: Option<PathBuf>,
}

/// The first Node version that runs scripts as the host needs.
const MIN_NODE_VERSION: (u32, u32) = (20, 6);

impl ScriptRuntimes {
    /// Returns the runtime for a script and the arguments before the host file, or a message about
    /// the missing runtime.
    pub fn choose_runtime(&self, script: &Path) -> Result<(PathBuf, Vec<OsString>), String> {
        let file = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = self.node.as_ref().and_then(|(_, version)| parse_node_version(version));
        let node = self.node.as_ref().map(|(path, _)| path.clone());
        match (node, version) {
            (Some(node), Some(version)) if version >= MIN_NODE_VERSION => Ok((node, Vec::new())),
            (_, version) => match &self.bun {
                // Without this flag Bun may download packages that the user did not request.
                Some(bun) => Ok((bun.clone(), vec!["--no-install".into()])),
                None => {
                    let found = match version {
                        Some((major, minor)) => format!("found node {major}.{minor}"),
                        None => "neither was found".to_owned(),
                    };
                    let (major, minor) = MIN_NODE_VERSION;
                    Err(format!("{file} requires node {major}.{minor} or bun; {found}"))
                }
            },
        }
    }
}

/// Parses the major and minor number of a version such as `v22.18.1`.
fn parse_node_version(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim().trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(node: &str, bun: bool, file: &str) -> Result<String, String> {
        let node = (!node.is_empty()).then(|| (PathBuf::from("/n/node"), node.to_owned()));
        let runtimes = ScriptRuntimes { node, bun: bun.then(|| "/b/bun".into()) };
        runtimes.choose_runtime(Path::new(file)).map(|(program, arguments)| {
            let arguments: Vec<_> =
                arguments.iter().map(|argument| argument.to_string_lossy()).collect();
            format!("{} {}", program.display(), arguments.join(" ")).trim().to_owned()
        })
    }

    #[test]
    fn the_runtime_depends_on_the_script_and_the_installed_versions() {
        for (node, bun, file, expected) in [
            ("v20.20.2", false, "a.mjs", Ok("/n/node")),
            ("v20.20.2", true, "a.ts", Ok("/n/node")),
            ("v18.0.0", true, "a.ts", Ok("/b/bun --no-install")),
            ("v18.0.0", false, "a.js", Err("a.js requires node 20.6 or bun; found node 18.0")),
            ("", false, "a.js", Err("a.js requires node 20.6 or bun; neither was found")),
            ("nonsense", false, "a.js", Err("a.js requires node 20.6 or bun; neither was found")),
            ("", true, "a.js", Ok("/b/bun --no-install")),
        ] {
            let expected = expected.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(choose(node, bun, file), expected, "{node} {bun} {file}");
        }
    }
}
