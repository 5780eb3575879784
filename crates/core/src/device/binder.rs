//! The device as dispatch sees it: components that dispatch works with, and what the FTL knows of unbound operations.

use super::Device;
use crate::config::cells::CellMode;
use crate::dispatch::{Address, Binder, Parts, Target, View, reads_a_page};
use crate::ftl::allocation::PlaneSet;
use crate::ftl::mapping::{Place, Program};
use crate::ftl::space::{FrontierId, Role};
use crate::metrics::counters::ProgramCause;
use crate::nand::array::{self, Operation, Spot};
use crate::sim::id::{BlockId, LunId, PlaneId, Ppn, TransactionId};
use crate::work::{Kind, Transaction};

impl Binder for Device {
    #[inline(always)]
    fn view(&self) -> View<'_> {
        View { dispatch: &self.dispatch, transactions: &self.transactions, array: &self.array, now: self.now }
    }

    #[inline(always)]
    fn parts(&mut self) -> Parts<'_> {
        Parts {
            dispatch: &mut self.dispatch,
            transactions: &mut self.transactions,
            array: &mut self.array,
            tasks: &mut self.tasks,
            now: self.now,
        }
    }

    #[inline(always)]
    fn bind(&mut self, id: TransactionId, rank: u8, at: Spot) -> bool {
        self.bind_transaction(id, rank, at)
    }

    fn takes(&self, plane: PlaneId, id: TransactionId) -> bool {
        match if id.is_none() { Kind::Write } else { self.transactions[id].kind } {
            Kind::Write => self.ftl.keeps_data() || self.ftl.takes_pooled(plane),
            // Otherwise the page is read and programmed through the controller.
            Kind::CopyBack => self.stays_copy_back(plane),
            _ => true,
        }
    }

    fn target(&self, plane: PlaneId, id: TransactionId) -> Target {
        let transaction = &self.transactions[id];
        let kind = array::Kind::from(transaction.kind);
        let frontier = match transaction.kind {
            Kind::Write | Kind::MergeWrite => match self.place_in_plane(transaction) {
                Place::Frontier => self.ftl.blocks.frontier_for_host(plane, transaction.temperature),
                Place::At(ppn) => return Target::At(self.address_of(ppn, kind)),
                Place::Unknown => return Target::Alone,
            },
            Kind::GcWrite => self.frontier_of_copies(plane),
            Kind::CopyBack => self.frontier_of_back(plane, transaction.ppn),
            Kind::MapWrite => self.ftl.blocks.map_frontier(plane),
            Kind::MapRead if !reads_a_page(transaction) => return Target::Alone,
            // The transfer of a summary is shorter than that of data.
            Kind::Summary => return Target::Alone,
            _ => return Target::At(self.address_of(transaction.ppn, kind)),
        };
        match self.ftl.blocks.next_ppn(frontier) {
            Some(ppn) => Target::At(self.address_of(ppn, kind)),
            None => Target::Opens(self.ftl.blocks.next_opened(frontier)),
        }
    }

    fn cells(&self, id: TransactionId) -> CellMode {
        let blocks = &self.ftl.blocks;
        if blocks.is_native() || id.is_none() {
            return CellMode::Native;
        }
        let Transaction { kind, ppn, .. } = self.transactions[id];
        match kind {
            Kind::MapWrite => blocks.cells(Role::Map),
            Kind::Write | Kind::GcWrite | Kind::CopyBack | Kind::MergeWrite => blocks.cells(Role::Data),
            _ => self.cells_at(ppn, kind.into()),
        }
    }

    fn cells_at(&self, ppn: Ppn, kind: array::Kind) -> CellMode {
        if kind == array::Kind::Erase { CellMode::Native } else { self.ftl.blocks.cells_at(ppn) }
    }

    fn address_of(&self, ppn: Ppn, kind: array::Kind) -> Address {
        let blocks = &self.ftl.blocks;
        if kind == array::Kind::Erase {
            return (blocks.index_in_plane(BlockId(ppn.0)), 0);
        }
        let page = self.ftl.shape().units_per_page.divide(blocks.offset_in_block(ppn));
        (blocks.index_in_plane(blocks.block_of(ppn)), page)
    }

    fn source_of(&self, plane: PlaneId) -> Option<Address> {
        let copy = self.jobs[plane].moving.back.first()?;
        Some(self.address_of(copy.from, array::Kind::CopyBack))
    }

    fn next_write(&self, plane: PlaneId, class: u8) -> Option<Address> {
        let ppn = self.ftl.blocks.next_ppn(self.ftl.blocks.frontier_for_host(plane, class))?;
        Some(self.address_of(ppn, array::Kind::Program))
    }

    fn next_opened(&self, plane: PlaneId, class: u8) -> Option<u32> {
        self.ftl.blocks.next_opened(self.ftl.blocks.frontier_for_host(plane, class))
    }

    fn skip_to(&mut self, plane: PlaneId, class: u8, page: u32) {
        let frontier = self.ftl.blocks.frontier_for_host(plane, class);
        let Some(ppn) = self.ftl.blocks.next_ppn(frontier) else { return };
        let end = page * self.ftl.shape().units_per_page.divisor();
        let count = end - self.ftl.blocks.offset_in_block(ppn);
        if count > 0 {
            self.ftl.waste(frontier, count, ProgramCause::WasteAlignment);
        }
    }

    #[inline]
    fn ready(&self) -> &PlaneSet {
        self.ftl.ready()
    }

    fn choose(&mut self, pool: u32) -> Option<PlaneId> {
        self.ftl.choose(pool, self.dispatch.candidates())
    }

    fn took(&mut self, plane: PlaneId) {
        self.ftl.allocation.took(plane);
    }

    fn erases_that_count(&self, plane: PlaneId) -> u32 {
        if self.ftl.allocation.by_erases() { self.ftl.blocks.erases_of_next(plane) } else { 0 }
    }

    fn request_of(&self, id: TransactionId) -> Option<(u64, u16)> {
        let transaction = &self.transactions[id];
        let request = match transaction.kind {
            Kind::HostRead | Kind::Write => transaction.request(),
            Kind::RmwRead => self.transactions[transaction.write()].request(),
            _ => return None,
        };
        let request = request.is_some().then(|| self.interface.requests[request].request)?;
        Some((request.tag, request.stream))
    }

    fn show_queued(&mut self, id: TransactionId, lun: LunId) {
        self.show_enqueue(id, lun);
    }

    fn show_started(&mut self, first: TransactionId, operation: &Operation) {
        self.show_waits(first, operation);
    }
}

impl Device {
    /// Returns where a write or a program of copies would go now.
    fn place_in_plane(&self, program: &Transaction) -> Place {
        let of = match program.kind {
            Kind::Write => Program::Write(program.lpn),
            _ => Program::Copies(program.logical_block()),
        };
        self.ftl.target(of).place
    }

    /// Returns the frontier of the next program of units that garbage collection has read.
    fn frontier_of_copies(&self, plane: PlaneId) -> FrontierId {
        let copies = &self.jobs[plane].moving.copies;
        let blocks = &self.ftl.blocks;
        match copies.iter().find(|copy| blocks.is_valid(copy.from)) {
            Some(copy) => blocks.frontier_for_copy(plane, copy.from, self.ftl.class_of(copy.lpn)),
            None => blocks.frontier_for_moved(plane, 0),
        }
    }
}
