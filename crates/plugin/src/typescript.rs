//! Compiles TypeScript to JavaScript, so that script tools with types run on every supported Node.
//!
//! The parser recurses without a limit, so it runs in a helper process, which may crash.

use oxc_allocator::Allocator;
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use oxc_transformer::{TransformOptions, Transformer};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The version of the compiled form; a new one invalidates the cache.
pub const COMPILER_VERSION: &str = "1";

const COMPILE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limits the output of the helper. The source is limited by the caller.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

#[derive(Serialize, Deserialize)]
struct TypeScriptHelperRequest {
    file: PathBuf,
    source: String,
}

/// The JavaScript of a TypeScript file, with an inline source map.
#[derive(Debug, Serialize, Deserialize)]
struct CompiledScript {
    code: String,
    /// The modules that it imports, as written.
    imports: Vec<String>,
}

/// Compiles a file in a helper process and returns the `CompiledScript` as JSON. Blocks. The error
/// names the file and the line.
pub fn compile_isolated(file: &Path, source: &str) -> Result<String, String> {
    let file = PathBuf::from(file.file_name().unwrap_or_default());
    let request = TypeScriptHelperRequest { file: file.clone(), source: source.to_owned() };
    let input = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
    let output =
        windlass_sandbox::run_helper("typescript", input, MAX_OUTPUT_BYTES, COMPILE_TIMEOUT)
            .map_err(|error| format!("{} cannot be compiled: {error}", file.display()))?;
    let result: Result<CompiledScript, String> = serde_json::from_slice(&output)
        .map_err(|_| format!("{} cannot be compiled: it is too long", file.display()))?;
    result.and_then(|compiled| serde_json::to_string(&compiled).map_err(|error| error.to_string()))
}

/// Runs the `typescript` helper: parses its input and compiles the file. The output is a `Result`
/// as JSON, because an error in the file is not a failure of the helper.
pub fn run_typescript_helper(input: &[u8]) -> Result<String, String> {
    let request: TypeScriptHelperRequest =
        serde_json::from_slice(input).map_err(|error| format!("invalid request: {error}"))?;
    let result = compile(&request.file, &request.source);
    serde_json::to_string(&result).map_err(|error| error.to_string())
}

fn compile(file: &Path, source: &str) -> Result<CompiledScript, String> {
    let allocator = Allocator::default();
    let source_type =
        SourceType::from_path(file).map_err(|error| error.to_string())?.with_module(true);
    let parsed = Parser::new(&allocator, source, source_type).parse();
    let to_error = |diagnostic: Option<&oxc_diagnostics::OxcDiagnostic>| {
        let offset = diagnostic.and_then(|it| it.labels.first()).map_or(0, |label| label.offset());
        let before = source.get(..offset as usize).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let message = diagnostic.map_or_else(|| "syntax error".to_owned(), |it| it.to_string());
        format!("{}:{line} could not be loaded: {message}", file.display())
    };
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Err(to_error(parsed.diagnostics.first()));
    }
    let mut program = parsed.program;
    let scoping =
        SemanticBuilder::new().with_enum_eval(true).build(&program).semantic.into_scoping();
    let options = TransformOptions::default();
    let transformed =
        Transformer::new(&allocator, file, &options).build_with_scoping(scoping, &mut program);
    if let Some(diagnostic) = transformed.diagnostics.first() {
        return Err(to_error(Some(diagnostic)));
    }
    let options =
        CodegenOptions { source_map_path: Some(file.to_owned()), ..CodegenOptions::default() };
    let generated = Codegen::new().with_options(options).build(&program);
    let imports = find_imports(&generated.code);
    let map = generated.map.map(|map| format!("\n//# sourceMappingURL={}\n", map.to_data_url()));
    Ok(CompiledScript { code: generated.code + &map.unwrap_or_default(), imports })
}

/// Returns the modules that JavaScript imports, also by `import("…")` with a plain text. Imports of
/// types are gone from it.
fn find_imports(code: &str) -> Vec<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, code, SourceType::mjs()).parse();
    let requested = parsed.module_record.requested_modules.keys();
    let mut imports: Vec<String> = requested.map(|module| module.to_string()).collect();
    for dynamic in &parsed.module_record.dynamic_imports {
        let span = dynamic.module_request;
        let request = code.get(span.start as usize..span.end as usize).unwrap_or_default();
        let is_plain = request.starts_with(['"', '\'']) && !request.contains('\\');
        imports.extend(is_plain.then(|| request.trim_matches(['"', '\'']).to_owned()));
    }
    imports.sort_unstable();
    imports.dedup();
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile_text(source: &str) -> Result<CompiledScript, String> {
        let request = TypeScriptHelperRequest { file: "a.ts".into(), source: source.to_owned() };
        let output = run_typescript_helper(&serde_json::to_vec(&request).unwrap()).unwrap();
        serde_json::from_str(&output).unwrap()
    }

    #[test]
    fn types_are_removed_and_enums_and_parameter_properties_translated() {
        let compiled = compile_text(
            "import type { A } from './a'; import { b, type C } from './b.js';\n\
             import { Hooks } from 'x';\n\
             enum Color { Red = 1 }\n\
             class Box { constructor(private readonly size: number) {} }\n\
             export const n = <A>b as const satisfies C; let h: Hooks;\n\
             export const later = () => import('./later.ts');\n",
        )
        .unwrap();
        assert_eq!(compiled.imports, ["./b.js", "./later.ts"], "types are not loaded");
        let (code, map) = compiled.code.split_once("//# sourceMappingURL=data:").unwrap();
        assert!(map.len() > 50, "{map}");
        for part in ["Color[\"Red\"] = 1", "this.size = size", "export const n = b"] {
            assert!(code.contains(part), "{part}: {code}");
        }
        for part in ["satisfies", "readonly", "Hooks", "'x'", "./a"] {
            assert!(!code.contains(part), "{part}: {code}");
        }
    }

    #[test]
    fn an_error_names_the_file_and_the_line() {
        let error = compile_text("const a = 1;\nconst b: = 2;\n").unwrap_err();
        assert!(error.starts_with("a.ts:2 could not be loaded: "), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
}
