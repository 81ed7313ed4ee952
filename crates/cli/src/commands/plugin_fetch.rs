//! Fetches the files of a plugin or a marketplace from the source that the user names.

use crate::setup::LoadedProject;
use anyhow::{anyhow, bail};
use std::path::Path;
use windlass_project::{
    ConfigFlags, Dirs, NpmPackageSpec, PluginContents, PluginDownloadDir, PluginSource, github_url,
};

/// Prefixes of sources that are never a path: a project could contain a folder of this name.
const REMOTE_PREFIXES: [&str; 3] = ["https://", "file://", "npm:"];

/// Fetches the files of a source that the user names, except for `NAME@MARKETPLACE`. Of a folder or
/// repository only the file or folder `part` is read; an empty `part` means all.
pub(super) async fn fetch_contents(
    dirs: &Dirs,
    source: &str,
    part: &str,
) -> anyhow::Result<(PluginContents, PluginSource)> {
    let is_remote = REMOTE_PREFIXES.iter().any(|prefix| source.starts_with(prefix));
    if !is_remote && LoadedProject::path_exists(Path::new(source)) {
        return Ok(PluginContents::read_path(Path::new(source), part)?);
    }
    fetch_remote(dirs, source, part).await
}

/// Fetches the files of a source in the list of marketplaces: an absolute path, or not a path.
pub(super) async fn fetch_stored(
    dirs: &Dirs,
    source: &str,
    part: &str,
) -> anyhow::Result<(PluginContents, PluginSource)> {
    match Path::new(source).is_absolute() {
        true => Ok(PluginContents::read_path(Path::new(source), part)?),
        false => fetch_remote(dirs, source, part).await,
    }
}

async fn fetch_remote(
    dirs: &Dirs,
    source: &str,
    part: &str,
) -> anyhow::Result<(PluginContents, PluginSource)> {
    if let Some(package) = source.strip_prefix("npm:") {
        let package = NpmPackageSpec::parse(package).ok_or_else(|| {
            anyhow!("invalid package `{package}`; use npm:NAME or npm:NAME@VERSION")
        })?;
        let setup = LoadedProject::load(ConfigFlags::default())?;
        let scratch = PluginDownloadDir::new(dirs)?;
        let archive = setup.install_npm_package(&package, scratch.path()).await?;
        let (contents, version) = PluginContents::from_npm(&archive, &package)?;
        return Ok((contents, PluginSource::Npm { package: package.name, version }));
    }
    if source.starts_with("git@") || source.starts_with("ssh://") {
        bail!(
            "repositories are fetched over https only, so that your credentials are not used. \
             Clone it yourself and add the folder"
        );
    }
    if source.starts_with("http://") {
        bail!("plugins are fetched over https only; use an https URL or a folder");
    }
    let github_url = github_url(source);
    let source = github_url.as_deref().unwrap_or(source);
    if !source.starts_with("https://") && !source.starts_with("file://") {
        bail!(
            "{source} not found: no such file or folder. For an npm package, use npm:{source}; for \
             a repository on GitHub, owner/repo"
        );
    }
    if source.ends_with(".tgz") || source.ends_with(".tar.gz") {
        bail!("cannot download archives. Download {source} yourself and add the file");
    }
    let (url, name) =
        source.split_once('#').map_or((source, None), |(url, name)| (url, Some(name)));
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let scratch = PluginDownloadDir::new(dirs)?;
    let (commit, archive) = setup.fetch_repository(url, name, part, scratch.path()).await?;
    let contents = PluginContents::from_tar(&archive, url)?;
    Ok((contents, PluginSource::Git { url: source.to_owned(), commit }))
}
