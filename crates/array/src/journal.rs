//! Stripe journal: entries that restore parity after a power cut, when a member has failed.
//!
//! An entry is written to the parity member before the writes of a stripe. It is kept until these writes have completed
//! and all members have been flushed. If a data chunk of the stripe is on a failed member, the entry has its data after
//! the operation. Recovery computes parity from these data and from what the other members hold. The order in which
//! writes were lost therefore does not matter.

use std::collections::BTreeMap;

use floatgate_core::sim::id::RequestId;
use floatgate_core::sim::request::{Operation, SECTOR};

use crate::array::{Mutant, Purpose, SsdArray};
use crate::config::WriteHole;
use crate::contents::Contents;
use crate::entries::{AREA, Entry, HEADER, Use, Used};
use crate::operation::{Kind, NONE, Phase, Segment, Strategy, StripeOp};
use crate::timers::{Owner, Timer};

impl SsdArray {
    /// Returns `true` if writes have journal entries.
    #[inline]
    pub(crate) fn has_journal(&self) -> bool {
        self.config.options.write_hole == WriteHole::Journal
    }

    /// Returns `true` if the chunks of a member are lost in a power cut: it has failed, or is a spare.
    fn is_lost(&self, member: u32) -> bool {
        self.config.options.failed.contains(&member)
    }

    /// Returns the data chunks of a stripe that are lost in a power cut, a bit each.
    pub(crate) fn lost_chunks(&self, row: u64) -> u64 {
        let is_lost = |index: &u32| self.is_lost(self.layout.data_member(row, *index, 0));
        (0..self.layout.data()).filter(is_lost).fold(0, |mask, index| mask | 1 << index)
    }

    /// Returns the member and the sectors of the entry of an operation. The entry has a header, and the data of lost
    /// chunks. Without lost chunks, it has the partial parity, which is empty for a full stripe.
    fn entry_size(&self, operation: &StripeOp) -> (u32, u32) {
        let lost = self.lost_chunks(operation.row).count_ones();
        let blocks = match (operation.kind, operation.strategy) {
            (Kind::Pass, _) => 0,
            (_, Strategy::Full) => lost,
            _ => lost.max(1),
        };
        let members = || self.parities_alive(operation.row).map(|(_, member)| member);
        let member = members().find(|member| !self.is_lost(*member)).or_else(|| members().next());
        let member = member.expect("writes without parity have no journal");
        (member, HEADER + (blocks * operation.sectors()).next_multiple_of(8))
    }

    /// Returns the next position of the journal area of a member that has room for an entry.
    fn next_entry(&self, member: u32, sectors: u32) -> u64 {
        let at = self.members[member as usize].journal_at;
        if at + u64::from(sectors) > AREA { 0 } else { at }
    }

    /// Returns the first sector of the journal area.
    fn journal_area(&self) -> u64 {
        self.layout.rows() * u64::from(self.layout.chunk())
    }

    /// Takes the room of the entry of an operation in functional mode. Returns its member, first sector and sectors.
    pub(crate) fn entry_now(&mut self, operation: &StripeOp) -> (u32, (u64, u32)) {
        let (member, sectors) = self.entry_size(operation);
        let at = self.next_entry(member, sectors);
        self.members[member as usize].journal_at = at + u64::from(sectors);
        (member, (self.journal_area() + at, sectors))
    }

    /// Writes the journal entry of an operation, or waits for room.
    pub(crate) fn write_journal(&mut self, id: u32) {
        self.enter_phase(id, Phase::Journal);
        if !self.journal.waiting.is_empty() || !self.try_journal(id) {
            self.journal.waiting.push_back(id);
            self.flush_journal();
        }
    }

