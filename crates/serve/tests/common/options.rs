//! How the servers of tests serve.

use std::path::Path;

use floatgate_serve::{Address, Options, Places, Sockets, idle};

/// A socket for NBD clients, one for vhost-user clients, or both.
pub fn sockets(nbd: Option<&Path>, vhost_user: Option<&Path>) -> Sockets {
    let nbd = nbd.into_iter().map(|path| Address::Unix(path.to_owned())).collect();
    Sockets::open(&Places { nbd, vhost_user: vhost_user.map(Path::to_owned), allow_remote: None }).unwrap()
}

/// As fast as it goes.
pub fn options() -> Options {
    Options {
        vhost_queues: 1,
        no_delay: true,
        speed: Default::default(),
        no_spin: true,
        idle_limit: idle::LIMIT,
        memory: u64::MAX,
        recorder: None,
        image: None,
    }
}
