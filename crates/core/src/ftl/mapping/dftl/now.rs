//! Translation pages without time: those that functional writes have changed are written at the end. Also has functions
//! that the timed part shares.

use super::pages::cause_of;
use super::state::Dftl;
use crate::config::cells::BlockSize;
use crate::ftl::Ftl;
use crate::ftl::mapping::Context;
use crate::ftl::mapping::TRANSLATION;
use crate::ftl::mover::Walk;
use crate::ftl::space::{Claim, Role};
use crate::metrics::counters::{MapCause, ProgramCause, ReadCause};
use crate::sim::id::{PlaneId, Ppn};
use crate::work::Transaction;

impl Ftl {
    /// Counts a read of flash pages of a translation page.
    pub fn note_map_read(&mut self, read: &Transaction) {
        self.count_map_read(cause_of(read.first), u32::from(read.units));
    }

    fn count_map_read(&mut self, cause: MapCause, pages: u32) {
        self.note_read(ReadCause::Map, pages);
        self.counters.map.reads[cause as usize] += 1;
    }

    /// Binds a translation page to its next address. There must be room in its plane.
    pub(super) fn bind_map(&mut self, page: u32, cause: MapCause) -> Ppn {
        let BlockSize { program_units, program_pages, .. } = *self.blocks.size(Role::Map);
        let ppn = self.blocks.advance(self.blocks.map_frontier(self.map_home(page)), program_units);
        for unit in ppn.0..ppn.0 + program_units {
            self.map.set_owner(Ppn(unit), TRANSLATION | page);
        }
        let counters = &mut self.counters;
        counters.program_commands += u64::from(self.shape.pages_per_unit);
        counters.pages_programmed[ProgramCause::Map as usize] += u64::from(program_pages);
        counters.units_programmed += u64::from(program_units);
        counters.map.programs[cause as usize] += 1;
        ppn
    }
}

impl Dftl {
    /// Notes that a translation page has been programmed. Its old version is invalid.
    pub(super) fn note_programmed(&mut self, ftl: &mut Ftl, page: u32, ppn: Ppn) {
        let group = ftl.blocks.size(Role::Map).program_units;
        let old = self.state.set_place(page, ppn);
        if let Some(media) = &mut ftl.media {
            (ppn.0..ppn.0 + group).for_each(|unit| media.write(Ppn(unit), None, None));
        }
        if let Some(old) = old {
            (old.0..old.0 + group).for_each(|unit| ftl.blocks.invalidate(Ppn(unit)));
            ftl.counters.map.units_invalidated += u64::from(group);
        }
        (ppn.0..ppn.0 + group).for_each(|unit| ftl.blocks.validate(Ppn(unit)));
    }

    /// Writes the translation pages that functional writes have changed.
    pub(super) fn write_changed_map(&mut self, cx: &mut (impl Context + ?Sized)) {
        for page in 0..self.state.pages() {
            if self.state.take_changed(page) {
                let ftl = cx.ftl();
                let plane = ftl.map_home(page);
                if !ftl.blocks.may_take(ftl.blocks.region(plane, Role::Map), Claim::WRITE) {
                    self.collect_map_now(ftl, plane);
                }
                let ppn = self.write_map_now(ftl, page, MapCause::Functional);
                cx.map_written(page, ppn);
            }
        }
    }

    fn write_map_now(&mut self, ftl: &mut Ftl, page: u32, cause: MapCause) -> Ppn {
        let ppn = ftl.bind_map(page, cause);
        self.note_programmed(ftl, page, ppn);
        let last = Ppn(ppn.0 + ftl.blocks.size(Role::Map).program_units - 1);
        ftl.close_if_full(last, ftl.blocks.map_frontier(ftl.map_home(page)), Role::Map);
        ppn
    }

    /// Reclaims blocks of translation pages until a free block is available in addition to the reserve.
    fn collect_map_now(&mut self, ftl: &mut Ftl, plane: PlaneId) {
        let region = ftl.blocks.region(plane, Role::Map);
        while ftl.blocks.is_down_to_reserve(region, 0) {
            let Some(victim) = ftl.blocks.take_victim(region, 0) else { return };
            ftl.counters.map.victims += 1;
            let mut walk = Walk::default();
            walk.start(ftl, victim);
            // Writing a page again invalidates it at its old address.
            while let Some(unit) = walk.next_valid(ftl) {
                ftl.count_map_read(MapCause::MapGc, ftl.blocks.size(Role::Map).program_pages);
                self.write_map_now(ftl, ftl.map.owner(unit) & !TRANSLATION, MapCause::MapGc);
            }
            ftl.blocks.await_erase(victim);
            ftl.erase_or_retire_now(victim);
        }
    }

    /// Test hook: checks that each translation page in flash is valid exactly once.
    pub(super) fn recount_map(&self, ftl: &Ftl) -> Result<(), String> {
        let state = &self.state;
        let group = ftl.blocks.size(Role::Map).program_units;
        let mut held = 0;
        for page in 0..state.pages() {
            let Some(ppn) = state.place(page) else { continue };
            held += u64::from(group);
            for unit in (ppn.0..ppn.0 + group).map(Ppn) {
                let block = ftl.blocks.block(ftl.blocks.block_of(unit));
                if block.role != Role::Map || !ftl.blocks.is_valid(unit) || ftl.map.owner(unit) != TRANSLATION | page {
                    return Err(format!("translation page {page} is not at {}, the address in the directory", ppn.0));
                }
            }
        }
        let in_map =
            ftl.blocks.all().iter().filter(|block| block.role == Role::Map).map(|block| u64::from(block.valid));
        let valid: u64 = in_map.sum();
        if valid != held {
            return Err(format!("{held} units hold translation pages, {valid} are valid in their blocks"));
        }
        state.cmt.recount()
    }
}
