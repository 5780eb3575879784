//! Functions of the buffer for the router: reads, writes, write-back, and accesses to the buffer memory.

use super::dram::Then;
use super::write_out::{Outside, list_of};
use super::{Buffer, Found, Pick};
use crate::ftl::mapping::Location;
use crate::ftl::temperature::written::Written;
use crate::ftl::{Ftl, Shape};
use crate::host::requests::Part;
use crate::sim::id::{Lpn, Ppn, RequestId, TransactionId};
use crate::sim::request::{Operation, Request};
use crate::sim::time::Time;
use crate::work::{Class, Kind, Transaction, Transactions};

/// Returns `true` if a request completes only when its data are in flash.
#[inline]
pub fn must_reach_flash(buffer: Option<&Buffer>, request: &Request) -> bool {
    request.fua && buffer.is_none_or(|buffer| !buffer.is_protected())
}

/// Returns `true` if a request does not use the map before the buffer writes it back.
#[inline]
pub fn keeps_write(buffer: Option<&Buffer>, request: &Request) -> bool {
    request.operation == Operation::Write && buffer.is_some_and(Buffer::writes_back)
}

/// Returns `true` if a unit of a write can be admitted now, with `slots` free write slots.
#[inline]
pub fn has_place(buffer: Option<&Buffer>, slots: u32, request: &Request, part: Part, ftl: &Ftl) -> bool {
    match buffer {
        Some(buffer) if buffer.writes_back() => {
            let whole = part.sectors() == ftl.shape().sectors_per_unit;
            let nothing = request.operation == Operation::WriteZeroes && whole;
            let has_room = buffer.has_room(part.lpn) && buffer.volatile < ftl.blocks.host_room;
            nothing || (has_room && (slots > 0 || !must_reach_flash(Some(buffer), request)))
        }
        _ => slots > 0,
    }
}

impl Buffer {
    // Reads.

    /// Reads a part of a request from the buffer, and counts the result. Returns how much the buffer holds.
    #[inline]
    pub fn read(&mut self, part: Part) -> Found {
        let found = self.find(part.lpn, part.first, part.end);
        match found {
            Found::Whole(entry) => self.hit(entry),
            Found::Partly(entry) => {
                self.counts.reads_partial += 1;
                self.touch(entry);
            }
            Found::Nothing => self.counts.reads_miss += 1,
        }
        found
    }

    /// Counts a read of a part that an entry holds.
    pub fn hit(&mut self, entry: u32) {
        self.counts.reads_hit += 1;
        if let Some(ahead) = &self.ahead {
            self.counts.ahead_used += u64::from(ahead.holds(entry));
        }
        self.touch(entry);
    }

    /// Notes that a read from flash includes the unit at an address of its page, so that the buffer may keep it.
    /// `is_first` is true for the first unit of the read.
    #[inline]
    pub fn note_read(&mut self, read: TransactionId, ppn: Ppn, shape: &Shape, is_first: bool) {
        let (_, in_page) = shape.units_per_page.divide_with_rest(ppn.0);
        if self.reads.len() <= read.index() {
            self.reads.resize(read.index() + 1, 0);
        }
        let units = &mut self.reads[read.index()];
        *units = if is_first { 0 } else { *units } | 1 << in_page;
    }

    /// Keeps the data that a read from flash has brought for a request, except for units that have changed since.
    pub fn keep_read(&mut self, id: TransactionId, read: &Transaction, request: &Request, ftl: &Ftl, now: Time) {
        let Transaction { ppn, lpn, units, .. } = *read;
        if units == 1 || ftl.shape().pages_per_unit > 1 {
            if ftl.map.get(lpn) == Location::Flash(ppn) {
                self.keep_unit(request, lpn, ppn, ftl, now);
            }
            return;
        }
        let per_page = ftl.shape().units_per_page;
        let first = per_page.divide(ppn.0) * per_page.divisor();
        let units = self.reads[id.index()];
        for in_page in (0..per_page.divisor()).filter(|unit| units >> unit & 1 == 1) {
            let ppn = Ppn(first + in_page);
            let lpn = Lpn(ftl.map.owner(ppn));
            if ftl.blocks.is_valid(ppn) && ftl.map.get(lpn) == Location::Flash(ppn) {
                self.keep_unit(request, lpn, ppn, ftl, now);
            }
        }
    }

