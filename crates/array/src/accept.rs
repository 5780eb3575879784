//! Acceptance of requests: splits them into requests to members and stripe operations.

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::{Operation, Request, Status};
use floatgate_core::sim::time::Time;

use crate::array::{MemberRequest, Mutant, Pending, Purpose, SsdArray};
use crate::layout::{Layout, Level};
use crate::operation::{Kind, Segment, StripeOp, rows, segments};
use crate::timers::Owner;

/// Part of a request in one data chunk.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub row: u64,
    /// Data chunk.
    pub index: u32,
    /// First sector within the chunk.
    pub offset: u32,
    pub sectors: u32,
}

impl Piece {
    /// Returns the part of a request in the chunk of its sector `done`.
    #[inline]
    fn of(layout: &Layout, request: &Request, done: u32) -> Piece {
        let (row, index, offset) = layout.place(request.lba + u64::from(done));
        Piece { row, index, offset, sectors: (layout.chunk() - offset).min(request.sectors - done) }
    }

    /// Returns all parts of a request.
    pub fn all(layout: Layout, request: Request) -> impl Iterator<Item = Piece> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let piece = (done < request.sectors).then(|| Piece::of(&layout, &request, done));
            done += piece.map_or(0, |piece| piece.sectors);
            piece
        })
    }
}

/// Returns the part of a request that covers whole units of this number of sectors.
fn shrunk(request: &Request, unit: u64) -> Request {
    let first = request.lba.next_multiple_of(unit);
    let end = (request.lba + u64::from(request.sectors)) / unit * unit;
    Request { lba: first, sectors: end.saturating_sub(first) as u32, ..*request }
}

impl SsdArray {
    /// Accepts a request that has a slot in the queue.
    #[inline(always)]
    pub(crate) fn enter(&mut self, request: Request) {
        let in_range =
            request.lba.checked_add(u64::from(request.sectors)).is_some_and(|end| end <= self.layout.sectors());
        let status = if in_range { Status::Ok } else { Status::OutOfRange };
        let id = self.requests.insert(Pending { request, left: 1, start: Time::NEVER, status });
        if in_range {
            match request.operation {
                Operation::Read => self.enter_read(id, &request),
                _ => self.enter_other(id, &request),
            }
        }
        self.request_part_done(id, Time::NEVER, Status::Ok);
    }

    #[inline(never)]
    fn enter_other(&mut self, id: RequestId, request: &Request) {
        match request.operation {
            Operation::Flush => self.flush(id, request),
            _ => {
                if request.operation == Operation::Write {
                    self.counts.host_bytes += request.bytes();
                    if let Some(contents) = &mut self.contents {
                        contents.accept(request.tag, request.sectors);
                    }
                }
                match self.layout.level() {
                    _ if request.sectors == 0 => {}
                    Level::Striped => self.pass_pieces(id, request),
                    Level::Mirror | Level::Mirrors => self.enter_mirrored(id, request),
                    Level::Parity | Level::DoubleParity => self.enter_striped(id, request),
                }
            }
        }
    }

    /// Returns the part of a request in the chunk of its sector `done`.
    #[inline]
    fn piece(&self, request: &Request, done: u32) -> Piece {
        Piece::of(&self.layout, request, done)
    }

    /// Returns what a request changes on all copies. Copies with other mapping units drop the same data.
    pub(crate) fn of_copies(&self, request: &Request) -> Request {
        let is_trim = self.has_mixed_units && self.layout.copies() > 1 && request.operation == Operation::Trim;
        shrunk(request, if is_trim { self.unit_sectors } else { 1 })
    }

    /// Returns the member and the request for the first part of a request, to prefetch its state.
    #[inline(always)]
    pub(crate) fn first_part(&self, request: &Request) -> Option<(u32, Request)> {
        if request.lba >= self.layout.sectors() || request.sectors == 0 {
            return None;
        }
        let Piece { row, index, offset, sectors } = self.piece(request, 0);
        let member = self.layout.data_member(row, index, self.first_copy(row));
        // Field by field: a copy of the whole request would wait until its fields have reached the cache.
        let Request { arrival, operation, .. } = *request;
        Some((member, Request::new(arrival, operation, self.layout.address(row, offset), sectors)))
    }

    #[inline(always)]
    fn enter_read(&mut self, id: RequestId, request: &Request) {
        if let Some(contents) = &mut self.contents {
            contents.enter(id.0, request.sectors);
        }
        if (self.is_degraded || self.turns.is_some()) && self.layout.level().parities() > 0 {
            return self.read_degraded(id, request);
        }
        let mut done = 0;
        while done < request.sectors {
            let piece = self.piece(request, done);
            let member = self.reader(&piece);
            self.send(id, request, member, &piece);
            done += piece.sectors;
        }
    }

    /// Reads from stripes that may miss a chunk, or have one on a member that is avoided. Segments with such a chunk
    /// are computed from the others.
    #[inline(never)]
    fn read_degraded(&mut self, id: RequestId, request: &Request) {
        if request.sectors == 0 {
            return;
        }
        let layout = self.layout;
        for (row, from, to) in rows(&layout, request) {
            for segment in segments(&layout, row, from, to) {
                let indices = segment.first..=segment.last;
                let is_whole = indices.clone().all(|index| self.is_source(layout.data_member(row, index, 0), row));
                if !is_whole {
                    self.counts.reconstructed_reads += 1;
                    self.start(id, Kind::Read, segment);
                    continue;
                }
                for index in indices {
                    let piece = Piece { row, index, offset: segment.lo, sectors: segment.hi - segment.lo };
                    self.send(id, request, layout.data_member(row, index, 0), &piece);
                }
            }
        }
    }

