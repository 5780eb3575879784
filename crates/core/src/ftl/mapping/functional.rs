//! Translation pages without time: what functional writes have changed is written when they are done, and what the
//! timed part shares with that.

use super::TRANSLATION;
use crate::ftl::Ftl;
use crate::ftl::space::{Claim, RESERVE, Role};
use crate::metrics::counters::{MapCause, ProgramCause, ReadCause};
use crate::sim::id::{Lpn, PlaneId, Ppn};

impl Ftl {
    /// A functional write has changed the entry of `lpn`.
    #[inline]
    pub(in crate::ftl) fn note_changed(&mut self, lpn: Lpn) {
        if let Some(state) = self.map_state.as_mut().filter(|_| lpn.0 < self.host_units) {
            state.note_changed(lpn);
        }
    }

    /// The plane of a translation page: its number modulo the number of planes, in the order of the allocation.
    pub fn map_home(&self, page: u32) -> PlaneId {
        self.allocation.order().plane(page % self.shape().planes)
    }

    /// Counts a read of `pages` flash pages of a translation page.
    pub fn note_map_read(&mut self, cause: MapCause, pages: u32) {
        self.note_read(ReadCause::Map, pages);
        self.counters.map.reads[cause as usize] += 1;
    }

    /// Gives a translation page its next place; there must be room in its plane.
    pub fn bind_map(&mut self, page: u32, cause: MapCause) -> Ppn {
        let group = self.shape().units_per_program;
        let place = self.blocks.advance(self.blocks.map_frontier(self.map_home(page)), group);
        for unit in place.0..place.0 + group {
            self.map.set_owner(Ppn(unit), TRANSLATION | page);
        }
        self.note_program(ProgramCause::Map, group);
        self.told_map(page, place, group);
        self.counters.map.programs[cause as usize] += 1;
        place
    }

    /// A translation page has been programmed: what it was before is stale.
    pub fn map_programmed(&mut self, page: u32, place: Ppn) {
        let group = self.shape().units_per_program;
        self.told_end(place, group);
        let old = self.map_state.as_mut().and_then(|state| state.set_place(page, place));
        if let Some(media) = &mut self.media {
            (place.0..place.0 + group).for_each(|unit| media.write(Ppn(unit), None, None));
        }
        if let Some(old) = old {
            (old.0..old.0 + group).for_each(|unit| self.blocks.invalidate(Ppn(unit)));
            self.counters.map.units_superseded += u64::from(group);
        }
        (place.0..place.0 + group).for_each(|unit| self.blocks.validate(Ppn(unit)));
    }

    /// Writes the translation pages that functional writes have changed.
    pub(in crate::ftl) fn write_changed_map(&mut self) {
        let pages = self.map_state.as_ref().map_or(0, |state| state.pages());
        for page in 0..pages {
            if self.map_state.as_mut().is_some_and(|state| state.take_changed(page)) {
                let plane = self.map_home(page);
                if !self.blocks.may_take(self.blocks.region(plane, Role::Map), Claim::WRITE) {
                    self.clean_map_now(plane);
                }
                self.write_map_now(page, MapCause::Functional);
            }
        }
    }

    fn write_map_now(&mut self, page: u32, cause: MapCause) {
        let place = self.bind_map(page, cause);
        self.map_programmed(page, place);
        let group = self.shape().units_per_program;
        self.close_if_full(Ppn(place.0 + group - 1), self.blocks.map_frontier(self.map_home(page)));
    }

    /// Reclaims blocks of translation pages until one can be written beside the reserve.
    fn clean_map_now(&mut self, plane: PlaneId) {
        while self.blocks.free_blocks(plane, Role::Map) <= RESERVE {
            let Some(victim) = self.blocks.take_victim(self.blocks.region(plane, Role::Map), 0) else { return };
            self.counters.map.victims += 1;
            let (first, group) = (self.blocks.first_unit(victim).0, self.shape().units_per_program);
            for unit in (first..first + self.blocks.data_units()).step_by(group as usize) {
                if self.blocks.is_valid(Ppn(unit)) {
                    let pages = self.shape().pages_per_program;
                    self.note_map_read(MapCause::MapCleaning, pages);
                    self.write_map_now(self.map.owner(Ppn(unit)) & !TRANSLATION, MapCause::MapCleaning);
                }
            }
            self.blocks.doom(victim);
            self.erase_now(victim);
        }
    }

    /// Checks that each translation page in flash is valid exactly once; for tests.
    pub(in crate::ftl) fn recount_map(&self) -> Result<(), String> {
        let Some(state) = &self.map_state else { return Ok(()) };
        let group = self.shape().units_per_program;
        let mut held = 0;
        for page in 0..state.pages() {
            let Some(place) = state.place(page) else { continue };
            held += u64::from(group);
            for unit in (place.0..place.0 + group).map(Ppn) {
                let block = self.blocks.block(self.blocks.block_of(unit));
                if block.role != Role::Map || !self.blocks.is_valid(unit) || self.map.owner(unit) != TRANSLATION | page
                {
                    return Err(format!("translation page {page} is not at {}, where it should be", place.0));
                }
            }
        }
        let in_map =
            self.blocks.all().iter().filter(|block| block.role == Role::Map).map(|block| u64::from(block.valid));
        let valid: u64 = in_map.sum();
        if valid != held {
            return Err(format!("{held} units hold translation pages, {valid} are valid in their blocks"));
        }
        state.cmt.recount()
    }
}
