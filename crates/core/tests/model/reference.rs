//! Reference model: the versions that each sector may hold.

use std::collections::BTreeMap;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::request::{Operation, Request, Status};

/// A write as the host sees it: a version for some sectors, from its submission to its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Write {
    version: u32,
    submitted: u64,
    acknowledged: u64,
}

/// An outstanding read: its first sector, and for each sector the writes that it may return.
#[derive(Debug)]
struct OpenRead {
    first: u64,
    allowed: Vec<Vec<u32>>,
}

/// Each sector is a register that takes a write at some instant between submission and acknowledgement. A read may
/// return a write that was submitted before the read completed, unless another write has certainly replaced it. That
/// other write was submitted after the acknowledgement of the first. It was itself acknowledged, or returned by a read,
/// before the read was submitted.
pub struct Reference {
    writes: Vec<Write>,
    sectors: Vec<Vec<u32>>,
    open_writes: BTreeMap<u64, (u32, u64, u64)>,
    open_reads: BTreeMap<u64, OpenRead>,
    clock: u64,
    unit: u64,
}

impl Reference {
    pub fn new(config: &DeviceConfig) -> Reference {
        Reference {
            writes: vec![Write { version: 0, submitted: 0, acknowledged: 0 }],
            sectors: vec![vec![0]; config.logical_sectors() as usize],
            open_writes: BTreeMap::new(),
            open_reads: BTreeMap::new(),
            clock: 0,
            unit: u64::from(config.sectors_per_unit()),
        }
    }

    pub fn submit(&mut self, request: &Request) {
        self.clock += 1;
        let (mut first, mut end) = (request.lba, request.lba + u64::from(request.sectors));
        let version = match request.operation {
            Operation::Flush => return,
            Operation::Read => {
                let allowed = self.sectors[first as usize..end as usize].to_vec();
                self.open_reads.insert(request.tag, OpenRead { first, allowed });
                return;
            }
            Operation::Trim => {
                // A unit that the trim covers only in part keeps its data.
                (first, end) = (first.next_multiple_of(self.unit), end / self.unit * self.unit);
                0
            }
            Operation::WriteZeroes => 0,
            Operation::Write => request.tag as u32,
        };
        let write = self.writes.len() as u32;
        self.writes.push(Write { version, submitted: self.clock, acknowledged: u64::MAX });
        for sector in first..end {
            self.sectors[sector as usize].push(write);
        }
        for read in self.open_reads.values_mut() {
            let both = first.max(read.first)..end.min(read.first + read.allowed.len() as u64);
            both.for_each(|sector| read.allowed[(sector - read.first) as usize].push(write));
        }
        self.open_writes.insert(request.tag, (write, first, end));
    }

    /// Records the completion of a request. Checks that a read returned allowed versions.
    pub fn complete(&mut self, request: &Request, returned: &[u32]) -> Result<(), String> {
        self.clock += 1;
        if let Some((write, first, end)) = self.open_writes.remove(&request.tag) {
            self.writes[write as usize].acknowledged = self.clock;
            (first..end).for_each(|sector| self.replaced_by(sector, write));
        }
        let Some(read) = self.open_reads.remove(&request.tag) else { return Ok(()) };
        if returned.len() != read.allowed.len() {
            return Err(format!("a read of {} sectors returned {}", read.allowed.len(), returned.len()));
        }
        for (index, (allowed, &version)) in read.allowed.iter().zip(returned).enumerate() {
            let sector = read.first + index as u64;
            let mut matches = allowed.iter().filter(|&&write| self.writes[write as usize].version == version);
            let Some(&write) = matches.next() else {
                let allowed: Vec<Write> = allowed.iter().map(|&write| self.writes[write as usize]).collect();
                return Err(format!("a read of sector {sector} returned version {version}, not one of {allowed:?}"));
            };
            if matches.next().is_none() {
                self.replaced_by(sector, write);
            }
        }
        Ok(())
    }

    /// Records a request that failed. A refused write may or may not be visible later. A write that failed as
    /// uncorrectable was performed: its unit cannot be read until it is written as a whole.
    pub fn fail(&mut self, request: &Request, status: Status) {
        self.clock += 1;
        self.open_reads.remove(&request.tag);
        let Some((write, first, end)) = self.open_writes.remove(&request.tag) else { return };
        if status == Status::Uncorrectable {
            self.writes[write as usize].acknowledged = self.clock;
            (first..end).for_each(|sector| self.replaced_by(sector, write));
        }
    }

    /// Excludes from later reads the writes that were acknowledged before `write` was submitted.
    fn replaced_by(&mut self, sector: u64, write: u32) {
        let writes = &self.writes;
        let submitted = self.writes[write as usize].submitted;
        self.sectors[sector as usize]
            .retain(|&other| writes[other as usize].acknowledged > submitted || other == write);
    }
}
