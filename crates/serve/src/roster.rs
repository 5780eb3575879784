//! Roster of connected clients: frontends add each client when it connects, and a monitor lists them.
//!
//! A frontend locks the list only when a client connects or disconnects. The counters are atomics, which the frontend
//! updates once per loop iteration.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::net::sockopt::socket_peercred;

use crate::clock::Wall;
use crate::lateness::ClientTurns;

/// The other end of a client's connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Address of a TCP client. `None` for a Unix socket.
    pub address: Option<SocketAddr>,
    /// Process at the other end of a Unix socket. `None` if the system does not report it.
    pub pid: Option<u32>,
    /// Name of the process, as `ps` shows it, without control characters.
    pub process: Option<String>,
}

impl Peer {
    /// Returns the process at the other end of a Unix socket.
    pub fn of_unix(socket: impl AsFd) -> Peer {
        let pid = socket_peercred(socket).ok().map(|peer| peer.pid.as_raw_nonzero().get().unsigned_abs());
        let name = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let process = pid.and_then(name).map(|name| name.chars().filter(|c| !c.is_control()).collect());
        Peer { address: None, pid, process }
    }

    /// Returns the address of a TCP client.
    pub fn of_tcp(address: Option<SocketAddr>) -> Peer {
        Peer { address, ..Peer::default() }
    }
}

/// A connected client.
#[derive(Clone, Debug)]
pub struct Client {
    /// Name of the frontend.
    pub frontend: &'static str,
    /// Other end of the connection.
    pub peer: Peer,
    /// Time at which the client connected.
    pub since: Wall,
    /// Outstanding requests after the last loop iteration of the frontend.
    pub in_progress: u32,
    /// Turnarounds of the client.
    pub turns: ClientTurns,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    numbers: Arc<Numbers>,
}

/// Counters of a client.
#[derive(Debug, Default)]
struct Numbers {
    in_progress: AtomicU32,
    judged: AtomicU64,
    late: AtomicU64,
}

impl Entry {
    fn now(&self) -> Client {
        let Numbers { in_progress, judged, late } = &*self.numbers;
        let turns = ClientTurns { judged: judged.load(Ordering::Relaxed), late: late.load(Ordering::Relaxed) };
        Client { in_progress: in_progress.load(Ordering::Relaxed), turns, ..self.client.clone() }
    }
}

/// List of connected clients.
#[derive(Clone, Debug, Default)]
pub struct Roster(Arc<Mutex<Vec<Entry>>>);

impl Roster {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client. Dropping the returned seat removes it.
    pub fn enter(&self, frontend: &'static str, peer: Peer, since: Wall) -> Seat {
        let numbers = Arc::new(Numbers::default());
        let client = Client { frontend, peer, since, in_progress: 0, turns: ClientTurns::default() };
        self.lock().push(Entry { client, numbers: Arc::clone(&numbers) });
        Seat { roster: self.clone(), numbers }
    }

    /// Returns all connected clients, in the order in which they connected.
    pub fn clients(&self) -> Vec<Client> {
        self.lock().iter().map(Entry::now).collect()
    }
}

/// Entry of a client, which its connection holds.
#[derive(Debug)]
pub struct Seat {
    roster: Roster,
    numbers: Arc<Numbers>,
}

impl Seat {
    /// Updates the number of outstanding requests and the turnarounds of the client.
    pub fn note(&self, in_progress: u32, turns: ClientTurns) {
        let numbers = &self.numbers;
        numbers.in_progress.store(in_progress, Ordering::Relaxed);
        numbers.judged.store(turns.judged, Ordering::Relaxed);
        numbers.late.store(turns.late, Ordering::Relaxed);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.roster.lock().retain(|entry| !Arc::ptr_eq(&entry.numbers, &self.numbers));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_come_and_go() {
        let roster = Roster::default();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let unix = roster.enter("nbd", Peer::of_unix(&one), Wall(1));
        let tcp = roster.enter("nbd", Peer::of_tcp("127.0.0.1:5".parse().ok()), Wall(2));
        unix.note(3, ClientTurns { judged: 5, late: 2 });
        let clients = roster.clients();
        assert_eq!((clients.len(), clients[0].in_progress, clients[1].in_progress), (2, 3, 0));
        assert_eq!((clients[0].turns.share(), clients[1].turns.share()), (Some(0.4), None));
        assert_eq!(clients[0].peer.pid, Some(std::process::id()));
        assert!(clients[0].peer.process.as_ref().is_some_and(|name| !name.is_empty()), "{clients:?}");
        assert_eq!(clients[1].peer.address, "127.0.0.1:5".parse().ok());
        drop(unix);
        assert_eq!(roster.clients().iter().map(|client| client.since).collect::<Vec<_>>(), [Wall(2)]);
        drop(tcp);
        assert!(roster.clients().is_empty());
    }
}
