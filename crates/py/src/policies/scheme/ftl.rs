//! The FTL as a mapping scheme in Python sees it: blocks, map and counters.

use std::ops::Range;
use std::sync::Arc;

use floatgate_core::flash::{self, BlockState as State};
use floatgate_core::mapping::{self, Ftl as Core};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;

use super::loans::Loans;
use super::values::{Block, Location, ProgramCause, Purpose, Role, Shape};

/// Returns a number, or fails if it is not below `count`.
fn below(what: &str, number: u32, count: u32) -> PyResult<u32> {
    if number < count {
        return Ok(number);
    }
    Err(PyIndexError::new_err(format!("there is no {what} {number}: there are {count}, counted from 0")))
}

/// Returns a block of the device.
pub fn block_at(ftl: &Core, block: u32) -> PyResult<BlockId> {
    below("block", block, ftl.blocks.all().len() as u32).map(BlockId)
}

/// Returns a plane of the device.
pub fn plane_at(ftl: &Core, plane: u32) -> PyResult<PlaneId> {
    below("plane", plane, ftl.shape().planes).map(PlaneId)
}

/// Returns a physical unit of the device.
pub fn unit_at(ftl: &Core, ppn: u32) -> PyResult<Ppn> {
    let units = ftl.blocks.all().len() as u32 * ftl.blocks.units_per_block();
    below("physical unit", ppn, units).map(Ppn)
}

/// Returns a logical unit of the device.
fn logical_at(ftl: &Core, lpn: u32) -> PyResult<Lpn> {
    below("logical unit", lpn, ftl.map.all()).map(Lpn)
}

/// Returns a range of physical units of the device.
fn units_at(ftl: &Core, start: u32, end: u32) -> PyResult<Range<u32>> {
    if end > start {
        unit_at(ftl, end - 1)?;
    }
    Ok(start..end)
}

/// The flash translation layer (FTL).
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Ftl {
    loans: Arc<Loans>,
    /// The physical space.
    #[pyo3(get)]
    blocks: Py<Space>,
    /// The page map.
    #[pyo3(get)]
    map: Py<PageMap>,
}

impl Ftl {
    /// Creates the object for a scheme with these loans.
    pub fn new(py: Python<'_>, loans: &Arc<Loans>) -> PyResult<Py<Ftl>> {
        let blocks = Py::new(py, Space { loans: Arc::clone(loans) })?;
        let map = Py::new(py, PageMap { loans: Arc::clone(loans) })?;
        Py::new(py, Ftl { loans: Arc::clone(loans), blocks, map })
    }
}

#[pymethods]
impl Ftl {
    /// Returns the parameters of the device.
    #[getter]
    fn shape(&self) -> PyResult<Shape> {
        self.loans.read(|ftl| Ok(Shape::new(ftl.shape(), ftl.blocks.data_units())))
    }

    /// Returns `true` if the device is read-only.
    fn is_read_only(&self) -> PyResult<bool> {
        self.loans.read(|ftl| Ok(ftl.is_read_only()))
    }

    /// Returns the unit whose newest version is at a physical address.
    fn newest_at(&self, ppn: u32) -> PyResult<Option<u32>> {
        self.loans.read(|ftl| Ok(ftl.newest_at(unit_at(ftl, ppn)?).map(|lpn| lpn.0)))
    }

    /// Returns the address of the newest version of a unit in flash, if nothing newer is in flight.
    fn ppn_in_flash(&self, lpn: u32) -> PyResult<Option<u32>> {
        self.loans.read(|ftl| Ok(ftl.ppn_in_flash(logical_at(ftl, lpn)?).map(|ppn| ppn.0)))
    }

    /// Counts a program command that holds `units` units of data.
    fn note_program(&self, cause: ProgramCause, units: u32) -> PyResult<()> {
        self.loans.change(|ftl| {
            ftl.note_program(cause.into(), units);
            Ok(())
        })
    }
}

/// The physical space.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Space {
    loans: Arc<Loans>,
}

impl Space {
    fn read<T>(&self, using: impl FnOnce(&Core, &mapping::Space) -> PyResult<T>) -> PyResult<T> {
        self.loans.read(|ftl| using(ftl, &ftl.blocks))
    }
}

#[pymethods]
impl Space {
    fn __len__(&self) -> PyResult<usize> {
        self.read(|_, blocks| Ok(blocks.all().len()))
    }

    fn units_per_block(&self) -> PyResult<u32> {
        self.read(|_, blocks| Ok(blocks.units_per_block()))
    }

    fn data_units(&self) -> PyResult<u32> {
        self.read(|_, blocks| Ok(blocks.data_units()))
    }

