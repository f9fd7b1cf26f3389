//! The pools of `tests/pools/`: what is refused and what is accepted, as data.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

/// Who of the API server's judges refuses a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Judge {
    #[default]
    Rule,
    Schema,
    Nobody,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    what: String,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    change: Value,
    #[serde(default)]
    field: String,
    #[serde(default)]
    server: Option<String>,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    by: Judge,
}

/// A pool, and what is to be said about it.
pub(crate) struct Case {
    pub what: String,
    pub pool: Value,
    pub field: String,
    pub server_field: String,
    pub says: Vec<String>,
    pub by: Judge,
}

impl Case {
    /// The words that `text` lacks: the field's name and all that must be said.
    pub(crate) fn missing(&self, text: &str, field: &str) -> Vec<String> {
        let wanted = std::iter::once(field).chain(self.says.iter().map(String::as_str));
        wanted.filter(|word| !text.contains(word)).map(String::from).collect()
    }
}

/// The cases of `tests/pools/<name>.yaml`.
pub(crate) fn cases(name: &str) -> Vec<Case> {
    let read = |name: &str| fs::read_to_string(format!("tests/pools/{name}.yaml")).unwrap();
    let bases: Value = serde_yaml::from_str(&read("base")).unwrap();
    let entries: Vec<Entry> = serde_yaml::from_str(&read(name)).unwrap();
    entries
        .into_iter()
        .map(|entry| {
            let mut pool = bases[entry.base.as_deref().unwrap_or("pods")].clone();
            merge(&mut pool, &entry.change);
            Case {
                what: entry.what,
                pool,
                server_field: entry.server.unwrap_or_else(|| entry.field.clone()),
                field: entry.field,
                says: entry.says,
                by: entry.by,
            }
        })
        .collect()
}

/// Applies a JSON merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        if !patch.is_null() {
            *target = patch.clone();
        }
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, change) in patch {
        if change.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], change);
        }
    }
}
