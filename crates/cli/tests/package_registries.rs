//! Installs packages from real registries in the sandbox, through an HTTP proxy of the user's
//! network: npm (Verdaccio), Python (pypiserver), cargo and git.
//!
//! The registries have names that exist only in that proxy, so nothing can reach them another way.
//! `WINDLASS_REGISTRIES` is the folder with `npm/node_modules` and `servers/bin`. `.ci/run` installs
//! the servers and runs these tests, which are ignored otherwise.
#![cfg(target_os = "linux")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{TestEnv, decode_output};

/// A process that ends with its test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An HTTP proxy that knows some names, and records the first lines of requests.
struct NetworkProxy {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    /// Names with the loopback ports of their servers. Without names, it refuses everything.
    names: Arc<Mutex<BTreeMap<String, u16>>>,
}

impl NetworkProxy {
    fn start(password: Option<&'static str>) -> NetworkProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, names) = (Arc::default(), Arc::default());
        let proxy = NetworkProxy { port, requests, names };
        let (requests, names) = (Arc::clone(&proxy.requests), Arc::clone(&proxy.names));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (requests, names) = (Arc::clone(&requests), Arc::clone(&names));
                std::thread::spawn(move || serve_client(client, &requests, &names, password));
            }
        });
        proxy
    }

    fn add(&self, name: &str, port: u16) {
        self.names.lock().unwrap().insert(name.to_owned(), port);
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn read_head(client: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

fn serve_client(
    mut client: TcpStream,
    requests: &Mutex<Vec<String>>,
    names: &Mutex<BTreeMap<String, u16>>,
    password: Option<&str>,
) {
    let Some(head) = read_head(&mut client) else { return };
    let line = head.lines().next().unwrap().to_owned();
    let is_allowed = password.is_none_or(|password| {
        head.contains(&format!("Proxy-Authorization: Basic {password}\r\n"))
    });
    if !is_allowed {
        let _ = client.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
        return;
    }
    requests.lock().unwrap().push(line.clone());
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let authority = target.trim_start_matches("http://").split('/').next().unwrap();
    let name = authority.split(':').next().unwrap();
    let Some(port) = names.lock().unwrap().get(name).copied() else {
        let _ = client.write_all(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n");
        return;
    };
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)) else { return };
    if method == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    } else {
        let prefix = format!("http://{authority}");
        server.write_all(head.replacen(&prefix, "", 1).as_bytes()).unwrap();
    }
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

fn tools_folder() -> PathBuf {
    std::env::var_os("WINDLASS_REGISTRIES").expect("WINDLASS_REGISTRIES is needed").into()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a server and waits until it accepts connections.
fn start_server(command: &mut Command, port: u16) -> Server {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let server = Server(child.unwrap());
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(30), "{command:?} does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    server
}

fn serve_files(folder: &Path) -> (Server, u16) {
    let port = free_port();
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string()]);
    (start_server(command.current_dir(folder), port), port)
}

fn run_outside(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    let (code, out, stderr) = decode_output(&output);
    assert_eq!(code, 0, "{program} {arguments:?}: {out}\n{stderr}");
    out
}

/// A project whose commands can leave the machine through a [`NetworkProxy`] only.
struct RegistryTestEnv {
    env: TestEnv,
    proxy: NetworkProxy,
    proxy_url: String,
    files: tempfile::TempDir,
}

impl RegistryTestEnv {
    fn new() -> RegistryTestEnv {
        RegistryTestEnv::with_password(None)
    }

