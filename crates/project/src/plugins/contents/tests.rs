//! Hostile archives and folders: nothing leads out, nothing is without end.

use super::{Contents, MOST_FILES};
use crate::tools::Kind;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::{any, prop_assert, proptest};
use std::io::Write;
use tar::{EntryType, Header};

/// An archive that is written by hand, as nobody who means well would.
struct Rogue(Vec<u8>);

impl Rogue {
    fn new() -> Rogue {
        Rogue(Vec::new())
    }

    /// A head whose name is taken as it is, and so many bytes behind it.
    fn entry(mut self, kind: EntryType, name: &[u8], bytes: &[u8]) -> Rogue {
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
        let filled = self.0.len().next_multiple_of(512);
        self.0.resize(filled, 0);
        self
    }

    fn file(self, name: &str, bytes: &[u8]) -> Rogue {
        self.entry(EntryType::Regular, name.as_bytes(), bytes)
    }

    fn packed(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1_024, 0);
        pack(&self.0)
    }

    fn unpacked(self) -> Result<Contents, String> {
        Contents::unpack(self.packed().as_slice())
    }
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn an_archive_of_npm_loses_its_folder_and_an_odd_mode_its_oddness() {
    let contents = Rogue::new()
        .file("package/plugin.json", b"{}")
        .entry(EntryType::Directory, b"package/bin/", b"")
        .file("package/bin/x", b"y")
        .unpacked()
        .unwrap();
    assert_eq!(contents.items.keys().collect::<Vec<_>>(), ["bin/x", "plugin.json"]);
    assert_eq!(contents.items["bin/x"].kind, Kind::Program);
    let flat = Rogue::new().file("./plugin.json", b"{}").file("./a/b", b"").unpacked().unwrap();
    assert!(flat.has("plugin.json") && flat.has("a/b"));
    let place = tempfile::tempdir().unwrap();
    contents.lay_out(&place.path().join("p")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = place.path().join("p/bin/x").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o500, "neither setuid nor writable");
    }
    let again = Contents::of_store(&place.path().join("p")).unwrap();
    assert_eq!(again.digest(), contents.digest());
}

#[test]
fn names_that_lead_out_are_refused() {
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
        let why = Rogue::new().file(name, b"x").unpacked().unwrap_err();
        assert!(
            why.contains("could lead out") || why.contains("cannot be unpacked"),
            "{name}: {why}"
        );
    }
    let deep = "d/".repeat(20) + "x";
    assert!(Rogue::new().file(&deep, b"").unpacked().unwrap_err().contains("too deep"));
    assert!(Rogue::new().entry(EntryType::Directory, b"../d/", b"").unpacked().is_err());
    let latin = Rogue::new().entry(EntryType::Regular, b"a\xff", b"");
    assert!(latin.unpacked().unwrap_err().contains("no text"));
}

#[test]
fn what_is_no_file_is_refused_and_so_is_what_goes_through_it() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::new(b'Z'),
    ] {
        let made = Rogue::new().file("plugin.json", b"{}").entry(kind, b"x", b"");
        assert!(made.unpacked().is_err(), "{kind:?}");
    }
    let through = Rogue::new().entry(EntryType::Symlink, b"d", b"").file("d/passwd", b"x");
    assert!(through.unpacked().unwrap_err().contains("d is a link"));
    let both = Rogue::new().file("d", b"x").file("d/passwd", b"x").unpacked().unwrap_err();
    assert!(both.contains("a file and a folder"), "{both}");
    let both = Rogue::new().file("d/passwd", b"x").file("d", b"x").unpacked().unwrap_err();
    assert!(both.contains("a file and a folder"), "{both}");
    let twice = Rogue::new().file("a", b"good").file("a", b"evil").unpacked().unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
    let twice = Rogue::new().file("a", b"good").file("./a", b"evil").unpacked().unwrap_err();
    assert!(twice.contains("twice"), "{twice}");
}

