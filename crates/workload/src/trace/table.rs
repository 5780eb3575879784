//! A trace in memory: columns of requests, such as those of a data frame.

use std::hash::Hasher;
use std::sync::Arc;

use super::options::{Fit, Replay};
use crate::sim::request::{Operation, Request, SECTOR};
use crate::sim::source::{Pace, Source, SourceError};
use crate::sim::time::Time;

/// Requests in memory, in the order of their arrivals.
#[derive(Clone, Debug, Default)]
pub struct Table {
    arrivals: Vec<Time>,
    operations: Vec<Operation>,
    lbas: Vec<u64>,
    sectors: Vec<u32>,
}

impl Table {
    /// Creates a table without requests, with room for `count`.
    pub fn with_capacity(count: usize) -> Table {
        Table {
            arrivals: Vec::with_capacity(count),
            operations: Vec::with_capacity(count),
            lbas: Vec::with_capacity(count),
            sectors: Vec::with_capacity(count),
        }
    }

    /// Adds a request of `bytes` bytes at a byte `offset`. It covers all sectors that it touches.
    ///
    /// # Errors
    ///
    /// The text states what is invalid.
    #[inline]
    pub fn push(&mut self, arrival: Time, operation: Operation, offset: u64, bytes: u64) -> Result<(), &'static str> {
        if operation == Operation::Flush {
            return self.add(arrival, operation, 0, 0);
        }
        let end = offset.checked_add(bytes).ok_or("an address range that ends below 16 EiB")?;
        let lba = offset / SECTOR;
        let sectors = end.div_ceil(SECTOR) - lba;
        if bytes == 0 {
            return Err("a length of at least one byte");
        }
        let sectors = u32::try_from(sectors).map_err(|_| "a length below 2 TiB")?;
        self.add(arrival, operation, lba, sectors)
    }

    #[inline]
    fn add(&mut self, arrival: Time, operation: Operation, lba: u64, sectors: u32) -> Result<(), &'static str> {
        self.arrivals.push(arrival);
        self.operations.push(operation);
        self.lbas.push(lba);
        self.sectors.push(sectors);
        Ok(())
    }

    /// Returns the number of requests.
    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns `true` if there are no requests.
    pub fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Sorts the requests by arrival, and counts arrivals from the first one.
    pub fn sort(&mut self) {
        if !self.arrivals.is_sorted() {
            let mut order: Vec<usize> = (0..self.len()).collect();
            order.sort_by_key(|index| self.arrivals[*index]);
            let old = std::mem::take(self);
            self.arrivals = order.iter().map(|index| old.arrivals[*index]).collect();
            self.operations = order.iter().map(|index| old.operations[*index]).collect();
            self.lbas = order.iter().map(|index| old.lbas[*index]).collect();
            self.sectors = order.iter().map(|index| old.sectors[*index]).collect();
        }
        let first = self.arrivals.first().copied().unwrap_or(Time::ZERO);
        self.arrivals.iter_mut().for_each(|arrival| *arrival = arrival.since(first));
    }

    /// Returns a digest of all requests.
    pub fn digest(&self) -> u64 {
        let mut hash = xxhash_rust::xxh3::Xxh3::new();
        for index in 0..self.len() {
            hash.write_u64(self.arrivals[index].ps());
            hash.write_u64(self.lbas[index]);
            hash.write_u32(self.sectors[index]);
            hash.write_u8(self.operations[index].index() as u8);
        }
        hash.finish()
    }
}

/// Options for a table as a workload.
#[derive(Clone, Debug, Default)]
pub struct TableOptions {
    /// Name of the stream.
    pub name: Option<String>,
    /// Pace.
    pub replay: Replay,
    /// Treatment of addresses beyond the end of the device.
    pub fit: Fit,
    /// Number of requests after which the workload ends.
    pub limit: Option<u64>,
}

/// A table as a workload.
#[derive(Clone, Debug)]
pub struct TableSource {
    table: Arc<Table>,
    options: TableOptions,
    end: usize,
    next: usize,
    device_sectors: u64,
    digest: u64,
}

impl TableSource {
    /// Creates a workload for a device of `device_sectors` sectors.
    ///
    /// # Errors
    ///
    /// The table has no requests, or addresses beyond the device, which may be moved by [`Fit::Wrap`].
    pub fn new(table: Arc<Table>, options: TableOptions, device_sectors: u64) -> Result<TableSource, SourceError> {
        if table.is_empty() {
            return Err(SourceError("the table has no requests".to_owned()));
        }
        let end =
            options.limit.map_or(table.len(), |limit| table.len().min(usize::try_from(limit).unwrap_or(usize::MAX)));
        let source = TableSource { digest: table.digest(), table, options, end, next: 0, device_sectors };
        match source.options.fit {
            Fit::Compact => Err(SourceError("a table cannot be compacted; use fit=\"wrap\"".to_owned())),
            Fit::Refuse => source.check().map(|()| source),
            Fit::Wrap => Ok(source),
        }
    }

