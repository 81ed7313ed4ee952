//! The JavaScript of TypeScript tools, in the cache. The script host finds it by the digest of the
//! source, so that a file that changed in the meantime does not run as its old content.

use crate::hex::to_hex;
use crate::{Dirs, private_files};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Limits of one tool file: its own size and that of each file it imports, and their number.
const MAX_SOURCE_BYTES: u64 = 1 << 20;
const MAX_SOURCES: usize = 200;

/// Compiles a file. The result is a JSON object with the `imports` as they are written; the error
/// names the file and the line.
pub type CompileScript<'a> = &'a dyn Fn(&Path, &str) -> Result<String, String>;

/// The part of a compiled file that is read here.
#[derive(Deserialize)]
struct CompiledImports {
    imports: Vec<String>,
}

/// Writes the compiled form of a file, and of the TypeScript files it imports, to the cache.
/// Returns the folder of the compiled files; each is named by the SHA-256 of its source.
pub fn write_compiled_scripts(
    dirs: &Dirs,
    entry: &Path,
    compiler_version: &str,
    compile: CompileScript<'_>,
) -> Result<PathBuf, String> {
    let folder = dirs.cache.join(format!("typescript-{compiler_version}"));
    private_files::create_private_folder(&folder).map_err(|error| error.to_string())?;
    let mut seen: BTreeSet<PathBuf> = BTreeSet::from([entry.to_owned()]);
    let mut pending = vec![entry.to_owned()];
    while let Some(file) = pending.pop() {
        let CompiledImports { imports } = compile_cached(&folder, &file, compile)?;
        let base = file.parent().unwrap_or(Path::new(""));
        for import in &imports {
            let Some(target) = resolve_import(base, import) else { continue };
            if !is_typescript(&target) || !seen.insert(target.clone()) {
                continue;
            }
            if seen.len() > MAX_SOURCES {
                let name = entry.display();
                return Err(format!("{name} imports more than {MAX_SOURCES} TypeScript files"));
            }
            pending.push(target);
        }
    }
    Ok(folder)
}

fn compile_cached(
    folder: &Path,
    file: &Path,
    compile: CompileScript<'_>,
) -> Result<CompiledImports, String> {
    let to_error = |error: std::io::Error| format!("{}: {error}", file.display());
    let mut source = String::new();
    let opened = std::fs::File::open(file).map_err(to_error)?;
    opened.take(MAX_SOURCE_BYTES + 1).read_to_string(&mut source).map_err(to_error)?;
    if source.len() as u64 > MAX_SOURCE_BYTES {
        return Err(format!("{} is larger than {} MiB", file.display(), MAX_SOURCE_BYTES >> 20));
    }
    let path = folder.join(format!("{}.json", to_hex(&Sha256::digest(source.as_bytes()))));
    let cached = std::fs::read_to_string(&path).ok();
    if let Some(compiled) = cached.and_then(|text| serde_json::from_str(&text).ok()) {
        return Ok(compiled);
    }
    let text = compile(file, &source)?;
    private_files::replace_in_cache(&path, text.as_bytes())
        .map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// Returns `true` for a file with types, by its extension.
pub fn is_typescript(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "ts" || extension == "mts")
}

/// Returns the main file of an npm package, if it is TypeScript: that of `./server`, which is the
/// part of an OpenCode plugin that has no interface, else that of the package. A package may name
/// a source file that it does not contain, so only files that exist count.
pub(crate) fn typescript_entry(
    manifest: &Map<String, Value>,
    exists: impl Fn(&str) -> bool,
) -> Option<String> {
    let exports = manifest.get("exports");
    let main = exports.and_then(|exports| exports.get("./server").or_else(|| exports.get(".")));
    let main = main.or(exports);
    let conditions = ["import", "default", "bun"];
    let main = main.map(|main| conditions.iter().find_map(|key| main.get(key)).unwrap_or(main));
    let files = [main, manifest.get("module"), manifest.get("main")];
    let files = files.into_iter().filter_map(|file| file?.as_str());
    let main = files.map(|file| file.trim_start_matches("./")).find(|file| exists(file))?;
    let is_inside = !main.split('/').any(|part| part == "..");
    (is_inside && (main.ends_with(".ts") || main.ends_with(".mts"))).then(|| main.to_owned())
}

/// Returns the main file of a package that a file of another package imports, if it is TypeScript.
fn resolve_package(base: &Path, package: &str) -> Option<PathBuf> {
    let is_in_package = base.iter().any(|part| part == "node_modules");
    let is_name =
        !package.is_empty() && !package.contains(['\\', ':']) && !package.starts_with('/');
    if !is_in_package || !is_name || package.split('/').any(|part| part == "..") {
        return None;
    }
    let mut folders = base.ancestors().map(|folder| folder.join("node_modules").join(package));
    let folder = folders.find(|folder| folder.join("package.json").is_file())?;
    let manifest = std::fs::File::open(folder.join("package.json")).ok()?;
    let manifest = serde_json::from_reader(manifest.take(MAX_SOURCE_BYTES)).ok()?;
    let entry = typescript_entry(&manifest, |file| folder.join(file).is_file())?;
    folder.join(entry).canonicalize().ok()
}