#[test]
fn an_archive_without_end_is_given_up_on() {
    let zeros = vec![0; 17 << 20];
    let why = Rogue::new().file("big", &zeros).unpacked().unwrap_err();
    assert!(why.contains("16 MiB"), "{why}");
    let half = &zeros[..9 << 20];
    let why = Rogue::new().file("a", half).file("b", half).unpacked().unwrap_err();
    assert!(why.contains("16 MiB"), "{why}");
    // What is in no file counts, too: folders with bytes, and long heads.
    let why = Rogue::new()
        .entry(EntryType::Directory, b"d/", half)
        .entry(EntryType::Directory, b"e/", half)
        .entry(EntryType::Directory, b"f/", half)
        .file("a", b"x")
        .unpacked()
        .unwrap_err();
    assert!(why.contains("16 MiB") || why.contains("cannot be unpacked"), "{why}");
    let why = Rogue::new().entry(EntryType::XHeader, b"x", &vec![b'9'; 24 << 20]).unpacked();
    assert!(why.is_err());
    let many = (0..=MOST_FILES).fold(Rogue::new(), |made, n| made.file(&format!("f{n}"), b""));
    assert!(many.unpacked().unwrap_err().contains("1000 files"));
    // A head that promises more than comes.
    let mut cut = Rogue::new().file("a", &[7; 4_096]).0;
    cut.truncate(1_024);
    assert!(Contents::unpack(pack(&cut).as_slice()).is_err());
    for broken in [&b""[..], b"PK\x03\x04", &pack(b"not an archive at all, but long enough?")] {
        let made = Contents::unpack(broken);
        assert!(made.is_err() || made.is_ok_and(|made| made.items.is_empty()));
    }
}

#[cfg(unix)]
#[test]
fn a_folder_is_read_with_links_that_stay_inside_and_without_git() {
    use std::os::unix::fs::symlink;
    let yard = tempfile::tempdir().unwrap();
    let top = yard.path().join("p");
    std::fs::create_dir_all(top.join(".git")).unwrap();
    std::fs::create_dir_all(top.join("lib")).unwrap();
    std::fs::write(top.join(".git/config"), "x").unwrap();
    std::fs::write(top.join("lib/a"), "a").unwrap();
    std::fs::write(yard.path().join("secret"), "s").unwrap();
    symlink("lib/a", top.join("b")).unwrap();
    let contents = Contents::of_folder(&top).unwrap();
    assert_eq!(contents.items.keys().collect::<Vec<_>>(), ["b", "lib/a"]);
    assert_eq!(contents.items["b"].bytes, b"a");
    assert!(Contents::of_store(&top).is_err(), "in the store no file is a link");
    for (target, why) in [("../secret", "leads out"), ("lib", "folder"), ("gone", "nowhere")] {
        symlink(target, top.join("c")).unwrap();
        let said = Contents::of_folder(&top).unwrap_err().to_string();
        assert!(said.contains(why), "{said}");
        std::fs::remove_file(top.join("c")).unwrap();
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, top.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        let said = Contents::of_folder(&top).unwrap_err().to_string();
        assert!(said.contains("pipe is neither"), "nobody waits for a pipe: {said}");
    }
}

#[test]
fn a_changed_byte_name_or_kind_is_another_digest() {
    let with = |name: &str, kind, bytes: &[u8]| {
        let mut contents = Contents::default();
        contents.add(name, kind, bytes.to_vec()).unwrap();
        contents.digest()
    };
    let all = [
        with("a", Kind::Plain, b"x"),
        with("a", Kind::Plain, b"y"),
        with("a", Kind::Program, b"x"),
        with("b", Kind::Plain, b"x"),
        with("a", Kind::Plain, b"x\0"),
    ];
    let apart: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(apart.len(), all.len());
}

proptest! {
    #[test]
    fn whatever_is_unpacked_stays_beneath_its_folder(bytes in any::<Vec<u8>>(), name in "\\PC{1,60}") {
        let _ = Contents::unpack(bytes.as_slice());
        let _ = Contents::unpack(pack(&bytes).as_slice());
        if let Ok(contents) = Rogue::new().file(&name.chars().take(20).collect::<String>(), &bytes).unpacked() {
            for name in contents.items.keys() {
                let path = std::path::Path::new(name);
                let inside = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(path.components().all(inside), "{name}");
            }
        }
    }
}
