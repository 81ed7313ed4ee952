//! `windlass models`: lists models with size, price and abilities.

use crate::CliExit;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::bail;
use serde_json::Value;
use windlass_llm::catalog::{self, Model};
use windlass_project::ConfigFlags;
/// Runs `windlass models`.
pub(crate) fn list_models(only: Option<&str>, json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let mut names: Vec<String> =
        catalog::ALL_PROVIDERS.iter().map(|row| row.id.to_owned()).collect();
    names.extend(setup.config.providers.keys().cloned());
    if let Some(only) = only {
        let id = catalog::find_provider(only).map_or(only, |row| row.id);
        names.retain(|name| name == id || name == only);
        if names.is_empty() {
            let suggestion = crate::commands::auth::suggest_providers(only, &setup.config);
            bail!(
                "unknown provider `{only}`. {suggestion}Run `windlass models` to list known \
                 providers"
            );
        }
    }
    names.sort();
    names.dedup();
    let mut rows = Vec::new();
    for name in &names {
        let models = setup.provider_models(name).into_iter();
        rows.extend(models.map(|(id, model)| (format!("{name}/{id}"), model)));
    }
    if json {
        let rows: Vec<Value> = rows.iter().map(|(name, model)| model_json(name, model)).collect();
        output::print_json(&serde_json::to_string_pretty(&rows)?);
        return Ok(CliExit::Done);
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    if !rows.is_empty() {
        // Not on standard output, so that scripts read only models there.
        output::print_note(&format!(
            "{:<width$}  {:>8} {:>9}  {:<14}  CAPABILITIES",
            "MODEL", "CONTEXT", "OUTPUT", "$/M IN/OUT"
        ));
    }
    for (name, model) in &rows {
        output::print_line(&format!("{name:<width$}  {}", describe_model(model)));
    }
    for name in names
        .iter()
        .filter(|name| only.is_some() && catalog::models_of_provider(name).next().is_none())
    {
        output::print_note(&format!(
            "{name}: use any model of your server as {name}/NAME; set its limits in your config"
        ));
    }
    Ok(CliExit::Done)
}

/// Formats a model's limits, price and capabilities on one line.
pub(crate) fn describe_model(model: &Model) -> String {
    let tokens = |count: Option<u64>| match count {
        Some(count) if count >= 1_000_000 => format!("{:.1}M", count as f64 / 1e6),
        Some(count) if count >= 1_000 => format!("{}k", count / 1_000),
        Some(count) => count.to_string(),
        None => "?".into(),
    };
    let price = match (model.price.input, model.price.output) {
        (Some(input), Some(output)) => format!("${input}/${output}"),
        _ => "-".into(),
    };
    let capabilities = [
        (model.calls, "tools"),
        (model.images, "images"),
        (model.pdfs, "pdf"),
        (model.reasons, "reasoning"),
        (model.structured, "json"),
    ];
    let names: Vec<&str> = capabilities
        .iter()
        .filter(|(is_supported, _)| *is_supported)
        .map(|(_, name)| *name)
        .collect();
    format!(
        "{:>5} in {:>5} out  {price:<14}  {}",
        tokens(model.context),
        tokens(model.output),
        names.join(" ")
    )
}

fn model_json(name: &str, model: &Model) -> Value {
    let efforts: Vec<&str> = model.efforts.iter().map(|effort| effort.name()).collect();
    serde_json::json!({
        "name": name,
        "context": model.context,
        "output": model.output,
        "price": {
            "input": model.price.input,
            "output": model.price.output,
            "cache_read": model.price.cache_read,
            "cache_write": model.price.cache_write,
        },
        "images": model.images,
        "pdfs": model.pdfs,
        "calls": model.calls,
        "reasons": model.reasons,
        "efforts": efforts,
        "structured": model.structured,
        "temperature": model.temperature,
    })
}
