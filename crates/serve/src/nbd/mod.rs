//! NBD: the network block device protocol, fixed newstyle, over Unix sockets and TCP.
//!
//! [`wire`] has the numbers, [`session`] a conversation without its socket, `connection` a client with its socket, and
//! [`front`] the loop that serves all clients. Encryption is left out: a Unix socket needs none, and TCP is meant for
//! this machine.

mod budget;
pub mod connection;
pub mod front;
pub mod listen;
pub mod session;
pub mod wire;