/// Returns the file that an import refers to: as written, or with the extension that TypeScript
/// leaves out. `None` for missing files, and for packages that are not TypeScript.
fn resolve_import(base: &Path, import: &str) -> Option<PathBuf> {
    if !import.starts_with("./") && !import.starts_with("../") {
        return resolve_package(base, import);
    }
    let import = import.split(['?', '#']).next().unwrap_or(import);
    let typed = import.strip_suffix("js").map(|stem| format!("{stem}ts"));
    let endings = ["", ".ts", ".js", ".mjs", ".mts", "/index.ts", "/index.js"];
    let candidates = typed.into_iter().chain(endings.map(|ending| format!("{import}{ending}")));
    candidates
        .map(|candidate| base.join(candidate))
        .find(|path| path.is_file())
        .and_then(|path| path.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::custom_tools::tests::test_dirs;
    use std::cell::RefCell;

    /// Compiles files whose text is a list of imports, and records their names.
    #[derive(Default)]
    struct TestCompiler(RefCell<Vec<String>>);

    impl TestCompiler {
        fn write_scripts(&self, root: &Path, entry: &str) -> Result<PathBuf, String> {
            let compile = |file: &Path, source: &str| {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                self.0.borrow_mut().push(name);
                let imports: Vec<&str> = source.lines().collect();
                Ok(serde_json::json!({"code": "", "imports": imports}).to_string())
            };
            write_compiled_scripts(&test_dirs(root), &root.join(entry), "test", &compile)
        }
    }

    #[test]
    fn imported_files_are_compiled_once_and_again_after_a_change() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        std::fs::create_dir_all(root.join("lib/deep")).unwrap();
        write("a.ts", "./lib/b.js\nzod\n./plain.mjs\n./missing");
        write("lib/b.ts", "./deep\n../a");
        write("lib/deep/index.ts", "../../c");
        write("c.ts", "");
        write("plain.mjs", "");
        let compiler = TestCompiler::default();
        let folder = compiler.write_scripts(&root, "a.ts").unwrap();
        assert_eq!(compiler.0.take(), ["a.ts", "b.ts", "index.ts", "c.ts"]);
        compiler.write_scripts(&root, "a.ts").unwrap();
        assert!(compiler.0.take().is_empty());
        write("c.ts", "changed");
        compiler.write_scripts(&root, "a.ts").unwrap();
        assert_eq!(compiler.0.take(), ["c.ts"]);
        // A cached file that cannot be read is written again.
        for entry in std::fs::read_dir(&folder).unwrap() {
            std::fs::write(entry.unwrap().path(), "damaged").unwrap();
        }
        compiler.write_scripts(&root, "a.ts").unwrap();
        assert_eq!(compiler.0.take().len(), 4);
    }

    #[test]
    fn packages_are_compiled_only_for_files_of_packages() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("a.ts", "./node_modules/p/main.ts\n@s/q");
        write("node_modules/p/main.ts", "@s/q\nplain\nnode:fs\n../../etc");
        write("node_modules/@s/q/package.json", r#"{"main": "./src/q.ts"}"#);
        write("node_modules/@s/q/src/q.ts", "");
        write("node_modules/plain/package.json", r#"{"main": "index.js"}"#);
        let compiler = TestCompiler::default();
        compiler.write_scripts(&root, "a.ts").unwrap();
        assert_eq!(compiler.0.take(), ["a.ts", "main.ts", "q.ts"]);
        write("b.ts", "@s/q");
        compiler.write_scripts(&root, "b.ts").unwrap();
        assert_eq!(compiler.0.take(), ["b.ts"], "trust does not cover packages of a project");
    }

    #[test]
    fn large_files_and_many_imports_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let file = root.join("a.ts");
        std::fs::write(&file, "x".repeat(MAX_SOURCE_BYTES as usize + 1)).unwrap();
        let compiler = TestCompiler::default();
        let error = compiler.write_scripts(&root, "a.ts").unwrap_err();
        assert!(error.contains("larger than 1 MiB"), "{error}");
        let imports: Vec<String> = (0..=MAX_SOURCES).map(|n| format!("./m{n}")).collect();
        for n in 0..=MAX_SOURCES {
            std::fs::write(root.join(format!("m{n}.ts")), "").unwrap();
        }
        std::fs::write(&file, imports.join("\n")).unwrap();
        let error = compiler.write_scripts(&root, "a.ts").unwrap_err();
        assert!(error.contains("imports more than 200"), "{error}");
    }
}
