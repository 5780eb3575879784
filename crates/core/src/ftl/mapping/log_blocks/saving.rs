//! Saved states of log-block mappings. Nothing is in progress.

use super::slots::{NOWHERE, Slot};
use super::{LogBlocks, Rules};
use crate::ftl::Ftl;
use crate::sim::id::{BlockId, Lpn, Ppn};
use crate::state::{Reader, StateError, Writer};

impl<R: Rules> LogBlocks<R> {
    pub(super) fn save_blocks(&self, out: &mut Writer) -> Result<(), StateError> {
        self.data.iter().try_for_each(|&block| out.u32(block))?;
        if self.in_place.is_some() {
            (0..self.data.len() as u32).try_for_each(|number| out.u32(self.filled(number)))?;
        }
        for slot in &self.slots[..self.fixed_slots() as usize] {
            out.u32(slot.block)?;
            out.u32(slot.number)?;
            out.u32(slot.next)?;
            out.u32(slot.expected)?;
            out.u64(slot.used)?;
            out.u8(u8::from(slot.ordered) | u8::from(slot.copied) << 1)?;
        }
        self.own.save(out)?;
        for set in &self.sets {
            out.u32(set.turn)?;
            for shared in &set.shared {
                out.u32(shared.idle.len() as u32)?;
                shared.idle.iter().try_for_each(|&slot| out.u32(slot))?;
            }
        }
        self.trims.save(out)?;
        for value in [self.clock, self.dropped, self.unwritten] {
            out.u64(value)?;
        }
        self.rules.save(out)
    }

    pub(super) fn load_blocks(
        &mut self,
        ftl: &mut Ftl,
        input: &mut Reader,
        written: &mut [u16],
    ) -> Result<(), StateError> {
        let mut taken = vec![false; written.len()];
        let units = self.layout.units();
        for number in 0..self.data.len() as u32 {
            let block = input.u32()?;
            if block != NOWHERE {
                self.adopt(ftl, input, block, self.layout.set_of(number), &mut taken)?;
                written[block as usize] = units as u16;
            }
            self.data[number as usize] = block;
        }
        if self.in_place.is_some() {
            for number in 0..self.data.len() as u32 {
                let (block, filled) = (self.data[number as usize], input.below(units + 1, "offset")?);
                if !filled.is_multiple_of(self.layout.group()) || (block == NOWHERE && filled > 0) {
                    return Err(input.damaged(format!("the data block of logical block {number}")));
                }
                if let Some(written) = written.get_mut(block as usize) {
                    *written = filled as u16;
                }
                self.set_filled(number, filled);
            }
        }
        for index in 0..self.fixed_slots() {
            self.load_slot(ftl, input, index, &mut taken)?;
            let Slot { block, next, .. } = self.slots[index as usize];
            if block != NOWHERE {
                written[block as usize] = next as u16;
            }
        }
        self.own.load(input, |block, plane, units| {
            let can = ftl.blocks.is_logical(block) && ftl.blocks.plane_of(block) == plane && !taken[block.index()];
            if can {
                (taken[block.index()], written[block.index()]) = (true, units as u16);
            }
            can
        })?;
        if taken.iter().filter(|taken| **taken).count() != ftl.blocks.logical().count() {
            return Err(input.damaged("a block that belongs to no logical block and is no log block"));
        }
        for set in 0..self.sets.len() as u32 {
            self.load_set(ftl, input, set)?;
        }
        self.trims.load(ftl.map.len(), input)?;
        self.clock = input.count("units written")?;
        self.dropped = input.count("writes dropped")?;
        self.unwritten = input.count("units not written")?;
        self.rules.load(input)
    }

    /// Takes a block of a set for a logical block or a slot.
    fn adopt(&self, ftl: &Ftl, input: &Reader, block: u32, set: u32, taken: &mut [bool]) -> Result<(), StateError> {
        let is_there = (block as usize) < taken.len() && !taken[block as usize];
        let fits = is_there
            && ftl.blocks.is_logical(BlockId(block))
            && self.layout.set_of_plane(ftl.blocks.plane_of(BlockId(block))) == set;
        if !fits {
            return Err(input.damaged(format!("block {block} as a data block or a log block")));
        }
        taken[block as usize] = true;
        Ok(())
    }

