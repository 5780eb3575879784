//! Toy mapping scheme `log-block`: logical blocks in data blocks, and one log block in each plane.
//!
//! The log block takes the writes of the host. When it is full, full merges copy each logical block that it has units
//! of to a free block, and the log block is erased. `python/log_block.py` is the same scheme in Python.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::flash::Role;
use floatgate_core::has_whole_map;
use floatgate_core::mapping::*;
use floatgate_core::policies::{Class, Purpose};
use floatgate_core::results::ProgramCause;
use floatgate_core::saved_state::{Reader, StateError, Writer};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};

/// State of a plane. A block comes with the number of its units that are programmed or bound.
#[derive(Clone, Debug, Default)]
struct Plane {
    log: Option<(BlockId, u32)>,
    data: BTreeMap<u32, (BlockId, u32)>, // data blocks by the number of the logical block
    merge: Option<Merge>,                // merge of a logical block that the full log block has units of
    gather: Gather,                      // copies of the next program of the merge
    busy: bool,                          // a program, or a read for it, is in flight
    pending: VecDeque<TransactionId>,    // host writes that wait
    unwritten: u64,                      // units of erased data blocks that were never programmed
}

/// Full merge of a logical block.
#[derive(Clone, Debug)]
struct Merge {
    number: u32,
    target: (BlockId, u32),      // its new data block
    sources: BTreeMap<u32, Ppn>, // addresses of its valid units by their offsets
}

/// Returns the plane, the logical block and the offset of a unit.
fn split(ftl: &Ftl, lpn: u32) -> (PlaneId, u32, u32) {
    let (planes, size) = (ftl.shape().planes, ftl.blocks.data_units());
    (PlaneId(lpn % planes), lpn / planes / size, lpn / planes % size)
}

/// Returns the valid units among the first `units` of a block.
fn valid_units(ftl: &Ftl, (block, units): (BlockId, u32)) -> impl Iterator<Item = Ppn> {
    let first = ftl.blocks.first_unit(block).0;
    (first..first + units).map(Ppn).filter(|&ppn| ftl.blocks.is_valid(ppn))
}

impl Plane {
    /// Takes the next step of a plane: of the merges of a full log block, or towards the next host write.
    fn go_on(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let Some(&id) = self.pending.front().filter(|_| !self.busy) else { return };
        let is_full = self.log.is_some_and(|(_, units)| units == cx.ftl().blocks.data_units());
        if is_full && !self.empty_log(cx, plane) {
            return; // Merges continue.
        }
        if self.log.is_none() {
            if cx.ftl().blocks.free_blocks(plane, Role::Data) == 0 {
                return; // An erase continues.
            }
            self.log = Some((cx.ftl().blocks.open_logical(plane), 0));
        }
        self.pending.pop_front();
        self.busy = true;
        cx.enqueue(id);
    }

