//! Import of the configs of other programs, including hostile ones.
#![allow(clippy::disallowed_methods, reason = "the tests set up files directly")]

use super::*;
use crate::claude_permission_rules::{ClaudeRuleLevel, convert_rule};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

struct MockImportChecks;

impl ImportChecks for MockImportChecks {
    fn check_rules(&self, rules: &Value) -> Option<String> {
        let invalid = |level: &Value| !["allow", "ask", "deny"].iter().any(|it| level == it);
        let wrong = match rules {
            Value::Object(map) => map.values().any(|value| match value {
                Value::Object(patterns) => patterns.values().any(invalid),
                level => invalid(level),
            }),
            level => invalid(level),
        };
        wrong.then(|| "a level is `allow`, `ask` or `deny`".to_owned())
    }

    fn translate_rules(
        &self,
        rules: &[OrderedPermissionRule],
        restricting: bool,
    ) -> ConvertedPermissionRules {
        let (dropped, kept): (Vec<_>, Vec<_>) =
            rules.iter().cloned().partition(|rule| restricting && rule.level == "allow");
        let kept = kept.into_iter().map(|rule| (rule.key, rule.pattern, rule.level.into()));
        let reason = "these rules can only restrict".to_owned();
        let dropped = dropped.into_iter().map(|rule| (rule, reason.clone()));
        ConvertedPermissionRules { rules: kept.collect(), dropped: dropped.collect() }
    }

    fn check_matcher(&self, pattern: &str) -> Option<String> {
        pattern.contains("((").then(|| "it is no pattern".to_owned())
    }

    fn has_theme(&self, name: &str) -> bool {
        name == "paper"
    }

    fn check_keys(&self, _command: &str, keys: &str) -> Option<String> {
        keys.contains("hyper").then(|| "no such key".to_owned())
    }

    fn tools_for_claude(&self, name: &str) -> Vec<String> {
        match name {
            "Bash" | "Grep" | "Read" | "WebFetch" => vec![name.to_lowercase()],
            _ => Vec::new(),
        }
    }

    fn canonical_provider(&self, name: &str) -> Option<&'static str> {
        (name == "anthropic").then_some("anthropic")
    }
}

/// A home and a project in a temporary folder.
struct ImportTestEnv {
    folder: tempfile::TempDir,
    dirs: Dirs,
    root: PathBuf,
}

impl ImportTestEnv {
    fn new(files: &[(&str, &str)]) -> ImportTestEnv {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let home = top.join("home");
        let dirs = Dirs {
            config: home.join(".config/windlass"),
            data: home.join("data"),
            cache: home.join("cache"),
            plugins: home.join("plugins"),
            managed_policy: None,
            tenant_policy: None,
            checkouts: std::collections::BTreeMap::new(),
            home,
        };
        let root = top.join("w");
        for path in [&dirs.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        let env = ImportTestEnv { folder, dirs, root };
        for (name, text) in files {
            env.write(name, text.as_bytes());
        }
        env
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap_or_default()
    }

    fn plan(&self, program: ImportSource, scope: ImportScope) -> ImportPlan {
        self.try_plan(program, scope).unwrap()
    }

    fn try_plan(
        &self,
        program: ImportSource,
        scope: ImportScope,
    ) -> Result<ImportPlan, ProjectError> {
        let (dirs, root) = (&self.dirs, self.root.as_path());
        ImportRequest { program, scope, dirs, root, checks: &MockImportChecks }.plan()
    }

    /// Renders a plan as text.
    fn render(&self, plan: &ImportPlan) -> String {
        let mut text = String::new();
        let entry = |(name, reason): &(String, String)| format!("{name}: {reason}");
        let top = self.at("");
        let copy = |(to, from): &(PathBuf, String)| {
            format!("{} < {from}", to.strip_prefix(&top).unwrap().display())
        };
        let lists = [
            ("set", plan.settings.clone()),
            ("new", plan.copies.iter().map(copy).collect()),
            ("kept", plan.existing.iter().map(entry).collect()),
            ("left", plan.skipped.iter().map(entry).collect()),
        ];
        for (title, lines) in lists {
            for line in lines {
                text.push_str(&format!("{title} {line}\n"));
            }
        }
        text
    }

    fn check(&self, program: ImportSource, scope: ImportScope, expect: Expect) {
        expect.assert_eq(&self.render(&self.plan(program, scope)));
    }
}

const OPENCODE: &str = r#"{
  "$schema": "https://opencode.ai/config.json", // theirs
  "model": "anthropic/claude-sonnet-4-5",
  "theme": "nord",
  "keybinds": {"leader": "ctrl+x"},
  "surprise": 1,
  "lsp": {"pyright": {"disabled": true},
    "mine": {"command": ["my-server", "--stdio"], "extensions": [".my"], "env": {"TOKEN": "hush-lsp"}, "initialization": {"a": 1}}},
  "formatter": {"prettier": {"disabled": true}, "mine": {"command": ["myfmt", "$FILE"], "extensions": [".my"]}},
  "permission": {
    "edit": "ask", "webfetch": "deny", "websearch": "allow",
    "bash": {"*": "ask", "git status *": "allow", "rm *": "deny"},
    "read": {"/etc/*": "deny"}, "odd": 7
  },
  "mcp": {
    "docs": {"type": "remote", "url": "https://docs.example.com/mcp?key=hush-url", "headers": {"Authorization": "Bearer hush-header"}},
    "git": {"type": "local", "command": ["npx", "-y", "git-mcp", "--token", "hush-word"], "environment": {"TZ": "UTC", "API": "{env:API}"}, "timeout": 9000},
    "bad name": {"type": "local", "command": ["x"]},
    "filed": {"type": "remote", "url": "https://a.example", "headers": {"X": "{file:~/.key}"}},
    "nothing": {"enabled": false}
  },
  "provider": {
    "lab": {"npm": "@ai-sdk/openai-compatible", "name": "Lab", "options": {"baseURL": "http://10.0.0.1/v1", "apiKey": "hush-key", "timeout": 1},
            "models": {"big": {"name": "Big", "limit": {"context": 8192, "output": 1024}, "tool_call": true, "options": {}}}},
    "odd": {"npm": "@ai-sdk/azure"},
    "anthropic": {"options": {"apiKey": "{env:ANTHROPIC_API_KEY}"}}
  },
  "agent": {
    "review": {"description": "Reviews", "mode": "subagent", "prompt": "Look.", "tools": {"write": false}, "color": "red"},
    "plan": {"model": "a/b"},
    "../x": {"description": "d"},
    "wrong": {"description": "d", "temperature": 9},
    "filed": {"description": "d", "prompt": "{file:./p.txt}"}
  },
  "command": {"mend": {"template": "Mend $1", "description": "Say \"what\"", "agent": "review", "model": "a/b", "subtask": true, "hue": 1}, "../../evil": {"template": "x"}},
  "instructions": ["docs/*.md", "https://a.example/rules.md", "/etc/passwd", "../up.md"],
}"#;

