//! Restricts alternatives (`anyOf`) to the form that a provider supports.

use super::SchemaRestrictor;
use crate::adapt::schema::keyword::{self, SchemaKeywordKind, SchemaObject, is_annotation};
use crate::adapt::schema::merge::{self, merge_enum_branches};
use crate::adapt::schema::{SchemaSubset, append_description, keyword_note, object_alternatives};
use serde_json::Value;

/// The form of a union after `simplify_union`: a single schema, or alternatives.
pub(super) enum SimplifiedUnion {
    Single(SchemaObject),
    Alternatives { annotations: SchemaObject, branches: Vec<SchemaObject>, accepts_null: bool },
}

impl SchemaRestrictor {
    /// Simplifies the `anyOf` branches together with the constraints of their parent.
    pub(super) fn simplify_union(
        &mut self,
        parent: SchemaObject,
        branches: Vec<SchemaObject>,
    ) -> SimplifiedUnion {
        let mut alternatives = Vec::new();
        let mut accepts_null = false;
        for branch in branches {
            self.flatten_branch(branch, &mut alternatives, &mut accepts_null);
        }
        let types = keyword::declared_types(&parent);
        accepts_null &= types.is_empty() || types.contains(&"null");
        let (annotations, constraints): (SchemaObject, SchemaObject) =
            parent.clone().into_iter().partition(|(key, _)| is_annotation(key));
        if alternatives.len() < 2 {
            let mut single = parent;
            match alternatives.pop() {
                Some(branch) => {
                    let (merged, dropped) = merge::intersect(single, branch);
                    single = merged;
                    for (key, value) in dropped {
                        self.is_lossy = true;
                        append_description(&mut single, &keyword_note(&key, &value));
                    }
                    if accepts_null {
                        keyword::allow_null(&mut single);
                    }
                }
                None if accepts_null => keyword::set_types(&mut single, &["null"]),
                None => {}
            }
            return SimplifiedUnion::Single(single);
        }
        if constraints.is_empty() {
            return SimplifiedUnion::Alternatives {
                annotations,
                branches: alternatives,
                accepts_null,
            };
        }
        if constraints.keys().any(|key| keyword::applicable_types(key) == Some(&["object"]))
            && object_alternatives::can_be_object(&parent)
            && alternatives.iter().all(object_alternatives::can_be_object)
        {
            self.is_lossy = true;
            return SimplifiedUnion::Single(object_alternatives::merge_alternatives(
                parent,
                alternatives,
            ));
        }
        // Only small constraints are repeated in every alternative.
        let is_small = |key: &String| {
            matches!(
                keyword::keyword_kind(key),
                Some(
                    SchemaKeywordKind::Types | SchemaKeywordKind::Number | SchemaKeywordKind::Count
                )
            )
        };
        if constraints.keys().all(is_small) {
            let branches: Vec<SchemaObject> = alternatives
                .iter()
                .cloned()
                .filter_map(|branch| {
                    let (merged, dropped) = merge::intersect(branch, constraints.clone());
                    dropped.is_empty().then_some(merged)
                })
                .collect();
            if branches.len() > 1 {
                return SimplifiedUnion::Alternatives { annotations, branches, accepts_null };
            }
        }
        self.is_lossy = true;
        let mut single = parent;
        append_description(
            &mut single,
            &keyword_note("anyOf", &alternatives.into_iter().collect()),
        );
        SimplifiedUnion::Single(single)
    }

    /// Splits a branch that consists only of an `anyOf` into its alternatives.
    fn flatten_branch(
        &mut self,
        branch: SchemaObject,
        alternatives: &mut Vec<SchemaObject>,
        accepts_null: &mut bool,
    ) {
        let mut branch = self.normalize_combinators(branch);
        if keyword::infer_types(&branch) == ["null"] {
            *accepts_null = true;
            return;
        }
        if keyword::matches_nothing(&branch) {
            return;
        }
        if !branch.keys().all(|key| is_annotation(key) || key == "anyOf") {
            alternatives.push(branch);
            return;
        }
        let Some(inner) = keyword::take_schemas(&mut branch, "anyOf") else {
            alternatives.push(branch);
            return;
        };
        let start = alternatives.len();
        for inner in inner {
            self.flatten_branch(inner, alternatives, accepts_null);
        }
        if let Some(first) = alternatives.get_mut(start) {
            prepend_description(first, &branch);
        }
    }

