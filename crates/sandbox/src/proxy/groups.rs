//! Groups of hosts that a person can name at once; none of them is on unless it is named.
//!
//! This table is the only place with such names. A host that takes uploads is a way out for a
//! secret as much as a way in for a package, so naming a group is a decision, not a default.

/// The name of each group, and its entries.
const GROUPS: &[(&str, &[&str])] = &[
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

/// The entries of a group, if this is the name of one.
pub(super) fn group(name: &str) -> Option<&'static [&'static str]> {
    GROUPS.iter().find(|(each, _)| *each == name).map(|(_, entries)| *entries)
}

/// The names of all groups.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().map(|(name, _)| *name)
}
