//! Saved states of the translation layer.

use super::Ftl;
use super::mapping::{Location, PADDING, TRANSLATION};
use super::space::Role;
use crate::metrics::counters::{Counters, FaultCounts, ProgramCause};
use crate::metrics::table::Count;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::state::{COUNT_LIMIT, Reader, StateError, Writer};

impl Ftl {
    /// Describes what is in progress, or returns `None` if nothing is. A state is saved between two operations.
    pub fn in_progress(&self) -> Option<String> {
        if let Some(what) = self.blocks.in_progress() {
            return Some(what);
        }
        let writes = self.outstanding_writes();
        if writes > 0 {
            return Some(format!("{writes} writes of functional mode have not been programmed"));
        }
        let loading = self.scheme().report(self).loading;
        if loading > 0 {
            return Some(format!("{loading} map entries are being loaded"));
        }
        (0..self.map.all()).find_map(|lpn| match self.map.get(Lpn(lpn)) {
            Location::Slot(_) => Some(format!("the write of unit {lpn} has not ended")),
            _ => None,
        })
    }

    /// Writes the state, section by section. Nothing may be in progress.
    pub fn save(&self, out: &mut Writer) -> Result<(), StateError> {
        out.section("media/blocks", |out| self.blocks.save(out))?;
        out.section("policy/mapping", |out| self.scheme().save(out))?;
        out.section("media/map", |out| {
            (0..self.map.all()).try_for_each(|lpn| match self.map.get(Lpn(lpn)) {
                Location::Flash(ppn) => out.u32(ppn.0 + 1),
                Location::Unmapped | Location::Slot(_) => out.u32(0),
            })
        })?;
        out.section("media/invalid", |out| {
            let written = self.written();
            self.invalid(&written).try_for_each(|ppn| out.u32(self.map.owner(ppn)))
        })?;
        out.section("media/sectors", |out| self.partial.save(out))?;
        out.section("media/counts", |out| self.counters.saved().into_iter().try_for_each(|value| out.u64(value)))?;
        if self.folding.is_some() {
            out.section("media/folding", |out| {
                self.counters.clone().of_folding().into_iter().try_for_each(|count| out.u64(*count))
            })?;
        }
        if self.blocks.has_superblocks() {
            out.section("media/parity", |out| out.u64(self.counters.pages_programmed[ProgramCause::Parity as usize]))?;
        }
        if let Some(media) = &self.media {
            out.section("media/contents", |out| media.save(out))?;
        }
        if let Some(faults) = &self.faults {
            out.section("media/faults", |out| {
                self.counters.faults.values().into_iter().try_for_each(|value| out.u64(value))?;
                faults.save(out)
            })?;
        }
        out.section("policy/allocation", |out| self.allocation.save(out))?;
        out.section("policy/trigger", |out| self.trigger.save(out))?;
        if let Some(classes) = &self.classes {
            out.section("policy/temperature", |out| classes.save(out))?;
        }
        out.section("policy/victim", |out| self.blocks.save_victims(out))
    }

    /// Reads what [`Ftl::save`] wrote, into a new FTL of a device of the same shape. A plane may hold at most `spare`
    /// units that belong to other planes.
    pub fn load(&mut self, input: &mut Reader, spare: u64) -> Result<(), StateError> {
        let fails = self.faults.is_some();
        let owed = input.section("media/blocks", |input| self.blocks.load(fails, input))?;
        self.set_owed(owed);
        let mut written = self.blocks.written();
        input
            .section("policy/mapping", |input| self.with_scheme(|scheme, ftl| scheme.load(ftl, input, &mut written)))?;
        input.section("media/map", |input| self.load_map(input, &written, spare))?;
        input.section("media/invalid", |input| self.load_invalid(input, &written))?;
        input.section("media/sectors", |input| {
            self.partial.load(input, |lpn| self.map.get(Lpn(lpn)) != Location::Unmapped)
        })?;
        input.section("media/counts", |input| self.load_counts(input))?;
        if self.folding.is_some() {
            input.section("media/folding", |input| {
                self.counters.of_folding().into_iter().try_for_each(|count| {
                    *count = input.count("counted")?;
                    Ok(())
                })
            })?;
        }
        if self.blocks.has_superblocks() {
            self.counters.pages_programmed[ProgramCause::Parity as usize] =
                input.section("media/parity", |input| input.count("pages of parity"))?;
        }
        if let Some(media) = &mut self.media {
            input.section("media/contents", |input| media.load(input))?;
        }
        if fails {
            input.section("media/faults", |input| self.load_faults(input))?;
        }
        self.blocks.count_closed();
        input.section("policy/allocation", |input| self.allocation.load(input))?;
        input.section("policy/trigger", |input| self.trigger.load(input))?;
        if let Some(classes) = &mut self.classes {
            input.section("policy/temperature", |input| classes.load(input))?;
        }
        input.section("policy/victim", |input| self.blocks.load_victims(input))?;
        (0..self.shape.planes).for_each(|plane| self.refresh_ready(PlaneId(plane)));
        self.scheme().recount(self).map_err(|what| input.damaged(what))
    }

