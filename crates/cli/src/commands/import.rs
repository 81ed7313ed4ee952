//! Implements `windlass import`: shows what an import of another program's config would do, and
//! asks for confirmation.

use crate::CliExit;
use crate::args::{ImportArgs, ImportProgramArg};
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use serde_json::Value;
use std::path::Path;
use windlass_llm::catalog;
use windlass_permission::{LastMatchRule, PermissionLevel, PermissionRules, translate_last_match};
use windlass_project::import::{
    ConvertedPermissionRules, ImportChecks, ImportPlan, ImportRequest, ImportScope, ImportSource,
    OrderedPermissionRule,
};
use windlass_tui::keys::KeyMap;
use windlass_tui::theme::Theme;

/// Validates imported settings with the crates that will use them.
struct ImportValidator;

impl ImportChecks for ImportValidator {
    fn check_rules(&self, rules: &Value) -> Option<String> {
        PermissionRules::parse(rules).err().map(|error| error.to_string())
    }

    fn translate_rules(
        &self,
        rules: &[OrderedPermissionRule],
        restricting: bool,
    ) -> ConvertedPermissionRules {
        translate_ordered_rules(rules, restricting)
    }

    fn check_matcher(&self, pattern: &str) -> Option<String> {
        windlass_plugin::hook::matcher_error(pattern)
    }

    fn has_theme(&self, name: &str) -> bool {
        Theme::names().contains(&name)
    }

    fn check_keys(&self, command: &str, keys: &str) -> Option<String> {
        let overrides = [(command.to_owned(), keys.to_owned())].into();
        KeyMap::new(overrides).1.into_iter().next()
    }

    fn tools_for_claude(&self, name: &str) -> Vec<String> {
        windlass_tools::claude_names().tools_for(name).into_iter().map(str::to_owned).collect()
    }

    fn canonical_provider(&self, name: &str) -> Option<&'static str> {
        catalog::find_provider(name).map(|row| row.id)
    }
}

/// Translates rules in which the last match counts. Rules that are `restricting` cannot allow.
pub(crate) fn translate_ordered_rules(
    rules: &[OrderedPermissionRule],
    restricting: bool,
) -> ConvertedPermissionRules {
    let parse = |rule: &OrderedPermissionRule| {
        let level = match rule.level.as_str() {
            "allow" => PermissionLevel::Allow,
            "ask" => PermissionLevel::Ask,
            _ => PermissionLevel::Deny,
        };
        LastMatchRule { key: rule.key.clone(), pattern: rule.pattern.clone(), level }
    };
    let parsed: Vec<LastMatchRule> = rules.iter().map(parse).collect();
    let translated = translate_last_match(&parsed, restricting);
    let dropped = translated.dropped.into_iter().map(|(rule, reason)| {
        let LastMatchRule { key, pattern, level } = rule;
        (OrderedPermissionRule { key, pattern, level: level.to_string() }, reason)
    });
    ConvertedPermissionRules { rules: translated.rules, dropped: dropped.collect() }
}

/// Runs `windlass import`.
pub(crate) fn run_import(args: &ImportArgs) -> anyhow::Result<CliExit> {
    let (dirs, root) = LoadedProject::find_dirs()?;
    let program = match args.program {
        ImportProgramArg::OpenCode => ImportSource::OpenCode,
        ImportProgramArg::Claude => ImportSource::Claude,
    };
    let scope = if args.project { ImportScope::Project } else { ImportScope::User };
    if args.project {
        LoadedProject::check_root(&dirs, &root)?;
        if dirs.home.starts_with(&root) {
            bail!(
                "{} is not a project. Run this in a project folder, or leave out --project to \
                 import your own settings",
                root.display()
            );
        }
    }
    let import =
        ImportRequest { program, scope, dirs: &dirs, root: &root, checks: &ImportValidator };
    let plan = import.plan()?;
    if plan.read_files.is_empty() {
        return Ok(report_nothing_found(program, scope, &root));
    }
    print_plan(&plan, &dirs.home, program);
    if !plan.has_changes() {
        output::print_note("nothing new to import");
        return Ok(CliExit::Done);
    }
    if args.dry_run {
        output::print_note("nothing was written; leave out --dry-run to import");
        return Ok(CliExit::Done);
    }
    let confirmed = args.yes || output::confirm("Import this? [y/N] ");
    if !confirmed {
        output::print_note("nothing was written; use --yes to import without confirmation");
        return Ok(CliExit::Denied);
    }
    plan.apply()?;
    output::print_note("done");
    match scope {
        ImportScope::Project => {
            output::print_note("These settings apply once you trust this folder: windlass trust")
        }
        ImportScope::User => {
            output::print_note("Run `windlass config show` to see the current settings")
        }
    }
    Ok(CliExit::Done)
}

fn report_nothing_found(program: ImportSource, scope: ImportScope, root: &Path) -> CliExit {
    let name = program.name();
    let (place, hint) = match scope {
        ImportScope::User => {
            ("your home folder".to_owned(), "use --project to look in this folder")
        }
        ImportScope::Project => {
            (root.display().to_string(), "leave out --project to look for your own settings")
        }
    };
    output::print_note(&format!("no {name} settings found in {place}; {hint}"));
    CliExit::Done
}

/// Prints an `ImportPlan` as lists.
fn print_plan(plan: &ImportPlan, home: &Path, program: ImportSource) {
    let display_path = |path: &Path| match path.strip_prefix(home) {
        Ok(relative) => format!("~/{}", relative.display()),
        Err(_) => path.display().to_string(),
    };
    output::print_line(&format!("Read from {}: {}", program.name(), plan.read_files.join(", ")));
    print_list(&format!("Into {}:", display_path(&plan.config_path)), plan.settings.clone());
    let copies = plan.copies.iter();
    let copies = copies.map(|(to, from)| format!("{}  from {from}", display_path(to)));
    print_list("New files:", copies.collect());
    print_list("Already exists, not changed:", plan.existing.iter().map(format_reason).collect());
    print_list("Not imported:", plan.skipped.iter().map(format_reason).collect());
    if plan.has_changes() {
        print_list("Notes:", plan.notes.clone());
    }
}

fn format_reason((item, reason): &(String, String)) -> String {
    if reason.is_empty() { item.clone() } else { format!("{item}: {reason}") }
}

fn print_list(title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    output::print_line("");
    output::print_line(title);
    for line in lines {
        // Text from other programs must not look like a line of Windlass.
        output::print_line(&format!("  {}", line.replace('\n', " ")));
    }
}
