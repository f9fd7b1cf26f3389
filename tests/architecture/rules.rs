//! The table: what each module may use, and why no more.

/// One row: it covers the file or folder at `path`, unless a row with a longer path does.
pub(crate) struct Module {
    /// Below `src`, without an ending.
    pub(crate) path: &'static str,
    /// Modules of this crate that it may use, besides its own. `*` is any.
    pub(crate) ours: &'static [&'static str],
    /// Dependencies that it may use.
    pub(crate) crates: &'static [&'static str],
    /// Words that must not stand in its code, and why.
    pub(crate) never: &'static [(&'static str, &'static str)],
    /// What is said when it uses something else.
    pub(crate) reason: &'static str,
}

const ASYNC: &[(&str, &str)] = &[
    (
        "async ",
        "it is a value or a function of its arguments: whoever calls it waits, it does not",
    ),
    (
        ".await",
        "it is a value or a function of its arguments: whoever calls it waits, it does not",
    ),
];

pub(crate) const MODULES: &[Module] = &[
    Module {
        path: "policy",
        ours: &[],
        crates: &[],
        never: &[
            ("Result<", "the core cannot fail: every uncertainty is a variant"),
            ("SystemTime", "time is an argument"),
            ("Instant", "time is an argument: a Moment"),
            ("async ", "the core does no I/O"),
        ],
        reason: "policy decides, and nothing else: the standard library is all it needs",
    },
    Module {
        path: "clock",
        ours: &["policy::moment"],
        crates: &["k8s_openapi", "tokio"],
        never: &[],
        reason: "the one place that reads a clock",
    },
    Module {
        path: "api",
        ours: &[],
        crates: &["k8s_openapi", "kube", "schemars", "serde", "serde_json", "serde_yaml"],
        never: ASYNC,
        reason: "api is the public contract: it holds no behaviour of ours",
    },
    Module {
        path: "spec",
        ours: &["api", "policy"],
        crates: &["k8s_openapi", "serde", "serde_json", "serde_yaml", "thiserror"],
        never: ASYNC,
        reason: "spec turns what was declared into what can only be valid, from values it is given",
    },
    Module {
        path: "engine",
        ours: &["policy::position", "policy::sighting"],
        crates: &["thiserror", "tokio"],
        never: &[
            (
                "time::sleep(",
                "an engine asks once and answers: intervals and retries are the pool's",
            ),
            (
                "time::interval(",
                "an engine asks once and answers: intervals and retries are the pool's",
            ),
        ],
        reason: "an engine yields sightings: it judges no lag and knows no pool",
    },
    Module {
        path: "engine/scripted",
        ours: &["engine", "policy::position", "policy::sighting"],
        crates: &["tokio"],
        never: &[],
        reason: "the scripted engine is a server that a test moves: it may be slow to answer",
    },
    Module {
        path: "engine/tls",
        ours: &[],
        crates: &["rustls", "thiserror"],
        never: ASYNC,
        reason: "one verification for every engine",
    },
    Module {
        path: "engine/postgresql",
        ours: &["engine", "policy::position", "policy::sighting"],
        crates: &["rustls", "socket2", "tokio", "tokio_postgres", "tokio_postgres_rustls"],
        never: &[
            (
                "time::sleep(",
                "an engine asks once and answers: intervals and retries are the pool's",
            ),
            (
                "time::interval(",
                "an engine asks once and answers: intervals and retries are the pool's",
            ),
        ],
        reason: "a database's file knows its own driver, and no other database",
    },
    Module {
        path: "pool",
        ours: &[
            "api::v1alpha1",
            "clock",
            "engine",
            "policy",
            "spec",
            "telemetry::events",
        ],
        crates: &["arc_swap", "fastrand", "futures", "tokio"],
        never: &[(
            "postgresql::",
            "a pool knows engines by the trait: an engine is opened by name in assemble",
        )],
        reason: "a pool measures and decides; it knows neither Kubernetes nor who listens",
    },
    Module {
        path: "publish/slices",
        ours: &["api", "spec"],
        crates: &["k8s_openapi"],
        never: &[
            ("async ", "a plan is complete before anything is sent"),
            ("Client", "a plan is complete before anything is sent"),
        ],
        reason: "what should be published is computed from values, and compared, before anything is sent",
    },
    Module {
        path: "publish/slices/apply",
        ours: &["api", "publish::slices"],
        crates: &["k8s_openapi", "kube", "thiserror", "tokio"],
        never: &[],
        reason: "apply makes no choices: it could be replaced by a script",
    },
    Module {
        path: "publish/file",
        ours: &[],
        crates: &["serde", "serde_json"],
        never: ASYNC,
        reason: "one publisher, one file",
    },
    Module {
        path: "publish/mod",
        ours: &[],
        crates: &[],
        never: &[],
        reason: "a list of publishers",
    },
    Module {
        path: "leader",
        ours: &["api", "clock", "policy::moment"],
        crates: &["fastrand", "k8s_openapi", "kube", "tokio", "tracing"],
        never: &[],
        reason: "leader holds a Lease; it knows no pools",
    },
    Module {
        path: "controller",
        ours: &[
            "api",
            "clock",
            "kubernetes",
            "leader",
            "policy",
            "pool",
            "publish",
            "spec",
            "telemetry",
        ],
        crates: &[
            "anyhow",
            "fastrand",
            "futures",
            "k8s_openapi",
            "kube",
            "serde",
            "serde_json",
            "thiserror",
            "tokio",
            "tracing",
        ],
        never: &[
            (
                "tokio_postgres",
                "the controller speaks to the API server; engines speak to databases",
            ),
            ("policy::pool", "the controller publishes decisions and makes none"),
            ("policy::selection", "the controller publishes decisions and makes none"),
        ],
        reason: "the controller gathers, publishes and reports; it does not measure, and it serves nobody",
    },
    Module {
        path: "telemetry",
        ours: &["api", "policy"],
        crates: &["prometheus", "tracing"],
        never: ASYNC,
        reason: "telemetry says in words and figures what it is handed; it looks nothing up",
    },
    Module {
        path: "http",
        ours: &["policy", "pool", "telemetry"],
        crates: &["anyhow", "axum", "serde", "tokio"],
        never: &[],
        reason: "http shows snapshots and changes nothing",
    },
    Module {
        path: "kubernetes",
        ours: &[],
        crates: &["anyhow", "kube"],
        never: &[],
        reason: "how a connection to the API server is made, and nothing about what is asked there",
    },
    Module {
        path: "demo",
        ours: &[],
        crates: &["anyhow", "fastrand", "tokio", "tokio_postgres"],
        never: &[],
        reason: "the demo's servers are made without a word about pools, so that tests can use them too",
    },
    Module {
        path: "commands",
        ours: &[
            "clock",
            "demo",
            "engine",
            "http",
            "policy",
            "pool",
            "publish::file",
            "spec",
            "telemetry",
        ],
        crates: &[
            "anyhow",
            "fastrand",
            "futures",
            "k8s_openapi",
            "serde",
            "tempfile",
            "tokio",
            "tracing",
        ],
        never: &[],
        reason: "commands run pools without a cluster",
    },
    Module {
        path: "app",
        ours: &["*"],
        crates: &["anyhow", "tokio", "tracing"],
        never: &[],
        reason: "app puts the parts together and holds no logic of its own",
    },
    Module {
        path: "cli",
        ours: &["api", "app", "clock", "commands"],
        crates: &["anyhow", "clap", "tokio", "tracing_subscriber"],
        never: &[],
        reason: "cli reads arguments and starts what they name",
    },
    Module {
        path: "main",
        ours: &["cli"],
        crates: &["anyhow", "clap"],
        never: &[],
        reason: "main starts cli",
    },
    Module {
        path: "lib",
        ours: &[],
        crates: &[],
        never: &[],
        reason: "lib is the reading order",
    },
];

/// Who may write to the API server, and what.
pub(crate) const WRITERS: &[(&str, &str)] = &[
    ("publish/slices/apply.rs", "EndpointSlices"),
    ("controller/publish.rs", "Services that a spec asks for"),
    ("controller/report.rs", "status"),
    ("controller/events.rs", "Events"),
    ("leader/mod.rs", "the Lease"),
];

/// Files that are longer than 400 lines, and why that is right.
pub(crate) const LONG_FILES: &[(&str, &str)] = &[];
