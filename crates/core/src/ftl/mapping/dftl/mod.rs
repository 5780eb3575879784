//! DFTL: the map is in flash, and the controller caches entries of it (Gupta, Kim, Urgaonkar, "DFTL: a flash
//! translation layer employing demand-based selective caching of page-level address mappings", ASPLOS 2009).

pub mod cmt;
mod directory;
mod entries;
mod now;
mod options;
mod pages;
mod reclaim;
mod state;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::{
    Bound, Change, Context, Ended, KeptBlock, Location, LookUp, Mapping, Program, Recovering, SchemeReport, Step,
    TRANSLATION, Target, page,
};
use crate::config::DeviceConfig;
use crate::config::cells::CellMode;
use crate::ftl::Ftl;
use crate::ftl::space::{InHand, Role};
use crate::policy::Policy;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use crate::sim::table::Table;
use crate::state::{Reader, StateError, Writer};
use crate::work::{Call, Fifo};
pub use directory::MapState;
pub use options::DftlConfig;
use options::{MAX_CACHED, MAX_ENTRIES, MAX_UNITS_PER_BLOCK};
pub use state::Dftl;
use state::{Page, Reclaim, step};

impl Policy for Dftl {
    type Config = DftlConfig;

    fn check(options: &DftlConfig, device: &DeviceConfig) -> Result<(), String> {
        if options.cells == CellMode::Slc && device.nand.slc_mode.is_none() {
            let what = "needs nand.slc_mode, with the times of such blocks; add it, or use \"native\"";
            return Err(format!("cells = slc: {what}"));
        }
        let program = options.bytes_per_page(device);
        if !(1..=program).contains(&options.entry.0) {
            return Err(format!("entry = {}: expected 1 B to {program} B (a translation page)", options.entry));
        }
        if program / options.entry.0 > MAX_ENTRIES {
            return Err(format!("entry = {}: a translation page has at most {MAX_ENTRIES} entries", options.entry));
        }
        if options.cached_entry.0 == 0 || !(1..=MAX_CACHED).contains(&options.cached_entries()) {
            let what = format!("must hold from 1 to {MAX_CACHED} entries of {}", options.cached_entry);
            return Err(format!("cache = {}: {what} (cached_entry)", options.cache));
        }
        if device.units_per_block() > MAX_UNITS_PER_BLOCK {
            let units = device.units_per_block();
            return Err(format!("a block of {units} mapping units, at most {MAX_UNITS_PER_BLOCK} with this scheme"));
        }
        Ok(())
    }

    fn new(options: &DftlConfig, device: &DeviceConfig, _: u64) -> Result<Self, String> {
        Dftl::check(options, device)?;
        let state = MapState::new(options, device);
        let planes = device.total_planes();
        Ok(Dftl {
            pages: Table::new(state.pages(), Page::default()),
            jobs: Table::new(planes, Reclaim::default()),
            stalled: Table::new(planes, VecDeque::new()),
            moved: Table::new(planes, Vec::new()),
            line: Fifo::default(),
            state,
        })
    }
}

impl<C: Context + ?Sized> Mapping<C> for Dftl {
    fn look_up(&mut self, cx: &mut C, lpn: Lpn, what: LookUp) -> bool {
        match what {
            LookUp::Read if matches!(cx.ftl().map.get(lpn), Location::Slot(_)) => true,
            LookUp::Read | LookUp::Write => {
                let hit = self.state.cmt.touch(lpn);
                cx.ftl().counters.map.hits += u64::from(hit);
                hit
            }
            LookUp::Await(id) => {
                cx.ftl().counters.map.misses += 1;
                self.seek(cx, id, false);
                false
            }
            LookUp::Arrived => {
                self.state.cmt.load(lpn);
                true
            }
        }
    }

    fn changed(&mut self, cx: &mut C, lpn: Lpn, change: Change) {
        match change {
            Change::Trimmed => {}
            _ if !cx.has_time() => {
                if lpn.0 < cx.ftl().host_units {
                    self.state.note_changed(lpn);
                }
            }
            Change::Entry => self.entry_changed(cx, lpn),
            Change::Moved(from) => self.entry_moved(cx, lpn, from),
        }
    }

