//! With attribution: what each request and transaction in progress has spent its time with so far.
//!
//! A trail is a point in time and what lies before it, part by part. Time is only ever spent from that point on, so the
//! parts of a trail add up to its length. A transaction starts with the trail of its request, and the transaction that
//! ends last leaves its own to the request: that is the request's critical path. See docs/model/attribution.md.

use super::Device;
use super::transaction::{Kind, Transaction, Transactions};
use crate::metrics::attribution::{Breakdown, Part};
use crate::nand::ledger::{Ledger, Mark, MarkOfAll, Spent, State, Wait};
use crate::scheduler::lines::NONE;
use crate::sim::id::{LunId, PlaneId};
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
    /// Whichever LUN is free first.
    Any(MarkOfAll),
    /// A free block.
    Block,
}

/// How far something has come, and what it has spent its time with.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    at: Time,
    parts: [Time; Part::COUNT],
    line: Line,
}

impl Trail {
    /// The time up to `until` went into `part`.
    #[inline]
    fn spend(&mut self, part: Part, until: Time) {
        self.parts[part as usize] += until - self.at;
        self.at = until;
    }

    #[inline(always)]
    fn wait(&mut self, wait: Wait) {
        let Wait { die, channel, cleaning } = wait;
        self.parts[Part::Die as usize] += die;
        self.parts[Part::Channel as usize] += channel;
        self.parts[Part::Cleaning as usize] += cleaning;
        self.at += die + channel + cleaning;
    }

    /// The wait in line ends.
    #[inline(always)]
    fn leave_line(&mut self, ledger: &Ledger, now: Time) {
        let line = std::mem::take(&mut self.line);
        if self.at == now {
            return;
        }
        match line {
            Line::None => {}
            Line::Lun(lun, mark) => self.wait(ledger.wait(lun, mark, self.at, now)),
            Line::Any(mark) => self.wait(ledger.wait_for_any(mark, self.at, now)),
            Line::Block => self.spend(Part::Cleaning, now),
        }
    }

    /// An operation for it has ended.
    fn operation(&mut self, spent: &Spent, bus: Part, cell: Part) {
        self.wait(spent.wait);
        self.parts[bus as usize] += spent.bus;
        self.parts[cell as usize] += spent.cell;
        self.at += spent.bus + spent.cell;
    }
}

/// A request in progress.
#[derive(Clone, Copy, Debug, Default)]
struct RequestTrail {
    /// Up to where its transactions begin.
    front: Trail,
    /// Channels used: a bit each, in turn where there are more of them.
    channels: u128,
}

/// The trails of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Trails {
    requests: Vec<RequestTrail>,
    transactions: Vec<Trail>,
    /// The transaction whose part completes a request next.
    by: Option<u32>,
    /// The transaction that goes on as the one that begins next.
    origin: Option<u32>,
}

impl Trails {
    fn request(&mut self, id: u32) -> &mut RequestTrail {
        &mut self.requests[id as usize]
    }

    fn transaction(&mut self, id: u32) -> &mut Trail {
        &mut self.transactions[id as usize]
    }
}

