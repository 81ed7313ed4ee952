//! Plugins are kept as they were looked at, and what they say of themselves decides nothing else.

use super::{Contents, Loaded, Offer, Plugins, Source};
use crate::tools::Kind;
use crate::{Commands, Config, Flags, Layer, Outside, Places, Profiles, Skills, Way};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};

struct Yard {
    folder: tempfile::TempDir,
    places: Places,
}

impl Yard {
    fn new() -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let places = Places {
            home: top.clone(),
            config: top.join("config"),
            data: top.join("data"),
            cache: top.join("cache"),
            plugins: top.join("plugins"),
            managed: None,
        };
        Yard { folder, places }
    }

    fn offer(&self, files: &[(&str, &str)]) -> Result<Offer, String> {
        let plugins = Plugins::read(&self.places).unwrap();
        plugins.survey(contents(files)).map_err(|error| error.to_string())
    }

    fn add(&self, files: &[(&str, &str)]) -> Loaded {
        let offer = self.offer(files).unwrap();
        let source = Source::Folder(PathBuf::from("/from"));
        Plugins::read(&self.places).unwrap().add(&offer, source).unwrap();
        let (loaded, wrong) = Plugins::read(&self.places).unwrap().load();
        assert!(wrong.is_empty(), "{wrong:?}");
        loaded.into_iter().find(|it| it.manifest.name == offer.manifest.name).unwrap()
    }

    fn config(&self) -> Config {
        let root = self.folder.path().join("project");
        std::fs::create_dir_all(&root).unwrap();
        Config::load(&self.places, &root, Flags::default(), &Street).unwrap()
    }
}

struct Street;

impl Outside for Street {
    fn env(&self, name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "hush".to_owned())
    }

    fn knows(&self, _: &str) -> Option<&'static str> {
        None
    }
}

/// Files; one whose name ends in `*` is a program.
fn contents(files: &[(&str, &str)]) -> Contents {
    let mut contents = Contents::default();
    for (name, text) in files {
        let kind = if name.ends_with('*') { Kind::Program } else { Kind::Plain };
        contents.add(name.trim_end_matches('*'), kind, text.as_bytes().to_vec()).unwrap();
    }
    contents
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies up.\n---\nDo it in ${PLUGIN_ROOT}.";
const AGENT: &str = "---\ndescription: Reviews.\nmode: subagent\n---\nYou review.";

fn whole() -> Vec<(&'static str, &'static str)> {
    vec![
        (
            "plugin.json",
            r#"{"name": "kit", "version": "1.0", "description": "All of it.", "extensions": {"dev.windlass":
              {"servers": {"db": {"write": true, "network": ["db.example.com"]}}, "tools": {"network": ["t.example"]}}}}"#,
        ),
        ("skills/tidy/SKILL.md", SKILL),
        ("skills/tidy/extra.md", "more"),
        ("dev.windlass/commands/look.md", "Look at ${PLUGIN_ROOT}: $ARGUMENTS"),
        ("dev.windlass/agents/eye.md", AGENT),
        (
            "mcp.json",
            r#"{"mcpServers": {"db": {"type": "stdio", "command": "./bin/db", "args": ["${PLUGIN_DATA}/x", "${HOME}"],
              "env": {"D": "${PLUGIN_DATA}"}}, "web": {"type": "streamable-http", "url": "https://w.example/mcp",
              "headers": {"X": "${TOKEN}"}}}}"#,
        ),
        ("bin/db*", "#!/bin/sh\n"),
        (
            "dev.windlass/hooks.json",
            r#"{"hooks": {"before_tool": [{"name": "guard", "match": "edit", "command": ["./guard", "${PLUGIN_ROOT}"]}]}}"#,
        ),
        ("dev.windlass/tools/shout*", "#!/bin/sh\n"),
        ("dev.windlass/tools/lib.txt", "x"),
    ]
}

