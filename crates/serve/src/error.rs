//! Errors of starting a server.

use std::io;

use crate::address::Address;

/// Reason why a device cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is reachable from other machines.
    #[error(
        "{address} is reachable from other machines, and clients are not authenticated; to allow this, pass \
         --allow-remote {}",
        ip_of(address)
    )]
    Remote {
        /// The address.
        address: Address,
    },
    /// The socket cannot be opened.
    #[error("cannot listen on {0}: {1}")]
    Listen(Address, io::Error),
    /// The device does not record latency breakdowns.
    #[error("cannot serve a device that was built without attribution")]
    NoAttribution,
    /// The system has no thread, socket or file descriptor left.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

fn ip_of(address: &Address) -> String {
    match address {
        Address::Tcp(address) => address.ip().to_string(),
        Address::Unix(_) => String::new(),
    }
}
