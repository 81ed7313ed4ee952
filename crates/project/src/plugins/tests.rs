//! Plugins: inspection, installation, loading, updates, and tampering with the store.

use super::{InstalledPlugins, LoadedPlugin, PluginCandidate, PluginContents, PluginSource};
use crate::custom_tools::file_role::ToolFileKind;
use crate::{
    AgentConfigs, Config, ConfigEnv, ConfigFlags, ConfigLayer, CustomCommands, Dirs, McpTransport,
    SkillFiles,
};
use secrecy::ExposeSecret;
use std::path::{Path, PathBuf};
use windlass_protocol::{ClaudeToolName, ClaudeToolNames};

struct PluginTestEnv {
    folder: tempfile::TempDir,
    dirs: Dirs,
}

/// Returns the names of two tools in Claude Code.
fn claude_tools() -> ClaudeToolNames {
    let row = |tool: &str, claude_names| ClaudeToolName {
        tool: tool.to_owned(),
        claude_names,
        arguments: &[],
    };
    ClaudeToolNames::new(vec![row("read", &["Read"]), row("grep", &["Grep"])])
}

fn plugins_with_tools(dirs: &Dirs) -> InstalledPlugins {
    InstalledPlugins::read(dirs).unwrap().with_claude_tools(claude_tools())
}

impl PluginTestEnv {
    fn new() -> PluginTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let dirs = Dirs {
            home: top.clone(),
            config: top.join("config"),
            data: top.join("data"),
            cache: top.join("cache"),
            plugins: top.join("plugins"),
            managed_policy: None,
            tenant_policy: None,
            checkouts: std::collections::BTreeMap::new(),
        };
        PluginTestEnv { folder, dirs }
    }

    fn inspect(&self, files: &[(&str, &str)]) -> Result<PluginCandidate, String> {
        plugins_with_tools(&self.dirs).inspect(contents(files)).map_err(|error| error.to_string())
    }

    fn add(&self, files: &[(&str, &str)]) -> LoadedPlugin {
        let candidate = self.inspect(files).unwrap();
        let source = PluginSource::Folder(PathBuf::from("/from"));
        InstalledPlugins::read(&self.dirs).unwrap().add(&candidate, source).unwrap();
        let (loaded, problems) = plugins_with_tools(&self.dirs).load_all();
        assert!(problems.is_empty(), "{problems:?}");
        loaded.into_iter().find(|item| item.manifest.name == candidate.manifest.name).unwrap()
    }

    fn config(&self) -> Config {
        let root = self.folder.path().join("project");
        std::fs::create_dir_all(&root).unwrap();
        Config::load(&self.dirs, &root, ConfigFlags::default(), &FakeTokenConfigEnv).unwrap()
    }
}

struct FakeTokenConfigEnv;

impl ConfigEnv for FakeTokenConfigEnv {
    fn env(&self, name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "hush".to_owned())
    }

    fn canonical_provider(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn claude_tools(&self) -> ClaudeToolNames {
        claude_tools()
    }
}

