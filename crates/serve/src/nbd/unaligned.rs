//! Requests that do not consist of whole sectors.
//!
//! The server rounds reads to whole sectors, and trims to the whole sectors within them. It completes writes and
//! zeroing by read-modify-write: it reads the sectors at the ends of the range, and writes whole sectors. Until such a
//! job is done, later changes of its sectors wait, because its write would overwrite them with the data that it has
//! read. A job itself waits until earlier changes of its sectors are done.

use std::ops::Range;

use super::session::{Command, Kind};
use super::wire::Errno;
use crate::lateness::Requesting;

/// Returns the range of whole sectors that contains a range of bytes.
pub fn outer(offset: u64, length: u64, sector: u64) -> Range<u64> {
    offset / sector * sector..(offset + length).next_multiple_of(sector)
}

/// Returns the range of whole sectors within a range of bytes, which may be empty.
pub fn inner(offset: u64, length: u64, sector: u64) -> Range<u64> {
    let start = offset.next_multiple_of(sector);
    start..((offset + length) / sector * sector).max(start)
}

/// Returns `true` if ranges have a byte in common.
fn overlaps(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Returns the bytes that a request changes, as whole sectors. `None` if it changes none.
pub fn changed(command: &Command, sector: u64) -> Option<Range<u64>> {
    let range = outer(command.offset, u64::from(command.length), sector);
    match command.kind {
        Kind::Write(_) | Kind::Zero | Kind::ZeroAllocated | Kind::Trim => Some(range),
        Kind::Read | Kind::Flush | Kind::Status { .. } => None,
    }
}

/// Change of a job.
#[derive(Clone, Debug)]
pub enum Change {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes zeros, which may leave a hole.
    Zero,
    /// Writes zeros that stay allocated.
    ZeroAllocated,
    /// Trims.
    Trim,
}

/// Order of a job for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads this sector.
    Read(Range<u64>),
    /// Writes these bytes from this offset on.
    Write(u64, Vec<u8>),
    /// Writes zeros to this range, which may leave a hole.
    Zero(Range<u64>),
    /// Writes zeros to this range, which stay allocated.
    ZeroAllocated(Range<u64>),
    /// Trims this range.
    Trim(Range<u64>),
}

/// Progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for earlier changes of its sectors.
    Waiting,
    /// Reads the sectors at its ends.
    Reading,
    /// Writes whole sectors.
    Writing,
}

/// A change of a client that is not one request of the device, or waits for another one.
#[derive(Clone, Debug)]
pub struct Job {
    /// Identifier of the job.
    pub id: u64,
    /// Index and generation of the client.
    pub client: (usize, u64),
    /// The client's identifier of the request.
    pub cookie: u64,
    /// Size of the reply, as an estimate.
    pub promised: usize,
    /// True if the request may complete only when it is durable.
    pub fua: bool,
    /// Information about the client.
    pub requesting: Requesting,
    /// First error of an order.
    pub error: Option<Errno>,
    offset: u64,
    length: u64,
    sector: u64,
    change: Change,
    phase: Phase,
    /// Outstanding orders of the phase.
    outstanding: u32,
    /// Sectors that were read, by offset.
    edges: Vec<(u64, Vec<u8>)>,
}

impl Job {
    /// Creates the job of a request that changes data.
    pub fn new(id: u64, command: &Command, sector: u64, client: (usize, u64), promised: usize) -> Job {
        let change = match command.kind {
            Kind::Write(data) => Change::Write(data.to_vec()),
            Kind::ZeroAllocated => Change::ZeroAllocated,
            Kind::Trim => Change::Trim,
            _ => Change::Zero,
        };
        let (offset, length) = (command.offset, u64::from(command.length));
        Job {
            id,
            client,
            cookie: command.cookie,
            promised,
            fua: command.fua,
            requesting: Requesting::default(),
            error: None,
            offset,
            length,
            sector,
            change,
            phase: Phase::Waiting,
            outstanding: 0,
            edges: Vec::new(),
        }
    }

    /// Returns the sectors of the job.
    pub fn range(&self) -> Range<u64> {
        outer(self.offset, self.length, self.sector)
    }

