//! Alternatives, as far as a provider knows them.

use super::keyword::{self, Kind, Schema, annotates};
use super::meet::{self, join_values};
use super::narrow::Narrow;
use super::{Subset, note, object, tell};
use serde_json::Value;

/// One schema, or alternatives.
pub(super) enum Form {
    One(Schema),
    Many { about: Schema, branches: Vec<Schema>, null: bool },
}

impl Narrow {
    /// Decides what alternatives amount to beside what their parent says.
    pub(super) fn form(&mut self, parent: Schema, branches: Vec<Schema>) -> Form {
        let (mut open, mut null) = (Vec::new(), false);
        for branch in branches {
            self.flatten(branch, &mut open, &mut null);
        }
        let types = keyword::types(&parent);
        null &= types.is_empty() || types.contains(&"null");
        let (about, constraints): (Schema, Schema) =
            parent.clone().into_iter().partition(|(key, _)| annotates(key));
        if open.len() < 2 {
            let mut one = parent;
            match open.pop() {
                Some(branch) => {
                    let (met, dropped) = meet::meet(one, branch);
                    one = met;
                    for (key, value) in dropped {
                        self.lost = true;
                        tell(&mut one, &note(&key, &value));
                    }
                    if null {
                        keyword::allow_null(&mut one);
                    }
                }
                None if null => keyword::set_types(&mut one, &["null"]),
                None => {}
            }
            return Form::One(one);
        }
        if constraints.is_empty() {
            return Form::Many { about, branches: open, null };
        }
        if constraints.keys().any(|key| keyword::speaks_of(key) == Some(&["object"]))
            && object::can_be_object(&parent)
            && open.iter().all(object::can_be_object)
        {
            self.lost = true;
            return Form::One(object::unite(parent, open));
        }
        // Only what is small is repeated in every alternative.
        let small = |key: &String| {
            matches!(keyword::kind(key), Some(Kind::Types | Kind::Number | Kind::Count))
        };
        if constraints.keys().all(small) {
            let branches: Vec<Schema> = open
                .iter()
                .cloned()
                .filter_map(|branch| {
                    let (met, dropped) = meet::meet(branch, constraints.clone());
                    dropped.is_empty().then_some(met)
                })
                .collect();
            if branches.len() > 1 {
                return Form::Many { about, branches, null };
            }
        }
        self.lost = true;
        let mut one = parent;
        tell(&mut one, &note("anyOf", &open.into_iter().collect()));
        Form::One(one)
    }

    /// Takes a branch apart if it is nothing but alternatives itself.
    fn flatten(&mut self, branch: Schema, open: &mut Vec<Schema>, null: &mut bool) {
        let mut branch = self.folded(branch);
        if keyword::infer(&branch) == ["null"] {
            *null = true;
            return;
        }
        if keyword::is_never(&branch) {
            return;
        }
        if !branch.keys().all(|key| annotates(key) || key == "anyOf") {
            open.push(branch);
            return;
        }
        let Some(inner) = keyword::take_list(&mut branch, "anyOf") else {
            open.push(branch);
            return;
        };
        let start = open.len();
        for inner in inner {
            self.flatten(inner, open, null);
        }
        if let Some(first) = open.get_mut(start) {
            describe(first, &branch);
        }
    }

    /// Alternatives, each narrowed.
    pub(super) fn union(&mut self, about: Schema, branches: Vec<Schema>, null: bool) -> Schema {
        let (mut open, mut null) = (Vec::new(), null);
        for branch in branches {
            let narrowed = self.schema(branch);
            self.flatten(narrowed, &mut open, &mut null);
        }
        let mut about = self.about(about);
        if open.is_empty() {
            keyword::set_types(&mut about, &["null"]);
            return self.single(about);
        }
        if let Some(joined) = join_values(&open) {
            open = vec![joined];
        }
        if let [one] = open.as_mut_slice() {
            describe(one, &about);
            if null {
                self.allow_null(one);
            }
            return std::mem::take(one);
        }
        if self.subset == Subset::Gemini {
            // Nothing may stand beside alternatives there.
            if let Some(first) = open.first_mut() {
                describe(first, &about);
                if null {
                    self.allow_null(first);
                }
            }
            about = Schema::new();
        } else if null {
            open.push(Schema::from_iter([("type".to_owned(), "null".into())]));
        }
        about.insert("anyOf".into(), open.into_iter().collect());
        about
    }

    /// One alternative for each type, with the keywords that speak of it.
    pub(super) fn split(&mut self, schema: Schema, mut types: Vec<&'static str>) -> Schema {
        if types.contains(&"number") {
            types.retain(|name| *name != "integer");
        }
        let mut about = Schema::new();
        let mut branches: Vec<(&str, Schema)> = types
            .iter()
            .filter(|name| **name != "null")
            .map(|name| (*name, Schema::from_iter([("type".to_owned(), Value::from(*name))])))
            .collect();
        let mut null = types.contains(&"null");
        for (key, value) in schema {
            if key == "type" {
                continue;
            }
            if key == "enum"
                && let Value::Array(values) = &value
            {
                null &= values.contains(&Value::Null);
                branches.retain_mut(|(name, branch)| {
                    let fits = |value: &&Value| keyword::is_of(value, &[*name]);
                    let listed: Vec<Value> = values.iter().filter(fits).cloned().collect();
                    let any = !listed.is_empty();
                    branch.insert("enum".into(), listed.into());
                    any
                });
                continue;
            }
            let spoken: &[&str] = match key.as_str() {
                "format" => &["string"],
                key => keyword::speaks_of(key).unwrap_or_default(),
            };
            match branches.iter_mut().find(|(name, _)| spoken.contains(name)) {
                Some((_, branch)) => {
                    branch.insert(key, value);
                }
                None if spoken.is_empty() => {
                    about.insert(key, value);
                }
                None => {}
            }
        }
        self.union(about, branches.into_iter().map(|(_, branch)| branch).collect(), null)
    }
}

/// Adds what was said of a whole to one of its parts, first.
fn describe(schema: &mut Schema, about: &Schema) {
    for (key, value) in about {
        match (key.as_str(), schema.get_mut(key), value) {
            ("description", Some(Value::String(own)), Value::String(whole)) => {
                if own != whole {
                    *own = format!("{whole}\n{own}");
                }
            }
            (_, Some(_), _) => {}
            (_, None, value) => {
                schema.insert(key.clone(), value.clone());
            }
        }
    }
}
