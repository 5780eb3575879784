//! Where clients connect. NBD sockets are open before there is a device, so that clients of one that is being filled
//! wait for it; that for vhost-user is opened when the device can be served.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::address::Address;
use crate::error::ServeError;
use crate::nbd::listen::{Listener, check_path};

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
        let addresses = nbd.iter().map(|listener| listener.address().clone()).collect();
        if let Some(path) = &places.vhost_user {
            check_path(path).map_err(|error| ServeError::Listen(Address::Unix(path.clone()), error))?;
        }
        Ok(Sockets { nbd, places: Places { nbd: addresses, ..places.clone() } })
    }

    /// Opens the socket for vhost-user clients. It is not there before the device is: a QEMU whose server is killed
    /// before it has answered the first message waits for the answer forever, even if it is to reconnect.
    pub(crate) fn listen_vhost_user(&self) -> Result<Option<Listener>, ServeError> {
        let address = self.places.vhost_user.clone().map(Address::Unix);
        let open = |address: Address| Listener::open(&address).map_err(|error| ServeError::Listen(address, error));
        address.map(open).transpose()
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
