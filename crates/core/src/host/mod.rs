//! The host's side of the device: requests in progress and the link.

pub mod link;
pub mod requests;
