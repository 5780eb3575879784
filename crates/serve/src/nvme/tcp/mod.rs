//! NVMe over TCP.
//!
//! [`pdu`] defines the messages, [`session`] is a connection without its socket, `connection` has the socket, and
//! [`frontend`] is the loop that serves all connections.

mod connection;
pub mod frontend;
pub mod pdu;
pub mod session;
#[cfg(test)]
mod tests;
