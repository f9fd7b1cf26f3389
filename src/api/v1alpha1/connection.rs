//! How servers are reached and how often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::duration::DurationString;

/// Where the account's name and password are.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// Name of the Secret, in the pool's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
    /// Key of the user name in the Secret. Default: username.
    #[serde(default = "username")]
    #[schemars(length(min = 1, max = 253))]
    pub username_key: String,
    /// Key of the password in the Secret. Default: password.
    #[serde(default = "password")]
    #[schemars(length(min = 1, max = 253))]
    pub password_key: String,
}

fn username() -> String {
    "username".into()
}

fn password() -> String {
    "password".into()
}

/// How connections are encrypted and verified.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Disable: no encryption. Require: encrypted, with any certificate. VerifyCA: the certificate must be signed by the
    /// authority of caSecretName. VerifyFull: it must also carry serverName or, where that is not given, the host of
    /// members.hosts. Default: Require.
    #[serde(default)]
    pub mode: TlsMode,
    /// Name of the Secret, in the pool's namespace, with the certificates of the authority. Needed by VerifyCA and
    /// VerifyFull, and for them only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_secret_name: Option<String>,
    /// Key of the certificates (PEM, one or more) in that Secret. Default: ca.crt.
    #[serde(default = "ca_crt")]
    #[schemars(length(min = 1, max = 253))]
    pub ca_key: String,
    /// DNS name that every member's certificate must carry; it need not resolve, as connections go to the members'
    /// addresses. For VerifyFull only, and needed there with members.podSelector, since pods are known by address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub server_name: Option<String>,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            mode: TlsMode::default(),
            ca_secret_name: None,
            ca_key: ca_crt(),
            server_name: None,
        }
    }
}

fn ca_crt() -> String {
    "ca.crt".into()
}

/// How far a connection is trusted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
pub enum TlsMode {
    /// No encryption.
    Disable,
    /// Encryption without verification.
    #[default]
    Require,
    /// A certificate of a known authority.
    VerifyCA,
    /// A certificate of a known authority for the expected name.
    VerifyFull,
}

impl TlsMode {
    /// The word in the resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "Disable",
            Self::Require => "Require",
            Self::VerifyCA => "VerifyCA",
            Self::VerifyFull => "VerifyFull",
        }
    }
}

/// How often servers are asked.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// Time between two readings of the primary's position, 20ms to 60s. Default: a twentieth of the smallest
    /// maxStaleness, within 50ms and 500ms. No maxStaleness may be below 2 × (samplePeriod + probePeriod + 20ms), plus
    /// the propagationBudget in Strict mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_period: Option<DurationString>,
    /// Time between two readings of one replica, 20ms to 60s. Default: a twentieth of the smallest maxStaleness, within
    /// 50ms and 500ms. It bounds maxStaleness as samplePeriod does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_period: Option<DurationString>,
    /// How long one answer of a server is awaited, connecting included, 50ms to 60s. Default: half of the smallest
    /// maxStaleness, within 250ms and 1s. A server that does not answer loses its place when its proof ends, not when a
    /// reading times out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_timeout: Option<DurationString>,
}

impl Measurement {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
