//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::Device;
use crate::config::DeviceConfig;
use crate::ftl::mapping::MappingConfig;
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
pub(super) struct Trails {
    /// Reads from flash begin when they line up, and so are straight: neither firmware nor the buffer nor a look-up of
    /// the map takes time.
    reads_line_up_at_once: bool,
    requests: Table<RequestId, RequestTrail>,
    transactions: Table<TransactionId, TransactionTrail>,
    /// By request: of those that are settled.
    settled: Table<RequestId, Trail>,
}

impl Trails {
    /// Of an idle device.
    pub(super) fn new(config: &DeviceConfig) -> Trails {
        let is_full_map = matches!(config.mapping.scheme, MappingConfig::Page(_));
        let is_plain = config.controller.firmware.is_none() && config.active_buffer().is_none();
        Trails { reads_line_up_at_once: is_full_map && is_plain, ..Trails::default() }
    }

    fn request(&mut self, id: RequestId) -> &mut RequestTrail {
        &mut self.requests[id]
    }

    /// A transaction to which more happens than to a straight one: its trail as a whole.
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

    /// The trail of a request all of whose parts are done, the last not by a transaction.
    fn of_request(&self, id: RequestId) -> Trail {
        let request = &self.requests[id];
        if request.settled { self.settled[id] } else { request.trail() }
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
    trail_request => book_request(id: RequestId, arrival: Time, at: Time);
    /// Time of a request up to now, outside its transactions, went into `part`: the link, the firmware or the buffer.
    trail_front => book_front(id: RequestId, part: Part);
    /// A transaction of a request begins: where the transaction `from` has come to, or the request where that is
    /// `NONE`.
    trail_begin => book_begin(id: TransactionId, request: RequestId, from: TransactionId);
    /// A read from flash begins, where the request has come to.
    trail_read => book_read(id: TransactionId, request: RequestId);
    /// A write of a unit begins, where the request has come to.
    trail_write => book_write(id: TransactionId);
    /// Time of a transaction up to now went into `part`.
    trail_spend => book_spend(id: TransactionId, part: Part);
    /// A transaction lines up for a LUN.
    trail_line_up => book_line_up(id: TransactionId, lun: LunId);
    /// A write waits for any LUN of its pool.
    trail_pool => book_pool(id: TransactionId);
    /// A write waits for a free block.
    trail_stall => book_stall(id: TransactionId);
    /// A write that waited for a free block lines up for a LUN again.
    trail_unstall => book_unstall(id: TransactionId, lun: LunId);
    /// The operation of a unit has ended, for `first` and those that were bound with it.
    trail_finish => book_finish(unit: UnitId, lun: LunId, first: TransactionId);
    /// The data of one plane have left, of a unit that goes on with the next, for `id`.
    trail_member => book_member(unit: UnitId, id: TransactionId);
    /// Called when all parts of a request have completed and the request itself continues. `by` is the transaction that
    /// completed the last part, or `NONE`.
    trail_settle => book_settle(id: RequestId, by: TransactionId);
    /// Called when a request completes at `finish`. `by` is the transaction that completed the last part, or `NONE`.
    trail_complete => book_complete(id: RequestId, by: TransactionId, finish: Time);
    /// A request was refused at once.
    trail_refused => book_refused(request: &Request);
}

impl Device {
    #[inline(never)]
    fn book_request(&mut self, id: RequestId, arrival: Time, at: Time) {
        if let Some(trails) = &mut self.trails {
            let mut entered = RequestTrail { at, ..RequestTrail::default() };
            entered.front[Part::HostQueue as usize] = at - arrival;
            *trails.requests.entry(id) = entered;
        }
    }

    #[inline(never)]
    fn book_front(&mut self, id: RequestId, part: Part) {
        let Some(trails) = &mut self.trails else { return };
        if trails.requests[id].settled {
            trails.settled[id].spend(part, self.now);
        } else {
            trails.request(id).spend(part, self.now);
        }
    }

