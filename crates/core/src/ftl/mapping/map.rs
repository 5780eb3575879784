//! Page map: the location of each logical unit, and the owner of each physical unit. All schemes use it.

use std::ops::Range;

use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, Ppn, TransactionId};
use crate::sim::memory::{prefetch, zeroed};

/// Location of a logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Unmapped: the unit was never written, or was trimmed.
    Unmapped,
    /// Flash, at this address.
    Flash(Ppn),
    /// Write slot of the controller: the write has not ended.
    Slot(TransactionId),
}

/// The full map: four bytes for each logical unit, and four for each physical unit in reverse.
///
/// An entry is 0 if the unit is unmapped, else its address plus one. The top bit marks a slot, so that a read finds
/// data in flight without another look-up (design decision 4).
#[derive(Clone, Debug)]
pub struct PageMap {
    forward: Vec<u32>,
    owner: Vec<u32>,
    host: u32,
}

const SLOT: u32 = 1 << 31;

/// Owner of a physical unit that was programmed without data.
pub const PADDING: u32 = u32::MAX;

/// Owner of a physical unit that holds a part of a translation page: this bit and the number of the page.
pub const TRANSLATION: u32 = 1 << 31;

impl PageMap {
    /// Creates a map without mapped units.
    pub fn new(device: &DeviceConfig) -> PageMap {
        PageMap {
            forward: zeroed(device.mapped_units() as usize),
            host: device.logical_units() as u32,
            owner: zeroed(device.total_blocks() as usize * device.units_per_block() as usize),
        }
    }

    /// Returns the number of logical units of the host. Those of the device itself follow them.
    pub fn len(&self) -> u32 {
        self.host
    }

    /// Returns the number of logical units, including the device's own.
    pub fn all(&self) -> u32 {
        self.forward.len() as u32
    }

    /// Returns `true` if the host has no logical units.
    pub fn is_empty(&self) -> bool {
        self.host == 0
    }

    /// Returns the location of `lpn`.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Location {
        match self.forward[lpn.index()] {
            0 => Location::Unmapped,
            entry if entry & SLOT != 0 => Location::Slot(TransactionId(entry & !SLOT)),
            entry => Location::Flash(Ppn(entry - 1)),
        }
    }

    /// Maps `lpn` to the address `ppn` in flash.
    #[inline]
    pub fn set_flash(&mut self, lpn: Lpn, ppn: Ppn) {
        self.forward[lpn.index()] = ppn.0 + 1;
    }

    /// Maps `lpn` to a slot of the controller.
    #[inline]
    pub fn set_slot(&mut self, lpn: Lpn, slot: TransactionId) {
        self.forward[lpn.index()] = SLOT | slot.0;
    }

    /// Unmaps `lpn`.
    #[inline]
    pub fn unmap(&mut self, lpn: Lpn) {
        self.forward[lpn.index()] = 0;
    }

    /// Returns the logical unit that was programmed at `ppn`, or [`PADDING`], or [`TRANSLATION`] and the number of a
    /// translation page.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> u32 {
        self.owner[ppn.index()]
    }

    /// Sets the owner of `ppn`.
    #[inline]
    pub fn set_owner(&mut self, ppn: Ppn, lpn: u32) {
        self.owner[ppn.index()] = lpn;
    }

    /// Marks physical units as programmed without data.
    #[inline]
    pub fn pad(&mut self, units: Range<u32>) {
        for ppn in units {
            self.set_owner(Ppn(ppn), PADDING);
        }
    }

    /// Prefetches the owner of `ppn`.
    #[inline]
    pub fn prefetch_owner(&self, ppn: Ppn) {
        prefetch(&self.owner, ppn.index());
    }

    /// Prefetches the entry of `lpn`.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.forward, lpn.index());
    }
}
