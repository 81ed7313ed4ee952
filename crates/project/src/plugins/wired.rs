//! A plugin's server: its name here, what its manifest may ask for, and what is put into its words.
//!
//! In the Agent Plugins format only `${PLUGIN_ROOT}` and `${PLUGIN_DATA}` mean something, in arguments,
//! values of the environment and the folder. Claude's also takes variables of the person's environment,
//! here only in values and headers, and each of them is shown before anybody says yes.

use super::Lodging;
use super::manifest::{Format, Manifest};
use crate::config::{McpServer, Outside, Server, listed, resolved};
use crate::file::Layer;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

/// How long the name of a server may be.
const LONGEST_NAME: usize = 32;
/// Programs that fetch what they run.
const FETCH: [&str; 3] = ["npx", "uvx", "bunx"];

/// A server of a plugin.
#[derive(Clone, Debug)]
pub(crate) struct Wired {
    /// Its name here.
    pub(crate) name: String,
    /// Its name in the plugin.
    pub(super) own: String,
    /// What of the person's environment it is given.
    pub(super) reads: BTreeSet<String>,
    pub(super) server: McpServer,
    lodging: Lodging,
}

impl Wired {
    pub(super) fn read(
        own: &str,
        value: &Value,
        manifest: &Manifest,
        lodging: &Lodging,
    ) -> Result<Wired, String> {
        let mut server = listed(value)?;
        let put = |text: &str| lodging.put_in(text);
        let put_all = |values: &mut BTreeMap<String, SecretString>| {
            for value in values.values_mut() {
                *value = SecretString::from(put(value.expose_secret()));
            }
        };
        if let Some(command) = &mut server.command {
            // The program itself is spelled out in the one form, and is anything in the other.
            let literal = usize::from(manifest.format == Format::Agent);
            command.iter_mut().skip(literal).for_each(|word| *word = put(word));
        }
        put_all(&mut server.env);
        let mut reads = BTreeSet::new();
        if manifest.format == Format::Claude {
            put_all(&mut server.headers);
            server.url = server.url.as_deref().map(put);
            let words = server.command.iter().flatten().chain(&server.url);
            if words.chain(&server.cwd).any(|word| !variables(&put(word)).is_empty()) {
                return Err("it reads the environment where only `env` and `headers` may".into());
            }
            for value in server.env.values().chain(server.headers.values()) {
                reads.extend(variables(value.expose_secret()));
            }
        }
        if server.command.is_some() {
            server.cwd = Some(folder(server.cwd.as_deref().map(put), lodging)?);
        }
        let want = manifest.wants.servers.get(own).cloned().unwrap_or_default();
        if server.command.is_some() {
            let mut network = want.network;
            let program = server.command.iter().flatten().next();
            let program = program.and_then(|program| Path::new(program).file_name());
            let fetches = program.is_some_and(|name| FETCH.iter().any(|known| name == *known));
            if fetches && !network.iter().any(|host| host == "registries") {
                network.push("registries".to_owned());
            }
            (server.write, server.network) = (Some(want.write), Some(network));
        } else if want.write || !want.network.is_empty() {
            return Err("an address has no sandbox to ask something of".into());
        }
        server.timeout = want.timeout;
        let name = joined(&manifest.name, own);
        let wired = Wired { name, own: own.to_owned(), reads, server, lodging: lodging.clone() };
        wired.settle(&Everything)?;
        Ok(wired)
    }

    /// The server as it is started or reached, with what it is given of the environment.
    pub(crate) fn settle(&self, outside: &dyn Outside) -> Result<Server, String> {
        let mut server = self.server.clone();
        let values = server.env.values_mut().chain(server.headers.values_mut());
        for value in values.filter(|_| !self.reads.is_empty()) {
            *value = SecretString::from(given(value.expose_secret(), outside)?);
        }
        let resolved = resolved(Layer::Plugin, &self.name, server, outside);
        let mut server = resolved.map_err(|(_, why)| why)?;
        server.plugin = Some(self.lodging.clone());
        Ok(server)
    }
}

/// Where every variable is set, for a look at the rest.
struct Everything;

impl Outside for Everything {
    fn env(&self, _name: &str) -> Option<String> {
        Some("set".to_owned())
    }

    fn knows(&self, _provider: &str) -> Option<&'static str> {
        None
    }
}

/// `PLUGIN-server`, in the letters and the length that names of servers have.
fn joined(plugin: &str, server: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let whole = format!("{plugin}-{server}");
    let name: String = whole.chars().map(fit).collect();
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let hash: String =
        Sha256::digest(whole.as_bytes()).iter().take(3).map(|b| format!("{b:02x}")).collect();
    let start: String = name.chars().take(LONGEST_NAME - 1 - hash.len()).collect();
    format!("{start}-{hash}")
}

/// Where it runs: in the plugin's own folders.
fn folder(cwd: Option<String>, lodging: &Lodging) -> Result<String, String> {
    let path = lodging.root.join(cwd.as_deref().unwrap_or_default());
    let inside = path.starts_with(&lodging.root) || path.starts_with(&lodging.data);
    if !inside || path.components().any(|part| part == Component::ParentDir) {
        return Err("its `cwd` leads out of the plugin's folder".into());
    }
    Ok(path.components().collect::<std::path::PathBuf>().display().to_string())
}

/// The names in `${NAME}` and `${NAME:-usual}`.
fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let _ = filled(text, &mut |name, _| {
        names.push(name.to_owned());
        Ok(String::new())
    });
    names
}

/// A text with the values of variables in their places.
fn given(text: &str, outside: &dyn Outside) -> Result<String, String> {
    filled(text, &mut |name, usual| {
        let value = outside.env(name).or_else(|| usual.map(str::to_owned));
        value.ok_or_else(|| format!("the environment variable {name} is not set"))
    })
}

/// What takes the place of a variable, by its name and its usual value.
type Each<'a> = dyn FnMut(&str, Option<&str>) -> Result<String, String> + 'a;

/// A text with something in the places of its variables. It is read once: nothing that is put in
/// means anything further.
fn filled(text: &str, each: &mut Each<'_>) -> Result<String, String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inner, behind)) = after.split_once('}') else { break };
        let (name, usual) =
            inner.split_once(":-").map_or((inner, None), |(name, usual)| (name, Some(usual)));
        whole.push_str(before);
        whole.push_str(&each(name, usual)?);
        rest = behind;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn every_name_of_a_server_fits(plugin in "[a-z0-9.-]{1,64}", server in "\\PC{1,40}") {
            let name = joined(&plugin, &server);
            prop_assert!((1..=32).contains(&name.len()), "{name}");
            prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'));
            prop_assert_eq!(joined(&plugin, &server), name);
        }

        #[test]
        fn what_is_read_is_what_is_shown(text in "[${}:A-C -]{0,24}") {
            let shown = variables(&text);
            let asked = std::cell::RefCell::new(Vec::new());
            struct Asked<'a>(&'a std::cell::RefCell<Vec<String>>);
            impl Outside for Asked<'_> {
                fn env(&self, name: &str) -> Option<String> {
                    self.0.borrow_mut().push(name.to_owned());
                    Some("${A}".to_owned())
                }
                fn knows(&self, _: &str) -> Option<&'static str> {
                    None
                }
            }
            given(&text, &Asked(&asked)).unwrap();
            for name in asked.into_inner() {
                prop_assert!(shown.contains(&name), "{name} is read and not shown: {text}");
            }
        }
    }
}
