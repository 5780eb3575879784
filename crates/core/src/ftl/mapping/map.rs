//! The page map: where each logical page is, and which logical page each place holds. All schemes keep it.

use crate::config::DeviceConfig;
use crate::sim::id::{Lpn, Ppn, TransactionId};
use crate::sim::memory::{prefetch, zeroed};

/// Where a logical page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// Nowhere: never written, or trimmed.
    Unmapped,
    /// In flash.
    Flash(Ppn),
    /// In the controller: its write, by the number of its slot, has not ended.
    Slot(TransactionId),
}

/// The full map: four bytes for each logical unit, and four back from each physical one.
///
/// An entry is 0 for unmapped, else the place plus one; the top bit marks a slot, so that a read finds data that are
/// on their way without any other look-up (design decision 4).
#[derive(Clone, Debug)]
pub struct PageMap {
    forward: Vec<u32>,
    owner: Vec<u32>,
    host: u32,
}

const SLOT: u32 = 1 << 31;

/// The owner of a place that was programmed without data.
pub const PADDING: u32 = u32::MAX;

/// The owner of a place that holds a part of a translation page: this and its number.
pub const TRANSLATION: u32 = 1 << 31;

impl PageMap {
    /// Nothing mapped.
    pub fn new(device: &DeviceConfig) -> PageMap {
        PageMap {
            forward: zeroed(device.mapped_units() as usize),
            host: device.logical_units() as u32,
            owner: zeroed(device.total_blocks() as usize * device.units_per_block() as usize),
        }
    }

    /// Logical units of the host. Those of the device itself lie behind them.
    pub fn len(&self) -> u32 {
        self.host
    }

    /// Logical units, the device's own included.
    pub fn all(&self) -> u32 {
        self.forward.len() as u32
    }

    /// Whether the device has no logical unit.
    pub fn is_empty(&self) -> bool {
        self.host == 0
    }

    /// Where `lpn` is.
    #[inline]
    pub fn get(&self, lpn: Lpn) -> Location {
        match self.forward[lpn.index()] {
            0 => Location::Unmapped,
            entry if entry & SLOT != 0 => Location::Slot(TransactionId(entry & !SLOT)),
            entry => Location::Flash(Ppn(entry - 1)),
        }
    }

    /// `lpn` is in flash at `ppn`.
    #[inline]
    pub fn set_flash(&mut self, lpn: Lpn, ppn: Ppn) {
        self.forward[lpn.index()] = ppn.0 + 1;
    }

    /// `lpn` is in the controller, in `slot`.
    #[inline]
    pub fn set_slot(&mut self, lpn: Lpn, slot: TransactionId) {
        self.forward[lpn.index()] = SLOT | slot.0;
    }

    /// `lpn` is nowhere.
    #[inline]
    pub fn unmap(&mut self, lpn: Lpn) {
        self.forward[lpn.index()] = 0;
    }

    /// The logical page that was programmed at `ppn`, or [`PADDING`], or [`TRANSLATION`] and the number of a
    /// translation page.
    #[inline]
    pub fn owner(&self, ppn: Ppn) -> u32 {
        self.owner[ppn.index()]
    }

    /// Notes what is programmed at `ppn`.
    #[inline]
    pub fn set_owner(&mut self, ppn: Ppn, lpn: u32) {
        self.owner[ppn.index()] = lpn;
    }

    /// Prefetches which logical page was programmed at `ppn`.
    #[inline]
    pub fn prefetch_owner(&self, ppn: Ppn) {
        prefetch(&self.owner, ppn.index());
    }

    /// Asks for the entry of `lpn` ahead of time.
    #[inline]
    pub fn prefetch(&self, lpn: Lpn) {
        prefetch(&self.forward, lpn.index());
    }
}
