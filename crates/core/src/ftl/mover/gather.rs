//! Copies to given addresses: units are read from the blocks that hold them, and are programmed in the order of their
//! addresses, together with host writes. Mapping schemes that merge blocks use it.

use crate::ftl::Ftl;
use crate::ftl::mapping::{Context, Location, MergeDefect, PADDING};
use crate::ftl::mover::copy::Copy;
use crate::sim::id::{BlockId, Lpn, Ppn, TransactionId};
use crate::work::{Kind, Purpose, Transaction, Transactions};

/// Copies of one program. The units are read, then the program is bound, then it ends.
#[derive(Clone, Debug)]
pub struct Gather {
    copies: Vec<Copy>,
    /// Number of reads that have not ended.
    reads: u32,
    /// Read that is not queued yet, because it may take more units of its page.
    open: TransactionId,
}

impl Default for Gather {
    fn default() -> Gather {
        Gather { copies: Vec::new(), reads: 0, open: TransactionId::NONE }
    }
}

impl Gather {
    /// Adds the unit at an address to the next program. Units of a page that are added one after another are read
    /// together. The scheme gets `number` at the end of each read.
    pub fn add(&mut self, cx: &mut (impl Context + ?Sized), (number, purpose): (u32, Purpose), from: Ppn) {
        let ftl = cx.ftl();
        let block = ftl.blocks.depend(from);
        let per_page = ftl.shape().units_per_page;
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
        let mut read = Transaction::copying(Kind::MergeRead, ftl.blocks.plane_of(block), number, purpose);
        read.ppn = from;
        read.units = ftl.shape().pages_per_unit as u16;
        self.open = cx.ops().insert(read);
        self.reads += 1;
    }

    /// Queues the last read. Returns `true` if there are no reads to wait for.
    pub fn is_ready(&mut self, cx: &mut (impl Context + ?Sized)) -> bool {
        if self.open.is_some() {
            cx.enqueue(std::mem::replace(&mut self.open, TransactionId::NONE));
        }
        self.reads == 0
    }

    /// Returns `true` while reads have not ended.
    pub fn is_reading(&self) -> bool {
        self.reads > 0
    }

    /// Ends a read. Returns `true` if it was the last one.
    pub fn read_ended(&mut self) -> bool {
        self.reads -= 1;
        self.reads == 0
    }

    /// Binds the copies. Drops units that have been overwritten or trimmed since they were read, and units whose
    /// address a host write has taken. An address is free if its owner is [`PADDING`].
    pub fn bind(&mut self, cx: &mut (impl Context + ?Sized), place_of: impl Fn(&Copy) -> Ppn) {
        self.copies.retain_mut(|copy| {
            let ftl = cx.ftl();
            copy.to = place_of(copy);
            if ftl.blocks.is_valid(copy.from) && ftl.map.owner(copy.to) == PADDING {
                ftl.map.set_owner(copy.to, copy.lpn);
                if ftl.media.is_some() {
                    begin_copy(cx, copy);
                }
                return true;
            }
            let block = ftl.blocks.block_of(copy.from);
            cx.release(block);
            false
        });
    }

    /// Binds the copies to the units from `start` on, in the order in which they were added. Does the rest of
    /// [`Gather::bind`].
    pub fn bind_from(&mut self, cx: &mut (impl Context + ?Sized), start: Ppn) {
        (start.0..).zip(&mut self.copies).for_each(|(ppn, copy)| copy.to = Ppn(ppn));
        self.bind(cx, |copy| copy.to);
    }

    /// Returns the copies of the program.
    pub fn copies(&self) -> &[Copy] {
        &self.copies
    }

    /// Drops the copies of a program that has failed, or that will not start. All reads have ended.
    pub fn forget(&mut self, cx: &mut (impl Context + ?Sized)) {
        debug_assert_eq!(self.reads, 0, "the units are being read");
        for copy in self.copies.drain(..) {
            let block = cx.ftl().blocks.block_of(copy.from);
            cx.release(block);
        }
    }

    /// Ends the program, and maps units to their copies.
    pub fn end(&mut self, cx: &mut (impl Context + ?Sized)) {
        self.copies.drain(..).for_each(|copy| cx.end_copy(&copy));
    }
}

/// Notes the source of a copy, whose contents are verified.
#[cold]
fn begin_copy(cx: &mut (impl Context + ?Sized), copy: &Copy) {
    let (ftl, ops) = cx.ftl_and_ops();
    let from = ftl.source_of(ops, copy.to).unwrap_or(copy.from);
    if let Some(media) = &mut cx.ftl().media {
        media.begin_copy(from, copy.to);
    }
}

impl Ftl {
    /// Returns the address of the newest version of a unit that is in flash.
    pub fn newest_in_flash(&self, ops: &Transactions, lpn: Lpn) -> Option<Ppn> {
        match self.map.get(lpn) {
            Location::Unmapped => None,
            Location::Flash(ppn) => Some(ppn),
            Location::Slot(mut id) => {
                while ops[id].older.is_some() {
                    id = ops[id].older;
                }
                ops[id].source.get()
            }
        }
    }

    /// Returns the address from which a mapping scheme copies the unit at `to`, when it has just bound the copy.
    pub fn source_of(&self, ops: &Transactions, to: Ppn) -> Option<Ppn> {
        let from = self.newest_in_flash(ops, Lpn(self.map.owner(to)))?;
        let is_old = self.merge_defect == Some(MergeDefect::OldCopy);
        if is_old { self.older_copy(from, to).or(Some(from)) } else { Some(from) }
    }

    /// Test hook: returns the address of another version of the unit at `to`, at the same offset of its block.
    fn older_copy(&self, from: Ppn, to: Ppn) -> Option<Ppn> {
        let offset = self.blocks.offset_in_block(to);
        let blocks = (0..self.blocks.all().len() as u32).map(BlockId);
        let mut places = blocks.map(|block| Ppn(self.blocks.first_unit(block).0 + offset));
        places.find(|&place| place != from && place != to && self.map.owner(place) == self.map.owner(to))
    }
}