    /// Writes the journal entry of an operation. Returns `false` if it would overwrite an entry that is needed.
    fn try_journal(&mut self, id: u32) -> bool {
        let (member, sectors) = self.entry_size(&self.operations[id]);
        let start = self.next_entry(member, sectors);
        let end = start + u64::from(sectors);
        let mut used = self.journal.used.iter().filter(|used| used.member == member);
        if used.clone().any(|used| used.start < end && start < used.end) {
            return false;
        }
        let taken = used.by_ref().map(|used| used.end - used.start).sum::<u64>() + u64::from(sectors);
        self.journal.used.push(Used { member, start, end, operation: id, state: Use::Open });
        self.members[member as usize].journal_at = end;
        self.journal.sequence += 1;
        self.next_serial();
        let lba = self.journal_area() + start;
        let bytes = self.contents.as_ref().filter(|contents| contents.has_payload()).map(|contents| {
            let mut bytes = self.entry_of(contents, id).to_bytes();
            bytes.resize((u64::from(sectors) * SECTOR) as usize, 0);
            bytes
        });
        if let (Some(bytes), Some(contents)) = (bytes, &mut self.contents) {
            contents.store(member, Owner::Operation(id).tag() | u64::from(self.serial), lba, bytes);
        }
        self.issue_at(id, member, Operation::Write, Purpose::Journal, (lba, sectors));
        if taken > AREA / 2 {
            self.flush_journal();
        }
        true
    }

    /// Returns the entry of an operation that has read its sources.
    fn entry_of(&self, contents: &Contents, id: u32) -> Entry {
        let StripeOp { kind, row, lo, hi, .. } = self.operations[id];
        let chunks = self.lost_chunks(row);
        let is_zero = kind == Kind::Pass || chunks == 0;
        let lost = (0..self.layout.data()).filter(|index| !is_zero && chunks >> index & 1 == 1);
        let data = lost.flat_map(|index| self.data_after(contents, id, index)).collect();
        Entry { sequence: self.journal.sequence, row, lo, hi, chunks, data }
    }

    /// Notes that the writes of an operation have completed.
    pub(crate) fn journal_done(&mut self, id: u32) {
        let mut used = self.journal.used.iter_mut();
        if let Some(used) = used.find(|used| used.operation == id && used.state == Use::Open) {
            (used.state, used.operation) = (Use::Done, NONE);
        }
        if self.options.mutant == Mutant::ReuseEntries {
            self.journal.used.retain(|used| used.state != Use::Done);
        }
        if !self.journal.waiting.is_empty() {
            self.flush_journal();
        }
    }

    /// Flushes all members, so that the entries of completed operations can be overwritten.
    fn flush_journal(&mut self) {
        let done = self.journal.used.iter_mut().filter(|used| used.state == Use::Done);
        let found = if self.journal.is_flushing { 0 } else { done.map(|used| used.state = Use::Flushing).count() };
        if found > 0 {
            self.journal.is_flushing = true;
            self.flush_members();
        }
    }

    /// Starts an operation that flushes all members.
    fn flush_members(&mut self) {
        let id = self.operations.insert(StripeOp::new(RequestId::NONE, Kind::Flush, self.area(), self.now));
        self.enter_phase(id, Phase::Writing);
        for member in self.holders() {
            self.next_serial();
            self.issue_at(id, member, Operation::Flush, Purpose::Journal, (0, 0));
        }
    }

    /// Returns the members that hold data.
    fn holders(&self) -> Vec<u32> {
        (0..self.layout.members()).filter(|member| self.members[*member as usize].valid_rows > 0).collect()
    }

    /// Returns the segment of operations on the journal area, which have no lock.
    fn area(&self) -> Segment {
        Segment { row: self.layout.rows(), lo: 0, hi: AREA as u32, first: 0, last: 0 }
    }

    /// Continues after a flush of all members.
    fn flushed(&mut self) {
        if self.journal.recovery.is_some() {
            return self.end_recovery();
        }
        self.journal.is_flushing = false;
        self.journal.used.retain(|used| used.state != Use::Flushing);
        while let Some(&id) = self.journal.waiting.front() {
            if !self.try_journal(id) {
                break;
            }
            self.journal.waiting.pop_front();
        }
        if !self.journal.waiting.is_empty() {
            self.flush_journal();
        }
    }

    /// Ends an operation on the journal area.
    pub(crate) fn end_journal(&mut self, id: u32) {
        match self.operations[id].kind {
            Kind::Scan => self.scanned(id),
            _ => self.flushed(),
        }
        if let Some(contents) = &mut self.contents {
            contents.forget(id);
        }
        self.operations.remove(id);
    }

    /// Returns `true` while the journal is read after a restart. No other operation starts.
    pub(crate) fn is_recovering(&self) -> bool {
        self.journal.recovery.is_some()
    }

