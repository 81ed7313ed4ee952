//! Named groups of hosts for the user's configuration; none is enabled unless it is named.
//!
//! This table is the only place that defines such names. A host that accepts uploads can leak a
//! secret as well as deliver a package, so enabling a group is a decision, not a default.

/// Group names with their entries.
const HOST_GROUPS: &[(&str, &[&str])] = &[
    (
        "registries",
        &[
            "api.nuget.org",
            "cpan.metacpan.org",
            "cran.r-project.org",
            "crates.io",
            "files.pythonhosted.org",
            "hackage.haskell.org",
            "index.crates.io",
            "index.rubygems.org",
            "jsr.io",
            "npm.jsr.io",
            "plugins.gradle.org",
            "proxy.golang.org",
            "pub.dev",
            "pypi.org",
            "registry.npmjs.org",
            "registry.yarnpkg.com",
            "repo.hex.pm",
            "repo.maven.apache.org",
            "repo.packagist.org",
            "repo1.maven.org",
            "rubygems.org",
            "static.crates.io",
            "static.rust-lang.org",
            "sum.golang.org",
        ],
    ),
    (
        "git-hosts",
        &[
            "bitbucket.org",
            "codeberg.org",
            "codeload.github.com",
            "git.sr.ht",
            "github.com",
            "gitlab.com",
            "objects.githubusercontent.com",
            "raw.githubusercontent.com",
        ],
    ),
];

/// Returns the entries of the group `name`, if there is one.
pub(super) fn find_group(name: &str) -> Option<&'static [&'static str]> {
    HOST_GROUPS.iter().find(|(group, _)| *group == name).map(|(_, entries)| *entries)
}

/// Returns the names of all groups.
#[cfg(test)]
pub(super) fn group_names() -> impl Iterator<Item = &'static str> {
    HOST_GROUPS.iter().map(|(name, _)| *name)
}
