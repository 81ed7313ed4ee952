//! Hostile archives and folders: paths stay inside, and sizes are limited.

use super::{MAX_FILES, PluginContents};
use crate::custom_tools::file_role::ToolFileKind;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::{any, prop_assert, proptest};
use std::io::Write;
use tar::{EntryType, Header};

/// A builder of tar archives that ordinary tools would not write.
struct HostileTestArchive(Vec<u8>);

impl HostileTestArchive {
    fn new() -> HostileTestArchive {
        HostileTestArchive(Vec::new())
    }

    /// Appends a header with an unchecked name, and its bytes.
    fn entry(mut self, kind: EntryType, name: &[u8], bytes: &[u8]) -> HostileTestArchive {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_mode(0o6755);
        header.set_size(bytes.len() as u64);
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            header.set_link_name("/etc").unwrap();
        }
        header.set_cksum();
        self.0.extend(header.as_bytes());
        self.0.extend(bytes);
        let padded = self.0.len().next_multiple_of(512);
        self.0.resize(padded, 0);
        self
    }

    fn file(self, name: &str, bytes: &[u8]) -> HostileTestArchive {
        self.entry(EntryType::Regular, name.as_bytes(), bytes)
    }

    fn into_gzip(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1_024, 0);
        gzip(&self.0)
    }

    fn unpack(self) -> Result<PluginContents, String> {
        PluginContents::unpack_gzip(self.into_gzip().as_slice())
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_folder_of_an_npm_archive_is_stripped_and_modes_are_normalized() {
    let contents = HostileTestArchive::new()
        .file("package/plugin.json", b"{}")
        .entry(EntryType::Directory, b"package/bin/", b"")
        .file("package/bin/x", b"y")
        .unpack()
        .unwrap();
    assert_eq!(contents.files.keys().collect::<Vec<_>>(), ["bin/x", "plugin.json"]);
    assert_eq!(contents.files["bin/x"].kind, ToolFileKind::Executable);
    let flat =
        HostileTestArchive::new().file("./plugin.json", b"{}").file("./a/b", b"").unpack().unwrap();
    assert!(flat.contains("plugin.json") && flat.contains("a/b"));
    let folder = tempfile::tempdir().unwrap();
    contents.write_to(&folder.path().join("p")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = folder.path().join("p/bin/x").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o500, "neither setuid nor writable");
    }
    let again = PluginContents::from_store(&folder.path().join("p")).unwrap();
    assert_eq!(again.digest(), contents.digest());
}

#[test]
fn names_that_point_outside_are_refused() {
    for name in [
        "../evil",
        "package/../../evil",
        "/etc/evil",
        "//etc/evil",
        "a/./b",
        "a//b",
        "a\\..\\b",
        "a\nb",
        "a/../a",
        "..",
        ".",
    ] {
        let error = HostileTestArchive::new().file(name, b"x").unpack().unwrap_err();
        assert!(
            error.contains("could point outside") || error.contains("cannot unpack it"),
            "{name}: {error}"
        );
    }
    let deep = "d/".repeat(20) + "x";
    assert!(HostileTestArchive::new().file(&deep, b"").unpack().unwrap_err().contains("too deep"));
    assert!(HostileTestArchive::new().entry(EntryType::Directory, b"../d/", b"").unpack().is_err());
    let latin = HostileTestArchive::new().entry(EntryType::Regular, b"a\xff", b"");
    assert!(latin.unpack().unwrap_err().contains("not valid UTF-8"));
}

#[test]
fn special_entries_and_paths_through_them_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::new(b'Z'),
    ] {
        let archive = HostileTestArchive::new().file("plugin.json", b"{}").entry(kind, b"x", b"");
        assert!(archive.unpack().is_err(), "{kind:?}");
    }
    let through_link =
        HostileTestArchive::new().entry(EntryType::Symlink, b"d", b"").file("d/passwd", b"x");
    assert!(through_link.unpack().unwrap_err().contains("d is a link"));
    let both =
        HostileTestArchive::new().file("d", b"x").file("d/passwd", b"x").unpack().unwrap_err();
    assert!(both.contains("a file and a folder"), "{both}");
    let both =
        HostileTestArchive::new().file("d/passwd", b"x").file("d", b"x").unpack().unwrap_err();
    assert!(both.contains("a file and a folder"), "{both}");
    let twice =
        HostileTestArchive::new().file("a", b"good").file("a", b"evil").unpack().unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
    let twice =
        HostileTestArchive::new().file("a", b"good").file("./a", b"evil").unpack().unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
}