#[test]
fn everything_a_plugin_brings_joins_by_its_name() {
    let yard = Yard::new();
    let loaded = yard.add(&whole());
    let config = yard.config();
    assert!(config.diagnostics.is_empty(), "{:?}", config.diagnostics);
    let (server, origin) = &config.servers["kit-db"];
    assert_eq!(origin.layer, Layer::Plugin);
    let Way::Local { command, env, cwd, write, network, sandbox } = &server.way else { panic!() };
    let data = yard.places.plugins.join("data/kit").display().to_string();
    assert_eq!(command, &["./bin/db".to_owned(), format!("{data}/x"), "${HOME}".to_owned()]);
    assert_eq!(env["D"].expose_secret(), data);
    assert_eq!(cwd.as_deref().unwrap(), loaded.lodging.root.display().to_string());
    assert_eq!(
        (*write, network.as_slice(), *sandbox),
        (true, &["db.example.com".to_owned()][..], true)
    );
    let Way::Remote { headers, .. } = &config.servers["kit-web"].0.way else { panic!() };
    assert_eq!(headers["X"].expose_secret(), "${TOKEN}", "nothing is put into this form's headers");
    assert_eq!(config.hooks[0].name, "kit-guard");
    assert_eq!(config.hooks[0].plugin.as_ref(), Some(&loaded.lodging));
    let skills = Skills::load(&yard.places, &config, Path::new("/w")).unwrap();
    assert!(skills.all[0].name == "tidy" && skills.all[0].folder.starts_with(&loaded.lodging.root));
    assert!(skills.all[0].body.contains("${PLUGIN_ROOT}"), "a skill of this format is as it is");
    let commands = Commands::load(&yard.places, &config).unwrap();
    let root = loaded.lodging.root.display().to_string();
    assert!(commands.find("kit-look").unwrap().template.contains(&root));
    let agents = Profiles::load(&yard.places, &config).unwrap();
    assert_eq!(agents.find("kit-eye").unwrap().prompt, "You review.");
    let tools = crate::ToolFiles::find(&yard.places, &config, Path::new("/w"));
    assert_eq!(tools.all.len(), 1);
    let taken = tools.all[0].take().unwrap();
    assert_eq!(taken.path, loaded.lodging.root.join("dev.windlass/tools/shout"));
    assert!(!tools.all[0].allowed().unwrap().write);
}

#[test]
fn what_is_the_persons_stays_theirs() {
    let yard = Yard::new();
    yard.add(&whole());
    let own = yard.places.config.join("skills/tidy");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("SKILL.md"), SKILL).unwrap();
    for (folder, text) in [("commands", "mine"), ("agents", AGENT)] {
        let folder = yard.places.config.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["kit-look.md", "kit-eye.md"] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    std::fs::write(
        yard.places.config.join("windlass.jsonc"),
        r#"{"mcp": {"kit-db": {"command": ["mine"]}}}"#,
    )
    .unwrap();
    let config = yard.config();
    assert!(config.servers["kit-db"].1.layer == Layer::User);
    let told = config.diagnostics[0].to_string();
    assert!(told.contains("already has a server `kit-db`"), "{told}");
    let skills = Skills::load(&yard.places, &config, Path::new("/w")).unwrap();
    let names: Vec<_> = skills.all.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["kit-tidy", "tidy"]);
    assert!(skills.all[1].folder == own);
    let commands = Commands::load(&yard.places, &config).unwrap();
    assert_eq!(commands.find("kit-look").unwrap().template, "mine");
    assert!(commands.diagnostics[0].message.contains("another command kit-look"));
    let agents = Profiles::load(&yard.places, &config).unwrap();
    assert_eq!(agents.find("kit-eye").unwrap().origin.as_ref().unwrap().layer, Layer::User);
}

/// What is done, and how it is mended.
type Tampering<'a> = (&'a str, &'a dyn Fn(), &'a dyn Fn());

#[test]
fn what_changed_in_the_store_is_left_out_and_said() {
    let yard = Yard::new();
    let loaded = yard.add(&whole());
    let root = loaded.lodging.root.clone();
    loaded.lodging.check().unwrap();
    let read = || Plugins::read(&yard.places).unwrap().load();
    let extra = root.join("dev.windlass/tools/evil");
    let tamper: [Tampering<'_>; 3] = [
        ("a file more", &|| std::fs::write(&extra, "x").unwrap(), &|| {
            std::fs::remove_file(&extra).unwrap();
        }),
        (
            "a file less",
            &|| std::fs::rename(root.join("mcp.json"), yard.places.cache.join("m")).unwrap(),
            &|| std::fs::rename(yard.places.cache.join("m"), root.join("mcp.json")).unwrap(),
        ),
        ("a link", &|| std::os::unix::fs::symlink("/etc/passwd", root.join("l")).unwrap(), &|| {
            std::fs::remove_file(root.join("l")).unwrap()
        }),
    ];
    std::fs::create_dir_all(&yard.places.cache).unwrap();
    for (what, harm, mend) in tamper {
        harm();
        let (plugins, wrong) = read();
        assert!(plugins.is_empty(), "{what}");
        assert!(wrong[0].message.contains("kit is left out"), "{what}: {wrong:?}");
        assert!(wrong[0].message.contains("plugin remove kit"), "{wrong:?}");
        assert!(loaded.lodging.check().is_err(), "{what}");
        mend();
        assert_eq!(read().0.len(), 1, "{what}");
        loaded.lodging.check().unwrap();
    }
    let data = root.join("bin/db");
    std::fs::remove_file(&data).unwrap();
    std::fs::write(&data, "#!/bin/sh\n").unwrap();
    assert!(read().0.is_empty(), "the same bytes, but no longer a program");
}

