//! Observers of a device: they change nothing of what it does.
//!
//! The device reports each stage of a request and of a transaction to all observers at once (`device/lifecycle.rs`). So
//! a device without any tests for them once per stage, however many kinds of them there are.

pub mod contents;
pub mod critical_path;

use crate::cache::{Buffer, Pick};
use crate::config::DeviceConfig;
use crate::durability::Durability;
use crate::durability::events::{Program, Units};
use crate::durability::log::FlashLog;
use crate::ftl::Ftl;
use crate::ftl::mapping::Location;
use crate::host::interface::HostInterface;
use crate::host::requests::Part;
use crate::metrics::attribution::Part as TimePart;
use crate::nand::array::Array;
use crate::nand::media::Media;
use crate::sim::id::{ExecUnitId, LunId, Ppn, RequestId, TransactionId};
use crate::sim::request::Request;
use crate::sim::time::Time;
use crate::work::{Kind, Transactions};
use contents::Contents;
use critical_path::CriticalPaths;

/// What observers look at: the parts of the device.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The clock.
    pub now: Time,
    /// The requests in progress.
    pub interface: &'a HostInterface,
    /// The transactions in progress.
    pub transactions: &'a Transactions,
    /// The flash array.
    pub array: &'a Array,
    /// The map, and the contents of flash.
    pub ftl: &'a Ftl,
    /// The buffer, if the device has one.
    pub buffer: Option<&'a Buffer>,
    /// The journal and the checkpoint, if the device has either.
    pub durability: Option<&'a Durability>,
}

impl<'a> View<'a> {
    fn units(&self) -> Units<'a> {
        Units { ftl: self.ftl, transactions: self.transactions }
    }
}

/// Where the data of a write come from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A part of a request.
    Host(Part),
    /// A unit of the buffer.
    Buffer(Pick),
    /// The device itself, with a number.
    Own(u64),
}

/// The observers of a device.
#[derive(Clone, Debug, Default)]
pub struct Observers {
    /// What the time of requests goes into, with attribution.
    pub paths: Option<CriticalPaths>,
    /// The contents of sectors in the controller, with verification.
    pub contents: Option<Contents>,
    /// What changes in flash, of a durable device.
    pub log: Option<Box<FlashLog>>,
}

impl Observers {
    /// Creates the observers of an idle device; `None` if there are none.
    pub fn new(config: &DeviceConfig, attribution: bool, verify: bool) -> Option<Observers> {
        let paths = attribution.then(|| CriticalPaths::new(config));
        let contents = verify.then(|| Contents::new(config.sectors_per_unit()));
        (attribution || verify).then_some(Observers { paths, contents, log: None })
    }

    /// A request was refused at once.
    #[inline]
    pub fn refused(&mut self, view: &View, request: &Request) {
        if let Some(paths) = &mut self.paths {
            paths.refuse(request, view.now);
        }
    }

    /// A request has got a place in the queue at `at`.
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

    /// The time of a request up to now, outside its transactions, went into `part`: the link, the firmware or the
    /// buffer.
    #[inline]
    pub fn spent_by_request(&mut self, view: &View, id: RequestId, part: TimePart) {
        if let Some(paths) = &mut self.paths {
            paths.spend_of_request(id, part, view.now);
        }
    }

    /// The time of a transaction up to now went into `part`.
    #[inline]
    pub fn spent(&mut self, view: &View, id: TransactionId, part: TimePart) {
        if let Some(paths) = &mut self.paths {
            paths.spend(id, part, view.now);
        }
    }

