//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::View;
use crate::config::DeviceConfig;
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::array;
use crate::nand::ledger::{Ledger, Mark, MarkOfAll, Turn, Wait};
use crate::sim::id::{ChannelId, LunId, RequestId, TransactionId, UnitId};
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
    Lun(LunId, Mark),
    /// Whichever LUN of a pool is free first.
    Any(MarkOfAll),
    /// A free block.
    Block,
}

/// How far something has come, and what it has spent its time with.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    at: Time,
    parts: [Time; Part::COUNT],
}

impl Trail {
    /// The time up to `until` went into `part`.
    #[inline]
    fn spend(&mut self, part: Part, until: Time) {
        self.parts[part as usize] += until - self.at;
        self.at = until;
    }

    /// The trail of a straight transaction, of which nothing is kept but its wait in line and its operation, with what
    /// came before.
    #[inline(always)]
    fn on_top_of(&self, request: &RequestTrail) -> Trail {
        let mut trail = Trail { at: self.at, ..request.trail() };
        for part in STRAIGHT {
            trail.parts[part as usize] = self.parts[part as usize];
        }
        trail
    }

    /// The wait in line and the operation of a straight transaction, which has ended now.
    #[inline(always)]
    fn go_straight(&mut self, wait: Wait, turn: &Turn, now: Time) {
        self.parts[Part::Die as usize] = wait.die + turn.wait.die;
        self.parts[Part::Channel as usize] = wait.channel + turn.wait.channel;
        self.parts[Part::Cleaning as usize] = wait.cleaning + turn.wait.cleaning;
        self.parts[Part::Bus as usize] = turn.bus;
        self.parts[Part::Cell as usize] = turn.cell;
        self.at = now;
    }

    #[inline(always)]
    fn wait(&mut self, wait: Wait) {
        let Wait { die, channel, cleaning } = wait;
        self.parts[Part::Die as usize] += die;
        self.parts[Part::Channel as usize] += channel;
        self.parts[Part::Cleaning as usize] += cleaning;
        self.at += die + channel + cleaning;
    }
}

/// A transaction in progress.
#[derive(Clone, Copy, Debug)]
struct TransactionTrail {
    /// Since the request got its place in the queue.
    trail: Trail,
    line: Line,
    /// Its request, while nothing has happened to it but at most one wait in line for its LUN and the operation, and
    /// nothing to the request since it began: then no part of the trail is kept but that wait and that operation, and
    /// those only when it has ended. The request has the others. `NONE` otherwise.
    straight: RequestId,
    /// The operation has ended.
    served: bool,
}

impl Default for TransactionTrail {
    fn default() -> Self {
        TransactionTrail { trail: Trail::default(), line: Line::None, straight: RequestId::NONE, served: false }
    }
}

impl TransactionTrail {
    /// The wait in line ends without an operation.
    fn leave_line(&mut self, ledger: &Ledger, now: Time) {
        let waited = now - self.trail.at;
        match self.line {
            Line::None => {}
            Line::Lun(lun, mark) => self.trail.wait(ledger.mark(lun, now).since(mark, waited)),
            Line::Any(mark) => self.trail.wait(ledger.mark_all(mark.pool, now).since(mark, waited)),
            Line::Block => self.trail.spend(Part::Cleaning, now),
        }
        self.line = Line::None;
    }

    /// The operation has ended that it was in line for, if it was.
    fn operation(&mut self, turn: &Turn, bus: Part, cell: Part, now: Time) {
        let waited = turn.start - self.trail.at;
        let wait = match self.line {
            Line::None | Line::Block => return,
            Line::Lun(_, mark) => turn.mark.since(mark, waited),
            Line::Any(mark) => turn.all.since(mark, waited),
        };
        self.served(wait, turn, bus, cell, now);
    }

    /// An operation has ended now, after such a wait in line for it.
    #[inline(always)]
    fn served(&mut self, wait: Wait, turn: &Turn, bus: Part, cell: Part, now: Time) {
        self.line = Line::None;
        let Trail { at, parts } = &mut self.trail;
        parts[Part::Die as usize] += wait.die + turn.wait.die;
        parts[Part::Channel as usize] += wait.channel + turn.wait.channel;
        parts[Part::Cleaning as usize] += wait.cleaning + turn.wait.cleaning;
        parts[bus as usize] += turn.bus;
        parts[cell as usize] += turn.cell;
        *at = now;
    }
}

/// What a transaction goes through that nothing else happens to: a wait in line, and its operation.
const STRAIGHT: [Part; 5] = [Part::Die, Part::Channel, Part::Cleaning, Part::Bus, Part::Cell];

/// Parts of a request's time that lie before its transactions: the first of [`Part::ALL`], up to the buffer.
const FRONT: usize = Part::Buffer as usize + 1;

