//! The view of a device that observers get.

use crate::cache::{Buffer, Pick};
use crate::durability::Durability;
use crate::durability::events::Units;
use crate::ftl::Ftl;
use crate::ftl::gc::collector::Collector;
use crate::host::interface::HostInterface;
use crate::host::requests::Part;
use crate::nand::array::Array;
use crate::sim::time::Time;
use crate::work::Transactions;

/// Parts of the device that observers can read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Current time.
    pub now: Time,
    /// Outstanding requests, the link and the cores.
    pub interface: &'a HostInterface,
    /// Transactions in flight.
    pub transactions: &'a Transactions,
    /// Flash array.
    pub array: &'a Array,
    /// Map, and contents of flash.
    pub ftl: &'a Ftl,
    /// Jobs of garbage collection.
    pub jobs: &'a Collector,
    /// Write buffer, if the device has one.
    pub buffer: Option<&'a Buffer>,
    /// Journal and checkpoint, if the device has either.
    pub durability: Option<&'a Durability>,
}

impl<'a> View<'a> {
    /// Returns the map and the transactions, to describe a program.
    pub(super) fn units(&self) -> Units<'a> {
        Units { ftl: self.ftl, transactions: self.transactions }
    }
}

/// Source of the data of a write.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A part of a request.
    Host(Part),
    /// A unit of the buffer.
    Buffer(Pick),
    /// The device itself, with the sequence number of the write.
    Own(u64),
}
