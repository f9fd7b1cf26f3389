//! The network of a small cluster: a bridge on the node, and pods with a network namespace each.
//!
//! | what | where |
//! | --- | --- |
//! | the node, which is this process | 10.77.0.1 |
//! | pods | 10.77.1.1 and up |
//! | Services | 10.96.0.0/16, as kube-proxy makes them |
//!
//! Traffic is troubled inside the namespace of the pod that it reaches, by address of the other side.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use super::namespace::run;

/// The node's address.
pub(crate) const NODE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Makes the bridge. Once per process.
pub(crate) fn set_up() {
    run("ip", &["link", "add", "br0", "type", "bridge"]);
    run("ip", &["addr", "add", "10.77.0.1/16", "dev", "br0"]);
    run("ip", &["link", "set", "br0", "up"]);
    // A route is looked up before kube-proxy's rules see the packet.
    run("ip", &["route", "add", "10.96.0.0/16", "dev", "br0"]);
    run("sysctl", &["-qw", "net.ipv4.ip_forward=1"]);
}

/// A pod's network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sandbox {
    /// The network namespace's name.
    pub(crate) name: String,
    /// The pod's address.
    pub(crate) address: IpAddr,
}

impl Sandbox {
    /// A new one, with an address that no other has had.
    pub(crate) fn new() -> Self {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let [high, low] = (n + 256 + 1).to_be_bytes();
        Self::at(Ipv4Addr::new(10, 77, high, low), &format!("pod{n}"))
    }

    /// A new one at this address, which must be free.
    pub(crate) fn at(address: Ipv4Addr, name: &str) -> Self {
        let outer = format!("v-{name}");
        run("ip", &["netns", "add", name]);
        run(
            "ip",
            &[
                "link", "add", &outer, "type", "veth", "peer", "name", "eth0", "netns", name,
            ],
        );
        run("ip", &["link", "set", &outer, "master", "br0", "up"]);
        for command in [
            &["link", "set", "lo", "up"] as &[&str],
            &["addr", "add", &format!("{address}/16"), "dev", "eth0"],
            &["link", "set", "eth0", "up"],
            &["route", "add", "default", "via", "10.77.0.1"],
        ] {
            run("ip", &[&["-n", name], command].concat());
        }
        Self {
            name: name.to_owned(),
            address: IpAddr::V4(address),
        }
    }

    /// What programs are started by to run in it.
    pub(crate) fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(String::from).into()
    }

    /// Drops every packet from and to `others`, without a word.
    pub(crate) fn cut_from(&self, others: &[IpAddr]) {
        self.trouble(others, "drop");
    }

    /// Refuses every packet from `others` with a reset.
    pub(crate) fn refuse(&self, others: &[IpAddr]) {
        self.trouble(others, "reject with tcp reset");
    }

    /// Lets everything through again.
    pub(crate) fn heal(&self) {
        self.nft("table inet trouble\ndelete table inet trouble\n");
    }

    fn trouble(&self, others: &[IpAddr], verdict: &str) {
        let all: Vec<String> = others.iter().map(ToString::to_string).collect();
        let all = all.join(", ");
        let outgoing = if verdict == "drop" {
            format!("ip daddr {{ {all} }} drop")
        } else {
            String::new()
        };
        self.heal();
        self.nft(&format!(
            "table inet trouble {{\n\
             chain in {{ type filter hook input priority 0\n ip saddr {{ {all} }} meta l4proto tcp {verdict}\n }}\n\
             chain out {{ type filter hook output priority 0\n {outgoing}\n }}\n}}\n"
        ));
    }

    fn nft(&self, rules: &str) {
        let mut nft = Command::new("ip");
        nft.args(["netns", "exec", &self.name, "nft", "-f", "-"])
            .stdin(Stdio::piped());
        let mut nft = nft.spawn().expect("nft can be run");
        nft.stdin
            .take()
            .expect("it was asked for")
            .write_all(rules.as_bytes())
            .expect("nft reads its rules");
        assert!(nft.wait().expect("nft ends").success(), "nft refuses:\n{rules}");
    }
}
