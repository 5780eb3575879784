//! Copies to given places: units are read from the blocks that hold them, and are programmed in the order of their
//! addresses, together with writes of the host. Mapping schemes that merge blocks use it.

use crate::ftl::Ftl;
use crate::ftl::mapping::{Context, PADDING};
use crate::ftl::mover::copy::Copy;
use crate::metrics::counters::{CopyCause, ReadCause};
use crate::sim::id::{Lpn, Ppn, TransactionId};
use crate::work::{Class, Kind, Transaction};

/// The copies of one program: first the units are read, then the program is bound, then it ends.
#[derive(Clone, Debug)]
pub struct Gather {
    copies: Vec<Copy>,
    /// Reads that have not ended.
    reads: u32,
    /// A read that is not queued yet, because it may take more units of its page.
    open: TransactionId,
}

impl Default for Gather {
    fn default() -> Gather {
        Gather { copies: Vec::new(), reads: 0, open: TransactionId::NONE }
    }
}

impl Gather {
    /// Adds the unit at a place to the next program. Units of a page that are added one after the other are read
    /// together. The scheme is told of the end of each read with `number`.
    pub fn add(&mut self, cx: &mut (impl Context + ?Sized), number: u32, from: Ppn) {
        let ftl = cx.ftl();
        let (block, per_page) = (ftl.blocks.depend(from), ftl.shape().units_per_page);
        self.copies.push(Copy { lpn: ftl.map.owner(from), from, to: Ppn::NONE });
        if self.open.is_some() {
            let read = &mut cx.ops()[self.open];
            if per_page.divide(read.ppn.0) == per_page.divide(from.0) {
                read.units += 1;
                return;
            }
            cx.enqueue(self.open);
        }
        let ftl = cx.ftl();
        let mut read = Transaction::new(Kind::MergeRead, Class::Gc).of_logical_block(number);
        (read.plane, read.ppn) = (ftl.blocks.plane_of(block), from);
        read.units = ftl.shape().pages_per_unit as u16;
        self.open = cx.ops().insert(read);
        self.reads += 1;
    }

    /// Queues the last read. Returns `true` if no unit was added, so that there is nothing to wait for.
    pub fn is_ready(&mut self, cx: &mut (impl Context + ?Sized)) -> bool {
        if self.open.is_some() {
            cx.enqueue(std::mem::replace(&mut self.open, TransactionId::NONE));
        }
        self.reads == 0
    }

    /// A read has ended. Returns `true` if that was the last one.
    pub fn read_ended(&mut self) -> bool {
        self.reads -= 1;
        self.reads == 0
    }

    /// Binds the copies. A unit that has been overwritten or trimmed since it was read is dropped, and so is one whose
    /// place a write of the host has taken: a place is free if its owner is [`PADDING`].
    pub fn bind(&mut self, cx: &mut (impl Context + ?Sized), place_of: impl Fn(Lpn) -> Ppn) {
        self.copies.retain_mut(|copy| {
            let ftl = cx.ftl();
            copy.to = place_of(Lpn(copy.lpn));
            if ftl.blocks.is_valid(copy.from) && ftl.map.owner(copy.to) == PADDING {
                ftl.map.set_owner(copy.to, copy.lpn);
                return true;
            }
            let block = ftl.blocks.block_of(copy.from);
            cx.release(block);
            false
        });
    }

    /// Returns the copies of the program: logical units, and their places.
    pub fn copies(&self) -> &[Copy] {
        &self.copies
    }

    /// Returns the place that a unit is copied from which is programmed at `ppn`.
    pub fn source_of(&self, ppn: Ppn) -> Option<Ppn> {
        self.copies.iter().find(|copy| copy.to == ppn).map(|copy| copy.from)
    }

    /// The program has ended: the map moves to the copies.
    pub fn end(&mut self, cx: &mut (impl Context + ?Sized)) {
        self.copies.drain(..).for_each(|copy| cx.end_copy(&copy));
    }
}

impl Ftl {
    /// Copies a unit to a place that has been programmed with it, without time. `last_page` is the page that was read
    /// last: another one counts as a read.
    pub fn copy_now(&mut self, from: Ppn, to: Ppn, last_page: &mut u32) {
        let page = self.shape().units_per_page.divide(from.0);
        if std::mem::replace(last_page, page) != page {
            self.note_read(ReadCause::Merge, self.shape().pages_per_unit);
        }
        if let Some(media) = &mut self.media {
            media.copy(from, to);
        }
        self.end_copy(&Copy { lpn: self.map.owner(from), from, to }, CopyCause::Merge);
    }
}