    /// Takes the next step of the merges of a full log block. Returns `true` if it was given up.
    fn empty_log(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> bool {
        while let Some(log) = self.log {
            if self.merge.is_none() {
                let Some(unit) = valid_units(cx.ftl(), log).next() else {
                    give_up(cx, log.0, Purpose::FullMerge);
                    self.log = None;
                    break;
                };
                if cx.ftl().blocks.free_blocks(plane, Role::Data) == 0 {
                    return false; // An erase continues.
                }
                self.begin_merge(cx.ftl(), plane, unit);
            }
            if self.copy(cx, plane) {
                return false; // Copies continue.
            }
            self.end_merge(cx);
        }
        true
    }

    /// Opens a block for the logical block of a unit, and finds the valid units of the logical block, in its data block
    /// and in the log block.
    fn begin_merge(&mut self, ftl: &mut Ftl, plane: PlaneId, unit: Ppn) {
        let (_, number, _) = split(ftl, ftl.map.owner(unit));
        let mut sources = BTreeMap::new();
        for &block in self.log.iter().chain(self.data.get(&number)) {
            for ppn in valid_units(ftl, block) {
                let (_, owner, offset) = split(ftl, ftl.map.owner(ppn));
                if owner == number {
                    sources.insert(offset, ppn);
                }
            }
        }
        self.merge = Some(Merge { number, target: (ftl.blocks.open_logical(plane), 0), sources });
    }

    /// Reads the units of the next program of a merge. Offsets without a valid unit become padding. Returns `false` if
    /// no unit is left.
    fn copy(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> bool {
        let Some(Merge { target: (_, next), ref sources, .. }) = self.merge else { return false };
        self.busy = sources.range(next..).next().is_some();
        for (_, &ppn) in sources.range(next..next + cx.ftl().shape().units_per_program) {
            if cx.ftl().blocks.is_valid(ppn) {
                self.gather.add(cx, (plane.0, Purpose::FullMerge), ppn); // No trim has invalidated it.
            }
        }
        if self.busy && self.gather.is_ready(cx) {
            cx.queue(Transaction::copying(Kind::MergeWrite, plane, plane.0, Purpose::FullMerge));
        }
        self.busy
    }

    /// Replaces the data block of a logical block.
    fn end_merge(&mut self, cx: &mut (impl Context + ?Sized)) {
        let Some(Merge { number, target, .. }) = self.merge.take() else { return };
        if let Some((old, units)) = self.data.insert(number, target) {
            self.unwritten += u64::from(cx.ftl().blocks.data_units() - units);
            give_up(cx, old, Purpose::FullMerge);
        }
    }
}

/// Returns plane and logical block of the newest units in a block, and `true` if one is at its offset.
fn units_in(ftl: &Ftl, found: &FoundBlock) -> BTreeSet<(PlaneId, u32, bool)> {
    let first = ftl.blocks.first_unit(found.block).0;
    let unit_at = |place| {
        let (plane, number, offset) = split(ftl, ftl.newest_at(Ppn(first + place))?.0);
        Some((plane, number, offset == place))
    };
    (0..found.end).filter_map(unit_at).collect()
}

/// Returns a merge of a logical block whose units are not alone in one block, each at its offset.
fn unfit(ftl: &Ftl, found: &[FoundBlock]) -> Option<FoundMerge> {
    let (planes, size) = (ftl.shape().planes, ftl.blocks.data_units());
    let mut seen = BTreeSet::new();
    for block in found {
        let units = units_in(ftl, block);
        let &(plane, number, is_in_place) = units.first()?;
        if units.len() > 1 || !is_in_place || !seen.insert((plane, number)) {
            let lpns = (number * size..(number + 1) * size).map(|index| index * planes + plane.0);
            let units = lpns.map(|lpn| (lpn < ftl.map.len()).then_some(Lpn(lpn))).collect();
            return Some(FoundMerge { units, planes: vec![plane] });
        }
    }
    None
}

/// State of the mapping scheme. Indexed by plane.
#[derive(Clone, Debug)]
pub struct LogBlock(Vec<Plane>);

impl LogBlock {
    /// Creates the scheme of an empty device.
    pub fn new(device: &DeviceConfig) -> LogBlock {
        LogBlock(vec![Plane::default(); device.total_planes() as usize])
    }
}

impl<C: Context + ?Sized> Mapping<C> for LogBlock {
    has_whole_map!();

    fn changed(&mut self, _: &mut C, _: Lpn, _: Change) {}

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        let lpn = cx.ops()[id].lpn.0;
        let (plane, ..) = split(cx.ftl(), lpn);
        cx.ops()[id].plane = plane;
        self.0[plane.index()].pending.push_back(id);
        self.0[plane.index()].go_on(cx, plane);
    }

    fn target(&self, ftl: &Ftl, of: Program) -> Target {
        let plane = match of {
            Program::Write(lpn) => split(ftl, lpn.0).0,
            Program::Copies(plane) => PlaneId(plane),
        };
        Target { plane: Some(plane), place: Place::Unknown }
    }

    fn bind(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let Transaction { kind, plane, .. } = cx.ops()[id];
        let Plane { log, merge, gather, pending, .. } = &mut self.0[plane.index()];
        let (block, units) = if kind == Kind::MergeWrite { &mut merge.as_mut()?.target } else { log.as_mut()? };
        let (planes, group) = (cx.ftl().shape().planes, cx.ftl().shape().units_per_program);
        let (first, size) = (cx.ftl().blocks.first_unit(*block).0, cx.ftl().blocks.data_units());
        let ppn = Ppn(first + *units);
        cx.ftl().map.pad(ppn.0..ppn.0 + group);
        *units += group;
        if kind == Kind::MergeWrite {
            gather.bind(cx, |copy| Ppn(first + copy.lpn / planes % size)); // each at its offset
            cx.ftl().note_program(ProgramCause::Merge, gather.copies().len() as u32);
            return Some(Bound { class: Class::Gc, plane, ppn });
        }
        let more = pending.drain(..pending.len().min(group as usize - 1));
        let writes: Vec<TransactionId> = [id].into_iter().chain(more).collect();
        for (index, &write) in writes.iter().enumerate() {
            cx.bind(write, Ppn(ppn.0 + index as u32));
            cx.ops()[write].next = writes.get(index + 1).copied().unwrap_or(TransactionId::NONE);
        }
        cx.ftl().note_program(ProgramCause::Host, writes.len() as u32);
        Some(Bound { class: Class::HostProgram, plane, ppn })
    }

    fn ended(&mut self, cx: &mut C, end: Ended) -> bool {
        match end {
            Ended::Writes(_, start) | Ended::Copies(_, start) => {
                let blocks = &cx.ftl().blocks;
                let plane = blocks.plane_of(blocks.block_of(start));
                let state = &mut self.0[plane.index()];
                state.gather.end(cx);
                state.busy = false;
                cx.program_ended(start);
                state.go_on(cx, plane);
            }
            Ended::Erase(plane) => self.0[plane.index()].go_on(cx, plane),
            Ended::CopyRead(plane) if self.0[plane as usize].gather.read_ended() => {
                cx.queue(Transaction::copying(Kind::MergeWrite, PlaneId(plane), plane, Purpose::FullMerge));
            }
            _ => {}
        }
        true
    }

    fn step(&mut self, _: &mut C, _: Step) {}

    /// Merges each logical block that has units outside of its data block. No log block is left then.
    fn recover(&mut self, found: &mut dyn Recovering) -> Result<(), String> {
        for kept in keep_found(found, unfit)? {
            if let Some(&(plane, number, _)) = units_in(found.ftl(), &kept).first() {
                self.0[plane.index()].data.insert(number, (kept.block, kept.end));
            }
        }
        Ok(())
    }

    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Err(StateError::Busy("the scheme `log-block` is not saved".to_owned()))
    }

