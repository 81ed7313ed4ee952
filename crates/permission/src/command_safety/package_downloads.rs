//! Commands that need the network only to download packages from registries.

/// Subcommands as the program table names them, separated by `|`.
const PACKAGE_DOWNLOADS: &str = "\
    npm install|npm i|npm in|npm ins|npm inst|npm isntall|npm add|npm ci|npm clean-install|\
    npm update|npm up|npm upgrade|npm audit|npm outdated|npm view|npm info|npm search|\
    npm install-test|npm it|npm cit|npm dedupe|npm uninstall|npm rebuild|npm fund|npm ping|\
    yarn add|yarn install|yarn upgrade|yarn up|yarn import|yarn remove|pnpm add|pnpm install|\
    pnpm i|pnpm update|pnpm up|pnpm fetch|pnpm remove|bun add|bun install|bun i|bun update|\
    deno install|deno add|pip install|pip download|pip wheel|pip index|pip uninstall|\
    pip3 install|pip3 download|pip3 wheel|pip3 index|pip3 uninstall|uv pip|uv add|uv sync|\
    uv lock|poetry add|poetry install|poetry update|poetry lock|pipenv install|pipenv update|\
    pdm add|pdm install|cargo add|cargo update|cargo fetch|cargo vendor|\
    cargo generate-lockfile|cargo search|cargo info|cargo remove|cargo outdated|go get|\
    go mod download|go mod tidy|go mod vendor|go work sync|bundle install|bundle update|\
    bundle add|composer install|composer update|composer require|mix deps.get|\
    mix deps.update|cabal update|dotnet restore|dotnet add|pub get|flutter pub|dart pub";

/// Returns true if a command only downloads packages. Publishing, logging in and running what was
/// downloaded are not among them.
pub(super) fn only_downloads_packages(command: &str) -> bool {
    PACKAGE_DOWNLOADS.split('|').any(|name| name == command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_are_told_from_uploads_and_programs() {
        for command in ["npm ci", "pip install", "cargo fetch", "go mod tidy", "uv sync"] {
            assert!(only_downloads_packages(command), "{command}");
        }
        for command in ["npm publish", "npm login", "npm", "uvx", "cargo install", "cargo yank"] {
            assert!(!only_downloads_packages(command), "{command}");
        }
    }
}
