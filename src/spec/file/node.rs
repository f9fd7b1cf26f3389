//! The shape of a document: which fields stand where. Values are not kept, so that none can be told.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_yaml::Spanned;

use super::FileError;

/// A value, where it stands, and what it holds.
#[derive(Debug, Default)]
pub(super) struct Node {
    line: u64,
    column: u64,
    inner: Inner,
}

#[derive(Debug, Default)]
enum Inner {
    #[default]
    Scalar,
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
struct Key {
    name: String,
    line: u64,
    column: u64,
}

impl Node {
    /// An error at this place.
    pub(super) fn error(&self, message: String) -> FileError {
        FileError {
            line: self.line.max(1),
            column: self.column.max(1),
            message,
        }
    }

    /// An error of form, with the field that it is about and what the field takes.
    pub(super) fn named(&self, error: FileError, schema: &Value) -> FileError {
        let (path, schema) = self.field_at((error.line, error.column), String::new(), schema);
        if path.is_empty() {
            return error;
        }
        let values = schema["enum"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let remedy = match schema["type"].as_str() {
            _ if !values.is_empty() => format!("one of {}", values.join(", ")),
            Some("boolean") => "true or false".into(),
            Some("integer") => "a whole number".into(),
            Some("array") => "a list".into(),
            Some("object") => "fields of its own".into(),
            Some(_) | None => "text".into(),
        };
        let message = format!("{path}: {}; write {remedy}, or leave it out", error.message);
        FileError { message, ..error }
    }

    /// The path of the last field that begins at or before a place, and its schema.
    fn field_at<'a>(&self, place: (u64, u64), path: String, schema: &'a Value) -> (String, &'a Value) {
        let before = |node: &Node| (node.line, node.column) <= place;
        match &self.inner {
            Inner::Map(fields) => {
                let known = &schema["properties"];
                let field = fields
                    .iter()
                    .rfind(|(key, value)| (key.line, key.column) <= place && before(value));
                field.map(|(key, value)| {
                    let below = if path.is_empty() {
                        key.name.clone()
                    } else {
                        format!("{path}.{}", key.name)
                    };
                    value.field_at(place, below, &known[&key.name])
                })
            }
            Inner::List(items) => {
                let item = items.iter().enumerate().rfind(|(_, item)| before(item));
                item.map(|(i, item)| item.field_at(place, format!("{path}[{i}]"), &schema["items"]))
            }
            Inner::Scalar => None,
        }
        .unwrap_or((path, schema))
    }

    /// The value at `path`, such as `spec.services[0].name`, or the last one on the way there.
    pub(super) fn nearest(&self, path: &str) -> &Node {
        let mut node = self;
        for step in path.split(['.', '[']) {
            let next = match (&node.inner, step.strip_suffix(']')) {
                (Inner::List(items), Some(index)) => index.parse().ok().and_then(|i: usize| items.get(i)),
                (Inner::Map(fields), None) => fields.iter().find(|(key, _)| key.name == step).map(|(_, value)| value),
                (Inner::Scalar | Inner::List(_) | Inner::Map(_), _) => None,
            };
            let Some(next) = next else { break };
            node = next;
        }
        node
    }

    /// An error for each field that `schema` does not have.
    pub(super) fn unknown_fields(&self, schema: &Value) -> Vec<FileError> {
        let mut errors = Vec::new();
        self.find_unknown(schema, schema, "", &mut errors);
        errors
    }

    fn find_unknown(&self, schema: &Value, root: &Value, path: &str, errors: &mut Vec<FileError>) {
        match &self.inner {
            Inner::Scalar => {}
            Inner::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    item.find_unknown(&schema["items"], root, &format!("{path}[{i}]"), errors);
                }
            }
            Inner::Map(fields) => {
                // A map of free keys, or metadata, which the schema leaves to Kubernetes.
                let Some(known) = schema["properties"].as_object() else {
                    return;
                };
                for (key, value) in fields {
                    let below = if path.is_empty() {
                        key.name.clone()
                    } else {
                        format!("{path}.{}", key.name)
                    };
                    match known.get(&key.name) {
                        Some(schema) => value.find_unknown(schema, root, &below, errors),
                        None if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&&*key.name) => {}
                        None => errors.push(key.unknown(path, known.keys(), root)),
                    }
                }
            }
        }
    }
}

impl Key {
    fn unknown<'a>(&self, path: &str, known: impl Iterator<Item = &'a String> + Clone, root: &Value) -> FileError {
        let name = &self.name;
        let close = known
            .clone()
            .filter(|k| distance(k, name) <= 2)
            .min_by_key(|k| distance(k, name));
        let remedy = match (close, place_of(root, name, "")) {
            (Some(close), _) => format!("did you mean {close}"),
            (None, Some(place)) => format!("it belongs to {place}"),
            (None, None) => format!("there are {}", known.map(String::as_str).collect::<Vec<_>>().join(", ")),
        };
        let place = if path.is_empty() { "a ReplicaPool" } else { path };
        FileError {
            line: self.line,
            column: self.column,
            message: format!("{place} has no field {name}: {remedy}"),
        }
    }
}

/// Where the schema has a field of this name.
fn place_of(schema: &Value, name: &str, path: &str) -> Option<String> {
    if schema["items"].is_object() {
        return place_of(&schema["items"], name, &format!("{path}[]"));
    }
    let fields = schema["properties"].as_object()?;
    if fields.contains_key(name) && !path.is_empty() {
        return Some(path.to_owned());
    }
    let visible = fields.iter().filter(|(field, _)| *field != "status");
    visible.into_iter().find_map(|(field, below)| {
        let path = if path.is_empty() {
            field.clone()
        } else {
            format!("{path}.{field}")
        };
        place_of(below, name, &path)
    })
}

/// How many letters differ: Levenshtein's distance, case aside.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Inner>::deserialize(deserializer)?;
        Ok(Self {
            line: referenced.line(),
            column: referenced.column(),
            inner: value,
        })
    }
}

impl<'de> Deserialize<'de> for Inner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Shape)
    }
}

struct Shape;

impl<'de> Visitor<'de> for Shape {
    type Value = Inner;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Inner, A::Error> {
        let mut fields = Vec::new();
        while let Some(Spanned { value, referenced, .. }) = map.next_key::<Spanned<String>>()? {
            let key = Key {
                name: value,
                line: referenced.line(),
                column: referenced.column(),
            };
            fields.push((key, map.next_value()?));
        }
        Ok(Inner::Map(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Inner, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Inner::List(items))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_none<E>(self) -> Result<Inner, E> {
        Ok(Inner::Scalar)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Inner, D::Error> {
        Inner::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Inner, D::Error> {
        IgnoredAny::deserialize(deserializer)?;
        Ok(Inner::Scalar)
    }
}
