//! Latency breakdowns for attribution: divide the time of each outstanding request and transaction into parts.
//!
//! A path is a point in time, and the time before it divided into parts. Time is only added from that point on, so the
//! parts add up to the length of the path. A transaction starts with the path of its request. The transaction that
//! completes last passes its path to the request, so the path of a request is its critical path. See
//! docs/model/attribution.md.

use super::View;
use super::queues::{Queues, Shares};
use crate::config::DeviceConfig;
use crate::ftl::mapping::WaitCause;
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::array::{self, Array};
use crate::nand::busy_time::{BusyAccounting, OperationTimes, Reading, ReadingOfAll, Wait};
use crate::sim::id::{ChannelId, ExecUnitId, LunId, RequestId, TransactionId};
use crate::sim::request::Request;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::{Kind, Transaction, Transactions};

/// Object of a wait, with the reading of the busy-time accounting at the start of the wait.
#[derive(Clone, Copy, Debug, Default)]
enum Waiting {
    /// No wait, or one that the busy-time accounting does not cover.
    #[default]
    None,
    /// A LUN.
    Lun(LunId, Reading),
    /// Any LUN of a pool.
    Any(ReadingOfAll),
    /// A free block.
    Block,
    /// A queue of the mapping scheme.
    Queue(u32, Shares),
}

/// Point in time, and the time before it by part.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    at: Time,
    parts: [Time; Part::COUNT],
}

impl Path {
    /// Attributes the time up to `until` to `part`.
    #[inline]
    fn spend(&mut self, part: Part, until: Time) {
        self.parts[part as usize] += until - self.at;
        self.at = until;
    }

    /// Returns the whole path of a straight transaction: the path of its request, with the parts of its wait and its
    /// operation from `self`.
    #[inline(always)]
    fn on_top_of(&self, request: &RequestPath) -> Path {
        const NONE: Time = Time::ZERO;
        let [queue, link, firmware, throttle, buffer] = request.interface;
        let [die, channel, gc] = [Part::Die, Part::Channel, Part::Gc].map(|part| self.parts[part as usize]);
        let [bus, cell] = [Part::Bus, Part::Cell].map(|part| self.parts[part as usize]);
        #[rustfmt::skip]
        let parts = [
            queue, link, firmware, throttle, buffer, NONE, NONE, NONE,
            die, channel, gc, NONE, bus, cell, NONE, NONE,
        ];
        Path { at: self.at, parts }
    }

    /// Sets the parts of a straight transaction that has just completed: those of its wait and its operation.
    #[inline(always)]
    fn set_straight(&mut self, wait: Wait, turn: &OperationTimes, now: Time) {
        self.parts[Part::Die as usize] = wait.die + turn.wait.die;
        self.parts[Part::Channel as usize] = wait.channel + turn.wait.channel;
        self.parts[Part::Gc as usize] = wait.gc + turn.wait.gc;
        self.parts[Part::Bus as usize] = turn.bus;
        self.parts[Part::Cell as usize] = turn.cell;
        self.at = now;
    }

    #[inline(always)]
    fn wait(&mut self, wait: Wait) {
        let Wait { die, channel, gc } = wait;
        self.parts[Part::Die as usize] += die;
        self.parts[Part::Channel as usize] += channel;
        self.parts[Part::Gc as usize] += gc;
        self.at += die + channel + gc;
    }
}

/// State of a transaction in flight.
#[derive(Clone, Copy, Debug)]
struct TransactionPath {
    /// Trail since the request entered the queue.
    path: Path,
    line: Waiting,
    /// Request of a straight transaction, otherwise `NONE`. A transaction is straight as long as nothing has happened
    /// to it except one wait for its LUN and its operation, and nothing to its request since it started. Then `path`
    /// has only the parts of that wait and that operation, once the operation has completed. The other parts are those
    /// of the request.
    straight: RequestId,
    /// True if the operation has completed.
    served: bool,
}

impl Default for TransactionPath {
    fn default() -> Self {
        TransactionPath { path: Path::default(), line: Waiting::None, straight: RequestId::NONE, served: false }
    }
}

impl TransactionPath {
    /// Ends the wait without an operation.
    fn leave_queue(&mut self, accounting: &BusyAccounting, queues: &Queues, now: Time) {
        let waited = now - self.path.at;
        match self.line {
            Waiting::None => {}
            Waiting::Lun(lun, mark) => self.path.wait(accounting.mark(lun, now).since(mark, waited)),
            Waiting::Any(mark) => self.path.wait(accounting.mark_all(mark.pool, now).since(mark, waited)),
            Waiting::Block => self.path.spend(Part::Gc, now),
            Waiting::Queue(queue, mark) => self.path.wait(queues.reading(accounting, queue, now).since(mark, waited)),
        }
        self.line = Waiting::None;
    }

