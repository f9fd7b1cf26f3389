//! The forms of names, as the API server's rules have them in [`crate::api::pattern`].
//!
//! Written by hand, because a name is checked in a few lines and a regular expression engine is not needed for anything
//! else; a property test holds them against the patterns.

use std::net::{IpAddr, Ipv4Addr};

use crate::api::{MAX_DNS_NAME, MAX_LABEL};

/// A DNS label: a Service's or member's name.
pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && is_joined(text, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == b'-')
}

/// A DNS name in lower case: the name of a Secret or a pod.
pub(super) fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| is_joined(label, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == b'-');
    text.len() <= MAX_DNS_NAME && text.split('.').all(is_label)
}

/// A host name as people write it, or an IP address.
pub(super) fn is_host(text: &str) -> bool {
    let is_label = |label: &str| is_joined(label, |c| c.is_ascii_alphanumeric() || c == b'_', |c| c == b'-');
    (text.len() <= MAX_DNS_NAME && text.split('.').all(is_label)) || address(text).is_some()
}

/// A host name that a certificate can carry.
pub(super) fn is_host_name(text: &str) -> bool {
    is_host(text) && !text.contains(':')
}

/// A key of a Secret.
pub(super) fn is_secret_key(text: &str) -> bool {
    let known = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    (1..=MAX_DNS_NAME).contains(&text.len()) && text.bytes().all(known)
}

/// A label's key, with an optional domain.
pub(super) fn is_label_key(text: &str) -> bool {
    let (domain, name) = text
        .split_once('/')
        .map_or((None, text), |(domain, name)| (Some(domain), name));
    domain.is_none_or(is_dns_name) && !name.is_empty() && is_label_value(name)
}

/// A label's value, which may be empty.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty()
        || (text.len() <= MAX_LABEL && is_joined(text, |c| c.is_ascii_alphanumeric(), |c| b"-._".contains(&c)))
}

/// An IP address in the form that Kubernetes takes: no zone, and no IPv4 address in IPv6's clothes.
pub(super) fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.to_ipv4_mapped().is_none_or(|v4| v4 == Ipv4Addr::UNSPECIFIED),
    })
}

/// Not empty, all of `letter` or `joint`, and a letter at both ends.
fn is_joined(text: &str, letter: impl Fn(u8) -> bool, joint: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(&a), Some(&z)) if letter(a) && letter(z))
        && bytes.iter().all(|&c| letter(c) || joint(c))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::api::pattern;

    /// A pattern without its anchors, for generating what matches it.
    fn body(form: &str) -> &str {
        form.trim_start_matches('^').trim_end_matches('$')
    }

    fn within(text: &str, most: usize) -> bool {
        text.len() <= most
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// What the API server lets pass, and is not too long, is let pass here.
        #[test]
        fn what_the_rules_admit_is_admitted(
            label in body(pattern::DNS_LABEL), name in body(pattern::DNS_NAME), host in body(pattern::HOST_NAME),
            key in body(pattern::SECRET_KEY), label_key in body(pattern::LABEL_KEY), value in body(pattern::LABEL_VALUE),
        ) {
            prop_assert!(is_dns_label(&label) || !within(&label, MAX_LABEL), "{label}");
            prop_assert!(is_dns_name(&name) || !within(&name, MAX_DNS_NAME), "{name}");
            prop_assert!(is_host_name(&host) || !within(&host, MAX_DNS_NAME), "{host}");
            prop_assert!(is_secret_key(&key) || !within(&key, MAX_DNS_NAME), "{key}");
            prop_assert!(is_label_key(&label_key) || !within(&label_key, MAX_DNS_NAME), "{label_key}");
            prop_assert!(is_label_value(&value) || !within(&value, MAX_LABEL), "{value}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "-a", "a-", "A", "a.b", "a_b", "a b", "ä", &"a".repeat(64)] {
            assert!(!is_dns_label(text), "{text}");
        }
        for text in ["", ".", "a.", ".a", "a..b", "A.b", "a.-b"] {
            assert!(!is_dns_name(text), "{text}");
        }
        for text in [
            "",
            "a:5432",
            "10.0.0.1:5432",
            "postgres://a",
            "a b",
            "a.",
            "[::1]",
            "fe80::1%eth0",
        ] {
            assert!(!is_host(text), "{text}");
        }
        for text in ["Db_1.example.COM", "10.0.0.1", "::1", "2001:db8::1"] {
            assert!(is_host(text), "{text}");
        }
        for text in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "-a",
            "Ex.com/a",
            &format!("a/{}", "b".repeat(64)),
        ] {
            assert!(!is_label_key(text), "{text}");
        }
        for text in ["010.0.0.1", "1.2.3", "::ffff:1.2.3.4", "fe80::1%1", "example.com", ""] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
