//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::View;
use crate::config::DeviceConfig;
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::array;
use crate::nand::busy_time::{BusyAccounting, OperationTimes, Reading, ReadingOfAll, Wait};
use crate::sim::id::{ChannelId, ExecUnitId, LunId, RequestId, TransactionId};
use crate::sim::request::Request;
use crate::sim::table::Table;
use crate::sim::time::Time;
use crate::work::{Kind, Transaction, Transactions};

/// What something waits in line for, with the reading of the books when it lined up.
#[derive(Clone, Copy, Debug, Default)]
enum Line {
    /// Nothing that the array keeps books of.
    #[default]
    None,
    /// A LUN.
    Lun(LunId, Reading),
    /// Whichever LUN of a pool is free first.
    Any(ReadingOfAll),
    /// A free block.
    Block,
}

/// How far something has come, and what it has spent its time with.
#[derive(Clone, Copy, Debug, Default)]
struct Path {
    at: Time,
    parts: [Time; Part::COUNT],
}

impl Path {
    /// The time up to `until` went into `part`.
    #[inline]
    fn spend(&mut self, part: Part, until: Time) {
        self.parts[part as usize] += until - self.at;
        self.at = until;
    }

    /// The trail of a straight transaction, of which nothing is kept but its wait in line and its operation, with what
    /// came before.
    #[inline(always)]
    fn on_top_of(&self, request: &RequestPath) -> Path {
        let mut path = Path { at: self.at, ..request.path() };
        for part in STRAIGHT {
            path.parts[part as usize] = self.parts[part as usize];
        }
        path
    }