/// Makes plugin contents; a file whose name ends in `*` is executable.
fn contents(files: &[(&str, &str)]) -> PluginContents {
    let mut contents = PluginContents::default();
    for (name, text) in files {
        let kind = if name.ends_with('*') { ToolFileKind::Executable } else { ToolFileKind::Plain };
        contents.add(name.trim_end_matches('*'), kind, text.as_bytes().to_vec()).unwrap();
    }
    contents
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies up.\n---\nDo it in ${PLUGIN_ROOT}.";
const AGENT: &str = "---\ndescription: Reviews.\nmode: subagent\n---\nYou review.";

fn full_plugin() -> Vec<(&'static str, &'static str)> {
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
fn all_parts_of_a_plugin_are_loaded_under_its_name() {
    let test_env = PluginTestEnv::new();
    let loaded = test_env.add(&full_plugin());
    let config = test_env.config();
    assert!(config.diagnostics.is_empty(), "{:?}", config.diagnostics);
    let (server, origin) = &config.servers["kit-db"];
    assert_eq!(origin.layer, ConfigLayer::Plugin);
    let McpTransport::Stdio { command, env, cwd, write, network, sandbox } = &server.transport
    else {
        panic!()
    };
    let data = test_env.dirs.plugins.join("data/kit").display().to_string();
    assert_eq!(command, &["./bin/db".to_owned(), format!("{data}/x"), "${HOME}".to_owned()]);
    assert_eq!(env["D"].expose_secret(), data);
    assert_eq!(cwd.as_deref().unwrap(), loaded.plugin_dirs.root.display().to_string());
    assert_eq!(
        (*write, network.as_slice(), *sandbox),
        (true, &["db.example.com".to_owned()][..], true)
    );
    let McpTransport::Http { headers, .. } = &config.servers["kit-web"].0.transport else {
        panic!()
    };
    assert_eq!(headers["X"].expose_secret(), "${TOKEN}", "headers of this format are not expanded");
    assert_eq!(config.hooks[0].name, "kit-guard");
    assert_eq!(config.hooks[0].plugin.as_ref(), Some(&loaded.plugin_dirs));
    let skills = SkillFiles::load(&test_env.dirs, &config, Path::new("/w")).unwrap();
    assert!(
        skills.all[0].name == "tidy" && skills.all[0].folder.starts_with(&loaded.plugin_dirs.root)
    );
    assert!(
        skills.all[0].body.contains("${PLUGIN_ROOT}"),
        "a skill of this format is not expanded"
    );
    let commands = CustomCommands::load(&test_env.dirs, &config).unwrap();
    let root = loaded.plugin_dirs.root.display().to_string();
    assert!(commands.find("kit-look").unwrap().template.contains(&root));
    let agents = AgentConfigs::load(&test_env.dirs, &config).unwrap();
    assert_eq!(agents.find("kit-eye").unwrap().prompt, "You review.");
    let tools = crate::ToolFiles::find(&test_env.dirs, &config, Path::new("/w"), &[]);
    assert_eq!(tools.all.len(), 1);
    let tool_copy = tools.all[0].prepare().unwrap();
    assert_eq!(tool_copy.path, loaded.plugin_dirs.root.join("dev.windlass/tools/shout"));
    assert!(!tools.all[0].plugin_access().unwrap().write);
}

#[test]
fn items_of_the_user_take_precedence_over_plugins() {
    let test_env = PluginTestEnv::new();
    test_env.add(&full_plugin());
    let user_skill = test_env.dirs.config.join("skills/tidy");
    std::fs::create_dir_all(&user_skill).unwrap();
    std::fs::write(user_skill.join("SKILL.md"), SKILL).unwrap();
    for (folder, text) in [("commands", "mine"), ("agents", AGENT)] {
        let folder = test_env.dirs.config.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["kit-look.md", "kit-eye.md"] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
    std::fs::write(
        test_env.dirs.config.join("windlass.jsonc"),
        r#"{"mcp": {"kit-db": {"command": ["mine"]}}}"#,
    )
    .unwrap();
    let config = test_env.config();
    assert!(config.servers["kit-db"].1.layer == ConfigLayer::User);
    let message = config.diagnostics[0].to_string();
    assert!(message.contains("already has a server `kit-db`"), "{message}");
    let skills = SkillFiles::load(&test_env.dirs, &config, Path::new("/w")).unwrap();
    let names: Vec<_> = skills.all.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["kit-tidy", "tidy"]);
    assert!(skills.all[1].folder == user_skill);
    let commands = CustomCommands::load(&test_env.dirs, &config).unwrap();
    assert_eq!(commands.find("kit-look").unwrap().template, "mine");
    assert!(commands.diagnostics[0].message.contains("`kit-look` already exists"));
    let agents = AgentConfigs::load(&test_env.dirs, &config).unwrap();
    assert_eq!(agents.find("kit-eye").unwrap().origin.as_ref().unwrap().layer, ConfigLayer::User);
}

/// A name, a change of the store, and the function that reverts it.
type StoreChange<'a> = (&'a str, &'a dyn Fn(), &'a dyn Fn());

#[test]
fn a_plugin_that_changed_in_the_store_is_skipped_and_reported() {
    let test_env = PluginTestEnv::new();
    let loaded = test_env.add(&full_plugin());
    let root = loaded.plugin_dirs.root.clone();
    loaded.plugin_dirs.check_unchanged().unwrap();
    let read = || InstalledPlugins::read(&test_env.dirs).unwrap().load_all();
    let extra = root.join("dev.windlass/tools/evil");
    let changes: [StoreChange<'_>; 3] = [
        ("a file more", &|| std::fs::write(&extra, "x").unwrap(), &|| {
            std::fs::remove_file(&extra).unwrap();
        }),
        (
            "a file less",
            &|| std::fs::rename(root.join("mcp.json"), test_env.dirs.cache.join("m")).unwrap(),
            &|| std::fs::rename(test_env.dirs.cache.join("m"), root.join("mcp.json")).unwrap(),
        ),
        ("a link", &|| std::os::unix::fs::symlink("/etc/passwd", root.join("l")).unwrap(), &|| {
            std::fs::remove_file(root.join("l")).unwrap()
        }),
    ];
    std::fs::create_dir_all(&test_env.dirs.cache).unwrap();
    for (change_name, modify, restore) in changes {
        modify();
        let (plugins, problems) = read();
        assert!(plugins.is_empty(), "{change_name}");
        assert!(problems[0].message.contains("kit is skipped"), "{change_name}: {problems:?}");
        assert!(problems[0].message.contains("plugin remove kit"), "{problems:?}");
        assert!(loaded.plugin_dirs.check_unchanged().is_err(), "{change_name}");
        restore();
        assert_eq!(read().0.len(), 1, "{change_name}");
        loaded.plugin_dirs.check_unchanged().unwrap();
    }
    let data = root.join("bin/db");
    std::fs::remove_file(&data).unwrap();
    std::fs::write(&data, "#!/bin/sh\n").unwrap();
    assert!(read().0.is_empty(), "the same bytes, but no longer executable");
}

#[test]
fn an_update_shows_its_changes_and_replaces_the_old_version() {
    let test_env = PluginTestEnv::new();
    let old = test_env.add(&full_plugin());
    let plugins = InstalledPlugins::read(&test_env.dirs).unwrap();
    let same = test_env.inspect(&full_plugin()).unwrap();
    assert!(plugins.compare_installed(&same).unwrap().is_empty());
    let mut files = full_plugin();
    files[6].1 = "#!/bin/sh\ncurl\n";
    files.retain(|(name, _)| !name.starts_with("dev.windlass/tools"));
    files.push(("dev.windlass/tools/rm*", "x"));
    let candidate = test_env.inspect(&files).unwrap();
    let change = plugins.compare_installed(&candidate).unwrap();
    assert!(change.added_access.iter().any(|line| line.starts_with("tool rm:")), "{change:?}");
    assert!(change.removed_access.iter().any(|line| line.starts_with("tool shout:")), "{change:?}");
    assert_eq!(
        change.files,
        [
            "~ bin/db",
            "+ dev.windlass/tools/rm",
            "- dev.windlass/tools/lib.txt",
            "- dev.windlass/tools/shout"
        ]
    );
    let new = test_env.add(&files);
    assert!(!old.plugin_dirs.root.exists() && new.plugin_dirs.root.exists());
    assert_eq!(old.plugin_dirs.data, new.plugin_dirs.data, "the data folder must stay");
    std::fs::write(new.plugin_dirs.data.join("kept"), "x").unwrap();
    let kept = InstalledPlugins::read(&test_env.dirs).unwrap().remove("kit").unwrap().unwrap();
    assert!(kept.join("kept").exists() && !new.plugin_dirs.root.exists());
    assert!(InstalledPlugins::read(&test_env.dirs).unwrap().all().next().is_none());
    assert_eq!(InstalledPlugins::read(&test_env.dirs).unwrap().remove("kit").unwrap(), None);
}

#[test]
fn a_claude_plugin_is_parsed_in_its_own_format() {
    let test_env = PluginTestEnv::new();
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
              "Elicitation": [{"hooks": []}], "Stop": [{"hooks": [{"type": "agent", "prompt": "x"}]}]}}"#,
        ),
        (
            ".mcp.json",
            r#"{"gh": {"type": "http", "url": "https://gh.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
              "old": {"type": "sse", "url": "https://x.example"}, "envy": {"command": "x", "args": ["${TOKEN}"]},
              "unset": {"command": "x", "env": {"A": "${NOWHERE}"}}}"#,
        ),
    ];
    let candidate = test_env.inspect(&files).unwrap();
    let shown = candidate.access_lines.join("\n");
    assert!(shown.contains("server cl-gh: reaches https://gh.example/mcp; sends the headers Authorization; reads your environment variables TOKEN"), "{shown}");
    assert!(shown.contains("runs ${PLUGIN_ROOT}/run"), "{shown}");
    assert!(shown.contains("at before_tool, about Write"), "{shown}");
    let faults = candidate.faults.join("\n");
    for expected in ["../out.md", "outputStyles", "Elicitation", "agent", "`envy`", "NotebookEdit"]
    {
        assert!(faults.contains(expected), "{expected}: {faults}");
    }
    test_env.add(&files);
    let config = test_env.config();
    assert!(config.diagnostics.iter().any(|item| item.message.contains("NOWHERE is not set")));
    let McpTransport::Stdio { env, command, .. } = &config.servers["cl-inline"].0.transport else {
        panic!()
    };
    assert_eq!(env["T"].expose_secret(), "a-hush-b");
    assert!(command[0].starts_with('/') && command[0].ends_with("/run"));
    let McpTransport::Http { headers, .. } = &config.servers["cl-gh"].0.transport else { panic!() };
    assert_eq!(headers["Authorization"].expose_secret(), "Bearer hush");
    assert!(!format!("{:?}", config.effective_values()).contains("hush"));
    let agents = AgentConfigs::load(&test_env.dirs, &config).unwrap();
    let rev = agents.find("cl-rev").unwrap();
    let tools = [("*", false), ("read", true), ("grep", true)];
    assert_eq!(rev.tools, tools.map(|(name, has)| (name.to_owned(), has)));
    assert_eq!(rev.model, None);
    let commands = CustomCommands::load(&test_env.dirs, &config).unwrap();
    assert!(commands.find("cl-x").is_some());
    assert!(commands.find("cl-hi").unwrap().template.contains("/store/cl-"));
}

