//! Transactions: operations on the flash that a request or garbage collection needs, and mapping units that wait for
//! one.
//!
//! All kinds share one record of one cache line. Accessors define the meaning of a field for a kind. They check the
//! kind in debug builds and cost nothing otherwise. An enum with a body for each kind would test its tag at each
//! access, about forty times per write.

use super::fifo::{Links, Ordered};
use super::{Class, Purpose};
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn, RequestId, TransactionId};
use crate::sim::slab::Slab;

/// Kind of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A page read for a host read; see [`Transaction::request`].
    HostRead,
    /// A page read of units that the host has not requested yet. Reads of the host that wait for it are linked from
    /// `readers` on.
    ReadAhead,
    /// A host read that waits for the contents of a write slot, or for a read ahead; see [`Transaction::request`],
    /// [`Transaction::offset`].
    SlotRead,
    /// A page read to complete a partial write; see [`Transaction::write`].
    RmwRead,
    /// A mapping unit that the host writes, which is also the write slot that holds its data; see
    /// [`Transaction::request`].
    Write,
    /// A page read to rebuild an uncorrectable page of the same stripe; see [`Transaction::rebuilt`].
    RebuildRead,
    /// A page read of garbage collection; see [`Transaction::job`].
    GcRead,
    /// A program of garbage collection. Its mapping units are in a job; see [`Transaction::job`].
    GcWrite,
    /// A page that garbage collection moves within its plane. Its mapping units are in a job; see [`Transaction::job`].
    CopyBack,
    /// An erase; see [`Transaction::block`].
    Erase,
    /// A program of a summary page, or of parity.
    Summary,
    /// A part of a host read that waits for its map entry; see [`Transaction::request`], [`Transaction::offset`].
    Translate,
    /// A read of a translation page, or of one of its flash pages; see [`Transaction::map_page`].
    MapRead,
    /// A program of a translation page; see [`Transaction::map_page`].
    MapWrite,
    /// A page read to copy units of a logical block; see [`Transaction::logical_block`].
    MergeRead,
    /// A program of a logical block that contains no host write; see [`Transaction::logical_block`].
    MergeWrite,
    /// A victim of garbage collection, `dependency`, that waits for the update of a translation page; see
    /// [`Transaction::map_page`].
    MapHold,
}

/// Transaction. It fills exactly one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Transaction {
    /// Kind of the transaction.
    pub kind: Kind,
    /// Scheduling class.
    pub class: Class,
    /// True if a trim invalidated the write before it completed.
    pub trimmed: bool,
    /// True if the write slot holds all sectors of the mapping unit.
    pub complete: bool,
    /// True if the sectors that the write keeps are uncorrectable.
    pub uncorrectable: bool,
    /// Temperature class of the mapping unit that is written. With log blocks, its kind of log block. For copies, their
    /// purpose.
    pub temperature: u8,
    /// Number of mapping units that a read transfers from its page, or of pages if a mapping unit spans several. For a
    /// write that is not complete, the number of sectors that it keeps.
    pub units: u16,
    /// First sector, within the mapping unit, of a write or a slot read.
    pub first: u16,
    /// Sector after the last one of a write or a slot read. Otherwise a number of sectors: those that the host gets
    /// from a host read, or those that a partial write keeps.
    pub end: u16,
    /// Plane, or `NONE` until one is chosen.
    pub plane: PlaneId,
    /// Physical address of the first mapping unit.
    pub ppn: Ppn,
    /// First mapping unit.
    pub lpn: Lpn,
    /// Request, write, translation page or logical block that the transaction belongs to; see the accessors.
    owner: u32,
    /// Next transaction in the queue, or in the same program command.
    pub next: TransactionId,
    /// Physical address of the data that the write replaces, or `NONE`. Garbage collection updates it when it moves
    /// the data.
    pub source: Ppn,
    /// Block that must not be erased before the transaction ends, or `NONE`: the block that a read reads, or the one
    /// that holds the data that a write replaces.
    pub dependency: BlockId,
    /// Older write of the same mapping unit for which this write waits, or `NONE`.
    pub older: TransactionId,
    /// Newer write of the same mapping unit that waits for this write, or `NONE`.
    pub newer: TransactionId,
    /// First slot read that waits for the data of this write or read ahead, linked through `next`.
    pub readers: TransactionId,
    /// Version that the write stores, for verification. For a page read, the number of times that it was repeated.
    pub version: u32,
    /// Position in the order in which transactions were queued.
    pub order: u64,
}

const _: () = assert!(size_of::<Transaction>() == 64);

/// Declares the accessors of `owner`: the type of the id, and the kinds that have it.
macro_rules! owners {
    ($($(#[$doc:meta])* $get:ident, $with:ident: $id:ty = $new:expr, $number:expr, [$($kind:ident),+];)+) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $get(&self) -> $id {
            debug_assert!(matches!(self.kind, $(Kind::$kind)|+), "{:?} has no such owner", self.kind);
            ($new)(self.owner)
        }

        #[doc = concat!("Sets what [`Transaction::", stringify!($get), "`] returns.")]
        #[inline]
        pub fn $with(mut self, owner: $id) -> Transaction {
            debug_assert!(matches!(self.kind, $(Kind::$kind)|+), "{:?} has no such owner", self.kind);
            self.owner = ($number)(owner);
            self
        }
    )+};
}

impl Transaction {
    /// Creates a transaction of this kind and class. All other fields are empty.
    pub const fn new(kind: Kind, class: Class) -> Transaction {
        Transaction {
            kind,
            class,
            trimmed: false,
            complete: false,
            uncorrectable: false,
            temperature: 0,
            units: 1,
            first: 0,
            end: 0,
            plane: PlaneId::NONE,
            ppn: Ppn(0),
            lpn: Lpn::NONE,
            owner: u32::MAX,
            next: TransactionId::NONE,
            source: Ppn::NONE,
            dependency: BlockId::NONE,
            older: TransactionId::NONE,
            newer: TransactionId::NONE,
            readers: TransactionId::NONE,
            version: 0,
            order: 0,
        }
    }

