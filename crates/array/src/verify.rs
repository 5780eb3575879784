//! Contents of requests to members: computes data and parity from what members returned.

use floatgate_core::sim::request::{Completion, Operation, Status};

use crate::array::SsdArray;
use crate::contents::Contents;
use crate::field::{add, add_chunk, parity, solve};
use crate::layout::Role;
use crate::operation::{Kind, Strategy, StripeOp};
use crate::timers::Owner;

impl SsdArray {
    /// Takes a new serial number for the next request to a member, if contents are computed. In verification mode,
    /// members return it as the version of the sectors that the request wrote.
    #[inline]
    pub(crate) fn next_serial(&mut self) {
        if self.contents.is_some() {
            self.serial = self.serial.wrapping_add(1);
        }
    }

    /// Notes what completed reads of a member returned. A read whose payload cannot be read becomes uncorrectable.
    pub(crate) fn note_contents(&mut self, number: u32, completions: &mut [Completion]) {
        let Some(mut contents) = self.contents.take() else { return };
        let device = &mut self.members[number as usize].device;
        contents.apply(number, device);
        for (tag, versions) in device.take_contents() {
            let is_ok = |done: &Completion| done.request.tag == tag && done.status == Status::Ok;
            if !versions.is_empty() && completions.iter().any(is_ok) {
                let lba = contents.lba_of(tag as u32);
                let bytes = contents.tags_of(lba, &versions);
                self.deliver(&mut contents, number, tag, lba, bytes);
            }
        }
        for done in completions {
            let (tag, lba) = (done.request.tag, done.request.lba);
            let mut bytes = vec![0; contents.bytes(done.request.sectors)];
            let Some(payload) = contents.attached() else { break };
            match done.request.operation {
                Operation::Write => payload.settle(number, tag),
                Operation::Read if done.status == Status::Ok => {
                    if payload.read(number, &self.members[number as usize].device, lba, &mut bytes) {
                        self.deliver(&mut contents, number, tag, lba, bytes);
                    } else {
                        done.status = Status::Uncorrectable;
                    }
                }
                _ => {}
            }
        }
        self.contents = Some(contents);
    }

    /// Passes what a member returned to the owner of the request.
    fn deliver(&self, contents: &mut Contents, number: u32, tag: u64, lba: u64, bytes: Vec<u8>) {
        match Owner::of(tag) {
            Owner::Operation(id) => contents.keep(id, number, bytes),
            Owner::Host(id) => {
                let (row, offset) = self.layout.row_of(lba);
                if let Role::Data(index) = self.layout.role(row, number) {
                    let first = self.requests[id].request.lba;
                    contents.fill(id.0, (self.layout.sector(row, index, offset) - first) as u32, &bytes);
                }
            }
        }
    }

    /// Stores what a write of the host puts on a member. `from` is the first sector within the request.
    pub(crate) fn store_plain(&mut self, member: u32, owner: u64, lba: u64, request: u64, from: u32, sectors: u32) {
        let tag = owner | u64::from(self.serial);
        if let Some(contents) = &mut self.contents {
            let bytes = contents.data(request, from, sectors);
            contents.store(member, tag, lba, bytes);
        }
    }

    /// Stores what a stripe operation writes to its range of a member.
    fn store(&mut self, id: u32, member: u32, bytes: Vec<u8>) {
        let operation = self.operations[id];
        let lba = self.layout.address(operation.row, operation.lo);
        let tag = Owner::Operation(id).tag() | u64::from(self.serial);
        if let Some(contents) = &mut self.contents {
            contents.store(member, tag, lba, bytes);
        }
    }

    /// Stores what a stripe operation writes to a data member.
    pub(crate) fn store_data(&mut self, id: u32, index: u32, member: u32) {
        if let Some(bytes) = self.contents.as_ref().map(|contents| self.new_data(contents, id, index)) {
            self.store(id, member, bytes);
        }
    }

    /// Returns the data of the host that a stripe operation writes to a data chunk.
    fn new_data(&self, contents: &Contents, id: u32, index: u32) -> Vec<u8> {
        let operation = &self.operations[id];
        let request = &self.requests[operation.request].request;
        if request.operation != Operation::Write {
            return vec![0; contents.bytes(operation.sectors())];
        }
        let from = self.layout.sector(operation.row, index, operation.lo) - request.lba;
        contents.data(request.tag, from as u32, operation.sectors())
    }