/// The trail that a transaction's waits and operations belong to: a read that completes a write is on the write's way.
/// Cleaning is on nobody's.
fn bearer(transactions: &Transactions, id: u32) -> Option<u32> {
    match transactions[id].kind {
        Kind::HostRead | Kind::Write | Kind::SlotRead => Some(id),
        Kind::RmwRead => Some(transactions[id].owner),
        Kind::GcRead | Kind::GcWrite | Kind::Erase | Kind::Summary => None,
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
    trail_request => book_request(id: u32, at: Time);
    /// Time of a request up to now, before it was taken apart, went into `part`.
    trail_front => book_front(id: u32, part: Part);
    /// A transaction of a request begins.
    trail_begin => book_begin(id: u32, request: u32);
    /// What begins next for a request goes on from where a transaction has come to; [`NONE`]: from where the request
    /// was taken apart.
    trail_origin => book_origin(id: u32);
    /// Time of a transaction up to now went into `part`.
    trail_spend => book_spend(id: u32, part: Part);
    /// A transaction lines up for a LUN.
    trail_line_up => book_line_up(id: u32, lun: LunId);
    /// A write waits for any LUN.
    trail_pool => book_pool(id: u32);
    /// A write waits for a free block.
    trail_stall => book_stall(id: u32);
    /// A write that waited for a free block lines up for a LUN again.
    trail_unstall => book_unstall(id: u32, lun: LunId);
    /// A LUN that has asked for its channel does nothing with it.
    trail_idle => book_idle(lun: LunId);
    /// A transaction leaves its line to start, with those that were bound with it.
    trail_start => book_start(id: u32);
    /// The operation of a LUN has ended, for `first` and those that were bound with it.
    trail_finish => book_finish(lun: LunId, first: u32);
    /// The part of a request that is done next is that of a transaction, and not the request's own.
    trail_by => book_by(id: u32, request: u32);
    /// A request is complete: what its time until `finish` went into.
    trail_complete => book_complete(id: u32, finish: Time);
    /// A request was refused at once.
    trail_refused => book_refused(request: &Request);
}

impl Device {
    #[inline(never)]
    fn book_request(&mut self, id: u32, at: Time) {
        let Some(trails) = &mut self.trails else { return };
        if trails.requests.len() <= id as usize {
            trails.requests.resize(id as usize + 1, RequestTrail::default());
        }
        let mut front = Trail { at: self.requests[id].request.arrival, ..Trail::default() };
        front.spend(Part::HostQueue, at);
        trails.requests[id as usize] = RequestTrail { front, ..RequestTrail::default() };
    }

    #[inline(never)]
    fn book_front(&mut self, id: u32, part: Part) {
        if let Some(trails) = &mut self.trails {
            trails.request(id).front.spend(part, self.now);
        }
    }

    #[inline(never)]
    fn book_begin(&mut self, id: u32, request: u32) {
        let Some(trails) = &mut self.trails else { return };
        if trails.transactions.len() <= id as usize {
            trails.transactions.resize(id as usize + 1, Trail::default());
        }
        let Trail { at, parts, .. } = match trails.origin {
            Some(origin) => trails.transactions[origin as usize],
            None => trails.requests[request as usize].front,
        };
        trails.transactions[id as usize] = Trail { at, parts, line: Line::None };
    }

    #[inline(never)]
    fn book_origin(&mut self, id: u32) {
        if let Some(trails) = &mut self.trails {
            trails.origin = (id != NONE).then_some(id);
            if id == NONE {
                trails.by = None;
            }
        }
    }

    #[inline(never)]
    fn book_spend(&mut self, id: u32, part: Part) {
        if let Some(trails) = &mut self.trails {
            trails.transaction(id).spend(part, self.now);
        }
    }

    #[inline(always)]
    fn book_line_up(&mut self, id: u32, lun: LunId) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger())
            && let Some(id) = bearer(&self.transactions, id)
        {
            trails.transaction(id).line = Line::Lun(lun, ledger.mark(lun, self.now));
        }
    }

    #[inline(never)]
    fn book_pool(&mut self, id: u32) {
        if let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) {
            let trail = trails.transaction(id);
            trail.leave_line(ledger, self.now);
            trail.line = Line::Any(ledger.mark_all(self.now));
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
    fn book_idle(&mut self, lun: LunId) {
        if let Some(ledger) = self.array.ledger_mut() {
            ledger.enter(lun, State::Idle, self.now);
        }
    }

    #[inline(always)]
    fn book_start(&mut self, first: u32) {
        let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger()) else { return };
        let lun = self.array.lun_of(PlaneId(self.transactions[first].plane));
        let channel = 1 << (ledger.channel_of(lun) as u32 % u128::BITS);
        let mut id = first;
        while let Some(bearer) = bearer(&self.transactions, id) {
            trails.transaction(bearer).leave_line(ledger, self.now);
            trails.request(self.transactions[bearer].owner).channels |= channel;
            match self.transactions[id] {
                Transaction { kind: Kind::Write, next, .. } if next != NONE => id = next,
                _ => break,
            }
        }
    }

    #[inline(never)]
    fn book_finish(&mut self, lun: LunId, first: u32) {
        let (Some(trails), Some(ledger)) = (&mut self.trails, self.array.ledger_mut()) else { return };
        ledger.enter(lun, State::Idle, self.now);
        let Some(bearer) = bearer(&self.transactions, first) else { return };
        let spent = ledger.spent(lun);
        match self.transactions[first].kind {
            Kind::RmwRead => trails.transaction(bearer).operation(&spent, Part::Rmw, Part::Rmw),
            Kind::Write => {
                let mut id = first;
                while id != NONE {
                    trails.transaction(id).operation(&spent, Part::Bus, Part::Cell);
                    id = self.transactions[id].next;
                }
            }
            _ => trails.transaction(bearer).operation(&spent, Part::Bus, Part::Cell),
        }
    }

    #[inline(never)]
    fn book_by(&mut self, id: u32, request: u32) {
        // Parts are done in order of time: what counts is the last one, and that completes the request.
        let last = self.requests[request].remaining == 1;
        if let Some(trails) = &mut self.trails {
            trails.by = last.then_some(id);
        }
    }

    #[inline(never)]
    fn book_complete(&mut self, id: u32, finish: Time) {
        let Some(trails) = &mut self.trails else { return };
        let by = trails.by.take();
        let request = &trails.requests[id as usize];
        let critical = by.map_or(&request.front, |id| &trails.transactions[id as usize]);
        debug_assert!(by.is_none() || critical.at == self.now, "all time up to now is spent");
        self.breakdowns.push(Breakdown { parts: critical.parts, channels: request.channels.count_ones() });
        if let Some(Breakdown { parts, .. }) = self.breakdowns.last_mut() {
            parts[Part::Link as usize] += finish - critical.at;
        }
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
