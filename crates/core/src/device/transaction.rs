//! Transactions: what a request, or cleaning, asks of one place in flash.

use crate::nand::array;
use crate::scheduler::Class;
use crate::scheduler::lines::{Links, NONE};
use crate::scheduler::waiting::Ordered;
use crate::sim::slab::Slab;

/// What a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page read for a host read; `owner` is the request.
    HostRead,
    /// A host read that waits for the contents of a slot; `owner` is the request.
    SlotRead,
    /// A page read to complete a partial write; `owner` is the write's transaction.
    RmwRead,
    /// A unit that the host writes, which is also the controller slot that holds its data; `owner` is the request.
    Write,
    /// A page read of cleaning.
    GcRead,
    /// A program of cleaning; the units are in the plane's job.
    GcWrite,
    /// A page of cleaning that is moved within its plane; the units are in the plane's job.
    CopyBack,
    /// An erase.
    Erase,
    /// A program of a summary page.
    Summary,
    /// A part of a host read that waits for its map entry; `owner` is the request, `place` its offset there.
    Translate,
    /// A read of a translation page, or of one of its flash pages; `owner` is the translation page.
    MapRead,
    /// A program of a translation page, which is `owner`.
    MapWrite,
    /// A page read to copy units of a logical block, which is `owner`.
    MergeRead,
    /// A program of a logical block, which is `owner`, without any write of the host.
    MergeWrite,
    /// A victim of cleaning, `dependency`, that waits for the update of a translation page.
    MapHold,
}

impl Kind {
    /// Whether it reads.
    #[inline]
    pub const fn is_read(self) -> bool {
        matches!(self.of_array(), array::Kind::Read)
    }

    /// What the array does for it.
    #[inline]
    pub const fn of_array(self) -> array::Kind {
        match self {
            Kind::HostRead | Kind::SlotRead | Kind::RmwRead | Kind::GcRead => array::Kind::Read,
            Kind::Translate | Kind::MapRead | Kind::MergeRead => array::Kind::Read,
            Kind::Write | Kind::GcWrite | Kind::Summary => array::Kind::Program,
            Kind::MapWrite | Kind::MapHold | Kind::MergeWrite => array::Kind::Program,
            Kind::CopyBack => array::Kind::CopyBack,
            Kind::Erase => array::Kind::Erase,
        }
    }
}

/// One transaction: a cache line.
#[derive(Clone, Copy, Debug)]
pub struct Transaction {
    /// What it is.
    pub kind: Kind,
    /// What scheduling sees.
    pub class: Class,
    /// A write was superseded by a trim on its way: what it programs is not valid.
    pub trimmed: bool,
    /// A write has all data of its unit: its own and those that it keeps.
    pub complete: bool,
    /// What a write keeps could not be read.
    pub spoiled: bool,
    /// Writes: the class of the unit (`temperature`).
    pub temperature: u8,
    /// Reads: units that leave the page, or pages of a unit that spans them. Writes that are not complete: sectors of
    /// the unit that they keep.
    pub units: u16,
    /// Writes and slot reads: the sectors of the unit, from and to before.
    pub first: u16,
    /// See `first`; of host reads, how many sectors go to the host, and of reads for a partial write, how many it
    /// keeps.
    pub end: u16,
    /// The plane, once it is fixed.
    pub plane: u32,
    /// The physical place: of a read its first unit, of a write what it was given, of an erase the block.
    pub place: u32,
    /// The logical page; of a host read that of its first unit.
    pub lpn: u32,
    /// Whose it is; see [`Kind`].
    pub owner: u32,
    /// The next in line, or in the same program command.
    pub next: u32,
    /// Writes: the place that it supersedes, plus one; 0 for none. Changes when cleaning moves that unit.
    pub source: u32,
    /// Reads: the block that is read. Writes: the block that holds what a running program supersedes.
    pub dependency: u32,
    /// Writes: the older write of the same unit that has not ended, on which this one waits.
    pub older: u32,
    /// Writes: the newer write of the same unit that waits on this one.
    pub newer: u32,
    /// Writes: slot reads that wait for its contents.
    pub readers: u32,
    /// The version that a write stores, for verification.
    pub version: u32,
    /// When it lined up, as a running number.
    pub order: u64,
}

impl Transaction {
    /// A transaction with nothing but a kind and a class.
    pub const fn new(kind: Kind, class: Class) -> Transaction {
        Transaction {
            kind,
            class,
            trimmed: false,
            complete: false,
            spoiled: false,
            temperature: 0,
            units: 1,
            first: 0,
            end: 0,
            plane: NONE,
            place: 0,
            lpn: NONE,
            owner: NONE,
            next: NONE,
            source: 0,
            dependency: NONE,
            older: NONE,
            newer: NONE,
            readers: NONE,
            version: 0,
            order: 0,
        }
    }
}

const _: () = assert!(size_of::<Transaction>() == 64);

/// The transactions in progress, by number.
pub type Transactions = Slab<Transaction>;

impl Links for Transactions {
    #[inline]
    fn next(&self, id: u32) -> u32 {
        self[id].next
    }
    #[inline]
    fn set_next(&mut self, id: u32, next: u32) {
        self[id].next = next;
    }
}

impl Ordered for Transactions {
    #[inline]
    fn order(&self, id: u32) -> u64 {
        self[id].order
    }
}
