//! Toy mapping scheme: host writes go to log blocks, which full merges reclaim.
//!
//! Each plane has up to `logs` log blocks, which host writes fill in the order of their arrival. If they are full, the
//! oldest one is reclaimed: each logical block with a unit in it is merged, so its units are copied to a free block in
//! order, from wherever they are. This is the full merge of FAST (Lee et al., "A log buffer-based flash translation
//! layer using fully-associative sector translation", ACM TECS 6(3), 2007). The log block for sequential writes, and
//! with it switch and partial merges, is omitted.

use std::collections::VecDeque;
use std::ops::Range;

use floatgate_core::config::DeviceConfig;
use floatgate_core::ftl::Ftl;
use floatgate_core::ftl::mapping::{Bound, Context, Hooks, Location, Mapping, Now, PADDING};
use floatgate_core::ftl::mover::Gather;
use floatgate_core::ftl::space::Role;
use floatgate_core::metrics::counters::{MergeKind, ProgramCause};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn, TransactionId};
use floatgate_core::work::{Class, Kind, Purpose, Transaction};

/// Options of the scheme.
#[derive(Clone, Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LogBlocksOptions {
    /// Number of log blocks per plane, below `gc.soft_threshold`.
    #[schemars(range(min = 1))]
    pub logs: u32,
}

impl Default for LogBlocksOptions {
    fn default() -> Self {
        LogBlocksOptions { logs: 1 }
    }
}

/// Block that is programmed in order.
#[derive(Clone, Copy, Debug)]
struct Filled {
    block: BlockId,
    /// Number of units that are programmed or bound.
    next: u32,
    /// Number of programs that have not completed.
    pending: u32,
}

impl Filled {
    fn new(block: BlockId) -> Filled {
        Filled { block, next: 0, pending: 0 }
    }
}

/// Merge of a logical block into a free block.
#[derive(Clone, Debug)]
struct Merge {
    number: u32,
    into: Filled,
    /// Number of units to program.
    end: u32,
    gather: Gather,
}

#[derive(Clone, Debug, Default)]
struct Plane {
    /// Log blocks, oldest first.
    logs: VecDeque<Filled>,
    merge: Option<Merge>,
    /// Number of queued host writes. Each has room for a program.
    queued: u32,
    /// Host writes that wait for room, oldest first.
    held: VecDeque<TransactionId>,
    /// Number of blocks that await their erase.
    doomed: u32,
}

/// State of the mapping scheme.
#[derive(Clone, Debug)]
pub struct LogBlocks {
    /// Maximum number of log blocks per plane.
    logs: usize,
    /// Number of units of a block, and of a program.
    units: u32,
    group: u32,
    /// Data block of each logical block, if it has one.
    data: Vec<Option<Filled>>,
    planes: Vec<Plane>,
    unwritten: u64,
}

impl LogBlocks {
    /// Creates the scheme of an empty device.
    pub fn new(options: &LogBlocksOptions, device: &DeviceConfig) -> Result<LogBlocks, String> {
        // A merge needs one more block, and a full device has `gc.soft_threshold` blocks left in each plane.
        let most = device.soft_threshold().saturating_sub(1);
        if !(1..=most).contains(&options.logs) {
            let threshold = device.soft_threshold();
            return Err(format!(
                "logs = {}: expected 1 to {most}, below gc.soft_threshold = {threshold}",
                options.logs
            ));
        }
        let units = device.data_units_per_block();
        Ok(LogBlocks {
            logs: options.logs as usize,
            units,
            group: device.units_per_program(),
            data: vec![None; device.logical_units().div_ceil(u64::from(units)) as usize],
            planes: vec![Plane::default(); device.total_planes() as usize],
            unwritten: 0,
        })
    }

    fn number(&self, lpn: Lpn) -> u32 {
        lpn.0 / self.units
    }

    fn plane_of(ftl: &Ftl, number: u32) -> PlaneId {
        ftl.allocation.order().plane(number % ftl.shape().planes)
    }

