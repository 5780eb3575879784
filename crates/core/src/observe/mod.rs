//! Observers of a device: watch requests and transactions, without influence on the simulation.
//!
//! The device reports each stage of a request and of a transaction to all observers at once (`Device::observe`). A
//! device without observers needs only one test per stage, regardless of the number of observer kinds.

pub mod contents;
pub mod cores;
pub mod critical_path;
mod queues;
mod view;

use crate::cache::Pick;
use crate::config::DeviceConfig;
use crate::durability::events::Program;
use crate::durability::flash::FlashEvent;
use crate::durability::log::FlashLog;
use crate::durability::own::cause_of;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Location, PADDING, WaitCause};
use crate::ftl::mover::copy::{Copy, CopySource};
use crate::ftl::space::Role;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::metrics::counters::ProgramCause;
use crate::nand::array::Array;
use crate::sim::id::{ExecUnitId, Lpn, LunId, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::request::Request;
use crate::sim::time::Time;
use crate::work::{Kind, Transactions, chain};
use contents::Contents;
use critical_path::CriticalPaths;
pub use view::{Origin, View};

/// Observers of a device.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    /// Latency breakdowns, with attribution.
    pub paths: Option<CriticalPaths>,
    /// Sector contents in the controller, with verification.
    pub contents: Option<Contents>,
    /// Changes of flash, for a durable device.
    pub log: Option<Box<FlashLog>>,
}

impl Observers {
    /// Creates the observers of an idle device. Returns `None` if there are none.
    pub fn new(config: &DeviceConfig, attribution: bool, verify: bool) -> Option<Observers> {
        let paths = attribution.then(|| CriticalPaths::new(config));
        let contents = verify.then(|| Contents::new(config.sectors_per_unit()));
        (attribution || verify).then_some(Observers { paths, contents, log: None })
    }

    /// Returns the latency breakdowns if the contents of sectors are not followed.
    #[inline(always)]
    fn paths_alone(&mut self) -> Option<&mut CriticalPaths> {
        if self.contents.is_some() { None } else { self.paths.as_mut() }
    }

    /// Reports that a request was refused on arrival.
    #[inline]
    pub fn refused(&mut self, view: &View, request: &Request) {
        if let Some(paths) = &mut self.paths {
            paths.refuse(request, view.now);
        }
    }

    /// Reports that a request entered the queue at `at`.
    #[inline]
    pub fn entered(&mut self, view: &View, id: RequestId, at: Time) {
        let request = &view.interface.requests[id].request;
        if let Some(paths) = &mut self.paths {
            paths.enter(id, request.arrival, at);
        }
        if let Some(contents) = &mut self.contents {
            contents.enter(id, request);
        }
    }

    /// Attributes the time of a request up to now, outside its transactions, to `part`: the link, the firmware or the
    /// buffer.
    #[inline]
    pub fn spent_by_request(&mut self, view: &View, id: RequestId, part: TimePart) {
        if let Some(paths) = &mut self.paths {
            paths.spend_of_request(id, part, view.now);
        }
    }

    /// Attributes the first part of the wait of a request for its admission, of length `delayed`, to the throttle.
    #[inline]
    pub fn throttled(&mut self, view: &View, id: RequestId, delayed: Time) {
        if let Some(paths) = &mut self.paths {
            paths.throttle_request(id, delayed, view.now);
        }
    }

    /// Attributes the time of a transaction up to now to `part`.
    #[inline]
    pub fn spent(&mut self, view: &View, id: TransactionId, part: TimePart) {
        if let Some(paths) = &mut self.paths {
            paths.spend(id, part, view.now);
        }
    }

    /// Reports that a write was given a slot. `before` is the map entry of its unit. `sequence` is the sequence number
    /// of a host write to a durable device.
    #[inline]
    pub fn accepted(&mut self, view: &View, id: TransactionId, before: Location, origin: Origin, sequence: u64) {
        if let Some(log) = &mut self.log {
            match origin {
                Origin::Host(part) => {
                    let request = &view.interface.requests[view.transactions[id].request()].request;
                    log.accept(view.units(), request, part, before, sequence);
                }
                Origin::Buffer(pick) => log.write_out(Some(pick.entry).filter(|&entry| entry != Pick::PADDING), before),
                Origin::Own(sequence) => log.set_coming(sequence, true),
            }
            log.take_slot(id);
        }
        if let Some(paths) = &mut self.paths {
            let write = &view.transactions[id];
            let owner = write.request();
            let sectors = u32::from(write.end - write.first);
            if let Origin::Host(_) = origin {
                paths.spend_of_request(owner, TimePart::Buffer, view.now);
            }
            let covers = owner.is_some() && view.interface.requests[owner].request.sectors == sectors;
            let is_alone = covers && view.ftl.shape().units_per_logical_page == 1;
            paths.begin_write(id, owner, is_alone, view.now);
        }
        if let Some(contents) = &mut self.contents {
            contents.fill_slot(view, id, before, origin);
        }
    }

