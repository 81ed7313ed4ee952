//! `windlass auth`: API keys are saved, listed, used and removed, and never shown.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use support::{TestEnv, decode_output};

const KEY: &str = "sk-kept-by-windlass";

/// Runs a command with `input` on its standard input, and checks that its output does not contain
/// the key.
fn run_with_input(mut command: Command, input: &str) -> (i32, String, String) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // A command that refuses before it reads closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let (code, out, err) = decode_output(&child.wait_with_output().unwrap());
    assert!(!out.contains(KEY) && !err.contains(KEY), "the key is shown: {out}{err}");
    (code, out, err)
}

fn windlass(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.windlass(arguments);
    command.env("WINDLASS_KEYRING", "off");
    command
}

fn login(env: &TestEnv, provider: &str) {
    let (code, _, stderr) =
        run_with_input(windlass(env, &["auth", "login", "--unchecked", provider]), KEY);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn a_key_from_standard_input_is_saved_listed_and_removed() {
    let env = TestEnv::new(&[], "");
    let auth = |arguments: &[&str]| {
        run_with_input(
            windlass(&env, &[&["auth"], arguments].concat()),
            &format!("  {KEY} \nmore\n"),
        )
    };
    let file = env.data().join("auth.json");
    let (code, out, stderr) = auth(&["login", "--unchecked", "openai"]);
    assert_eq!((code, out.as_str()), (0, ""), "{stderr}");
    assert_eq!(stderr, format!("saved the API key for openai in {}\n", file.display()));
    let saved = std::fs::read_to_string(&file).unwrap();
    assert_eq!(saved, format!("{{\n  \"openai\": {{\n    \"key\": \"{KEY}\"\n  }}\n}}"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let (code, list, _) = auth(&["list"]);
    let config = env.home().join(".config/windlass/windlass.jsonc");
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!((code, rows.len()), (0, 2), "{list}");
    assert_eq!(rows[0], format!("openai    {}", file.display()));
    assert!(rows[1].starts_with(&format!("scripted  {}:2:", config.display())), "{list}");

    assert_eq!(auth(&["logout", "openai"]).0, 0);
    let (code, _, stderr) = auth(&["logout", "openai"]);
    assert_eq!(code, 1);
    assert!(stderr.contains("no saved API key for openai. Run `windlass auth list`"), "{stderr}");
    assert_eq!(auth(&["list"]).1.lines().count(), 1);
}

#[test]
fn a_key_in_the_environment_is_listed_by_its_variable() {
    let env = TestEnv::new(&[], "");
    env.write_config("{}");
    let with_variable = |arguments: &[&str]| {
        let mut command = windlass(&env, arguments);
        command.env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", "");
        run_with_input(command, KEY)
    };
    assert_eq!(run_with_input(windlass(&env, &["auth", "list"]), "").1, "");
    let (_, list, _) = with_variable(&["auth", "list"]);
    assert_eq!(list, "anthropic  the environment variable ANTHROPIC_API_KEY\n");
    assert_eq!(with_variable(&["auth", "login", "--unchecked", "anthropic"]).0, 0);
    let (_, list, _) = with_variable(&["auth", "list"]);
    assert_eq!(list.lines().count(), 1, "{list}");
    let (code, _, stderr) = with_variable(&["auth", "logout", "anthropic"]);
    assert_eq!(code, 0);
    assert!(
        stderr.contains("the environment variable ANTHROPIC_API_KEY still contains one"),
        "{stderr}"
    );
}

#[test]
fn invalid_keys_and_unknown_providers_are_refused() {
    let env = TestEnv::new(&[], "");
    for (provider, input, words) in [
        ("openai", "", "no API key given"),
        ("openai", " \n", "no API key given"),
        ("openai", "two words\n", "contains spaces or control characters"),
        ("opnai", KEY, "unknown provider `opnai`. Did you mean openai"),
        ("scriptde", KEY, "Did you mean scripted"),
        ("###", KEY, "unknown provider `###`. Run `windlass models`"),
    ] {
        let (code, _, stderr) = run_with_input(windlass(&env, &["auth", "login", provider]), input);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
    let argument = windlass(&env, &["auth", "login", "openai", "sk-argument"]);
    assert_eq!(run_with_input(argument, KEY).0, 2, "a key must not be an argument");
    assert!(!env.data().join("auth.json").exists());
    login(&env, "scripted");

    let file = env.data().join("auth.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["auth", "login", "--unchecked", "openai"][..], &["auth", "list"]] {
        let (code, _, stderr) = run_with_input(windlass(&env, arguments), KEY);
        assert_eq!(code, 2);
        assert!(stderr.contains("`chmod 600`"), "{stderr}");
    }
}

/// Types `keys` when `auth login` asks for a key. Returns the exit code and the terminal's output.
fn login_in_terminal(env: &TestEnv, keys: &str) -> (i32, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap().into_string().unwrap();
    let terminal = std::fs::File::options().read(true).write(true).open(name).unwrap();
    let before = tcgetattr(&terminal).unwrap().local_modes;
    let mut command = windlass(env, &["auth", "login", "--unchecked", "openai"]);
    command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap());
    let mut child = command.stderr(terminal.try_clone().unwrap()).spawn().unwrap();
    drop(command);
    let mut pty = std::fs::File::from(pty);
    let mut output = String::new();
    let mut piece = [0; 4096];
    while !output.contains("input is hidden: ") {
        let read = pty.read(&mut piece).unwrap();
        output.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    // Types only after the echo is off.
    while tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    pty.write_all(keys.as_bytes()).unwrap();
    let code = child.wait().unwrap().code().unwrap();
    assert_eq!(tcgetattr(&terminal).unwrap().local_modes, before, "the terminal is not restored");
    drop(terminal);
    while let Ok(read @ 1..) = pty.read(&mut piece) {
        output.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    (code, output)
}

#[test]
fn a_typed_key_is_not_shown() {
    let env = TestEnv::new(&[], "");
    let (code, output) = login_in_terminal(&env, "sk-first\u{3}");
    assert_eq!(code, 130, "{output}");
    assert!(output.contains("no key saved") && !env.data().join("auth.json").exists());
    let (code, output) = login_in_terminal(&env, &format!("sk-oops\u{15}{KEY}\r"));
    assert_eq!(code, 0, "{output}");
    assert!(output.contains("saved the API key for openai in"), "{output}");
    assert!(!output.contains("sk-"), "{output}");
    assert!(std::fs::read_to_string(env.data().join("auth.json")).unwrap().contains(KEY));
}

/// Starts a server that rejects every key. Returns its URL and the heads of the requests.
fn start_rejecting_server() -> (String, mpsc::Receiver<String>) {
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

/// The time within which a request must arrive.
const REQUEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn a_saved_key_is_sent_to_the_users_provider_and_not_to_a_projects() {
    let env = TestEnv::new(&[], "");
    let (address, heads) = start_rejecting_server();
    let provider = format!(
        r#"{{"model": "openai/m",
        "provider": {{"openai": {{"api": "openai-chat", "base_url": "{address}"}}}}}}"#
    );
    env.write_config(&provider);
    login(&env, "openai");
    assert_eq!(run_with_input(windlass(&env, &["run", "p"]), "").0, 1);
    let head = heads.recv_timeout(REQUEST_TIMEOUT).unwrap();
    assert!(head.contains(&format!("Bearer {KEY}")), "{head}");

    // A provider that a project defines gets no key, and a project cannot change a known provider.
    env.write_config("{}");
    let team = provider.replace("openai/m", "team/m").replace("\"openai\"", "\"team\"");
    for (text, warning) in
        [(&provider, "a project cannot change the provider `openai`"), (&team, "")]
    {
        std::fs::write(env.root().join("windlass.jsonc"), text).unwrap();
        assert_eq!(env.run(&["trust", "--yes"]).0, 0);
        let (_, shown, stderr) = env.run(&["config", "show"]);
        assert!(stderr.contains(warning), "{stderr}");
        assert_eq!(shown.contains("base_url"), warning.is_empty(), "{shown}");
    }
    assert_eq!(run_with_input(windlass(&env, &["run", "p"]), "").0, 1);
    let heads: Vec<String> = std::iter::once(heads.recv_timeout(REQUEST_TIMEOUT).unwrap())
        .chain(heads.try_iter())
        .collect();
    assert!(heads.iter().all(|head| head.contains("POST ") && !head.contains(KEY)), "{heads:?}");
}

#[test]
fn a_key_for_a_projects_provider_is_refused() {
    let env = TestEnv::new(&[], "");
    let provider = r#"{"provider": {"team": {"api": "openai-chat", "base_url": "http://x/v1"}}}"#;
    std::fs::write(env.root().join("windlass.jsonc"), provider).unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let (code, _, stderr) = run_with_input(windlass(&env, &["auth", "login", "team"]), KEY);
    assert_eq!(code, 2);
    assert!(stderr.contains("`team` is defined by this project"), "{stderr}");
}

/// Tests with a real keyring, if its programs are installed: their own D-Bus session and their own
/// keyring daemon.
#[cfg(feature = "keyring")]
mod keyring {
    use super::*;

    /// Runs a shell script in a session with a new keyring; `None` if a program is not installed.
    fn run_with_keyring(
        env: &TestEnv,
        daemon: &str,
        script: &str,
    ) -> Option<(i32, String, String)> {
        let programs = ["dbus-run-session", "gnome-keyring-daemon", "secret-tool"];
        let path = std::env::var_os("PATH").unwrap();
        let is_installed =
            |name: &str| std::env::split_paths(&path).any(|at| at.join(name).exists());
        if !programs.iter().all(|program| is_installed(program)) {
            return None;
        }
        let runtime = env.home().join("runtime");
        std::fs::create_dir_all(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        let script = format!("{daemon}\n{script}");
        let mut command = Command::new("dbus-run-session");
        command.args(["--", "sh", "-c", &script]).current_dir(env.root()).env_clear();
        command.env("HOME", env.home()).env("PATH", path).env("XDG_RUNTIME_DIR", runtime);
        command.env("WINDLASS", env!("CARGO_BIN_EXE_windlass")).env("KEY", KEY);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(decode_output(&command.stdin(Stdio::null()).output().unwrap()))
    }

    const UNLOCK_DAEMON: &str = "printf p | gnome-keyring-daemon --unlock --components=secrets >&2";

    #[test]
    fn a_key_is_saved_in_the_keyring_if_there_is_one() {
        let env = TestEnv::new(&[], "");
        let script = r#"
            printf %s "$KEY" | "$WINDLASS" auth login --unchecked openai || exit 10
            "$WINDLASS" auth list | grep '^openai  *the keyring$' >&2 || exit 11
            test "$(secret-tool lookup service windlass username openai)" = "$KEY" || exit 12
            cat "$HOME/.local/share/windlass/auth.json"
            "$WINDLASS" auth logout openai || exit 13
            secret-tool lookup service windlass username openai >&2 && exit 14
            "$WINDLASS" auth logout openai; test $? = 1 || exit 15
        "#;
        let Some((code, out, stderr)) = run_with_keyring(&env, UNLOCK_DAEMON, script) else {
            return;
        };
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("saved the API key for openai in the keyring"), "{stderr}");
        assert!(!out.contains(KEY) && !stderr.contains(KEY), "{out}{stderr}");
        assert!(out.contains("\"in_keyring\": true"), "{out}");
    }

    #[test]
    fn a_key_in_the_keyring_is_used_and_an_unavailable_keyring_is_reported() {
        let env = TestEnv::new(&[], "");
        let (address, heads) = start_rejecting_server();
        env.write_config(&format!(
            r#"{{"model": "openai/m",
            "provider": {{"openai": {{"api": "openai-chat", "base_url": "{address}"}}}}}}"#
        ));
        let script = r#"
            printf %s "$KEY" | "$WINDLASS" auth login --unchecked openai || exit 10
            "$WINDLASS" run p; test $? = 1 || exit 11
        "#;
        let Some((code, _, stderr)) = run_with_keyring(&env, UNLOCK_DAEMON, script) else { return };
        assert_eq!(code, 0, "{stderr}");
        assert!(heads.recv().unwrap().contains(&format!("Bearer {KEY}")));

        let (code, _, stderr) = run_with_input(env.windlass(&["run", "p"]), "");
        assert_eq!(code, 2);
        assert!(stderr.contains("this session has no D-Bus session bus"), "{stderr}");
        let (code, _, stderr) = run_with_input(windlass(&env, &["auth", "logout", "openai"]), "");
        assert_eq!(code, 2);
        assert!(stderr.contains("WINDLASS_KEYRING is `off`"), "{stderr}");
    }

    #[test]
    fn without_a_keyring_a_key_is_saved_in_a_file_without_a_warning() {
        let env = TestEnv::new(&[], "");
        // A real bus would start a keyring daemon on demand; at this address there is no bus.
        let mut command = env.windlass(&["auth", "login", "--unchecked", "openai"]);
        command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
        let (code, _, stderr) = run_with_input(command, KEY);
        let file = env.data().join("auth.json");
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(stderr, format!("saved the API key for openai in {}\n", file.display()));
    }
}

/// Starts a server that lists models for requests with `KEY` and rejects others. Returns its port.
fn start_model_server() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().take(10).flatten() {
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(1..) => request.extend_from_slice(&buffer),
                    _ => break,
                }
            }
            let request = String::from_utf8_lossy(&request).to_lowercase();
            let is_list = request.starts_with("get /v1/models ");
            let is_allowed = request.contains(&format!("authorization: bearer {KEY}"));
            let (status, body) = match (is_list, is_allowed) {
                (true, true) => ("200 OK", r#"{"data": [{"id": "m"}]}"#),
                (true, false) => ("401 Unauthorized", r#"{"error": {"message": "bad key"}}"#),
                (false, _) => ("404 Not Found", "{}"),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    port
}

#[test]
fn a_key_is_checked_with_one_request_before_it_is_saved() {
    let env = TestEnv::new(&[], "");
    let port = start_model_server();
    env.write_config(&format!(
        r#"{{"provider": {{"mine": {{"api": "openai-chat", "base_url": "http://127.0.0.1:{port}/v1"}},
            "away": {{"api": "openai-chat", "base_url": "http://127.0.0.1:9/v1"}}}}}}"#
    ));
    let login = |arguments: &[&str], key: &str| {
        run_with_input(windlass(&env, &[&["auth", "login"], arguments].concat()), key)
    };
    let (code, _, stderr) = login(&["mine"], "sk-wrong-one");
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("mine does not accept this key") && stderr.contains("bad key"));
    assert!(!stderr.contains("sk-wrong-one"), "{stderr}");
    assert!(!env.data().join("auth.json").exists(), "a rejected key is not saved");
    let (code, _, stderr) = login(&["mine"], KEY);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("; the provider accepts it"), "{stderr}");
    let (code, _, stderr) = login(&["away"], KEY);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("it was not checked: the provider cannot be reached (127.0.0.1:9"),
        "{stderr}"
    );
}
