//! Keys are given, listed, used and taken back; nobody sees one.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use yard::{Yard, told};

const KEY: &str = "sk-kept-by-windlass";

/// Ends with what is piped in; standard output and standard error together must not hold the key.
fn piped(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // Whoever refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (code, out, err) = told(&child.wait_with_output().unwrap());
    assert!(!out.contains(KEY) && !err.contains(KEY), "the key is shown: {out}{err}");
    (code, out, err)
}

fn windlass(yard: &Yard, arguments: &[&str]) -> Command {
    let mut command = yard.windlass(arguments);
    command.env("WINDLASS_KEYRING", "off");
    command
}

fn login(yard: &Yard, provider: &str) {
    let (code, _, told) = piped(windlass(yard, &["auth", "login", provider]), KEY);
    assert_eq!(code, 0, "{told}");
}

#[test]
fn a_key_is_piped_in_listed_and_forgotten() {
    let yard = Yard::new(&[], "");
    let auth = |arguments: &[&str]| {
        piped(windlass(&yard, &[&["auth"], arguments].concat()), &format!("  {KEY} \nmore\n"))
    };
    let file = yard.data().join("auth.json");
    let (code, out, told) = auth(&["login", "openai"]);
    assert_eq!((code, out.as_str()), (0, ""), "{told}");
    assert_eq!(told, format!("the key for openai is kept in {}\n", file.display()));
    let kept = std::fs::read_to_string(&file).unwrap();
    assert_eq!(kept, format!("{{\n  \"openai\": {{\n    \"key\": \"{KEY}\"\n  }}\n}}"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let (code, list, _) = auth(&["list"]);
    let config = yard.home().join(".config/windlass/windlass.jsonc");
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!((code, rows.len()), (0, 2), "{list}");
    assert_eq!(rows[0], format!("openai    {}", file.display()));
    assert!(rows[1].starts_with(&format!("scripted  {}:2:", config.display())), "{list}");

    assert_eq!(auth(&["logout", "openai"]).0, 0);
    let (code, _, told) = auth(&["logout", "openai"]);
    assert_eq!(code, 1);
    assert!(told.contains("no key is kept for openai. `windlass auth list`"), "{told}");
    assert_eq!(auth(&["list"]).1.lines().count(), 1);
}

#[test]
fn a_variable_is_named_but_not_read_out() {
    let yard = Yard::new(&[], "");
    yard.write_config("{}");
    let with_variable = |arguments: &[&str]| {
        let mut command = windlass(&yard, arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", "");
        piped(command, KEY)
    };
    assert_eq!(piped(windlass(&yard, &["auth", "list"]), "").1, "");
    let (_, list, _) = with_variable(&["auth", "list"]);
    assert_eq!(list, "anthropic  the environment variable ANTHROPIC_API_KEY\n");
    assert_eq!(with_variable(&["auth", "login", "anthropic"]).0, 0);
    let (_, list, _) = with_variable(&["auth", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    let (code, _, told) = with_variable(&["auth", "logout", "anthropic"]);
    assert_eq!(code, 0);
    assert!(told.contains("the environment variable ANTHROPIC_API_KEY still holds one"), "{told}");
}

#[test]
fn what_cannot_be_a_key_or_a_provider_is_refused() {
    let yard = Yard::new(&[], "");
    for (provider, input, words) in [
        ("openai", "", "no key was given"),
        ("openai", " \n", "no key was given"),
        ("openai", "two words\n", "a key has no spaces"),
        ("opnai", KEY, "there is no provider `opnai`. Near: openai"),
        ("scriptde", KEY, "Near: scripted"),
        ("###", KEY, "there is no provider `###`. One of your own"),
    ] {
        let (code, _, told) = piped(windlass(&yard, &["auth", "login", provider]), input);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains(words), "{told}");
    }
    let argument = windlass(&yard, &["auth", "login", "openai", "sk-argument"]);
    assert_eq!(piped(argument, KEY).0, 2, "a key is no argument");
    assert!(!yard.data().join("auth.json").exists());
    login(&yard, "scripted");

    let file = yard.data().join("auth.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["auth", "login", "openai"][..], &["auth", "list"]] {
        let (code, _, told) = piped(windlass(&yard, arguments), KEY);
        assert_eq!(code, 2);
        assert!(told.contains("`chmod 600`"), "{told}");
    }
}

/// What a person sees who types something when they are asked for a key, and how it ends.
fn typed(yard: &Yard, keys: &str) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap().into_string().unwrap();
    let keyboard = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let before = tcgetattr(&keyboard).unwrap().local_modes;
    let mut command = windlass(yard, &["auth", "login", "openai"]);
    command.stdin(keyboard.try_clone().unwrap()).stdout(keyboard.try_clone().unwrap());
    let mut child = command.stderr(keyboard.try_clone().unwrap()).spawn().unwrap();
    drop(command);
    let mut screen = std::fs::File::from(screen);
    let mut seen = String::new();
    let mut piece = [0; 4096];
    while !seen.contains("not shown: ") {
        let read = screen.read(&mut piece).unwrap();
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    // Nothing is typed before it is hidden.
    while tcgetattr(&keyboard).unwrap().local_modes.contains(LocalModes::ECHO) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    screen.write_all(keys.as_bytes()).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    assert_eq!(tcgetattr(&keyboard).unwrap().local_modes, before, "the terminal is as it was");
    drop(keyboard);
    while let Ok(read @ 1..) = screen.read(&mut piece) {
        seen.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    (code, seen)
}

#[test]
fn a_key_that_is_typed_is_not_shown() {
    let yard = Yard::new(&[], "");
    let (code, seen) = typed(&yard, "sk-first\u{3}");
    assert_eq!(code, 130, "{seen}");
    assert!(seen.contains("nothing was kept") && !yard.data().join("auth.json").exists());
    let (code, seen) = typed(&yard, &format!("sk-oops\u{15}{KEY}\r"));
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("the key for openai is kept in"), "{seen}");
    assert!(!seen.contains("sk-"), "{seen}");
    assert!(std::fs::read_to_string(yard.data().join("auth.json")).unwrap().contains(KEY));
}

/// A server that accepts no key, and the heads of the requests it got.
fn server() -> (String, mpsc::Receiver<String>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (heads, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut piece = [0; 65_536];
            let read = stream.read(&mut piece).unwrap();
            let _ = heads.send(String::from_utf8_lossy(&piece[..read]).into_owned());
            let _ = stream.write_all(
                b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    (address, received)
}

/// How long a request may take to come.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn a_kept_key_goes_to_the_persons_own_provider_and_to_no_projects() {
    let yard = Yard::new(&[], "");
    let (address, heads) = server();
    let provider = format!(
        r#"{{"model": "openai/m",
        "provider": {{"openai": {{"api": "openai-chat", "base_url": "{address}"}}}}}}"#
    );
    yard.write_config(&provider);
    login(&yard, "openai");
    assert_eq!(piped(windlass(&yard, &["run", "p"]), "").0, 1);
    let head = heads.recv_timeout(PATIENCE).unwrap();
    assert!(head.contains(&format!("Bearer {KEY}")), "{head}");

    // A project's own provider gets nothing, and one that is known cannot be changed.
    yard.write_config("{}");
    let team = provider.replace("openai/m", "team/m").replace("\"openai\"", "\"team\"");
    for (text, told) in [(&provider, "a project cannot change the provider `openai`"), (&team, "")]
    {
        std::fs::write(yard.root().join("windlass.jsonc"), text).unwrap();
        assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
        let (_, shown, notes) = yard.run(&["config", "show"]);
        assert!(notes.contains(told), "{notes}");
        assert_eq!(shown.contains("base_url"), told.is_empty(), "{shown}");
    }
    assert_eq!(piped(windlass(&yard, &["run", "p"]), "").0, 1);
    let heads: Vec<String> =
        std::iter::once(heads.recv_timeout(PATIENCE).unwrap()).chain(heads.try_iter()).collect();
    assert!(heads.iter().all(|head| head.contains("POST ") && !head.contains(KEY)), "{heads:?}");
}

#[test]
fn a_key_for_a_projects_own_provider_is_not_taken() {
    let yard = Yard::new(&[], "");
    let provider = r#"{"provider": {"team": {"api": "openai-chat", "base_url": "http://x/v1"}}}"#;
    std::fs::write(yard.root().join("windlass.jsonc"), provider).unwrap();
    assert_eq!(yard.run(&["trust", "--yes"]).0, 0);
    let (code, _, told) = piped(windlass(&yard, &["auth", "login", "team"]), KEY);
    assert_eq!(code, 2);
    assert!(told.contains("`team` is this project's provider"), "{told}");
}

/// The keyring for real, where the programs are there: a bus of its own, and a daemon that was
/// unlocked with a password of its own.
#[cfg(feature = "keyring")]
mod keyring {
    use super::*;

    /// Runs some lines of shell beside a fresh keyring; `None` if there can be none.
    fn beside(yard: &Yard, daemon: &str, script: &str) -> Option<(i32, String, String)> {
        let programs = ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"];
        let path = std::env::var_os("PATH").unwrap();
        let there = |name: &str| std::env::split_paths(&path).any(|at| at.join(name).exists());
        if !programs.iter().all(|program| there(program)) {
            return None;
        }
        let runtime = yard.home().join("runtime");
        std::fs::create_dir_all(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        let script = format!("{daemon}\n{script}");
        let mut command = Command::new("dbus-run-session");
        command.args(["--", "sh", "-c", &script]).current_dir(yard.root()).env_clear();
        command.env("HOME", yard.home()).env("PATH", path).env("XDG_RUNTIME_DIR", runtime);
        command.env("WINDLASS", env!("CARGO_BIN_EXE_windlass")).env("KEY", KEY);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(told(&command.stdin(Stdio::null()).output().unwrap()))
    }

    const UNLOCKED: &str = "printf p | gnome-keyring-daemon --unlock --components=secrets >&2";

    #[test]
    fn a_key_goes_to_the_keyring_where_there_is_one() {
        let yard = Yard::new(&[], "");
        let script = r#"
            printf %s "$KEY" | "$WINDLASS" auth login openai || exit 10
            "$WINDLASS" auth list | grep '^openai  *the keyring$' >&2 || exit 11
            test "$(secret-tool lookup service windlass username openai)" = "$KEY" || exit 12
            cat "$HOME/.local/share/windlass/auth.json"
            "$WINDLASS" auth logout openai || exit 13
            secret-tool lookup service windlass username openai >&2 && exit 14
            "$WINDLASS" auth logout openai; test $? = 1 || exit 15
        "#;
        let Some((code, out, told)) = beside(&yard, UNLOCKED, script) else { return };
        assert_eq!(code, 0, "{told}");
        assert!(told.contains("the key for openai is kept in the keyring"), "{told}");
        assert!(!out.contains(KEY) && !told.contains(KEY), "{out}{told}");
        assert!(out.contains("\"keyring\": true"), "{out}");
    }

    #[test]
    fn a_key_in_the_keyring_is_used_and_one_out_of_reach_is_explained() {
        let yard = Yard::new(&[], "");
        let (address, heads) = server();
        yard.write_config(&format!(
            r#"{{"model": "openai/m",
            "provider": {{"openai": {{"api": "openai-chat", "base_url": "{address}"}}}}}}"#
        ));
        let script = r#"
            printf %s "$KEY" | "$WINDLASS" auth login openai || exit 10
            "$WINDLASS" run p; test $? = 1 || exit 11
        "#;
        let Some((code, _, told)) = beside(&yard, UNLOCKED, script) else { return };
        assert_eq!(code, 0, "{told}");
        assert!(heads.recv().unwrap().contains(&format!("Bearer {KEY}")));

        let (code, _, told) = piped(yard.windlass(&["run", "p"]), "");
        assert_eq!(code, 2);
        assert!(told.contains("this session has no bus to reach it by"), "{told}");
        let (code, _, told) = piped(windlass(&yard, &["auth", "logout", "openai"]), "");
        assert_eq!(code, 2);
        assert!(told.contains("WINDLASS_KEYRING is `off`"), "{told}");
    }

    #[test]
    fn a_bus_without_a_keyring_means_the_file_and_no_noise() {
        let yard = Yard::new(&[], "");
        // The bus starts what is missing by itself; an address where nobody is has nothing.
        let mut command = yard.windlass(&["auth", "login", "openai"]);
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
        let (code, _, told) = piped(command, KEY);
        let file = yard.data().join("auth.json");
        assert_eq!(code, 0, "{told}");
        assert_eq!(told, format!("the key for openai is kept in {}\n", file.display()));
    }
}