    /// Reports that the buffer is about to store a part of a write, with its sequence number.
    #[inline]
    pub fn buffering(&mut self, view: &View, id: RequestId, part: Part, sequence: u64) {
        if let (Some(log), Some(buffer)) = (&mut self.log, view.buffer) {
            log.accept_in_buffer(view.units(), buffer, &view.interface.requests[id].request, part, sequence);
        }
    }

    /// Returns `true` if an observer needs [`Observers::read_began`] for a read from flash before the read is queued on
    /// its LUN.
    #[inline]
    pub fn see_flash_reads(&self) -> bool {
        self.contents.is_some() || self.paths.as_ref().is_some_and(|paths| !paths.skips_reads())
    }

    /// Reports that a part of a read starts to wait for flash, a slot or a map entry. `ppn` is the physical address
    /// of its unit in flash. Its breakdown continues that of the transaction `from`, or that of its request if `from`
    /// is `NONE`.
    #[inline]
    pub fn read_began(&mut self, view: &View, id: TransactionId, part: Part, ppn: Ppn, from: TransactionId) {
        let read = &view.transactions[id];
        if let Some(paths) = &mut self.paths {
            if read.kind == Kind::HostRead && from.is_none() {
                paths.begin_read(id, read.request(), view.now);
            } else {
                paths.begin(id, read.request(), from, view.now);
            }
        }
        if let Some(contents) = self.contents.as_mut().filter(|_| read.kind != Kind::Translate) {
            contents.begin_read(id);
            contents.add_to_read(view, id, part, ppn);
        }
    }

    /// Reports that another part of a request joins a flash read.
    #[inline]
    pub fn read_joined(&mut self, view: &View, id: TransactionId, part: Part, ppn: Ppn) {
        if let Some(contents) = &mut self.contents {
            contents.add_to_read(view, id, part, ppn);
        }
    }

    /// Reports that a part of a request is read from a slot.
    #[inline]
    pub fn slot_read(&mut self, view: &View, request: RequestId, slot: TransactionId, part: Part) {
        if let Some(contents) = &mut self.contents {
            contents.reply_from_slot(request, slot, part);
            // Data in the buffer are newer.
            contents.reply_from_buffer(view, request, part);
        }
    }

    /// Reports that the sectors of a part that the buffer holds are read from it.
    #[inline]
    pub fn buffer_read(&mut self, view: &View, request: RequestId, part: Part) {
        if let Some(contents) = &mut self.contents {
            contents.reply_from_buffer(view, request, part);
        }
    }

    /// Reports that the contents of the slot that a read waited for are complete.
    #[inline]
    pub fn slot_read_ended(&mut self, view: &View, id: TransactionId, slot: TransactionId) {
        if let Some(contents) = &mut self.contents {
            let read = &view.transactions[id];
            // Sectors that the buffer held when the read started are newer, and may have been evicted since. They are
            // not among the parts.
            for part in contents.take_read(id) {
                let part = Part { lpn: read.lpn, first: part.first, end: part.end, offset: part.offset };
                contents.reply_from_slot(read.request(), slot, part);
                contents.reply_from_buffer(view, read.request(), part);
            }
        }
        self.spent(view, id, TimePart::Order);
    }

    /// Reports that the read ahead has ended for which a read waited.
    #[inline]
    pub fn awaited_read_ended(&mut self, view: &View, id: TransactionId) {
        if let (Some(contents), Some(media)) = (&mut self.contents, &view.ftl.media) {
            contents.reply_from_flash(id, media);
        }
        self.spent(view, id, TimePart::Buffer);
    }

    /// Completes a partial write with the sectors at the physical address `kept`.
    pub fn kept(&mut self, view: &View, write: TransactionId, kept: Ppn) {
        if let (Some(contents), Some(media)) = (&mut self.contents, &view.ftl.media) {
            contents.complete(write, Some(media.read(kept)));
        }
    }

    /// Completes a partial write with the sectors of the older write of its unit. Without an older write, they are
    /// blank.
    #[inline]
    pub fn completed(&mut self, _: &View, write: TransactionId, older: TransactionId) {
        match &mut self.contents {
            Some(contents) if older.is_some() => contents.complete_from_slot(write, older),
            Some(contents) => contents.complete(write, None),
            None => {}
        }
    }

