//! Copies of units from one flash address to another, in time and without.

pub mod copy;
mod evacuate;
mod gather;

pub use evacuate::{Evacuation, PagesRead, Walk};
pub use gather::Gather;

use super::Ftl;
use super::mapping::Location;
use crate::metrics::counters::CopyCause;
use crate::sim::id::Lpn;
use copy::Copy;

impl Ftl {
    /// Ends a copy: maps its unit to it, unless the unit was overwritten or trimmed in the meantime. Returns the
    /// previous location of the unit, or `None` if the copy is wasted.
    ///
    /// If the location is a slot, a write of the unit is not bound yet. The caller has that write invalidate the copy.
    pub(crate) fn end_copy(&mut self, copy: &Copy, cause: CopyCause) -> Option<Location> {
        let &Copy { lpn, from, to } = copy;
        if !self.blocks.is_valid(from) {
            self.counters.wasted_copies += 1;
            return None;
        }
        self.blocks.invalidate(from);
        self.blocks.validate(to);
        self.note_moved(Lpn(lpn), cause);
        let before = self.map.get(Lpn(lpn));
        debug_assert_ne!(before, Location::Unmapped, "a valid unit is mapped");
        if let Location::Flash(ppn) = before {
            debug_assert_eq!(ppn, from, "a valid unit is mapped");
            self.map.set_flash(Lpn(lpn), to);
        }
        Some(before)
    }
}
