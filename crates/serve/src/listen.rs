//! Sockets to which clients connect.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepcnt, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use crate::address::Address;
use crate::stream::Stream;

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// A listening socket. The file of a Unix socket is removed on drop.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: Address,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens at an address. Replaces a socket file at which no process listens any more.
    pub fn open(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Unix(path) => {
                let listener = private_socket(path)?;
                listener.set_nonblocking(true)?;
                Ok(Listener { socket: Socket::Unix(listener, path.clone()), address: address.clone() })
            }
            Address::Tcp(wanted) => {
                let listener = TcpListener::bind(wanted)?;
                listener.set_nonblocking(true)?;
                // The system may have chosen the port.
                let address = Address::Tcp(listener.local_addr()?);
                Ok(Listener { socket: Socket::Tcp(listener), address })
            }
        }
    }

    /// Returns the address of the socket.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the next client that has connected. `None` if there is none.
    pub(crate) fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match &self.socket {
            Socket::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match accepted {
            Ok(stream) => stream.prepared().map(Some),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(listener, _) => listener.as_fd(),
            Socket::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            // The file may already have been removed.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Creates a Unix socket to which only this user can connect, from the moment at which it exists.
pub(crate) fn private_socket(path: &Path) -> io::Result<UnixListener> {
    let socket = bound_socket(path)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Checks that a socket can be created at a path, without listening.
pub(crate) fn check_path(path: &Path) -> io::Result<()> {
    drop(bound_socket(path)?);
    std::fs::remove_file(path)
}

/// Creates a socket at a path, without listening.
fn bound_socket(path: &Path) -> io::Result<OwnedFd> {
    make_room(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // On Linux the socket's file takes its mode from the socket.
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::fchmod(&socket, mode)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::fs::chmod(path, mode)?;
    Ok(socket)
}

/// Removes the socket of a server that no longer runs. Returns an error if something else is at the path.
fn make_room(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    let in_the_way = |what| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    if !found.file_type().is_socket() {
        return in_the_way("the path exists and is not a socket");
    }
    if UnixStream::connect(path).is_ok() {
        return in_the_way("another server listens on this socket");
    }
    std::fs::remove_file(path)
}

impl Stream {
    /// Sets the options of the socket for the loop.
    fn prepared(self) -> io::Result<Stream> {
        match &self {
            Stream::Unix(stream) => stream.set_nonblocking(true)?,
            Stream::Tcp(stream) => prepare_tcp(stream)?,
        }
        Ok(self)
    }
}

/// Disables Nagle's algorithm, so that a reply does not wait for the next one. Limits the time for which a client may
/// be silent, so that the connection of a client that has lost its power or network ends: probes detect it while the
/// connection is idle, and the time limit of acknowledgments while data is outstanding.
fn prepare_tcp(stream: &TcpStream) -> io::Result<()> {
    /// Time without traffic after which to probe, interval of the probes, and their number: 2 minutes in total.
    const PROBES: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(20), 3);
    /// Time limit for the acknowledgment of data, in milliseconds.
    const UNACKNOWLEDGED_MS: u32 = 120_000;
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    set_socket_keepalive(stream, true)?;
    set_tcp_keepidle(stream, PROBES.0)?;
    set_tcp_keepintvl(stream, PROBES.1)?;
    set_tcp_keepcnt(stream, PROBES.2)?;
    Ok(set_tcp_user_timeout(stream, UNACKNOWLEDGED_MS)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{
        socket_keepalive, tcp_keepcnt, tcp_keepidle, tcp_keepintvl, tcp_nodelay, tcp_user_timeout,
    };
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_socket_is_private_and_removed_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssd.sock");
        let address = Address::Unix(path.clone());
        let listener = Listener::open(&address).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let error = Listener::open(&address).unwrap_err();
        assert!(error.to_string().contains("another server listens on this socket"), "{error}");
        assert!(path.exists(), "the socket of the other server must remain");
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn lost_clients_are_noticed_within_two_minutes() {
        let listener = Listener::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let Address::Tcp(address) = *listener.address() else { unreachable!() };
        let _client = TcpStream::connect(address).unwrap();
        let stream = listener.accept().unwrap().unwrap();
        assert!(tcp_nodelay(&stream).unwrap() && socket_keepalive(&stream).unwrap());
        let idle = tcp_keepidle(&stream).unwrap() + tcp_keepintvl(&stream).unwrap() * tcp_keepcnt(&stream).unwrap();
        assert_eq!(idle, Duration::from_secs(120));
        assert_eq!(tcp_user_timeout(&stream).unwrap(), 120_000);
    }

    #[test]
    fn sockets_of_dead_servers_are_replaced_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ssd.sock");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(Listener::open(&Address::Unix(path.clone())).unwrap());
        std::fs::write(&path, "mine").unwrap();
        let error = Listener::open(&Address::Unix(path.clone())).unwrap_err();
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
