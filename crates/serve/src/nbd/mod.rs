//! NBD: the network block device protocol, fixed newstyle, over Unix sockets and TCP.
//!
//! [`wire`] defines the constants, [`session`] is a session without its socket, `connection` is a client with its
//! socket, and [`frontend`] is the loop that serves all clients. Encryption is not supported: a Unix socket does not
//! need it, and TCP is meant for this machine only.

pub mod connection;
pub mod frontend;
pub mod session;
mod unaligned;
pub mod wire;
