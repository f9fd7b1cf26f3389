//! A pod selector, parsed: as a query for the API server, and as a test of labels that are at hand.

use std::collections::BTreeMap;
use std::fmt;

use crate::api::v1alpha1::Operator;

/// Which pods are members. Never empty, so it never selects a whole namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One requirement; `values` is empty for the operators that take none.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Selector {
    /// A selector of these requirements, which the caller has checked: keys and values are well formed, and values are
    /// there when the operator takes some.
    pub(super) fn new(requirements: impl IntoIterator<Item = (String, Operator, Vec<String>)>) -> Self {
        let requirements = requirements
            .into_iter()
            .map(|(key, operator, values)| Requirement { key, operator, values })
            .collect();
        Self { requirements }
    }

    /// Whether a pod with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|r| {
            let value = labels.get(&r.key);
            let listed = value.is_some_and(|v| r.values.contains(v));
            match r.operator {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
    }
}

/// The form that the API server's `labelSelector` parameter and `kubectl get -l` take.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Requirement { key, operator, values }) in self.requirements.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match (operator, values.as_slice()) {
                (Operator::In, [value]) => write!(f, "{comma}{key}={value}")?,
                (Operator::In, _) => write!(f, "{comma}{key} in ({})", values.join(","))?,
                (Operator::NotIn, _) => write!(f, "{comma}{key} notin ({})", values.join(","))?,
                (Operator::Exists, _) => write!(f, "{comma}{key}")?,
                (Operator::DoesNotExist, _) => write!(f, "{comma}!{key}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(requirements: &[(&str, Operator, &[&str])]) -> Selector {
        Selector::new(
            requirements
                .iter()
                .map(|(k, o, v)| (String::from(*k), *o, v.iter().map(|v| String::from(*v)).collect())),
        )
    }

    #[test]
    fn it_selects_as_kubernetes_does() {
        let labels = BTreeMap::from([("app".into(), "db".into()), ("tier".into(), String::new())]);
        for (requirement, selected) in [
            (("app", Operator::In, &["db", "x"][..]), true),
            (("app", Operator::In, &["x"]), false),
            (("absent", Operator::In, &["x"]), false),
            (("app", Operator::NotIn, &["db"]), false),
            (("absent", Operator::NotIn, &["db"]), true),
            (("tier", Operator::Exists, &[]), true),
            (("absent", Operator::Exists, &[]), false),
            (("tier", Operator::In, &[""]), true),
            (("app", Operator::DoesNotExist, &[]), false),
            (("absent", Operator::DoesNotExist, &[]), true),
        ] {
            assert_eq!(selector(&[requirement]).matches(&labels), selected, "{requirement:?}");
        }
    }

    #[test]
    fn all_requirements_must_be_met_and_are_written_in_order() {
        let both = selector(&[
            ("app", Operator::In, &["db"]),
            ("role", Operator::In, &["primary", "replica"]),
            ("job", Operator::DoesNotExist, &[]),
            ("zone", Operator::NotIn, &["c"]),
            ("tier", Operator::Exists, &[]),
        ]);
        assert_eq!(
            both.to_string(),
            "app=db,role in (primary,replica),!job,zone notin (c),tier"
        );
        let mut labels = BTreeMap::from([
            ("app".to_owned(), "db".to_owned()),
            ("role".into(), "replica".into()),
            ("tier".into(), "1".into()),
        ]);
        assert!(both.matches(&labels));
        labels.insert("job".into(), "backup".into());
        assert!(!both.matches(&labels));
    }
}
