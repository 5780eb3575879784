//! How the servers of tests serve.

use std::path::Path;

use floatgate_serve::{Address, Options, Places, Sockets};

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
        memory: u64::MAX,
        recorder: None,
        image: None,
    }
}

/// Bytes of a range that read as zeros after a trim: those of units of 4 KiB that it covers whole.
#[allow(dead_code, reason = "not every test trims")]
pub fn trimmed(range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = range.start.next_multiple_of(4096);
    start..(range.end / 4096 * 4096).max(start)
}
