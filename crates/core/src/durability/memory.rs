//! Flash contents in memory: those of a durable device, under the rules of flash, with sector versions as payload.
//!
//! This is the reference for stores in files. Tests of power cuts use it.

use std::collections::BTreeMap;

use super::flash::{Bad, Before, FlashEvent, FlashImage, Record, RecordKind, Saved, Source, UnitState};
use crate::config::DeviceConfig;
use crate::metrics::counters::ProgramCause;
use crate::nand::media::{BLANK, Media};
use crate::sim::id::{BlockId, Lpn, Ppn};
use crate::sim::rng::Rng;

/// Contents of a programmed unit.
#[derive(Clone, Debug, Default)]
struct Payload {
    versions: Vec<u32>,
    own: Vec<u8>,
}

/// A program that has started and not ended.
#[derive(Clone, Debug)]
struct Program {
    ppn: Ppn,
    cause: ProgramCause,
    units: Vec<(Ppn, Record, Payload)>,
}

/// Work that a power cut would interrupt, and accepted data that it would lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// Number of programs that have started. Indexed by [`ProgramCause`].
    pub programs: [u32; ProgramCause::ALL.len()],
    /// Number of blocks that are being erased.
    pub erases: u32,
    /// Number of accepted writes that are not programmed.
    pub staged: u32,
}

/// Flash contents of one device.
#[derive(Clone, Debug)]
pub struct MemoryFlash {
    contents: Media,
    units: Vec<UnitState>,
    own: BTreeMap<u32, Vec<u8>>,
    erases: Vec<u32>,
    /// Physical addresses of the parts of the checkpoint, by part.
    anchors: BTreeMap<u32, Ppn>,
    bad: Vec<Option<Bad>>,
    /// Accepted writes that are not in flash, by unit and sequence number, with all sectors of the unit.
    staged: BTreeMap<(u32, u64), Vec<u32>>,
    /// Trims whose records may not be in flash, by unit. They survive with power-loss protection.
    trims: BTreeMap<u32, u64>,
    programs: Vec<Program>,
    erasing: Vec<BlockId>,
    sectors: usize,
    units_per_block: u32,
    protected: bool,
}

impl MemoryFlash {
    /// Creates erased flash.
    pub fn new(device: &DeviceConfig) -> MemoryFlash {
        let units = device.total_blocks() as usize * device.units_per_block() as usize;
        MemoryFlash {
            contents: Media::new(device),
            units: vec![UnitState::Erased; units],
            own: BTreeMap::new(),
            erases: vec![0; device.total_blocks() as usize],
            anchors: BTreeMap::new(),
            bad: vec![None; device.total_blocks() as usize],
            staged: BTreeMap::new(),
            trims: BTreeMap::new(),
            programs: Vec::new(),
            erasing: Vec::new(),
            sectors: device.sectors_per_unit() as usize,
            units_per_block: device.units_per_block(),
            protected: device.active_buffer().is_some_and(|buffer| buffer.power_loss_protection),
        }
    }

    /// Forgets the addresses of the checkpoint, so that a recovery reads all blocks.
    pub fn forget_checkpoint(&mut self) {
        self.anchors.clear();
    }

    /// Returns the work that a power cut would interrupt now.
    pub fn in_flight(&self) -> InFlight {
        let mut found = InFlight { erases: self.erasing.len() as u32, ..InFlight::default() };
        self.programs.iter().for_each(|program| found.programs[program.cause as usize] += 1);
        found.staged = self.staged.len() as u32;
        found
    }