/// A request in progress, up to where its next transaction begins.
#[derive(Clone, Copy, Debug, Default)]
struct RequestTrail {
    at: Time,
    front: [Time; FRONT],
    /// All its parts are done: its trail is among those that are settled.
    settled: bool,
    /// Channels used, and how many they are: a bit each, in turn where there are more of them.
    used: [u64; 2],
    channels: u32,
}

impl RequestTrail {
    /// The trail up to here.
    #[inline(always)]
    fn trail(&self) -> Trail {
        let mut parts = [Time::ZERO; Part::COUNT];
        parts[..FRONT].copy_from_slice(&self.front);
        Trail { at: self.at, parts }
    }

    /// Time up to now went into `part`: the link, the firmware or the buffer.
    #[inline(always)]
    fn spend(&mut self, part: Part, now: Time) {
        self.front[part as usize] += now - self.at;
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
pub struct Trails {
    /// Neither firmware nor the buffer takes time of a request when some of its parts have begun.
    is_plain: bool,
    /// Reads from flash begin when they line up, and so are straight: neither firmware nor the buffer nor a look-up of
    /// the map takes time.
    reads_line_up_at_once: bool,
    requests: Table<RequestId, RequestTrail>,
    transactions: Table<TransactionId, TransactionTrail>,
    /// By request: of those that are settled.
    settled: Table<RequestId, Trail>,
    /// Breakdowns of the completions that have not been taken.
    done: Vec<Breakdown>,
}

impl Trails {
    /// Creates the trails of an idle device.
    pub fn new(config: &DeviceConfig) -> Trails {
        let needs = config.mapping.scheme.needs(config);
        let is_full_map = needs.translation.is_none() && !needs.whole_blocks;
        let is_plain = config.controller.firmware.is_none() && config.active_buffer().is_none();
        Trails { is_plain, reads_line_up_at_once: is_full_map && is_plain, ..Trails::default() }
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
    fn transaction(&mut self, id: TransactionId) -> &mut TransactionTrail {
        let transaction = &mut self.transactions[id];
        if transaction.straight.is_some() {
            let request = &self.requests[transaction.straight];
            let trail = transaction.trail;
            transaction.trail =
                if transaction.served { trail.on_top_of(request) } else { Trail { at: trail.at, ..request.trail() } };
            transaction.straight = RequestId::NONE;
        }
        transaction
    }

    /// Returns the trail of a request all of whose parts are done, the last not by a transaction.
    fn of_request(&self, id: RequestId) -> Trail {
        let request = &self.requests[id];
        if request.settled { self.settled[id] } else { request.trail() }
    }

    /// Begins the trail of a request that has got a place in the queue at `at`.
    pub fn enter(&mut self, id: RequestId, arrival: Time, at: Time) {
        let mut entered = RequestTrail { at, ..RequestTrail::default() };
        entered.front[Part::HostQueue as usize] = at - arrival;
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
        begun.trail.at = self.requests[request].at;
    }

    /// Returns `true` if the trails of reads from flash begin when they line up.
    #[inline(always)]
    pub fn skips_reads(&self) -> bool {
        self.reads_line_up_at_once
    }

    /// Begins the trail of a read from flash where its request has come to.
    #[inline]
    pub fn begin_read(&mut self, id: TransactionId, request: RequestId, now: Time) {
        if !self.reads_line_up_at_once {
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
        let trail = match (request, from) {
            // The buffer writes for nobody in particular.
            (RequestId::NONE, _) => Trail { at: now, ..Trail::default() },
            (request, TransactionId::NONE) => self.requests[request].trail(),
            (_, from) => self.transaction(from).trail,
        };
        *self.transactions.entry(id) = TransactionTrail { trail, ..TransactionTrail::default() };
    }

    /// Counts the time of a transaction up to `now` for `part`.
    pub fn spend(&mut self, id: TransactionId, part: Part, now: Time) {
        if self.transactions[id].trail.at != now {
            self.transaction(id).trail.spend(part, now);
        }
    }

    /// A transaction lines up for a LUN.
    #[inline(always)]
    pub fn line_up(&mut self, view: &View, id: TransactionId, lun: LunId) {
        let (transaction, now) = (&view.transactions[id], view.now);
        let Some(ledger) = view.array.ledger() else { return };
        let bearer = match transaction.kind {
            Kind::HostRead if self.reads_line_up_at_once => {
                let owner = transaction.request();
                debug_assert_eq!(self.requests[owner].at, now, "it lines up when it begins");
                let begun = self.transactions.entry(id);
                (begun.trail.at, begun.straight, begun.served) = (now, owner, false);
                id
            }
            Kind::HostRead | Kind::SlotRead | Kind::Write => id,
            Kind::RmwRead => transaction.write(),
            _ => return,
        };
        self.transactions[bearer].line = Line::Lun(lun, ledger.mark(lun, now));
    }

    /// Ends what a write has waited in line for, and begins another wait.
    fn wait_anew(&mut self, view: &View, id: TransactionId, line: impl FnOnce(&Ledger) -> Line) {
        if let Some(ledger) = view.array.ledger() {
            let trail = self.transaction(id);
            trail.leave_line(ledger, view.now);
            trail.line = line(ledger);
        }
    }

    /// A write waits for any LUN of its pool.
    pub fn wait_for_any(&mut self, view: &View, id: TransactionId, pool: u32) {
        self.wait_anew(view, id, |ledger| Line::Any(ledger.mark_all(pool, view.now)));
    }

    /// A write waits for a free block.
    pub fn wait_for_block(&mut self, view: &View, id: TransactionId) {
        self.wait_anew(view, id, |_| Line::Block);
    }

    /// A write that waited for a free block lines up for a LUN again.
    pub fn wait_for_lun(&mut self, view: &View, id: TransactionId, lun: LunId) {
        self.wait_anew(view, id, |ledger| Line::Lun(lun, ledger.mark(lun, view.now)));
    }

    /// The operation of a unit of `lun` has ended, for `first` and those that were bound with it.
    pub fn finish(&mut self, view: &View, unit: UnitId, lun: LunId, first: TransactionId) {
        let Transaction { kind, next, .. } = view.transactions[first];
        self.finish_one(view, unit, lun, first);
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            self.finish_all(view, unit, lun, next);
        }
    }

    /// As [`Trails::finish`], if the operation is of one transaction, or of garbage collection, and nothing overlapped
    /// with it. Otherwise returns `false` and does nothing. Most operations are of this kind; no other function is
    /// called for them, so that they cost little.
    #[inline(always)]
    pub fn finish_alone(&mut self, view: &View, unit: UnitId, lun: LunId, id: TransactionId) -> bool {
        let Transaction { kind, next, .. } = view.transactions[id];
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            return false;
        }
        match kind {
            Kind::HostRead | Kind::SlotRead | Kind::Write => {}
            // On nobody's way.
            kind => return kind != Kind::RmwRead,
        }
        let Some(ledger) = view.array.ledger() else { return false };
        let transaction = &mut self.transactions[id];
        let (Line::Lun(_, mark), None) = (transaction.line, view.array.book_head(unit)) else { return false };
        let turn = ledger.turn(unit, lun, view.array.cells_of(unit), view.now);
        let wait = turn.mark.since(mark, turn.start - transaction.trail.at);
        if transaction.straight.is_none() {
            transaction.served(wait, &turn, Part::Bus, Part::Cell, view.now);
        } else {
            transaction.trail.go_straight(wait, &turn, view.now);
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
    fn finish_all(&mut self, view: &View, unit: UnitId, lun: LunId, first: TransactionId) {
        let mut id = first;
        while id.is_some() {
            self.finish_one(view, unit, lun, id);
            id = view.transactions[id].next;
        }
    }

    /// The operation of a unit of `lun` has ended for one of its transactions, whichever; or the data of one plane have
    /// left, of a unit that goes on with the next.
    #[inline(never)]
    pub fn finish_one(&mut self, view: &View, unit: UnitId, lun: LunId, id: TransactionId) {
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
        let trail = if by.is_none() { self.of_request(id) } else { self.transaction(by).trail };
        *self.settled.entry(id) = trail;
        self.requests[id].settled = true;
    }

    /// A request completes at `finish`. `by` is the transaction that completed the last part, or `NONE`.
    pub fn complete(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) {
        self.done.reserve(1);
        if self.complete_by(id, by, finish, now) {
            return;
        }
        let Trail { at, mut parts } = self.of_request(id);
        // Only its way back lies before it.
        parts[Part::Link as usize] += finish.since(at);
        self.done.push(Breakdown { parts, channels: self.requests[id].channels });
    }

    /// As [`Trails::complete`], if a transaction completed the last part and there is room for a breakdown. Otherwise
    /// returns `false` and does nothing. No other function is called, so that it costs little.
    #[inline(always)]
    pub fn complete_by(&mut self, id: RequestId, by: TransactionId, finish: Time, now: Time) -> bool {
        if by.is_none() || self.done.len() == self.done.capacity() {
            return false;
        }
        let request = &self.requests[id];
        let TransactionTrail { trail, straight, .. } = &self.transactions[by];
        debug_assert!(trail.at == now, "all time up to now is spent");
        let mut parts = if straight.is_some() { trail.on_top_of(request).parts } else { trail.parts };
        parts[Part::Link as usize] += finish - trail.at;
        self.done.push(Breakdown { parts, channels: request.channels });
        true
    }

    /// A request was refused at once.
    pub fn refuse(&mut self, request: &Request, now: Time) {
        let mut trail = Trail { at: request.arrival, ..Trail::default() };
        trail.spend(Part::HostQueue, now);
        self.done.push(Breakdown { parts: trail.parts, channels: 0 });
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
