//! Opens web pages in the user's default browser.
#![allow(
    clippy::disallowed_methods,
    reason = "the sandbox crate is the only one that starts processes; a browser needs the \
              display variables"
)]

use crate::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Bounds a URL; no legitimate one is longer.
const MAX_URL_BYTES: usize = 8 << 10;

/// Characters allowed in a URL besides ASCII letters and digits.
const URL_PUNCTUATION: &str = "-._~:/?#[]@!$&'()*+,;=%";

/// Environment variables that a browser needs to find the user's screen and files. API keys of
/// providers are not among them.
const BROWSER_VARIABLES: [&str; 11] = [
    "BROWSER",
    "DESKTOP_SESSION",
    "DISPLAY",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "PATH",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];
/// Prefixes of further variables that a browser gets.
const BROWSER_VARIABLE_PREFIXES: [&str; 3] = ["DBUS_SESSION_", "LC_", "XDG_"];

/// Opens a web page in the user's browser. Does not wait until the page is displayed.
pub fn open_page(url: &str) -> Result<(), Error> {
    let not_opened =
        |reason: &str| Error::PageNotOpened { url: url.to_owned(), reason: reason.to_owned() };
    if !is_web_url(url) {
        return Err(not_opened("the URL is invalid"));
    }
    let program =
        browser_opener().ok_or_else(|| not_opened("no program to open web pages was found"))?;
    let variables =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_browser_variable));
    let mut command = Command::new(program);
    command.arg(url).env_clear().envs(variables).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    // With a process group of its own, the browser survives a Ctrl-C that ends Windlass.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| not_opened(&error.to_string()))?;
    let wait = move || {
        // The exit status does not matter, but the child must be reaped.
        let _ = child.wait();
    };
    // Without a thread, the child is reaped when Windlass ends.
    let _ = std::thread::Builder::new().name("page".to_owned()).spawn(wait);
    Ok(())
}

fn is_browser_variable(name: &str) -> bool {
    BROWSER_VARIABLES.contains(&name)
        || BROWSER_VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_web_url(url: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || URL_PUNCTUATION.contains(c);
    url.len() <= MAX_URL_BYTES
        && rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[')
        })
        && url.chars().all(is_allowed)
}

#[cfg(target_os = "linux")]
fn browser_opener() -> Option<PathBuf> {
    crate::confine::system_program("xdg-open")
}

#[cfg(target_os = "macos")]
fn browser_opener() -> Option<PathBuf> {
    Some(PathBuf::from("/usr/bin/open"))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn browser_opener() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_gets_no_keys() {
        for name in ["DISPLAY", "PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
            assert!(is_browser_variable(name), "{name}");
        }
        for name in ["XAI_API_KEY", "USER_TOKEN", "OPENAI_API_KEY", "LD_PRELOAD", "BROWSER_KEY", ""]
        {
            assert!(!is_browser_variable(name), "{name}");
        }
    }

    #[test]
    fn only_safe_web_urls_are_opened() {
        for url in [
            "https://example.com/authorize?a=b&c=d%20e#f",
            "http://127.0.0.1:3000/callback",
            "http://[::1]:3000/",
        ] {
            assert!(is_web_url(url), "{url}");
        }
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES));
        for unsafe_url in [
            "",
            "https://",
            "https:///etc/passwd",
            "https://-x",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "--help",
            " https://example.com",
            "https://example.com/a b",
            "https://example.com/\"; touch x; \"",
            "https://example.com/`touch x`",
            "https://example.com/\n--help",
            "https://exämple.com/",
            "https://example.com/\u{202e}",
            "https://example.com/a|b",
            "https://example.com/<a>",
            "https://example.com/a\\b",
            long.as_str(),
        ] {
            assert!(!is_web_url(unsafe_url), "{unsafe_url}");
            assert!(
                matches!(open_page(unsafe_url), Err(Error::PageNotOpened { .. })),
                "{unsafe_url}"
            );
        }
    }
}