    /// Restricts each alternative and combines the results.
    pub(super) fn restrict_union(
        &mut self,
        annotations: SchemaObject,
        branches: Vec<SchemaObject>,
        mut accepts_null: bool,
    ) -> SchemaObject {
        let mut alternatives = Vec::new();
        for branch in branches {
            let restricted = self.restrict(branch);
            self.flatten_branch(restricted, &mut alternatives, &mut accepts_null);
        }
        let mut annotations = self.restrict_annotations(annotations);
        if alternatives.is_empty() {
            keyword::set_types(&mut annotations, &["null"]);
            return self.restrict_single(annotations);
        }
        if let Some(merged) = merge_enum_branches(&alternatives) {
            alternatives = vec![merged];
        }
        if let [single] = alternatives.as_mut_slice() {
            prepend_description(single, &annotations);
            if accepts_null {
                self.allow_null(single);
            }
            return std::mem::take(single);
        }
        if self.subset == SchemaSubset::Gemini {
            // Gemini allows no other keyword beside `anyOf`.
            if let Some(first) = alternatives.first_mut() {
                prepend_description(first, &annotations);
                if accepts_null {
                    self.allow_null(first);
                }
            }
            annotations = SchemaObject::new();
        } else if accepts_null {
            alternatives.push(SchemaObject::from_iter([("type".to_owned(), "null".into())]));
        }
        annotations.insert("anyOf".into(), alternatives.into_iter().collect());
        annotations
    }

    /// Creates one alternative per type, each with the keywords that apply to that type.
    pub(super) fn split_by_type(
        &mut self,
        schema: SchemaObject,
        mut types: Vec<&'static str>,
    ) -> SchemaObject {
        if types.contains(&"number") {
            types.retain(|name| *name != "integer");
        }
        let mut annotations = SchemaObject::new();
        let mut branches: Vec<(&str, SchemaObject)> = types
            .iter()
            .filter(|name| **name != "null")
            .map(|name| (*name, SchemaObject::from_iter([("type".to_owned(), Value::from(*name))])))
            .collect();
        let mut accepts_null = types.contains(&"null");
        for (key, value) in schema {
            if key == "type" {
                continue;
            }
            if key == "enum"
                && let Value::Array(values) = &value
            {
                accepts_null &= values.contains(&Value::Null);
                branches.retain_mut(|(name, branch)| {
                    let has_branch_type = |value: &&Value| keyword::has_type(value, &[*name]);
                    let matching: Vec<Value> =
                        values.iter().filter(has_branch_type).cloned().collect();
                    let has_values = !matching.is_empty();
                    branch.insert("enum".into(), matching.into());
                    has_values
                });
                continue;
            }
            let applicable: &[&str] = match key.as_str() {
                "format" => &["string"],
                key => keyword::applicable_types(key).unwrap_or_default(),
            };
            match branches.iter_mut().find(|(name, _)| applicable.contains(name)) {
                Some((_, branch)) => {
                    branch.insert(key, value);
                }
                None if applicable.is_empty() => {
                    annotations.insert(key, value);
                }
                None => {}
            }
        }
        self.restrict_union(
            annotations,
            branches.into_iter().map(|(_, branch)| branch).collect(),
            accepts_null,
        )
    }
}

/// Adds the annotations of the union to one branch. The union's description goes first.
fn prepend_description(schema: &mut SchemaObject, annotations: &SchemaObject) {
    for (key, value) in annotations {
        match (key.as_str(), schema.get_mut(key), value) {
            ("description", Some(Value::String(description)), Value::String(prefix)) => {
                if description != prefix {
                    *description = format!("{prefix}\n{description}");
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                schema.insert(key.clone(), value.clone());
            }
        }
    }
}