#[test]
fn another_version_shows_its_difference_and_replaces_the_old() {
    let yard = Yard::new();
    let old = yard.add(&whole());
    let plugins = Plugins::read(&yard.places).unwrap();
    let same = yard.offer(&whole()).unwrap();
    assert!(plugins.change(&same).unwrap().is_none());
    let mut files = whole();
    files[6].1 = "#!/bin/sh\ncurl\n";
    files.retain(|(name, _)| !name.starts_with("dev.windlass/tools"));
    files.push(("dev.windlass/tools/rm*", "x"));
    let offer = yard.offer(&files).unwrap();
    let change = plugins.change(&offer).unwrap();
    assert!(change.more.iter().any(|line| line.starts_with("tool rm:")), "{change:?}");
    assert!(change.less.iter().any(|line| line.starts_with("tool shout:")), "{change:?}");
    assert_eq!(
        change.files,
        [
            "~ bin/db",
            "+ dev.windlass/tools/rm",
            "- dev.windlass/tools/lib.txt",
            "- dev.windlass/tools/shout"
        ]
    );
    let new = yard.add(&files);
    assert!(!old.lodging.root.exists() && new.lodging.root.exists());
    assert_eq!(old.lodging.data, new.lodging.data, "what it keeps is kept");
    std::fs::write(new.lodging.data.join("kept"), "x").unwrap();
    let kept = Plugins::read(&yard.places).unwrap().remove("kit").unwrap().unwrap();
    assert!(kept.join("kept").exists() && !new.lodging.root.exists());
    assert!(Plugins::read(&yard.places).unwrap().all().next().is_none());
    assert_eq!(Plugins::read(&yard.places).unwrap().remove("kit").unwrap(), None);
}

#[test]
fn claudes_plugin_is_read_in_claudes_form() {
    let yard = Yard::new();
    let files = [
        (
            ".claude-plugin/plugin.json",
            r#"{"name": "cl", "version": "2", "commands": ["./more/x.md", "../out.md"], "outputStyles": "./s",
              "mcpServers": {"inline": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "env": {"T": "a-${TOKEN}-${NONE:-b}"}}}}"#,
        ),
        ("commands/hi.md", "---\nallowed-tools: Bash\n---\nSay hi from ${CLAUDE_PLUGIN_ROOT}"),
        ("more/x.md", "X"),
        (
            "agents/rev.md",
            "---\nname: rev\ndescription: R.\ntools: Read, Grep, NotebookEdit\nmodel: sonnet\ncolor: red\n---\nP",
        ),
        ("skills/tidy/SKILL.md", SKILL),
        (
            "hooks/hooks.json",
            r#"{"description": "d", "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/g.sh"}]}],
              "Notification": [{"hooks": []}], "Stop": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}}"#,
        ),
        (
            ".mcp.json",
            r#"{"gh": {"type": "http", "url": "https://gh.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
              "old": {"type": "sse", "url": "https://x.example"}, "envy": {"command": "x", "args": ["${TOKEN}"]},
              "unset": {"command": "x", "env": {"A": "${NOWHERE}"}}}"#,
        ),
    ];
    let offer = yard.offer(&files).unwrap();
    let shown = offer.touches.join("\n");
    assert!(shown.contains("server cl-gh: reaches https://gh.example/mcp; sends the headers Authorization; is given your TOKEN"), "{shown}");
    assert!(shown.contains("runs ${PLUGIN_ROOT}/run"), "{shown}");
    assert!(shown.contains("at before_tool, about Write"), "{shown}");
    let faults = offer.faults.join("\n");
    for expected in
        ["../out.md", "outputStyles", "Notification", "prompt", "`old`", "`envy`", "NotebookEdit"]
    {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    yard.add(&files);
    let config = yard.config();
    assert!(config.diagnostics.iter().any(|it| it.message.contains("NOWHERE is not set")));
    let Way::Local { env, command, .. } = &config.servers["cl-inline"].0.way else { panic!() };
    assert_eq!(env["T"].expose_secret(), "a-hush-b");
    assert!(command[0].starts_with('/') && command[0].ends_with("/run"));
    let Way::Remote { headers, .. } = &config.servers["cl-gh"].0.way else { panic!() };
    assert_eq!(headers["Authorization"].expose_secret(), "Bearer hush");
    assert!(!format!("{:?}", config.shown()).contains("hush"));
    let agents = Profiles::load(&yard.places, &config).unwrap();
    let rev = agents.find("cl-rev").unwrap();
    let tools = [("*", false), ("read", true), ("grep", true)];
    assert_eq!(rev.tools, tools.map(|(name, has)| (name.to_owned(), has)));
    assert_eq!(rev.model, None);
    let commands = Commands::load(&yard.places, &config).unwrap();
    assert!(commands.find("cl-x").is_some());
    assert!(commands.find("cl-hi").unwrap().template.contains("/store/cl-"));
}