    fn plane(&mut self, plane: PlaneId) -> &mut Plane {
        &mut self.planes[plane.index()]
    }

    /// Returns the log block that takes the next program of a plane.
    fn log(&mut self, plane: PlaneId) -> Option<&mut Filled> {
        let units = self.units;
        self.plane(plane).logs.iter_mut().find(|log| log.next < units)
    }

    /// Returns `true` if the log blocks of a plane have room for another program after those that are queued.
    fn has_room(&mut self, ftl: &mut Ftl, plane: PlaneId) -> bool {
        let (units, group, logs) = (self.units, self.group, self.logs);
        let state = self.plane(plane);
        let room: u32 = state.logs.iter().map(|log| (units - log.next).div_ceil(group)).sum();
        if state.queued < room {
            return true;
        }
        let opens = state.logs.len() < logs && ftl.blocks.free_blocks(plane, Role::Data) > 0;
        if opens {
            state.logs.push_back(Filled::new(ftl.blocks.open_logical(plane)));
        }
        opens
    }

    /// Returns the physical addresses of the valid units of a logical block, indexed by offset.
    fn sources(&self, ftl: &Ftl, number: u32, offsets: Range<u32>) -> Vec<Option<Ppn>> {
        let mut sources = vec![None; offsets.len()];
        let plane = &self.planes[LogBlocks::plane_of(ftl, number).index()];
        let of_logs = plane.logs.iter().copied();
        for Filled { block, next, .. } in self.data[number as usize].into_iter().chain(of_logs) {
            let first = ftl.blocks.first_unit(block).0;
            for unit in (first..first + next).map(Ppn).filter(|&unit| ftl.blocks.is_valid(unit)) {
                let lpn = Lpn(ftl.map.owner(unit));
                let offset = lpn.0 % self.units;
                if self.number(lpn) == number && offsets.contains(&offset) {
                    sources[(offset - offsets.start) as usize] = Some(unit);
                }
            }
        }
        sources
    }

    /// Returns a logical block that has a valid unit in the oldest log block of a plane.
    fn next_to_merge(&self, ftl: &Ftl, plane: PlaneId) -> Option<u32> {
        let oldest = self.planes[plane.index()].logs.front()?;
        let first = ftl.blocks.first_unit(oldest.block).0;
        let valid = (first..first + oldest.next).map(Ppn).find(|&unit| ftl.blocks.is_valid(unit))?;
        Some(self.number(Lpn(ftl.map.owner(valid))))
    }

    fn begin_merge(&mut self, ftl: &mut Ftl, number: u32) -> Merge {
        let sources = self.sources(ftl, number, 0..self.units);
        let end = sources.iter().rposition(Option::is_some).map_or(0, |last| last as u32 + 1);
        let into = Filled::new(ftl.blocks.open_logical(LogBlocks::plane_of(ftl, number)));
        Merge { number, into, end: end.next_multiple_of(self.group), gather: Gather::default() }
    }

    /// Completes the merge of a logical block. Returns its old block, which has no valid units left.
    fn end_merge(&mut self, ftl: &mut Ftl, merge: &Merge) -> Option<BlockId> {
        ftl.counters.merges[MergeKind::Full as usize] += 1;
        let old = self.data[merge.number as usize].replace(merge.into)?;
        self.unwritten += u64::from(self.units - old.next);
        Some(old.block)
    }
}

/// Timed operation.
impl LogBlocks {
    /// Starts to reclaim the oldest log block of a plane if writes wait for room, no merge is in progress, and no block
    /// awaits its erase.
    fn empty_oldest(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let state = self.plane(plane);
        if state.held.is_empty() || state.merge.is_some() || state.doomed > 0 {
            return;
        }
        if let Some(number) = self.next_to_merge(cx.ftl(), plane) {
            let merge = self.begin_merge(cx.ftl(), number);
            self.plane(plane).merge = Some(merge);
            return self.continue_merge(cx, plane);
        }
        let logs = &mut self.plane(plane).logs;
        if logs.front().is_some_and(|log| log.pending == 0)
            && let Some(oldest) = logs.pop_front()
        {
            self.await_erase(cx, plane, oldest.block);
        }
    }

