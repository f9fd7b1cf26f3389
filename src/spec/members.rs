//! Parses who is a member and how the primary is told apart.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::error::Mistakes;
use super::selector::Selector;
use super::syntax;
use crate::api::v1alpha1::{Detect, Host, Members, Operator, PodSelector, Primary, Requirement};
use crate::api::{MAX_LABEL, MAX_MEMBERS, MAX_SELECTOR};

/// The port of PostgreSQL.
const DEFAULT_PORT: u16 = 5432;

/// Where members come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MemberSource {
    /// Pods of the pool's namespace.
    Pods {
        /// Which pods.
        selector: Selector,
        /// Where each is measured.
        port: u16,
    },
    /// Servers at fixed addresses, at least one, names unique.
    Hosts(Vec<HostMember>),
}

/// A server at a fixed address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostMember {
    /// Name of the member.
    pub name: String,
    /// DNS name or address that is connected to.
    pub host: String,
    /// Port that is connected to.
    pub port: u16,
    /// Zone for the endpoint.
    pub zone: Option<String>,
    /// Address to publish; absent when it is the one that `host` is or resolves to.
    pub publish_address: Option<IpAddr>,
}

/// Which member may be the primary; its server must say so too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PrimarySource {
    /// Any that says it is.
    Any,
    /// The pod with this label.
    Label {
        /// Key of the label.
        key: String,
        /// Its value.
        value: String,
    },
    /// The member of this name.
    Named(String),
}

/// The member source; `None` when a mistake was noted.
pub(super) fn source(members: &Members, mistakes: &mut Mistakes) -> Option<MemberSource> {
    let default = port(members.port, DEFAULT_PORT, "spec.members.port", mistakes);
    let remedy = "give podSelector for pods, or hosts for servers outside the cluster";
    match (&members.pod_selector, &members.hosts) {
        (Some(_), Some(_)) => {
            mistakes.note("spec.members", "has both podSelector and hosts", "remove one of them");
            None
        }
        (None, None) => {
            mistakes.note("spec.members", "has neither podSelector nor hosts", remedy);
            None
        }
        (Some(selector), None) => Some(MemberSource::Pods {
            selector: pods(selector, mistakes)?,
            port: default?,
        }),
        (None, Some(hosts)) => self::hosts(hosts, default.unwrap_or(DEFAULT_PORT), mistakes).map(MemberSource::Hosts),
    }
}

fn port(port: Option<i32>, default: u16, field: &str, mistakes: &mut Mistakes) -> Option<u16> {
    let Some(number) = port else { return Some(default) };
    let valid = u16::try_from(number).ok().filter(|n| *n > 0);
    mistakes.expect(
        valid.is_some(),
        field,
        format!("{number} is not a port"),
        "choose from 1 to 65535",
    );
    valid
}

fn pods(selector: &PodSelector, mistakes: &mut Mistakes) -> Option<Selector> {
    let at = "spec.members.podSelector";
    let none = (BTreeMap::new(), Vec::new());
    let labels = selector.match_labels.as_ref().unwrap_or(&none.0);
    let expressions = selector.match_expressions.as_ref().unwrap_or(&none.1);
    let before = mistakes.0.len();
    mistakes.expect(
        !labels.is_empty() || !expressions.is_empty(),
        at,
        "is empty and would select every pod of the namespace",
        "give it matchLabels or matchExpressions",
    );
    for (what, count) in [("matchLabels", labels.len()), ("matchExpressions", expressions.len())] {
        let problem = format!("has {count} entries");
        mistakes.expect(
            count <= MAX_SELECTOR,
            &format!("{at}.{what}"),
            problem,
            "keep at most 16",
        );
    }
    for (key, value) in labels {
        label(key, value, &format!("{at}.matchLabels"), mistakes);
    }
    for (i, expression) in expressions.iter().enumerate() {
        requirement(expression, &format!("{at}.matchExpressions[{i}]"), mistakes);
    }
    let labels = labels.iter().map(|(k, v)| (k.clone(), Operator::In, vec![v.clone()]));
    let expressions = expressions
        .iter()
        .map(|r| (r.key.clone(), r.operator, r.values.clone().unwrap_or_default()));
    (mistakes.0.len() == before).then(|| Selector::new(labels.chain(expressions)))
}

