//! Installs an npm package that the user names, in a sandbox that reaches only the registries and
//! the one in `npm_config_registry`, without the user's npm config and without running scripts of
//! the package.

use super::{LoadedProject, real_path};
use anyhow::anyhow;
use std::ffi::OsString;
use std::path::Path;
use windlass_project::NpmPackageSpec;
use windlass_sandbox::HostAllowlist;

/// Installs a package with its dependencies and writes them as an archive, without files that no
/// program reads. `@opencode-ai/plugin` becomes a link, which is removed, because the script host
/// provides that package.
const INSTALL_SCRIPT: &str = r#"
set -euo pipefail
cd "$(mktemp -d)"
export HOME=$PWD npm_config_cache=$PWD/.cache npm_config_update_notifier=false
mkdir stub
echo '{"name": "@opencode-ai/plugin", "version": "0.0.0"}' > stub/package.json
echo '{"private": true, "overrides": {"@opencode-ai/plugin": "file:./stub"}}' > package.json
npm install --ignore-scripts --omit=dev --no-audit --no-fund --no-bin-links \
  --no-package-lock --loglevel=error -- "$1" >&2
rm -rf node_modules/.package-lock.json
find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) \
  -delete
find node_modules -type l -delete
tar --create --file - node_modules
"#;

/// Returns the host of a registry's URL, with its port.
fn registry_host(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    (!host.is_empty()).then(|| host.to_owned())
}

impl LoadedProject {
    /// Installs a package and returns its `node_modules` as a tar archive. `folder` is an empty
    /// folder that serves only as the workspace.
    pub(crate) async fn install_npm_package(
        &self,
        package: &NpmPackageSpec,
        folder: &Path,
    ) -> anyhow::Result<Vec<u8>> {
        let listed = self.config.sandbox.network.iter().map(|(host, _)| host.clone());
        let registry = ["npm_config_registry", "NPM_CONFIG_REGISTRY"].map(std::env::var);
        let registry = registry.into_iter().find_map(Result::ok).filter(|url| !url.is_empty());
        let registry_host = registry.as_deref().and_then(registry_host);
        let own = ["registries".to_owned()].into_iter().chain(registry_host);
        let hosts: Vec<String> = listed.chain(own).collect();
        let hosts = HostAllowlist::parse_with_private(&hosts)?;
        let argument = package.argument();
        let folder = real_path(folder);
        let mut env = vec![(OsString::from("HOME"), folder.clone().into_os_string())];
        env.extend(registry.map(|url| ("npm_config_registry".into(), url.into())));
        let arguments = [argument.as_str()];
        let install = self.run_download(&folder, ("npm", INSTALL_SCRIPT), &arguments, env, hosts);
        install.await.map_err(|reason| anyhow!("cannot install {argument}: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::registry_host;

    #[test]
    fn a_registry_has_a_host() {
        for (url, host) in [
            ("https://npm.corp.example/api/npm/", Some("npm.corp.example")),
            ("http://me:key@127.0.0.1:4873", Some("127.0.0.1:4873")),
            ("https://", None),
            ("nonsense", None),
        ] {
            assert_eq!(registry_host(url).as_deref(), host, "{url}");
        }
    }
}