    /// Keeps the part of a unit that was transferred: the whole unit, some of its pages, or single sectors.
    fn keep_unit(&mut self, request: &Request, lpn: Lpn, ppn: Ppn, ftl: &Ftl, now: Time) {
        let shape = ftl.shape();
        let per_unit = shape.sectors_per_unit;
        let (mut first, mut end) = (0, per_unit);
        if shape.pages_per_unit > 1 || self.moves_sectors {
            let per_page = if shape.pages_per_unit > 1 { per_unit / shape.pages_per_unit } else { 1 };
            let start = u64::from(lpn.0) * u64::from(per_unit);
            let last = (request.lba + u64::from(request.sectors)).min(start + u64::from(per_unit));
            first = (request.lba.max(start) - start) as u32 / per_page * per_page;
            end = ((last - start) as u32).next_multiple_of(per_page);
        }
        if self.entry_of(lpn).is_none() {
            self.make_room_for_fill();
        }
        if self.fill(lpn, first, end, ftl.media.as_ref().map(|media| media.read(ppn))) {
            self.pass(end - first, now);
        }
    }

    // Writes.

    /// Counts units of a write that wait for room.
    pub fn wait_for_room(&mut self, units: u32) {
        if self.write_back {
            self.waiting += units;
        }
    }

    /// Ends the wait of one unit of a write, which is stored or refused.
    pub fn end_wait(&mut self) {
        self.waiting -= 1;
    }

    /// Returns the number of units that wait for room.
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns `true` if the buffer has nothing to write back and no write waits for room.
    #[inline]
    pub fn is_at_rest(&self) -> bool {
        !self.has_out() && self.waiting == 0
    }

    /// Stores a part of a host write, which completes the part, and adds its unit to its list of dirty units. Returns
    /// the entry.
    pub(crate) fn accept(&mut self, part: Part, version: u32, with: &Outside) -> u32 {
        let list = list_of(with.filling.as_deref(), with.ftl, part.lpn);
        self.counts.writes_back += 1;
        self.write(part.lpn, part.first, part.end, version, Some(list))
    }

    /// Picks a unit for a request that completes when the unit is in flash. The request has stored `sectors` sectors of
    /// it.
    pub fn pick_for(&mut self, entry: u32, request: RequestId, sectors: u32, now: Time) -> Pick {
        self.counts.fua_waited += 1;
        self.pass(sectors, now);
        self.pick(entry, request)
    }

    /// Stores a copy of a part of a write that goes to flash.
    pub fn copy_write(&mut self, part: Part, version: u32, now: Time) {
        if !self.has_room(part.lpn) {
            self.make_room_for_fill();
        }
        // The victim is clean, so there is room at once.
        debug_assert!(self.has_room(part.lpn));
        self.write(part.lpn, part.first, part.end, version, None);
        self.make_room();
        self.pass(part.end - part.first, now);
    }

    // Write-back.

    /// Returns the units that would fill the program of `lpn`: those of its flash page, and those of the pages that
    /// share its wordline.
    pub fn companions(lpn: Lpn, shape: &Shape, is_dynamic: bool) -> impl Iterator<Item = Lpn> + use<> {
        let (per_page, page) = (shape.units_per_page.divisor(), shape.units_per_page.divide(lpn.0));
        let per_program = if shape.pages_per_unit > 1 { 1 } else { shape.pages_per_program };
        // Static allocation deals pages to all planes in turn. With dynamic allocation, any pages may share a wordline.
        let stride = if is_dynamic { 1 } else { shape.planes };
        let first = page - page / stride % per_program * stride;
        let units = (0..per_program).flat_map(move |index| {
            let from = u64::from(first + index * stride) * u64::from(per_page);
            from..from + u64::from(per_page)
        });
        units.filter_map(|unit| u32::try_from(unit).ok().map(Lpn))
    }

    /// Queues a picked unit until a write is created for it.
    pub fn queue(&mut self, pick: Pick) {
        self.picked.push_back(pick);
    }

    /// Removes and returns the next unit of [`Buffer::queue`].
    pub fn next_queued(&mut self) -> Option<Pick> {
        self.picked.pop_front()
    }

    /// Returns `true` if picked units are queued.
    pub fn has_queued(&self) -> bool {
        !self.picked.is_empty()
    }

    /// Starts to write back a picked unit, whose location is `before`. Returns `false` if it no longer has to be
    /// written.
    pub fn begin_write(&mut self, pick: &Pick, before: Location) -> bool {
        let is_padding = pick.entry == Pick::PADDING;
        if self.is_void(pick) || (is_padding && !matches!(before, Location::Flash(_))) {
            return false;
        }
        // The device counts the units of logical pages that are written again.
        let of_page = is_padding && self.together > 1;
        self.counts.written_back += u64::from(!of_page);
        self.counts.padding += u64::from(is_padding && !of_page);
        true
    }

