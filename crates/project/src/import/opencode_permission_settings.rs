//! Imports OpenCode's settings `permission` and `tools`.

use super::plan_builder::ImportPlanBuilder;
use super::{ImportScope, OrderedPermissionRule};
use crate::opencode_permission_rules::{RulesByKey, convert_rule, translate_rules};
use serde_json::Value;

/// Imports the `permission` setting.
pub(super) fn import_rules(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Some(keys) = convert_rules(builder, "permission", &value) else { return };
    for (key, value) in keys {
        match value {
            Value::Object(patterns) => {
                for (pattern, level) in patterns {
                    set_rule(builder, &["permission", &key, &pattern], level);
                }
            }
            level => set_rule(builder, &["permission", &key], level),
        }
    }
}

fn set_rule(builder: &mut ImportPlanBuilder<'_>, path: &[&str], level: Value) {
    let description = match (level.as_str(), level.get("except")) {
        (Some(level), _) => level.to_owned(),
        (None, Some(except)) => format!("deny except {except}"),
        (None, None) => level.to_string(),
    };
    builder.set_key(path, level, &description);
}

/// Converts rules into ours and reports those that are left out, under the name of the setting.
/// Returns `None` if the value is not a set of rules. The rules of a project, and of its agents, can
/// only restrict.
pub(super) fn convert_rules(
    builder: &mut ImportPlanBuilder<'_>,
    setting: &str,
    value: &Value,
) -> Option<RulesByKey> {
    let is_restricting = builder.scope == ImportScope::Project;
    let translate =
        |rules: &[OrderedPermissionRule]| builder.checks.translate_rules(rules, is_restricting);
    let Some(translated) = translate_rules(value, &translate) else {
        builder.skip(setting, "not an object");
        return None;
    };
    let name = |(key, pattern): &(String, String)| rule_name(setting, key, pattern);
    for (rule, _, reason) in translated.unsupported {
        builder.skip(name(&rule), reason);
    }
    for rule in &translated.invalid {
        builder.skip(name(rule), "not `allow`, `ask` or `deny`");
    }
    for (rule, text) in &translated.widened {
        builder.add_note(format!("{} has no equivalent, so {text}", name(rule)));
    }
    for (rule, reason) in translated.overridden {
        builder.skip(name(&rule), reason);
    }
    Some(translated.rules)
}

fn rule_name(setting: &str, key: &str, pattern: &str) -> String {
    match pattern {
        "*" => format!("{setting}.{key}"),
        pattern => format!("{setting}.{key} \"{pattern}\""),
    }
}

/// Imports disabled tools from OpenCode's old `tools` setting.
pub(super) fn import_tool_switches(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Value::Object(map) = value else { return builder.skip("tools", "not an object") };
    for (tool, enabled) in map {
        match (&enabled, convert_rule(&tool, "*", "deny")) {
            (Value::Bool(false), Ok((key, _))) => {
                builder.set_key(&["permission", &key], "deny".into(), "deny");
            }
            (Value::Bool(false), Err(reason)) => builder.skip(format!("tools.{tool}"), reason),
            (Value::Bool(true), _) => {
                builder.skip(format!("tools.{tool}"), "available by default");
            }
            (_, _) => builder.skip(format!("tools.{tool}"), "not `true` or `false`"),
        }
    }
}
