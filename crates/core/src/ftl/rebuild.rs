//! Rebuilds of uncorrectable pages from their stripe: the pages that are read for it, and the move of the rebuilt
//! units. `device/rebuild.rs` reads them. See docs/model/superblocks.md.

use super::Ftl;
use super::mover::copy::CopySource;
use super::space::{BlockState, Role};
use crate::metrics::counters::CopyCause;
use crate::sim::id::{PlaneId, Ppn, TransactionId};
use crate::work::{Kind, Transaction};

/// Rebuild of a page.
#[derive(Clone, Copy, Debug)]
struct Rebuild {
    /// Read of the page, which waits.
    read: TransactionId,
    /// Number of pages of the stripe that have not been read.
    left: usize,
    /// True if one of them is uncorrectable, too.
    failed: bool,
}

/// Pages that are being rebuilt. They are few.
#[derive(Clone, Debug, Default)]
pub struct Rebuilds {
    active: Vec<Rebuild>,
}

impl Rebuilds {
    /// Starts the rebuild of the page that `read` has read, from `left` other pages.
    pub fn start(&mut self, read: TransactionId, left: usize) {
        self.active.push(Rebuild { read, left, failed: false });
    }

    /// Notes that one of the other pages was read, or is uncorrectable, too (`fails`). If it was the last one, the
    /// rebuild has ended: returns `true` if it has failed.
    pub fn end_read(&mut self, read: TransactionId, fails: bool) -> Option<bool> {
        let index = self.active.iter().position(|rebuild| rebuild.read == read)?;
        let rebuild = &mut self.active[index];
        (rebuild.left, rebuild.failed) = (rebuild.left - 1, rebuild.failed || fails);
        (rebuild.left == 0).then(|| self.active.swap_remove(index).failed)
    }
}

impl Ftl {
    /// Returns the reads of the other pages of a stripe that rebuild the page of a read: those of all pages that are in
    /// flash. The controller holds the parity of the others. Returns `None` if the stripe cannot rebuild the page.
    pub fn rebuild_reads(&self, read: &Transaction) -> Option<Vec<Transaction>> {
        let per_page = self.shape.units_per_page.divisor();
        let spans = self.shape.pages_per_unit;
        let others = self.blocks.others_of_stripe(Ppn(read.ppn.0 / per_page * per_page))?;
        let read_of = |ppn| {
            let mut other = Transaction::new(Kind::RebuildRead, read.class);
            other.plane = self.blocks.plane_of(self.blocks.block_of(ppn));
            (other.ppn, other.units) = (ppn, spans.max(per_page) as u16);
            other
        };
        Some(others.into_iter().map(read_of).collect())
    }

    /// Notes that the page of an address was rebuilt. Its units are moved, unless those of its block are moved anyway.
    pub fn note_rebuilt(&mut self, ppn: Ppn) {
        self.counters.rebuilt += 1;
        let per_page = self.shape.units_per_page.divisor();
        let block = self.blocks.block(self.blocks.block_of(ppn));
        let page = (Ppn(ppn.0 / per_page * per_page), block.erases);
        let stays = matches!(block.state, BlockState::Open | BlockState::Closed);
        if let Some(faults) = self.faults.as_mut().filter(|faults| stays && !faults.rebuilt.contains(&page)) {
            faults.rebuilt.push(page);
        }
    }

    /// Returns `true` if pages of a plane were rebuilt and wait for their move.
    pub fn has_rebuilt(&self, plane: PlaneId) -> bool {
        let waiting = self.faults.iter().flat_map(|faults| &faults.rebuilt);
        waiting.into_iter().any(|(page, _)| self.blocks.plane_of(self.blocks.block_of(*page)) == plane)
    }

    /// Takes the valid units of the pages of a plane that were rebuilt, at most a program. If only the blocks that are
    /// reserved for garbage collection are free, the units stay at their addresses.
    pub(in crate::ftl) fn take_rebuilt(&mut self, plane: PlaneId, to: &mut Vec<CopySource>) {
        let most = self.shape.units_per_program.max(self.shape.units_per_page.divisor()) as usize;
        while to.len() + self.shape.units_per_page.divisor() as usize <= most {
            let Some(page) = self.next_rebuilt(plane) else { return };
            for ppn in (page.0..page.0 + self.shape.units_per_page.divisor()).map(Ppn) {
                if self.blocks.is_valid(ppn) {
                    to.push(CopySource { lpn: self.map.owner(ppn), from: ppn });
                    self.blocks.depend(ppn);
                }
            }
            if !to.is_empty() {
                self.blocks.move_for(self.blocks.block_of(page), CopyCause::Rebuild);
            }
        }
    }

    /// Takes the first page of a plane that was rebuilt and whose units have not been moved since.
    fn next_rebuilt(&mut self, plane: PlaneId) -> Option<Ppn> {
        let has_room = self.blocks.free_blocks(plane, Role::Data) > self.blocks.reserve(plane, Role::Data);
        loop {
            let Ftl { faults, blocks, .. } = self;
            let waiting = &mut faults.as_mut()?.rebuilt;
            let is_of = |(page, _): &(Ppn, u32)| blocks.plane_of(blocks.block_of(*page)) == plane;
            let (page, erases) = waiting.remove(waiting.iter().position(is_of)?);
            let block = blocks.block(blocks.block_of(page));
            let stays = matches!(block.state, BlockState::Open | BlockState::Closed) && block.erases == erases;
            if has_room && stays {
                return Some(page);
            }
        }
    }
}