    /// Returns the write of a picked unit, whose location is `before`.
    pub fn write_of(&self, pick: &Pick, before: Location, ftl: &mut Ftl) -> Transaction {
        let mut write = Transaction::new(Kind::Write, Class::HostProgram).of_request(pick.owner);
        write.lpn = Lpn(pick.lpn);
        if pick.entry == Pick::PADDING {
            write.temperature = ftl.class_of(pick.lpn);
            if ftl.shape().units_per_logical_page > 1 {
                ftl.counters.units_rewritten += 1;
                write.units = ftl.partial.written(pick.lpn) as u16;
            }
            return write;
        }
        let is_mapped = before != Location::Unmapped;
        let update = ftl.partial.write_set(pick.lpn, is_mapped, self.sectors_of(pick.entry));
        ftl.note_update(update);
        let own = self.sectors_in(pick);
        ftl.note_kept(&mut write, own, update);
        let [stream, placement] = self.hints_of(pick.entry);
        let written = Written { sectors: own, stream, placement, ..Written::default() };
        write.temperature = ftl.classify(write.lpn, before, written);
        write
    }

    /// Returns the number of sectors that the buffer holds of a picked unit.
    pub fn sectors_in(&self, pick: &Pick) -> u32 {
        self.sectors_of(pick.entry).iter().map(|word| word.count_ones()).sum()
    }

    /// Records the write that was created for a picked unit.
    pub fn note_write(&mut self, write: TransactionId, pick: Pick) {
        *self.flights.entry(write) = Some(pick);
    }

    /// Transfers the data of a write, which is bound, out of the buffer memory, if it is a write-back.
    ///
    /// Prefetches what the end of the write will touch, and what the start of `next`, the next write of the plane, will
    /// touch. Data that were loaded when these units were picked have left the processor's caches by now.
    #[inline]
    pub fn fetch(&mut self, write: TransactionId, next: TransactionId, writes: &Transactions, ftl: &Ftl, now: Time) {
        if self.dram.takes_time() && self.flights.get(write).is_some_and(Option::is_some) {
            self.dram.pass(now, ftl.shape().sectors_per_unit);
        }
        ftl.map.prefetch(writes[write].lpn);
        self.prefetch_picked(write);
        if next.is_some() {
            self.prefetch_flight(next);
            let Transaction { source, next, .. } = writes[next];
            if source.is_some() {
                ftl.blocks.prefetch(source);
            }
            writes.prefetch(next);
        }
    }

    /// Ends a write that is in flash. Returns `true` if it was a write-back, because flushes may have waited for it.
    #[inline]
    pub fn end_write_back(&mut self, write: TransactionId) -> bool {
        let Some(pick) = self.flights.get_mut(write).and_then(Option::take) else { return false };
        self.end_pick(&pick);
        true
    }

    /// Has a flush wait for all units that are dirty now. Returns `false` if there is nothing to wait for.
    pub fn flush(&mut self, request: RequestId) -> bool {
        let waits = self.wait_for_all(request);
        self.counts.flushes_waited += u64::from(waits);
        waits
    }

    // Time.

    /// Transfers sectors through the port of the memory. Nothing waits for the transfer.
    pub(super) fn pass(&mut self, sectors: u32, now: Time) {
        if self.dram.takes_time() {
            self.dram.pass(now, sectors);
        }
    }

    /// Transfers sectors through the port of the memory. Returns `then` if that takes no time. Otherwise,
    /// [`Buffer::end_access`] returns it later.
    pub fn access(&mut self, sectors: u32, then: Then, now: Time) -> Option<Then> {
        if !self.dram.takes_time() {
            return Some(then);
        }
        self.dram.access(now, sectors, then);
        None
    }

    /// Returns the time at which the next access to the memory completes.
    pub fn next_access(&self) -> Option<Time> {
        self.dram.next()
    }

    /// Removes and returns the continuation of an access to the memory that has completed by `now`.
    pub fn end_access(&mut self, now: Time) -> Option<Then> {
        self.dram.take(now)
    }

    /// Returns the time for which the port of the memory has been busy until `at`.
    pub fn memory_time(&self, at: Time) -> Time {
        self.dram.worked(at)
    }

