//! Verification mode: computes the contents of data and parity from those that members returned.

use floatgate_core::sim::request::Operation;

use crate::array::SsdArray;
use crate::layout::Role;
use crate::operation::{Kind, Strategy, StripeOp};
use crate::tags::{change, parity, solve};
use crate::timers::Owner;

impl SsdArray {
    /// Takes a new serial number for the next request to a member, in verification mode. Members return it as the
    /// version of the sectors that the request wrote.
    #[inline]
    pub(crate) fn next_serial(&mut self) {
        if self.contents.is_some() {
            self.serial += 1;
        }
    }

    /// Notes what reads of a member returned.
    pub(crate) fn note_contents(&mut self, number: u32) {
        for (tag, versions) in self.members[number as usize].device.take_contents() {
            if versions.is_empty() {
                continue;
            }
            let Some(contents) = &mut self.contents else { return };
            let lba = contents.lba_of(tag as u32);
            let tags = contents.tags(lba, &versions);
            match Owner::of(tag) {
                Owner::Operation(id) => contents.keep(id, number, tags),
                Owner::Host(id) => {
                    let (row, offset) = (lba / u64::from(self.layout.chunk()), lba % u64::from(self.layout.chunk()));
                    let Role::Data(index) = self.layout.role(row, number) else { continue };
                    let host = row * self.layout.row_sectors() + u64::from(index * self.layout.chunk()) + offset;
                    let first = self.requests[id].request.lba;
                    contents.fill(id.0, (host - first) as usize, &tags);
                }
            }
        }
    }

    /// Stores what a write of the host puts on a member.
    pub(crate) fn store_plain(&mut self, lba: u64, sectors: u32, tag: u32) {
        if let Some(contents) = &mut self.contents {
            contents.store(self.serial, lba, vec![tag; sectors as usize]);
        }
    }

    /// Stores what a stripe operation writes to a data member.
    pub(crate) fn store_data(&mut self, operation: &StripeOp, tag: u32) {
        let lba = self.layout.address(operation.row, operation.lo);
        self.store_plain(lba, operation.sectors(), tag);
    }

    /// Returns the tags of the data of a stripe at one offset, before the operation. Data that were read from no
    /// member are computed.
    fn old_data(&self, id: u32, offset: usize) -> Vec<u32> {
        let row = self.operations[id].row;
        let read = |member| Some(self.contents.as_ref()?.read(id, member)?[offset]);
        let data: Vec<_> = (0..self.layout.data()).map(|index| read(self.layout.data_member(row, index, 0))).collect();
        let parities = [0, 1].map(|index| {
            let has = index < self.layout.level().parities();
            has.then(|| read(self.layout.parity_member(row, index))).flatten()
        });
        solve(&data, parities)
    }

    /// Stores the parity that a write computes from what it has read.
    pub(crate) fn store_parity(&mut self, id: u32, index: u32, tag: u32) {
        let operation = self.operations[id];
        let zeroes = self.requests[operation.request].request.operation != Operation::Write;
        let new = if zeroes { 0 } else { tag };
        let tags = (0..operation.sectors() as usize).map(|offset| self.new_parity(id, &operation, index, new, offset));
        let tags: Vec<u32> = tags.collect();
        let lba = self.layout.address(operation.row, operation.lo);
        if let Some(contents) = &mut self.contents {
            contents.store(self.serial, lba, tags);
        }
    }

    fn new_parity(&self, id: u32, operation: &StripeOp, index: u32, new: u32, offset: usize) -> u32 {
        let read =
            |member| self.contents.as_ref().and_then(|contents| contents.read(id, member)).map(|tags| tags[offset]);
        let member = |chunk| self.layout.data_member(operation.row, chunk, 0);
        if operation.strategy == Strategy::Modify {
            let old = read(self.layout.parity_member(operation.row, index)).expect("the parity was read");
            let differences = (operation.first..=operation.last).map(|chunk| (chunk, read(member(chunk))));
            return differences
                .fold(old, |sum, (chunk, old)| sum ^ change(old.expect("it was read") ^ new, chunk, index));
        }
        let mut data = match operation.strategy {
            Strategy::ReconstructAll => self.old_data(id, offset),
            _ => (0..self.layout.data()).map(|chunk| read(member(chunk)).unwrap_or(0)).collect(),
        };
        (operation.first..=operation.last).for_each(|chunk| data[chunk as usize] = new);
        parity(&data, index)
    }

    /// Stores what the rebuild writes to a spare.
    pub(crate) fn store_rebuilt(&mut self, id: u32, member: u32) {
        let operation = self.operations[id];
        let sectors = 0..operation.sectors() as usize;
        let role = self.layout.role(operation.row, member);
        let tags: Vec<u32> = match (self.layout.copies() > 1, &self.contents) {
            (true, Some(contents)) => {
                let other = (0..self.layout.members()).find_map(|other| contents.read(id, other));
                other.expect("a copy was read").to_vec()
            }
            _ => sectors
                .map(|offset| {
                    let data = self.old_data(id, offset);
                    match role {
                        Role::Data(index) => data[index as usize],
                        Role::Parity(index) => parity(&data, index),
                    }
                })
                .collect(),
        };
        let lba = self.layout.address(operation.row, operation.lo);
        if let Some(contents) = &mut self.contents {
            contents.store(self.serial, lba, tags);
        }
    }

    /// Adds what a read has computed to the reply, and drops what the operation has read.
    pub(crate) fn end_contents(&mut self, id: u32) {
        let operation = self.operations[id];
        if operation.kind == Kind::Read {
            let first = self.requests[operation.request].request.lba;
            let base = operation.row * self.layout.row_sectors();
            for offset in 0..operation.sectors() {
                let data = self.old_data(id, offset as usize);
                for index in operation.first..=operation.last {
                    let host = base + u64::from(index * self.layout.chunk() + operation.lo + offset);
                    if let Some(contents) = &mut self.contents {
                        contents.fill(operation.request.0, (host - first) as usize, &[data[index as usize]]);
                    }
                }
            }
        }
        if let Some(contents) = &mut self.contents {
            contents.forget(id);
        }
    }
}