    /// Reports that a transaction was queued on a LUN.
    #[inline(always)]
    pub fn enqueued(&mut self, transactions: &Transactions, array: &Array, id: TransactionId, lun: LunId, now: Time) {
        if let (Some(paths), Some(accounting)) = (&mut self.paths, array.accounting()) {
            paths.enqueue(transactions, accounting, id, lun, now);
        }
    }

    /// Reports that a write waits for any LUN of its pool.
    #[inline]
    pub fn pooled(&mut self, view: &View, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_any(view, id, view.ftl.pool(view.transactions[id].lpn));
        }
    }

    /// Reports that a write waits for a free block.
    #[inline]
    pub fn stalled(&mut self, view: &View, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_block(view, id);
        }
    }

    /// Reports that a write waits in a queue of the mapping scheme.
    #[inline]
    pub fn queued(&mut self, view: &View, id: TransactionId, queue: u32) {
        if let Some(paths) = &mut self.paths {
            paths.wait_in_queue(view, id, queue);
        }
    }

    /// Reports the cause of the waits in a queue of the mapping scheme, from now on.
    #[inline]
    pub fn queue_changed(&mut self, view: &View, queue: u32, cause: WaitCause) {
        if let Some(paths) = &mut self.paths {
            paths.set_cause(view, queue, cause);
        }
    }

    /// Reports that a write that waited for a free block was queued on a LUN again.
    #[inline]
    pub fn unparked(&mut self, view: &View, id: TransactionId, lun: LunId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_lun(view, id, lun);
        }
    }

    /// Reports that a scheme binds a write to an address on a LUN.
    #[inline]
    pub fn bound(&mut self, view: &View, id: TransactionId, lun: LunId) {
        if let Some(paths) = &mut self.paths {
            paths.bind(view, id, lun);
        }
    }

    /// Reports the start of a program of `units` units of writes, which are linked from `writes` on.
    #[inline]
    pub fn writes_began(&mut self, view: &View, first: Ppn, units: u32, cause: ProgramCause, writes: TransactionId) {
        self.program_began(view, &Program { first, units, cause, writes, copies: &[], renumbers: None });
    }

    fn program_began(&mut self, view: &View, program: &Program) {
        if let Some(log) = &mut self.log {
            log.begin_program(view.units(), view.durability, program);
        }
    }

    /// Reports the start of a program of copies by garbage collection in a plane.
    #[inline]
    pub fn copies_began(&mut self, view: &View, plane: PlaneId, first: Ppn, renumbers: Option<u64>) {
        if self.log.is_some() {
            let moving = &view.jobs[plane].moving;
            let copies = moving.in_program().map(|(copy, index)| copy.to(Ppn(first.0 + index))).collect();
            self.gc_began(view, first, view.ftl.shape().units_per_program, copies, renumbers);
        }
    }

    /// Reports the start of the copy-back of a page by garbage collection in a plane.
    #[inline]
    pub fn copy_back_began(&mut self, view: &View, plane: PlaneId, page: Ppn, renumbers: Option<u64>) {
        if self.log.is_some() {
            let per_page = view.ftl.shape().units_per_page;
            let to = |copy: &CopySource| copy.to(Ppn(page.0 + per_page.divide_with_rest(copy.from.0).1));
            let copies = view.jobs[plane].moving.back.iter().map(to).collect();
            self.gc_began(view, page, per_page.divisor(), copies, renumbers);
        }
    }

    fn gc_began(&mut self, view: &View, first: Ppn, units: u32, copies: Vec<Copy>, renumbers: Option<u64>) {
        let (cause, writes) = (ProgramCause::Gc, TransactionId::NONE);
        self.program_began(view, &Program { first, units, cause, writes, copies: &copies, renumbers });
    }

    /// Reports the start of a program that the mapping scheme has bound: of writes, which are linked from `id` on, and
    /// of copies, or of copies alone.
    #[inline]
    pub fn kept_began(&mut self, view: &View, first: Ppn, id: TransactionId, renumbers: Option<u64>) {
        if self.log.is_none() {
            return;
        }
        let View { ftl, transactions, durability, .. } = *view;
        let units = ftl.shape().units_per_program;
        let copy_at = |to| {
            let from = ftl.source_of(transactions, to)?;
            Some(Copy { lpn: ftl.map.owner(to), from, to })
        };
        let programmed = (first.0..first.0 + units).map(Ppn);
        let copies: Vec<Copy> = programmed.filter(|&ppn| ftl.map.owner(ppn) != PADDING).filter_map(copy_at).collect();
        let (cause, writes) = match transactions[id].kind {
            Kind::Write => (cause_of(durability, ftl, transactions, (id, 1)), id),
            _ => (ProgramCause::Merge, TransactionId::NONE),
        };
        self.program_began(view, &Program { first, units, cause, writes, copies: &copies, renumbers });
    }

    /// Reports the start of a program of a translation page, which has this sequence number.
    #[inline]
    pub fn map_write_began(&mut self, view: &View, page: u32, ppn: Ppn, sequence: u64) {
        if let Some(log) = &mut self.log {
            log.begin_map(page, ppn, view.ftl.blocks.size(Role::Map).program_units, sequence);
        }
    }

    /// Reports the start of a program of a block's summary.
    #[inline]
    pub fn summary_began(&mut self, view: &View, ppn: Ppn) {
        if let Some(log) = &mut self.log {
            log.begin_summary(view.ftl, ppn);
        }
    }

    /// Reports the end of a program.
    #[inline]
    pub fn programmed(&mut self, ppn: Ppn, units: u32) {
        if let Some(log) = &mut self.log {
            log.end(ppn, units);
        }
    }

    /// Reports the end of a program of `units` units at `start`, and stores its contents in flash. `first` is its first
    /// host write, or `NONE`.
    #[inline(never)]
    pub fn stored(
        &mut self,
        ftl: &mut Ftl,
        transactions: &Transactions,
        (start, units): (Ppn, u32),
        first: TransactionId,
    ) {
        if let (Some(contents), Some(media)) = (&self.contents, &mut ftl.media) {
            let programmed = (start.0..start.0 + units).map(Ppn);
            for ppn in programmed.filter(|&ppn| ftl.map.owner(ppn) != PADDING) {
                match chain(transactions, first).find(|&id| transactions[id].ppn == ppn) {
                    Some(id) => media.program(ppn, contents.slot(id)),
                    None => media.end_copy(ppn),
                }
            }
        }
        self.programmed(start, units);
    }

    /// Reports that the contents of flash have changed, or their meaning.
    #[inline]
    pub fn changed(&mut self, event: FlashEvent) {
        if let Some(log) = &mut self.log {
            log.emit(event);
        }
    }

    /// Reports the new physical address of a unit. The storage of the flash notes those of the parts of the checkpoint.
    #[inline]
    pub fn anchored(&mut self, view: &View, lpn: Lpn, ppn: Ppn) {
        if let Some(part) = view.durability.and_then(|durability| durability.part_of(lpn)) {
            self.changed(FlashEvent::Anchored { part, ppn });
        }
    }

    /// Reports that the operation of an execution unit of `lun` has completed, for `first` and the transactions that
    /// were bound with it.
    #[inline]
    pub fn ended(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.finish(view, unit, lun, first);
        }
        self.read_ended(view, first);
    }

    /// Does the same as [`Observers::ended`] in the common case, and ends the operation in the busy-time accounting. In
    /// other cases, returns `false` and does nothing.
    #[inline(never)]
    pub fn end_alone(
        &mut self,
        transactions: &Transactions,
        array: &mut Array,
        at: (ExecUnitId, LunId),
        first: TransactionId,
        now: Time,
    ) -> bool {
        self.paths_alone().is_some_and(|paths| paths.finish_alone(transactions, array, at, first, now))
    }

    /// Reports that a multi-plane read has transferred the data of `id`, and continues with the next plane.
    #[inline]
    pub fn member_ended(&mut self, view: &View, unit: ExecUnitId, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.finish_one(view, unit, view.array.lun_of_unit(unit), id);
        }
        self.read_ended(view, id);
    }

    /// Reports that the data of a page read were decoded. If the read is repeated, it was queued on a LUN again.
    #[inline]
    pub fn decoded(&mut self, view: &View, id: TransactionId, again: Option<LunId>) {
        if let Some(paths) = &mut self.paths {
            paths.decoded(view, id, again);
        }
    }

    /// Reports that the rebuild of an uncorrectable page has ended, which a read has waited for.
    #[inline]
    pub fn rebuilt(&mut self, view: &View, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.rebuilt(view, id);
        }
    }

    /// Copies the data of a completed read to the replies, or to the slot of the partial write that it completes.
    fn read_ended(&mut self, view: &View, id: TransactionId) {
        if let (Some(contents), Some(media)) = (&mut self.contents, &view.ftl.media) {
            let read = &view.transactions[id];
            match read.kind {
                Kind::HostRead => contents.reply_from_flash(id, media),
                Kind::RmwRead => contents.complete(read.write(), Some(media.read(read.ppn))),
                _ => {}
            }
        }
    }

    /// Reports that all parts of a request have completed, and the request itself continues. `by` is the transaction
    /// that completed the last part, or `NONE`.
    #[inline]
    pub fn settled(&mut self, _: &View, id: RequestId, by: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.settle(id, by);
        }
    }

    /// Reports that a request completes at `finish`. `by` is the transaction that completed the last part, or `NONE`.
    #[inline]
    pub fn answered(&mut self, view: &View, id: RequestId, by: TransactionId, finish: Time) {
        // The common case.
        if self.paths_alone().is_some_and(|paths| paths.complete_by(id, by, finish, view.now)) {
            return;
        }
        if let Some(paths) = &mut self.paths {
            paths.complete(id, by, finish, view.now);
        }
        if let Some(contents) = &mut self.contents {
            contents.answer(id, view.interface.requests[id].request.tag);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceConfig;
    use crate::ftl::gc::collector::Collector;
    use crate::host::interface::HostInterface;
    use crate::metrics::attribution::Breakdown;
    use crate::sim::request::Operation;
    use crate::work::{Class, Transaction};

    /// Parts of an idle device.
    struct Parts {
        interface: HostInterface,
        transactions: Transactions,
        array: Array,
        ftl: Ftl,
        jobs: Collector,
    }

    impl Parts {
        fn new(config: &DeviceConfig) -> Parts {
            let (interface, array) = (HostInterface::new(config, 1), Array::new(config, 0));
            Parts {
                interface,
                transactions: Transactions::default(),
                array,
                ftl: Ftl::new(config, 1, true, &Default::default()).unwrap(),
                jobs: Collector::new(config),
            }
        }

        fn at(&self, now: u64) -> View<'_> {
            let Parts { interface, transactions, array, ftl, jobs } = self;
            View { now: Time(now), interface, transactions, array, ftl, jobs, buffer: None, durability: None }
        }
    }

    fn request(operation: Operation) -> Request {
        Request {
            tag: 7,
            arrival: Time(5),
            operation,
            lba: 0,
            sectors: 8,
            stream: 0,
            namespace: 1,
            placement: 0,
            fua: false,
            high_priority: false,
        }
    }

    const PART: Part = Part { lpn: crate::sim::id::Lpn(0), first: 0, end: 8, offset: 0 };

    #[test]
    fn without_attribution_and_verification_there_are_no_observers() {
        let config = crate::config::load("tiny", &[]).unwrap();
        assert!(Observers::new(&config, false, false).is_none());
    }

    #[test]
    fn the_parts_of_a_breakdown_add_up_to_the_latency() {
        let config = crate::config::load("tiny", &["buffer.capacity=16KiB".to_owned()]).unwrap();
        let mut parts = Parts::new(&config);
        let mut observers = Observers::new(&config, true, false).unwrap();
        let id = parts.interface.enter(request(Operation::Flush));
        observers.entered(&parts.at(20), id, Time(20));
        observers.spent_by_request(&parts.at(50), id, TimePart::Buffer);
        observers.answered(&parts.at(50), id, TransactionId::NONE, Time(60));
        let mut breakdowns = Vec::new();
        observers.paths.as_mut().unwrap().take_breakdowns(&mut breakdowns);
        let [Breakdown { parts, channels: 0 }] = breakdowns[..] else {
            panic!("expected the breakdown of one request")
        };
        let time = |part: TimePart| parts[part as usize].0;
        assert_eq!([TimePart::HostQueue, TimePart::Buffer, TimePart::Link].map(time), [15, 30, 10]);
        assert_eq!(parts.iter().map(|part| part.0).sum::<u64>(), 55);
    }

    #[test]
    fn a_read_returns_what_the_slot_of_a_write_holds() {
        let config = crate::config::load("tiny", &[]).unwrap();
        let mut parts = Parts::new(&config);
        let mut observers = Observers::new(&config, true, true).unwrap();
        let [write, read] =
            [Operation::Write, Operation::Read].map(|operation| parts.interface.enter(request(operation)));
        for id in [write, read] {
            observers.entered(&parts.at(20), id, Time(20));
        }
        let mut slot = Transaction::new(Kind::Write, Class::HostProgram).of_request(write);
        (slot.complete, slot.end, slot.version) = (true, 8, 9);
        let slot = parts.transactions.insert(slot);
        observers.accepted(&parts.at(20), slot, Location::Unmapped, Origin::Host(PART), 0);
        observers.slot_read(&parts.at(20), read, slot, PART);
        observers.answered(&parts.at(20), read, TransactionId::NONE, Time(20));
        assert_eq!(observers.contents.as_mut().unwrap().take_done(), [(7, vec![9; 8])]);
    }
}
