//! Operations of one unit that overlap: the next one in the cache register, and reads that interrupt.

use super::Device;
use crate::nand::array::{self, Operation, Spot};
use crate::nand::ledger::Holder;
use crate::sim::id::{LunId, PlaneId, Ppn, TransactionId, UnitId};
use crate::sim::time::Time;
use crate::work::{Kind, Task};

impl Device {
    /// Notes a host read.
    #[inline]
    pub(super) fn note_host_read(&mut self) {
        if self.dispatch.overlapping.program {
            self.dispatch.overlapping.quiet_from = self.now.later(self.dispatch.overlapping.quiet);
        }
    }

    /// Forgets the last host read if the device has been at rest since, as one does whose state is loaded.
    #[inline]
    pub(super) fn forget_host_reads(&mut self) {
        if self.dispatch.overlapping.program && self.is_idle() {
            self.dispatch.overlapping.quiet_from = Time::ZERO;
        }
    }

    /// Something waits for a LUN that works: what could overlap with what it does? LUNs are units here
    /// (config/check.rs).
    #[inline]
    pub(super) fn overlap(&mut self, lun: LunId) {
        let unit = UnitId(lun.0);
        // Mostly nothing waits, or something overlaps already.
        if self.array.may_overlap(unit)
            && let Some((rank, id)) = self.next_for(lun)
        {
            self.overlap_with(lun, unit, rank, id);
        }
    }

    /// Suspends a unit for a read, when its cells work.
    fn suspend(&mut self, unit: UnitId) {
        if !self.array.await_cells(unit, self.now) {
            self.dispatch.suspended[unit] = std::mem::replace(&mut self.dispatch.running[unit], TransactionId::NONE);
            self.array.suspend(unit, &self.config.nand.advanced.suspend, self.now);
        }
    }

    /// Whether writes could fill the block of the program that a unit works for: none goes where copies go, unless
    /// they share their frontiers.
    #[inline]
    fn writes_may_follow(&self, unit: UnitId) -> bool {
        self.dispatch.overlapping.program
            && (self.dispatch.overlapping.shared || !self.array.operation(unit).class.is_cleaning())
    }

    fn overlap_with(&mut self, lun: LunId, unit: UnitId, rank: u8, id: TransactionId) {
        match self.transactions[id].kind {
            Kind::HostRead if self.array.may_suspend(unit, &self.config.nand.advanced.suspend, self.now) => {
                self.suspend(unit);
            }
            Kind::Write if self.writes_may_follow(unit) && self.follows(unit, rank, id) => {
                let channel = self.array.channel_of(lun);
                if self.array.channel_is_idle(channel, self.now) {
                    return self.program_ahead(unit, rank, id);
                }
                self.array.ask_ahead(unit, rank);
                self.tasks.push(Task::Grant(channel));
            }
            _ => {}
        }
    }

    /// Returns `true` if the write `id`, and those queued for the other planes of a running program, fill the next page
    /// of the same blocks, so that the cache register takes them. Writes of the pool do so only if no plane is idle.
    fn follows(&self, unit: UnitId, rank: u8, id: TransactionId) -> bool {
        if self.array.operation(unit).kind != array::Kind::Program {
            return false;
        }
        let planes = self.array.planes_at_work(unit);
        let (lun, blocks) = (self.array.lun_of_unit(unit), &self.ftl.blocks);
        let is_pooled = id == self.first_of_pool(PlaneId(self.array.planes_of_unit(unit).start));
        let is_there = if is_pooled {
            self.pool_fills(planes.clone())
        } else {
            planes.clone().any(|(plane, _)| plane == self.transactions[id].plane)
        };
        is_there
            && planes.clone().all(|(plane, place)| {
                // The chosen one need not be the first of its plane.
                let is_own = !is_pooled && plane == self.transactions[id].plane;
                let waiting = if is_own { id } else { self.dispatch.waiting.first(lun, plane, rank) };
                let next = blocks.next_place(self.frontier_of_write(plane, waiting));
                let is_next = if is_pooled {
                    waiting.is_none()
                } else {
                    waiting.is_some()
                        && self.transactions[waiting].kind == Kind::Write
                        && self.transactions[waiting].plane == plane
                };
                is_next
                    && blocks.takes_host_write(plane)
                    && next.is_some_and(|next| blocks.block_of(next) == blocks.block_of(place) && next.0 > place.0)
            })
    }

    /// Returns `true` if the pool has writes for a program in each of these planes, no idle plane takes them, and there
    /// have been no host reads for a while.
    fn pool_fills(&self, mut planes: impl Iterator<Item = (PlaneId, Ppn)>) -> bool {
        let Some((plane, _)) = planes.next() else { return false };
        let others = planes.count() as u32;
        let needed = (1 + others) * self.ftl.shape().units_per_program;
        let is_quiet = self.now >= self.dispatch.overlapping.quiet_from;
        is_quiet && !self.any_plane_is_idle() && (others == 0 || self.pool_count(plane, needed) == needed)
    }

