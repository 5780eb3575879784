//! Host interface of the device: outstanding requests, the link, and the controller's cores.

pub mod arbitration;
pub mod cores;
pub mod interface;
pub mod link;
pub mod queues;
pub mod requests;
pub mod stages;
pub mod throttle;
