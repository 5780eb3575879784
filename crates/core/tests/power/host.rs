//! The host: every version of every unit, in the order of submission.

use std::collections::BTreeMap;

use floatgate_core::sim::request::{Operation, Request};

/// Versions of one mapping unit.
#[derive(Clone, Debug)]
struct Unit {
    /// Sector versions, oldest first.
    versions: Vec<Vec<u32>>,
    /// Newest version of a completed request.
    answered: usize,
    /// Oldest version that a power cut may leave.
    promised: usize,
    /// Number of outstanding requests of the unit, and of those that are not writes.
    busy: u32,
    others: u32,
}

/// The host.
#[derive(Clone, Debug)]
pub struct Host {
    units: Vec<Unit>,
    sectors: u64,
    /// True if the completion of a write guarantees it; with `protected`, that of any request does.
    through: bool,
    protected: bool,
    /// Versions that each outstanding request creates: unit and version.
    made: BTreeMap<u64, Vec<(usize, usize)>>,
    /// Newest completed version of each unit at the submission of each outstanding flush.
    flushes: BTreeMap<u64, Vec<usize>>,
}

impl Host {
    pub fn new(units: u64, sectors: u64, through: bool, protected: bool) -> Host {
        let blank = vec![0; sectors as usize];
        let unit = Unit { versions: vec![blank], answered: 0, promised: 0, busy: 0, others: 0 };
        let units = vec![unit; units as usize];
        Host { units, sectors, through, protected, made: BTreeMap::new(), flushes: BTreeMap::new() }
    }

    fn range(&self, request: &Request) -> std::ops::Range<usize> {
        let end = request.lba + u64::from(request.sectors);
        (request.lba / self.sectors) as usize..end.div_ceil(self.sectors) as usize
    }

    /// Returns `true` if no request is outstanding for the units of a request.
    pub fn is_quiet(&self, request: &Request) -> bool {
        self.range(request).all(|unit| self.units[unit].busy == 0)
    }

    /// Returns `true` if a request other than a write is outstanding for the units of a request.
    pub fn has_others(&self, request: &Request) -> bool {
        self.range(request).any(|unit| self.units[unit].others > 0)
    }

    pub fn submit(&mut self, request: &Request) {
        let range = self.range(request);
        match request.operation {
            Operation::Flush => {
                let answered = self.units.iter().map(|unit| unit.answered).collect();
                self.flushes.insert(request.tag, answered);
            }
            _ => {
                range.clone().for_each(|unit| self.note(unit, request, 1));
                let made = range.filter_map(|unit| self.change(unit, request)).collect();
                self.made.insert(request.tag, made);
            }
        }
    }

    fn note(&mut self, unit: usize, request: &Request, change: i32) {
        let unit = &mut self.units[unit];
        unit.busy = unit.busy.wrapping_add_signed(change);
        if request.operation != Operation::Write {
            unit.others = unit.others.wrapping_add_signed(change);
        }
    }

    /// Adds the version of a unit that a request creates, and returns unit and version.
    fn change(&mut self, number: usize, request: &Request) -> Option<(usize, usize)> {
        let start = number as u64 * self.sectors;
        let (first, end) =
            (request.lba.max(start), (request.lba + u64::from(request.sectors)).min(start + self.sectors));
        let unit = &mut self.units[number];
        let mut version = unit.versions.last()?.clone();
        let touched = &mut version[(first - start) as usize..(end - start) as usize];
        match request.operation {
            Operation::Write => touched.fill(request.tag as u32),
            Operation::WriteZeroes => touched.fill(0),
            // A unit that the trim covers only in part keeps its data.
            Operation::Trim if touched.len() as u64 == self.sectors => touched.fill(0),
            _ => return None,
        }
        unit.versions.push(version);
        Some((number, unit.versions.len() - 1))
    }

    /// Returns the versions that a read of units without other outstanding requests returns.
    pub fn expected(&self, request: &Request) -> Vec<u32> {
        let sector = |sector: u64| {
            let unit = &self.units[(sector / self.sectors) as usize];
            unit.versions[unit.versions.len() - 1][(sector % self.sectors) as usize]
        };
        (request.lba..request.lba + u64::from(request.sectors)).map(sector).collect()
    }

    pub fn complete(&mut self, request: &Request) {
        if request.operation == Operation::Flush {
            for (unit, answered) in
                self.units.iter_mut().zip(self.flushes.remove(&request.tag).expect("an outstanding flush"))
            {
                unit.promised = unit.promised.max(answered);
            }
            return;
        }
        self.range(request).for_each(|unit| self.note(unit, request, -1));
        for (number, version) in self.made.remove(&request.tag).expect("an outstanding request") {
            let unit = &mut self.units[number];
            unit.answered = unit.answered.max(version);
            let whole = unit.versions[version].iter().all(|&sector| sector == 0);
            let written =
                request.operation == Operation::Write || (request.operation == Operation::WriteZeroes && !whole);
            if self.protected || request.fua || (written && self.through) {
                unit.promised = unit.promised.max(version);
            }
        }
    }

    /// Records that a request was refused. Its version may or may not be visible.
    pub fn abandon(&mut self, request: &Request) {
        if request.operation == Operation::Flush {
            self.flushes.remove(&request.tag);
            return;
        }
        self.range(request).for_each(|unit| self.note(unit, request, -1));
        self.made.remove(&request.tag);
    }

    /// Records that a unit is lost.
    pub fn lose(&mut self, number: usize, held: &[u32]) {
        self.units[number] = Unit { versions: vec![held.to_vec()], answered: 0, promised: 0, busy: 0, others: 0 };
    }

    /// Checks the version of a unit after a power cut, and continues from it.
    pub fn recover(&mut self, number: usize, held: &[u32]) -> Result<(), String> {
        let unit = &mut self.units[number];
        let allowed = &unit.versions[unit.promised..];
        if !allowed.iter().any(|version| version == held) {
            let known = unit.versions.iter().position(|version| version == held);
            return Err(format!(
                "unit {number} reads as {held:?} after a power cut (version {known:?}); version {} of {} was guaranteed: {:?}",
                unit.promised,
                unit.versions.len() - 1,
                allowed[0],
            ));
        }
        *unit = Unit { versions: vec![held.to_vec()], answered: 0, promised: 0, busy: 0, others: 0 };
        Ok(())
    }

    /// Drops all outstanding requests.
    pub fn restart(&mut self) {
        self.made.clear();
        self.flushes.clear();
    }
}
