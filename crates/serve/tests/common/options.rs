//! How the servers of tests serve.

use std::path::Path;

use floatgate_serve::{Address, Options};

/// As fast as it goes, to NBD clients at a socket.
pub fn options(socket: &Path) -> Options {
    Options {
        nbd: vec![Address::Unix(socket.to_owned())],
        vhost_user: None,
        vhost_queues: 1,
        allow_remote: None,
        no_delay: true,
        speed: Default::default(),
        no_spin: true,
        memory: u64::MAX,
        recorder: None,
        image: None,
    }
}
