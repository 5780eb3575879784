//! Sockets for clients. NBD and NVMe sockets are opened before the device is built, so that clients can connect while
//! it is being filled. The vhost-user socket is opened when the device is ready.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::error::ServeError;
use crate::listen::{Listener, check_path};

/// Addresses of the sockets.
#[derive(Clone, Debug, Default)]
pub struct SocketAddresses {
    /// Addresses for NBD clients.
    pub nbd: Vec<Address>,
    /// Path of the socket for vhost-user clients.
    pub vhost_user: Option<PathBuf>,
    /// TCP addresses for NVMe hosts.
    pub nvme: Vec<Address>,
    /// Address other than loopback at which listening is allowed.
    pub allow_remote: Option<IpAddr>,
}

/// Open sockets. [`Server::start`](crate::Server::start) serves the clients that connect to them.
#[derive(Debug)]
pub struct Sockets {
    pub(crate) nbd: Vec<Listener>,
    pub(crate) nvme: Vec<Listener>,
    addresses: SocketAddresses,
}

impl Sockets {
    /// Opens the sockets, so that their errors are reported before a device is built.
    pub fn open(addresses: &SocketAddresses) -> Result<Sockets, ServeError> {
        if let Some(remote) =
            addresses.nbd.iter().chain(&addresses.nvme).find(|address| !address.is_allowed(addresses.allow_remote))
        {
            return Err(ServeError::Remote { address: remote.clone() });
        }
        let open =
            |address: &Address| Listener::open(address).map_err(|error| ServeError::Listen(address.clone(), error));
        let open = |addresses: &[Address]| addresses.iter().map(open).collect::<Result<Vec<_>, _>>();
        let (nbd, nvme) = (open(&addresses.nbd)?, open(&addresses.nvme)?);
        let bound = |listeners: &[Listener]| listeners.iter().map(|listener| listener.address().clone()).collect();
        if let Some(path) = &addresses.vhost_user {
            check_path(path).map_err(|error| ServeError::Listen(Address::Unix(path.clone()), error))?;
        }
        let addresses = SocketAddresses { nbd: bound(&nbd), nvme: bound(&nvme), ..addresses.clone() };
        Ok(Sockets { nbd, nvme, addresses })
    }

    /// Opens the socket for vhost-user clients. This must not happen before the device is ready: if a server is killed
    /// before it has replied to the first message, QEMU waits for the reply forever, even if it is configured to
    /// reconnect.
    pub(crate) fn listen_vhost_user(&self) -> Result<Option<Listener>, ServeError> {
        let address = self.addresses.vhost_user.clone().map(Address::Unix);
        let open = |address: Address| Listener::open(&address).map_err(|error| ServeError::Listen(address, error));
        address.map(open).transpose()
    }

    /// Returns all addresses, with the ports that the system has chosen.
    pub fn addresses(&self) -> &SocketAddresses {
        &self.addresses
    }

    /// Returns the addresses for NBD clients, with the ports that the system has chosen.
    pub fn nbd(&self) -> &[Address] {
        &self.addresses.nbd
    }

    /// Returns the addresses for NVMe hosts, with the ports that the system has chosen.
    pub fn nvme(&self) -> &[Address] {
        &self.addresses.nvme
    }

    /// Returns the path of the socket for vhost-user clients.
    pub fn vhost_user(&self) -> Option<&Path> {
        self.addresses.vhost_user.as_deref()
    }
}