    /// Returns the data of a stripe before an operation. Data that were read from no member are computed.
    fn old_data(&self, contents: &Contents, id: u32) -> Vec<Option<Vec<u8>>> {
        let operation = &self.operations[id];
        let (row, length) = (operation.row, contents.bytes(operation.sectors()));
        let read = |member| contents.read(id, member).map(<[u8]>::to_vec);
        if self.layout.copies() > 1 {
            let copy = |index| {
                let members = (0..self.layout.copies()).map(|copy| self.layout.data_member(row, index, copy));
                members.into_iter().find_map(read)
            };
            return (0..self.layout.data()).map(copy).collect();
        }
        let mut data: Vec<_> =
            (0..self.layout.data()).map(|index| read(self.layout.data_member(row, index, 0))).collect();
        let parities = [0, 1].map(|index| {
            let has = index < self.layout.level().parities();
            has.then(|| read(self.layout.parity_member(row, index))).flatten()
        });
        solve(&mut data, parities, length);
        data
    }

    /// Stores the parity that a write computes from what it has read.
    pub(crate) fn store_parity(&mut self, id: u32, index: u32, member: u32) {
        if let Some(bytes) = self.contents.as_ref().map(|contents| self.new_parity(contents, id, index)) {
            self.store(id, member, bytes);
        }
    }

    /// Returns the data of a chunk after a write. The write has read its sources.
    pub(crate) fn data_after(&self, contents: &Contents, id: u32, index: u32) -> Vec<u8> {
        let operation = &self.operations[id];
        if operation.covers(index) {
            return self.new_data(contents, id, index);
        }
        let read = contents.read(id, self.layout.data_member(operation.row, index, 0));
        let computed = || self.old_data(contents, id)[index as usize].take();
        read.map(<[u8]>::to_vec).or_else(computed).expect("data that were not read are computed")
    }

    fn new_parity(&self, contents: &Contents, id: u32, index: u32) -> Vec<u8> {
        let operation: &StripeOp = &self.operations[id];
        let read = |member| contents.read(id, member).map(<[u8]>::to_vec);
        let member = |chunk| self.layout.data_member(operation.row, chunk, 0);
        let covered = operation.first..=operation.last;
        if operation.strategy == Strategy::Modify {
            let mut sum = read(self.layout.parity_member(operation.row, index)).expect("the parity was read");
            for chunk in covered {
                let mut change = read(member(chunk)).expect("the old data were read");
                add(&mut change, &self.new_data(contents, id, chunk));
                add_chunk(&mut sum, &change, chunk, index);
            }
            return sum;
        }
        let mut data = match operation.strategy {
            Strategy::ReconstructAll => self.old_data(contents, id),
            _ => (0..self.layout.data()).map(|chunk| read(member(chunk))).collect(),
        };
        covered.for_each(|chunk| data[chunk as usize] = Some(self.new_data(contents, id, chunk)));
        parity(&data, index, contents.bytes(operation.sectors()))
    }

    /// Stores the chunk of a member that an operation has computed from other members.
    pub(crate) fn store_rebuilt(&mut self, id: u32, member: u32) {
        if let Some(bytes) = self.contents.as_ref().map(|contents| self.rebuilt_chunk(contents, id, member)) {
            self.store(id, member, bytes);
        }
    }

    fn rebuilt_chunk(&self, contents: &Contents, id: u32, member: u32) -> Vec<u8> {
        let operation = &self.operations[id];
        let length = contents.bytes(operation.sectors());
        let mut data = self.old_data(contents, id);
        match self.layout.role(operation.row, member) {
            Role::Data(index) => data[index as usize].take().unwrap_or_else(|| vec![0; length]),
            Role::Parity(index) => parity(&data, index, length),
        }
    }

    /// Returns `true` if a member holds what follows from the data of the stripe. An operation has read both.
    pub(crate) fn agrees(&self, id: u32, member: u32) -> bool {
        self.contents
            .as_ref()
            .is_none_or(|contents| contents.read(id, member) == Some(&self.rebuilt_chunk(contents, id, member)[..]))
    }

    /// Adds what a read has computed to the reply, and drops what the operation has read.
    pub(crate) fn end_contents(&mut self, id: u32) {
        let Some(mut contents) = self.contents.take() else { return };
        let operation = self.operations[id];
        if operation.kind == Kind::Read && operation.status == Status::Ok {
            let read = self.requests[operation.request].request;
            let (first, end) = (read.lba, read.lba + u64::from(read.sectors));
            let data = self.old_data(&contents, id);
            for index in operation.first..=operation.last {
                // A repair covers whole mapping units. The host may have read a part of a unit.
                let start = self.layout.sector(operation.row, index, operation.lo);
                let (from, to) = (start.max(first), (start + u64::from(operation.sectors())).min(end));
                let range = contents.bytes((from - start) as u32)..contents.bytes((to - start) as u32);
                let bytes = data[index as usize].as_ref().map_or(&[][..], |bytes| &bytes[range]);
                contents.fill(operation.request.0, (from - first) as u32, bytes);
            }
        }
        contents.forget(id);
        self.contents = Some(contents);
    }
}