    fn load_slot(&mut self, ftl: &Ftl, input: &mut Reader, index: u32, taken: &mut [bool]) -> Result<(), StateError> {
        let units = self.layout.units();
        let (set, stream) = (self.set_of_slot(index), self.stream_of_slot(index));
        let (block, number) = (input.u32()?, input.u32()?);
        let next = input.below(units + 1, "offset")?;
        // The log block of runs expects any unit, or none.
        let expected = if self.runs == Some(stream) { input.u32()? } else { input.below(units + 1, "offset")? };
        let (used, flags) = (input.count("units written")?, input.u8()?);
        let empty = Slot::default();
        let is_whole = next.is_multiple_of(self.layout.group()) && flags <= 3;
        let belongs = match () {
            () if block == NOWHERE => {
                number == NOWHERE && (next, expected, used, flags) == (0, 0, 0, u8::from(empty.ordered))
            }
            // A device at rest has no merges.
            () if stream == self.streams.len() => false,
            () if !self.is_of_one(stream) => number == NOWHERE && flags == 0,
            () => {
                (number as usize) < self.data.len()
                    && self.layout.set_of(number) == set
                    && self.log_of[number as usize] == NOWHERE
            }
        };
        if !is_whole || !belongs {
            return Err(input.damaged(format!("log block {index}")));
        }
        if block == NOWHERE {
            return Ok(());
        }
        self.adopt(ftl, input, block, set, taken)?;
        self.slot_of[block as usize] = index;
        if number != NOWHERE {
            self.log_of[number as usize] = index;
        }
        let (ordered, copied) = (flags & 1 != 0, flags & 2 != 0);
        self.slots[index as usize] = Slot { block, number, next, expected, used, ordered, copied, ..empty };
        Ok(())
    }

    fn load_set(&mut self, ftl: &Ftl, input: &mut Reader, set: u32) -> Result<(), StateError> {
        let planes = self.layout.planes_of(set);
        let turn = input.below(planes.len() as u32, "plane")?;
        self.set(set).turn = turn;
        self.set(set).free = self.count_free(ftl, set);
        for stream in 0..self.streams.len() {
            let slots = self.slots_of(set, stream);
            let has_room = |slot: &u32| {
                let slot = &self.slots[*slot as usize];
                !slot.is_empty() && slot.next < self.layout.units()
            };
            let mut open: Vec<u32> = if self.is_shared(stream) { slots.filter(has_room).collect() } else { Vec::new() };
            let count = input.below(self.slots_per_set + 1, "log blocks with room")?;
            let idle = (0..count).map(|_| input.u32()).collect::<Result<Vec<u32>, StateError>>()?;
            let mut sorted = idle.clone();
            sorted.sort_unstable();
            open.sort_unstable();
            if sorted != open {
                return Err(input.damaged("the log blocks with room"));
            }
            let shared = &mut self.set(set).shared[stream];
            (shared.open, shared.idle) = (count, idle.into());
        }
        Ok(())
    }

    /// Test hook: checks the state against a count from scratch.
    pub(super) fn recount_blocks(&self, ftl: &Ftl) -> Result<(), String> {
        for (number, &block) in self.data.iter().enumerate().filter(|(_, block)| **block != NOWHERE) {
            self.check_offsets(ftl, block, number as u32, self.filled(number as u32))?;
        }
        for (index, slot) in self.slots.iter().enumerate().filter(|(_, slot)| !slot.is_empty()) {
            if slot.number != NOWHERE && slot.ordered {
                self.check_offsets(ftl, slot.block, slot.number, slot.next)?;
            } else {
                self.check_log(ftl, slot)?;
            }
            if self.slot_of[slot.block as usize] != index as u32 || slot.next > self.layout.units() {
                return Err(format!("block {} is not in slot {index}", slot.block));
            }
        }
        self.own.recount(ftl)?;
        for (number, set) in self.sets.iter().enumerate() {
            let free = self.count_free(ftl, number as u32);
            if free != self.free(ftl, number as u32) {
                return Err(format!("set {number} of planes has {free} free blocks, {} counted", set.free));
            }
        }
        Ok(())
    }

    /// Checks that the valid units of a log block belong to its logical block, if it has one, and to the host.
    fn check_log(&self, ftl: &Ftl, slot: &Slot) -> Result<(), String> {
        let first = ftl.blocks.first_unit(BlockId(slot.block)).0;
        for (offset, ppn) in (0..self.layout.units()).zip((first..).map(Ppn)).filter(|at| ftl.blocks.is_valid(at.1)) {
            let lpn = Lpn(ftl.map.owner(ppn));
            let belongs = !self.own.has(lpn) && (slot.number == NOWHERE || self.layout.split(lpn).0 == slot.number);
            if !belongs || offset >= slot.next {
                return Err(format!("unit {} is at offset {offset} of log block {}", lpn.0, slot.block));
            }
        }
        Ok(())
    }

    /// Checks that the valid units of a block are at their offsets in it.
    fn check_offsets(&self, ftl: &Ftl, block: u32, number: u32, end: u32) -> Result<(), String> {
        let first = ftl.blocks.first_unit(BlockId(block)).0;
        for offset in 0..self.layout.units() {
            let ppn = Ppn(first + offset);
            if !ftl.blocks.is_valid(ppn) {
                continue;
            }
            let lpn = ftl.map.owner(ppn);
            if offset >= end || self.layout.unit(number, offset).map(|unit| unit.0) != Some(lpn) {
                return Err(format!("logical block {number}: unit {lpn} is at offset {offset}"));
            }
        }
        Ok(())
    }
}