    /// Returns the time without requests after which all dirty units are written back, if there are any.
    #[inline]
    pub fn idle(&self) -> Option<Time> {
        self.idle.filter(|_| self.has_dirty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: TransactionId = TransactionId(0);
    const REQUEST: RequestId = RequestId(0);

    fn buffer(overrides: &[&str]) -> (Buffer, Ftl) {
        let overrides: Vec<String> = overrides.iter().map(|option| (*option).to_owned()).collect();
        let config = crate::config::load("tiny", &overrides).unwrap();
        (
            Buffer::new(&config, 1, 1, false, &Default::default()).unwrap().unwrap(),
            Ftl::new(&config, 1, false, &Default::default()).unwrap(),
        )
    }

    fn part(lpn: u32) -> Part {
        Part { lpn: Lpn(lpn), first: 0, end: 8, offset: 0 }
    }

    /// Stores a whole unit.
    fn accept(buffer: &mut Buffer, ftl: &Ftl, lpn: u32) -> u32 {
        buffer.accept(part(lpn), 1, &Outside { filling: None, slots: &mut 1, ftl, is_dynamic: false })
    }

    #[test]
    fn a_flush_waits_until_earlier_writes_are_in_flash() {
        let (mut buffer, ftl) = buffer(&["buffer.capacity=16KiB"]);
        assert!(!buffer.flush(REQUEST), "there is nothing to wait for");
        buffer.wait_for_room(1);
        buffer.end_wait();
        let entry = accept(&mut buffer, &ftl, 3);
        assert!(matches!(buffer.read(part(3)), Found::Whole(found) if found == entry));
        assert!(buffer.flush(REQUEST) && buffer.has_out());

        let pick = buffer.pick_next().unwrap();
        buffer.queue(pick);
        assert_eq!(buffer.next_queued(), Some(pick));
        assert!(buffer.begin_write(&pick, ftl.map.get(Lpn(3))));
        buffer.note_write(WRITE, pick);
        assert_eq!(buffer.take_waiter(), None);
        assert!(buffer.end_write_back(WRITE) && !buffer.end_write_back(WRITE));
        assert_eq!(buffer.take_waiter(), Some(REQUEST));
        assert_eq!((buffer.counts.written_back, buffer.is_clean()), (1, true));
        buffer.recount().unwrap();
    }

    #[test]
    fn a_unit_that_was_trimmed_is_not_written() {
        let (mut buffer, ftl) = buffer(&["buffer.capacity=16KiB"]);
        let entry = accept(&mut buffer, &ftl, 3);
        let pick = buffer.pick_for(entry, REQUEST, 8, Time::ZERO);
        buffer.forget(Lpn(3));
        assert!(!buffer.begin_write(&pick, ftl.map.get(Lpn(3))));
    }

    #[test]
    fn data_that_was_read_is_kept_unless_its_unit_is_elsewhere() {
        let (mut buffer, mut ftl) = buffer(&["buffer.capacity=16KiB"]);
        ftl.write(Lpn(3), 0, 8, 1);
        let ppn = ftl.ppn_in_flash(Lpn(3)).unwrap();
        let mut read = Transaction::new(Kind::HostRead, Class::HostRead);
        (read.ppn, read.lpn) = (ppn, Lpn(3));
        let request = Request {
            tag: 0,
            arrival: Time::ZERO,
            operation: Operation::Read,
            lba: 24,
            sectors: 8,
            stream: 0,
            namespace: 1,
            placement: 0,
            fua: false,
            high_priority: false,
        };
        buffer.keep_read(WRITE, &read, &request, &ftl, Time::ZERO);
        assert!(matches!(buffer.read(part(3)), Found::Whole(_)));
        ftl.write(Lpn(4), 0, 8, 1);
        read.lpn = Lpn(4);
        buffer.keep_read(WRITE, &read, &request, &ftl, Time::ZERO);
        assert_eq!(buffer.read(part(4)), Found::Nothing, "the unit is elsewhere");
    }

    #[test]
    fn accesses_use_the_port_one_after_another() {
        let (mut buffer, _) = buffer(&["buffer.capacity=16KiB", "buffer.bandwidth=4096MB/s", "buffer.latency=1us"]);
        let then = |request| Then { request: RequestId(request), reply: 8 };
        assert_eq!(buffer.access(8, then(0), Time::ZERO), None);
        assert_eq!(buffer.access(8, then(1), Time::ZERO), None);
        assert_eq!(buffer.next_access(), Some(Time(2_000_000)));
        assert_eq!(buffer.end_access(Time(2_000_000)), Some(then(0)));
        assert_eq!(buffer.end_access(Time(2_000_000)), None);
        assert_eq!(buffer.end_access(Time(3_000_000)), Some(then(1)));
        assert_eq!(buffer.memory_time(Time(3_000_000)), Time(2_000_000));
    }
}