    fn first_unit(&self, block: u32) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.first_unit(block_at(ftl, block)?).0))
    }

    fn block_of(&self, ppn: u32) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.block_of(unit_at(ftl, ppn)?).0))
    }

    fn offset_in_block(&self, ppn: u32) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.offset_in_block(unit_at(ftl, ppn)?)))
    }

    fn plane_of(&self, block: u32) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.plane_of(block_at(ftl, block)?).0))
    }

    fn block(&self, block: u32) -> PyResult<Block> {
        self.read(|ftl, blocks| Ok(blocks.block(block_at(ftl, block)?).into()))
    }

    fn of_plane(&self, plane: u32) -> PyResult<Vec<Block>> {
        self.read(|ftl, blocks| Ok(blocks.of_plane(plane_at(ftl, plane)?).iter().map(Block::from).collect()))
    }

    #[pyo3(signature = (plane, role = Role::Data))]
    fn free_blocks(&self, plane: u32, role: Role) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.free_blocks(plane_at(ftl, plane)?, role.into())))
    }

    fn is_valid(&self, ppn: u32) -> PyResult<bool> {
        self.read(|ftl, blocks| Ok(blocks.is_valid(unit_at(ftl, ppn)?)))
    }

    fn first_valid(&self, start: u32, end: u32) -> PyResult<Option<u32>> {
        self.read(|ftl, blocks| Ok(blocks.first_valid(units_at(ftl, start, end)?).map(|ppn| ppn.0)))
    }

    #[pyo3(signature = (start, end, most = u32::MAX))]
    fn visit_valid(&self, start: u32, end: u32, most: u32) -> PyResult<Vec<u32>> {
        self.read(|ftl, blocks| {
            let mut found = Vec::new();
            if most > 0 {
                blocks.visit_valid(units_at(ftl, start, end)?, |ppn| {
                    found.push(ppn.0);
                    found.len() < most as usize
                });
            }
            Ok(found)
        })
    }

    fn is_kept(&self, block: u32) -> PyResult<bool> {
        self.read(|ftl, blocks| Ok(blocks.is_kept(block_at(ftl, block)?)))
    }

    fn logical(&self) -> PyResult<Vec<u32>> {
        self.read(|_, blocks| Ok(blocks.logical().map(|block| block.0).collect()))
    }

    fn awaiting_erase(&self) -> PyResult<Vec<u32>> {
        self.read(|_, blocks| Ok(blocks.awaiting_erase().map(|block| block.0).collect()))
    }

    fn can_erase(&self, block: u32) -> PyResult<bool> {
        self.read(|ftl, blocks| Ok(blocks.can_erase(block_at(ftl, block)?)))
    }

    fn erases_of_next(&self, plane: u32) -> PyResult<u32> {
        self.read(|ftl, blocks| Ok(blocks.erases_of_next(plane_at(ftl, plane)?)))
    }

    fn open_logical(&self, plane: u32) -> PyResult<u32> {
        self.loans.change(|ftl| {
            let plane = plane_at(ftl, plane)?;
            if ftl.blocks.free_blocks(plane, flash::Role::Data) == 0 {
                return Err(PyValueError::new_err(format!("plane {} has no free block to open", plane.0)));
            }
            Ok(ftl.blocks.open_logical(plane).0)
        })
    }

    fn await_erase_for(&self, block: u32, purpose: Purpose) -> PyResult<()> {
        self.loans.change(|ftl| {
            let id = block_at(ftl, block)?;
            let of = ftl.blocks.block(id);
            if of.valid > 0 || !matches!(of.state, State::Logical | State::Failed) {
                let text = format!("block {block} cannot be given up: it is not a kept block, or still holds data");
                return Err(PyValueError::new_err(text));
            }
            ftl.blocks.await_erase_for(id, purpose.into());
            Ok(())
        })
    }

    fn depend(&self, ppn: u32) -> PyResult<u32> {
        self.loans.change(|ftl| {
            let ppn = unit_at(ftl, ppn)?;
            Ok(ftl.blocks.depend(ppn).0)
        })
    }
}

/// The page map.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct PageMap {
    loans: Arc<Loans>,
}

#[pymethods]
impl PageMap {
    fn __len__(&self) -> PyResult<usize> {
        self.loans.read(|ftl| Ok(ftl.map.len() as usize))
    }

    fn all(&self) -> PyResult<u32> {
        self.loans.read(|ftl| Ok(ftl.map.all()))
    }

    fn get(&self, lpn: u32) -> PyResult<Location> {
        self.loans.read(|ftl| Ok(ftl.map.get(logical_at(ftl, lpn)?).into()))
    }

    fn owner(&self, ppn: u32) -> PyResult<u32> {
        self.loans.read(|ftl| Ok(ftl.map.owner(unit_at(ftl, ppn)?)))
    }

    fn set_owner(&self, ppn: u32, lpn: u32) -> PyResult<()> {
        self.loans.change(|ftl| {
            let ppn = unit_at(ftl, ppn)?;
            ftl.map.set_owner(ppn, lpn);
            Ok(())
        })
    }
}