    /// Adds a wait and the operation that followed it, which has just completed. Does nothing if there was no wait for
    /// an operation.
    fn operation(&mut self, turn: &OperationTimes, bus: Part, cell: Part, now: Time) {
        let waited = turn.start - self.path.at;
        let wait = match self.line {
            Waiting::None | Waiting::Block | Waiting::Queue(..) => return,
            Waiting::Lun(_, mark) => turn.mark.since(mark, waited),
            Waiting::Any(mark) => turn.all.since(mark, waited),
        };
        self.served(wait, turn, bus, cell, now);
    }

    /// Adds a wait of known parts and the operation that followed it, which has just completed.
    #[inline(always)]
    fn served(&mut self, wait: Wait, turn: &OperationTimes, bus: Part, cell: Part, now: Time) {
        self.line = Waiting::None;
        let Path { at, parts } = &mut self.path;
        parts[Part::Die as usize] += wait.die + turn.wait.die;
        parts[Part::Channel as usize] += wait.channel + turn.wait.channel;
        parts[Part::Gc as usize] += wait.gc + turn.wait.gc;
        parts[bus as usize] += turn.bus;
        parts[cell as usize] += turn.cell;
        *at = now;
    }
}

/// Number of parts outside transactions: the first ones of [`Part::ALL`], up to the buffer.
const FRONT: usize = Part::Buffer as usize + 1;

/// State of an outstanding request: its path up to the start of its next transaction.
#[derive(Clone, Copy, Debug, Default)]
struct RequestPath {
    at: Time,
    interface: [Time; FRONT],
    /// True if all parts of the request have completed. Its path is then in `CriticalPaths::settled`.
    settled: bool,
    /// Channels used, one bit per channel. Channels beyond 128 share bits with earlier ones.
    used: [u64; 2],
    channels: u32,
}

impl RequestPath {
    /// Returns the path up to now.
    #[inline(always)]
    fn path(&self) -> Path {
        let mut parts = [Time::ZERO; Part::COUNT];
        parts[..FRONT].copy_from_slice(&self.interface);
        Path { at: self.at, parts }
    }

    /// Attributes the time up to `now` to `part`: the link, the firmware or the buffer.
    #[inline(always)]
    fn spend(&mut self, part: Part, now: Time) {
        self.interface[part as usize] += now - self.at;
        self.at = now;
    }

    fn use_channel(&mut self, channel: ChannelId) {
        let channel = channel.index();
        let used = &mut self.used[channel / 64 % 2];
        let bit = 1 << (channel % 64);
        self.channels += u32::from(*used & bit == 0);
        *used |= bit;
    }
}

/// CriticalPaths of a device.
#[derive(Clone, Debug, Default)]
pub struct CriticalPaths {
    /// True if the firmware and the buffer take no time of a request after its first transaction has started.
    is_plain: bool,
    /// True if flash reads are queued as soon as they start, and so are straight: neither the firmware nor the buffer
    /// nor map lookups take time.
    reads_are_queued_at_once: bool,
    requests: Table<RequestId, RequestPath>,
    transactions: Table<TransactionId, TransactionPath>,
    /// CriticalPaths of the requests whose parts have all completed.
    settled: Table<RequestId, Path>,
    /// Queues of the mapping scheme.
    queues: Queues,
    /// Breakdowns of the completions since the last call of [`CriticalPaths::take_breakdowns`].
    done: Vec<Breakdown>,
}

impl CriticalPaths {
    /// Creates the paths of an idle device.
    pub fn new(config: &DeviceConfig) -> CriticalPaths {
        let needs = config.mapping.scheme.needs(config);
        let is_full_map = needs.translation.is_none() && needs.whole_blocks.is_none();
        let is_plain = config.controller.firmware.is_none() && config.active_buffer().is_none();
        CriticalPaths { is_plain, reads_are_queued_at_once: is_full_map && is_plain, ..CriticalPaths::default() }
    }

    /// Moves the breakdowns of the completions since the last call to `into`, in the order of the completions.
    pub fn take_breakdowns(&mut self, into: &mut Vec<Breakdown>) {
        if into.is_empty() {
            std::mem::swap(into, &mut self.done);
        } else {
            into.append(&mut self.done);
        }
    }

