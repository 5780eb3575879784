//! Verification of a job: reads of the data that it has written, fio's `verify`.

use std::collections::{BTreeMap, VecDeque};

use super::options::{Kind, Options};

/// Writes of a job that are to be read, and the state of the reads.
#[derive(Clone, Debug)]
pub(super) struct Verify {
    /// Number of writes after which they are read, and number of writes to read at a time. `None` to read all at the
    /// end of a pass.
    backlog: Option<(u64, u64)>,
    /// True to issue only the reads.
    pub(super) only: bool,
    written: Written,
    /// Number of reads left in the current batch.
    left: u64,
    /// True if the last request was a write, so that a backlog may be due.
    wrote: bool,
    /// Bytes of the job at the start of the pass.
    pub(super) base: u64,
    /// Bytes after which a pass ends.
    pub(super) once: u64,
    /// Bytes read since the start of the pass.
    pub(super) read: u64,
    /// True if the job is over, and all writes have been read.
    pub(super) over: bool,
    /// True if the pass has ended, and the rest of its writes is read.
    pub(super) ending: bool,
}

/// Addresses and lengths of writes, in sectors.
#[derive(Clone, Debug)]
enum Written {
    /// In the order of the writes, which do not overlap.
    InOrder(VecDeque<(u64, u32)>),
    /// In the order of addresses. A write replaces those that it overlaps.
    Sorted(BTreeMap<u64, u32>),
}

impl Verify {
    /// Creates the state of a job that verifies. `overlaps` is `true` if its writes may overlap in a pass. `once` is
    /// the number of bytes in a pass.
    pub(super) fn new(options: &Options, kind: Kind, overlaps: bool, once: u64) -> Option<Verify> {
        let writes = matches!(kind, Kind::Write | Kind::Mixed | Kind::TrimWrite);
        let on = options.verify == Some(true) && writes && options.do_verify != Some(false);
        let backlog = options.verify_backlog.map(|every| (every, options.verify_backlog_batch.unwrap_or(every)));
        let written = if overlaps { Written::Sorted(BTreeMap::new()) } else { Written::InOrder(VecDeque::new()) };
        on.then_some(Verify {
            backlog,
            only: options.verify_only,
            written,
            left: 0,
            wrote: false,
            base: 0,
            once,
            read: 0,
            over: false,
            ending: false,
        })
    }

    /// Adds a write.
    pub(super) fn wrote(&mut self, lba: u64, sectors: u32) {
        self.wrote = true;
        match &mut self.written {
            Written::InOrder(list) => list.push_back((lba, sectors)),
            Written::Sorted(map) => {
                let end = lba + u64::from(sectors);
                let overlapping = |(start, length): (&u64, &u32)| (start + u64::from(*length) > lba).then_some(*start);
                while let Some(start) = map.range(..end).next_back().and_then(overlapping) {
                    map.remove(&start);
                }
                map.insert(lba, sectors);
            }
        }
    }

    fn len(&self) -> u64 {
        match &self.written {
            Written::InOrder(list) => list.len() as u64,
            Written::Sorted(map) => map.len() as u64,
        }
    }

    /// Returns the next write to read, if a read is due.
    pub(super) fn next(&mut self) -> Option<(u64, u32)> {
        if self.left == 0 {
            let due = |(every, _): (u64, u64)| self.wrote && self.len() > 0 && self.len().is_multiple_of(every);
            match self.backlog {
                _ if self.ending => self.left = self.len(),
                Some(backlog) if due(backlog) => self.left = backlog.1.min(self.len()),
                _ => return None,
            }
        }
        self.wrote = false;
        self.left = self.left.checked_sub(1)?;
        match &mut self.written {
            Written::InOrder(list) => list.pop_front(),
            Written::Sorted(map) => map.pop_first(),
        }
    }
}
