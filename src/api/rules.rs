//! What the API server refuses when a pool is written, and the sentence it answers with.
//!
//! Every rule is one row: where it applies, what must hold, and a message that names the field, the value found and what
//! to write instead. [`crate::spec`] checks the same again, because an object may have been stored before a rule existed and
//! because there is no API server without a cluster; one test keeps the two the same.
//!
//! Rules are CEL. Its cost is estimated from the largest values that the schema admits, which is why lists and texts are
//! bounded there. A text that is no duration is named by a rule of its own, so the other rules let it pass: a rule that
//! fails to evaluate would answer with a riddle. Only functions that the oldest supported API server has are used.

use std::{fmt, thread};

use kube::core::cel::{ErrorKind, Validator};
use serde_json::{Map, Value, json};

use super::crd;

mod table;

/// Stack for evaluating the rules: their parser descends through every level of a grammar for each bracket, and what it
/// needs without optimisation lies between 2 and 4 MiB.
const STACK: usize = 16 << 20;

/// One rule of admission.
struct Rule {
    /// Where in the schema it stands: property names, `[]` for the items of a list.
    at: &'static str,
    /// What must hold of `self`.
    holds: String,
    /// The sentence, as an expression.
    sentence: String,
    /// The field that is at fault, below `at`.
    field: Option<&'static str>,
}

/// A rule that a pool breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Path of the value that the rule stands at, such as `spec.services[0]`.
    pub field: String,
    /// That value, when it is a text or a number.
    pub value: Option<String>,
    /// What is wrong with it and what to write instead.
    pub sentence: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_ref().map_or(String::new(), |value| format!("{value}: "));
        write!(f, "{}: {value}{}", self.field, self.sentence)
    }
}

/// Every rule that `object` breaks, evaluated here instead of by an API server; `old` is what it replaces.
///
/// # Panics
///
/// When the system has no thread to give.
pub fn violations(object: &Value, old: Option<&Value>) -> Vec<Violation> {
    let errors = thread::scope(|scope| {
        let evaluate = || Validator::new().validate(&crd::schema(), object, old);
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, evaluate);
        thread.expect("a thread can be started").join()
    });
    let errors = match errors {
        Ok(Ok(())) => return Vec::new(),
        Ok(Err(errors)) => errors,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    errors
        .into_iter()
        .map(|error| Violation {
            sentence: match error.kind {
                ErrorKind::ValidationFailure => error.message,
                _ => format!("rule {} could not be evaluated: {}", error.rule, error.message),
            },
            value: scalar(object, &error.field_path),
            field: error.field_path,
        })
        .collect()
}

/// The text or number at `path` of `object`.
fn scalar(object: &Value, path: &str) -> Option<String> {
    let pointer = path.replace(['.', '['], "/").replace(']', "");
    let value = object.pointer(&format!("/{pointer}"))?;
    (value.is_string() || value.is_number()).then(|| value.to_string())
}

/// Puts every rule in its place in the schema.
pub(super) fn add_to(schema: &mut Value) {
    for rule in table::all() {
        let mut entry = Map::new();
        entry.insert("rule".into(), rule.holds.into());
        entry.insert("messageExpression".into(), rule.sentence.into());
        if let Some(field) = rule.field {
            entry.insert("fieldPath".into(), format!(".{field}").into());
        }
        let place = place(schema, rule.at);
        match place.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
            Some(rules) => rules.push(entry.into()),
            None => place["x-kubernetes-validations"] = json!([entry]),
        }
    }
}

fn place<'a>(schema: &'a mut Value, path: &str) -> &'a mut Value {
    path.split('.')
        .filter(|step| !step.is_empty())
        .fold(schema, |place, step| {
            let (name, is_list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
            let property = &mut place["properties"][name];
            if is_list { &mut property["items"] } else { property }
        })
}

fn rule(at: &'static str, holds: impl Into<String>, sentence: impl Into<String>) -> Rule {
    Rule {
        at,
        holds: holds.into(),
        sentence: sentence.into(),
        field: None,
    }
}

impl Rule {
    fn of(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }
}