    /// Returns the whole path of a transaction, which is not straight from now on.
    fn transaction(&mut self, id: TransactionId) -> &mut TransactionPath {
        let transaction = &mut self.transactions[id];
        if transaction.straight.is_some() {
            let request = &self.requests[transaction.straight];
            let path = transaction.path;
            transaction.path =
                if transaction.served { path.on_top_of(request) } else { Path { at: path.at, ..request.path() } };
            transaction.straight = RequestId::NONE;
        }
        transaction
    }

    /// Returns the path of a request whose last part was not completed by a transaction.
    fn of_request(&self, id: RequestId) -> Path {
        let request = &self.requests[id];
        if request.settled { self.settled[id] } else { request.path() }
    }

    /// Starts the path of a request that entered the queue at `at`.
    pub fn enter(&mut self, id: RequestId, arrival: Time, at: Time) {
        let mut entered = RequestPath { at, ..RequestPath::default() };
        entered.interface[Part::HostQueue as usize] = at - arrival;
        *self.requests.entry(id) = entered;
    }

    /// Attributes the time of a request up to `now`, outside its transactions, to `part`: the link, the firmware or the
    /// buffer.
    pub fn spend_of_request(&mut self, id: RequestId, part: Part, now: Time) {
        if self.requests[id].settled {
            self.settled[id].spend(part, now);
        } else {
            self.requests[id].spend(part, now);
        }
    }

    /// Attributes a time of a request that waits for its admission to the throttle, without the time in which its other
    /// units arrived.
    pub fn throttle_request(&mut self, id: RequestId, delayed: Time, now: Time) {
        let request = &mut self.requests[id];
        request.spend(Part::Throttle, now.min(request.at + delayed));
    }

    /// Starts the path of a transaction from the path of its request, as straight if the device allows it. The
    /// transaction has only a wait and its operation.
    #[inline(always)]
    fn start_straight(&mut self, id: TransactionId, request: RequestId, now: Time) {
        if !self.is_plain {
            return self.begin(id, request, TransactionId::NONE, now);
        }
        let begun = self.transactions.entry(id);
        (begun.line, begun.straight, begun.served) = (Waiting::None, request, false);
        begun.path.at = self.requests[request].at;
    }

    /// Returns `true` if the paths of flash reads start when they are queued on their LUN.
    #[inline(always)]
    pub fn skips_reads(&self) -> bool {
        self.reads_are_queued_at_once
    }

    /// Starts the path of a flash read from the path of its request.
    #[inline]
    pub fn begin_read(&mut self, id: TransactionId, request: RequestId, now: Time) {
        if !self.reads_are_queued_at_once {
            self.start_straight(id, request, now);
        }
    }

    /// Starts the path of a write from the path of its request. `is_alone` is true if the write covers the whole
    /// request.
    #[inline]
    pub fn begin_write(&mut self, id: TransactionId, request: RequestId, is_alone: bool, now: Time) {
        // Later units of a request can still wait for slots when the first ones have started.
        if is_alone {
            self.start_straight(id, request, now);
        } else {
            self.begin(id, request, TransactionId::NONE, now);
        }
    }

    /// Starts the path of a transaction of a request: from the path of the transaction `from`, or from that of the
    /// request if `from` is `NONE`.
    pub fn begin(&mut self, id: TransactionId, request: RequestId, from: TransactionId, now: Time) {
        let path = match (request, from) {
            // A write of the buffer belongs to no request.
            (RequestId::NONE, _) => Path { at: now, ..Path::default() },
            (request, TransactionId::NONE) => self.requests[request].path(),
            (_, from) => self.transaction(from).path,
        };
        *self.transactions.entry(id) = TransactionPath { path, ..TransactionPath::default() };
    }

    /// Attributes the time of a transaction up to `now` to `part`.
    pub fn spend(&mut self, id: TransactionId, part: Part, now: Time) {
        if self.transactions[id].path.at != now {
            self.transaction(id).path.spend(part, now);
        }
    }

