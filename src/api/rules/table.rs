//! The rules, row by row.

use super::{Rule, rule};
use crate::api::{MAX_LABEL, duration, pattern as form};

/// Every rule.
pub(super) fn all() -> Vec<Rule> {
    [
        pool(),
        members(),
        selector(),
        hosts(),
        primary(),
        connection(),
        durations(),
        services(),
        feasibility(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn pool() -> Vec<Rule> {
    vec![
        rule(
            "",
            format!("self.metadata.name.size() <= {MAX_LABEL}"),
            format!(
                "'metadata.name has %s characters, and it is written to a label, which holds {MAX_LABEL}: choose a shorter \
                 name'.format([string(self.metadata.name.size())])"
            ),
        ),
        rule(
            "spec.engine",
            "self == oldSelf",
            "'engine cannot be changed from ' + oldSelf + ' to ' + self + ': make another pool'",
        ),
    ]
}

fn members() -> Vec<Rule> {
    vec![rule(
        "spec.members",
        "has(self.podSelector) != has(self.hosts)",
        "has(self.hosts) ? 'members has both podSelector and hosts: remove one of them' : 'members has neither podSelector \
             nor hosts: give podSelector for pods, or hosts for servers outside the cluster'",
    )]
}

fn selector() -> Vec<Rule> {
    vec![
        rule(
            "spec.members.podSelector",
            "(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && \
             self.matchExpressions.size() > 0)",
            "'podSelector is empty and would select every pod of the namespace: give it matchLabels or matchExpressions'",
        ),
        rule(
            "spec.members.podSelector.matchExpressions[]",
            "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
            "self.operator in ['In', 'NotIn'] ? 'values is missing, and operator is ' + self.operator + ': add at least one \
             value, or use Exists or DoesNotExist' : 'values is given, and operator is ' + self.operator + ': remove values, \
             or use In or NotIn'",
        )
        .of("values"),
        matches("spec.members.podSelector.matchExpressions[].key", form::LABEL_KEY, "not a label key: write it as on the pods, such as app or app.kubernetes.io/name"),
        rule(
            "spec.members.podSelector.matchExpressions[].values",
            format!("self.all(v, v.matches('{}'))", form::LABEL_VALUE),
            format!(
                "'\"%s\" is not a label value: write it as on the pods'.format(self.filter(v, !v.matches('{}')))",
                form::LABEL_VALUE
            ),
        ),
    ]
}

fn hosts() -> Vec<Rule> {
    let port = |host: &str| format!("(has({host}.port) ? {host}.port : (has(self.port) ? self.port : 5432))");
    let published = |host: &str| format!("(has({host}.publishAddress) ? {host}.publishAddress : {host}.host)");
    let same =
        |what: &dyn Fn(&str) -> String| format!("{} == {} && {} == {}", what("o"), what("h"), port("o"), port("h"));
    let measured_alone = format!("self.hosts.exists_one(o, {})", same(&|h| format!("{h}.host")));
    let published_alone = format!("self.hosts.exists_one(o, {})", same(&published));
    vec![
        rule(
            "spec.members",
            format!("!has(self.hosts) || self.hosts.all(h, {measured_alone})"),
            format!(
                "'hosts \"%s\" and \"%s\" have the same host and port: a server is a member once, remove one of \
                 them'.format(self.hosts.filter(h, !{measured_alone}).map(h, h.name))"
            ),
        )
        .of("hosts"),
        rule(
            "spec.members",
            format!("!has(self.hosts) || !self.hosts.all(h, {measured_alone}) || self.hosts.all(h, {published_alone})"),
            format!(
                "'hosts \"%s\" and \"%s\" would be published with the same address and port: give each a publishAddress of \
                 its own'.format(self.hosts.filter(h, !{published_alone}).map(h, h.name))"
            ),
        )
        .of("hosts"),
        matches("spec.members.hosts[].name", form::DNS_LABEL, "not a member name: use lower-case letters, digits and dashes, such as pg-a"),
        rule(
            "spec.members.hosts[].host",
            format!("self.matches('{}') || isIP(self)", form::HOST_NAME),
            "'neither a DNS name nor an IP address: write the name or address alone, and the port in port'",
        ),
        rule(
            "spec.members.hosts[].publishAddress",
            "isIP(self)",
            "'not an IP address: endpoints of a Service hold addresses, not names'",
        ),
        matches("spec.members.hosts[].zone", form::LABEL_VALUE, "not a zone: write it as in the nodes' label topology.kubernetes.io/zone"),
    ]
}

fn primary() -> Vec<Rule> {
    vec![
        rule(
            "spec.primary",
            "(self.detect == 'Label') == has(self.podLabel)",
            "self.detect == 'Label' ? 'detect is Label, but podLabel is missing: give key and value of the label that marks the \
             primary' : 'podLabel is given, but detect is ' + self.detect + ': use detect: Label, or remove podLabel'",
        )
        .of("podLabel"),
        rule(
            "spec.primary",
            "(self.detect == 'Host') == has(self.host)",
            "self.detect == 'Host' ? 'detect is Host, but host is missing: give the name of the member that is the primary' : \
             'host is given, but detect is ' + self.detect + ': use detect: Host, or remove host'",
        )
        .of("host"),
        rule(
            "spec",
            "self.primary.detect != 'Label' || has(self.members.podSelector)",
            "'primary.detect is Label, but members has no podSelector, and hosts carry no labels: use Auto or Host'",
        )
        .of("primary.detect"),
        rule(
            "spec",
            "self.primary.detect != 'Host' || !has(self.primary.host) || !has(self.members.hosts) || \
             self.members.hosts.exists(h, h.name == self.primary.host)",
            "'primary.host is \"' + self.primary.host + '\", and no member of members.hosts has this name: use one of their \
             names'",
        )
        .of("primary.host"),
        matches("spec.primary.podLabel.key", form::LABEL_KEY, "not a label key: write it as on the pods, such as cnpg.io/instanceRole"),
        matches("spec.primary.podLabel.value", form::LABEL_VALUE, "not a label value: write it as on the pods"),
    ]
}

fn connection() -> Vec<Rule> {
    let secret_name = "not the name of a Secret: use lower-case letters, digits, dashes and dots";
    let secret_key = "not a key of a Secret: use letters, digits, dashes, underscores and dots";
    vec![
        matches("spec.credentials.secretName", form::DNS_NAME, secret_name),
        matches("spec.credentials.usernameKey", form::SECRET_KEY, secret_key),
        matches("spec.credentials.passwordKey", form::SECRET_KEY, secret_key),
        matches("spec.tls.caSecretName", form::DNS_NAME, secret_name),
        matches("spec.tls.caKey", form::SECRET_KEY, secret_key),
        matches("spec.tls.serverName", form::HOST_NAME, "not a DNS name: write the name that the certificate carries"),
        rule(
            "spec.tls",
            "(self.mode in ['VerifyCA', 'VerifyFull']) == has(self.caSecretName)",
            "has(self.caSecretName) ? 'caSecretName is given, but mode is ' + self.mode + ', which verifies nothing: use \
             VerifyCA or VerifyFull, or remove caSecretName' : 'mode is ' + self.mode + ', but caSecretName is missing: name \
             the Secret with the certificates of the authority, or use Require'",
        )
        .of("caSecretName"),
        rule(
            "spec.tls",
            "!has(self.serverName) || self.mode == 'VerifyFull'",
            "'serverName is given, but mode is ' + self.mode + ', which compares no name: use VerifyFull, or remove serverName'",
        )
        .of("serverName"),
        rule(
            "spec",
            "self.tls.mode != 'VerifyFull' || has(self.tls.serverName) || !has(self.members.podSelector)",
            "'tls.mode is VerifyFull, but tls.serverName is missing: pods are connected to by address, so name what their \
             certificates carry, or use VerifyCA'",
        )
        .of("tls.serverName"),
    ]
}

/// That every duration is one, and lies within its range.
fn durations() -> Vec<Rule> {
    let within = [
        ("spec.measurement.samplePeriod", "20ms", "60s"),
        ("spec.measurement.probePeriod", "20ms", "60s"),
        ("spec.measurement.probeTimeout", "50ms", "60s"),
        ("spec.services[].maxStaleness", "500ms", "24h"),
        ("spec.services[].propagationBudget", "0s", "24h"),
        ("spec.services[].hardMaxStaleness", "0s", "720h"),
    ];
    within
        .into_iter()
        .flat_map(|(at, least, most)| {
            [
                rule(
                    at,
                    is_duration("self"),
                    format!("'not a duration: {}'", duration::REMEDY),
                ),
                rule(
                    at,
                    format!(
                        "!{} || (duration(self) >= duration('{least}') && duration(self) <= duration('{most}'))",
                        is_duration("self")
                    ),
                    format!("'out of range: choose from {least} to {most}'"),
                ),
            ]
        })
        .collect()
}

fn services() -> Vec<Rule> {
    let longer = |a: &str, b: &str| {
        format!(
            "!has(self.{a}) || !{} || !{} || duration(self.{a}) ",
            is_duration(&format!("self.{a}")),
            is_duration(&format!("self.{b}"))
        )
    };
    vec![
        matches("spec.services[].name", form::DNS_LABEL, "is not the name of a Service: use lower-case letters, digits and dashes"),
        rule(
            "spec.services[]",
            longer("hardMaxStaleness", "maxStaleness") + ">= duration(self.maxStaleness)",
            "'hardMaxStaleness ' + self.hardMaxStaleness + ' is below maxStaleness ' + self.maxStaleness + ': raise it, or \
             remove it to have 30 times maxStaleness'",
        )
        .of("hardMaxStaleness"),
        rule(
            "spec.services[]",
            "!has(self.propagationBudget) || self.mode == 'Strict'",
            "'propagationBudget is given, but mode is ' + self.mode + ', which does not use it: use mode: Strict, or remove \
             propagationBudget'",
        )
        .of("propagationBudget"),
        rule(
            "spec.services[]",
            longer("propagationBudget", "maxStaleness") + "< duration(self.maxStaleness)",
            "'propagationBudget ' + self.propagationBudget + ' is not below maxStaleness ' + self.maxStaleness + ': nobody \
             could ever serve, lower it or raise maxStaleness'",
        )
        .of("propagationBudget"),
        rule(
            "spec.services[]",
            "self.fallback.all(f, self.fallback.exists_one(g, g == f))",
            "'fallback names ' + self.fallback.filter(f, !self.fallback.exists_one(g, g == f))[0] + ' more than once: keep the \
             first'",
        )
        .of("fallback"),
        rule(
            "spec.services[]",
            "!self.fallback.exists(f, f == 'None') || self.fallback[self.fallback.size() - 1] == 'None'",
            "'fallback has ' + self.fallback[self.fallback.size() - 1] + ' after None, which ends the list: put None last, or \
             remove it'",
        )
        .of("fallback"),
        rule(
            "spec.services[]",
            "self.primaryMaxSharePercent > 0 || !self.fallback.exists(f, f == 'Primary')",
            "'primaryMaxSharePercent is 0, but fallback names Primary: raise it to the largest share the primary may get, or \
             remove Primary'",
        )
        .of("primaryMaxSharePercent"),
        rule(
            "spec",
            "!has(self.members.hosts) || self.members.hosts.size() == 0 || self.services.all(s, s.minEndpoints <= self.members.hosts.size())",
            "self.services.filter(s, s.minEndpoints > self.members.hosts.size()).map(s, 'services \"%s\" has minEndpoints %s, but \
             members has only %s hosts: lower it to what the pool can hold'.format([s.name, string(s.minEndpoints), \
             string(self.members.hosts.size())]))[0]",
        )
        .of("services"),
    ]
}

/// That each limit can be kept with the periods: a healthy replica's bound reaches both periods and the round trips, and
/// must stay below the mark for returning with a fifth to spare. So `maxStaleness` less the budget is at least
/// `2 × (sample + probe + 20 ms)`, the periods by default being a twentieth of the smallest limit within 50 and 500 ms.
///
/// All terms are in twentieths of a millisecond, which makes the default a whole number. `b` is the smallest limit in
/// milliseconds, bound by a list of one because CEL has no other way to name a value.
fn feasibility() -> Vec<Rule> {
    let bound = "[self.services.map(s, duration(s.maxStaleness).getMilliseconds()).min()]";
    let limit = twentieths("s.maxStaleness");
    let need = format!("({} + 2 * {} * {})", needed_at_least(), defaults(), DEFAULT_PERIOD);
    // A budget that is not below its limit has a rule of its own.
    let refused = format!("self.services.filter(s, {} && {need} > {limit})", budget_fits());
    let smallest = format!("({limit} == b * 20 ? {} : {need})", smallest());
    vec![
        rule(
            "spec",
            format!("self.services.size() == 0 || !({}) || {bound}.all(b, {refused}.size() == 0)", readable()),
            format!(
                "{bound}.map(b, {refused}.map(s, 'services \"%s\" has maxStaleness %s, and with these periods the smallest that \
                 works is %sms: raise maxStaleness, or shorten measurement.samplePeriod and probePeriod'.format([s.name, \
                 s.maxStaleness, string(({smallest} + 19) / 20)]))[0])[0]"
            ),
        )
        .of("services"),
    ]
}

/// A period that follows from the smallest limit.
const DEFAULT_PERIOD: &str = "(b < 1000 ? 1000 : (b > 10000 ? 10000 : b))";

fn budget_fits() -> String {
    let stated = "s.mode == 'Strict' && has(s.propagationBudget)";
    format!("(!({stated}) || duration(s.propagationBudget) < duration(s.maxStaleness))")
}

/// What a limit needs for its budget, the round trips, and the periods that are stated.
fn needed_at_least() -> String {
    let stated = |field| {
        format!(
            "({} ? {} : 0)",
            given(field),
            twentieths(&format!("self.measurement.{field}"))
        )
    };
    let budget = format!(
        "(s.mode != 'Strict' ? 0 : (has(s.propagationBudget) ? {} : 10000))",
        twentieths("s.propagationBudget")
    );
    format!(
        "(2 * ({} + {} + 400) + {budget})",
        stated("samplePeriod"),
        stated("probePeriod")
    )
}

/// How many of the two periods are not stated, and so follow from the smallest limit.
fn defaults() -> String {
    format!(
        "(({} ? 0 : 1) + ({} ? 0 : 1))",
        given("samplePeriod"),
        given("probePeriod")
    )
}

/// The least limit that works for the service whose limit is the smallest, as the default periods grow with it: with
/// periods of 50 ms up to 1 s, a twentieth of it up to 10 s, and 500 ms beyond.
fn smallest() -> String {
    let (least, count) = (needed_at_least(), defaults());
    let short = format!("({least} + 2 * {count} * 1000)");
    let middle = format!("({least} * 10 / (10 - {count}))");
    let long = format!("({least} + 2 * {count} * 10000)");
    format!("({short} <= 20000 ? {short} : ({middle} <= 200000 ? {middle} : {long}))")
}

/// That every duration which the rule reads is one; those that are not have a rule of their own.
fn readable() -> String {
    let valid = |field| {
        format!(
            "(!({}) || {})",
            given(field),
            is_duration(&format!("self.measurement.{field}"))
        )
    };
    format!(
        "{} && {} && self.services.all(s, {} && (!has(s.propagationBudget) || {}))",
        valid("samplePeriod"),
        valid("probePeriod"),
        is_duration("s.maxStaleness"),
        is_duration("s.propagationBudget"),
    )
}

fn given(field: &str) -> String {
    format!("has(self.measurement) && has(self.measurement.{field})")
}

fn twentieths(text: &str) -> String {
    format!("duration({text}).getMilliseconds() * 20")
}

fn matches(at: &'static str, pattern: &str, sentence: &str) -> Rule {
    rule(
        at,
        format!("self.matches('{pattern}')"),
        format!("'{}'", sentence.replace('\'', "\\'")),
    )
}

fn is_duration(expression: &str) -> String {
    format!("{expression}.matches('{}')", duration::PATTERN)
}
