//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::Device;
use super::transaction::{Kind, Transaction, Transactions};
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::ledger::{Ledger, Mark, MarkOfAll, Turn, Wait};
use crate::scheduler::lines::NONE;
use crate::sim::id::{Lpn, LunId, UnitId};
use crate::sim::time::Time;
use crate::workload::request::Request;

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
    /// nothing to the request since it began: then no part of the trail is kept but that wait and that operation. The
    /// request has the others. [`NONE`] otherwise.
    straight: u32,
}

impl Default for TransactionTrail {
    fn default() -> Self {
        TransactionTrail { trail: Trail::default(), line: Line::None, straight: NONE }
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

/// What a read goes through that nothing else happens to: a wait in line, and its operation.
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

    fn use_channel(&mut self, channel: usize) {
        let used = &mut self.used[channel / 64 % 2];
        let bit = 1 << (channel % 64);
        self.channels += u32::from(*used & bit == 0);
        *used |= bit;
    }
}

/// The trails of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Trails {
    requests: Vec<RequestTrail>,
    transactions: Vec<TransactionTrail>,
    /// By request: of those that are settled.
    settled: Vec<Trail>,
}

impl Trails {
    fn request(&mut self, id: u32) -> &mut RequestTrail {
        &mut self.requests[id as usize]
    }

    /// A transaction to which more happens than a read straight from flash meets: its trail as a whole.
    fn transaction(&mut self, id: u32) -> &mut TransactionTrail {
        let transaction = &mut self.transactions[id as usize];
        if transaction.straight != NONE {
            transaction.trail = transaction.trail.on_top_of(&self.requests[transaction.straight as usize]);
            transaction.straight = NONE;
        }
        transaction
    }

    /// The trail of a request all of whose parts are done, the last not by a transaction.
    fn of_request(&self, id: u32) -> Trail {
        let request = &self.requests[id as usize];
        if request.settled { self.settled[id as usize] } else { request.trail() }
    }
}

/// The entry of a number, which may be the first with it.
#[inline(always)]
fn entry<T: Copy + Default>(entries: &mut Vec<T>, id: u32) -> &mut T {
    #[cold]
    fn grow<T: Copy + Default>(entries: &mut Vec<T>, id: u32) {
        entries.resize(id as usize + 1, T::default());
    }
    if entries.len() <= id as usize {
        grow(entries, id);
    }
    &mut entries[id as usize]
}

/// The trail that a transaction's waits and operations belong to: a read that completes a write is on the write's way.
/// Cleaning is on nobody's.
fn bearer(transactions: &Transactions, id: u32) -> Option<u32> {
    match transactions[id].kind {
        Kind::HostRead | Kind::Write | Kind::SlotRead => Some(id),
        Kind::RmwRead => Some(transactions[id].owner),
        Kind::GcRead | Kind::GcWrite | Kind::CopyBack | Kind::Erase | Kind::Summary => None,
        Kind::MergeRead | Kind::MergeWrite | Kind::Translate | Kind::MapRead | Kind::MapWrite | Kind::MapHold => None,
    }
}

/// A hook: nothing but a test where there is no attribution. What it does otherwise stays out of line, so that the
/// code around it is as good as without.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident => $method:ident($($argument:ident: $type:ty),*);)+) => {
        impl Device {
            $($(#[$doc])*
            #[inline(always)]
            pub(super) fn $hook(&mut self, $($argument: $type),*) {
                if self.trails.is_some() {
                    self.$method($($argument),*)
                }
            })+
        }
    };
}