#[test]
fn opencode_settings_are_imported_and_the_rest_is_reported() {
    let env = ImportTestEnv::new(&[
        ("home/.config/opencode/opencode.jsonc", OPENCODE),
        (
            "home/.config/opencode/agent/team/deep.md",
            "---\ndescription: Deep\ncolor: red\n---\nGo.",
        ),
        ("home/.config/opencode/agent/build.md", "---\ndescription: Mine\n---\nGo."),
        (
            "home/.config/opencode/command/test.md",
            "---\ndescription: T\nagent: build\n---\nTest $1",
        ),
        (
            "home/.config/opencode/skill/knit/SKILL.md",
            "---\nname: knit\ndescription: Knits\n---\nKnit.",
        ),
        ("home/.config/opencode/skill/knit/more/yarn.txt", "wool"),
        ("home/.config/opencode/skill/broken/SKILL.md", "# No head"),
        ("home/.config/opencode/tool/sum.ts", "export default {}"),
        ("home/.config/opencode/plugin/p.ts", "export const P = 1"),
        ("home/.config/opencode/AGENTS.md", "Be kind."),
    ]);
    env.check(ImportSource::OpenCode, ImportScope::User, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set lsp.pyright.enabled: false
        set lsp.mine.command: ["my-server","--stdio"]
        set lsp.mine.initialization: {"a":1}
        set lsp.mine.extensions: {".my":"my"}
        set formatter.prettier.enabled: false
        set formatter.mine: myfmt $FILE
        set permission.edit: ask
        set permission.webfetch: deny
        set permission.bash "*": ask
        set permission.bash "git status *": allow
        set permission.bash "rm *": deny
        set permission.read "/etc/*": deny
        set mcp.docs: at https://docs.example.com/mcp?…, with the header Authorization (not shown)
        set mcp.git: runs npx -y git-mcp --token …, with TZ, API set (not shown)
        set provider.lab: http://10.0.0.1/v1, 1 model, with its API key (not shown)
        set provider.anthropic: default URL, with its API key (not shown)
        set agent.review: Reviews
        set instructions: docs/*.md
        new home/.config/windlass/commands/mend.md < command.mend
        new home/.config/windlass/agents/team-deep.md < ~/.config/opencode/agent/team/deep.md
        new home/.config/windlass/commands/test.md < ~/.config/opencode/command/test.md
        new home/.config/windlass/tools/sum.ts < ~/.config/opencode/tool/sum.ts
        new home/.config/windlass/plugins/p.ts < ~/.config/opencode/plugin/p.ts
        new home/.config/windlass/AGENTS.md < ~/.config/opencode/AGENTS.md
        kept ~/.config/opencode/skill: read in place
        left theme nord: Windlass has no theme of this name; `/theme` lists its own
        left keybinds: leader: Windlass has no such command to bind a key to; `/help` lists its own
        left surprise: Windlass has no such setting
        left lsp.mine.env: values that look like secrets are not copied
        left permission.websearch: covered by `webfetch` rules
        left permission.odd: not `allow`, `ask` or `deny`
        left mcp.filed: `{file:…}` is not supported; use `{env:NAME}` with `windlass mcp add`
        left mcp.nothing: missing command or URL
        left provider.odd: unsupported provider package `@ai-sdk/azure`
        left agent.review: color: Windlass has no such setting
        left agent.plan: model: Windlass has a built-in agent `plan` with its own restrictions, which yours would replace; rename yours
        left agent.../x: invalid name: use up to 64 letters, digits, `-`, `_` and `.`
        left agent.filed: {file:p.txt} does not exist
        left command.../../evil: invalid name: use up to 64 letters, digits, `-`, `_` and `.`
        left instructions "https://a.example/rules.md": instructions are read only from files
        left instructions "/etc/passwd": it must be relative to the project folder, with `/` between names
        left instructions "../up.md": it points outside the project folder
        left ~/.config/opencode/agent/build.md: Windlass has a built-in agent `build` with its own restrictions, which yours would replace; rename yours
        left command.mend: hue: Windlass has no such setting
        left ~/.config/opencode/agent/team/deep.md: color: agents have no colors
        left mcp.bad name: invalid name: use up to 32 letters, digits, `_` and `-`; the server is skipped
        left agent.wrong: this value is greater than the maximum of 2; the agent is skipped
    "#]]);
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    for secret in ["hush-url", "hush-header", "hush-word", "hush-key"] {
        assert!(!format!("{}{:?}", env.render(&plan), plan.notes).contains(secret), "{secret}");
    }
    plan.apply().unwrap();
    let config = env.text("home/.config/windlass/windlass.jsonc");
    for part in ["Bearer hush-header", "hush-key", "{env:API}", "{env:ANTHROPIC_API_KEY}"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert_eq!(
        env.text("home/.config/windlass/agents/team-deep.md"),
        "---\ndescription: Deep\n---\nGo.\n"
    );
    assert_eq!(
        env.text("home/.config/windlass/commands/mend.md"),
        "---\ndescription: \"Say \\\"what\\\"\"\nagent: \"review\"\nmodel: \"a/b\"\nsubtask: true\n---\n\nMend $1\n"
    );
    assert_eq!(env.text("home/.config/windlass/plugins/p.ts"), "export const P = 1");
    assert_eq!(env.text("home/.config/windlass/AGENTS.md"), "Be kind.");
    assert!(!env.at("home/.config/windlass/evil.md").exists() && !env.at("home/evil.md").exists());

    let again = env.plan(ImportSource::OpenCode, ImportScope::User);
    assert!(!again.has_changes(), "a second import must change nothing: {}", env.render(&again));
}

#[test]
fn a_project_import_writes_no_secrets_variables_or_allow_rules() {
    let env = ImportTestEnv::new(&[
        ("w/opencode.json", OPENCODE),
        ("w/.opencode/tools/sum.ts", "export default {}"),
        ("w/.opencode/agents/deep.md", "---\ndescription: Deep\n---\nGo."),
    ]);
    env.check(ImportSource::OpenCode, ImportScope::Project, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set lsp.pyright.enabled: false
        set lsp.mine.command: ["my-server","--stdio"]
        set lsp.mine.initialization: {"a":1}
        set lsp.mine.extensions: {".my":"my"}
        set formatter.prettier.enabled: false
        set formatter.mine: myfmt $FILE
        set permission.edit: ask
        set permission.webfetch: deny
        set permission.bash "*": ask
        set permission.bash "rm *": deny
        set permission.read "/etc/*": deny
        set provider.lab: http://10.0.0.1/v1, 1 model
        set agent.review: Reviews
        set instructions: docs/*.md
        new w/.windlass/commands/mend.md < command.mend
        new w/.windlass/agents/deep.md < .opencode/agents/deep.md
        kept .opencode/tools: read in place once you trust the folder
        left theme nord: colors and keys are read only from your own config
        left keybinds: colors and keys are read only from your own config
        left surprise: Windlass has no such setting
        left lsp.mine.env: values that look like secrets are not copied
        left permission.websearch: covered by `webfetch` rules
        left permission.odd: not `allow`, `ask` or `deny`
        left permission.bash "git status *": these rules can only restrict
        left mcp.docs: Authorization seems to contain a secret, which is never written to a project file; add the server to your own config with `windlass mcp add`
        left mcp.git: a project cannot read environment variables; add the server to your own config with `windlass mcp add`
        left mcp.filed: `{file:…}` is not supported; use `{env:NAME}` with `windlass mcp add`
        left mcp.nothing: missing command or URL
        left provider.lab.options.apiKey: API keys are never written to a project file; save the key with `windlass auth login lab`
        left provider.odd: unsupported provider package `@ai-sdk/azure`
        left provider.anthropic: a project cannot change a built-in provider
        left agent.review: color: Windlass has no such setting
        left agent.plan: model: Windlass has a built-in agent `plan` with its own restrictions, which yours would replace; rename yours
        left agent.../x: invalid name: use up to 64 letters, digits, `-`, `_` and `.`
        left agent.filed: {file:p.txt} does not exist
        left command.../../evil: invalid name: use up to 64 letters, digits, `-`, `_` and `.`
        left instructions "https://a.example/rules.md": instructions are read only from files
        left instructions "/etc/passwd": it must be relative to the project folder, with `/` between names
        left instructions "../up.md": it points outside the project folder
        left command.mend: hue: Windlass has no such setting
        left mcp.bad name: invalid name: use up to 32 letters, digits, `_` and `-`; the server is skipped
        left agent.wrong: this value is greater than the maximum of 2; the agent is skipped
    "#]]);
    env.plan(ImportSource::OpenCode, ImportScope::Project).apply().unwrap();
    let config = env.text("w/windlass.jsonc");
    for secret in ["hush", "{env:", "allow"] {
        assert!(!config.contains(secret), "{secret}: {config}");
    }
    assert!(!env.plan(ImportSource::OpenCode, ImportScope::Project).has_changes());
}

const SETTINGS: &str = r#"{
  "model": "opus",
  "env": {"SECRET": "hush-env"},
  "statusLine": {"type": "command", "command": "x"},
  "permissions": {
    "allow": ["Bash(npm run:*)", "Bash(a && b:*)", "Read(src/**)", "Edit(src/*.ts)", "mcp__git__status", "WebFetch(domain:a.example)"],
    "ask": ["Bash(git push:*)"],
    "deny": ["Read(./.env)", "Read(secrets)", "Bash(npm run:*)", "Read(~/.ssh/**)"],
    "defaultMode": "acceptEdits"
  },
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5}, {"type": "prompt", "prompt": "Is $ARGUMENTS safe?"}]},
                   {"hooks": [{"type": "http", "url": "https://hooks.example/check", "headers": {"X-Team": "a"}},
                              {"type": "http", "url": "https://hooks.example/b", "headers": {"X-Key": "$KEY"}},
                              {"type": "agent", "prompt": "Look."}]},
                   {"matcher": "((", "hooks": [{"type": "command", "command": "./never.sh"}]}],
    "Notification": [{"hooks": [{"type": "command", "command": "beep"}]}],
    "SessionStart": [{"hooks": [{"type": "prompt", "prompt": "Hello?"}]}]
  }
}"#;

#[test]
fn claude_settings_are_imported_and_the_rest_is_reported() {
    let claude_json = r#"{"numStartups": 7, "oauthAccount": {"x": 1}, "projects": {"/p": {"mcpServers": {"a": {}}}},
        "mcpServers": {
            "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "${GIT_TOKEN}"}},
            "web": {"type": "http", "url": "https://web.example/mcp", "headers": {"X-Key": "hush-header"}},
            "old": {"type": "sse", "url": "https://old.example"},
            "elsewhere": {"command": "${HOME}/bin/x"},
            "other": {"command": "x", "env": {"A": "${A:-b}"}}}}"#;
    let agent = "---\nname: reviewer\ndescription: \"Looks: twice\"\ntools: Read, Grep, WebFetch, Bash(git log:*, git diff:*)\nmodel: sonnet\ncolor: blue\n---\n\nLook.\n";
    let env = ImportTestEnv::new(&[
        ("home/.claude.json", claude_json),
        ("home/.claude/settings.json", SETTINGS),
        ("home/.claude/agents/rev.md", agent),
        (
            "home/.claude/commands/front/page.md",
            "---\nallowed-tools: Bash\nargument-hint: FILE\nsubtask: true\nhue: 1\n---\nMake $ARGUMENTS",
        ),
        ("home/.claude/CLAUDE.md", "@more.md\nBe kind."),
    ]);
    env.check(ImportSource::Claude, ImportScope::User, expect![[r#"
        set mcp.git: runs uvx mcp-server-git, with TOKEN set (not shown)
        set mcp.web: at https://web.example/mcp, with the header X-Key (not shown)
        set mcp.old: at https://old.example
        set hooks.PreToolUse: Bash → ./check.sh; Is $ARGUMENTS safe?
        set hooks.PreToolUse: https://hooks.example/check
        set hooks.Notification: beep
        set permission.read "src/*": allow
        set permission.git_status "*": allow
        set permission.webfetch "a.example": allow
        set permission.bash "git push *": ask
        set permission.read ".env": deny
        set permission.read "secrets/*": deny
        set permission.read "*/secrets/*": deny
        set permission.bash "npm run *": deny
        new home/.config/windlass/agents/reviewer.md < ~/.claude/agents/rev.md
        new home/.config/windlass/commands/front-page.md < ~/.claude/commands/front/page.md
        new home/.config/windlass/AGENTS.md < ~/.claude/CLAUDE.md
        left mcpServers.elsewhere: variables are only expanded in `env` and `headers`, not in commands
        left mcpServers.other: `${…:-…}` is not supported; use `{env:NAME}` with `windlass mcp add`
        left ~/.claude.json: per-project servers (1): each belongs to one folder; add it there with `windlass mcp add`
        left ~/.claude.json: your login: logins and keys are not imported; use `windlass auth login anthropic`
        left ~/.claude.json: the rest (2 keys): Claude Code's own state, not used by Windlass
        left model: a model needs its provider and full name, such as `anthropic/claude-sonnet-4-5`
        left env: set variables in your shell, or in the `env` of a server
        left statusLine: custom status lines are not supported
        left permissions.defaultMode: modes differ; see the book's page on security, then set `mode`
        left hooks.PreToolUse: https://hooks.example/b: variables in `headers` are not supported; use a script instead
        left hooks.PreToolUse: Look.: a hook cannot run an agent; use a `prompt` or a script instead
        left hooks.SessionStart: Hello?: a prompt has no effect at session_start
        left allow Bash(a && b:*): a rule can match only one command
        left allow Edit(src/*.ts): `*` also matches `/` here, so it would allow more
        left deny Read(~/.ssh/**): file rules only match paths in the project; they cannot allow paths outside it
        left ~/.claude/agents/rev.md: Bash(git log:*, git diff:*): a tool cannot be allowed in part, and the whole tool would be more; use `permission`
        left ~/.claude/CLAUDE.md: @…: files imported with `@` are not included
        left ~/.claude/agents/rev.md: model sonnet: a model needs its provider and full name; the agent uses your model until you set `model: PROVIDER/MODEL`
        left ~/.claude/agents/rev.md: color: agents have no colors
        left ~/.claude/commands/front/page.md: hue: Windlass has no such setting
        left hooks.PreToolUse: it is no pattern
    "#]]);
    let plan = env.plan(ImportSource::Claude, ImportScope::User);
    assert!(!format!("{plan:?}").contains("hush-env"), "the plan must not contain the value");
    plan.apply().unwrap();
    expect![[r#"
        ---
        description: "Looks: twice"
        mode: subagent
        tools:
          "*": false
          "read": true
          "grep": true
          "webfetch": true
        ---

        Look.
    "#]]
    .assert_eq(&env.text("home/.config/windlass/agents/reviewer.md"));
    let config = env.text("home/.config/windlass/windlass.jsonc");
    assert!(config.contains("{env:GIT_TOKEN}") && config.contains("hush-header"), "{config}");
    assert!(!env.plan(ImportSource::Claude, ImportScope::User).has_changes());
}

#[test]
fn claude_project_files_that_are_read_in_place_are_kept() {
    let env = ImportTestEnv::new(&[
        ("w/.claude/settings.json", SETTINGS),
        (
            "w/.claude/settings.local.json",
            r#"{"model": "claude-sonnet-4-5", "disableAllHooks": true}"#,
        ),
        ("w/.claude/skills/knit/SKILL.md", "---\ndescription: Knits\n---\nKnit."),
        ("w/.mcp.json", "{}"),
        ("w/CLAUDE.md", "Be kind."),
    ]);
    env.check(ImportSource::Claude, ImportScope::Project, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set permission.bash "git push *": ask
        set permission.read ".env": deny
        set permission.read "secrets/*": deny
        set permission.read "*/secrets/*": deny
        set permission.bash "npm run *": deny
        kept .mcp.json: read in place once you trust the folder
        kept .claude/skills: read in place once you trust the folder
        kept CLAUDE.md: read in place if there is no AGENTS.md beside it
        left hooks: all hooks are disabled there (`disableAllHooks`)
        left model: a model needs its provider and full name, such as `anthropic/claude-sonnet-4-5`
        left env: set variables in your shell, or in the `env` of a server
        left statusLine: custom status lines are not supported
        left permissions.defaultMode: modes differ; see the book's page on security, then set `mode`
        left deny Read(~/.ssh/**): file rules only match paths in the project; they cannot allow paths outside it
        left permissions.allow (6 rules): a project's rules can only restrict, so its `allow` rules are dropped
    "#]]);
}

#[test]
fn existing_settings_are_kept_and_not_loosened() {
    let user_config = "{\n  // mine\n  \"model\": \"a/b\",\n  \"permission\": {\"bash\": \"ask\"}, // strict\n  \"mcp\": {\"git\": {\"command\": [\"mine\"]}},\n  \"instructions\": [\"docs/*.md\"]\n}\n";
    let env = ImportTestEnv::new(&[
        (
            "home/.config/opencode/opencode.json",
            r#"{"model": "c/d", "instructions": ["docs/*.md", "rules.md"],
            "permission": {"bash": {"x *": "allow"}, "edit": "allow", "task": "deny"}, "mcp": {"git": {"command": ["theirs"]}}}"#,
        ),
        ("home/.config/opencode/agent/one.md", "---\ndescription: Theirs\n---\n"),
        ("home/.config/windlass/agents/one.md", "mine"),
        ("home/.config/windlass/windlass.jsonc", user_config),
    ]);
    env.check(
        ImportSource::OpenCode,
        ImportScope::User,
        expect![[r#"
        set instructions: rules.md
        set permission.task: deny
        kept agents/one.md: 
        kept model: 
        kept instructions: 
        kept permission.bash "x *": 
        kept permission.edit: your own rules are not loosened; add it manually if you want it
        kept mcp.git: 
    "#]],
    );
    env.plan(ImportSource::OpenCode, ImportScope::User).apply().unwrap();
    let config = env.text("home/.config/windlass/windlass.jsonc");
    for part in ["// mine", "// strict", "\"bash\": \"ask\"", "[\"mine\"]", "a/b"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert_eq!(env.text("home/.config/windlass/agents/one.md"), "mine");
}

#[test]
fn converted_claude_rules_allow_no_more_than_before() {
    let mut table = String::new();
    let texts = "Bash;Bash(*);Bash(ls);Bash(git log:*);Bash(npm*);Bash(a | b);Bash(rm ?);Bash(open;Read;\
                 Read(**);Read(src/**);Read(./.env);Read(.env);Read(**/*.pem);Read(secrets/);\
                 Read(a/**/b.txt);Edit(src/*.ts);Write(/docs/**);Edit(//etc/x);Edit(~/x);Edit(../x);Grep;\
                 mcp__git;mcp__git__log;mcp__a b;WebFetch;Skill(x);Agent(review);Odd(x);";
    for text in texts.split(';') {
        let convert = |level, is_project| match convert_rule(text, level, is_project) {
            Ok(rules) => {
                let rules = rules.iter().map(|(key, pattern)| format!("{key} {pattern}"));
                rules.collect::<Vec<_>>().join(" + ")
            }
            Err(_) => "–".to_owned(),
        };
        let (allow, deny) =
            (convert(ClaudeRuleLevel::Allow, false), convert(ClaudeRuleLevel::Deny, true));
        table.push_str(&format!("{text} | {allow} | {deny}\n"));
    }
    expect![[r#"
        Bash | bash * | bash *
        Bash(*) | bash * | bash *
        Bash(ls) | bash ls | bash ls
        Bash(git log:*) | bash git log * | bash git log *
        Bash(npm*) | bash npm* | bash npm*
        Bash(a | b) | – | –
        Bash(rm ?) | – | bash rm ?
        Bash(open | – | –
        Read | read * | read *
        Read(**) | read * | read *
        Read(src/**) | read src/* | read src/*
        Read(./.env) | read .env | read .env
        Read(.env) | read .env | read .env + read */.env
        Read(**/*.pem) | – | read *.pem
        Read(secrets/) | read secrets/* | read secrets/* + read */secrets/*
        Read(a/**/b.txt) | – | read a/*/b.txt + read a/b.txt
        Edit(src/*.ts) | – | edit src/*.ts
        Write(/docs/**) | – | edit docs/*
        Edit(//etc/x) | – | –
        Edit(~/x) | – | –
        Edit(../x) | – | –
        Grep | – | grep *
        mcp__git | git_* * | git_* *
        mcp__git__log | git_log * | git_log *
        mcp__a b | – | –
        WebFetch | webfetch * | webfetch *
        Skill(x) | skill x | skill x
        Agent(review) | task review | task review
        Odd(x) | – | –
         | – | –
    "#]]
    .assert_eq(&table);
}

#[test]
fn links_pipes_and_large_files_are_reported_and_not_read() {
    let env = ImportTestEnv::new(&[
        ("outside/agent.md", "---\ndescription: Stolen\n---\n"),
        ("outside/settings.json", "{\"model\": \"claude-stolen\"}"),
        ("w/.claude/commands/real.md", "Do it"),
        ("home/kept/commands/linked.md", "Do it"),
    ]);
    symlink(env.at("outside"), env.at("w/.claude/agents")).unwrap();
    symlink(env.at("outside/settings.json"), env.at("w/.claude/settings.json")).unwrap();
    symlink(env.at("outside/agent.md"), env.at("w/.claude/commands/stolen.md")).unwrap();
    symlink(env.at("w"), env.at("w/.claude/commands/loop")).unwrap();
    std::fs::write(env.at("w/.claude/commands/bad.md"), b"\xff\xfe bytes").unwrap();
    let pipe = env.at("w/.claude/commands/pipe.md");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let large = std::fs::File::create(env.at("w/.claude/settings.local.json")).unwrap();
    large.set_len(100 << 20).unwrap();
    let started = Instant::now();
    env.check(
        ImportSource::Claude,
        ImportScope::Project,
        expect![[r#"
        new w/.windlass/commands/real.md < .claude/commands/real.md
        left .claude/settings.local.json: larger than 1 MB
        left .claude/settings.json: symbolic links are not followed
        left .claude/agents: symbolic links are not followed
        left .claude/commands/loop: symbolic links are not followed
        left .claude/commands/stolen.md: symbolic links are not followed
        left .claude/commands/bad.md: not UTF-8 text
        left .claude/commands/pipe.md: not a regular file
    "#]],
    );
    assert!(started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)));

    // The config of the user may be a link to another path in the home.
    std::fs::create_dir_all(env.at("home/.claude")).unwrap();
    symlink(env.at("home/kept/commands"), env.at("home/.claude/commands")).unwrap();
    symlink(env.at("outside"), env.at("home/.claude/agents")).unwrap();
    env.check(
        ImportSource::Claude,
        ImportScope::User,
        expect![[r#"
        new home/.config/windlass/commands/linked.md < ~/.claude/commands/linked.md
        left ~/.claude/agents: it is a symbolic link to a path outside your home folder
    "#]],
    );
}

#[test]
fn invalid_json_and_settings_are_reported() {
    let deep = format!("{{\"mcp\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for (text, expected) in [
        (deep.as_str(), "invalid JSON"),
        ("[1]", "not an object"),
        ("{\"a\": hush-word}", "invalid JSON: line 1"),
        ("{\"mcp\": 7}", "not an object"),
        ("{\"mcp\": {\"a\": 7}}", "not an object"),
        ("{\"mcp\": {\"a\": {\"command\": [7]}}}", "the server is skipped"),
        ("{\"mcp\": {\"a\": {\"command\": \"x y\"}}}", "the server is skipped"),
        ("{\"mcp\": {\"a\": {\"url\": \"ftp://x\"}}}", "must start with https://"),
        ("{\"permission\": [1]}", "not an object"),
        ("{\"permission\": {\"bash\": {\"x\": {\"y\": \"deny\"}}}}", "`allow`, `ask` or `deny`"),
        (
            "{\"agent\": {\"a\": {\"mode\": \"boss\", \"description\": \"d\"}}}",
            "the agent is skipped",
        ),
        ("{\"agent\": {\"a\": {\"prompt\": \"p\"}}}", "missing `description`"),
        (
            "{\"provider\": {\"l\": {\"npm\": \"@ai-sdk/openai\", \"models\": {\"m\": {\"reasoning\": 7}}}}}",
            "provider `l` is disabled",
        ),
    ] {
        let env = ImportTestEnv::new(&[("home/.config/opencode/opencode.json", text)]);
        let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
        let text = env.render(&plan);
        assert!(
            plan.skipped.iter().any(|(_, message)| message.contains(expected)),
            "{expected}: {text}"
        );
        assert!(!plan.has_changes() && !text.contains("hush"), "{text}");
    }
}

#[test]
fn long_lists_are_limited() {
    let started = Instant::now();
    let keys: String = (0..40_000).map(|n| format!("\"odd{n}\": 1, ")).collect();
    let env =
        ImportTestEnv::new(&[("home/.config/opencode/opencode.json", &format!("{{{keys}}}"))]);
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    assert!(!plan.has_changes() && plan.skipped.len() < 1_000, "{}", plan.skipped.len());
    assert_eq!(plan.skipped.last().unwrap().0, "… and 39500 more");

    let invalid = |n| format!("\"s{n}\": {{\"url\": \"ftp://x\"}}, ");
    let invalid: String = (0..40).map(invalid).collect();
    let servers = format!("{{\"mcp\": {{{invalid} \"ok\": {{\"command\": [\"x\"]}}}}}}");
    env.write("home/.config/opencode/opencode.json", servers.as_bytes());
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    assert_eq!((plan.settings, plan.skipped.len()), (vec!["mcp.ok: runs x".to_owned()], 40));
    assert!(started.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(60)));
}

#[test]
fn an_invalid_setting_does_not_affect_the_others() {
    let env = ImportTestEnv::new(&[(
        "home/.config/opencode/opencode.json",
        r#"{"model": "a/b", "mcp": {"bad": {"url": "ftp://x"}, "good": {"command": ["x"]}}, "instructions": ["a.md"]}"#,
    )]);
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    assert_eq!(plan.settings, ["model: a/b", "mcp.good: runs x", "instructions: a.md"]);
    plan.apply().unwrap();
    assert!(!env.text("home/.config/windlass/windlass.jsonc").contains("ftp"));
}

#[test]
fn nothing_is_written_through_links_of_a_project() {
    for link in ["w/windlass.jsonc", "w/.windlass"] {
        let env = ImportTestEnv::new(&[
            ("w/opencode.json", r#"{"instructions": ["a.md"]}"#),
            ("w/.opencode/agent/a.md", "---\ndescription: A\n---\n"),
            ("home/precious.jsonc", "{}"),
            ("home/precious/x", ""),
        ]);
        let target = if link.ends_with("jsonc") { "home/precious.jsonc" } else { "home/precious" };
        symlink(env.at(target), env.at(link)).unwrap();
        let result = env
            .try_plan(ImportSource::OpenCode, ImportScope::Project)
            .and_then(|plan| plan.apply());
        let message = result.unwrap_err().to_string();
        assert!(message.contains("link"), "{message}");
        assert_eq!(env.text("home/precious.jsonc"), "{}");
        assert!(!env.at("home/precious/agents").exists());
    }
}

#[test]
fn a_config_that_changed_during_the_import_is_not_overwritten() {
    let env = ImportTestEnv::new(&[("home/.config/opencode/opencode.json", r#"{"model": "a/b"}"#)]);
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    env.write("home/.config/windlass/windlass.jsonc", b"{\"model\": \"mine/m\"}");
    assert!(plan.apply().unwrap_err().to_string().contains("changed during the import"));
    assert_eq!(env.text("home/.config/windlass/windlass.jsonc"), "{\"model\": \"mine/m\"}");
}

#[cfg(unix)]
#[test]
fn imported_files_are_private_and_programs_stay_executable() {
    use std::os::unix::fs::PermissionsExt;
    let env = ImportTestEnv::new(&[
        ("home/.config/opencode/opencode.json", r#"{"model": "a/b"}"#),
        ("home/.config/opencode/tool/run.sh", "#!/bin/sh\n"),
        ("home/.config/opencode/tool/lib/x.ts", ""),
    ]);
    let tool = env.at("home/.config/opencode/tool/run.sh");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.plan(ImportSource::OpenCode, ImportScope::User).apply().unwrap();
    for (name, mode) in
        [("windlass.jsonc", 0o600), ("tools/run.sh", 0o700), ("tools/lib/x.ts", 0o600)]
    {
        let data = env.at("home/.config/windlass").join(name).metadata().unwrap();
        assert_eq!(data.permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn name_conflicts_are_reported() {
    let agent = "---\ndescription: D\n---\n";
    let env = ImportTestEnv::new(&[
        ("w/.opencode/opencode.json", r#"{"model": "a/b", "mcp": {"x": {"command": ["one"]}}}"#),
        (
            "w/opencode.json",
            r#"{"model": "c/d", "mcp": {"x": {"command": ["two"]}, "taken": {"command": ["t"]}},
            "command": {"same": {"template": "inline"}}}"#,
        ),
        ("w/.opencode/agent/a/b.md", agent),
        ("w/.opencode/agent/a-b.md", agent),
        ("w/.opencode/command/same.md", "file"),
        ("w/.opencode/tool/x.ts", "one"),
        ("w/.opencode/tools/x.ts", "two"),
        ("home/.config/windlass/windlass.jsonc", r#"{"mcp": {"taken": {"command": ["mine"]}}}"#),
    ]);
    env.check(
        ImportSource::OpenCode,
        ImportScope::Project,
        expect![[r#"
            set model: a/b
            set mcp.x: runs one
            new w/.windlass/commands/same.md < command.same
            new w/.windlass/agents/a-b.md < .opencode/agent/a-b.md
            kept .opencode/tool: read in place once you trust the folder
            kept .opencode/tools: read in place once you trust the folder
            left .opencode/agent/a/b.md: another file is imported as agents/a-b.md
            left .opencode/command/same.md: another file is imported as commands/same.md
            left model: another setting of the same name is imported
            left mcp.x: another setting of the same name is imported
            left mcp.taken: your own config already has a server `taken`; the server is skipped
        "#]],
    );
}

/// Values that occur in a config of OpenCode, and others.
fn any_config_value() -> impl Strategy<Value = Value> {
    let words = "allow|ask|deny|*|a/b|../x|{env:X}|{file:x}|${X}|https://a.example|local|remote|subagent|\
                 @ai-sdk/openai|é\u{202e}\n||true|sk-hush-hush-hush";
    let words: Vec<&str> = words.split('|').collect();
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        proptest::sample::select(words).prop_map(Value::from),
    ];
    let keys = "model|permission|mcp|agent|command|provider|instructions|tools|bash|edit|read|url|headers|\
                environment|type|description|prompt|template|options|models|npm|baseURL|apiKey|mode|../x|\
                a b|plan|timeout|oauth|enabled|temperature|limit|disable";
    let keys: Vec<&str> = keys.split('|').collect();
    let key = proptest::sample::select(keys).prop_map(str::to_owned);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_import_is_valid_and_idempotent(
        parts in proptest::collection::vec(any_config_value(), 8),
        project in any::<bool>(),
    ) {
        let keys =
            ["model", "permission", "mcp", "agent", "command", "provider", "instructions", "tools"];
        let keyed = keys.iter().map(|key| (*key).to_owned()).zip(parts);
        let text = Value::Object(keyed.collect()).to_string();
        let (name, scope) = match project {
            true => ("w/opencode.json", ImportScope::Project),
            false => ("home/.config/opencode/opencode.json", ImportScope::User),
        };
        let env = ImportTestEnv::new(&[(name, &text)]);
        let plan = env.plan(ImportSource::OpenCode, scope);
        prop_assert!(!env.render(&plan).contains("sk-hush"), "{}", env.render(&plan));
        plan.apply().unwrap();
        let config = std::fs::read_to_string(&plan.config_path).unwrap_or_else(|_| "{}".into());
        let (dirs, root) = (&env.dirs, env.root.as_path());
        let (program, checks) = (ImportSource::OpenCode, &MockImportChecks);
        let import = ImportRequest { program, scope, dirs, root, checks };
        prop_assert_eq!(import.config_problems(&config), Vec::<String>::new(), "{}", config);
        let again = env.plan(ImportSource::OpenCode, scope);
        prop_assert!(!again.has_changes(), "{}", env.render(&again));
        if project {
            let read = file_parser::parse_config_object(&config).unwrap();
            let parts = [&read["mcp"], &read["provider"]].map(Value::to_string).concat();
            prop_assert!(!parts.contains("hush") && !parts.contains("{env:"), "{}", config);
        }
        let inside = |path: &PathBuf| path.starts_with(&plan.base) && !path.to_string_lossy().contains("..");
        prop_assert!(plan.copies.iter().all(|(path, _)| inside(path)));
    }
}

#[test]
fn values_that_look_like_secrets_are_masked() {
    for (line, shown) in [
        ("npx -y @modelcontextprotocol/server-github", None),
        ("uvx mcp-server-git==2026.10.19 --repository /a/b", None),
        ("x --api-key abc --verbose", Some("x --api-key … --verbose")),
        ("x --api-key=abc", Some("x --api-key=…")),
        ("x TOKEN=abc", Some("x TOKEN=…")),
        ("x TOKEN={env:TOKEN}", None),
        ("curl -H \"Bearer sk-ant-0123456789", Some("curl -H \"Bearer …")),
        ("x ghp_0123456789", Some("x …")),
        ("x 0123456789abcdef0123456789abcdef", Some("x …")),
    ] {
        assert_eq!(secret_detection::mask_line(line), shown.unwrap_or(line));
        let once = secret_detection::mask_line(line);
        assert_eq!(secret_detection::mask_line(&once), once, "masking must be idempotent");
    }
    for (url, shown) in [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://a.example", "https://a.example"),
        ("https://me:word@a.example/x", "https://…@a.example/x"),
        ("https://a.example/x?key=1#y", "https://a.example/x?…"),
        ("https://a.example/0123456789abcdef0123456789/sse", "https://a.example/…/sse"),
        ("nonsense", "…"),
    ] {
        assert_eq!(secret_detection::mask_url(url), shown);
    }
    for (name, value, secret) in [
        ("Authorization", "Bearer {env:X}", false),
        ("Authorization", "{env:X}", false),
        ("Authorization", "{env:X} and more}", true),
        ("X-Api-Key", "1", true),
        ("TZ", "UTC", false),
        ("NODE_ENV", "production", false),
        ("ANY", "AKIA0123456789", true),
    ] {
        assert_eq!(secret_detection::is_secret(name, value), secret, "{name}: {value}");
    }
}

#[test]
fn the_small_model_and_primary_tools_of_opencode_are_imported() {
    let config = r#"{"model": "a/b", "small_model": "a/c",
        "experimental": {"primary_tools": ["todowrite", "github_*"], "batch_tool": true}}"#;
    let env = ImportTestEnv::new(&[("home/.config/opencode/opencode.json", config)]);
    env.check(
        ImportSource::OpenCode,
        ImportScope::User,
        expect![[r#"
            set model: a/b
            set small_model: a/c
            set subagents.exclude_tools: todowrite, github_*
            left experimental: batch_tool: Windlass has no such setting
        "#]],
    );
}

#[test]
fn rules_without_an_equivalent_become_stricter_and_a_note_says_so() {
    let rules = r#"{"permission": {
        "grep": {"*": "allow", "password*": "deny"},
        "webfetch": {"https://docs.rs/*": "allow", "https://a.example/private/*": "deny", "*evil*": "ask"},
        "read": {"~/notes/*": "deny", "~/x": "allow", "./src/*": "ask"},
        "write": "deny", "list": "deny", "websearch": "ask", "todowrite": "allow"
    }}"#;
    let env = ImportTestEnv::new(&[("home/.config/opencode/opencode.json", rules)]);
    let plan = env.plan(ImportSource::OpenCode, ImportScope::User);
    expect![[r#"
        set permission.grep: deny
        set permission.webfetch "docs.rs": allow
        set permission.webfetch "a.example": deny
        set permission.webfetch "*": ask
        set permission.external_directory "~/notes/*": deny
        set permission.read "src/*": ask
        set permission.write: deny
        set permission.websearch: ask
        left permission.grep: covered by `read` rules
        left permission.read "~/x": paths outside the project are opened by `external_directory` rules
        left permission.list: covered by `read` rules
        left permission.todowrite: allowed without a rule
    "#]]
    .assert_eq(&env.render(&plan));
    let notes = plan.notes.join("\n");
    assert!(notes.contains("permission.grep \"password*\" has no equivalent"), "{notes}");
    assert!(notes.contains("so `ask` applies to all of `webfetch`"), "{notes}");
}

#[test]
fn scripts_of_hooks_are_copied_and_their_paths_updated() {
    let settings = r#"{"hooks": {"PreToolUse": [{"hooks": [
        {"type": "command", "command": "python3 $HOME/.claude/hooks/a.py && ~/.claude/run.sh '/w'"},
        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/p.sh"},
        {"type": "command", "command": "cat ~/.claude/../.ssh/id"},
        {"type": "command", "command": "cat ~/.claude/.credentials.json"},
        {"type": "command", "command": "~/.claude/hooks/none.sh"}
    ]}]}}"#;
    let env = ImportTestEnv::new(&[
        ("home/.claude/settings.json", settings),
        ("home/.claude/hooks/a.py", "import b"),
        ("home/.claude/hooks/b.py", ""),
        ("home/.claude/hooks/__pycache__/b.pyc", ""),
        ("home/.claude/hooks/.env", "KEY=1"),
        ("home/.claude/.credentials.json", "{}"),
        ("home/.claude/run.sh", ""),
    ]);
    let plan = env.plan(ImportSource::Claude, ImportScope::User);
    expect![[r#"
        set hooks.PreToolUse: python3 $HOME/windlass-hooks/a.py && ~/windlass-hooks/run.sh '/w'; "$CLAUDE_PROJECT_DIR"/.claude/hooks/p.sh; cat ~/.claude/../.ssh/id
        new home/windlass-hooks/a.py < ~/.claude/hooks/a.py
        new home/windlass-hooks/b.py < ~/.claude/hooks/b.py
        new home/windlass-hooks/run.sh < ~/.claude/run.sh
        left hooks.PreToolUse: cat ~/.claude/.credentials.json: it uses .claude/.credentials.json, which hooks cannot read, and a hook that fails denies every call
        left hooks.PreToolUse: ~/.claude/hooks/none.sh: its script .claude/hooks/none.sh does not exist, and a hook that fails denies every call
    "#]].assert_eq(&env.render(&plan));
}

#[test]
fn logs_and_secrets_beside_hooks_are_not_copied() {
    let settings = r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": "jq -r .tool_input.command >> ~/.claude/bash-command-log.txt"},
        {"type": "command", "command": "jq . >>\"$HOME\"/.claude/hooks/a.sh"},
        {"type": "command", "command": "jq . | tee -a ~/.claude/hooks/a.sh"},
        {"type": "command", "command": "grep x ~/.claude/history.jsonl"},
        {"type": "command", "command": "cat ~/.claude/settings.json.bak"},
        {"type": "command", "command": "cat ~/.claude/hooks/slack-token.txt"},
        {"type": "command", "command": "~/.claude/hooks/post.sh"},
        {"type": "command", "command": "~/.claude/hooks/a.sh --config ~/.claude/hooks/rules.json 2>/dev/null"}
    ]}]}}"#;
    let env = ImportTestEnv::new(&[
        ("home/.claude/settings.json", settings),
        ("home/.claude/settings.json.bak", "{}"),
        ("home/.claude/bash-command-log.txt", "secret command"),
        ("home/.claude/history.jsonl", "{}"),
        ("home/.claude/hooks/a.sh", "KEY=$1\ncurl -H \"Authorization: $TOKEN\" x"),
        ("home/.claude/hooks/post.sh", "SLACK_TOKEN=hush1234hush"),
        ("home/.claude/hooks/beside.py", "key = 'sk-ant-hush12345'"),
        ("home/.claude/hooks/lib/util.js", "let token = load2(process.env.TOKEN)"),
        ("home/.claude/hooks/rules.json", "{\"deny\": [\"rm\"]}"),
        ("home/.claude/hooks/other.json", "{}"),
        ("home/.claude/hooks/audit.log", "x"),
        ("home/.claude/hooks/slack-token.txt", "hush"),
    ]);
    env.check(
        ImportSource::Claude,
        ImportScope::User,
        expect![[r#"
            set hooks.PreToolUse: Bash → ~/windlass-hooks/a.sh --config ~/windlass-hooks/rules.json 2>/dev/null
            new home/windlass-hooks/a.sh < ~/.claude/hooks/a.sh
            new home/windlass-hooks/lib/util.js < ~/.claude/hooks/lib/util.js
            new home/windlass-hooks/rules.json < ~/.claude/hooks/rules.json
            left hooks.PreToolUse: Bash → jq -r .tool_input.command >> ~/.claude/bash-command-log.txt: it writes to .claude/bash-command-log.txt, hooks cannot write there, and a hook that fails denies every call
            left hooks.PreToolUse: Bash → jq . >>"$HOME"/.claude/hooks/a.sh: it writes to .claude/hooks/a.sh, hooks cannot write there, and a hook that fails denies every call
            left hooks.PreToolUse: Bash → jq . | tee -a ~/.claude/hooks/a.sh: it writes to .claude/hooks/a.sh, hooks cannot write there, and a hook that fails denies every call
            left hooks.PreToolUse: Bash → grep x ~/.claude/history.jsonl: .claude/history.jsonl is not a script, so it is not copied, and a hook that fails denies every call
            left hooks.PreToolUse: Bash → cat ~/.claude/settings.json.bak: .claude/settings.json.bak is not a script, so it is not copied, and a hook that fails denies every call
            left hooks.PreToolUse: Bash → cat ~/.claude/hooks/slack-token.txt: .claude/hooks/slack-token.txt is not copied, and a hook that fails denies every call: it seems to contain a secret
            left hooks.PreToolUse: Bash → ~/.claude/hooks/post.sh: .claude/hooks/post.sh is not copied, and a hook that fails denies every call: it seems to contain a secret
            left ~/.claude/hooks/beside.py: it seems to contain a secret
            left ~/.claude/hooks/post.sh: it seems to contain a secret
        "#]],
    );
}

#[test]
fn allow_rules_of_the_users_own_agents_are_imported() {
    let config = r#"{"agent": {"tester": {"description": "T", "permission": {"bash": {"npm test *": "allow"}}}}}"#;
    let agent = "---\ndescription: D\npermission:\n  edit: allow\n---\nGo.";
    let env = ImportTestEnv::new(&[
        ("home/.config/opencode/opencode.json", config),
        ("home/.config/opencode/agent/deep.md", agent),
        ("w/opencode.json", config),
        ("w/.opencode/agent/deep.md", agent),
    ]);
    for (scope, has_rules) in [(ImportScope::User, true), (ImportScope::Project, false)] {
        env.plan(ImportSource::OpenCode, scope).apply().unwrap();
        let folder = if has_rules { "home/.config/windlass" } else { "w" };
        let config = env.text(&format!("{folder}/windlass.jsonc"));
        assert_eq!(config.contains("allow"), has_rules, "{config}");
        let folder = if has_rules { folder } else { "w/.windlass" };
        let agent = env.text(&format!("{folder}/agents/deep.md"));
        assert!(agent.contains("Go.") && agent.contains("allow") == has_rules, "{agent}");
    }
}