#[test]
fn a_hostile_manifest_gets_nothing_that_is_not_shown() {
    let yard = Yard::new();
    let with = |manifest: &'static str, mcp: &'static str| {
        yard.offer(&[("plugin.json", manifest), ("mcp.json", mcp)])
    };
    for manifest in [
        r#"{"name": "../../etc"}"#,
        r#"{"name": "a/b"}"#,
        r#"{"name": ""}"#,
        r#"{}"#,
        "[]",
        "\u{0}",
        r#"{"name": "a", "extensions": {"dev.windlass": {"servers": {"x": {"sandbox": false}}}}}"#,
    ] {
        assert!(with(manifest, "{}").is_err(), "{manifest}");
    }
    for server in [
        r#"{"command": "x", "cwd": "/"}"#,
        r#"{"command": "x", "cwd": "${PLUGIN_ROOT}/../.."}"#,
        r#"{"command": "x", "cwd": "../../other"}"#,
        r#"{"command": ""}"#,
        r#"{"command": "x", "args": "y"}"#,
        r#"{"command": "x", "args": ["a\u0000b"]}"#,
        r#"{"command": "x", "env": {"A": "{env:HOME}"}}"#,
        r#"{"command": "x", "env": {"A=B": "c"}}"#,
        r#"{"url": "http://w.example/mcp"}"#,
        r#"{"url": "http://localhost.evil.example/mcp"}"#,
        r#"{"url": "http://localhost@evil.example/mcp"}"#,
        r#"{"url": "file:///etc/passwd"}"#,
        r#"{"type": "sse", "url": "https://w.example"}"#,
        r#"{"type": "carrier-pigeon", "url": "https://w.example"}"#,
        r#"[]"#,
    ] {
        let mcp: &'static str = format!(r#"{{"mcpServers": {{"s": {server}}}}}"#).leak();
        let offer = with(r#"{"name": "a"}"#, mcp).unwrap();
        assert!(offer.touches.is_empty(), "{server}: {:?}", offer.touches);
        assert_eq!(offer.faults.len(), 1, "{server}: {:?}", offer.faults);
    }
    // What it cannot ask for is not given, whatever it says.
    let offer = with(
        r#"{"name": "a"}"#,
        r#"{"mcpServers": {"s": {"command": "x", "sandbox": false, "write": true, "network": ["*"]},
            "here": {"url": "http://127.0.0.1:9/mcp"}}}"#,
    )
    .unwrap();
    assert_eq!(
        offer.touches,
        [
            "server a-s: runs x; reads the project, reaches what `sandbox.network` names",
            "server a-here: reaches http://127.0.0.1:9/mcp"
        ]
    );
    // Nothing that it says looks like a line of ours.
    let offer = with(
        r#"{"name": "a", "description": "nice\n  1 skill: harmless", "x\ny": 1}"#,
        r#"{"mcpServers": {"s": {"command": "x", "args": ["a b", "\n  1 agent: b", ""]}}}"#,
    )
    .unwrap();
    let said =
        [offer.touches.join("|"), offer.faults.join("|"), offer.manifest.description.unwrap()];
    assert!(said.iter().all(|text| !text.contains('\n')), "{said:?}");
    assert!(said[0].contains(r#"runs x "a b" "\n  1 agent: b" "";"#), "{said:?}");
    // Two names that become one.
    let offer = with(
        r#"{"name": "a"}"#,
        r#"{"mcpServers": {"x.y": {"command": "1"}, "x_y": {"command": "2"}}}"#,
    );
    assert!(offer.unwrap().faults[0].contains("another server"));
    let none = yard.offer(&[("README.md", "x")]).unwrap_err();
    assert!(none.contains("no plugin.json"), "{none}");
}

#[test]
fn a_list_that_somebody_else_wrote_is_refused() {
    let yard = Yard::new();
    yard.add(&whole());
    let list = yard.places.data.join("plugins.json");
    let text = std::fs::read_to_string(&list).unwrap();
    for wrong in
        [text.replace("\"kit\"", "\"../kit\""), text.replace("\"digest\": \"", "\"digest\": \"/")]
    {
        std::fs::write(&list, wrong).unwrap();
        assert!(Plugins::read(&yard.places).is_err());
    }
    std::fs::write(&list, &text).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&list, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Plugins::read(&yard.places).is_err(), "others could have written it");
}