    /// A write has got a slot. `before` is what the map says of its unit, and `sequence` the number of a write of the
    /// host to a durable device.
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
            let (owner, sectors) = (write.request(), u32::from(write.end - write.first));
            if let Origin::Host(_) = origin {
                paths.spend_of_request(owner, TimePart::Buffer, view.now);
            }
            let is_alone = owner.is_some() && view.interface.requests[owner].request.sectors == sectors;
            paths.begin_write(id, owner, is_alone, view.now);
        }
        if let Some(contents) = &mut self.contents {
            contents.fill_slot(view, id, before, origin);
        }
    }

    /// The buffer is about to take a part of a write, which has a number.
    #[inline]
    pub fn buffering(&mut self, view: &View, id: RequestId, part: Part, sequence: u64) {
        if let (Some(log), Some(buffer)) = (&mut self.log, view.buffer) {
            log.accept_in_buffer(view.units(), buffer, &view.interface.requests[id].request, part, sequence);
        }
    }

    /// Returns `true` if none of them has to know that a read from flash begins, before it lines up.
    #[inline(always)]
    pub fn skip_reads(&self) -> bool {
        self.contents.is_none() && self.paths.as_ref().is_none_or(CriticalPaths::skips_reads)
    }

    /// A part of a read begins to wait: for flash, which has its unit at `ppn`, for a slot, or for a map entry. It
    /// begins where the transaction `from` has come to, or the request where that is `NONE`.
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

    /// Another part of a request joins a read from flash.
    #[inline]
    pub fn read_joined(&mut self, view: &View, id: TransactionId, part: Part, ppn: Ppn) {
        if let Some(contents) = &mut self.contents {
            contents.add_to_read(view, id, part, ppn);
        }
    }

    /// A part of a request is read from a slot.
    #[inline]
    pub fn slot_read(&mut self, view: &View, request: RequestId, slot: TransactionId, part: Part) {
        if let Some(contents) = &mut self.contents {
            contents.reply_from_slot(request, slot, part);
            // What the buffer has is newer.
            contents.reply_from_buffer(view, request, part);
        }
    }

    /// A part of a request is read from the buffer, as far as that holds it.
    #[inline]
    pub fn buffer_read(&mut self, view: &View, request: RequestId, part: Part) {
        if let Some(contents) = &mut self.contents {
            contents.reply_from_buffer(view, request, part);
        }
    }

    /// The slot that a read has waited for has its contents.
    #[inline]
    pub fn slot_read_ended(&mut self, view: &View, id: TransactionId, slot: TransactionId) {
        if let Some(contents) = &mut self.contents {
            let read = &view.transactions[id];
            // What the buffer gave it is newer, and may have left the buffer meanwhile.
            for part in contents.take_read(id) {
                let part = Part { lpn: read.lpn, first: part.first, end: part.end, offset: part.offset };
                contents.reply_from_slot(read.request(), slot, part);
                contents.reply_from_buffer(view, read.request(), part);
            }
        }
        self.spent(view, id, TimePart::Order);
    }

    /// A write that is not complete keeps what the older write of its unit has, or nothing.
    #[inline]
    pub fn completed(&mut self, _: &View, write: TransactionId, older: TransactionId) {
        match &mut self.contents {
            Some(contents) if older.is_some() => contents.complete_from_slot(write, older),
            Some(contents) => contents.complete(write, None),
            None => {}
        }
    }

    /// A transaction lines up for a LUN.
    #[inline]
    pub fn enqueued(&mut self, view: &View, id: TransactionId, lun: LunId) {
        if let Some(paths) = &mut self.paths {
            paths.enqueue(view, id, lun);
        }
    }

    /// A write waits for any LUN of its pool.
    #[inline]
    pub fn pooled(&mut self, view: &View, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_any(view, id, view.ftl.pool(view.transactions[id].lpn));
        }
    }

    /// A write waits for a free block.
    #[inline]
    pub fn stalled(&mut self, view: &View, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_block(view, id);
        }
    }

    /// A write that waited for a free block lines up for a LUN again.
    #[inline]
    pub fn unstalled(&mut self, view: &View, id: TransactionId, lun: LunId) {
        if let Some(paths) = &mut self.paths {
            paths.wait_for_lun(view, id, lun);
        }
    }

    /// A program begins.
    #[inline]
    pub fn program_began(&mut self, view: &View, program: &Program) {
        if let Some(log) = &mut self.log {
            log.begin_program(view.units(), view.durability, program);
        }
    }

    /// The operation of a unit of `lun` has ended, for `first` and those that were bound with it.
    #[inline]
    pub fn ended(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.finish(view, unit, lun, first);
        }
        self.read_ended(view, first);
    }

    /// As [`Observers::ended`], if that is simple. Otherwise returns `false` and does nothing.
    #[inline(always)]
    pub fn ended_alone(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) -> bool {
        let paths = self.paths.as_mut().filter(|_| self.contents.is_none());
        paths.is_some_and(|paths| paths.finish_alone(view, unit, lun, first))
    }

    /// The data of one plane have left, of a unit that goes on with the next, for `id`.
    #[inline]
    pub fn member_ended(&mut self, view: &View, unit: ExecUnitId, id: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.finish_one(view, unit, view.array.lun_of_unit(unit), id);
        }
        self.read_ended(view, id);
    }

    /// A read of the host has its data, or a partial write has what it keeps.
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

    /// Returns `true` if any of them has to know what flash holds.
    #[inline]
    pub fn follow_flash(&self) -> bool {
        self.log.is_some() || self.contents.is_some()
    }

    /// A program has ended, and its places hold what they should. `writes` is the first of its writes, or `NONE`.
    #[inline(never)]
    pub fn programmed(
        &mut self,
        (ppn, units): (Ppn, u32),
        writes: TransactionId,
        transactions: &Transactions,
        media: Option<&mut Media>,
    ) {
        if let Some(log) = &mut self.log {
            log.end(ppn, units);
        }
        if let (Some(contents), Some(media)) = (&self.contents, media) {
            let mut id = writes;
            while id.is_some() {
                media.program(transactions[id].ppn, contents.slot(id));
                id = transactions[id].next;
            }
        }
    }

    /// All parts of a request have completed, and the request itself continues. `by` is the transaction that completed
    /// the last part, or `NONE`.
    #[inline]
    pub fn settled(&mut self, _: &View, id: RequestId, by: TransactionId) {
        if let Some(paths) = &mut self.paths {
            paths.settle(id, by);
        }
    }

    /// A request completes at `finish`. `by` is the transaction that completed the last part, or `NONE`.
    #[inline]
    pub fn answered(&mut self, view: &View, id: RequestId, by: TransactionId, finish: Time) {
        if let Some(paths) = &mut self.paths {
            paths.complete(id, by, finish, view.now);
        }
        if let Some(contents) = &mut self.contents {
            contents.answer(id, view.interface.requests[id].request.tag);
        }
    }

    /// As [`Observers::answered`], if that is simple. Otherwise returns `false` and does nothing.
    #[inline(always)]
    pub fn answered_alone(&mut self, view: &View, id: RequestId, by: TransactionId, finish: Time) -> bool {
        let paths = self.paths.as_mut().filter(|_| self.contents.is_none());
        paths.is_some_and(|paths| paths.complete_by(id, by, finish, view.now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DeviceConfig;
    use crate::metrics::attribution::Breakdown;
    use crate::sim::request::Operation;
    use crate::work::{Class, Transaction};

    /// The parts of a device that nothing happens in.
    struct Parts {
        interface: HostInterface,
        transactions: Transactions,
        array: Array,
        ftl: Ftl,
    }

    impl Parts {
        fn new(config: &DeviceConfig) -> Parts {
            let (interface, array) = (HostInterface::new(config), Array::new(config, 0));
            Parts { interface, transactions: Transactions::default(), array, ftl: Ftl::new(config, 1, true).unwrap() }
        }

        fn at(&self, now: u64) -> View<'_> {
            let Parts { interface, transactions, array, ftl } = self;
            View { now: Time(now), interface, transactions, array, ftl, buffer: None, durability: None }
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
        }
    }

    const PART: Part = Part { lpn: crate::sim::id::Lpn(0), first: 0, end: 8, offset: 0 };

    #[test]
    fn a_device_without_any_has_no_observers() {
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
        let [Breakdown { parts, channels: 0 }] = breakdowns[..] else { panic!("one request has completed") };
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
