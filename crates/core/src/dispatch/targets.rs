//! Targets: the addresses that waiting operations would get now. Operations that share a command must agree in them.

use super::View;
use super::plane_reads::reads_a_page;
use crate::config::cells::CellMode;
use crate::ftl::Ftl;
use crate::ftl::mapping::{Place, Program};
use crate::ftl::space::Role;
use crate::metrics::counters::ProgramCause;
use crate::nand::array;
use crate::sim::id::{BlockId, PlaneId, Ppn, TransactionId};
use crate::work::{Kind, Transaction};

/// Address within a plane: the block, and the page within the block. Planes that share a command must agree in the
/// page, and with `nand.advanced.strict` in the block too.
pub(crate) type Address = (u32, u32);

/// Address of a transaction if it was bound now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The page at this address, or the block that is erased.
    At(Address),
    /// The first page of a block that is not open yet, and the number of this block within the plane if it is known.
    Opens(Option<u32>),
    /// An operation that cannot share a command.
    Alone,
}

/// Returns `true` if `plane` has room for a transaction that waits for it. `NONE` means a write of the pool.
pub(super) fn takes(view: View, plane: PlaneId, id: TransactionId) -> bool {
    let View { transactions, ftl, jobs, .. } = view;
    match if id.is_none() { Kind::Write } else { transactions[id].kind } {
        Kind::Write => ftl.keeps_data() || ftl.takes_pooled(plane),
        // Otherwise the page is read and programmed through the controller.
        Kind::CopyBack => jobs[plane].stays_copy_back(ftl, plane),
        _ => true,
    }
}

/// Returns the address of a transaction that waits for `plane` if it was bound now.
pub(super) fn target(view: View, plane: PlaneId, id: TransactionId) -> Target {
    let View { transactions, ftl, jobs, .. } = view;
    let transaction = &transactions[id];
    let kind = array::Kind::from(transaction.kind);
    let frontier = match transaction.kind {
        Kind::Write | Kind::MergeWrite => match place_of(ftl, transaction) {
            Place::Frontier => ftl.blocks.frontier_for_host(plane, transaction.temperature),
            Place::At(ppn) => return Target::At(address_of(ftl, ppn, kind)),
            Place::Unknown => return Target::Alone,
        },
        Kind::GcWrite => jobs[plane].frontier_of_copies(ftl, plane),
        Kind::CopyBack => ftl.blocks.frontier_for_copy(plane, transaction.ppn, 0),
        Kind::MapWrite => ftl.blocks.map_frontier(plane),
        Kind::MapRead if !reads_a_page(transaction) => return Target::Alone,
        // The transfer of a summary is shorter than that of data.
        Kind::Summary => return Target::Alone,
        _ => return Target::At(address_of(ftl, transaction.ppn, kind)),
    };
    match ftl.blocks.next_ppn(frontier) {
        Some(ppn) => Target::At(address_of(ftl, ppn, kind)),
        None => Target::Opens(ftl.blocks.next_opened(frontier)),
    }
}

/// Returns where a write or a program of copies would go now.
fn place_of(ftl: &Ftl, program: &Transaction) -> Place {
    let of = match program.kind {
        Kind::Write => Program::Write(program.lpn),
        _ => Program::Copies(program.logical_block()),
    };
    ftl.target(of).place
}

/// Returns the cell mode of the block of a waiting transaction. `NONE` means a write of the pool.
pub(super) fn cells_of(View { transactions, ftl, .. }: View, id: TransactionId) -> CellMode {
    let blocks = &ftl.blocks;
    if blocks.is_native() || id.is_none() {
        return CellMode::Native;
    }
    let Transaction { kind, ppn, .. } = transactions[id];
    match kind {
        Kind::MapWrite => blocks.cells(Role::Map),
        Kind::Write | Kind::GcWrite | Kind::CopyBack | Kind::MergeWrite => blocks.cells(Role::Data),
        _ => cells_at(ftl, ppn, kind.into()),
    }
}

/// Returns the cell mode of an operation of `kind` at a physical address. An erase is the same in all modes.
pub(super) fn cells_at(ftl: &Ftl, ppn: Ppn, kind: array::Kind) -> CellMode {
    if kind == array::Kind::Erase { CellMode::Native } else { ftl.blocks.cells_at(ppn) }
}

/// Returns the address of an operation of `kind` at a physical address. For an erase, `ppn` is the number of a block.
pub(super) fn address_of(ftl: &Ftl, ppn: Ppn, kind: array::Kind) -> Address {
    let blocks = &ftl.blocks;
    if kind == array::Kind::Erase {
        return (blocks.index_in_plane(BlockId(ppn.0)), 0);
    }
    let page = ftl.shape().units_per_page.divide(blocks.offset_in_block(ppn));
    (blocks.index_in_plane(blocks.block_of(ppn)), page)
}

/// Returns the address of the next host write of a temperature class in a plane, if its block is open.
pub(super) fn next_write(ftl: &Ftl, plane: PlaneId, class: u8) -> Option<Address> {
    let ppn = ftl.blocks.next_ppn(ftl.blocks.frontier_for_host(plane, class))?;
    Some(address_of(ftl, ppn, array::Kind::Program))
}

/// Returns the number, within the plane, of the block that is opened next for host writes of a class, if it is known.
pub(super) fn next_opened(ftl: &Ftl, plane: PlaneId, class: u8) -> Option<u32> {
    ftl.blocks.next_opened(ftl.blocks.frontier_for_host(plane, class))
}

/// Skips the pages before `page` in the open block for host writes of a class.
pub(super) fn skip_to(ftl: &mut Ftl, plane: PlaneId, class: u8, page: u32) {
    let frontier = ftl.blocks.frontier_for_host(plane, class);
    let Some(ppn) = ftl.blocks.next_ppn(frontier) else { return };
    let end = page * ftl.shape().units_per_page.divisor();
    let count = end - ftl.blocks.offset_in_block(ppn);
    if count > 0 {
        ftl.waste(frontier, count, ProgramCause::WasteAlignment);
    }
}