    /// Returns `true` if the job waits for earlier changes of its sectors.
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Starts the job, and returns its first orders.
    pub fn start(&mut self) -> Vec<Step> {
        let Range { start, end } = self.range();
        let mut edges = Vec::new();
        if !matches!(self.change, Change::Trim) {
            if self.offset > start {
                edges.push(start);
            }
            if self.offset + self.length < end && edges.last() != Some(&(end - self.sector)) {
                edges.push(end - self.sector);
            }
        }
        self.phase = Phase::Reading;
        if edges.is_empty() {
            self.write()
        } else {
            self.sent(edges.into_iter().map(|at| Step::Read(at..at + self.sector)).collect())
        }
    }

    /// Records that an order has completed, with the data that it read. Returns the next orders, or `None` if the job
    /// is done. If orders of the phase are outstanding, there are none.
    pub fn completed(&mut self, read: Option<(u64, Vec<u8>)>, error: Option<Errno>) -> Option<Vec<Step>> {
        self.outstanding -= 1;
        self.edges.extend(read);
        self.error = self.error.or(error);
        match (self.outstanding, self.phase, self.error) {
            (1.., ..) => Some(Vec::new()),
            (0, Phase::Reading, None) => Some(self.write()),
            (0, ..) => None,
        }
    }

    /// Records that an order was not accepted. Returns `true` if the job is done.
    pub fn refused(&mut self, error: Errno) -> bool {
        self.outstanding -= 1;
        self.error = self.error.or(Some(error));
        self.outstanding == 0
    }

    /// Starts to write, and returns the orders.
    fn write(&mut self) -> Vec<Step> {
        self.phase = Phase::Writing;
        let range = self.range();
        let within = inner(self.offset, self.length, self.sector);
        let end = self.offset + self.length;
        let mut steps = Vec::new();
        match std::mem::replace(&mut self.change, Change::Trim) {
            Change::Trim => steps.push(Step::Trim(within)),
            Change::Write(data) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                for (at, edge) in &self.edges {
                    let at = (at - range.start) as usize;
                    bytes[at..at + edge.len()].copy_from_slice(edge);
                }
                let at = (self.offset - range.start) as usize;
                bytes[at..at + data.len()].copy_from_slice(&data);
                steps.push(Step::Write(range.start, bytes));
            }
            change => {
                for (at, edge) in &mut self.edges {
                    let zeros = self.offset.max(*at)..end.min(*at + self.sector);
                    edge[(zeros.start - *at) as usize..(zeros.end - *at) as usize].fill(0);
                    steps.push(Step::Write(*at, edge.clone()));
                }
                let is_allocated = matches!(change, Change::ZeroAllocated);
                let zero = if is_allocated { Step::ZeroAllocated(within.clone()) } else { Step::Zero(within.clone()) };
                steps.extend(Some(zero).filter(|_| !within.is_empty()));
            }
        }
        self.sent(steps)
    }

    fn sent(&mut self, steps: Vec<Step>) -> Vec<Step> {
        self.outstanding = steps.len() as u32;
        steps
    }
}

/// Jobs in order of arrival.
#[derive(Debug, Default)]
pub struct Jobs {
    jobs: Vec<Job>,
    count: u64,
}

impl Jobs {
    /// Returns `true` if there are no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Returns the identifier of the next job.
    pub fn next_id(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Returns `true` if a change of this range has to wait for a job.
    pub fn block(&self, range: &Range<u64>) -> bool {
        self.jobs.iter().any(|job| overlaps(&job.range(), range))
    }

    /// Adds a job.
    pub fn push(&mut self, job: Job) {
        self.jobs.push(job);
    }

    /// Returns a job.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.id == id)
    }

    /// Removes a job that is done.
    pub fn remove(&mut self, id: u64) -> Option<Job> {
        let place = self.jobs.iter().position(|job| job.id == id)?;
        Some(self.jobs.remove(place))
    }

