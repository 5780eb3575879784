//! The host's side of the device: requests in progress, the link, and the controller's software.

pub mod cores;
pub mod interface;
pub mod link;
pub mod requests;
