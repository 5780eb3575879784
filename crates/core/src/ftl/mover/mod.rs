//! Copies of units from one place in flash to another, in time and without.

mod evacuate;
mod gather;

pub use evacuate::{Evacuation, PagesRead, Walk};
pub use gather::Gather;

use super::Ftl;
use super::mapping::Location;
use crate::metrics::counters::CopyCause;
use crate::sim::id::{Lpn, Ppn};
use crate::work::Transactions;

/// A unit that is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// The logical unit.
    pub lpn: u32,
    /// The place that it is read from.
    pub from: Ppn,
    /// The place that it is programmed at, once it is bound.
    pub to: Ppn,
}

impl Ftl {
    /// Ends a copy: the map moves to it, unless its unit was overwritten or trimmed in the meantime. Returns `true` if
    /// the map has moved. If a write of the unit waits for its place, that will supersede the copy.
    pub(crate) fn end_copy(&mut self, copy: &Copy, cause: CopyCause, ops: &mut Transactions) -> bool {
        let &Copy { lpn, from, to } = copy;
        if !self.blocks.is_valid(from) {
            self.counters.copies_in_vain += 1;
            return false;
        }
        self.blocks.invalidate(from);
        self.blocks.validate(to);
        self.note_moved(Lpn(lpn), cause);
        match self.map.get(Lpn(lpn)) {
            Location::Flash(place) => {
                debug_assert_eq!(place, from, "a valid unit is mapped");
                self.map.set_flash(Lpn(lpn), to);
            }
            Location::Slot(newest) => {
                let mut id = newest;
                while ops[id].older.is_some() {
                    id = ops[id].older;
                }
                debug_assert_eq!(ops[id].source, from);
                ops[id].source = to;
            }
            Location::Unmapped => debug_assert!(false, "a valid unit is mapped"),
        }
        true
    }
}
