//! A plugin in the form of OpenCode: an npm package whose module exports tools and hooks.
//!
//! It becomes a plugin like any other: the package and its dependencies, a manifest, and a tool
//! file that exports what the package exports.

use super::contents::PluginContents;
use super::manifest::{WINDLASS_KEY, parse_object};
use crate::ProjectError;
use crate::custom_tools::file_role::ToolFileKind;
use crate::custom_tools::typescript_entry;
use serde_json::{Value, json};
use windlass_protocol::display_text::truncate_chars;

/// Begins the tool file of a package. Its text names no hooks, but the package may have some.
pub(crate) const PACKAGE_ENTRY_MARKER: &str = "// The exports of an npm package, as a plugin.";

const MAX_PACKAGE_NAME_BYTES: usize = 214;
const MAX_DESCRIPTION_CHARS: usize = 300;

/// The name of an npm package, with a version or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NpmPackageSpec {
    pub name: String,
    /// Empty for the latest version.
    pub version: String,
}

impl NpmPackageSpec {
    /// Parses `NAME`, `NAME@VERSION`, `@SCOPE/NAME` or `@SCOPE/NAME@VERSION`.
    pub fn parse(text: &str) -> Option<NpmPackageSpec> {
        let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(index, _)| index);
        let (name, version) = match at.and_then(|at| text.split_at_checked(at)) {
            Some((name, version)) => (name, version.trim_start_matches('@')),
            None => (text, ""),
        };
        let is_part = |part: &str| {
            let is_name_char = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            !part.is_empty() && !part.starts_with(['.', '-']) && part.chars().all(is_name_char)
        };
        let is_name = match name.strip_prefix('@') {
            Some(scoped) => {
                scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name))
            }
            None => is_part(name),
        };
        let is_version_char = |c: char| c.is_ascii_alphanumeric() || ".-+^~*".contains(c);
        let is_valid = is_name
            && name.len() <= MAX_PACKAGE_NAME_BYTES
            && !version.starts_with('-')
            && version.chars().all(is_version_char);
        is_valid.then(|| NpmPackageSpec { name: name.to_owned(), version: version.to_owned() })
    }

    /// Returns the package as `npm install` expects it.
    pub fn argument(&self) -> String {
        match self.version.as_str() {
            "" => self.name.clone(),
            version => format!("{}@{version}", self.name),
        }
    }

    /// Returns true if a version is the one that is named, or if a range or none is named.
    pub(crate) fn allows_version(&self, version: &str) -> bool {
        let is_exact = self.version.chars().next().is_some_and(|c| c.is_ascii_digit());
        let rest = version.strip_prefix(self.version.as_str());
        !is_exact || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Returns the name of the plugin: `@scope/opencode-x` becomes `scope-opencode-x`.
    fn plugin_name(&self) -> String {
        let to_name_char =
            |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(to_name_char).collect();
        let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
        let mut name = parts.join("-");
        name.truncate(64);
        name.trim_end_matches('-').to_owned()
    }
}