    /// Applies an event of a device. `own` has the bytes of the device itself.
    pub fn apply(&mut self, event: &FlashEvent, own: &[u8]) {
        match *event {
            FlashEvent::Accepted { tag, lpn, first, end, zeroes, sequence, before, .. } => {
                let mut versions = self.before(lpn, before);
                let version = if zeroes { BLANK } else { tag as u32 };
                versions[first as usize..end as usize].fill(version);
                self.staged.insert((lpn.0, sequence), versions);
            }
            FlashEvent::Trimmed { lpn, sequence } => {
                self.drop_staged(lpn.0, u64::MAX);
                self.trims.insert(lpn.0, sequence);
            }
            FlashEvent::Journalled { sequence } => self.trims.retain(|_, trim| *trim > sequence),
            FlashEvent::ProgramBegun { ppn, cause, .. } => {
                let block = ppn.0 / self.units_per_block;
                assert_eq!(self.bad[block as usize], None, "block {block} is bad, but is programmed");
                self.programs.push(Program { ppn, cause, units: Vec::new() });
            }
            FlashEvent::Unit { ppn, record, source } => {
                assert_eq!(self.units[ppn.index()], UnitState::Erased, "unit {} is programmed twice", ppn.0);
                let payload = self.payload(source, own);
                let program = self.programs.last_mut().expect("a program has started");
                program.units.push((ppn, record, payload));
            }
            FlashEvent::ProgramEnded { ppn, .. } => self.end_program(ppn),
            FlashEvent::Anchored { part, ppn } => {
                self.anchors.insert(part, ppn);
            }
            FlashEvent::ProgramFailed { ppn, .. } => self.fail_program(ppn),
            FlashEvent::EraseFailed { block } => {
                self.erasing.retain(|erasing| *erasing != block);
                self.tear(block);
                self.bad[block.index()] = Some(Bad::Grown);
            }
            FlashEvent::Retired { block } => {
                self.bad[block.index()] = Some(Bad::Retired);
            }
            FlashEvent::FactoryBad { block } => self.bad[block.index()] = Some(Bad::Factory),
            FlashEvent::EraseBegun { block } => {
                assert_eq!(self.bad[block.index()], None, "block {} is bad, but is erased", block.0);
                self.erasing.push(block);
                self.erases[block.index()] = self.erases[block.index()].saturating_add(1);
            }
            FlashEvent::EraseEnded { block, erases } => {
                self.erasing.retain(|erasing| *erasing != block);
                self.erase(block);
                self.erases[block.index()] = erases;
            }
        }
    }

    fn before(&mut self, lpn: Lpn, before: Before) -> Vec<u32> {
        let staged = |sequence| (lpn.0, sequence);
        match before {
            Before::Nothing => vec![BLANK; self.sectors],
            Before::Flash(ppn) => self.contents.read(ppn).to_vec(),
            Before::Pending(sequence) => self.staged.get(&staged(sequence)).expect("a staged write").clone(),
            Before::Merged(sequence) => self.staged.remove(&staged(sequence)).expect("a staged write"),
        }
    }

    fn payload(&self, source: Source, own: &[u8]) -> Payload {
        let blank = || vec![BLANK; self.sectors];
        match source {
            Source::Write { lpn, sequence } => {
                let versions = self.staged.get(&(lpn.0, sequence)).expect("a programmed write is staged").clone();
                Payload { versions, own: Vec::new() }
            }
            Source::Copy(ppn) => Payload {
                versions: self.contents.read(ppn).to_vec(),
                own: self.own.get(&ppn.0).cloned().unwrap_or_default(),
            },
            Source::Own { start, len } => Payload { versions: blank(), own: own[start..start + len].to_vec() },
            Source::Nothing => Payload { versions: blank(), own: Vec::new() },
        }
    }

    fn end_program(&mut self, ppn: Ppn) {
        let index = self.programs.iter().position(|program| program.ppn == ppn);
        let mut program = self.programs.remove(index.expect("a program that ends has started"));
        program.units.sort_by_key(|unit| unit.0);
        for (ppn, record, payload) in program.units {
            self.contents.program(ppn, &payload.versions);
            if !payload.own.is_empty() {
                self.own.insert(ppn.0, payload.own);
            }
            self.units[ppn.index()] = UnitState::Holds(record);
            if matches!(record.kind, RecordKind::Data | RecordKind::Lost) {
                self.drop_staged(record.lpn, record.sequence);
                self.trims.retain(|lpn, trim| *lpn != record.lpn || *trim > record.sequence);
            }
        }
    }

