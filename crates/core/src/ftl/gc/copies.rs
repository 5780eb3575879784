//! Copies of a job: where the units go that it has read, and whether a page can be moved within its plane.

use super::job::Job;
use crate::config::advanced::Waste;
use crate::ftl::Ftl;
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::{FrontierId, Role};
use crate::metrics::counters::ProgramCause;
use crate::sim::id::{PlaneId, Ppn};

impl Job {
    /// Returns the frontier of the next program of units that have been read.
    pub fn frontier_of_copies(&self, ftl: &Ftl, plane: PlaneId) -> FrontierId {
        let blocks = &ftl.blocks;
        match self.moving.copies.iter().find(|copy| blocks.is_valid(copy.from)) {
            Some(copy) => blocks.frontier_for_copy(plane, copy.from, ftl.class_of(copy.lpn)),
            None => blocks.frontier_for_moved(plane, 0),
        }
    }

    /// Binds the program of units that have been read. Returns its first address and its cause, or `None` if no unit is
    /// left.
    #[inline(always)]
    pub fn bind_copies(&mut self, ftl: &mut Ftl, plane: PlaneId) -> Option<(Ppn, ProgramCause)> {
        let first_copy = *self.moving.copies.first()?;
        let free_blocks = ftl.blocks.free_blocks(plane, Role::Data);
        let class = ftl.class_of(first_copy.lpn);
        let blocks = &ftl.blocks;
        let cause = if blocks.moves_for_reasons() {
            blocks.cause_of_copy(blocks.block_of(first_copy.from))
        } else {
            ProgramCause::Gc
        };
        let frontier = match cause {
            ProgramCause::Wear => blocks.frontier_for_copy(plane, first_copy.from, class),
            _ => blocks.frontier_for_moved(plane, class),
        };
        let group = ftl.shape().units_per_program;
        let count = self.moving.copies.len().min(group as usize);
        self.moving.writing = count;
        let first = ftl.bind_copies(frontier, &self.moving.copies[..count], group, |_, _, _| {});
        ftl.note_program_in(plane, cause, count as u32);
        if ftl.blocks.free_blocks(plane, Role::Data) != free_blocks || ftl.shape().single_frontier {
            ftl.refresh_ready(plane);
        }
        Some((first, cause))
    }

    /// Binds the page that starts at `from`, which copy-back moves within its plane. Returns its new address.
    pub fn bind_back(&mut self, ftl: &mut Ftl, plane: PlaneId, from: Ppn) -> Ppn {
        let shape = *ftl.shape();
        let free_blocks = ftl.blocks.free_blocks(plane, Role::Data);
        let to = ftl.blocks.advance(ftl.blocks.frontier_for_copy(plane, from, 0), shape.units_per_page.divisor());
        ftl.map.pad(to.0..to.0 + shape.units_per_program);
        for copy in &self.moving.back {
            ftl.map.set_owner(Ppn(to.0 + copy.from.0 - from.0), copy.lpn);
        }
        ftl.note_copy_back(ftl.blocks.block_of(from), self.moving.back.len() as u32);
        if ftl.blocks.free_blocks(plane, Role::Data) != free_blocks || shape.single_frontier {
            ftl.refresh_ready(plane);
        }
        to
    }

    /// Returns the copy number `index` of the program that has ended at `ppn`: of a page within its plane (`back`), or
    /// of units that were read.
    #[inline]
    pub fn ended_copy(&self, ftl: &Ftl, back: bool, index: usize, ppn: Ppn) -> Copy {
        if back {
            let copy = self.moving.back[index];
            let (_, in_page) = ftl.shape().units_per_page.divide_with_rest(copy.from.0);
            return copy.to(Ppn(ppn.0 + in_page));
        }
        self.moving.copies[index].to(Ppn(ppn.0 + index as u32))
    }

    /// Returns `true` if the next page to be moved by copy-back could be moved if it was bound now: see
    /// [`Job::make_parity_fit`].
    pub fn stays_copy_back(&self, ftl: &Ftl, plane: PlaneId) -> bool {
        let shape = ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let valid = self.moving.back.iter().filter(|copy| ftl.blocks.is_valid(copy.from));
        let (Some(first), count) = (valid.clone().next(), valid.count() as u32) else { return false };
        let next = ftl.blocks.next_ppn(ftl.blocks.frontier_for_copy(plane, first.from, 0));
        let next = next.map_or(0, |ppn| ftl.page_in_block(ppn));
        let fits = (ftl.page_in_block(first.from) ^ next) & 1 == 0;
        let cost = page_units - count + if fits { 0 } else { page_units };
        cost == 0 || (shape.copy_back == Waste::Blind && self.gain >= cost + shape.units_per_program)
    }

    /// Decides whether copy-back can move the page `from` to the next page of its frontier. Restriction *b* requires
    /// that both pages are odd or both even. Skips a page of the frontier if necessary and if the waste is allowed.
    pub fn make_parity_fit(&mut self, ftl: &mut Ftl, plane: PlaneId, from: Ppn) -> Fit {
        let shape = *ftl.shape();
        let page_units = shape.units_per_page.divisor();
        let frontier = ftl.blocks.frontier_for_copy(plane, from, 0);
        let next = ftl.blocks.next_ppn(frontier);
        let next_page = next.map_or(0, |ppn| ftl.page_in_block(ppn));
        let fits = !shape.copy_back_parity || (ftl.page_in_block(from) ^ next_page) & 1 == 0;
        let invalid = page_units - self.moving.back.len() as u32;
        let cost = invalid + if fits { 0 } else { page_units };
        if cost == 0 {
            return Fit::Fits;
        }
        if shape.copy_back != Waste::Blind || self.gain < cost + shape.units_per_program {
            return Fit::Not;
        }
        self.gain -= cost;
        match next.filter(|_| !fits) {
            Some(ppn) => {
                ftl.waste(frontier, page_units, ProgramCause::WasteCopyback);
                Fit::Skipped(ppn)
            }
            None => Fit::Fits,
        }
    }
}

/// Answer to whether copy-back can move a page to the next page of its frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The page can be moved.
    Fits,
    /// The page can be moved, after the one at this address has been skipped.
    Skipped(Ppn),
    /// The page cannot be moved.
    Not,
}
