//! What becomes of other programs' files, and what hostile ones achieve: nothing.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::rules::{Level, rule};
use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

struct Street;

impl Sense for Street {
    fn rules(&self, rules: &Value) -> Option<String> {
        let bad = |level: &Value| !["allow", "ask", "deny"].iter().any(|it| level == it);
        let wrong = match rules {
            Value::Object(map) => map.values().any(|value| match value {
                Value::Object(patterns) => patterns.values().any(bad),
                level => bad(level),
            }),
            level => bad(level),
        };
        wrong.then(|| "a level is `allow`, `ask` or `deny`".to_owned())
    }

    fn matcher(&self, pattern: &str) -> Option<String> {
        pattern.contains("((").then(|| "it is no pattern".to_owned())
    }

    fn provider(&self, name: &str) -> Option<&'static str> {
        (name == "anthropic").then_some("anthropic")
    }
}

/// A home and a project in a temporary folder.
struct Yard {
    folder: tempfile::TempDir,
    places: Places,
    root: PathBuf,
}

impl Yard {
    fn new(files: &[(&str, &str)]) -> Yard {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let home = top.join("home");
        let places = Places {
            config: home.join(".config/windlass"),
            data: home.join("data"),
            cache: home.join("cache"),
            plugins: home.join("plugins"),
            managed: None,
            home,
        };
        let root = top.join("w");
        for path in [&places.config, &root] {
            std::fs::create_dir_all(path).unwrap();
        }
        let yard = Yard { folder, places, root };
        for (name, text) in files {
            yard.write(name, text.as_bytes());
        }
        yard
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

    fn plan(&self, program: Program, side: Side) -> Plan {
        self.try_plan(program, side).unwrap()
    }

    fn try_plan(&self, program: Program, side: Side) -> Result<Plan, Error> {
        let (places, root) = (&self.places, self.root.as_path());
        Import { program, side, places, root, sense: &Street }.plan()
    }

    /// The plan as a person would read it.
    fn told(&self, plan: &Plan) -> String {
        let mut told = String::new();
        let why = |(what, why): &(String, String)| format!("{what}: {why}");
        let top = self.at("");
        let copy = |(to, from): &(PathBuf, String)| {
            format!("{} < {from}", to.strip_prefix(&top).unwrap().display())
        };
        let lists = [
            ("set", plan.settings.clone()),
            ("new", plan.copies.iter().map(copy).collect()),
            ("kept", plan.kept.iter().map(why).collect()),
            ("left", plan.left.iter().map(why).collect()),
        ];
        for (title, lines) in lists {
            for line in lines {
                told.push_str(&format!("{title} {line}\n"));
            }
        }
        told
    }

    fn check(&self, program: Program, side: Side, expect: Expect) {
        expect.assert_eq(&self.told(&self.plan(program, side)));
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
  "command": {"mend": {"template": "Mend $1", "description": "Say \"what\"", "agent": "review"}, "../../evil": {"template": "x"}},
  "instructions": ["docs/*.md", "https://a.example/rules.md", "/etc/passwd", "../up.md"],
}"#;

#[test]
fn what_opencode_has_is_carried_over_and_the_rest_is_said() {
    let yard = Yard::new(&[
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
        ("home/.config/opencode/skill/broken/SKILL.md", "no head"),
        ("home/.config/opencode/tool/sum.ts", "export default {}"),
        ("home/.config/opencode/plugin/p.ts", "export const P = 1"),
        ("home/.config/opencode/AGENTS.md", "Be kind."),
    ]);
    yard.check(Program::OpenCode, Side::Own, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set lsp.pyright.enabled: false
        set lsp.mine.command: ["my-server","--stdio"]
        set lsp.mine.initialization: {"a":1}
        set lsp.mine.extensions: {".my":"my"}
        set formatter.prettier.enabled: false
        set permission.edit: ask
        set permission.webfetch: deny
        set permission.bash "*": ask
        set permission.bash "git status *": allow
        set permission.bash "rm *": deny
        set mcp.docs: at https://docs.example.com/mcp?…, with the header Authorization (not shown)
        set mcp.git: runs npx -y git-mcp --token …, with TZ, API set (not shown)
        set provider.lab: http://10.0.0.1/v1, 1 model, with its key (not shown)
        set provider.anthropic: as it is known, with its key (not shown)
        set agent.review: Reviews
        set instructions: docs/*.md
        new home/.config/windlass/commands/mend.md < command.mend
        new home/.config/windlass/agents/team-deep.md < ~/.config/opencode/agent/team/deep.md
        new home/.config/windlass/commands/test.md < ~/.config/opencode/command/test.md
        new home/.config/windlass/skills/knit/SKILL.md < ~/.config/opencode/skill/knit/SKILL.md
        new home/.config/windlass/skills/knit/more/yarn.txt < ~/.config/opencode/skill/knit/more/yarn.txt
        new home/.config/windlass/tools/sum.ts < ~/.config/opencode/tool/sum.ts
        new home/.config/windlass/AGENTS.md < ~/.config/opencode/AGENTS.md
        left theme: Windlass has no themes
        left keybinds: Windlass has no keys to bind
        left surprise: Windlass has no such setting
        left lsp.mine.env: what looks like a secret is not copied
        left formatter.mine: a formatter reads standard input here and writes standard output; the book's page on formatters says how to add it
        left permission.websearch: searching falls under `webfetch` here
        left permission.read "/etc/*": rules for files name paths within a project
        left permission.odd: it is not `allow`, `ask` or `deny`
        left mcp.filed: `{file:…}` is not read; use `{env:NAME}` with `windlass mcp add`
        left mcp.nothing: it has neither a command nor an address
        left provider.lab.options: timeout: Windlass has no such setting
        left provider.lab.models.big: options: Windlass has no such setting
        left provider.odd: what the package `@ai-sdk/azure` speaks is not known
        left agent.review: color: Windlass has no such setting
        left agent.plan: Windlass has an agent `plan` with bounds of its own, which another would take the place of; give yours another name
        left agent.../x: its name may have letters, digits, `-`, `_` and `.` only, 64 at most
        left agent.filed: `{file:…}` is not read; put its text into agents/filed.md
        left command.mend: agent: Windlass has no such setting
        left command.../../evil: its name may have letters, digits, `-`, `_` and `.` only, 64 at most
        left instructions "https://a.example/rules.md": advice is read from files only
        left instructions "/etc/passwd": it has to be relative to the project's folder, with `/` between names
        left instructions "../up.md": it leads out of the project's folder
        left ~/.config/opencode/agent/build.md: Windlass has an agent `build` with bounds of its own, which another would take the place of; give yours another name
        left ~/.config/opencode/agent/team/deep.md: color: Windlass has no such setting
        left ~/.config/opencode/command/test.md: agent: Windlass has no such setting
        left ~/.config/opencode/skill/broken: it has no `description`, which says when to use it
        left ~/.config/opencode/plugin: OpenCode's plugins are not run here
        left mcp.bad name: a name has letters, digits, `_` and `-`, 32 at most; the server is left out
        left agent.wrong: this value is greater than the maximum of 2; the agent is left out
    "#]]);
    let plan = yard.plan(Program::OpenCode, Side::Own);
    for hidden in ["hush-url", "hush-header", "hush-word", "hush-key"] {
        assert!(!format!("{}{:?}", yard.told(&plan), plan.remarks).contains(hidden), "{hidden}");
    }
    plan.carry_out().unwrap();
    let config = yard.text("home/.config/windlass/windlass.jsonc");
    for part in ["Bearer hush-header", "hush-key", "{env:API}", "{env:ANTHROPIC_API_KEY}"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert_eq!(
        yard.text("home/.config/windlass/agents/team-deep.md"),
        "---\ndescription: Deep\n---\nGo.\n"
    );
    assert_eq!(yard.text("home/.config/windlass/skills/knit/more/yarn.txt"), "wool");
    assert_eq!(yard.text("home/.config/windlass/AGENTS.md"), "Be kind.");
    assert!(
        !yard.at("home/.config/windlass/evil.md").exists() && !yard.at("home/evil.md").exists()
    );

    let again = yard.plan(Program::OpenCode, Side::Own);
    assert!(!again.is_new(), "once is enough: {}", yard.told(&again));
}

#[test]
fn a_projects_file_gets_no_secret_no_variable_and_no_leave() {
    let yard = Yard::new(&[
        ("w/opencode.json", OPENCODE),
        ("w/.opencode/tools/sum.ts", "export default {}"),
        ("w/.opencode/agents/deep.md", "---\ndescription: Deep\n---\nGo."),
    ]);
    yard.check(Program::OpenCode, Side::Project, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set lsp.pyright.enabled: false
        set lsp.mine.command: ["my-server","--stdio"]
        set lsp.mine.initialization: {"a":1}
        set lsp.mine.extensions: {".my":"my"}
        set formatter.prettier.enabled: false
        set permission.edit: ask
        set permission.webfetch: deny
        set permission.bash "*": ask
        set permission.bash "rm *": deny
        set provider.lab: http://10.0.0.1/v1, 1 model
        set agent.review: Reviews
        set instructions: docs/*.md
        new w/.windlass/commands/mend.md < command.mend
        new w/.windlass/agents/deep.md < .opencode/agents/deep.md
        new w/.windlass/tools/sum.ts < .opencode/tools/sum.ts
        left theme: Windlass has no themes
        left keybinds: Windlass has no keys to bind
        left surprise: Windlass has no such setting
        left lsp.mine.env: what looks like a secret is not copied
        left formatter.mine: a formatter reads standard input here and writes standard output; the book's page on formatters says how to add it
        left permission.websearch: searching falls under `webfetch` here
        left permission.bash "git status *": a project's rules only tighten, so its `allow` is dropped
        left permission.read "/etc/*": rules for files name paths within a project
        left permission.odd: it is not `allow`, `ask` or `deny`
        left mcp.docs: what stands in Authorization looks like a secret, which goes into no project's file; add it to your own config with `windlass mcp add`
        left mcp.git: a project cannot read the environment; add it to your own config with `windlass mcp add`
        left mcp.filed: `{file:…}` is not read; use `{env:NAME}` with `windlass mcp add`
        left mcp.nothing: it has neither a command nor an address
        left provider.lab.options.apiKey: a key goes into no project's file; keep it with `windlass auth login lab`
        left provider.lab.options: timeout: Windlass has no such setting
        left provider.lab.models.big: options: Windlass has no such setting
        left provider.odd: what the package `@ai-sdk/azure` speaks is not known
        left provider.anthropic: a project cannot change a provider that Windlass knows
        left agent.review: color: Windlass has no such setting
        left agent.plan: Windlass has an agent `plan` with bounds of its own, which another would take the place of; give yours another name
        left agent.../x: its name may have letters, digits, `-`, `_` and `.` only, 64 at most
        left agent.filed: `{file:…}` is not read; put its text into agents/filed.md
        left command.mend: agent: Windlass has no such setting
        left command.../../evil: its name may have letters, digits, `-`, `_` and `.` only, 64 at most
        left instructions "https://a.example/rules.md": advice is read from files only
        left instructions "/etc/passwd": it has to be relative to the project's folder, with `/` between names
        left instructions "../up.md": it leads out of the project's folder
        left mcp.bad name: a name has letters, digits, `_` and `-`, 32 at most; the server is left out
        left agent.wrong: this value is greater than the maximum of 2; the agent is left out
    "#]]);
    yard.plan(Program::OpenCode, Side::Project).carry_out().unwrap();
    let config = yard.text("w/windlass.jsonc");
    for hidden in ["hush", "{env:", "allow"] {
        assert!(!config.contains(hidden), "{hidden}: {config}");
    }
    assert_eq!(yard.text("w/.windlass/tools/sum.ts"), "export default {}");
    assert!(!yard.plan(Program::OpenCode, Side::Project).is_new());
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
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh", "timeout": 5}, {"type": "prompt", "prompt": "?"}]},
                   {"matcher": "((", "hooks": [{"type": "command", "command": "./never.sh"}]}],
    "Notification": [{"hooks": [{"type": "command", "command": "beep"}]}]
  }
}"#;

#[test]
fn what_claude_has_is_carried_over_and_the_rest_is_said() {
    let memory = r#"{"numStartups": 7, "oauthAccount": {"x": 1}, "projects": {"/p": {"mcpServers": {"a": {}}}},
        "mcpServers": {
            "git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "${GIT_TOKEN}"}},
            "web": {"type": "http", "url": "https://web.example/mcp", "headers": {"X-Key": "hush-header"}},
            "old": {"type": "sse", "url": "https://old.example"},
            "elsewhere": {"command": "${HOME}/bin/x"},
            "other": {"command": "x", "env": {"A": "${A:-b}"}}}}"#;
    let agent = "---\nname: reviewer\ndescription: \"Looks: twice\"\ntools: Read, Grep, WebFetch, Bash(git log:*, git diff:*)\nmodel: sonnet\ncolor: blue\n---\n\nLook.\n";
    let yard = Yard::new(&[
        ("home/.claude.json", memory),
        ("home/.claude/settings.json", SETTINGS),
        ("home/.claude/agents/rev.md", agent),
        ("home/.claude/commands/front/page.md", "---\nallowed-tools: Bash\n---\nMake $ARGUMENTS"),
        ("home/.claude/CLAUDE.md", "@more.md\nBe kind."),
    ]);
    yard.check(Program::Claude, Side::Own, expect![[r#"
        set mcp.git: runs uvx mcp-server-git, with TOKEN set (not shown)
        set mcp.web: at https://web.example/mcp, with the header X-Key (not shown)
        set hooks.PreToolUse: Bash → ./check.sh
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
        left mcpServers.old: servers of the kind `sse` are no longer spoken to
        left mcpServers.elsewhere: variables are put into `env` and `headers` only, not into commands
        left mcpServers.other: `${…:-…}` has no form here; use `{env:NAME}` with `windlass mcp add`
        left ~/.claude.json: servers of single projects (1): they belong to one folder each; add them there with `windlass mcp add`
        left ~/.claude.json: your login: logins and keys are not carried over; use `windlass auth login anthropic`
        left ~/.claude.json: the rest (2 keys): Claude Code's own memory, of no use here
        left model: a model has its provider and whole name here, such as `anthropic/claude-sonnet-4-5`
        left env: variables belong to whoever is started; set them in your shell, or in `env` of a server
        left statusLine: Windlass has no such line
        left permissions.defaultMode: modes differ here; look at the book's page on security, then set `mode`
        left hooks.PreToolUse: prompt: only hooks that are commands are run
        left hooks.Notification: hooks are not asked at this point here
        left allow Bash(a && b:*): a rule is for one command at a time here
        left allow Edit(src/*.ts): `*` also means `/` here, so it would allow more
        left deny Read(~/.ssh/**): rules for files name paths within a project; what lies outside is not opened by them
        left ~/.claude/agents/rev.md: model sonnet: a model has its provider and whole name here; it works with yours until you set `model: PROVIDER/MODEL`
        left ~/.claude/agents/rev.md: Bash(git log:*, git diff:*): a part of a tool cannot be given, and the whole would be more; use `permission`
        left ~/.claude/agents/rev.md: color: Windlass has no such setting
        left ~/.claude/commands/front/page.md: allowed-tools: Windlass has no such setting
        left ~/.claude/CLAUDE.md: @…: files that advice names are not taken in
        left hooks.PreToolUse: it is no pattern
    "#]]);
    let plan = yard.plan(Program::Claude, Side::Own);
    assert!(!format!("{plan:?}").contains("hush-env"), "not even within");
    plan.carry_out().unwrap();
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
    .assert_eq(&yard.text("home/.config/windlass/agents/reviewer.md"));
    let config = yard.text("home/.config/windlass/windlass.jsonc");
    assert!(config.contains("{env:GIT_TOKEN}") && config.contains("hush-header"), "{config}");
    assert!(!yard.plan(Program::Claude, Side::Own).is_new());
}

#[test]
fn a_project_of_claude_keeps_what_is_read_where_it_is() {
    let yard = Yard::new(&[
        ("w/.claude/settings.json", SETTINGS),
        (
            "w/.claude/settings.local.json",
            r#"{"model": "claude-sonnet-4-5", "disableAllHooks": true}"#,
        ),
        ("w/.claude/skills/knit/SKILL.md", "---\ndescription: Knits\n---\nKnit."),
        ("w/.mcp.json", "{}"),
        ("w/CLAUDE.md", "Be kind."),
    ]);
    yard.check(Program::Claude, Side::Project, expect![[r#"
        set model: anthropic/claude-sonnet-4-5
        set permission.bash "git push *": ask
        set permission.read ".env": deny
        set permission.read "secrets/*": deny
        set permission.read "*/secrets/*": deny
        set permission.bash "npm run *": deny
        kept .mcp.json: it is read where it is, once you trust the folder
        kept .claude/skills: they are read where they are, once you trust the folder
        kept CLAUDE.md: it is read where it is, if there is no AGENTS.md beside it
        left hooks: they are all switched off there (`disableAllHooks`)
        left model: a model has its provider and whole name here, such as `anthropic/claude-sonnet-4-5`
        left env: variables belong to whoever is started; set them in your shell, or in `env` of a server
        left statusLine: Windlass has no such line
        left permissions.defaultMode: modes differ here; look at the book's page on security, then set `mode`
        left deny Read(~/.ssh/**): rules for files name paths within a project; what lies outside is not opened by them
        left permissions.allow (6 rules): a project's rules only tighten, so what it allows is dropped
    "#]]);
}

#[test]
fn what_is_there_stays_and_is_not_loosened() {
    let own = "{\n  // mine\n  \"model\": \"a/b\",\n  \"permission\": {\"bash\": \"ask\"}, // strict\n  \"mcp\": {\"git\": {\"command\": [\"mine\"]}},\n  \"instructions\": [\"docs/*.md\"]\n}\n";
    let yard = Yard::new(&[
        (
            "home/.config/opencode/opencode.json",
            r#"{"model": "c/d", "instructions": ["docs/*.md", "rules.md"],
            "permission": {"bash": {"x *": "allow"}, "edit": "allow", "task": "deny"}, "mcp": {"git": {"command": ["theirs"]}}}"#,
        ),
        ("home/.config/opencode/agent/one.md", "---\ndescription: Theirs\n---\n"),
        ("home/.config/windlass/agents/one.md", "mine"),
        ("home/.config/windlass/windlass.jsonc", own),
    ]);
    yard.check(
        Program::OpenCode,
        Side::Own,
        expect![[r#"
        set instructions: rules.md
        set permission.task: deny
        kept agents/one.md: 
        kept model: 
        kept instructions: 
        kept permission.bash "x *": 
        kept permission.edit: your own rules are not loosened; add it by hand if you want it
        kept mcp.git: 
    "#]],
    );
    yard.plan(Program::OpenCode, Side::Own).carry_out().unwrap();
    let config = yard.text("home/.config/windlass/windlass.jsonc");
    for part in ["// mine", "// strict", "\"bash\": \"ask\"", "[\"mine\"]", "a/b"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    assert_eq!(yard.text("home/.config/windlass/agents/one.md"), "mine");
}

#[test]
fn claudes_rules_mean_no_more_than_they_did() {
    let mut table = String::new();
    let texts = "Bash;Bash(*);Bash(ls);Bash(git log:*);Bash(npm*);Bash(a | b);Bash(rm ?);Bash(open;Read;\
                 Read(**);Read(src/**);Read(./.env);Read(.env);Read(**/*.pem);Read(secrets/);\
                 Read(a/**/b.txt);Edit(src/*.ts);Write(/docs/**);Edit(//etc/x);Edit(~/x);Edit(../x);Grep;\
                 mcp__git;mcp__git__log;mcp__a b;WebFetch;Skill(x);Agent(review);Odd(x);";
    for text in texts.split(';') {
        let said = |level, side| match rule(text, level, side) {
            Ok(rules) => {
                let rules = rules.iter().map(|(key, pattern)| format!("{key} {pattern}"));
                rules.collect::<Vec<_>>().join(" + ")
            }
            Err(_) => "–".to_owned(),
        };
        let (allow, deny) = (said(Level::Allow, Side::Own), said(Level::Deny, Side::Project));
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
fn links_pipes_and_large_things_are_said_and_not_followed() {
    let yard = Yard::new(&[
        ("outside/agent.md", "---\ndescription: Stolen\n---\n"),
        ("outside/settings.json", "{\"model\": \"claude-stolen\"}"),
        ("w/.claude/commands/real.md", "Do it"),
        ("home/kept/commands/linked.md", "Do it"),
    ]);
    symlink(yard.at("outside"), yard.at("w/.claude/agents")).unwrap();
    symlink(yard.at("outside/settings.json"), yard.at("w/.claude/settings.json")).unwrap();
    symlink(yard.at("outside/agent.md"), yard.at("w/.claude/commands/stolen.md")).unwrap();
    symlink(yard.at("w"), yard.at("w/.claude/commands/loop")).unwrap();
    std::fs::write(yard.at("w/.claude/commands/bad.md"), b"\xff\xfe bytes").unwrap();
    let pipe = yard.at("w/.claude/commands/pipe.md");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let large = std::fs::File::create(yard.at("w/.claude/settings.local.json")).unwrap();
    large.set_len(100 << 20).unwrap();
    let began = Instant::now();
    yard.check(
        Program::Claude,
        Side::Project,
        expect![[r#"
        new w/.windlass/commands/real.md < .claude/commands/real.md
        left .claude/settings.local.json: it is longer than 1 MB
        left .claude/settings.json: it is a link, which is not followed
        left .claude/agents: it is a link, which is not followed
        left .claude/commands/loop: it is a link, which is not followed
        left .claude/commands/stolen.md: it is a link, which is not followed
        left .claude/commands/bad.md: it is not text (UTF-8)
        left .claude/commands/pipe.md: it is not a plain file
    "#]],
    );
    assert!(began.elapsed() < Duration::from_secs(5));

    // A person may keep their own config elsewhere, but within their home.
    std::fs::create_dir_all(yard.at("home/.claude")).unwrap();
    symlink(yard.at("home/kept/commands"), yard.at("home/.claude/commands")).unwrap();
    symlink(yard.at("outside"), yard.at("home/.claude/agents")).unwrap();
    yard.check(
        Program::Claude,
        Side::Own,
        expect![[r#"
        new home/.config/windlass/commands/linked.md < ~/.claude/commands/linked.md
        left ~/.claude/agents: it is a link that leads out of your home folder
    "#]],
    );
}

#[test]
fn json_without_bottom_or_sense_is_said() {
    let deep = format!("{{\"mcp\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for (text, why) in [
        (deep.as_str(), "it is not JSON"),
        ("[1]", "it is not an object"),
        ("{\"a\": hush-word}", "it is not JSON: line 1"),
        ("{\"mcp\": 7}", "it is not an object"),
        ("{\"mcp\": {\"a\": 7}}", "it is not an object"),
        ("{\"mcp\": {\"a\": {\"command\": [7]}}}", "the server is left out"),
        ("{\"mcp\": {\"a\": {\"command\": \"x y\"}}}", "the server is left out"),
        ("{\"mcp\": {\"a\": {\"url\": \"ftp://x\"}}}", "begins with https://"),
        ("{\"permission\": [1]}", "it is not an object"),
        ("{\"permission\": {\"bash\": {\"x\": {\"y\": \"deny\"}}}}", "`allow`, `ask` or `deny`"),
        (
            "{\"agent\": {\"a\": {\"mode\": \"boss\", \"description\": \"d\"}}}",
            "the agent is left out",
        ),
        ("{\"agent\": {\"a\": {\"prompt\": \"p\"}}}", "no `description`"),
        (
            "{\"provider\": {\"l\": {\"npm\": \"@ai-sdk/openai\", \"models\": {\"m\": {\"reasoning\": 7}}}}}",
            "ignored",
        ),
    ] {
        let yard = Yard::new(&[("home/.config/opencode/opencode.json", text)]);
        let plan = yard.plan(Program::OpenCode, Side::Own);
        let told = yard.told(&plan);
        assert!(plan.left.iter().any(|(_, said)| said.contains(why)), "{why}: {told}");
        assert!(!plan.is_new() && !told.contains("hush"), "{told}");
    }
}

#[test]
fn a_list_without_end_has_one() {
    let began = Instant::now();
    let keys: String = (0..40_000).map(|n| format!("\"odd{n}\": 1, ")).collect();
    let yard = Yard::new(&[("home/.config/opencode/opencode.json", &format!("{{{keys}}}"))]);
    let plan = yard.plan(Program::OpenCode, Side::Own);
    assert!(!plan.is_new() && plan.left.len() < 1_000, "{}", plan.left.len());
    assert_eq!(plan.left.last().unwrap().0, "… and 39500 more");

    let bad = |n| format!("\"s{n}\": {{\"url\": \"ftp://x\"}}, ");
    let bad: String = (0..40).map(bad).collect();
    let servers = format!("{{\"mcp\": {{{bad} \"ok\": {{\"command\": [\"x\"]}}}}}}");
    yard.write("home/.config/opencode/opencode.json", servers.as_bytes());
    let plan = yard.plan(Program::OpenCode, Side::Own);
    assert_eq!((plan.settings, plan.left.len()), (vec!["mcp.ok: runs x".to_owned()], 40));
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn one_bad_thing_does_not_cost_the_others() {
    let yard = Yard::new(&[(
        "home/.config/opencode/opencode.json",
        r#"{"model": "a/b", "mcp": {"bad": {"url": "ftp://x"}, "good": {"command": ["x"]}}, "instructions": ["a.md"]}"#,
    )]);
    let plan = yard.plan(Program::OpenCode, Side::Own);
    assert_eq!(plan.settings, ["model: a/b", "mcp.good: runs x", "instructions: a.md"]);
    plan.carry_out().unwrap();
    assert!(!yard.text("home/.config/windlass/windlass.jsonc").contains("ftp"));
}

#[test]
fn nothing_is_written_through_a_projects_links() {
    for link in ["w/windlass.jsonc", "w/.windlass"] {
        let yard = Yard::new(&[
            ("w/opencode.json", r#"{"instructions": ["a.md"]}"#),
            ("w/.opencode/agent/a.md", "---\ndescription: A\n---\n"),
            ("home/precious.jsonc", "{}"),
            ("home/precious/x", ""),
        ]);
        let target = if link.ends_with("jsonc") { "home/precious.jsonc" } else { "home/precious" };
        symlink(yard.at(target), yard.at(link)).unwrap();
        let done =
            yard.try_plan(Program::OpenCode, Side::Project).and_then(|plan| plan.carry_out());
        let said = done.unwrap_err().to_string();
        assert!(said.contains("link"), "{said}");
        assert_eq!(yard.text("home/precious.jsonc"), "{}");
        assert!(!yard.at("home/precious/agents").exists());
    }
}

#[test]
fn a_config_that_changed_meanwhile_is_left_alone() {
    let yard = Yard::new(&[("home/.config/opencode/opencode.json", r#"{"model": "a/b"}"#)]);
    let plan = yard.plan(Program::OpenCode, Side::Own);
    yard.write("home/.config/windlass/windlass.jsonc", b"{\"model\": \"mine/m\"}");
    assert!(plan.carry_out().unwrap_err().to_string().contains("changed just now"));
    assert_eq!(yard.text("home/.config/windlass/windlass.jsonc"), "{\"model\": \"mine/m\"}");
}

#[cfg(unix)]
#[test]
fn what_is_made_is_private_and_what_was_a_program_is_one() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new(&[
        ("home/.config/opencode/opencode.json", r#"{"model": "a/b"}"#),
        ("home/.config/opencode/tool/run.sh", "#!/bin/sh\n"),
        ("home/.config/opencode/tool/lib/x.ts", ""),
    ]);
    let tool = yard.at("home/.config/opencode/tool/run.sh");
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    yard.plan(Program::OpenCode, Side::Own).carry_out().unwrap();
    for (name, mode) in
        [("windlass.jsonc", 0o600), ("tools/run.sh", 0o700), ("tools/lib/x.ts", 0o600)]
    {
        let data = yard.at("home/.config/windlass").join(name).metadata().unwrap();
        assert_eq!(data.permissions().mode() & 0o777, mode, "{name}");
    }
}

#[test]
fn names_that_clash_are_said() {
    let agent = "---\ndescription: D\n---\n";
    let yard = Yard::new(&[
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
    yard.check(
        Program::OpenCode,
        Side::Project,
        expect![[r#"
        set model: a/b
        set mcp.x: runs one
        new w/.windlass/commands/same.md < command.same
        new w/.windlass/agents/a-b.md < .opencode/agent/a-b.md
        new w/.windlass/tools/x.ts < .opencode/tool/x.ts
        left .opencode/agent/a/b.md: there is another agents/a-b.md
        left .opencode/command/same.md: there is another commands/same.md
        left .opencode/tools/x.ts: there is another tools/x.ts
        left model: another setting of the same name was carried over
        left mcp.x: another setting of the same name was carried over
        left mcp.taken: your own config already has a server `taken`; the server is left out
    "#]],
    );
}

/// Values that a config of OpenCode may hold, and others.
fn values() -> impl Strategy<Value = Value> {
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
    fn whatever_is_written_is_understood_and_written_once(
        parts in proptest::collection::vec(values(), 8),
        project in any::<bool>(),
    ) {
        let keys =
            ["model", "permission", "mcp", "agent", "command", "provider", "instructions", "tools"];
        let keyed = keys.iter().map(|key| (*key).to_owned()).zip(parts);
        let text = Value::Object(keyed.collect()).to_string();
        let (name, side) = match project {
            true => ("w/opencode.json", Side::Project),
            false => ("home/.config/opencode/opencode.json", Side::Own),
        };
        let yard = Yard::new(&[(name, &text)]);
        let plan = yard.plan(Program::OpenCode, side);
        prop_assert!(!yard.told(&plan).contains("sk-hush"), "{}", yard.told(&plan));
        plan.carry_out().unwrap();
        let config = std::fs::read_to_string(&plan.file).unwrap_or_else(|_| "{}".into());
        let (places, root) = (&yard.places, yard.root.as_path());
        let import = Import { program: Program::OpenCode, side, places, root, sense: &Street };
        prop_assert_eq!(import.objections(&config), Vec::<String>::new(), "{}", config);
        let again = yard.plan(Program::OpenCode, side);
        prop_assert!(!again.is_new(), "{}", yard.told(&again));
        if project {
            let read = understood(&config).unwrap();
            let parts = [&read["mcp"], &read["provider"]].map(Value::to_string).concat();
            prop_assert!(!parts.contains("hush") && !parts.contains("{env:"), "{}", config);
        }
        let inside = |path: &PathBuf| path.starts_with(&plan.base) && !path.to_string_lossy().contains("..");
        prop_assert!(plan.copies.iter().all(|(path, _)| inside(path)));
    }
}

#[test]
fn what_looks_like_a_secret_is_not_shown() {
    for (words, shown) in [
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
        assert_eq!(secret::masked_line(words), shown.unwrap_or(words));
        let once = secret::masked_line(words);
        assert_eq!(secret::masked_line(&once), once, "what is hidden stays so");
    }
    for (url, shown) in [
        ("https://a.example/mcp", "https://a.example/mcp"),
        ("https://a.example", "https://a.example"),
        ("https://me:word@a.example/x", "https://…@a.example/x"),
        ("https://a.example/x?key=1#y", "https://a.example/x?…"),
        ("https://a.example/0123456789abcdef0123456789/sse", "https://a.example/…/sse"),
        ("nonsense", "…"),
    ] {
        assert_eq!(secret::masked_url(url), shown);
    }
    for (name, value, hidden) in [
        ("Authorization", "Bearer {env:X}", false),
        ("Authorization", "{env:X}", false),
        ("Authorization", "{env:X} and more}", true),
        ("X-Api-Key", "1", true),
        ("TZ", "UTC", false),
        ("NODE_ENV", "production", false),
        ("ANY", "AKIA0123456789", true),
    ] {
        assert_eq!(secret::is_secret(name, value), hidden, "{name}: {value}");
    }
}