#[test]
fn an_archive_over_the_limits_is_refused() {
    let zeros = vec![0; 49 << 20];
    let error = HostileTestArchive::new().file("big", &zeros).unpack().unwrap_err();
    assert!(error.contains("48 MiB"), "{error}");
    let half = &zeros[..25 << 20];
    let error = HostileTestArchive::new().file("a", half).file("b", half).unpack().unwrap_err();
    assert!(error.contains("48 MiB"), "{error}");
    // Bytes outside of files count as well: in folders and in long headers.
    let error = HostileTestArchive::new()
        .entry(EntryType::Directory, b"d/", half)
        .entry(EntryType::Directory, b"e/", half)
        .entry(EntryType::Directory, b"f/", half)
        .file("a", b"x")
        .unpack()
        .unwrap_err();
    assert!(error.contains("48 MiB") || error.contains("cannot unpack it"), "{error}");
    let result =
        HostileTestArchive::new().entry(EntryType::XHeader, b"x", &vec![b'9'; 64 << 20]).unpack();
    assert!(result.is_err());
    let many = (0..=MAX_FILES)
        .fold(HostileTestArchive::new(), |archive, n| archive.file(&format!("f{n}"), b""));
    assert!(many.unpack().unwrap_err().contains("4000 files"));
    // A header with a size that exceeds the archive.
    let mut cut = HostileTestArchive::new().file("a", &[7; 4_096]).0;
    cut.truncate(1_024);
    assert!(PluginContents::unpack_gzip(gzip(&cut).as_slice()).is_err());
    for broken in [&b""[..], b"PK\x03\x04", &gzip(b"not an archive at all, but long enough?")] {
        let result = PluginContents::unpack_gzip(broken);
        assert!(result.is_err() || result.is_ok_and(|contents| contents.files.is_empty()));
    }
}

#[cfg(unix)]
#[test]
fn a_folder_is_read_with_links_that_stay_inside_and_without_git() {
    use std::os::unix::fs::symlink;
    let env = tempfile::tempdir().unwrap();
    let top = env.path().join("p");
    std::fs::create_dir_all(top.join(".git")).unwrap();
    std::fs::create_dir_all(top.join("lib")).unwrap();
    std::fs::write(top.join(".git/config"), "x").unwrap();
    std::fs::write(top.join("lib/a"), "a").unwrap();
    std::fs::write(env.path().join("secret"), "s").unwrap();
    symlink("lib/a", top.join("b")).unwrap();
    let contents = PluginContents::from_folder(&top).unwrap();
    assert_eq!(contents.files.keys().collect::<Vec<_>>(), ["b", "lib/a"]);
    assert_eq!(contents.files["b"].bytes, b"a");
    assert!(PluginContents::from_store(&top).is_err(), "links are refused in the store");
    for (target, expected) in
        [("../secret", "points outside"), ("lib", "folder"), ("gone", "broken")]
    {
        symlink(target, top.join("c")).unwrap();
        let error = PluginContents::from_folder(&top).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        std::fs::remove_file(top.join("c")).unwrap();
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, top.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let error = PluginContents::from_folder(&top).unwrap_err().to_string();
        assert!(error.contains("pipe is neither"), "opening a pipe must not block: {error}");
    }
}

#[test]
fn a_changed_byte_name_or_kind_is_another_digest() {
    let with = |name: &str, kind, bytes: &[u8]| {
        let mut contents = PluginContents::default();
        contents.add(name, kind, bytes.to_vec()).unwrap();
        contents.digest()
    };
    let all = [
        with("a", ToolFileKind::Plain, b"x"),
        with("a", ToolFileKind::Plain, b"y"),
        with("a", ToolFileKind::Executable, b"x"),
        with("b", ToolFileKind::Plain, b"x"),
        with("a", ToolFileKind::Plain, b"x\0"),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

proptest! {
    #[test]
    fn unpacked_paths_stay_beneath_their_folder(bytes in any::<Vec<u8>>(), name in "\\PC{1,60}") {
        let _ = PluginContents::unpack_gzip(bytes.as_slice());
        let _ = PluginContents::unpack_gzip(gzip(&bytes).as_slice());
        let name: String = name.chars().take(20).collect();
        if let Ok(contents) = HostileTestArchive::new().file(&name, &bytes).unpack() {
            for name in contents.files.keys() {
                let path = std::path::Path::new(name);
                let inside = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(path.components().all(inside), "{name}");
            }
        }
    }
}