    fn await_erase(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId, block: BlockId) {
        self.plane(plane).doomed += 1;
        cx.ftl().blocks.await_erase(block);
        if cx.ftl().blocks.can_erase(block) {
            cx.erase(block);
        }
    }

    /// Reads the units that the next program of a merge copies.
    fn continue_merge(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let Some(Merge { number, into, .. }) = self.plane(plane).merge else { return };
        let sources = self.sources(cx.ftl(), number, into.next..into.next + self.group);
        let Some(merge) = &mut self.plane(plane).merge else { return };
        sources.into_iter().flatten().for_each(|from| merge.gather.add(cx, (number, Purpose::FullMerge), from));
        if merge.gather.is_ready(cx) {
            LogBlocks::queue_copies(cx, plane, number);
        }
    }

    fn queue_copies(cx: &mut (impl Context + ?Sized), plane: PlaneId, number: u32) {
        let mut write = Transaction::copying(Kind::MergeWrite, number, Purpose::FullMerge);
        write.plane = plane;
        cx.queue(write);
    }

    /// Queues the waiting writes of a plane that now have room.
    fn resume(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        while !self.plane(plane).held.is_empty() && self.has_room(cx.ftl(), plane) {
            let state = self.plane(plane);
            state.queued += 1;
            if let Some(id) = state.held.pop_front() {
                cx.note_resumed(id);
                cx.enqueue(id);
            }
        }
        self.empty_oldest(cx, plane);
    }
}

impl<C: Context + ?Sized> Mapping<C> for LogBlocks {
    fn hooks(&self) -> Hooks {
        Hooks { places: true, ..Hooks::default() }
    }

    fn home(&self, ftl: &Ftl, lpn: Lpn) -> Option<PlaneId> {
        Some(LogBlocks::plane_of(ftl, self.number(lpn)))
    }

    fn target(&self, ftl: &Ftl, lpn: Lpn, number: Option<u32>) -> Option<Ppn> {
        let plane = &self.planes[LogBlocks::plane_of(ftl, number.unwrap_or_else(|| self.number(lpn))).index()];
        let at = match number {
            Some(_) => plane.merge.as_ref().map(|merge| merge.into),
            None => plane.logs.iter().find(|log| log.next < self.units).copied(),
        };
        at.map(|Filled { block, next, .. }| Ppn(ftl.blocks.first_unit(block).0 + next))
    }

    fn blocks(&self, _: &Ftl, found: &mut dyn FnMut(BlockId, u32)) {
        let merges = self.planes.iter().filter_map(|plane| plane.merge.as_ref()).map(|merge| merge.into);
        let logs = self.planes.iter().flat_map(|plane| plane.logs.iter().copied());
        self.data
            .iter()
            .flatten()
            .copied()
            .chain(merges)
            .chain(logs)
            .for_each(|filled| found(filled.block, filled.next));
    }

    fn shares(&self, ftl: &Ftl) -> Vec<Vec<Range<u32>>> {
        let mut shares = vec![Vec::new(); self.planes.len()];
        for number in 0..self.data.len() as u32 {
            let units = number * self.units..ftl.map.len().min((number + 1) * self.units);
            shares[LogBlocks::plane_of(ftl, number).index()].push(units);
        }
        shares
    }

    fn unwritten(&self) -> u64 {
        self.unwritten
    }

    fn write_now(&mut self, ftl: &mut Ftl, lpn: Lpn, _: Location, contents: Option<(u32, u32, u32)>) {
        Now::write(self, ftl, lpn, contents);
    }