    /// Lets the data of the next program in while the cells work for the last one.
    fn program_ahead(&mut self, unit: UnitId, rank: u8, id: TransactionId) {
        self.alone(|device| device.bind_ahead(unit, rank, id));
    }

    fn bind_ahead(&mut self, unit: UnitId, rank: u8, id: TransactionId) {
        let lun = self.array.lun_of_unit(unit);
        let lead = self.array.operation(unit).plane;
        let planes = self.array.planes_at_work(unit).count() as u32;
        if id == self.first_of_pool(lead) {
            self.take_from_pool(lead);
            self.ftl.allocation.took(lead);
        } else {
            self.take_next(lun, rank, id);
        }
        if !self.bind_to_merge(id, rank, Spot::Ahead(unit)) {
            return;
        }
        if planes > 1 {
            self.join_at_work(unit, rank, id);
        }
        self.begin_ahead(unit, id);
    }

    fn begin_ahead(&mut self, unit: UnitId, id: TransactionId) {
        self.dispatch.ahead[unit] = id;
        let Operation { kind, members, .. } = *self.array.draft(Spot::Ahead(unit));
        self.array.note_merged(kind, 1, members);
        self.array.start_ahead(unit, self.now);
        if self.array.probe().is_some() {
            let operation = *self.array.draft(Spot::Ahead(unit));
            self.show_waits(id, &operation);
        }
    }

    /// A unit that asked for its channel for the next program is granted it.
    pub(super) fn ahead_granted(&mut self, unit: UnitId) {
        self.array.stop_asking(unit);
        let lun = self.array.lun_of_unit(unit);
        if let Some((rank, id)) = self.next_for(lun)
            && self.array.may_overlap(unit)
            && self.transactions[id].kind == Kind::Write
            && self.follows(unit, rank, id)
        {
            return self.program_ahead(unit, rank, id);
        }
        // What came meanwhile goes first: a read.
        self.overlap(lun);
    }

    /// The data of a read, or of one of its planes, leave: the next one starts, if there is one.
    #[inline]
    pub(super) fn read_ahead(&mut self, unit: UnitId) {
        let lun = self.array.lun_of_unit(unit);
        if self.array.can_read_ahead(unit)
            && let Some((rank, id)) = self.next_for(lun)
            && self.reads_a_page(id)
        {
            self.begin_read_ahead(lun, unit, rank, id);
        }
    }

    fn begin_read_ahead(&mut self, lun: LunId, unit: UnitId, rank: u8, id: TransactionId) {
        self.take_next(lun, rank, id);
        if !self.bind_to_merge(id, rank, Spot::Ahead(unit)) {
            return;
        }
        self.array.set_members_aside(unit);
        self.join_planes_for(unit, rank, id, Spot::Ahead(unit));
        self.begin_ahead(unit, id);
    }

    /// The operation of a unit has ended: it goes on with what overlaps with it, if anything does.
    pub(super) fn go_on_overlapping(&mut self, unit: UnitId, lun: LunId) -> bool {
        if self.array.has_ahead(unit) {
            let id = std::mem::replace(&mut self.dispatch.ahead[unit], TransactionId::NONE);
            self.dispatch.running[unit] = id;
            self.array.go_ahead(unit, self.holder_of(id), self.now);
            self.overlap(lun);
            return true;
        }
        if self.array.is_suspended(unit) {
            self.array.set_suspended(lun);
            self.serve_suspended(unit, lun);
            return true;
        }
        if self.array.asks(unit) {
            self.array.ask_to_start(unit, lun, self.now);
            return true;
        }
        false
    }

    fn holder_of(&self, id: TransactionId) -> Holder {
        if self.transactions[id].class.is_cleaning() { Holder::Cleaning } else { Holder::Host }
    }

    /// The cells of a unit rest: reads of the host are served, then they go on.
    pub(super) fn serve_suspended(&mut self, unit: UnitId, lun: LunId) {
        let limit = self.config.nand.advanced.suspend.limit;
        let first = self.next_for(lun).filter(|&(_, id)| self.transactions[id].kind == Kind::HostRead);
        match first {
            Some((rank, id)) if self.array.hold_back(unit, limit) => self.kick_for(lun, rank, id),
            _ => self.resume_suspended(unit),
        }
    }

    /// The cells of a unit go on.
    pub(super) fn resume_suspended(&mut self, unit: UnitId) {
        let id = std::mem::replace(&mut self.dispatch.suspended[unit], TransactionId::NONE);
        self.dispatch.running[unit] = id;
        let holder = self.holder_of(id);
        self.array.resume_suspended(unit, &self.config.nand.advanced.suspend, holder, self.now);
        // What came meanwhile may take the cache register.
        self.overlap(self.array.lun_of_unit(unit));
    }
}