impl PluginContents {
    /// Reads an archive with `node_modules`, and adds the manifest and the tool file. Returns the
    /// version of the package, too.
    pub fn from_npm(
        archive: &[u8],
        package: &NpmPackageSpec,
    ) -> Result<(PluginContents, String), ProjectError> {
        let to_error = |reason: String| ProjectError::Plugin { name: package.name.clone(), reason };
        let mut contents = PluginContents::from_tar(archive, &package.name)?;
        let manifest = format!("node_modules/{}/package.json", package.name);
        let manifest = match contents.read_text(&manifest) {
            Some(text) => text.and_then(parse_object).map_err(to_error)?,
            None => return Err(to_error("npm did not install it".to_owned())),
        };
        let text = |key: &str| manifest.get(key).and_then(Value::as_str).unwrap_or_default();
        let version = text("version").to_owned();
        let own = json!({
            "name": package.plugin_name(),
            "version": version,
            "description": truncate_chars(text("description"), MAX_DESCRIPTION_CHARS),
        });
        // TypeScript is compiled only along imports from a TypeScript file.
        let exists =
            |file: &str| contents.contains(&format!("node_modules/{}/{file}", package.name));
        let (extension, module) = match typescript_entry(&manifest, exists) {
            Some(file) => ("ts", format!("../../node_modules/{}/{file}", package.name)),
            None if manifest.get("exports").is_some_and(|it| it.get("./server").is_some()) => {
                ("mjs", format!("{}/server", package.name))
            }
            None => ("mjs", package.name.clone()),
        };
        let entry = format!(
            "{PACKAGE_ENTRY_MARKER}\nimport * as own from {};\nexport default own;\n",
            json!(module)
        );
        let entry_name = format!("{WINDLASS_KEY}/tools/{}.{extension}", package.plugin_name());
        for (name, bytes) in [("plugin.json", own.to_string()), (&*entry_name, entry)] {
            contents.add(name, ToolFileKind::Plain, bytes.into_bytes()).map_err(to_error)?;
        }
        Ok((contents, version))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_a_name_and_may_have_a_version() {
        for (text, name, version, plugin) in [
            ("opencode-x", "opencode-x", "", "opencode-x"),
            ("opencode-x@1.2.3", "opencode-x", "1.2.3", "opencode-x"),
            ("@Scope/a_b.c@latest", "@Scope/a_b.c", "latest", "scope-a-b-c"),
            ("@s/x@^1", "@s/x", "^1", "s-x"),
        ] {
            let package = NpmPackageSpec::parse(text).unwrap();
            assert_eq!((&*package.name, &*package.version), (name, version));
            assert_eq!(package.plugin_name(), plugin);
        }
        for text in [
            "",
            "@",
            "@a",
            "@a/",
            "../x",
            "a/b",
            "-x",
            ".x",
            "a b",
            "x@--force",
            "x@file:/y",
            "x;y",
        ] {
            assert_eq!(NpmPackageSpec::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_listed_version_is_exact_or_a_prefix() {
        for (wanted, version, allowed) in [
            ("x", "1.2.3", true),
            ("x@1.2.3", "1.2.3", true),
            ("x@1.2", "1.2.3", true),
            ("x@1.2", "1.20.3", false),
            ("x@2", "1.2.3", false),
            ("x@^2", "1.2.3", true),
            ("x@latest", "1.2.3", true),
        ] {
            let package = NpmPackageSpec::parse(wanted).unwrap();
            assert_eq!(package.allows_version(version), allowed, "{wanted} {version}");
        }
    }

    #[test]
    fn a_package_becomes_a_plugin_with_one_tool_file() {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, text) in [
            ("node_modules/@s/x/package.json", r#"{"version": "1.2.3", "description": "Guards"}"#),
            ("node_modules/@s/x/index.js", "export const P = 1"),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            archive.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
        let archive = archive.into_inner().unwrap();
        let package = NpmPackageSpec::parse("@s/x").unwrap();
        let (contents, version) = PluginContents::from_npm(&archive, &package).unwrap();
        assert_eq!(version, "1.2.3");
        let entry = contents.read_text("dev.windlass/tools/s-x.mjs").unwrap().unwrap();
        assert!(entry.contains("import * as own from \"@s/x\";"), "{entry}");
        let manifest = parse_object(contents.read_text("plugin.json").unwrap().unwrap()).unwrap();
        assert_eq!(manifest["name"], "s-x");
        for (manifest, expected) in [
            (json!({"main": "index.js"}), None),
            (json!({"main": "./src/index.ts"}), Some("src/index.ts")),
            (json!({"main": "a.js", "exports": {".": {"import": "./b.ts"}}}), Some("b.ts")),
            (json!({"exports": "./c.mts"}), Some("c.mts")),
            (json!({"exports": {".": "./a.js", "./server": "./s.ts"}}), Some("s.ts")),
            (json!({"main": "../x.ts"}), None),
            // The sources are named, but not part of the package.
            (json!({"module": "gone.ts", "main": "index.js"}), None),
            (json!({"module": "gone.ts", "main": "d.ts"}), Some("d.ts")),
        ] {
            let exists = |file: &str| file != "gone.ts";
            let found = typescript_entry(manifest.as_object().unwrap(), exists);
            assert_eq!(found.as_deref(), expected, "{manifest}");
        }
        let other = NpmPackageSpec::parse("y").unwrap();
        assert!(PluginContents::from_npm(&archive, &other).is_err());
    }
}
