//! Where clients connect: open before there is a device, so that clients of one that is being filled wait for it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::nbd::listen::Listener;
use crate::server::ServeError;

/// Which sockets there are to be.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Where NBD clients connect.
    pub nbd: Vec<Address>,
    /// Where vhost-user clients connect.
    pub vhost_user: Option<PathBuf>,
    /// An address beyond this machine's own at which to listen, where that is wanted.
    pub allow_remote: Option<IpAddr>,
}

/// Sockets that are open: who connects is served once there is a device, [`Server::start`](crate::Server::start).
#[derive(Debug)]
pub struct Sockets {
    pub(crate) nbd: Vec<Listener>,
    pub(crate) vhost_user: Option<Listener>,
    places: Places,
}

impl Sockets {
    /// Opens them, so that what is wrong with them is known before a device is made.
    pub fn open(places: &Places) -> Result<Sockets, ServeError> {
        if let Some(remote) = places.nbd.iter().find(|address| !address.is_allowed(places.allow_remote)) {
            return Err(ServeError::Remote { address: remote.clone() });
        }
        let open =
            |address: &Address| Listener::open(address).map_err(|error| ServeError::Listen(address.clone(), error));
        let nbd = places.nbd.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let vhost_user = places.vhost_user.clone().map(|path| open(&Address::Unix(path))).transpose()?;
        let addresses = nbd.iter().map(|listener| listener.address().clone()).collect();
        Ok(Sockets { nbd, vhost_user, places: Places { nbd: addresses, ..places.clone() } })
    }

    /// Where NBD clients connect, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[Address] {
        &self.places.nbd
    }

    /// Where vhost-user clients connect.
    pub fn vhost_user(&self) -> Option<&Path> {
        self.places.vhost_user.as_deref()
    }
}