    /// Returns the copy at which the search for the least busy copy starts. It alternates with the stripe, so that an
    /// idle array uses all copies.
    #[inline]
    fn first_copy(&self, row: u64) -> u32 {
        match self.layout.copies() {
            1 => 0,
            copies => (row % u64::from(copies)) as u32,
        }
    }

    /// Returns the member that a part is read from: of the copies that do not have their turn to collect garbage, the
    /// one with the fewest outstanding requests.
    #[inline]
    pub(crate) fn reader(&self, piece: &Piece) -> u32 {
        let row = piece.row;
        let copies = self.layout.copies();
        if copies == 1 {
            return self.layout.data_member(row, piece.index, 0);
        }
        // Copies may differ until they were compared.
        let first = if self.resyncing.is_some() { 0 } else { self.first_copy(row) };
        let members = (0..copies).map(|at| self.layout.data_member(row, piece.index, (first + at) % copies));
        let load = |member: &u32| (self.has_turn(*member), self.members[*member as usize].outstanding);
        let mut alive = members.filter(|member| self.is_alive(*member, row));
        let found = if self.resyncing.is_some() { alive.next() } else { alive.min_by_key(load) };
        found.expect("a copy of each chunk is alive")
    }

    /// Sends a part of a request to a member.
    #[inline(always)]
    fn send(&mut self, id: RequestId, request: &Request, member: u32, piece: &Piece) {
        self.requests[id].left += 1;
        self.next_serial();
        let lba = self.layout.address(piece.row, piece.offset);
        let operation = request.operation;
        let Request { placement, fua, high_priority, .. } = *request;
        let owner = Owner::Host(id).tag();
        if self.contents.is_some() && operation == Operation::Write {
            let from = self.layout.sector(piece.row, piece.index, piece.offset) - request.lba;
            self.store_plain(member, owner, lba, request.tag, from as u32, piece.sectors);
        }
        let purpose = Purpose::Host;
        let sectors = piece.sectors;
        self.issue(member, MemberRequest { owner, operation, lba, sectors, purpose, placement, fua, high_priority });
    }

    /// Sends the parts of a request to the members of level 0.
    fn pass_pieces(&mut self, id: RequestId, request: &Request) {
        let mut done = 0;
        while done < request.sectors {
            let piece = self.piece(request, done);
            self.send(id, request, self.layout.data_member(piece.row, piece.index, 0), &piece);
            done += piece.sectors;
        }
    }

    /// Starts an operation for each chunk of a request to mirrors.
    fn enter_mirrored(&mut self, id: RequestId, request: &Request) {
        let request = &self.of_copies(request);
        let mut done = 0;
        while done < request.sectors {
            let Piece { row, index, offset, sectors } = self.piece(request, done);
            self.start(id, Kind::Write, Segment { row, lo: offset, hi: offset + sectors, first: index, last: index });
            done += sectors;
        }
    }

    /// Starts the operations of a request that changes stripes with parity. TRIM passes whole stripes only, because
    /// the parity of other stripes would no longer agree with their data.
    fn enter_striped(&mut self, id: RequestId, request: &Request) {
        let layout = self.layout;
        for (row, from, to) in rows(&layout, request) {
            let is_whole = (from, to) == (0, layout.row_sectors());
            match request.operation {
                Operation::Write => {}
                _ if is_whole => {
                    self.start(id, Kind::Pass, Segment::whole(&layout, row));
                    continue;
                }
                Operation::Trim => {
                    self.counts.trims_dropped += 1;
                    continue;
                }
                _ => {}
            }
            for segment in segments(&layout, row, from, to) {
                self.start(id, Kind::Write, segment);
            }
        }
    }

    /// Sends a flush to all members that hold data.
    fn flush(&mut self, id: RequestId, request: &Request) {
        for member in 0..self.layout.members() {
            if self.members[member as usize].valid_rows > 0 {
                self.requests[id].left += 1;
                let part = MemberRequest {
                    owner: Owner::Host(id).tag(),
                    operation: Operation::Flush,
                    lba: 0,
                    sectors: 0,
                    purpose: Purpose::Host,
                    placement: request.placement,
                    fua: request.fua,
                    high_priority: request.high_priority,
                };
                self.issue(member, part);
            }
        }
    }

    /// Adds a stripe operation to a request, and starts it when no earlier one is in its way.
    pub(crate) fn start(&mut self, id: RequestId, kind: Kind, segment: Segment) {
        self.requests[id].left += 1;
        self.begin(StripeOp::new(id, kind, segment, self.now));
    }

    /// Enters a stripe operation into the locks. Returns its number.
    pub(crate) fn begin(&mut self, operation: StripeOp) -> u32 {
        let id = self.operations.insert(operation);
        if self.locks.enter(&mut self.operations, id) || self.options.mutant == Mutant::IgnoreLocks {
            self.unlocked(id);
        } else {
            self.counts.stripe_waits += 1;
        }
        id
    }
}