hooks! {
    /// A request has got a place in the queue at `at`.
    trail_request => book_request(id: u32, arrival: Time, at: Time);
    /// Time of a request up to now, outside its transactions, went into `part`: the link, the firmware or the buffer.
    trail_front => book_front(id: u32, part: Part);
    /// A transaction of a request begins: where the transaction `from` has come to, or the request where that is
    /// [`NONE`].
    trail_begin => book_begin(id: u32, request: u32, from: u32);
    /// A read from flash begins, where the request has come to.
    trail_straight => book_straight(id: u32, request: u32);
    /// Time of a transaction up to now went into `part`.
    trail_spend => book_spend(id: u32, part: Part);
    /// A transaction lines up for a LUN.
    trail_line_up => book_line_up(id: u32, lun: LunId);
    /// A write waits for any LUN of its pool.
    trail_pool => book_pool(id: u32);
    /// A write waits for a free block.
    trail_stall => book_stall(id: u32);
    /// A write that waited for a free block lines up for a LUN again.
    trail_unstall => book_unstall(id: u32, lun: LunId);
    /// The operation of a unit has ended, for `first` and those that were bound with it.
    trail_finish => book_finish(unit: UnitId, lun: LunId, first: u32);
    /// The data of one plane have left, of a unit that goes on with the next, for `id`.
    trail_member => book_member(unit: UnitId, id: u32);
    /// All parts of a request are done, the last by a transaction or [`NONE`], and it goes on by itself.
    trail_settle => book_settle(id: u32, by: u32);
    /// A request is complete, its last part by a transaction or [`NONE`]: what its time until `finish` went into.
    trail_complete => book_complete(id: u32, by: u32, finish: Time);
    /// A request was refused at once.
    trail_refused => book_refused(request: &Request);
}

impl Device {
    #[inline(never)]
    fn book_request(&mut self, id: u32, arrival: Time, at: Time) {
        if let Some(trails) = &mut self.trails {
            let mut entered = RequestTrail { at, ..RequestTrail::default() };
            entered.front[Part::HostQueue as usize] = at - arrival;
            *entry(&mut trails.requests, id) = entered;
        }
    }

    #[inline(never)]
    fn book_front(&mut self, id: u32, part: Part) {
        let Some(trails) = &mut self.trails else { return };
        if trails.requests[id as usize].settled {
            trails.settled[id as usize].spend(part, self.now);
        } else {
            trails.request(id).spend(part, self.now);
        }
    }

    #[inline(never)]
    fn book_straight(&mut self, id: u32, request: u32) {
        // Firmware and the buffer may take time of a request when some of its parts have begun.
        if self.cores.is_some() || self.buffer.is_some() {
            return self.book_begin(id, request, NONE);
        }
        let Some(trails) = &mut self.trails else { return };
        let begun = entry(&mut trails.transactions, id);
        (begun.line, begun.straight) = (Line::None, request);
        begun.trail.at = trails.requests[request as usize].at;
        for part in STRAIGHT {
            begun.trail.parts[part as usize] = Time::ZERO;
        }
    }

    #[inline(never)]
    fn book_begin(&mut self, id: u32, request: u32, from: u32) {
        let Some(trails) = &mut self.trails else { return };
        let trail = match (request, from) {
            // The buffer writes for nobody in particular.
            (NONE, _) => Trail { at: self.now, ..Trail::default() },
            (request, NONE) => trails.requests[request as usize].trail(),
            (_, from) => trails.transaction(from).trail,
        };
        *entry(&mut trails.transactions, id) = TransactionTrail { trail, ..TransactionTrail::default() };
    }

    #[inline(never)]
    fn book_spend(&mut self, id: u32, part: Part) {
        if let Some(trails) = &mut self.trails {
            trails.transaction(id).trail.spend(part, self.now);
        }
    }

    #[inline(always)]
    fn book_line_up(&mut self, id: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger())
            && let Some(id) = bearer(&self.transactions, id)
        {
            trails.transactions[id as usize].line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    #[inline(never)]
    fn book_pool(&mut self, id: u32) {
        let pool = self.ftl.pool(Lpn(self.transactions[id].lpn));
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Any(ledger.mark_all(pool, self.now));
        }
    }