    owners! {
        /// Returns the request that the transaction is a part of. `NONE` for a write of the buffer without a waiting
        /// request.
        request, of_request: RequestId = RequestId, |id: RequestId| id.0, [HostRead, SlotRead, Write, Translate];
        /// Returns the write that the read completes.
        write, of_write: TransactionId = TransactionId, |id: TransactionId| id.0, [RmwRead];
        /// Returns the read of the page that is rebuilt.
        rebuilt, of_rebuilt: TransactionId = TransactionId, |id: TransactionId| id.0, [RebuildRead];
        /// Returns the plane whose job of garbage collection reads the page, or has read the units.
        job, of_job: PlaneId = PlaneId, |plane: PlaneId| plane.0, [GcRead, GcWrite, CopyBack];
        /// Returns the number of the translation page.
        map_page, of_map_page: u32 = |page| page, |page| page, [MapRead, MapWrite, MapHold];
        /// Returns the number of the logical block.
        logical_block, of_logical_block: u32 = |number| number, |number| number, [MergeRead, MergeWrite];
    }

    /// Detaches a write from its request, which no longer waits for it. Returns the request.
    pub fn take_request(&mut self) -> RequestId {
        let request = self.request();
        self.owner = RequestId::NONE.0;
        request
    }

    /// Returns `true` if a read of sectors `first..end` from a write slot returns some that were uncorrectable when the
    /// write read them.
    #[inline]
    pub fn returns_lost(&self, first: u32, end: u32) -> bool {
        let is_own = u32::from(self.first) <= first && end <= u32::from(self.end);
        self.uncorrectable && !is_own
    }

    /// Returns the number of times that the read of a page was repeated, because its data had too many wrong bits.
    #[inline]
    pub fn retries(&self) -> u32 {
        match self.kind {
            Kind::HostRead | Kind::ReadAhead | Kind::RmwRead => self.version,
            Kind::RebuildRead | Kind::GcRead | Kind::MergeRead | Kind::MapRead => self.version,
            Kind::SlotRead | Kind::Translate | Kind::MapHold => 0,
            Kind::Write | Kind::GcWrite | Kind::CopyBack | Kind::MergeWrite | Kind::MapWrite | Kind::Summary => 0,
            Kind::Erase => 0,
        }
    }

    /// Notes that the read of a page is repeated.
    pub fn repeat(&mut self) {
        self.version += 1;
    }

    /// Returns the block that is erased.
    #[inline]
    pub fn block(&self) -> BlockId {
        debug_assert_eq!(self.kind, Kind::Erase);
        BlockId(self.ppn.0)
    }

    /// Creates the erase of a block.
    pub fn erase(class: Class, plane: PlaneId, block: BlockId) -> Transaction {
        Transaction { plane, ppn: Ppn(block.0), ..Transaction::new(Kind::Erase, class) }
    }

    /// Creates a read or a program of units that a mapping scheme copies, for logical block `number`.
    pub fn copying(kind: Kind, plane: PlaneId, number: u32, purpose: Purpose) -> Transaction {
        Transaction { plane, temperature: purpose as u8, ..Transaction::new(kind, Class::Gc) }.of_logical_block(number)
    }

    /// Returns the reason for which units are copied.
    pub fn purpose(&self) -> Purpose {
        debug_assert!(matches!(self.kind, Kind::MergeRead | Kind::MergeWrite));
        Purpose::ALL[usize::from(self.temperature)]
    }

    /// Returns the number of sectors of the request before the part that waits for a slot or a map entry.
    #[inline]
    pub fn offset(&self) -> u32 {
        debug_assert!(matches!(self.kind, Kind::SlotRead | Kind::Translate));
        self.ppn.0
    }

    /// Creates the part of a host read that waits for a slot or a map entry: sectors `first..end` of a unit, after
    /// `offset` sectors of the request.
    pub fn waiting(kind: Kind, request: RequestId, lpn: Lpn, [first, end, offset]: [u32; 3]) -> Transaction {
        let wait = Transaction { lpn, ppn: Ppn(offset), ..Transaction::new(kind, Class::HostRead) };
        Transaction { first: first as u16, end: end as u16, ..wait }.of_request(request)
    }
}

/// Transactions in flight.
pub type Transactions = Slab<TransactionId, Transaction>;

/// Returns the transactions that are linked from `first` on, including `first`, unless it is `NONE`.
pub fn chain(transactions: &Transactions, first: TransactionId) -> impl Iterator<Item = TransactionId> + '_ {
    std::iter::successors(first.is_some().then_some(first), |&id| {
        transactions[id].next.is_some().then(|| transactions[id].next)
    })
}

/// Splits a chain of transactions after those in the plane of `first`, and returns the rest.
pub fn split_off(transactions: &mut Transactions, first: TransactionId) -> TransactionId {
    let mut last = first;
    loop {
        let next = transactions[last].next;
        if next.is_none() || transactions[next].plane != transactions[first].plane {
            transactions[last].next = TransactionId::NONE;
            return next;
        }
        last = next;
    }
}

impl Links for Transactions {
    #[inline]
    fn next(&self, id: TransactionId) -> TransactionId {
        self[id].next
    }
    #[inline]
    fn set_next(&mut self, id: TransactionId, next: TransactionId) {
        self[id].next = next;
    }
}

impl Ordered for Transactions {
    #[inline]
    fn order(&self, id: TransactionId) -> u64 {
        self[id].order
    }
}