    fn fail_program(&mut self, ppn: Ppn) {
        let index = self.programs.iter().position(|program| program.ppn == ppn);
        let program = self.programs.remove(index.expect("a program that fails has started"));
        program.units.iter().for_each(|unit| self.units[unit.0.index()] = UnitState::Torn);
        self.bad[(ppn.0 / self.units_per_block) as usize] = Some(Bad::Grown);
    }

    fn tear(&mut self, block: BlockId) {
        self.units_of(block).for_each(|ppn| self.units[ppn as usize] = UnitState::Torn);
    }

    fn drop_staged(&mut self, lpn: u32, upto: u64) {
        while let Some((&key, _)) = self.staged.range((lpn, 0)..=(lpn, upto)).next() {
            self.staged.remove(&key);
        }
    }

    fn units_of(&self, block: BlockId) -> std::ops::Range<u32> {
        block.0 * self.units_per_block..(block.0 + 1) * self.units_per_block
    }

    fn erase(&mut self, block: BlockId) {
        self.contents.erase(block);
        for ppn in self.units_of(block) {
            self.units[ppn as usize] = UnitState::Erased;
            self.own.remove(&ppn);
        }
    }

    /// Cuts the power. An interrupted program leaves its units erased or torn, an interrupted erase its block erased or
    /// unreadable. Data that are neither protected nor in flash are lost.
    pub fn power_cut(&mut self, seed: u64) {
        let rng = &mut Rng::new(seed, "power-cut");
        for block in std::mem::take(&mut self.erasing) {
            if rng.below(2) == 0 {
                self.erase(block);
            } else {
                self.tear(block);
            }
        }
        // If a block has several programs, the later ones are only in its register.
        let mut hit: Vec<u32> = Vec::new();
        for program in std::mem::take(&mut self.programs) {
            let block = program.ppn.0 / self.units_per_block;
            if !hit.contains(&block) && rng.below(3) > 0 {
                program.units.iter().for_each(|unit| self.units[unit.0.index()] = UnitState::Torn);
            }
            hit.push(block);
        }
        if !self.protected {
            self.staged.clear();
            self.trims.clear();
        }
    }
}

impl FlashImage for MemoryFlash {
    fn erases(&mut self, block: BlockId) -> Result<u32, String> {
        Ok(self.erases[block.index()])
    }

    fn anchor(&mut self, part: u32) -> Result<Option<Ppn>, String> {
        Ok(self.anchors.get(&part).copied())
    }

    fn bad(&mut self, block: BlockId) -> Result<Option<Bad>, String> {
        Ok(self.bad[block.index()])
    }

    fn unit(&mut self, ppn: Ppn) -> Result<UnitState, String> {
        Ok(self.units[ppn.index()])
    }

    fn own(&mut self, ppn: Ppn, into: &mut Vec<u8>) -> Result<(), String> {
        into.extend(self.own.get(&ppn.0).into_iter().flatten());
        Ok(())
    }

    fn saved(&mut self) -> Result<Vec<Saved>, String> {
        let writes = self.staged.keys().map(|&(lpn, sequence)| Saved::Write { lpn: Lpn(lpn), sequence });
        let trims = self.trims.iter().map(|(&lpn, &sequence)| Saved::Trim { lpn: Lpn(lpn), sequence });
        Ok(if self.protected { writes.chain(trims).collect() } else { Vec::new() })
    }

    fn versions(&mut self, ppn: Ppn) -> Option<Vec<u32>> {
        Some(self.contents.read(ppn).to_vec())
    }

    fn saved_versions(&mut self, lpn: Lpn, sequence: u64) -> Option<Vec<u32>> {
        self.staged.get(&(lpn.0, sequence)).cloned()
    }
}