    #[inline(never)]
    fn book_stall(&mut self, id: u32) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Block;
        }
    }

    #[inline(never)]
    fn book_unstall(&mut self, id: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    #[inline(never)]
    fn book_finish(&mut self, unit: UnitId, lun: LunId, first: u32) {
        let Transaction { kind, next, .. } = self.transactions[first];
        self.book_turn(unit, lun, first);
        if next != NONE && !kind.is_read() {
            self.book_turns(unit, lun, next);
        }
        self.array.book_end(unit, lun, self.now);
    }

    /// The operation of a unit of `lun` has ended for a transaction and those behind it.
    #[inline(never)]
    fn book_turns(&mut self, unit: UnitId, lun: LunId, first: u32) {
        let mut id = first;
        while id != NONE {
            self.book_turn(unit, lun, id);
            id = self.transactions[id].next;
        }
    }

    #[inline(never)]
    fn book_member(&mut self, unit: UnitId, id: u32) {
        self.book_turn(unit, self.array.lun_of_unit(unit), id);
    }

    /// The operation of a unit of `lun` has ended for one of its transactions. What most are: one that was in line for
    /// its LUN, on its own way, and nothing overlapped with it.
    #[inline(always)]
    fn book_turn(&mut self, unit: UnitId, lun: LunId, id: u32) {
        let Transaction { kind, owner, .. } = self.transactions[id];
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger())
            && matches!(kind, Kind::HostRead | Kind::Write | Kind::SlotRead)
            && let transaction = &mut trails.transactions[id as usize]
            && let Line::Lun(_, mark) = transaction.line
            && self.array.book_head(unit).is_none()
        {
            let turn = ledger.turn(unit, lun, self.array.cells_of(unit), self.now);
            let wait = turn.mark.since(mark, turn.start - transaction.trail.at);
            transaction.served(wait, &turn, Part::Bus, Part::Cell, self.now);
            if owner != NONE {
                trails.request(owner).use_channel(turn.channel);
            }
        } else {
            self.book_other_turn(unit, lun, id);
        }
    }

    /// The same for all others: cleaning, writes that waited for whichever LUN, reads that complete a write, and
    /// operations that overlap.
    #[inline(never)]
    fn book_other_turn(&mut self, unit: UnitId, lun: LunId, id: u32) {
        let (Some(trails), Some(bearer)) = (&mut self.trails, bearer(&self.transactions, id)) else { return };
        let Some(turn) = self.array.book_turn(unit, lun, self.now) else { return };
        let (bus, cell) = if bearer == id { (Part::Bus, Part::Cell) } else { (Part::Rmw, Part::Rmw) };
        let whole = self.array.book_head(unit).map_or(turn, |head| head.then(turn));
        trails.transaction(bearer).operation(&whole, bus, cell, self.now);
        let owner = self.transactions[bearer].owner;
        if owner != NONE {
            trails.request(owner).use_channel(turn.channel);
        }
    }

    #[inline(never)]
    fn book_settle(&mut self, id: u32, by: u32) {
        let Some(trails) = &mut self.trails else { return };
        let trail = if by == NONE { trails.of_request(id) } else { trails.transaction(by).trail };
        *entry(&mut trails.settled, id) = trail;
        trails.request(id).settled = true;
    }

    #[inline(never)]
    fn book_complete(&mut self, id: u32, by: u32, finish: Time) {
        let Some(trails) = &mut self.trails else { return };
        let channels = trails.requests[id as usize].channels;
        if by == NONE {
            let Trail { at, parts } = trails.of_request(id);
            return self.push_breakdown(&parts, finish.since(at), channels);
        }
        let TransactionTrail { trail, straight, .. } = &trails.transactions[by as usize];
        debug_assert!(trail.at == self.now, "all time up to now is spent");
        let back = finish - trail.at;
        if *straight != NONE {
            let parts = trail.on_top_of(&trails.requests[id as usize]).parts;
            return self.push_breakdown(&parts, back, channels);
        }
        let parts = trail.parts;
        self.push_breakdown(&parts, back, channels);
    }

    /// What a request's time went into, which has only its way `back` before it.
    #[inline(always)]
    fn push_breakdown(&mut self, parts: &[Time; Part::COUNT], back: Time, channels: u32) {
        let mut parts = *parts;
        parts[Part::Link as usize] += back;
        self.breakdowns.push(Breakdown { parts, channels });
    }

    #[inline(never)]
    fn book_refused(&mut self, request: &Request) {
        if self.trails.is_some() {
            let mut trail = Trail { at: request.arrival, ..Trail::default() };
            trail.spend(Part::HostQueue, self.now);
            self.breakdowns.push(Breakdown { parts: trail.parts, channels: 0 });
        }
    }
}