    fn place(&mut self, _: &mut C, _: TransactionId) {}

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        Mapping::<C>::target(&page::Page, ftl, of)
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        self.start_map_write(cx, id)
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        match end {
            Ended::MapRead(id) => self.finish_map_read(cx, id),
            Ended::MapWrite(id) => self.finish_map_write(cx, id),
            Ended::MapWriteFailed(id) => self.write_map_again(cx, id),
            Ended::Erase(plane) | Ended::EraseFailed(plane) => {
                let awaiting_erase = &mut self.jobs[plane].awaiting_erase;
                *awaiting_erase = awaiting_erase.saturating_sub(1);
            }
            Ended::CopyRead(_) | Ended::Writes(..) | Ended::Copies(..) | Ended::ProgramFailed(..) => {
                unreachable!("DFTL keeps no blocks of data")
            }
        }
        true
    }

    fn step(&mut self, cx: &mut C, step: Step) {
        match step {
            Step::Call(Call { step: step::SERVE, .. }) => self.serve_line(cx),
            Step::Call(Call { step: step::FETCHED, number, .. }) => self.fetched(cx, number),
            Step::Call(Call { step: step::UPDATED, line, .. }) => self.updated(cx, line),
            Step::Call(Call { line, number, .. }) => self.ask_updates(cx, line, BlockId(number)),
            Step::MapProgrammed(page, ppn) => self.page_programmed(cx, page, ppn),
            Step::Collected(plane) if self.moved[plane].is_empty() => {}
            Step::Collected(plane) => self.hold_moved(cx, plane),
            Step::ReadOnly => self.drop_map_updates(cx),
            Step::Seal => self.write_changed_map(cx),
        }
    }

    fn make_room(&mut self, cx: &mut C, plane: PlaneId, freed: bool) {
        if freed {
            self.unpark_map(cx, plane);
        }
        self.reclaim(cx, plane);
    }

    fn can_go_on(&self, ftl: &Ftl, plane: PlaneId, hand: InHand) -> bool {
        let (planes, position) = (ftl.shape().planes, ftl.allocation.order().position(plane));
        let pages = (self.state.pages() + planes - 1 - position) / planes;
        Mapping::<C>::can_go_on(&page::Page, ftl, plane, hand)
            && ftl.blocks.is_sure(ftl.blocks.region(plane, Role::Map), self.jobs[plane].in_hand(ftl))
            && ftl.blocks.holds_map(plane, pages)
    }

    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        found.close()
    }

    fn blocks(&self, _: &Ftl, _: &mut dyn FnMut(KeptBlock)) {}

    fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        self.state.save(out)
    }

    fn load(&mut self, ftl: &mut Ftl, input: &mut Reader, written: &mut [u16]) -> Result<(), StateError> {
        self.state.load(input)?;
        let group = ftl.blocks.size(Role::Map).program_units;
        for page in 0..self.state.pages() {
            let Some(ppn) = self.state.place(page) else { continue };
            let units = ppn.0..ppn.0.saturating_add(group);
            let whole = ftl.blocks.offset_in_block(ppn).is_multiple_of(group);
            let home = ftl.blocks.plane_of(ftl.blocks.block_of(ppn)) == ftl.map_home(page);
            if !whole || !home || !units.clone().all(|unit| ftl.blocks.adopt(Ppn(unit), Role::Map, written)) {
                return Err(input.damaged(format!("the address of translation page {page}")));
            }
            units.for_each(|unit| ftl.map.set_owner(Ppn(unit), TRANSLATION | page));
        }
        Ok(())
    }

    fn report(&self, _: &Ftl) -> SchemeReport {
        let (loading, outstanding) = (self.state.cmt.loading(), self.describe_pages());
        SchemeReport { loading, outstanding, ..SchemeReport::default() }
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        self.recount_map(ftl)
    }
}