    fn recount(&self, ftl: &Ftl) -> Result<(), String> {
        let mut valid = 0;
        for number in 0..self.data.len() as u32 {
            valid += self.sources(ftl, number, 0..self.units).iter().flatten().count() as u64;
        }
        let all = ftl.blocks.valid_data();
        if valid == all { Ok(()) } else { Err(format!("{all} units are valid, {valid} in the blocks of the scheme")) }
    }

    fn describe(&self) -> String {
        let held: usize = self.planes.iter().map(|plane| plane.held.len()).sum();
        format!("{held} writes wait for room in log blocks")
    }

    fn place(&mut self, cx: &mut C, id: TransactionId) {
        let number = self.number(cx.ops()[id].lpn);
        let plane = LogBlocks::plane_of(cx.ftl(), number);
        cx.ops()[id].plane = plane;
        if self.plane(plane).held.is_empty() && self.has_room(cx.ftl(), plane) {
            self.plane(plane).queued += 1;
            return cx.enqueue(id);
        }
        cx.note_waiting(id);
        self.plane(plane).held.push_back(id);
        self.empty_oldest(cx, plane);
    }

    fn bind_write(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let plane = cx.ops()[id].plane;
        let group = self.group;
        self.plane(plane).queued -= 1;
        let log = self.log(plane)?;
        let ppn = Ppn(cx.ftl().blocks.first_unit(log.block).0 + log.next);
        (log.next, log.pending) = (log.next + group, log.pending + 1);
        (ppn.0 + 1..ppn.0 + group).for_each(|unit| cx.ftl().map.set_owner(Ppn(unit), PADDING));
        cx.bind(id, ppn);
        cx.ftl().note_program(ProgramCause::Host, 1);
        Some(Bound { class: Class::HostProgram, plane, ppn })
    }

    fn bind_copies(&mut self, cx: &mut C, id: TransactionId) -> Option<Bound> {
        let (plane, group, units) = (cx.ops()[id].plane, self.group, self.units);
        let Merge { into, gather, .. } = self.plane(plane).merge.as_mut()?;
        let first = cx.ftl().blocks.first_unit(into.block).0;
        let next = into.next;
        (first + next..first + next + group).for_each(|unit| cx.ftl().map.set_owner(Ppn(unit), PADDING));
        gather.bind(cx, |copy| Ppn(first + copy.lpn % units));
        cx.ftl().note_program(ProgramCause::Merge, gather.copies().len() as u32);
        into.next += group;
        let ppn = Ppn(first + next);
        cx.ops()[id].ppn = ppn;
        Some(Bound { class: Class::Gc, plane, ppn })
    }

    fn copy_read(&mut self, cx: &mut C, number: u32) {
        let plane = LogBlocks::plane_of(cx.ftl(), number);
        if self.plane(plane).merge.as_mut().is_some_and(|merge| merge.gather.read_ended()) {
            LogBlocks::queue_copies(cx, plane, number);
        }
    }

    fn write_ended(&mut self, cx: &mut C, lpn: Lpn, start: Ppn) {
        cx.program_ended(start);
        let plane = LogBlocks::plane_of(cx.ftl(), self.number(lpn));
        let block = cx.ftl().blocks.block_of(start);
        if let Some(log) = self.plane(plane).logs.iter_mut().find(|log| log.block == block) {
            log.pending -= 1;
        }
        self.empty_oldest(cx, plane);
    }

    fn copies_ended(&mut self, cx: &mut C, number: u32, start: Ppn) {
        let plane = LogBlocks::plane_of(cx.ftl(), number);
        let Some(mut merge) = self.plane(plane).merge.take() else { return };
        merge.gather.end(cx);
        cx.program_ended(start);
        if merge.into.next < merge.end {
            self.plane(plane).merge = Some(merge);
            return self.continue_merge(cx, plane);
        }
        if let Some(old) = self.end_merge(cx.ftl(), &merge) {
            self.await_erase(cx, plane, old);
        }
        self.resume(cx, plane);
    }

    fn erased(&mut self, cx: &mut C, plane: PlaneId) {
        self.plane(plane).doomed -= 1;
        self.resume(cx, plane);
    }
}
