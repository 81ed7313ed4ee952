//! Showing a page to the person, in the browser they have chosen.
#![allow(
    clippy::disallowed_methods,
    reason = "processes are started in this crate only; a browser needs to find its screen"
)]

use crate::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// No address that anybody means is longer.
const LONGEST: usize = 8 << 10;

/// What may stand in an address besides letters and digits.
const MARKS: &str = "-._~:/?#[]@!$&'()*+,;=%";

/// How a browser finds the person's screen and files. Keys of providers are not among them.
const HANDED: [&str; 11] = [
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
/// The same, by how their names begin.
const STARTS: [&str; 3] = ["DBUS_SESSION_", "LC_", "XDG_"];

/// Opens a page of the web in the person's browser. It does not wait until it is seen.
pub fn open_page(url: &str) -> Result<(), Error> {
    let failed = |why: &str| Error::NoPage { url: url.to_owned(), why: why.to_owned() };
    if !is_page(url) {
        return Err(failed("that is no address of a page"));
    }
    let program = opener().ok_or_else(|| failed("nothing on this machine opens pages"))?;
    let handed = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_handed));
    let mut command = Command::new(program);
    command.arg(url).env_clear().envs(handed).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    // What is typed to end us does not end the browser.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
    let wait = move || {
        // Nobody cares how it ended, but somebody must ask.
        let _ = child.wait();
    };
    // If there is no thread for it, it is reaped with us.
    let _ = std::thread::Builder::new().name("page".to_owned()).spawn(wait);
    Ok(())
}

fn is_handed(name: &str) -> bool {
    HANDED.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

fn is_page(url: &str) -> bool {
    let rest = ["https://", "http://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let plain = |each: char| each.is_ascii_alphanumeric() || MARKS.contains(each);
    url.len() <= LONGEST
        && rest.is_some_and(|rest| {
            rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[')
        })
        && url.chars().all(plain)
}

#[cfg(target_os = "linux")]
fn opener() -> Option<PathBuf> {
    crate::cage::system_program("xdg-open")
}

#[cfg(target_os = "macos")]
fn opener() -> Option<PathBuf> {
    Some(PathBuf::from("/usr/bin/open"))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn opener() -> Option<PathBuf> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_goes_along() {
        for name in ["DISPLAY", "PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
            assert!(is_handed(name), "{name}");
        }
        for name in ["XAI_API_KEY", "USER_TOKEN", "OPENAI_API_KEY", "LD_PRELOAD", "BROWSER_KEY", ""]
        {
            assert!(!is_handed(name), "{name}");
        }
    }

    #[test]
    fn only_pages_are_opened_and_nothing_that_a_script_could_misread() {
        for page in [
            "https://example.com/authorize?a=b&c=d%20e#f",
            "http://127.0.0.1:3000/callback",
            "http://[::1]:3000/",
        ] {
            assert!(is_page(page), "{page}");
        }
        let long = format!("https://example.com/{}", "a".repeat(LONGEST));
        for other in [
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
            assert!(!is_page(other), "{other}");
            assert!(matches!(open_page(other), Err(Error::NoPage { .. })), "{other}");
        }
    }
}
