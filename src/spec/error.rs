//! What is wrong with a pool, in words that a person can act on.

use std::fmt;

/// One mistake in a pool.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct SpecError {
    /// Path of the field at fault, such as `spec.services[0].maxStaleness`.
    pub field: String,
    /// What was found there and why it cannot be.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.field, self.problem, self.remedy)
    }
}

/// Collects every mistake of a pool, so that they are told at once.
#[derive(Debug, Default)]
pub(super) struct Mistakes(pub(super) Vec<SpecError>);

impl Mistakes {
    /// Notes a mistake.
    pub(super) fn note(&mut self, field: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(SpecError {
            field: field.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        });
    }

    /// Notes a mistake unless `holds`.
    pub(super) fn expect(&mut self, holds: bool, field: &str, problem: impl Into<String>, remedy: &str) {
        if !holds {
            self.note(field, problem, remedy);
        }
    }
}