fn label(key: &str, value: &str, field: &str, mistakes: &mut Mistakes) {
    let (key_remedy, value_remedy) = (
        "write it as on the pods, such as app or app.kubernetes.io/name",
        "write it as on the pods",
    );
    mistakes.expect(
        syntax::is_label_key(key),
        field,
        format!("{key:?} is not a label key"),
        key_remedy,
    );
    mistakes.expect(
        syntax::is_label_value(value),
        field,
        format!("{value:?} is not a label value"),
        value_remedy,
    );
}

fn requirement(requirement: &Requirement, field: &str, mistakes: &mut Mistakes) {
    let values = requirement.values.as_deref().unwrap_or_default();
    for value in values.iter().map(String::as_str).chain(values.is_empty().then_some("")) {
        label(&requirement.key, value, field, mistakes);
    }
    let operator = requirement.operator.as_str();
    let takes_values = matches!(requirement.operator, Operator::In | Operator::NotIn);
    let field = &format!("{field}.values");
    if takes_values && values.is_empty() {
        let remedy = "add at least one value, or use Exists or DoesNotExist";
        mistakes.note(field, format!("is missing, and operator is {operator}"), remedy);
    } else if !takes_values && !values.is_empty() {
        mistakes.note(
            field,
            format!("is given, and operator is {operator}"),
            "remove values, or use In or NotIn",
        );
    }
    mistakes.expect(
        values.len() <= MAX_SELECTOR,
        field,
        format!("has {} entries", values.len()),
        "keep at most 16",
    );
}

fn hosts(hosts: &[Host], default: u16, mistakes: &mut Mistakes) -> Option<Vec<HostMember>> {
    let problem = format!("has {} entries", hosts.len());
    let fits = (1..=MAX_MEMBERS).contains(&hosts.len());
    mistakes.expect(fits, "spec.members.hosts", problem, "give 1 to 100 servers");
    let before = mistakes.0.len();
    let parsed: Vec<_> = hosts
        .iter()
        .enumerate()
        .filter_map(|(i, h)| host(h, default, &format!("spec.members.hosts[{i}]"), mistakes))
        .collect();
    distinct(&parsed, mistakes);
    (fits && mistakes.0.len() == before).then_some(parsed)
}

fn host(host: &Host, default: u16, at: &str, mistakes: &mut Mistakes) -> Option<HostMember> {
    let (name, address) = (&host.name, &host.host);
    mistakes.expect(
        syntax::is_dns_label(name),
        &format!("{at}.name"),
        format!("{name:?} is not a member name"),
        "use lower-case letters, digits and dashes, such as pg-a",
    );
    mistakes.expect(
        syntax::is_host(address),
        &format!("{at}.host"),
        format!("{address:?} is neither a DNS name nor an IP address"),
        "write the name or address alone, and the port in port",
    );
    if let Some(zone) = &host.zone {
        mistakes.expect(
            !zone.is_empty() && syntax::is_label_value(zone),
            &format!("{at}.zone"),
            format!("{zone:?} is not a zone"),
            "write it as in the nodes' label topology.kubernetes.io/zone",
        );
    }
    let publish_address = host.publish_address.as_deref().map(syntax::address);
    mistakes.expect(
        publish_address != Some(None),
        &format!("{at}.publishAddress"),
        format!(
            "{:?} is not an IP address",
            host.publish_address.as_deref().unwrap_or_default()
        ),
        "endpoints of a Service hold addresses, not names",
    );
    Some(HostMember {
        name: name.clone(),
        host: address.clone(),
        port: port(host.port, default, &format!("{at}.port"), mistakes)?,
        zone: host.zone.clone(),
        publish_address: publish_address.flatten(),
    })
}

