//! Garbage collection of translation pages, and the map updates that victims of data wait for.

use super::state::{Dftl, State, step};
use crate::ftl::mapping::{Context, TRANSLATION};
use crate::ftl::space::{Claim, InHand, Role};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::work::{Call, Class, Fifo, Kind, Task, Transaction};

impl Dftl {
    /// Takes the next step of garbage collection in a plane's blocks of translation pages, if one is due.
    pub(super) fn reclaim(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        if cx.ftl().is_read_only() {
            return;
        }
        while !self.jobs[plane].waiting {
            let Some(victim) = self.map_victim(cx, plane) else { return };
            let ftl = cx.ftl();
            let job = &mut self.jobs[plane];
            if let Some(unit) = job.walk.next_valid(ftl) {
                job.waiting = true;
                let page = ftl.map.owner(unit) & !TRANSLATION;
                return self.move_map(cx, page);
            }
            let failed = ftl.blocks.block(victim).failed;
            job.walk.end();
            job.awaiting_erase += u32::from(!failed);
            ftl.blocks.await_erase(victim);
            if ftl.blocks.can_erase(victim) {
                cx.erase(victim);
            }
            if failed {
                self.unpark_map(cx, plane);
            }
        }
    }

    /// Returns the victim that is being moved. If there is none, takes the next one if free blocks are few and it finds
    /// room.
    fn map_victim(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) -> Option<BlockId> {
        let ftl = cx.ftl();
        let job = &mut self.jobs[plane];
        if job.walk.block().is_some() {
            return job.walk.block();
        }
        let region = ftl.blocks.region(plane, Role::Map);
        let may_take = |claim| ftl.blocks.may_take(region, claim);
        let takes_victim = may_take(Claim::Victim(InHand::default()));
        let failed = ftl.faults.as_ref().and_then(|_| ftl.first_failed(plane, Role::Map)).filter(|&failed| {
            may_take(Claim::Failed { hand: InHand::default(), valid: u32::from(ftl.blocks.block(failed).valid) })
        });
        let victim = if let Some(failed) = failed {
            ftl.take_failed(failed);
            failed
        } else if ftl.blocks.is_down_to_reserve(region, job.awaiting_erase) && takes_victim {
            let victim = ftl.blocks.take_victim(region, 0)?;
            ftl.counters.map.victims += 1;
            victim
        } else {
            return None;
        };
        job.walk.start(ftl, victim);
        Some(victim)
    }

    /// Moves a translation page by an update, which may use the reserve.
    fn move_map(&mut self, cx: &mut (impl Context + ?Sized), page: u32) {
        let entry = self.page(page);
        entry.moving = true;
        match entry.state {
            State::Idle => {
                if !self.read_to_update(cx, page) {
                    self.program_moving(cx, page);
                }
            }
            State::Stalled => self.queue_map(cx, page),
            State::Fetching | State::Reading | State::Queued | State::Programming => {}
        }
    }

    /// Changes the entry of a unit that garbage collection has moved out of the block of `from`, in the cache or in
    /// flash. The block is not erased before that.
    pub(super) fn entry_moved(&mut self, cx: &mut (impl Context + ?Sized), lpn: Lpn, from: Ppn) {
        let ftl = cx.ftl();
        let state = &mut self.state;
        if lpn.0 >= ftl.host_units || (state.lazy && state.cmt.change(lpn)) {
            return;
        }
        let page = state.page_of(lpn);
        let victim = ftl.blocks.block_of(from);
        let moved = &mut self.moved[ftl.blocks.plane_of(victim)];
        if !moved.iter().rev().any(|&(block, _)| block == victim.0) {
            ftl.blocks.depend(from);
        }
        moved.push((victim.0, page));
    }

    /// Has each victim whose units have all been moved wait for the updates of its entries.
    pub(super) fn hold_moved(&mut self, cx: &mut (impl Context + ?Sized), plane: PlaneId) {
        let mut holds = Fifo::default();
        let mut moved = std::mem::take(&mut self.moved[plane]);
        moved.sort_unstable();
        if self.state.batch {
            moved.dedup();
        }
        for of_victim in moved.chunk_by(|a, b| a.0 == b.0) {
            let victim = BlockId(of_victim[0].0);
            if cx.is_moving(plane, victim) {
                self.moved[plane].extend(of_victim);
                continue;
            }
            for &(_, page) in of_victim {
                let first = cx.ftl().blocks.first_unit(victim);
                cx.ftl().blocks.depend(first);
                let mut hold = Transaction::new(Kind::MapHold, Class::Gc).of_map_page(page);
                hold.dependency = victim;
                let hold = cx.ops().insert(hold);
                holds.push(cx.ops(), hold);
            }
        }
        // Keep the memory of the vector.
        let kept = &mut self.moved[plane];
        if kept.is_empty() {
            moved.clear();
            *kept = moved;
        }
        if !holds.is_empty() {
            cx.tasks().push(ask(holds, BlockId::NONE));
        }
    }

    /// Requests the updates that victims wait for. Runs the tasks of each one before the next. All updates for `moved`,
    /// if it is not `NONE`, have been requested.
    pub(super) fn ask_updates(&mut self, cx: &mut (impl Context + ?Sized), mut holds: Fifo, moved: BlockId) {
        if moved.is_some() {
            cx.release(moved);
        }
        if !cx.tasks().any_new() && !holds.is_empty() {
            let hold = holds.pop(cx.ops());
            let (page, victim) = (cx.ops()[hold].map_page(), cx.ops()[hold].dependency);
            self.ask_update(cx, page, hold);
            let next = holds.first();
            let is_last = next.is_none() || cx.ops()[next].dependency != victim;
            return cx.tasks().push(ask(holds, if is_last { victim } else { BlockId::NONE }));
        }
        if !holds.is_empty() {
            cx.tasks().push(ask(holds, BlockId::NONE));
        }
    }
}

/// Returns the task that requests the updates of `holds`. All updates for `moved`, if it is not `NONE`, have been
/// requested.
fn ask(holds: Fifo, moved: BlockId) -> Task {
    Task::Scheme(Call { step: step::ASK, number: moved.0, line: holds })
}
