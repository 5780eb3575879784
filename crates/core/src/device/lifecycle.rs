//! Lifecycle of requests and transactions: reports each stage to the observers.

use super::{Device, Mutant};
use crate::durability::events::Program;
use crate::durability::flash::FlashEvent;
use crate::durability::own::cause_of;
use crate::ftl::mapping::{Location, PADDING, WaitCause};
use crate::ftl::mover::copy::Copy;
use crate::ftl::space::Role;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::ProgramCause;
use crate::observe::{Observers, Origin, View};
use crate::sim::id::{ExecUnitId, Lpn, LunId, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Request;
use crate::sim::time::Time;
use crate::work::Kind;

/// Defines stages. On a device without observers, a stage costs one test. The code of observers is not inlined, so that
/// it does not slow the code around a stage.
macro_rules! stages {
    ($($(#[$doc:meta])* $hook:ident, $show:ident => $stage:ident($($argument:ident: $type:ty),*);)+) => {
        impl Device {
            $($(#[$doc])*
            #[inline(always)]
            pub(super) fn $hook(&mut self, $($argument: $type),*) {
                if self.observers.is_some() {
                    self.$show($($argument),*)
                }
            }

            #[inline(never)]
            fn $show(&mut self, $($argument: $type),*) {
                if let Some((observers, view)) = self.observed() {
                    observers.$stage(&view, $($argument),*)
                }
            })+
        }
    };
}

stages! {
    /// See [`Observers::refused`].
    observe_refused, show_refused => refused(request: &Request);
    /// See [`Observers::entered`].
    observe_entered, show_entered => entered(id: RequestId, at: Time);
    /// See [`Observers::spent_by_request`].
    observe_request, show_request => spent_by_request(id: RequestId, part: TimePart);
    /// See [`Observers::throttled`].
    observe_throttled, show_throttled => throttled(id: RequestId, delayed: Time);
    /// See [`Observers::spent`].
    observe_spent, show_spent => spent(id: TransactionId, part: TimePart);
    /// See [`Observers::read_began`].
    observe_read, show_read => read_began(id: TransactionId, part: Part, ppn: Ppn, from: TransactionId);
    /// See [`Observers::read_joined`].
    observe_read_joined, show_read_joined => read_joined(id: TransactionId, part: Part, ppn: Ppn);
    /// See [`Observers::slot_read`].
    observe_slot_read, show_slot_read => slot_read(request: RequestId, slot: TransactionId, part: Part);
    /// See [`Observers::buffer_read`].
    observe_buffer_read, show_buffer_read => buffer_read(request: RequestId, part: Part);
    /// See [`Observers::slot_read_ended`].
    observe_slot_read_ended, show_slot_read_ended => slot_read_ended(id: TransactionId, slot: TransactionId);
    /// See [`Observers::completed`].
    observe_completed, show_completed => completed(write: TransactionId, older: TransactionId);
    /// See [`Observers::pooled`].
    observe_pooled, show_pooled => pooled(id: TransactionId);
    /// See [`Observers::stalled`].
    observe_stalled, show_stalled => stalled(id: TransactionId);
    /// See [`Observers::queued`].
    observe_queued, show_queued => queued(id: TransactionId, queue: u32);
    /// See [`Observers::queue_changed`].
    observe_queue, show_queue => queue_changed(queue: u32, cause: WaitCause);
    /// See [`Observers::unparked`].
    observe_unparked, show_unparked => unparked(id: TransactionId, lun: LunId);
    /// See [`Observers::member_ended`].
    observe_member_ended, show_member_ended => member_ended(unit: ExecUnitId, id: TransactionId);
    /// See [`Observers::settled`].
    observe_settled, show_settled => settled(id: RequestId, by: TransactionId);
}

impl Device {
    /// Returns the observers, if there are any, with a view of the device.
    #[inline(always)]
    pub(super) fn observed(&mut self) -> Option<(&mut Observers, View<'_>)> {
        let observers = self.observers.as_deref_mut()?;
        let view = View {
            now: self.now,
            interface: &self.interface,
            transactions: &self.transactions,
            array: &self.array,
            ftl: &self.ftl,
            buffer: self.buffer.as_deref(),
            durability: self.durability.as_deref(),
        };
        Some((observers, view))
    }

    /// See [`Observers::ended`].
    #[inline(always)]
    pub(super) fn observe_ended(&mut self, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        if self.observers.is_some() {
            self.show_ended(unit, lun, first);
        }
    }

    #[inline(never)]
    fn show_ended(&mut self, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        let Device { observers: Some(observers), array, transactions, now, .. } = self else { return };
        if !observers.ended_alone(transactions, array, (unit, lun), first, *now) {
            self.show_any_end(unit, lun, first);
        }
    }

    #[inline(never)]
    fn show_any_end(&mut self, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        if let Some((observers, view)) = self.observed() {
            observers.ended(&view, unit, lun, first);
            self.array.book_end(unit, lun, self.now);
        }
    }

    /// See [`Observers::answered`].
    #[inline(always)]
    pub(super) fn observe_answered(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        if self.observers.is_some() {
            self.show_answered(id, by, finish);
        }
    }

    #[inline(never)]
    fn show_answered(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        let Some(observers) = self.observers.as_deref_mut() else { return };
        if !observers.answered_alone(id, by, finish, self.now) {
            self.show_any_answer(id, by, finish);
        }
    }

    #[inline(never)]
    fn show_any_answer(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        if let Some((observers, view)) = self.observed() {
            observers.answered(&view, id, by, finish);
        }
    }

    /// See [`Observers::read_began`]. Only for reads from flash.
    #[inline(always)]
    pub(super) fn observe_flash_read(&mut self, id: TransactionId, part: Part, ppn: Ppn, from: TransactionId) {
        if self.observers.as_deref().is_some_and(|observers| !observers.skip_reads()) {
            self.show_read(id, part, ppn, from);
        }
    }

    /// See [`Observers::accepted`].
    #[inline(always)]
    pub(super) fn observe_accepted(&mut self, id: TransactionId, before: Location, origin: Origin) {
        if self.observers.is_some() {
            self.show_accepted(id, before, origin);
        }
    }

    #[inline(never)]
    fn show_accepted(&mut self, id: TransactionId, before: Location, origin: Origin) {
        let is_numbered = matches!(origin, Origin::Host(_)) && self.is_durable();
        let sequence = if is_numbered { self.ftl.next_sequence() } else { 0 };
        if let Some((observers, view)) = self.observed() {
            observers.accepted(&view, id, before, origin, sequence);
        }
    }

    /// See [`Observers::buffering`].
    #[inline]
    pub(super) fn observe_buffering(&mut self, id: RequestId, part: Part) {
        if self.is_durable() {
            let sequence = self.ftl.next_sequence();
            if let Some((observers, view)) = self.observed() {
                observers.buffering(&view, id, part, sequence);
            }
        }
    }

    /// Reports that an entry of the buffer has taken the write that was accepted last.
    #[inline]
    pub(super) fn observe_buffered(&mut self, entry: u32) {
        if let Some(log) = self.log_mut() {
            log.note_in_buffer(entry);
        }
    }

    /// Reports that a write is bound, and invalidates the copy at `old`.
    #[inline(always)]
    pub(super) fn observe_bound(&mut self, id: TransactionId, old: Ppn) {
        if let Some(log) = self.log_mut() {
            log.invalidate(id, old);
        }
    }

    /// Reports that a partial write keeps the sectors at the physical address `kept`.
    pub(super) fn observe_kept(&mut self, write: TransactionId, kept: Ppn) {
        if let Some((observers, view)) = self.observed() {
            observers.kept(&view, write, kept);
        }
    }

    /// Reports the start of a program of writes, which are linked from `writes` on.
    #[inline(always)]
    pub(super) fn observe_writes(&mut self, first: Ppn, units: u32, cause: ProgramCause, writes: TransactionId) {
        if self.is_durable() {
            self.show_program(&Program { first, units, cause, writes, copies: &[], renumbers: None });
        }
    }

    #[inline(never)]
    fn show_program(&mut self, program: &Program) {
        if let Some((observers, view)) = self.observed() {
            observers.program_began(&view, program);
        }
    }

    /// Reports the start of a program of garbage collection: through the controller, or by copy-back.
    #[inline]
    pub(super) fn observe_copies(&mut self, plane: PlaneId, first: Ppn, units: u32, back: bool) {
        if self.is_durable() {
            self.show_copies(plane, first, units, back);
        }
    }

    #[inline(never)]
    fn show_copies(&mut self, plane: PlaneId, first: Ppn, units: u32, back: bool) {
        let renumbers = self.options.mutant == Mutant::RenumberCopies;
        let renumbers = renumbers.then(|| self.ftl.next_sequence());
        let job = &self.jobs[plane];
        let copies: Vec<Copy> = if back {
            job.moving.back.iter().map(|&copy| copy.to(self.ppn_of_back(copy, first))).collect()
        } else {
            job.moving.in_program().map(|(copy, index)| copy.to(Ppn(first.0 + index))).collect()
        };
        let cause = ProgramCause::Gc;
        let writes = TransactionId::NONE;
        self.show_program(&Program { first, units, cause, writes, copies: &copies, renumbers });
    }

    /// Reports the start of a program that the scheme has bound: of writes, which are linked from `id` on, and of
    /// copies, or of copies alone.
    #[inline]
    pub(super) fn observe_bound_kept(&mut self, first: Ppn, id: TransactionId) {
        if self.is_durable() {
            self.show_bound_kept(first, id);
        }
    }

    #[inline(never)]
    fn show_bound_kept(&mut self, first: Ppn, id: TransactionId) {
        let renumbers = self.options.mutant == Mutant::RenumberCopies;
        let renumbers = renumbers.then(|| self.ftl.next_sequence());
        let units = self.ftl.shape().units_per_program;
        let copy_at = |to| {
            let from = self.ftl.source_of(&self.transactions, to)?;
            Some(Copy { lpn: self.ftl.map.owner(to), from, to })
        };
        let programmed = (first.0..first.0 + units).map(Ppn);
        let copies: Vec<Copy> =
            programmed.filter(|&ppn| self.ftl.map.owner(ppn) != PADDING).filter_map(copy_at).collect();
        let (cause, writes) = match self.transactions[id].kind {
            Kind::Write => (cause_of(self.durability.as_deref(), &self.ftl, &self.transactions, (id, 1)), id),
            _ => (ProgramCause::Merge, TransactionId::NONE),
        };
        self.show_program(&Program { first, units, cause, writes, copies: &copies, renumbers });
    }

    /// Reports the start of a program of a translation page.
    #[inline]
    pub(super) fn observe_map_write(&mut self, page: u32, ppn: Ppn) {
        if self.is_durable() {
            let group = self.ftl.blocks.size(Role::Map).program_units;
            let sequence = self.ftl.next_sequence();
            if let Some(log) = self.log_mut() {
                log.begin_map(page, ppn, group, sequence);
            }
        }
    }

    /// Reports the start of a program of a block's summary.
    #[inline]
    pub(super) fn observe_summary(&mut self, ppn: Ppn) {
        if let Some(log) = self.observers.as_deref_mut().and_then(|observers| observers.log.as_mut()) {
            log.begin_summary(&self.ftl, ppn);
        }
    }

    /// Reports the end of a program.
    #[inline(always)]
    pub(super) fn observe_programmed(&mut self, ppn: Ppn, units: u32) {
        if let Some(log) = self.log_mut() {
            log.end(ppn, units);
        }
    }

    /// Reports that the contents of flash have changed, or their meaning.
    #[inline]
    pub(super) fn observe_flash(&mut self, event: FlashEvent) {
        if let Some(log) = self.log_mut() {
            log.emit(event);
        }
    }

    /// Reports that a unit is deallocated. Returns the sequence number of the trim, or 0 if no component needs it.
    #[inline]
    pub(super) fn observe_trimmed(&mut self, lpn: Lpn) -> u64 {
        if self.observers.is_none() && self.durability.is_none() { 0 } else { self.show_trimmed(lpn) }
    }

    #[inline(never)]
    fn show_trimmed(&mut self, lpn: Lpn) -> u64 {
        let has_journal = self.durability.as_ref().is_some_and(|durability| durability.journal.is_some());
        if !has_journal && !self.is_durable() {
            return 0;
        }
        let sequence = self.ftl.next_sequence();
        self.observe_flash(FlashEvent::Trimmed { lpn, sequence });
        sequence
    }
}