    /// `password` is the expected value of `Proxy-Authorization`, with user and password.
    fn with_password(password: Option<(&'static str, &str)>) -> RegistryTestEnv {
        let env = TestEnv::new(&[], "");
        let proxy = NetworkProxy::start(password.map(|(encoded, _)| encoded));
        let user = password.map(|(_, plain)| format!("{plain}@")).unwrap_or_default();
        let proxy_url = format!("http://{user}127.0.0.1:{}", proxy.port);
        RegistryTestEnv { env, proxy, proxy_url, files: tempfile::tempdir().unwrap() }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.env.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Creates a file in the user's home folder.
    fn write_home(&self, path: &str, text: &str) {
        let path = self.env.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a command in the sandbox, with one yes to its question.
    fn bash(&self, command: &str) -> String {
        let arguments = json!({ "command": command, "timeout": 120_000 }).to_string();
        let mut windlass = self.env.windlass(&["tool", "call", "--yes", "bash", &arguments]);
        windlass.env("HTTP_PROXY", &self.proxy_url).env("HTTPS_PROXY", &self.proxy_url);
        let rustup = std::env::var_os("RUSTUP_HOME").map_or_else(
            || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".rustup"),
            PathBuf::from,
        );
        windlass.env("RUSTUP_HOME", rustup);
        let (code, out, stderr) = decode_output(&windlass.output().unwrap());
        assert_eq!(code, 0, "{command}: {out}\n{stderr}");
        out
    }

    fn expect(&self, command: &str, expected: &str) {
        let out = self.bash(command);
        assert!(out.contains("(exit code 0") || !out.contains("(exit code"), "{command}: {out}");
        assert!(out.contains(expected), "{command}: {out}");
    }

    /// Returns all files of the user's home folder except those of Windlass.
    fn user_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.env.home()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with("windlass") {
                    continue;
                }
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((path.clone(), fs::read(&path).unwrap())),
                }
            }
        }
        files.sort();
        files
    }

    fn was_requested(&self, part: &str) -> bool {
        self.proxy.requests().iter().any(|line| line.contains(part))
    }
}

