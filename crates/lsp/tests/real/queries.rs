//! Queries to each server, with their expected answers.

use crate::support::{TestProject, built_in_config, run, servers_folder};
use std::path::Path;

/// Sends all queries, and fails with all unexpected answers at once.
fn check_queries(project: &str, name: &str, queries: &[(&str, &[&str])]) {
    let Some(servers_folder) = servers_folder(name) else { return };
    run(async {
        let env = TestProject::new(
            &servers_folder,
            project,
            vec![built_in_config(&servers_folder, name)],
        );
        let mut wrong = Vec::new();
        for (query_text, expected) in queries {
            let answer = env.query(query_text).await;
            let lines: Vec<&str> = answer.lines().collect();
            let matches = match expected {
                // The rest of a hover text depends on the server version.
                [head, ..] if query_text.starts_with("hover") => answer.contains(head),
                expected => lines == *expected,
            };
            if !matches {
                wrong
                    .push(format!("{query_text}\n  expected {expected:#?}\n  answered {lines:#?}"));
            }
        }
        let server_log = env.server_log();
        env.servers.close().await;
        assert!(wrong.is_empty(), "{name}:\n{}\n\nserver log:\n{server_log}", wrong.join("\n"));
    });
}

pub fn typescript_supports_all_nine_queries() {
    check_queries(
        "ts",
        "typescript",
        &[
            (
                "goToDefinition src/main.ts:5:10",
                &["src/total.ts:3:17 | export function total(shapes: Shape[]): number {"],
            ),
            ("goToImplementation src/shape.ts:2:3", &["src/shape.ts:8:3 | area(): number {"]),
            (
                "findReferences src/total.ts:3:17",
                &[
                    "src/main.ts:2:10 | import { total } from \"./total\";",
                    "src/main.ts:5:10 | return total([new Square(1)]);",
                    "src/main.ts:9:10 | return total([new Square(9)]);",
                    "src/total.ts:3:17 | export function total(shapes: Shape[]): number {",
                ],
            ),
            ("hover src/main.ts:5:10", &["total(shapes: Shape[]): number"]),
            (
                "documentSymbol src/shape.ts",
                &[
                    "src/shape.ts:1:18 | interface Shape | export interface Shape {",
                    " src/shape.ts:2:3 | method area | area(): number;",
                    "src/shape.ts:5:14 | class Square | export class Square implements Shape {",
                    " src/shape.ts:6:3 | constructor constructor | constructor(private side: number) {}",
                    " src/shape.ts:6:23 | property side | constructor(private side: number) {}",
                    " src/shape.ts:8:3 | method area | area(): number {",
                ],
            ),
            (
                "workspaceSymbol src/main.ts? total",
                &[
                    "src/total.ts:3:17 | fn total | export function total(shapes: Shape[]): number {",
                ],
            ),
            (
                "prepareCallHierarchy src/total.ts:3:17",
                &[
                    "src/total.ts:3:17 | fn total | export function total(shapes: Shape[]): number {",
                ],
            ),
            (
                "incomingCalls src/total.ts:3:17",
                &[
                    "src/main.ts:5:10 | in fn small | return total([new Square(1)]);",
                    "src/main.ts:9:10 | in fn large | return total([new Square(9)]);",
                ],
            ),
            (
                "outgoingCalls src/main.ts:4:17",
                &[
                    "src/shape.ts:5:14 | class Square | export class Square implements Shape {",
                    "src/total.ts:3:17 | fn total | export function total(shapes: Shape[]): number {",
                ],
            ),
            ("hover src/main.ts:4:1", &["[nothing at 4:1; showing `small` at 4:17]"]),
        ],
    );
}