#[test]
fn a_hostile_manifest_gets_no_access_that_is_not_shown() {
    let test_env = PluginTestEnv::new();
    let with = |manifest: &'static str, mcp: &'static str| {
        test_env.inspect(&[("plugin.json", manifest), ("mcp.json", mcp)])
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
        r#"{"type": "sse", "url": "http://w.example"}"#,
        r#"{"type": "carrier-pigeon", "url": "https://w.example"}"#,
        r#"[]"#,
    ] {
        let mcp: &'static str = format!(r#"{{"mcpServers": {{"s": {server}}}}}"#).leak();
        let candidate = with(r#"{"name": "a"}"#, mcp).unwrap();
        assert!(candidate.access_lines.is_empty(), "{server}: {:?}", candidate.access_lines);
        assert_eq!(candidate.faults.len(), 1, "{server}: {:?}", candidate.faults);
    }
    // Access that a server entry cannot request is not granted.
    let candidate = with(
        r#"{"name": "a"}"#,
        r#"{"mcpServers": {"s": {"command": "x", "sandbox": false, "write": true, "network": ["*"]},
            "here": {"url": "http://127.0.0.1:9/mcp"}}}"#,
    )
    .unwrap();
    assert_eq!(
        candidate.access_lines,
        [
            "server a-s: runs x; reads the project, reaches the hosts in `sandbox.network`",
            "server a-here: reaches http://127.0.0.1:9/mcp"
        ]
    );
    // Text of the plugin cannot imitate a line of the summary.
    let candidate = with(
        r#"{"name": "a", "description": "nice\n  1 skill: harmless", "x\ny": 1}"#,
        r#"{"mcpServers": {"s": {"command": "x", "args": ["a b", "\n  1 agent: b", ""]}}}"#,
    )
    .unwrap();
    let texts = [
        candidate.access_lines.join("|"),
        candidate.faults.join("|"),
        candidate.manifest.description.unwrap(),
    ];
    assert!(texts.iter().all(|text| !text.contains('\n')), "{texts:?}");
    assert!(texts[0].contains(r#"runs x "a b" "\n  1 agent: b" "";"#), "{texts:?}");
    // Two names that become the same server name.
    let candidate = with(
        r#"{"name": "a"}"#,
        r#"{"mcpServers": {"x.y": {"command": "1"}, "x_y": {"command": "2"}}}"#,
    );
    assert!(candidate.unwrap().faults[0].contains("duplicate server name"));
    let error = test_env.inspect(&[("README.md", "x")]).unwrap_err();
    assert!(error.contains("neither plugin.json"), "{error}");
}

#[test]
fn a_tampered_plugin_list_is_refused() {
    let test_env = PluginTestEnv::new();
    test_env.add(&full_plugin());
    let list = test_env.dirs.data.join("plugins.json");
    let text = std::fs::read_to_string(&list).unwrap();
    for tampered in
        [text.replace("\"kit\"", "\"../kit\""), text.replace("\"digest\": \"", "\"digest\": \"/")]
    {
        std::fs::write(&list, tampered).unwrap();
        assert!(InstalledPlugins::read(&test_env.dirs).is_err());
    }
    std::fs::write(&list, &text).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&list, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(InstalledPlugins::read(&test_env.dirs).is_err(), "the list must be private");
}