    #[inline(always)]
    fn book_straight(&mut self, id: TransactionId, request: RequestId) {
        // Firmware and the buffer may take time of a request when some of its parts have begun.
        if self.front.cores.is_some() || self.buffer.is_some() {
            return self.book_begin(id, request, TransactionId::NONE);
        }
        let Some(trails) = &mut self.trails else { return };
        let begun = trails.transactions.entry(id);
        (begun.line, begun.straight, begun.served) = (Line::None, request, false);
        begun.trail.at = trails.requests[request].at;
    }

    #[inline(never)]
    fn book_read(&mut self, id: TransactionId, request: RequestId) {
        if self.trails.as_ref().is_some_and(|trails| !trails.reads_line_up_at_once) {
            self.book_straight(id, request);
        }
    }

    #[inline(never)]
    fn book_write(&mut self, id: TransactionId) {
        let write = self.transactions[id];
        let (first, end, owner) = (write.first, write.end, write.request());
        // Of several units, the later ones may wait for slots when the first have begun.
        if owner.is_some() && self.front.requests[owner].request.sectors == u32::from(end - first) {
            self.book_straight(id, owner);
        } else {
            self.book_begin(id, owner, TransactionId::NONE);
        }
    }

    #[inline(never)]
    fn book_begin(&mut self, id: TransactionId, request: RequestId, from: TransactionId) {
        let Some(trails) = &mut self.trails else { return };
        let trail = match (request, from) {
            // The buffer writes for nobody in particular.
            (RequestId::NONE, _) => Trail { at: self.now, ..Trail::default() },
            (request, TransactionId::NONE) => trails.requests[request].trail(),
            (_, from) => trails.transaction(from).trail,
        };
        *trails.transactions.entry(id) = TransactionTrail { trail, ..TransactionTrail::default() };
    }

    #[inline(never)]
    fn book_spend(&mut self, id: TransactionId, part: Part) {
        if let Some(trails) = &mut self.trails
            && trails.transactions[id].trail.at != self.now
        {
            trails.transaction(id).trail.spend(part, self.now);
        }
    }

    #[inline(always)]
    fn book_line_up(&mut self, id: TransactionId, lun: LunId) {
        let transaction = &self.transactions[id];
        let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) else { return };
        let bearer = match transaction.kind {
            Kind::HostRead if trails.reads_line_up_at_once => {
                let owner = transaction.request();
                debug_assert_eq!(trails.requests[owner].at, self.now, "it lines up when it begins");
                let begun = trails.transactions.entry(id);
                (begun.trail.at, begun.straight, begun.served) = (self.now, owner, false);
                id
            }
            Kind::HostRead | Kind::SlotRead | Kind::Write => id,
            Kind::RmwRead => transaction.write(),
            _ => return,
        };
        trails.transactions[bearer].line = Line::Lun(lun, ledger.mark(lun, self.now));
    }

