//! Violations that the compiler or a lint must reject, each in a small crate with the lints of this
//! project, next to a control that passes. (Dependency graph, cycles and unused cases are tested in
//! `tidy`, a tool with undeclared accesses in `toolkit`.)
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests set up files and processes, and fail by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Checks a crate of one file. Returns true if it passed, and the error output.
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
        .env("CARGO_TARGET_DIR", target_folder().join(name))
        .env("CLIPPY_CONF_DIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns a target folder that is kept between runs, so that dependencies are not built again.
fn target_folder() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    executable.ancestors().nth(3).unwrap().join("breakages")
}

fn path_dependency(name: &str) -> String {
    let path = root().join("crates").join(name);
    format!("windlass-{name} = {{ path = {:?} }}", path.display().to_string())
}

#[test]
fn a_forged_grant_does_not_compile() {
    let dependencies = path_dependency("permission");
    let control = "use windlass_permission::{Decision, Grant, Policy};\n\
                   pub fn earn(policy: &Policy) -> Option<Grant> {\n    \
                   match policy.decide(Vec::new(), &[]) {\n        \
                   Decision::Allowed(grant) => Some(grant),\n        _ => None,\n    }\n}\n";
    let (passed, output) = check("grant", "check", &dependencies, control);
    assert!(passed, "{output}");
    for forgery in [
        "pub fn forge() -> windlass_permission::Grant {\n    windlass_permission::Grant { accesses: Vec::new(), policy: Default::default(), level: windlass_permission::PermissionLevel::Allow, is_read_only: false, reaches_registries: false }\n}\n",
        "pub fn forge() -> windlass_permission::Grant {\n    windlass_permission::Grant::new(Vec::new(), Default::default(), windlass_permission::PermissionLevel::Allow)\n}\n",
        "pub fn forge() -> windlass_permission::Grant {\n    Default::default()\n}\n",
        "pub fn forge(g: &windlass_permission::Grant) -> windlass_permission::Grant {\n    g.clone()\n}\n",
    ] {
        let (passed, output) = check("grant", "check", &dependencies, forgery);
        assert!(!passed, "it compiles:\n{forgery}");
        let expected_codes = ["E0451", "E0624", "E0277", "E0308"];
        assert!(expected_codes.iter().any(|code| output.contains(code)), "{output}");
    }
}

#[test]
fn a_tool_that_opens_files_itself_is_rejected() {
    let (passed, output) =
        check("files", "clippy", "", "/// Fine.\npub fn fine() -> u8 {\n    7\n}\n");
    assert!(passed, "{output}");
    for call in [
        "std::fs::read_to_string(\"/etc/passwd\").ok()",
        "std::fs::File::open(\"/etc/passwd\").ok().map(|_| String::new())",
        "std::process::Command::new(\"sh\").spawn().ok().map(|_| String::new())",
        "std::env::var(\"HOME\").ok()",
        "std::path::Path::new(\"/etc\").try_exists().ok().map(|_| String::new())",
        "std::net::TcpStream::connect(\"127.0.0.1:1\").ok().map(|_| String::new())",
    ] {
        let source = format!("/// Leaks.\npub fn leak() -> Option<String> {{\n    {call}\n}}\n");
        let (passed, output) = check("files", "clippy", "", &source);
        assert!(!passed, "it passes: {call}");
        assert!(output.contains("use of a disallowed"), "{output}");
    }
}

#[test]
fn printing_in_the_engine_is_rejected() {
    let source = "/// Prints.\npub fn print() {\n    println!(\"hello\");\n}\n";
    let (passed, output) = check("print", "clippy", "", source);
    assert!(!passed);
    assert!(output.contains("use of `println!`"), "{output}");
}

#[test]
fn the_clock_and_unwraps_are_rejected() {
    for (source, expected) in [
        (
            "/// T.\npub fn t() -> bool {\n    std::time::SystemTime::now().elapsed().is_ok()\n}\n",
            "disallowed method",
        ),
        ("/// U.\npub fn u(x: Option<u8>) -> u8 {\n    x.unwrap()\n}\n", "used `unwrap()`"),
        ("/// I.\npub fn i(x: &[u8]) -> u8 {\n    x[0]\n}\n", "indexing may panic"),
        ("/// D.\n#[allow(dead_code)]\nfn d() {}\n", "without specifying a reason"),
    ] {
        let (passed, output) = check("lints", "clippy", "", source);
        assert!(!passed, "it passes: {source}");
        assert!(output.contains(expected), "{output}");
    }
}