pub fn pyright_supports_eight_queries() {
    check_queries(
        "py",
        "pyright",
        &[
            (
                "goToDefinition main.py:6:12",
                &["total.py:6:5 | def total(shapes: Sequence[Shape]) -> int:"],
            ),
            (
                "goToImplementation shape.py:4:7",
                &["pyright does not support goToImplementation; use findReferences or grep"],
            ),
            (
                "findReferences total.py:6:5",
                &[
                    "main.py:2:19 | from total import total",
                    "main.py:6:12 | return total([Square(1)])",
                    "main.py:10:12 | return total([Square(9)])",
                    "total.py:6:5 | def total(shapes: Sequence[Shape]) -> int:",
                ],
            ),
            ("hover main.py:6:12", &["Adds areas up."]),
            (
                "documentSymbol shape.py",
                &[
                    "shape.py:4:7 | class Shape | class Shape(Protocol):",
                    " shape.py:5:9 | method area | def area(self) -> int: ...",
                    "shape.py:8:7 | class Square | class Square(Shape):",
                    " shape.py:9:9 | method __init__ | def __init__(self, side: int) -> None:",
                    "  shape.py:9:24 | variable side | def __init__(self, side: int) -> None:",
                    " shape.py:12:9 | method area | def area(self) -> int:",
                    " shape.py:10:14 | variable side | self.side = side",
                ],
            ),
            (
                "workspaceSymbol main.py? total",
                &["total.py:6:5 | fn total | def total(shapes: Sequence[Shape]) -> int:"],
            ),
            (
                "prepareCallHierarchy total.py:6:5",
                &["total.py:6:5 | fn total | def total(shapes: Sequence[Shape]) -> int:"],
            ),
            (
                "incomingCalls total.py:6:5",
                &[
                    "main.py:6:12 | in fn small | return total([Square(1)])",
                    "main.py:10:12 | in fn large | return total([Square(9)])",
                ],
            ),
            (
                "outgoingCalls main.py:5:5",
                &[
                    "shape.py:8:7 | class Square | class Square(Shape):",
                    "total.py:6:5 | fn total | def total(shapes: Sequence[Shape]) -> int:",
                ],
            ),
        ],
    );
}

