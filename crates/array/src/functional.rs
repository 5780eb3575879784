//! Functional mode: requests without time, to bring the members into the state before a run.
//!
//! Members are changed as by the timed array with one outstanding request: data, copies, parity and journal entries.

use std::ops::Range;

use floatgate_core::mapping::Location;
use floatgate_core::preparation::{OnProgress, PROGRESS_EVERY, Prewrite, STOPPED, Turns, UnitSet, sealed};
use floatgate_core::sim::id::{Lpn, RequestId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::source::{Source, SourceError};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::Ssd;
use floatgate_core::summary::Reached;

use crate::accept::Piece;
use crate::array::{Purpose, SsdArray};
use crate::layout::Level;
use crate::operation::{Kind, Segment, Strategy, StripeOp, rows, segments};

/// Sources of workloads.
type Sources<'a> = &'a mut [Box<dyn Source>];

impl SsdArray {
    /// Runs workloads on the idle array in functional mode. Returns the states of the members that have not failed.
    pub fn precondition_with(
        &mut self,
        sources: Sources<'_>,
        on_progress: OnProgress,
    ) -> Result<Vec<Reached>, SourceError> {
        Turns::check_ends(sources)?;
        let before: Vec<_> = self.members.iter().map(|member| member.device.ftl().counters).collect();
        let mut turns = Turns::new(sources);
        let mut work = 0;
        while let Some(request) = turns.next_request()? {
            self.serve_now(&request);
            work += request.work();
            if work >= PROGRESS_EVERY {
                work = 0;
                self.report_progress(turns.progress(), on_progress)?;
            }
        }
        self.report_progress(1.0, &mut |_| true)?;
        let alive = (0..self.members.len()).filter(|number| !self.has_failed(*number)).collect::<Vec<_>>();
        Ok(alive.into_iter().map(|number| sealed(self.member_mut(number), &before[number])).collect())
    }

    /// Reports progress. Fails if the callback stops preconditioning, or if a policy has failed.
    fn report_progress(&self, share: f64, on_progress: OnProgress) -> Result<(), SourceError> {
        match self.members.iter().find_map(|member| member.device.fault()) {
            Some(fault) => Err(SourceError(fault.to_string())),
            None if on_progress(share) => Ok(()),
            None => Err(SourceError(STOPPED.to_owned())),
        }
    }

    /// Serves a request in functional mode. No request may be outstanding. A request outside the array has no effect.
    pub fn serve_now(&mut self, request: &Request) {
        let end = request.lba.checked_add(u64::from(request.sectors));
        let changes = matches!(request.operation, Operation::Write | Operation::Trim | Operation::WriteZeroes);
        if !changes || request.sectors == 0 || end.is_none_or(|end| end > self.layout.sectors()) {
            return;
        }
        let layout = self.layout;
        match layout.level() {
            Level::Striped | Level::Mirror | Level::Mirrors => {
                for piece in Piece::all(layout, self.of_copies(request)) {
                    for copy in 0..layout.copies() {
                        let member = layout.data_member(piece.row, piece.index, copy);
                        let range = (layout.address(piece.row, piece.offset), piece.sectors);
                        self.change(member, piece.row, request.operation, range, Purpose::Host, request.placement);
                    }
                }
            }
            Level::Parity | Level::DoubleParity => {
                for (row, from, to) in rows(&layout, request) {
                    let is_whole = (from, to) == (0, layout.row_sectors());
                    match request.operation {
                        Operation::Trim | Operation::WriteZeroes if is_whole => {
                            let whole = Segment::whole(&layout, row);
                            if self.parities_alive(row).next().is_some() {
                                let pass = StripeOp::new(RequestId::NONE, Kind::Pass, whole, Time::ZERO);
                                self.journal_now(&pass, request.placement);
                            }
                            let range = (layout.address(row, 0), layout.chunk());
                            for member in 0..layout.members() {
                                self.change(member, row, request.operation, range, Purpose::Host, request.placement);
                            }
                        }
                        Operation::Trim => {}
                        _ => segments(&layout, row, from, to).for_each(|segment| self.write_now(segment, request)),
                    }
                }
            }
        }
    }

    /// Writes a part of a stripe with parity.
    fn write_now(&mut self, segment: Segment, request: &Request) {
        let (layout, placement) = (self.layout, request.placement);
        let mut operation = StripeOp::new(RequestId::NONE, Kind::Write, segment, Time::ZERO);
        operation.strategy = self.strategy(&operation);
        let Segment { row, lo, hi, first, last } = segment;
        let range = (layout.address(row, lo), hi - lo);
        if operation.strategy != Strategy::Plain {
            self.journal_now(&operation, placement);
        }
        for index in first..=last {
            let member = layout.data_member(row, index, 0);
            self.change(member, row, request.operation, range, Purpose::Host, placement);
        }
        for (_, member) in self.parities_alive(row) {
            self.change(member, row, Operation::Write, range, Purpose::Parity, placement);
        }
    }

    /// Writes the journal entry of an operation, if there is a journal.
    fn journal_now(&mut self, operation: &StripeOp, placement: u16) {
        if self.has_journal() {
            let (member, at) = self.entry_now(operation);
            self.change(member, operation.row, Operation::Write, at, Purpose::Journal, placement);
        }
    }

    /// Changes sectors of a member that is alive. Their versions are 0, so that all data and parity agree.
    fn change(
        &mut self,
        member: u32,
        row: u64,
        operation: Operation,
        (lba, sectors): (u64, u32),
        purpose: Purpose,
        placement: u16,
    ) {
        if self.is_alive(member, row) {
            let request = Request::new(Time::ZERO, operation, lba, sectors);
            let request = Request { stream: purpose as u16, placement, ..request };
            self.members[member as usize].device.serve_now(&request);
        }
    }

    /// Writes the unmapped data that the sources read before they write them, on all copies and with their parity.
    /// Returns the number of bytes that were written to members, and updates `reached`, the mean of the states of the
    /// members that have not failed.
    pub fn prewrite(
        &mut self,
        sources: Sources<'_>,
        how: Prewrite,
        reached: &mut Reached,
        on_progress: OnProgress,
    ) -> Result<u64, SourceError> {
        Prewrite::check_ends(sources)?;
        let units = || self.members.iter().map(|member| UnitSet::new(member.device.ftl().map.len()));
        let mut missing = units().collect::<Vec<_>>();
        let mut work = 0;
        for source in sources {
            let mut written: Vec<UnitSet> = units().collect();
            while let Some(request) = source.next_request()? {
                self.find_missing(&request, &mut written, &mut missing);
                work += request.work();
                if work >= PROGRESS_EVERY {
                    work = 0;
                    self.report_progress(source.progress().unwrap_or(0.0), on_progress)?;
                }
            }
        }
        let alive = (0..self.members.len()).filter(|number| !self.has_failed(*number)).collect::<Vec<_>>();
        let mut bytes = 0;
        let mut sum = Reached::default();
        for &number in &alive {
            let device = self.member_mut(number);
            let units = how
                .write_missing(device, &missing[number], &mut sum)
                .map_err(|error| SourceError(format!("member {number}: {error}")))?;
            bytes += units * device.config().unit_bytes();
        }
        reached.mapped += sum.mapped / alive.len().max(1) as f64;
        Ok(bytes)
    }

    /// Adds the units of members that a request reads, that no earlier one has written, and that are unmapped.
    fn find_missing(&self, request: &Request, written: &mut [UnitSet], missing: &mut [UnitSet]) {
        let layout = self.layout;
        let end = request.lba.checked_add(u64::from(request.sectors));
        if request.operation == Operation::Flush || end.is_none_or(|end| end > layout.sectors()) {
            return;
        }
        for piece in Piece::all(layout, *request) {
            let lba = layout.address(piece.row, piece.offset);
            let end = lba + u64::from(piece.sectors);
            let copies = (0..layout.copies()).map(|copy| layout.data_member(piece.row, piece.index, copy));
            let parities = (0..layout.level().parities()).map(|index| layout.parity_member(piece.row, index));
            let first = layout.data_member(piece.row, piece.index, 0);
            let per_unit = u64::from(self.sectors_per_unit(first));
            for unit in self.units(first, &(lba..end)) {
                if request.operation != Operation::Read {
                    written[first as usize].insert(unit);
                } else if !written[first as usize].contains(unit) {
                    let start = u64::from(unit) * per_unit;
                    let range = lba.max(start)..end.min(start + per_unit);
                    for member in copies.clone().chain(parities.clone()) {
                        let map = &self.members[member as usize].device.ftl().map;
                        let absent = |unit: &u32| map.get(Lpn(*unit)) == Location::Unmapped;
                        self.units(member, &range)
                            .filter(absent)
                            .for_each(|unit| missing[member as usize].insert(unit));
                    }
                }
            }
        }
    }

    fn sectors_per_unit(&self, member: u32) -> u32 {
        self.members[member as usize].device.config().sectors_per_unit()
    }

    /// Returns the mapping units of a range of sectors of a member.
    fn units(&self, member: u32, range: &Range<u64>) -> Range<u32> {
        let per_unit = u64::from(self.sectors_per_unit(member));
        (range.start / per_unit) as u32..range.end.div_ceil(per_unit) as u32
    }
}
