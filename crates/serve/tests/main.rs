//! Tests of the servers, a module for each topic.

mod common;

mod array;
mod array_journal;
mod damage;
mod engine;
mod image;
mod libblkio;
mod monitor;
mod nbd;
mod nvme;
mod session;
mod vhost;
mod vhost_requests;
