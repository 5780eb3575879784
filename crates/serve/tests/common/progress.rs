//! Waiting for the progress of a server.

use std::sync::PoisonError;

use floatgate_serve::Server;
use floatgate_serve::clock::Wall;
use rustix::event::{Timespec, poll};

/// Waits until this number of requests is outstanding in the device.
pub fn until_in_progress(server: &Server, requests: usize) {
    let start = Wall::now();
    loop {
        let found = server.engine().lock().unwrap_or_else(PoisonError::into_inner).outstanding();
        if found == requests {
            return;
        }
        assert!(Wall::now().since(start) < Wall::from_us(20_000_000), "{found} of {requests} requests within 20 s");
        let timeout = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        poll(&mut [], Some(&timeout)).unwrap();
    }
}