pub fn clangd_supports_all_nine_queries() {
    check_queries(
        "cpp",
        "clangd",
        &[
            (
                "goToDefinition shapes.cpp:13:22",
                &[
                    "shapes.cpp:11:5 | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                ],
            ),
            (
                "goToImplementation shapes.cpp:2:15",
                &["shapes.cpp:8:7 | int area() const override { return side * side; }"],
            ),
            (
                "findReferences shapes.cpp:11:5",
                &[
                    "shapes.cpp:11:5 | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                    "shapes.cpp:13:22 | int small() { return total(Square(1), Square(2)); }",
                    "shapes.cpp:15:22 | int large() { return total(Square(8), Square(9)); }",
                ],
            ),
            ("hover shapes.cpp:13:22", &["total"]),
            (
                "documentSymbol shapes.cpp",
                &[
                    "shapes.cpp:1:8 | class Shape | struct Shape {",
                    " shapes.cpp:2:15 | method area | virtual int area() const = 0;",
                    "shapes.cpp:5:8 | class Square | struct Square : Shape {",
                    " shapes.cpp:6:7 | field side | int side;",
                    " shapes.cpp:7:12 | constructor Square | explicit Square(int side) : side(side) {}",
                    " shapes.cpp:8:7 | method area | int area() const override { return side * side; }",
                    "shapes.cpp:11:5 | fn total | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                    "shapes.cpp:13:5 | fn small | int small() { return total(Square(1), Square(2)); }",
                    "shapes.cpp:15:5 | fn large | int large() { return total(Square(8), Square(9)); }",
                ],
            ),
            (
                "workspaceSymbol shapes.cpp? total",
                &[
                    "shapes.cpp:11:5 | fn total | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                ],
            ),
            (
                "prepareCallHierarchy shapes.cpp:11:5",
                &[
                    "shapes.cpp:11:5 | fn total | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                ],
            ),
            (
                "incomingCalls shapes.cpp:11:5",
                &[
                    "shapes.cpp:13:22 | in fn small | int small() { return total(Square(1), Square(2)); }",
                    "shapes.cpp:15:22 | in fn large | int large() { return total(Square(8), Square(9)); }",
                ],
            ),
            (
                "outgoingCalls shapes.cpp:13:5",
                &[
                    "shapes.cpp:7:12 | constructor Square | explicit Square(int side) : side(side) {}",
                    "shapes.cpp:11:5 | fn total | int total(const Shape &one, const Shape &two) { return one.area() + two.area(); }",
                ],
            ),
        ],
    );
}

pub fn bash_supports_five_queries_and_reports_the_others() {
    const NONE: &str = "bash-language-server does not support";
    let none = |name: &str, instead: &str| format!("{NONE} {name}; {instead}");
    let implementation = none("goToImplementation", "use findReferences or grep");
    let calls = none("prepareCallHierarchy", "use findReferences or grep");
    let incoming = none("incomingCalls", "use findReferences or grep");
    let outgoing = none("outgoingCalls", "use goToDefinition or read");
    check_queries(
        "sh",
        "bash-language-server",
        &[
            ("goToDefinition shapes.sh:8:3", &["shapes.sh:3:1 | total() {"]),
            ("goToImplementation shapes.sh:8:3", &[&implementation]),
            (
                "findReferences shapes.sh:3:1",
                &[
                    "shapes.sh:3:1 | total() {",
                    "shapes.sh:8:3 | total 1 4",
                    "shapes.sh:12:3 | total 64 81",
                ],
            ),
            ("hover shapes.sh:8:3", &["Adds areas up."]),
            (
                "documentSymbol shapes.sh",
                &[
                    "shapes.sh:3:1 | fn total | total() {",
                    "shapes.sh:7:1 | fn small | small() {",
                    "shapes.sh:11:1 | fn large | large() {",
                ],
            ),
            ("workspaceSymbol shapes.sh? total", &["shapes.sh:3:1 | fn total | total() {"]),
            ("prepareCallHierarchy shapes.sh:3:1", &[&calls]),
            ("incomingCalls shapes.sh:3:1", &[&incoming]),
            ("outgoingCalls shapes.sh:3:1", &[&outgoing]),
        ],
    );
}

pub fn yaml_supports_three_queries() {
    const NONE: &str = "yaml-language-server does not support";
    let none = |name: &str, instead: &str| format!("{NONE} {name}; {instead}");
    let references = none("findReferences", "use goToDefinition or grep");
    let implementation = none("goToImplementation", "use findReferences or grep");
    let symbols = none("workspaceSymbol", "use documentSymbol or grep");
    let incoming = none("incomingCalls", "use findReferences or grep");
    check_queries(
        "yaml",
        "yaml-language-server",
        &[
            ("goToDefinition shapes.yaml:4:8", &["shapes.yaml:2:3 | sides: 4"]),
            ("goToImplementation shapes.yaml:4:8", &[&implementation]),
            ("findReferences shapes.yaml:4:8", &[&references]),
            ("hover shapes.yaml:2:3", &["yaml-language-server found no hover result there"]),
            (
                "documentSymbol shapes.yaml",
                &[
                    "shapes.yaml:1:1 | module square | square: &square",
                    " shapes.yaml:2:3 | number sides | sides: 4",
                    "shapes.yaml:3:1 | module small | small:",
                    " shapes.yaml:4:3 | module << | <<: *square",
                    "  shapes.yaml:2:3 | number sides | sides: 4",
                    " shapes.yaml:5:3 | number side | side: 1",
                    "shapes.yaml:6:1 | module large | large:",
                    " shapes.yaml:7:3 | module << | <<: *square",
                    "  shapes.yaml:2:3 | number sides | sides: 4",
                    " shapes.yaml:8:3 | number side | side: 9",
                ],
            ),
            ("workspaceSymbol shapes.yaml? small", &[&symbols]),
            ("incomingCalls shapes.yaml:4:8", &[&incoming]),
        ],
    );
}

pub fn ruff_supports_only_hover() {
    check_queries(
        "py",
        "ruff",
        &[
            ("goToDefinition main.py:6:12", &["ruff does not support goToDefinition; use grep"]),
            ("hover main.py:6:12", &["ruff found no hover result there"]),
            ("documentSymbol main.py", &["ruff does not support documentSymbol; use grep"]),
            (
                "workspaceSymbol main.py? total",
                &["ruff does not support workspaceSymbol; use documentSymbol or grep"],
            ),
            (
                "outgoingCalls main.py:6:12",
                &["ruff does not support outgoingCalls; use goToDefinition or read"],
            ),
        ],
    );
}

/// Returns true if rust-analyzer is installed, or prints that this test is skipped.
pub fn has_rust_analyzer(servers_folder: &Path) -> bool {
    let installed = servers_folder.join("ra/bin/rust-analyzer").exists();
    if !installed {
        println!("skipped: rust-analyzer is not in ra/bin");
    }
    installed
}

pub fn rust_analyzer_answers_queries() {
    if !servers_folder("rust-analyzer")
        .is_some_and(|servers_folder| has_rust_analyzer(&servers_folder))
    {
        return;
    }
    check_queries(
        "rs",
        "rust-analyzer",
        &[
            (
                "goToDefinition src/main.rs:18:5",
                &["src/main.rs:13:4 | fn total(one: &dyn Shape, two: &dyn Shape) -> u32 {"],
            ),
            ("goToImplementation src/main.rs:1:7", &["src/main.rs:7:16 | impl Shape for Square {"]),
            (
                "findReferences src/main.rs:13:4",
                &[
                    "src/main.rs:13:4 | fn total(one: &dyn Shape, two: &dyn Shape) -> u32 {",
                    "src/main.rs:18:5 | total(&Square(1), &Square(2))",
                    "src/main.rs:22:5 | total(&Square(8), &Square(9))",
                ],
            ),
            ("hover src/main.rs:18:5", &["fn total(one: &dyn Shape, two: &dyn Shape) -> u32"]),
            (
                "workspaceSymbol src/main.rs? total",
                &[
                    "src/main.rs:13:4 | fn total | fn total(one: &dyn Shape, two: &dyn Shape) -> u32 {",
                ],
            ),
            (
                "prepareCallHierarchy src/main.rs:13:4",
                &[
                    "src/main.rs:13:4 | fn total | fn total(one: &dyn Shape, two: &dyn Shape) -> u32 {",
                ],
            ),
            (
                "incomingCalls src/main.rs:13:4",
                &[
                    "src/main.rs:18:5 | in fn small | total(&Square(1), &Square(2))",
                    "src/main.rs:22:5 | in fn large | total(&Square(8), &Square(9))",
                ],
            ),
            (
                "outgoingCalls src/main.rs:17:4",
                &[
                    "src/main.rs:5:8 | struct Square | struct Square(u32);",
                    "src/main.rs:13:4 | fn total | fn total(one: &dyn Shape, two: &dyn Shape) -> u32 {",
                ],
            ),
        ],
    );
}

pub fn workspace_symbols_come_from_all_servers() {
    let Some(servers_folder) = servers_folder("symbols of several servers") else { return };
    run(async {
        let configs =
            ["pyright", "typescript"].map(|name| built_in_config(&servers_folder, name)).to_vec();
        let env = TestProject::new(&servers_folder, "py", configs);
        std::fs::copy(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/projects/ts/tsconfig.json"),
            env.root.join("tsconfig.json"),
        )
        .unwrap();
        std::fs::create_dir(env.root.join("src")).unwrap();
        std::fs::write(env.root.join("src/a.ts"), "export function totals() {}\n").unwrap();
        let answer = env.query("symbols ? total").await;
        assert!(answer.contains("total.py:6:5 | fn total"), "{answer}");
        assert!(answer.contains("src/a.ts:1:17 | fn totals"), "{answer}\n{}", env.server_log());
        env.servers.close().await;
    });
}

pub fn a_missing_program_is_reported_with_its_install_command() {
    run(async {
        let env = TestProject::new(
            Path::new("/nonexistent"),
            "py",
            vec![{
                let mut config = built_in_config(Path::new("/nonexistent"), "pyright");
                config.command[0] = "no-such-server-at-all".into();
                config
            }],
        );
        let answer = env.query("hover main.py:6:12").await;
        assert!(
            answer.contains("pyright is not installed")
                && answer.contains("npm install -g pyright"),
            "{answer}"
        );
        let answer = env.query("hover pyproject.toml:1:1").await;
        assert!(answer.contains("no language server is available for .toml files"), "{answer}");
        let (review, elapsed) = env.timed_edit("main.py", "x: int = 's'\n").await;
        assert!(review.is_none() && elapsed.as_millis() < 50, "{elapsed:?}");
    });
}