    /// The wait in line and the operation of a straight transaction, which has ended now.
    #[inline(always)]
    fn go_straight(&mut self, wait: Wait, turn: &OperationTimes, now: Time) {
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

/// A transaction in progress.
#[derive(Clone, Copy, Debug)]
struct TransactionPath {
    /// Since the request got its place in the queue.
    path: Path,
    line: Line,
    /// Its request, while nothing has happened to it but at most one wait in line for its LUN and the operation, and
    /// nothing to the request since it began: then no part of the trail is kept but that wait and that operation, and
    /// those only when it has ended. The request has the others. `NONE` otherwise.
    straight: RequestId,
    /// The operation has ended.
    served: bool,
}

impl Default for TransactionPath {
    fn default() -> Self {
        TransactionPath { path: Path::default(), line: Line::None, straight: RequestId::NONE, served: false }
    }
}

impl TransactionPath {
    /// The wait in line ends without an operation.
    fn leave_line(&mut self, accounting: &BusyAccounting, now: Time) {
        let waited = now - self.path.at;
        match self.line {
            Line::None => {}
            Line::Lun(lun, mark) => self.path.wait(accounting.mark(lun, now).since(mark, waited)),
            Line::Any(mark) => self.path.wait(accounting.mark_all(mark.pool, now).since(mark, waited)),
            Line::Block => self.path.spend(Part::Gc, now),
        }
        self.line = Line::None;
    }

    /// The operation has ended that it was in line for, if it was.
    fn operation(&mut self, turn: &OperationTimes, bus: Part, cell: Part, now: Time) {
        let waited = turn.start - self.path.at;
        let wait = match self.line {
            Line::None | Line::Block => return,
            Line::Lun(_, mark) => turn.mark.since(mark, waited),
            Line::Any(mark) => turn.all.since(mark, waited),
        };
        self.served(wait, turn, bus, cell, now);
    }

    /// An operation has ended now, after such a wait in line for it.
    #[inline(always)]
    fn served(&mut self, wait: Wait, turn: &OperationTimes, bus: Part, cell: Part, now: Time) {
        self.line = Line::None;
        let Path { at, parts } = &mut self.path;
        parts[Part::Die as usize] += wait.die + turn.wait.die;
        parts[Part::Channel as usize] += wait.channel + turn.wait.channel;
        parts[Part::Gc as usize] += wait.gc + turn.wait.gc;
        parts[bus as usize] += turn.bus;
        parts[cell as usize] += turn.cell;
        *at = now;
    }
}

/// What a transaction goes through that nothing else happens to: a wait in line, and its operation.
const STRAIGHT: [Part; 5] = [Part::Die, Part::Channel, Part::Gc, Part::Bus, Part::Cell];

/// Parts of a request's time that lie before its transactions: the first of [`Part::ALL`], up to the buffer.
const FRONT: usize = Part::Buffer as usize + 1;

/// A request in progress, up to where its next transaction begins.
#[derive(Clone, Copy, Debug, Default)]
struct RequestPath {
    at: Time,
    interface: [Time; FRONT],
    /// All its parts are done: its trail is among those that are settled.
    settled: bool,
    /// Channels used, and how many they are: a bit each, in turn where there are more of them.
    used: [u64; 2],
    channels: u32,
}

impl RequestPath {
    /// The trail up to here.
    #[inline(always)]
    fn path(&self) -> Path {
        let mut parts = [Time::ZERO; Part::COUNT];
        parts[..FRONT].copy_from_slice(&self.interface);
        Path { at: self.at, parts }
    }

    /// Time up to now went into `part`: the link, the firmware or the buffer.
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

/// The trails of a device.
#[derive(Clone, Debug, Default)]
pub struct CriticalPaths {
    /// Neither firmware nor the buffer takes time of a request when some of its parts have begun.
    is_plain: bool,
    /// Reads from flash begin when they line up, and so are straight: neither firmware nor the buffer nor a look-up of
    /// the map takes time.
    reads_are_queued_at_once: bool,
    requests: Table<RequestId, RequestPath>,
    transactions: Table<TransactionId, TransactionPath>,
    /// By request: of those that are settled.
    settled: Table<RequestId, Path>,
    /// Breakdowns of the completions that have not been taken.
    done: Vec<Breakdown>,
}

impl CriticalPaths {
    /// Creates the trails of an idle device.
    pub fn new(config: &DeviceConfig) -> CriticalPaths {
        let needs = config.mapping.scheme.needs(config);
        let is_full_map = needs.translation.is_none() && !needs.whole_blocks;
        let is_plain = config.controller.firmware.is_none() && config.active_buffer().is_none();
        CriticalPaths { is_plain, reads_are_queued_at_once: is_full_map && is_plain, ..CriticalPaths::default() }
    }

    /// Takes the breakdowns of the requests that have completed since the last call, in their order.
    pub fn take_breakdowns(&mut self, into: &mut Vec<Breakdown>) {
        if into.is_empty() {
            std::mem::swap(into, &mut self.done);
        } else {
            into.append(&mut self.done);
        }
    }

    /// Returns the trail as a whole of a transaction to which more happens than to a straight one.
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

    /// Returns the trail of a request all of whose parts are done, the last not by a transaction.
    fn of_request(&self, id: RequestId) -> Path {
        let request = &self.requests[id];
        if request.settled { self.settled[id] } else { request.path() }
    }

    /// Begins the trail of a request that has got a place in the queue at `at`.
    pub fn enter(&mut self, id: RequestId, arrival: Time, at: Time) {
        let mut entered = RequestPath { at, ..RequestPath::default() };
        entered.interface[Part::HostQueue as usize] = at - arrival;
        *self.requests.entry(id) = entered;
    }

    /// Counts the time of a request up to `now`, outside its transactions, for `part`: the link, the firmware or the
    /// buffer.
    pub fn spend_of_request(&mut self, id: RequestId, part: Part, now: Time) {
        if self.requests[id].settled {
            self.settled[id].spend(part, now);
        } else {
            self.requests[id].spend(part, now);
        }
    }

    /// Begins the trail of a transaction where its request has come to, if at most a wait in line and the operation
    /// happen to it.
    #[inline(always)]
    fn begin_straight(&mut self, id: TransactionId, request: RequestId, now: Time) {
        if !self.is_plain {
            return self.begin(id, request, TransactionId::NONE, now);
        }
        let begun = self.transactions.entry(id);
        (begun.line, begun.straight, begun.served) = (Line::None, request, false);
        begun.path.at = self.requests[request].at;
    }

    /// Returns `true` if the trails of reads from flash begin when they line up.
    #[inline(always)]
    pub fn skips_reads(&self) -> bool {
        self.reads_are_queued_at_once
    }

    /// Begins the trail of a read from flash where its request has come to.
    #[inline]
    pub fn begin_read(&mut self, id: TransactionId, request: RequestId, now: Time) {
        if !self.reads_are_queued_at_once {
            self.begin_straight(id, request, now);
        }
    }

    /// Begins the trail of a write where its request has come to. `is_alone` is true if it is all of its request.
    #[inline]
    pub fn begin_write(&mut self, id: TransactionId, request: RequestId, is_alone: bool, now: Time) {
        // Of several units, the later ones may wait for slots when the first have begun.
        if is_alone {
            self.begin_straight(id, request, now);
        } else {
            self.begin(id, request, TransactionId::NONE, now);
        }
    }

    /// Begins the trail of a transaction of a request: where the transaction `from` has come to, or the request where
    /// that is `NONE`.
    pub fn begin(&mut self, id: TransactionId, request: RequestId, from: TransactionId, now: Time) {
        let path = match (request, from) {
            // The buffer writes for nobody in particular.
            (RequestId::NONE, _) => Path { at: now, ..Path::default() },
            (request, TransactionId::NONE) => self.requests[request].path(),
            (_, from) => self.transaction(from).path,
        };
        *self.transactions.entry(id) = TransactionPath { path, ..TransactionPath::default() };
    }

    /// Counts the time of a transaction up to `now` for `part`.
    pub fn spend(&mut self, id: TransactionId, part: Part, now: Time) {
        if self.transactions[id].path.at != now {
            self.transaction(id).path.spend(part, now);
        }
    }

    /// A transaction lines up for a LUN.
    #[inline(always)]
    pub fn enqueue(&mut self, view: &View, id: TransactionId, lun: LunId) {
        let (transaction, now) = (&view.transactions[id], view.now);
        let Some(accounting) = view.array.accounting() else { return };
        let bearer = match transaction.kind {
            Kind::HostRead if self.reads_are_queued_at_once => {
                let owner = transaction.request();
                debug_assert_eq!(self.requests[owner].at, now, "it lines up when it begins");
                let begun = self.transactions.entry(id);
                (begun.path.at, begun.straight, begun.served) = (now, owner, false);
                id
            }
            Kind::HostRead | Kind::SlotRead | Kind::Write => id,
            Kind::RmwRead => transaction.write(),
            _ => return,
        };
        self.transactions[bearer].line = Line::Lun(lun, accounting.mark(lun, now));
    }

    /// Ends what a write has waited in line for, and begins another wait.
    fn wait_again(&mut self, view: &View, id: TransactionId, line: impl FnOnce(&BusyAccounting) -> Line) {
        if let Some(accounting) = view.array.accounting() {
            let path = self.transaction(id);
            path.leave_line(accounting, view.now);
            path.line = line(accounting);
        }
    }

    /// A write waits for any LUN of its pool.
    pub fn wait_for_any(&mut self, view: &View, id: TransactionId, pool: u32) {
        self.wait_again(view, id, |accounting| Line::Any(accounting.mark_all(pool, view.now)));
    }

    /// A write waits for a free block.
    pub fn wait_for_block(&mut self, view: &View, id: TransactionId) {
        self.wait_again(view, id, |_| Line::Block);
    }

    /// A write that waited for a free block lines up for a LUN again.
    pub fn wait_for_lun(&mut self, view: &View, id: TransactionId, lun: LunId) {
        self.wait_again(view, id, |accounting| Line::Lun(lun, accounting.mark(lun, view.now)));
    }

    /// The operation of a unit of `lun` has ended, for `first` and those that were bound with it.
    pub fn finish(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        let Transaction { kind, next, .. } = view.transactions[first];
        self.finish_one(view, unit, lun, first);
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            self.finish_all(view, unit, lun, next);
        }
    }

    /// As [`CriticalPaths::finish`], if the operation is of one transaction, or of garbage collection, and nothing overlapped
    /// with it. Otherwise returns `false` and does nothing. Most operations are of this kind; no other function is
    /// called for them, so that they cost little.
    #[inline(always)]
    pub fn finish_alone(&mut self, view: &View, unit: ExecUnitId, lun: LunId, id: TransactionId) -> bool {
        let Transaction { kind, next, .. } = view.transactions[id];
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            return false;
        }
        match kind {
            Kind::HostRead | Kind::SlotRead | Kind::Write => {}
            // On nobody's way.
            kind => return kind != Kind::RmwRead,
        }
        let Some(accounting) = view.array.accounting() else { return false };
        let transaction = &mut self.transactions[id];
        let (Line::Lun(_, mark), None) = (transaction.line, view.array.book_head(unit)) else { return false };
        let turn = accounting.turn(unit, lun, view.array.cells_of(unit), view.now);
        let wait = turn.mark.since(mark, turn.start - transaction.path.at);
        if transaction.straight.is_none() {
            transaction.served(wait, &turn, Part::Bus, Part::Cell, view.now);
        } else {
            transaction.path.go_straight(wait, &turn, view.now);
            (transaction.line, transaction.served) = (Line::None, true);
        }
        let owner = view.transactions[id].request();
        if owner.is_some() {
            self.requests[owner].use_channel(turn.channel);
        }
        true
    }

    /// The operation of a unit of `lun` has ended for a transaction and those behind it.
    #[inline(never)]
    fn finish_all(&mut self, view: &View, unit: ExecUnitId, lun: LunId, first: TransactionId) {
        let mut id = first;
        while id.is_some() {
            self.finish_one(view, unit, lun, id);
            id = view.transactions[id].next;
        }
    }

    /// The operation of a unit of `lun` has ended for one of its transactions, whichever; or the data of one plane have
    /// left, of a unit that goes on with the next.
    #[inline(never)]
    pub fn finish_one(&mut self, view: &View, unit: ExecUnitId, lun: LunId, id: TransactionId) {
        let Some(bearer) = bearer(view.transactions, id) else { return };
        let Some(turn) = view.array.book_turn(unit, lun, view.now) else { return };
        let (bus, cell) = if bearer == id { (Part::Bus, Part::Cell) } else { (Part::Rmw, Part::Rmw) };
        let whole = view.array.book_head(unit).map_or(turn, |head| head.then(turn));
        self.transaction(bearer).operation(&whole, bus, cell, view.now);
        let owner = view.transactions[bearer].request();
        if owner.is_some() {
            self.requests[owner].use_channel(turn.channel);
        }
    }

    /// All parts of a request have completed, and the request itself continues. `by` is the transaction that completed
    /// the last part, or `NONE`.
    pub fn settle(&mut self, id: RequestId, by: TransactionId) {
        let path = if by.is_none() { self.of_request(id) } else { self.transaction(by).path };
        *self.settled.entry(id) = path;
        self.requests[id].settled = true;
    }

    /// A request completes at `finish`. `by` is the transaction that completed the last part, or `NONE`.
    pub fn complete(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) {
        self.done.reserve(1);
        if self.complete_by(id, by, finish, now) {
            return;
        }
        let Path { at, mut parts } = self.of_request(id);
        // Only its way back lies before it.
        parts[Part::Link as usize] += finish.since(at);
        self.done.push(Breakdown { parts, channels: self.requests[id].channels });
    }

    /// As [`CriticalPaths::complete`], if a transaction completed the last part and there is room for a breakdown. Otherwise
    /// returns `false` and does nothing. No other function is called, so that it costs little.
    #[inline(always)]
    pub fn complete_by(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) -> bool {
        if by.is_none() || self.done.len() == self.done.capacity() {
            return false;
        }
        let request = &self.requests[id];
        let TransactionPath { path, straight, .. } = &self.transactions[by];
        debug_assert!(path.at == now, "all time up to now is spent");
        let mut parts = if straight.is_some() { path.on_top_of(request).parts } else { path.parts };
        parts[Part::Link as usize] += finish - path.at;
        self.done.push(Breakdown { parts, channels: request.channels });
        true
    }

    /// A request was refused at once.
    pub fn refuse(&mut self, request: &Request, now: Time) {
        let mut path = Path { at: request.arrival, ..Path::default() };
        path.spend(Part::HostQueue, now);
        self.done.push(Breakdown { parts: path.parts, channels: 0 });
    }
}

/// The trail that a transaction's waits and operations belong to: a read that completes a write is on the write's way.
/// Cleaning is on nobody's.
fn bearer(transactions: &Transactions, id: TransactionId) -> Option<TransactionId> {
    match transactions[id].kind {
        Kind::HostRead | Kind::Write | Kind::SlotRead => Some(id),
        Kind::RmwRead => Some(transactions[id].write()),
        Kind::GcRead | Kind::GcWrite | Kind::CopyBack | Kind::Erase | Kind::Summary => None,
        Kind::MergeRead | Kind::MergeWrite | Kind::Translate | Kind::MapRead | Kind::MapWrite | Kind::MapHold => None,
    }
}
