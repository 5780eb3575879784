//! Options for the servers of tests.

use std::path::Path;

use floatgate_serve::{Address, Options, SocketAddresses, Sockets, idle};

/// Opens a socket for NBD clients, one for vhost-user clients, or both.
pub fn sockets(nbd: Option<&Path>, vhost_user: Option<&Path>) -> Sockets {
    let nbd = nbd.into_iter().map(|path| Address::Unix(path.to_owned())).collect();
    Sockets::open(&SocketAddresses { nbd, vhost_user: vhost_user.map(Path::to_owned), ..SocketAddresses::default() })
        .unwrap()
}

/// Returns options for a server that runs as fast as possible.
pub fn options() -> Options {
    Options {
        vhost_queues: 1,
        nqn: None,
        nvme_hosts: Vec::new(),
        no_delay: true,
        speed: Default::default(),
        no_spin: true,
        costs: None,
        idle_limit: idle::LIMIT,
        memory: u64::MAX,
        recorder: None,
        timeline: None,
        image: None,
    }
}