    /// Checks that all requests are on the device.
    fn check(&self) -> Result<(), SourceError> {
        let beyond =
            |index: &usize| self.table.lbas[*index] + u64::from(self.table.sectors[*index]) > self.device_sectors;
        match (0..self.end).find(beyond) {
            None => Ok(()),
            Some(row) => Err(SourceError(format!(
                "row {row} of the table is beyond the end of the device, which has {} sectors of 512 B; fit=\"wrap\" \
                 takes addresses modulo its size",
                self.device_sectors
            ))),
        }
    }

    /// Returns the request of a row.
    #[inline]
    fn row(&self, row: usize) -> Request {
        let arrival = if self.options.replay == Replay::Timed { self.table.arrivals[row] } else { Time::ZERO };
        let mut request =
            Request::new(arrival, self.table.operations[row], self.table.lbas[row], self.table.sectors[row]);
        if self.options.fit == Fit::Wrap {
            request.sectors = u64::from(request.sectors).min(self.device_sectors) as u32;
            request.lba %= self.device_sectors;
            if request.lba + u64::from(request.sectors) > self.device_sectors {
                request.lba = 0;
            }
        }
        request
    }
}

impl Source for TableSource {
    fn next_request(&mut self) -> Result<Option<Request>, SourceError> {
        if self.next == self.end {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some(self.row(self.next - 1)))
    }

    fn fill(&mut self, into: &mut [Request]) -> Result<usize, SourceError> {
        let count = into.len().min(self.end - self.next);
        for (place, row) in into.iter_mut().zip(self.next..) {
            if row == self.end {
                break;
            }
            *place = self.row(row);
        }
        self.next += count;
        Ok(count)
    }

    fn pace(&self) -> Pace {
        match self.options.replay {
            Replay::Depth(depth) => Pace::Depth { depth, think: Time::ZERO },
            _ => Pace::Timed { depth: None },
        }
    }

    fn streams(&self) -> Vec<String> {
        vec![self.options.name.clone().unwrap_or_else(|| "table".to_owned())]
    }

    fn progress(&self) -> Option<f64> {
        Some(self.next as f64 / self.end as f64)
    }

    fn description(&self) -> String {
        let name = self.options.name.as_deref().unwrap_or("table");
        format!("{name}: {} requests in memory", self.end)
    }

    fn digest(&self) -> Option<u64> {
        Some(self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::with_capacity(3);
        table.push(Time(7_000), Operation::Write, 4096, 8192).unwrap();
        table.push(Time(5_000), Operation::Read, 1023, 2).unwrap();
        table.push(Time(9_000), Operation::Flush, 0, 0).unwrap();
        table.sort();
        table
    }

    fn all(options: TableOptions, sectors: u64) -> Vec<(u64, Operation, u64, u32)> {
        let mut source = TableSource::new(Arc::new(table()), options, sectors).unwrap();
        let mut requests = vec![Request::new(Time::ZERO, Operation::Read, 0, 0); 8];
        let count = source.fill(&mut requests).unwrap();
        assert_eq!(source.next_request().unwrap(), None);
        requests[..count].iter().map(|r| (r.arrival.ps(), r.operation, r.lba, r.sectors)).collect()
    }

    #[test]
    fn requests_are_sorted_and_widened_to_sectors() {
        let expected = [(0, Operation::Read, 1, 2), (2_000, Operation::Write, 8, 16), (4_000, Operation::Flush, 0, 0)];
        assert_eq!(all(TableOptions::default(), 64), expected);
        let limited = TableOptions { limit: Some(2), replay: Replay::Depth(4), ..TableOptions::default() };
        assert_eq!(all(limited, 64), [(0, Operation::Read, 1, 2), (0, Operation::Write, 8, 16)]);
    }

    #[test]
    fn addresses_beyond_the_device_are_refused_or_wrapped() {
        let error = TableSource::new(Arc::new(table()), TableOptions::default(), 20).unwrap_err().to_string();
        assert!(error.contains("row 1 of the table is beyond the end"), "{error}");
        let wrapped = all(TableOptions { fit: Fit::Wrap, ..TableOptions::default() }, 20);
        assert_eq!(wrapped[1], (2_000, Operation::Write, 0, 16));
        assert!(TableSource::new(Arc::default(), TableOptions::default(), 20).is_err());
        assert!(Table::default().push(Time::ZERO, Operation::Read, 0, 0).is_err());
        assert!(Table::default().push(Time::ZERO, Operation::Read, u64::MAX, 1).is_err());
    }
}
