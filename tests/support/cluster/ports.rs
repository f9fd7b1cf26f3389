//! Free ports for the control plane.

use std::net::TcpListener;

pub(super) struct Ports {
    pub(super) api: u16,
    pub(super) etcd: u16,
    pub(super) peer: u16,
    pub(super) controllers: u16,
    pub(super) health: u16,
    pub(super) metrics: u16,
}

impl Ports {
    pub(super) fn free() -> Self {
        // Held together, so that none is given twice.
        let held: Vec<TcpListener> = (0..6).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let port = |i: usize| held[i].local_addr().unwrap().port();
        Self {
            api: port(0),
            etcd: port(1),
            peer: port(2),
            controllers: port(3),
            health: port(4),
            metrics: port(5),
        }
    }
}