    /// Starts the wait of a transaction that was queued on a LUN.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        transactions: &Transactions,
        accounting: &BusyAccounting,
        id: TransactionId,
        lun: LunId,
        now: Time,
    ) {
        let transaction = &transactions[id];
        let waiting = if transaction.kind == Kind::HostRead && self.reads_are_queued_at_once {
            let owner = transaction.request();
            debug_assert_eq!(self.requests[owner].at, now, "the read must be queued when it starts");
            let begun = self.transactions.entry(id);
            (begun.path.at, begun.straight, begun.served) = (now, owner, false);
            begun
        } else {
            let Some(bearer) = bearer(transactions, id) else { return };
            let path = &mut self.transactions[bearer];
            if matches!(path.line, Waiting::Block | Waiting::Queue(..)) {
                path.leave_queue(accounting, &self.queues, now);
            }
            path
        };
        waiting.line = Waiting::Lun(lun, accounting.mark(lun, now));
    }

    /// Ends the current wait of a write, and starts another one.
    fn wait_again(&mut self, view: &View, id: TransactionId, line: impl FnOnce(&BusyAccounting, &Queues) -> Waiting) {
        if let Some(accounting) = view.array.accounting() {
            self.transaction(id);
            let CriticalPaths { transactions, queues, .. } = self;
            let path = &mut transactions[id];
            path.leave_queue(accounting, queues, view.now);
            path.line = line(accounting, queues);
        }
    }

    /// Starts the wait of a write for any LUN of its pool.
    pub fn wait_for_any(&mut self, view: &View, id: TransactionId, pool: u32) {
        self.wait_again(view, id, |accounting, _| Waiting::Any(accounting.mark_all(pool, view.now)));
    }

    /// Starts the wait of a write for a free block.
    pub fn wait_for_block(&mut self, view: &View, id: TransactionId) {
        self.wait_again(view, id, |_, _| Waiting::Block);
    }

    /// Starts the wait of a write in a queue of the mapping scheme.
    pub fn wait_in_queue(&mut self, view: &View, id: TransactionId, queue: u32) {
        let now = view.now;
        self.wait_again(view, id, |accounting, queues| Waiting::Queue(queue, queues.reading(accounting, queue, now)));
    }

    /// Sets the cause of the waits in a queue of the mapping scheme, from now on.
    pub fn set_cause(&mut self, view: &View, queue: u32, cause: WaitCause) {
        self.queues.set_cause(view.array, queue, cause, view.now);
    }

    /// Starts the wait of a write that waited for a free block and was queued on a LUN again.
    pub fn wait_for_lun(&mut self, view: &View, id: TransactionId, lun: LunId) {
        self.wait_again(view, id, |accounting, _| Waiting::Lun(lun, accounting.mark(lun, view.now)));
    }

    /// Ends the wait of a write that a scheme binds without queuing it, because it joins a program on this LUN.
    pub fn bind(&mut self, view: &View, id: TransactionId, lun: LunId) {
        if !matches!(self.transactions[id].line, Waiting::Lun(..)) {
            self.wait_for_lun(view, id, lun);
        }
    }

    /// Adds the completed operation of an execution unit of `lun` to `first` and the transactions that were bound with
    /// it.
    pub fn finish(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        let Transaction { kind, next, .. } = view.transactions[first];
        self.finish_one(view, unit, lun, first);
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            self.finish_all(view, unit, lun, next);
        }
    }

    /// Does the same as [`CriticalPaths::finish`] if the operation is of one transaction, or of garbage collection, and
    /// did not overlap with another one. Otherwise returns `false` and does nothing. Inlined, because most operations
    /// are of this kind.
    #[inline(always)]
    pub fn finish_alone(
        &mut self,
        transactions: &Transactions,
        array: &mut Array,
        (unit, lun): (ExecUnitId, LunId),
        id: TransactionId,
        now: Time,
    ) -> bool {
        let work = &transactions[id];
        if work.next.is_some() && array::Kind::from(work.kind) != array::Kind::Read {
            return false;
        }
        if !matches!(work.kind, Kind::HostRead | Kind::SlotRead | Kind::Write) {
            // These operations belong to no request, except reads that complete a write.
            let is_of_none = work.kind != Kind::RmwRead;
            if is_of_none {
                array.book_end(unit, lun, now);
            }
            return is_of_none;
        }
        let transaction = &mut self.transactions[id];
        let Waiting::Lun(_, mark) = transaction.line else { return false };
        let Some(turn) = array.book_alone(unit, lun, now) else { return false };
        let wait = turn.mark.since(mark, turn.start - transaction.path.at);
        if transaction.straight.is_none() {
            let [bus, cell] = parts_of(work);
            transaction.served(wait, &turn, bus, cell, now);
        } else {
            transaction.path.set_straight(wait, &turn, now);
            (transaction.line, transaction.served) = (Waiting::None, true);
        }
        let owner = work.request();
        if owner.is_some() {
            self.requests[owner].use_channel(turn.channel);
        }
        true
    }

    /// Adds the completed operation of an execution unit of `lun` to a transaction and those linked after it.
    #[inline(never)]
    fn finish_all(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        let mut id = first;
        while id.is_some() {
            self.finish_one(view, unit, lun, id);
            id = view.transactions[id].next;
        }
    }

    /// Adds the operation of an execution unit of `lun` to one of its transactions. The operation has completed, or has
    /// transferred the data of this transaction's plane and continues with the next plane.
    #[inline(never)]
    pub fn finish_one(&mut self, view: &View, unit: ExecUnitId, lun: LunId, id: TransactionId) {
        let Some(bearer) = bearer(view.transactions, id) else { return };
        let Some(turn) = view.array.book_turn(unit, lun, view.now) else { return };
        let [bus, cell] = parts_of(&view.transactions[id]);
        let whole = view.array.book_head(unit).map_or(turn, |head| head.then(turn));
        self.transaction(bearer).operation(&whole, bus, cell, view.now);
        let owner = view.transactions[bearer].request();
        if owner.is_some() {
            self.requests[owner].use_channel(turn.channel);
        }
    }

    /// Attributes the time since the end of a page read to the decoding of its data. If the read is repeated, it waits
    /// for this LUN again.
    pub fn decoded(&mut self, view: &View, id: TransactionId, again: Option<LunId>) {
        let Some(bearer) = bearer(view.transactions, id) else { return };
        self.spend(bearer, Part::Ecc, view.now);
        if let Some(lun) = again {
            self.wait_for_lun(view, bearer, lun);
        }
    }

    /// Attributes the time since an uncorrectable page was read to its rebuild.
    pub fn rebuilt(&mut self, view: &View, id: TransactionId) {
        if let Some(bearer) = bearer(view.transactions, id) {
            self.spend(bearer, Part::Rebuild, view.now);
        }
    }

    /// Stores the path of a request whose parts have all completed, and which continues. `by` is the transaction that
    /// completed the last part, or `NONE`.
    pub fn settle(&mut self, id: RequestId, by: TransactionId) {
        let path = if by.is_none() { self.of_request(id) } else { self.transaction(by).path };
        *self.settled.entry(id) = path;
        self.requests[id].settled = true;
    }

    /// Adds the breakdown of a request that completes at `finish`. `by` is the transaction that completed the last
    /// part, or `NONE`.
    pub fn complete(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) {
        self.done.reserve(1);
        if self.complete_by(id, by, finish, now) {
            return;
        }
        let Path { at, mut parts } = self.of_request(id);
        // Only the way back over the link remains.
        parts[Part::Link as usize] += finish.since(at);
        self.done.push(Breakdown { parts, channels: self.requests[id].channels });
    }

    /// Does the same as [`CriticalPaths::complete`] if a transaction completed the last part and `done` has capacity.
    /// Otherwise returns `false` and does nothing. Inlined, because this is the common case.
    #[inline(always)]
    pub fn complete_by(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) -> bool {
        if by.is_none() || self.done.len() == self.done.capacity() {
            return false;
        }
        let request = &self.requests[id];
        let TransactionPath { path, straight, .. } = &self.transactions[by];
        debug_assert!(path.at == now, "all time up to now must be attributed");
        let link = finish - path.at;
        let of = |mut parts: [Time; Part::COUNT]| {
            parts[Part::Link as usize] += link;
            Breakdown { parts, channels: request.channels }
        };
        // An arm for each has fewer moves than a choice between their parts.
        if straight.is_some() {
            self.done.push(of(path.on_top_of(request).parts));
        } else {
            self.done.push(of(path.parts));
        }
        true
    }

    /// Adds the breakdown of a request that was refused on arrival.
    pub fn refuse(&mut self, request: &Request, now: Time) {
        let mut path = Path { at: request.arrival, ..Path::default() };
        path.spend(Part::HostQueue, now);
        self.done.push(Breakdown { parts: path.parts, channels: 0 });
    }
}

/// Returns the parts of the bus and the cells of an operation.
fn parts_of(operation: &Transaction) -> [Part; 2] {
    match operation.kind {
        _ if operation.retries() > 0 => [Part::Ecc; 2],
        Kind::RmwRead => [Part::Rmw; 2],
        _ => [Part::Bus, Part::Cell],
    }
}

/// Returns the transaction whose path includes the waits and operations of `id`. A read for a partial write counts for
/// the write. Garbage collection and map operations count for no transaction.
fn bearer(transactions: &Transactions, id: TransactionId) -> Option<TransactionId> {
    match transactions[id].kind {
        Kind::HostRead | Kind::Write | Kind::SlotRead => Some(id),
        Kind::RmwRead => Some(transactions[id].write()),
        Kind::GcRead | Kind::GcWrite | Kind::CopyBack | Kind::Erase | Kind::Summary => None,
        Kind::ReadAhead | Kind::RebuildRead => None,
        Kind::MergeRead | Kind::MergeWrite | Kind::Translate | Kind::MapRead | Kind::MapWrite | Kind::MapHold => None,
    }
}