    /// Reads the journal after a restart. With `restores`, restores the parity of the stripes in its entries. Requests
    /// of the host wait until this has completed. Call it before [`SsdArray::resync`].
    pub fn read_journal(&mut self, restores: bool) {
        if !self.has_journal() || !self.contents.as_ref().is_some_and(|contents| contents.has_payload()) {
            return;
        }
        self.depth = 0;
        (self.journal.recovery, self.journal.restores) = (Some(1), restores);
        let id = self.operations.insert(StripeOp::new(RequestId::NONE, Kind::Scan, self.area(), self.now));
        self.enter_phase(id, Phase::Reading);
        for member in self.holders() {
            self.next_serial();
            self.issue_at(id, member, Operation::Read, Purpose::Rebuild, (self.journal_area(), AREA as u32));
        }
    }

    /// Finds the entries in what was read from the members, and restores the parity of their stripes.
    fn scanned(&mut self, id: u32) {
        let mut entries = Vec::new();
        for member in self.holders() {
            let bytes = self.contents.as_ref().and_then(|contents| contents.read(id, member)).unwrap_or_default();
            let starts = (0..AREA).step_by(8);
            let found = starts.filter_map(|at| Some((Entry::of_bytes(bytes.get((at * SECTOR) as usize..)?)?, at)));
            let found: Vec<(Entry, u64)> = found.collect();
            if let Some((last, at)) = found.iter().max_by_key(|(entry, _)| entry.sequence) {
                self.members[member as usize].journal_at = (at + last.sectors()).min(AREA);
            }
            entries.extend(found.into_iter().map(|(entry, _)| entry));
        }
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.sequence));
        self.journal.sequence = entries.first().map_or(0, |entry| entry.sequence);
        if self.journal.restores && self.options.mutant != Mutant::IgnoreJournal {
            self.restore(&entries);
        }
        self.recovered_one();
    }

    /// Restores the parity of each range by its newest entry. Older entries may have old data.
    fn restore(&mut self, entries: &[Entry]) {
        let (layout, mut newest) = (self.layout, BTreeMap::<u64, Vec<bool>>::new());
        let is_valid = |entry: &&Entry| entry.row < layout.rows() && entry.lo < entry.hi && entry.hi <= layout.chunk();
        for entry in entries.iter().filter(is_valid) {
            let seen = newest.entry(entry.row).or_insert_with(|| vec![false; layout.chunk() as usize]);
            let mut ranges = Vec::new();
            let mut lo = entry.lo;
            for run in seen[entry.lo as usize..entry.hi as usize].chunk_by(|one, other| one == other) {
                let hi = lo + run.len() as u32;
                ranges.extend((!run[0]).then_some((lo, hi)));
                lo = hi;
            }
            seen[entry.lo as usize..entry.hi as usize].fill(true);
            let dead: Vec<u32> = (0..layout.data())
                .filter(|index| !self.is_alive(layout.data_member(entry.row, *index, 0), entry.row))
                .collect();
            if dead.is_empty() || dead.iter().any(|index| entry.chunks >> index & 1 == 0) {
                continue;
            }
            for (lo, hi) in ranges {
                let segment = Segment { lo, hi, ..Segment::whole(&layout, entry.row) };
                *self.journal.recovery.get_or_insert_default() += 1;
                let id = self.begin(StripeOp::new(RequestId::NONE, Kind::Restore, segment, self.now));
                for &index in &dead {
                    let member = layout.data_member(entry.row, index, 0);
                    let data = entry.data_of(index, lo, hi);
                    self.contents.iter_mut().for_each(|contents| contents.keep(id, member, data.clone()));
                }
            }
        }
    }

    /// Notes that an operation of the recovery has completed. After the last one, members are flushed, because new
    /// entries overwrite the old ones.
    pub(crate) fn recovered_one(&mut self) {
        if let Some(left) = &mut self.journal.recovery {
            *left -= 1;
            if *left == 0 {
                self.flush_members();
            }
        }
    }

    /// Accepts requests of the host after the recovery, and starts the work of the controller.
    fn end_recovery(&mut self) {
        self.journal.recovery = None;
        self.depth = self.config.queue_depth() as usize;
        self.start_rebuild();
        if self.resyncing.is_some() {
            self.timers.set(self.now, Timer::Resync);
        }
        while self.has_queue_room() && !self.waiting.is_empty() {
            self.admit();
        }
    }
}