    #[inline(never)]
    fn book_pool(&mut self, id: TransactionId) {
        let pool = self.ftl.pool(self.transactions[id].lpn);
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Any(ledger.mark_all(pool, self.now));
        }
    }

    #[inline(never)]
    fn book_stall(&mut self, id: TransactionId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Block;
        }
    }

    #[inline(never)]
    fn book_unstall(&mut self, id: TransactionId, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    /// Most operations are of one transaction, or of cleaning, and nothing overlapped with them.
    #[inline(never)]
    fn book_finish(&mut self, unit: UnitId, lun: LunId, first: TransactionId) {
        let Transaction { kind, next, .. } = self.transactions[first];
        match kind {
            _ if next.is_some() && array::Kind::from(kind) != array::Kind::Read => {
                self.book_other_finish(unit, lun, first)
            }
            Kind::HostRead | Kind::SlotRead | Kind::Write => self.book_own_finish(unit, lun, first),
            Kind::RmwRead => self.book_other_finish(unit, lun, first),
            // On nobody's way.
            _ => self.array.book_end(unit, lun, self.now),
        }
    }

    /// Nothing is called where nothing overlapped, so that it costs little.
    #[inline(never)]
    fn book_own_finish(&mut self, unit: UnitId, lun: LunId, id: TransactionId) {
        let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) else { return };
        let transaction = &mut trails.transactions[id];
        let (Line::Lun(_, mark), None) = (transaction.line, self.array.book_head(unit)) else {
            return self.book_other_finish(unit, lun, id);
        };
        let turn = ledger.turn(unit, lun, self.array.cells_of(unit), self.now);
        let wait = turn.mark.since(mark, turn.start - transaction.trail.at);
        if transaction.straight.is_none() {
            transaction.served(wait, &turn, Part::Bus, Part::Cell, self.now);
        } else {
            transaction.trail.go_straight(wait, &turn, self.now);
            (transaction.line, transaction.served) = (Line::None, true);
        }
        let owner = self.transactions[id].request();
        if owner.is_some() {
            trails.request(owner).use_channel(turn.channel);
        }
        self.array.book_end(unit, lun, self.now);
    }

    #[inline(never)]
    fn book_other_finish(&mut self, unit: UnitId, lun: LunId, first: TransactionId) {
        let Transaction { kind, next, .. } = self.transactions[first];
        self.book_turn(unit, lun, first);
        if next.is_some() && array::Kind::from(kind) != array::Kind::Read {
            self.book_turns(unit, lun, next);
        }
        self.array.book_end(unit, lun, self.now);
    }

    /// The operation of a unit of `lun` has ended for a transaction and those behind it.
    #[inline(never)]
    fn book_turns(&mut self, unit: UnitId, lun: LunId, first: TransactionId) {
        let mut id = first;
        while id.is_some() {
            self.book_turn(unit, lun, id);
            id = self.transactions[id].next;
        }
    }

    #[inline(never)]
    fn book_member(&mut self, unit: UnitId, id: TransactionId) {
        self.book_turn(unit, self.array.lun_of_unit(unit), id);
    }

    /// The operation of a unit of `lun` has ended for one of its transactions, whichever.
    fn book_turn(&mut self, unit: UnitId, lun: LunId, id: TransactionId) {
        let (Some(trails), Some(bearer)) = (&mut self.trails, bearer(&self.transactions, id)) else { return };
        let Some(turn) = self.array.book_turn(unit, lun, self.now) else { return };
        let (bus, cell) = if bearer == id { (Part::Bus, Part::Cell) } else { (Part::Rmw, Part::Rmw) };
        let whole = self.array.book_head(unit).map_or(turn, |head| head.then(turn));
        trails.transaction(bearer).operation(&whole, bus, cell, self.now);
        let owner = self.transactions[bearer].request();
        if owner.is_some() {
            trails.request(owner).use_channel(turn.channel);
        }
    }

    #[inline(never)]
    fn book_settle(&mut self, id: RequestId, by: TransactionId) {
        let Some(trails) = &mut self.trails else { return };
        let trail = if by.is_none() { trails.of_request(id) } else { trails.transaction(by).trail };
        *trails.settled.entry(id) = trail;
        trails.request(id).settled = true;
    }

    #[inline(never)]
    fn book_complete(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        // Where there is room nothing is called, so that it costs little.
        if self.trails.is_some() && (by.is_none() || self.breakdowns.len() == self.breakdowns.capacity()) {
            return self.book_other_complete(id, by, finish);
        }
        self.book_complete_by(id, by, finish);
    }

    #[inline(always)]
    fn book_complete_by(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        let Some(trails) = &mut self.trails else { return };
        let request = &trails.requests[id];
        let TransactionTrail { trail, straight, .. } = &trails.transactions[by];
        debug_assert!(trail.at == self.now, "all time up to now is spent");
        let mut parts = if straight.is_some() { trail.on_top_of(request).parts } else { trail.parts };
        parts[Part::Link as usize] += finish - trail.at;
        self.breakdowns.push(Breakdown { parts, channels: request.channels });
    }

    #[inline(never)]
    fn book_other_complete(&mut self, id: RequestId, by: TransactionId, finish: Time) {
        self.breakdowns.reserve(1);
        if by.is_some() {
            return self.book_complete_by(id, by, finish);
        }
        let Some(trails) = &mut self.trails else { return };
        let Trail { at, mut parts } = trails.of_request(id);
        // Only its way back lies before it.
        parts[Part::Link as usize] += finish.since(at);
        self.breakdowns.push(Breakdown { parts, channels: trails.requests[id].channels });
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
