//! Breakages that the compiler or a lint must stop, each tried on a small crate under the
//! project's own lints, next to a control that passes. (The graph, a cycle and a forgotten case
//! are tried in `tidy`; a tool that under-declares in `toolkit`.)
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Checks a crate of one file and returns whether it passed and what was said.
fn check(name: &str, subcommand: &str, dependencies: &str, source: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let lints: String = workspace
        .split("\n[")
        .filter(|section| section.starts_with("workspace.lints"))
        .map(|section| format!("[{}\n", section.replacen("workspace.", "", 1)))
        .collect();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}\n{lints}"
    );
    std::fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(root().join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    std::fs::copy(root().join("clippy.toml"), folder.path().join("clippy.toml")).unwrap();
    std::fs::write(folder.path().join("src/lib.rs"), format!("//! A try.\n{source}")).unwrap();
    let output = Command::new("cargo")
        .args([subcommand, "--offline", "--quiet"])
        .env("CARGO_TARGET_DIR", target().join(name))
        .env("CLIPPY_CONF_DIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A place that is kept between runs, so that what does not change is not built again.
fn target() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    me.ancestors().nth(3).unwrap().join("breakages")
}

fn needs(name: &str) -> String {
    let path = root().join("crates").join(name);
    format!("windlass-{name} = {{ path = {:?} }}", path.display().to_string())
}

#[test]
fn a_forged_grant_does_not_compile() {
    let dependencies = needs("permission");
    let control = "use windlass_permission::{Decision, Grant, Policy};\n\
                   pub fn earn(policy: &Policy) -> Option<Grant> {\n    \
                   match policy.decide(Vec::new(), &[]) {\n        \
                   Decision::Allowed(grant) => Some(grant),\n        _ => None,\n    }\n}\n";
    let (passed, said) = check("grant", "check", &dependencies, control);
    assert!(passed, "{said}");
    for forgery in [
        "pub fn forge() -> windlass_permission::Grant {\n    windlass_permission::Grant { accesses: Vec::new(), policy: Default::default(), level: windlass_permission::Level::Allow, looks: false }\n}\n",
        "pub fn forge() -> windlass_permission::Grant {\n    windlass_permission::Grant::over(Vec::new(), Default::default(), windlass_permission::Level::Allow)\n}\n",
        "pub fn forge() -> windlass_permission::Grant {\n    Default::default()\n}\n",
        "pub fn forge(g: &windlass_permission::Grant) -> windlass_permission::Grant {\n    g.clone()\n}\n",
    ] {
        let (passed, said) = check("grant", "check", &dependencies, forgery);
        assert!(!passed, "it compiles:\n{forgery}");
        let refused = ["E0451", "E0624", "E0277", "E0308"];
        assert!(refused.iter().any(|code| said.contains(code)), "{said}");
    }
}

#[test]
fn a_tool_that_opens_files_itself_is_stopped() {
    let (passed, said) =
        check("files", "clippy", "", "/// Fine.\npub fn fine() -> u8 {\n    7\n}\n");
    assert!(passed, "{said}");
    for call in [
        "std::fs::read_to_string(\"/etc/passwd\").ok()",
        "std::fs::File::open(\"/etc/passwd\").ok().map(|_| String::new())",
        "std::process::Command::new(\"sh\").spawn().ok().map(|_| String::new())",
        "std::env::var(\"HOME\").ok()",
        "std::path::Path::new(\"/etc\").try_exists().ok().map(|_| String::new())",
        "std::net::TcpStream::connect(\"127.0.0.1:1\").ok().map(|_| String::new())",
    ] {
        let source = format!("/// Leaks.\npub fn leak() -> Option<String> {{\n    {call}\n}}\n");
        let (passed, said) = check("files", "clippy", "", &source);
        assert!(!passed, "it passes: {call}");
        assert!(said.contains("use of a disallowed"), "{said}");
    }
}

#[test]
fn printing_in_the_engine_is_stopped() {
    let source = "/// Prints.\npub fn print() {\n    println!(\"hello\");\n}\n";
    let (passed, said) = check("print", "clippy", "", source);
    assert!(!passed);
    assert!(said.contains("use of `println!`"), "{said}");
}

#[test]
fn the_clock_and_unwraps_are_stopped() {
    for (source, words) in [
        (
            "/// T.\npub fn t() -> bool {\n    std::time::SystemTime::now().elapsed().is_ok()\n}\n",
            "disallowed method",
        ),
        ("/// U.\npub fn u(x: Option<u8>) -> u8 {\n    x.unwrap()\n}\n", "used `unwrap()`"),
        ("/// I.\npub fn i(x: &[u8]) -> u8 {\n    x[0]\n}\n", "indexing may panic"),
        ("/// D.\n#[allow(dead_code)]\nfn d() {}\n", "without specifying a reason"),
    ] {
        let (passed, said) = check("lints", "clippy", "", source);
        assert!(!passed, "it passes: {source}");
        assert!(said.contains(words), "{said}");
    }
}