    /// Returns the next job that can start: it waits, and no earlier job and no outstanding change of a client
    /// (`changes`) has a sector of it.
    pub fn next_ready(&self, changes: &[Range<u64>]) -> Option<u64> {
        let is_ready = |(place, job): &(usize, &Job)| {
            let range = job.range();
            let mut earlier = self.jobs[..*place].iter();
            job.is_waiting()
                && !earlier.any(|other| overlaps(&other.range(), &range))
                && !changes.iter().any(|other| overlaps(other, &range))
        };
        self.jobs.iter().enumerate().find(is_ready).map(|(_, job)| job.id)
    }

    /// Drops all jobs.
    pub fn clear(&mut self) {
        self.jobs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: Kind, offset: u64, length: u32) -> Job {
        Job::new(1, &Command { cookie: 7, kind, offset, length, fua: false }, 512, (0, 0), 0)
    }

    #[test]
    fn ranges_are_rounded_to_sectors() {
        assert_eq!((outer(100, 500, 512), inner(100, 500, 512)), (0..1024, 512..512));
        assert_eq!((outer(512, 512, 512), inner(512, 512, 512)), (512..1024, 512..1024));
        assert_eq!((outer(100, 2000, 512), inner(100, 2000, 512)), (0..2560, 512..2048));
    }

    #[test]
    fn a_write_reads_its_partial_sectors_and_keeps_their_other_bytes() {
        let data = [9; 1000];
        let mut job = job(Kind::Write(&data), 100, 1000);
        assert_eq!(job.start(), [Step::Read(0..512), Step::Read(1024..1536)]);
        assert_eq!(job.completed(Some((1024, vec![2; 512])), None), Some(Vec::new()));
        let steps = job.completed(Some((0, vec![1; 512])), None).unwrap();
        let bytes = [vec![1; 100], vec![9; 1000], vec![2; 436]].concat();
        assert_eq!(steps, [Step::Write(0, bytes)]);
        assert_eq!(job.completed(None, None), None);
    }

    #[test]
    fn zeroing_writes_partial_sectors_and_zeroes_the_others() {
        let mut job = job(Kind::Zero, 500, 1000);
        assert_eq!(job.start(), [Step::Read(0..512), Step::Read(1024..1536)]);
        job.completed(Some((0, vec![1; 512])), None);
        let steps = job.completed(Some((1024, vec![2; 512])), None).unwrap();
        let (first, last) = ([vec![1; 500], vec![0; 12]].concat(), [vec![0; 476], vec![2; 36]].concat());
        assert_eq!(steps, [Step::Write(0, first), Step::Write(1024, last), Step::Zero(512..1024)]);
    }

    #[test]
    fn whole_sectors_are_not_read_and_a_trim_is_rounded_inwards() {
        let data = [9; 512];
        assert_eq!(job(Kind::Write(&data), 512, 512).start(), [Step::Write(512, vec![9; 512])]);
        assert_eq!(job(Kind::Trim, 100, 1000).start(), [Step::Trim(512..1024)]);
    }

    #[test]
    fn an_error_ends_a_job_when_its_orders_have_completed() {
        let data = [9; 1000];
        let mut job = job(Kind::Write(&data), 100, 1000);
        job.start();
        assert_eq!(job.completed(None, Some(Errno::Io)), Some(Vec::new()));
        assert_eq!(job.completed(Some((0, vec![1; 512])), None), None);
        assert_eq!(job.error, Some(Errno::Io));
    }

    #[test]
    fn jobs_of_one_sector_follow_one_another() {
        let data = [9; 10];
        let mut jobs = Jobs::default();
        for offset in [0, 100, 5000] {
            let id = jobs.next_id();
            jobs.push(Job { id, ..job(Kind::Write(&data), offset, 10) });
        }
        let changed = 4608..5120;
        assert_eq!(jobs.next_ready(std::slice::from_ref(&changed)), Some(1));
        jobs.get_mut(1).unwrap().start();
        assert_eq!(jobs.next_ready(&[changed]), None);
        assert_eq!(jobs.next_ready(&[]), Some(3));
        assert!(jobs.block(&(0..512)) && !jobs.block(&(512..1024)));
        jobs.remove(1);
        assert_eq!(jobs.next_ready(&[]), Some(2));
    }
}