/// Notes each pair of hosts that could not be told apart, once.
fn distinct(hosts: &[HostMember], mistakes: &mut Mistakes) {
    let published = |h: &HostMember| {
        (
            h.publish_address.map_or_else(|| h.host.clone(), |a| a.to_string()),
            h.port,
        )
    };
    for (i, later) in hosts.iter().enumerate() {
        let find = |same: &dyn Fn(&HostMember) -> bool| hosts[..i].iter().find(|h| same(h)).map(|h| h.name.clone());
        let mut note = |earlier: Option<String>, problem: &str, remedy: &str| {
            if let Some(earlier) = earlier {
                let problem = format!("{earlier:?} and {:?} {problem}", later.name);
                mistakes.note(format!("spec.members.hosts[{i}]"), problem, remedy);
            }
        };
        let twin = find(&|h| (&h.host, h.port) == (&later.host, later.port));
        let twice = if twin.is_some() {
            None
        } else {
            find(&|h| published(h) == published(later))
        };
        note(
            find(&|h| h.name == later.name),
            "have the same name",
            "give each a name of its own",
        );
        note(
            twin,
            "have the same host and port",
            "a server is a member once, remove one of them",
        );
        note(
            twice,
            "would be published with the same address and port",
            "give each a publishAddress of its own",
        );
    }
}

/// How the primary is told apart; `None` when a mistake was noted.
pub(super) fn primary(primary: &Primary, members: &Members, mistakes: &mut Mistakes) -> Option<PrimarySource> {
    let before = mistakes.0.len();
    let detect = primary.detect.as_str();
    only_with(
        Detect::Label,
        primary.detect,
        primary.pod_label.is_some(),
        "podLabel",
        mistakes,
    );
    only_with(Detect::Host, primary.detect, primary.host.is_some(), "host", mistakes);
    mistakes.expect(
        primary.detect != Detect::Label || members.pod_selector.is_some(),
        "spec.primary.detect",
        format!("is {detect}, but members has no podSelector, and hosts carry no labels"),
        "use Auto or Host",
    );
    if let Some(l) = &primary.pod_label {
        label(&l.key, &l.value, "spec.primary.podLabel", mistakes);
        let remedy = "give the value that marks the primary";
        mistakes.expect(!l.value.is_empty(), "spec.primary.podLabel.value", "is empty", remedy);
    }
    if let (Detect::Host, Some(name)) = (primary.detect, &primary.host) {
        let known = members
            .hosts
            .as_ref()
            .is_none_or(|hosts| hosts.iter().any(|h| h.name == *name));
        let problem = format!("is {name:?}, and no member of members.hosts has this name");
        mistakes.expect(known, "spec.primary.host", problem, "use one of their names");
    }
    if mistakes.0.len() > before {
        return None;
    }
    Some(match (primary.detect, &primary.pod_label, &primary.host) {
        (Detect::Label, Some(label), _) => PrimarySource::Label {
            key: label.key.clone(),
            value: label.value.clone(),
        },
        (Detect::Host, _, Some(name)) => PrimarySource::Named(name.clone()),
        (Detect::Auto | Detect::Label | Detect::Host, _, _) => PrimarySource::Any,
    })
}

fn only_with(wanted: Detect, found: Detect, given: bool, field: &str, mistakes: &mut Mistakes) {
    let path = format!("spec.primary.{field}");
    let wanted_word = wanted.as_str();
    if found == wanted && !given {
        let remedy = match wanted {
            Detect::Host => "give the name of the member that is the primary",
            Detect::Label | Detect::Auto => "give key and value of the label that marks the primary",
        };
        mistakes.note(path, format!("is missing, and detect is {wanted_word}"), remedy);
    } else if found != wanted && given {
        let remedy = format!("use detect: {wanted_word}, or remove {field}");
        mistakes.note(path, format!("is given, but detect is {}", found.as_str()), remedy);
    }
}

/// Longest name that goes into a label.
pub(super) const MAX_NAME: usize = MAX_LABEL;