    /// Copies the state of another FTL, of a device of the same shape.
    pub fn copy_state(&mut self, other: &Ftl) {
        let (shape, refresh) = (self.shape, self.refresh.take());
        let moves_for_reasons = self.blocks.moves_for_reasons();
        *self = other.clone();
        // Options that do not affect saved states may differ.
        (self.shape, self.refresh) = (shape, refresh);
        self.blocks.set_moves_for_reasons(moves_for_reasons);
    }

    /// Returns the number of units of each block that have been written.
    fn written(&self) -> Vec<u16> {
        let mut written = self.blocks.written();
        self.scheme().blocks(self, &mut |kept| written[kept.block.index()] = kept.units as u16);
        written
    }

    /// Returns the addresses that are written and not valid, in order.
    fn invalid<'a>(&'a self, written: &'a [u16]) -> impl Iterator<Item = Ppn> + 'a {
        let places = written.iter().enumerate().flat_map(|(block, &written)| {
            let first = self.blocks.first_unit(BlockId(block as u32)).0;
            (first..first + u32::from(written)).map(Ppn)
        });
        places.filter(|ppn| !self.blocks.is_valid(*ppn))
    }

    fn load_map(&mut self, input: &mut Reader, written: &[u16], spare: u64) -> Result<(), StateError> {
        let mut guests = vec![0u64; self.shape.planes as usize];
        for lpn in 0..self.map.all() {
            let Some(ppn) = input.u32()?.checked_sub(1) else { continue };
            let ppn = Ppn(ppn);
            if !self.blocks.adopt(ppn, Role::Data, written) {
                return Err(input.damaged(format!("unit {lpn} at address {}", ppn.0)));
            }
            self.map.set_flash(Lpn(lpn), ppn);
            self.map.set_owner(ppn, lpn);
            let plane = self.blocks.plane_of(self.blocks.block_of(ppn));
            guests[plane.index()] += u64::from(self.is_guest(Lpn(lpn), plane));
        }
        // A plane with more units than it can hold would never get a free block again.
        match guests.into_iter().max().filter(|&most| most > spare) {
            Some(most) => {
                let what = format!("a plane holds {most} units of other planes, at most {spare}");
                Err(input.damaged(what))
            }
            None => Ok(()),
        }
    }

    /// Returns `true` if a plane holds a unit that the allocation assigns to another one, as some layouts do.
    fn is_guest(&self, lpn: Lpn, plane: PlaneId) -> bool {
        match self.home(lpn) {
            Some(home) => home != plane,
            None => self.pool(lpn) != self.allocation.pool_of(plane),
        }
    }

    fn load_invalid(&mut self, input: &mut Reader, written: &[u16]) -> Result<(), StateError> {
        let units = self.map.all();
        let pages = self.shape.map_pages;
        for (block, &written) in written.iter().enumerate() {
            let first = self.blocks.first_unit(BlockId(block as u32)).0;
            for ppn in (first..first + u32::from(written)).map(Ppn) {
                if self.blocks.is_valid(ppn) {
                    continue;
                }
                let owner = input.u32()?;
                let known =
                    owner == PADDING || owner < units || (owner & TRANSLATION != 0 && owner ^ TRANSLATION < pages);
                if !known {
                    return Err(input.damaged(format!("address {} was unit {owner}", ppn.0)));
                }
                self.map.set_owner(ppn, owner);
            }
        }
        Ok(())
    }

    fn load_faults(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let mut values = FaultCounts::default().values();
        for value in &mut values {
            *value = input.count("counted")?;
        }
        self.counters.faults = FaultCounts::of_values(&values);
        let units = self.blocks.first_unit(BlockId(self.blocks.all().len() as u32)).0;
        if let Some(faults) = &mut self.faults {
            faults.load(units, input)?;
        }
        self.find_failed();
        Ok(())
    }

    fn load_counts(&mut self, input: &mut Reader) -> Result<(), StateError> {
        let mut values = Counters::default().saved();
        for value in &mut values {
            *value = input.count("counted")?;
        }
        debug_assert!(values.iter().all(|value| *value < COUNT_LIMIT));
        self.counters = Counters::of_saved(&values);
        Ok(())
    }
}