#[test]
#[ignore = "needs WINDLASS_REGISTRIES"]
fn npm_installs_and_installs_again_offline() {
    let env = RegistryTestEnv::new();
    let (port, files) = (free_port(), env.files.path());
    fs::write(
        files.join("config.yaml"),
        "storage: ./storage\npackages:\n  '**':\n    access: $all\n    publish: $all\n\
         log: {type: stdout, format: pretty, level: error}\n",
    )
    .unwrap();
    let verdaccio = tools_folder().join("npm/node_modules/verdaccio/bin/verdaccio");
    let mut command = Command::new(tools_folder().join("npm/node_modules/node/bin/node"));
    command.arg(verdaccio).args(["--listen", &format!("127.0.0.1:{port}"), "--config"]);
    let server = start_server(command.arg(files.join("config.yaml")).current_dir(files), port);
    env.proxy.add("npm.test", port);
    let package = files.join("package");
    fs::create_dir(&package).unwrap();
    fs::write(package.join("package.json"), r#"{"name": "tiny-sum", "version": "1.0.0"}"#).unwrap();
    fs::write(package.join("index.js"), "module.exports = (a, b) => a + b;\n").unwrap();
    let registry = format!("--registry=http://127.0.0.1:{port}/");
    let token = format!("--//127.0.0.1:{port}/:_authToken=none");
    run_outside("npm", &["publish", &registry, &token], &package);
    env.write("package.json", r#"{"name": "app", "dependencies": {"tiny-sum": "^1.0.0"}}"#);
    env.write(".npmrc", "registry=http://npm.test/\naudit=false\nfund=false\n");
    env.write_home(".npm/_cacache/tmp/own", "the user's");
    let before = env.user_files();
    env.expect("npm install", "added 1 package");
    env.expect("node -p 'require(\"tiny-sum\")(2, 3)'", "5");
    assert!(env.was_requested("http://npm.test/tiny-sum"), "{:?}", env.proxy.requests());
    check_npm_plugin(&env, (&registry, &token));
    drop(server);
    env.proxy.names.lock().unwrap().clear();
    env.expect("rm -r node_modules && npm ci --offline", "added 1 package");
    assert_eq!(env.user_files(), before);
}

/// Publishes a plugin with a dependency and an install script, adds it and sees its hook deny.
fn check_npm_plugin(env: &RegistryTestEnv, (registry, token): (&str, &str)) {
    let package = env.files.path().join("plugin");
    fs::create_dir(&package).unwrap();
    let manifest = json!({
        "name": "opencode-guard", "version": "1.0.0", "type": "module", "main": "index.js",
        "scripts": {"postinstall": "touch installed"},
        "dependencies": {"tiny-sum": "^1.0.0", "@opencode-ai/plugin": "^99.0.0"},
    });
    fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    let text = "import sum from 'tiny-sum';
import { existsSync } from 'node:fs';
import { tool } from '@opencode-ai/plugin';
export const Guard = async ({ $ }) => ({
  'tool.execute.before': async (input, output) => {
    const installed = existsSync(new URL('./installed', import.meta.url));
    if (/forbidden/.test(output.args.command)) throw new Error(`denied ${sum(2, 3)} ${installed}`);
  },
  tool: { addition: tool({ description: 'Adds', args: {}, execute: async () => String(sum(1, 1)) }) },
});
";
    fs::write(package.join("index.js"), text).unwrap();
    run_outside("npm", &["publish", registry, token], &package);
    let run = |arguments: &[&str]| {
        let mut windlass = env.env.windlass(arguments);
        windlass.env("HTTP_PROXY", &env.proxy_url).env("HTTPS_PROXY", &env.proxy_url);
        windlass.env("npm_config_registry", "http://npm.test/");
        let (code, stdout, stderr) = decode_output(&windlass.output().unwrap());
        (code, stdout + &stderr)
    };
    let (code, output) = run(&["plugin", "add", "--yes", "npm:opencode-guard"]);
    assert!(code == 0 && output.contains("from npm:opencode-guard@1.0.0"), "{output}");
    assert!(output.contains("its hooks see calls"), "{output}");
    let (code, output) = run(&["tool", "call", "bash", r#"{"command": "echo forbidden"}"#]);
    assert!(code != 0 && output.contains("denied 5 false"), "{output}");
    let (code, output) = run(&["tool", "call", "--yes", "addition", "{}"]);
    assert!(code == 0 && output.contains('2'), "{output}");
    assert_eq!(run(&["plugin", "remove", "opencode-guard"]).0, 0);
    let (code, output) = run(&["plugin", "add", "--yes", "npm:no-such-package"]);
    assert!(code == 2 && output.contains("cannot install no-such-package"), "{output}");
}

#[test]
#[ignore = "needs WINDLASS_REGISTRIES"]
fn python_packages_install_and_install_again_offline() {
    let env = RegistryTestEnv::new();
    let (port, files) = (free_port(), env.files.path());
    let build = "import zipfile
with zipfile.ZipFile('tinysum-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('tinysum.py', 'def add(a, b):\\n    return a + b\\n')
    wheel.writestr('tinysum-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tinysum\\nVersion: 1.0\\n')
    wheel.writestr('tinysum-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('tinysum-1.0.dist-info/RECORD', 'tinysum.py,,\\ntinysum-1.0.dist-info/METADATA,,\\ntinysum-1.0.dist-info/WHEEL,,\\ntinysum-1.0.dist-info/RECORD,,\\n')
";
    run_outside("python3", &["-c", build], files);
    let mut command = Command::new(tools_folder().join("servers/bin/pypi-server"));
    command.args(["run", "--interface", "127.0.0.1", "--port", &port.to_string()]).arg(files);
    let server = start_server(&mut command, port);
    env.proxy.add("pypi.test", port);
    env.write_home(".cache/pip/http-v2/own", "the user's");
    let before = env.user_files();
    let index = "--index-url http://pypi.test/simple/";
    env.expect("python3 -m venv .venv && echo made", "made");
    env.expect(
        &format!(
            ".venv/bin/pip install -q {index} --trusted-host pypi.test tinysum && \
                  .venv/bin/python -c 'import tinysum; print(tinysum.add(2, 3))'"
        ),
        "5",
    );
    let uv = tools_folder().join("servers/bin/uv");
    let uv = uv.display();
    let install = format!("{uv} pip install -q --python .venv2 {index} tinysum");
    let add = ".venv2/bin/python -c 'import tinysum; print(tinysum.add(2, 3))'";
    env.expect(&format!("python3 -m venv .venv2 && {install} && {add}"), "5");
    assert!(env.was_requested("pypi.test/simple/tinysum"), "{:?}", env.proxy.requests());
    drop(server);
    env.proxy.names.lock().unwrap().clear();
    let again = format!("rm -r .venv2 && python3 -m venv .venv2 && {install} --offline && {add}");
    env.expect(&again, "5");
    assert_eq!(env.user_files(), before);
}

#[test]
#[ignore = "needs WINDLASS_REGISTRIES"]
fn crates_are_fetched_and_built_again_offline() {
    let env = RegistryTestEnv::new();
    let files = env.files.path();
    let package = files.join("package");
    fs::create_dir_all(package.join("src")).unwrap();
    let manifest = "[package]\nname = \"tinysum\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\
                    description = \"x\"\nlicense = \"MIT\"\n[workspace]\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::write(package.join("src/lib.rs"), "pub fn add(a: u8, b: u8) -> u8 { a + b }\n").unwrap();
    let arguments = ["package", "-q", "--no-verify", "--allow-dirty", "--target-dir", "target"];
    run_outside("cargo", &arguments, &package);
    let served = files.join("served");
    fs::create_dir_all(served.join("index/ti/ny")).unwrap();
    fs::create_dir_all(served.join("crates/tinysum")).unwrap();
    let archive = served.join("crates/tinysum/1.0.0");
    fs::copy(package.join("target/package/tinysum-1.0.0.crate"), &archive).unwrap();
    let checksum = run_outside("sha256sum", &[archive.to_str().unwrap()], files);
    let checksum = checksum.split(' ').next().unwrap();
    let line = json!({
        "name": "tinysum", "vers": "1.0.0", "deps": [], "cksum": checksum, "features": {},
        "yanked": false,
    });
    fs::write(served.join("index/ti/ny/tinysum"), format!("{line}\n")).unwrap();
    let config = r#"{"dl": "http://crates.test/crates/{crate}/{version}"}"#;
    fs::write(served.join("index/config.json"), config).unwrap();
    let (server, port) = serve_files(&served);
    env.proxy.add("crates.test", port);
    env.write(
        ".cargo/config.toml",
        "[registries.test]\nindex = \"sparse+http://crates.test/index/\"\n",
    );
    env.write(
        "Cargo.toml",
        "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n\
         [dependencies]\ntinysum = { version = \"1\", registry = \"test\" }\n",
    );
    env.write("src/main.rs", "fn main() { println!(\"{}\", tinysum::add(2, 3)); }\n");
    env.write_home(".cargo/registry/cache/own", "the user's");
    let before = env.user_files();
    env.expect("cargo fetch && cargo run -q", "5");
    assert!(env.was_requested("crates.test/index/ti/ny/tinysum"), "{:?}", env.proxy.requests());
    drop(server);
    env.proxy.names.lock().unwrap().clear();
    env.expect("cargo clean -q && cargo run -q --offline", "5");
    assert_eq!(env.user_files(), before);
}

#[test]
#[ignore = "needs WINDLASS_REGISTRIES"]
fn git_clones_through_a_proxy_with_a_password() {
    // "u:p" in base64.
    let env = RegistryTestEnv::with_password(Some(("dTpw", "u:p")));
    let files = env.files.path();
    let work = files.join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("a.txt"), "hello\n").unwrap();
    let commit = ["-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "First"];
    run_outside("git", &["init", "-q", "-b", "main"], &work);
    run_outside("git", &["add", "a.txt"], &work);
    run_outside("git", &commit, &work);
    let served = files.join("served");
    fs::create_dir(&served).unwrap();
    run_outside("git", &["clone", "-q", "--bare", "../work", "repo.git"], &served);
    run_outside("git", &["update-server-info"], &served.join("repo.git"));
    let (_server, port) = serve_files(&served);
    env.proxy.add("git.test", port);
    // Commands cannot create a `.git` in the workspace.
    env.expect(
        "cd $(mktemp -d) && git clone -q http://git.test/repo.git copy && cat copy/a.txt",
        "hello",
    );
    assert!(env.was_requested("git.test"), "{:?}", env.proxy.requests());
    env.expect("curl -s http://git.test/repo.git/HEAD", "refs/heads/main");
    // The password is wrong, and no message contains it.
    let wrong = RegistryTestEnv::with_password(Some(("dTpw", "u:secret")));
    wrong.proxy.add("git.test", port);
    let out = wrong.bash("curl -sv http://git.test/repo.git/HEAD; env");
    assert!(!out.contains("secret") && !out.contains("refs/heads"), "{out}");
}