    fn load(&mut self, _: &mut Ftl, _: &mut Reader, _: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }

    /// Checks that data blocks have units of their logical blocks only, each at its offset.
    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        let data =
            (0..).map(PlaneId).zip(&self.0).flat_map(|(plane, state)| state.data.iter().map(move |of| (plane, of)));
        for (plane, (&number, &block)) in data {
            let wanted = |ppn| (plane, number, ftl.blocks.offset_in_block(ppn));
            if let Some(ppn) = valid_units(ftl, block).find(|&ppn| split(ftl, ftl.map.owner(ppn)) != wanted(ppn)) {
                return Err(format!("unit {} is not of logical block {number} of plane {}", ppn.0, plane.0));
            }
        }
        Ok(())
    }

    fn blocks(&self, ftl: &Ftl, found: &mut dyn FnMut(KeptBlock)) {
        let mut keep = |(block, units), is_filled| found(KeptBlock { block, units, is_filled, kind: 0 });
        for state in &self.0 {
            state.data.values().for_each(|&block| keep(block, true));
            state.log.iter().for_each(|&log| keep(log, log.1 == ftl.blocks.data_units()));
            state.merge.iter().for_each(|merge| keep(merge.target, false));
        }
    }

    fn report(&self, _: &Ftl) -> SchemeReport {
        let unwritten = self.0.iter().map(|state| state.unwritten).sum();
        SchemeReport { unwritten, ..SchemeReport::default() }
    }
}
