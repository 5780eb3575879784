//! Step-by-step simulation of a device.

use std::path::PathBuf;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt16Array, UInt32Array};
use arrow_pyarrow::{PyArrowType, Table as PyTable};
use floatgate_array::AnySsd;
use floatgate_core::flash::BlockState;
use floatgate_core::mapping::{Ftl, Location};
use floatgate_core::results::{Breakdown, Counters};
use floatgate_core::sim::id::{BlockId, Lpn, Ppn};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Ssd};
use floatgate_core::summary::Precondition;
use floatgate_report::columns::requests::{self, RequestsWriter};
use floatgate_run::failure::Failure;
use floatgate_run::files;
use floatgate_run::frontend::{Frontend as _, Subject};
use floatgate_run::output::{Named, refuse_overwrites};
use floatgate_run::session::array_options;
use floatgate_run::simulated::prepare_any;
use floatgate_run::state;
use pyo3::prelude::*;

use crate::device::{DeviceConfig, calls_python};
use crate::errors::{enter, enter_as, exception, policy_error};
use crate::frontend::Frontend;
use crate::tables::{BATCH, Batches};

/// Device with its clock. Times are in picoseconds, addresses and lengths in sectors.
///
/// A call while another one changes the device fails at once: it is a call by another thread, or by a policy or a
/// progress function that the first call waits for.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Simulator(RwLock<State>);

/// Device, and the origin of its state.
pub struct State {
    device: AnySsd,
    /// Number of the next request.
    next: u64,
    /// Origin of the initial state.
    state: Precondition,
    /// Input files of the device, which a saved state must not overwrite.
    inputs: Vec<Named>,
}

impl Simulator {
    fn new(state: State) -> Simulator {
        Simulator(RwLock::new(state))
    }

    /// Returns the state, for a call that does not change it.
    pub fn read(&self, py: Python<'_>) -> PyResult<RwLockReadGuard<'_, State>> {
        match self.0.try_read() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy(py)),
        }
    }

    /// Returns the state, for a call that changes it.
    fn write(&self, py: Python<'_>) -> PyResult<RwLockWriteGuard<'_, State>> {
        match self.0.try_write() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(busy(py)),
        }
    }
}

fn busy(py: Python<'_>) -> PyErr {
    let text = "the simulator is busy with another call, by another thread, or by a policy or progress function of the \
                call itself; wait for the end of that call, or use a fork of the simulator";
    exception(py, "SimulationError", text)
}

impl State {
    /// Fails if a policy has failed, because later results are invalid.
    fn check_policies(&self, py: Python<'_>) -> PyResult<()> {
        self.device.fault().map_or(Ok(()), |fault| Err(policy_error(py, fault)))
    }

    /// Returns the device, and its initial state.
    pub fn prepared(&self) -> (&AnySsd, &Precondition) {
        (&self.device, &self.state)
    }

    /// Returns the device. Fails for an array: `what` needs a single SSD.
    fn single(&self, py: Python<'_>, what: &str) -> PyResult<&Device> {
        match &self.device {
            AnySsd::Device(device) => Ok(device),
            AnySsd::Array(..) => {
                let text = format!("{what} needs a single SSD, and this is an array; simulate one of its members");
                Err(exception(py, "FloatgateError", &text))
            }
        }
    }

    /// Returns the origin of the current state.
    fn told_state(&self) -> Precondition {
        let mut state = self.state.clone();
        if self.next > 0 {
            state.requested = format!("{}, and {} requests", state.requested, self.next);
            let devices = || self.device.devices();
            let valid: u64 = devices().map(|device| device.ftl().blocks.valid_data()).sum();
            let units: u64 = devices().map(|device| device.config().logical_units()).sum();
            state.reached.mapped = valid as f64 / units as f64;
        }
        state
    }
}

#[pymethods]
impl Simulator {
    #[new]
    #[pyo3(signature = (device, *, precondition, seed, attribution, progress))]
    fn open(
        py: Python<'_>,
        device: &DeviceConfig,
        precondition: &str,
        seed: u64,
        attribution: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Simulator> {
        enter_as(py, calls_python(&device.chosen.config), progress, |frontend| {
            let chosen = &device.chosen;
            let options = array_options(chosen, seed, attribution);
            let (device, state) = prepare_any(chosen, chosen.array.as_deref(), options, precondition, frontend)?;
            let inputs = files::of_state(chosen, precondition, seed).map_err(Subject::Precondition.stop())?;
            Ok(Simulator::new(State { device, next: 0, state, inputs }))
        })
    }

    /// Returns the current time.
    #[getter]
    fn now(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.device.now().ps())
    }

    /// Returns the time of the next event.
    #[getter]
    fn next_event_time(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.read(py)?.device.next_event().map(Time::ps))
    }

    /// Returns the number of outstanding requests.
    #[getter]
    fn outstanding(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.read(py)?.device.outstanding())
    }

    /// Returns `true` if the queue has room for another request.
    #[getter]
    fn has_room(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.device.has_room())
    }

    /// Returns `true` if the device is idle.
    #[getter]
    fn is_idle(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.read(py)?.device.is_idle())
    }

    /// Returns the state before the first request, as JSON.
    #[getter]
    fn precondition(&self, py: Python<'_>) -> PyResult<String> {
        Ok(serde_json::to_value(&self.read(py)?.state).unwrap_or_default().to_string())
    }

    /// Returns the number of requests submitted so far.
    #[getter]
    fn submitted(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.read(py)?.next)
    }

    /// Submits a request at a time that is not before the clock. Returns the number of the request.
    #[pyo3(signature = (operation, sector, sectors, at, *, fua))]
    fn submit(&self, py: Python<'_>, operation: &str, sector: u64, sectors: u32, at: u64, fua: bool) -> PyResult<u64> {
        let reported = |text: String| exception(py, "WorkloadError", &text);
        let known = Operation::ALL.into_iter().find(|known| known.name() == operation);
        let Some(operation) = known else {
            let names = Operation::ALL.map(Operation::name).join(", ");
            return Err(reported(format!("invalid operation `{operation}`: expected one of {names}")));
        };
        let state = &mut *self.write(py)?;
        if at < state.device.now().ps() {
            let now = state.device.now().ps();
            return Err(reported(format!("a request at {at} ps is before the clock, which is at {now} ps")));
        }
        if Time(at) > Time::LAST {
            return Err(reported(format!(
                "a request at {at} ps is after the end of simulated time, {} ps",
                Time::LAST.ps()
            )));
        }
        if (sectors == 0) != (operation == Operation::Flush) {
            return Err(reported(
                "invalid length: a flush must have length 0, and every other request more than 0".to_owned(),
            ));
        }
        let tag = state.next;
        let request = Request { tag, fua, ..Request::new(Time(at), operation, sector, sectors) };
        enter(py, None, |frontend| {
            if step_to(&mut *state.device, Time(at), frontend) {
                state.device.advance(Time(at));
                state.device.submit(Time(at), request);
            }
            Ok(())
        })?;
        state.next += 1;
        state.check_policies(py)?;
        Ok(tag)
    }

    /// Processes all events up to and at `until`, and sets the clock to `until`. `None`: processes all events, and
    /// leaves the clock at the last one.
    #[pyo3(signature = (until, *, progress))]
    fn advance(&self, py: Python<'_>, until: Option<u64>, progress: Option<Py<PyAny>>) -> PyResult<()> {
        if until.is_some_and(|until| Time(until) > Time::LAST) {
            let text = format!("the end of simulated time is {} ps", Time::LAST.ps());
            return Err(exception(py, "WorkloadError", &text));
        }
        let state = &mut *self.write(py)?;
        let calls_python = state.device.devices().any(|device| calls_python(device.config()));
        enter_as(py, calls_python, progress, |frontend| {
            frontend.begin("running");
            let came_there = step_to(&mut *state.device, until.map_or(Time::LAST, Time), frontend);
            if let (Some(until), true) = (until, came_there) {
                state.device.advance(Time(until));
            }
            Ok(())
        })?;
        state.check_policies(py)
    }

    /// Returns the completions since the last call, as a table like the requests of a run.
    fn completions(&self, py: Python<'_>) -> PyResult<PyArrowType<PyTable>> {
        let state = &mut *self.write(py)?;
        let mut completions: Vec<Completion> = Vec::new();
        let mut breakdowns: Vec<Breakdown> = Vec::new();
        state.device.take_completions(&mut completions);
        state.device.take_breakdowns(&mut breakdowns);
        let table = Batches::new(&requests::fields(), Vec::new());
        let mut writer = RequestsWriter::to(table, &["all".to_owned()], BATCH);
        let written = completions.iter().enumerate().try_for_each(|(index, c)| writer.write(c, breakdowns.get(index)));
        let table = written.and_then(|()| writer.finish(None));
        table.map(PyArrowType).map_err(|error| exception(py, "OutputError", &error.to_string()))
    }

    /// Returns another device with the same state and the same future.
    fn fork(&self, py: Python<'_>) -> PyResult<Simulator> {
        let from = &*self.read(py)?;
        let fork = enter(py, None, |_| {
            let (device, state, inputs) = (from.device.clone(), from.state.clone(), from.inputs.clone());
            Ok(State { device, next: from.next, state, inputs })
        })?;
        fork.check_policies(py)?;
        Ok(Simulator::new(fork))
    }

    /// Returns another device in the same state. All options that shape the state must be equal.
    #[pyo3(signature = (device, *, seed, attribution))]
    fn in_same_state(
        &self,
        py: Python<'_>,
        device: &DeviceConfig,
        seed: u64,
        attribution: bool,
    ) -> PyResult<Simulator> {
        let from = &*self.read(py)?;
        enter(py, None, |_| {
            let chosen = &device.chosen;
            let other = state::in_same_state(&from.device, chosen, array_options(chosen, seed, attribution));
            let device = other.map_err(|error| Subject::Precondition.stopped(Failure::mistake(error)))?;
            Ok(Simulator::new(State { device, next: 0, state: from.told_state(), inputs: from.inputs.clone() }))
        })
    }

    /// Writes the state to a file.
    #[pyo3(signature = (path, *, progress))]
    fn save(&self, py: Python<'_>, path: PathBuf, progress: Option<Py<PyAny>>) -> PyResult<()> {
        let from = &*self.read(py)?;
        enter(py, progress, |frontend| {
            let output = Named { called: path.display().to_string(), path: path.clone() };
            refuse_overwrites(&from.inputs, &[output]).map_err(Subject::Options.stop())?;
            let place = state::Place::open(&path, frontend).map_err(Subject::Output.stop())?;
            place.write(&from.device, &from.told_state(), frontend).map_err(Subject::Output.stop())
        })
    }

    /// Returns a device in the state of a file.
    #[staticmethod]
    #[pyo3(signature = (path, device, *, seed, attribution, progress))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        device: &DeviceConfig,
        seed: u64,
        attribution: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Simulator> {
        enter(py, progress, |frontend| {
            let chosen = &device.chosen;
            let loaded = state::load(&path, chosen, array_options(chosen, seed, attribution), frontend);
            let (device, state) = loaded.map_err(Subject::Precondition.stop())?;
            let inputs = files::of_state(chosen, "none", seed).map_err(Subject::Device.stop())?;
            Ok(Simulator::new(State { device, next: 0, state, inputs }))
        })
    }

    /// Returns the counters since the device was created, with their names. Counters of an array are sums over its
    /// members.
    fn counters(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        let state = self.read(py)?;
        let counters = state.device.devices().fold(Counters::default(), |sum, device| sum.plus(&device.ftl().counters));
        let [switch, partial, full] = counters.merges;
        let totals = [
            ("units_moved", counters.units_moved()),
            ("pages_read", counters.pages_read_total()),
            ("pages_programmed", counters.pages_programmed_total()),
            ("switch_merges", switch),
            ("partial_merges", partial),
            ("full_merges", full),
            ("log_blocks_reclaimed", counters.log_blocks.reclaimed),
            ("log_blocks_associativity", counters.log_blocks.logical_blocks),
        ];
        let fields = serde_json::to_value(counters).unwrap_or_default();
        let single =
            fields.as_object().into_iter().flatten().filter_map(|(name, of)| Some((name.clone(), of.as_u64()?)));
        Ok(single.chain(totals.map(|(name, count)| (name.to_owned(), count))).collect())
    }

    /// Returns the blocks, one row per block.
    fn blocks(&self, py: Python<'_>) -> PyResult<PyArrowType<PyTable>> {
        let state = self.read(py)?;
        let planes = &state.single(py, "the table of blocks")?.ftl().blocks;
        let blocks = planes.all();
        let life = |state: BlockState| match state {
            BlockState::Free => 0_u8,
            BlockState::Open => 1,
            BlockState::Closed => 2,
            BlockState::Victim => 3,
            BlockState::AwaitingErase => 4,
            BlockState::Logical => 5,
            BlockState::Failed => 6,
            BlockState::Bad => 7,
            BlockState::WornOut => 8,
        };
        let ids = || (0..blocks.len() as u32).map(BlockId);
        table(
            py,
            vec![
                ("plane", Arc::new(ids().map(|id| planes.plane_of(id).0).collect::<UInt32Array>()) as ArrayRef),
                ("state", Arc::new(blocks.iter().map(|block| life(block.state)).collect::<UInt8Array>())),
                ("valid", Arc::new(blocks.iter().map(|block| block.valid).collect::<UInt16Array>())),
                ("erases", Arc::new(blocks.iter().map(|block| block.erases).collect::<UInt32Array>())),
            ],
        )
    }

    /// Returns the physical addresses, one row per address, in ascending order.
    fn units(&self, py: Python<'_>) -> PyResult<PyArrowType<PyTable>> {
        let state = self.read(py)?;
        let ftl = state.single(py, "the table of units")?.ftl();
        let (states, owners) = py.detach(|| units(ftl));
        table(
            py,
            vec![
                ("state", Arc::new(UInt8Array::from(states)) as ArrayRef),
                ("lpn", Arc::new(Int64Array::from(owners))),
            ],
        )
    }

    /// Returns the physical address of each mapping unit, -1 if it is unmapped, or -2 if it is in a write slot.
    fn map(&self, py: Python<'_>) -> PyResult<PyArrowType<PyTable>> {
        let state = self.read(py)?;
        let map = &state.single(py, "the map")?.ftl().map;
        let place = |lpn| match map.get(Lpn(lpn)) {
            Location::Unmapped => -1,
            Location::Slot(_) => -2,
            Location::Flash(ppn) => i64::from(ppn.0),
        };
        let places: Int64Array = py.detach(|| (0..map.len()).map(place).collect());
        table(py, vec![("place", Arc::new(places) as ArrayRef)])
    }
}

/// Returns the header of a saved state, as JSON.
#[pyfunction]
pub fn state_info(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    enter(py, None, |frontend| {
        let head = state::head(&path, &frontend.stop()).map_err(Subject::Precondition.stop())?;
        serde_json::to_string(&head).map_err(|error| Subject::Precondition.stopped(Failure::fault(error)))
    })
}

/// Processes all events up to `limit`, and leaves the clock at the last one. Returns `false` if it was interrupted.
fn step_to(ssd: &mut (impl Ssd + ?Sized), limit: Time, frontend: &Frontend) -> bool {
    while let Some(at) = ssd.next_event().filter(|at| *at <= limit) {
        ssd.advance(at);
        if frontend.wants_end() || ssd.fault().is_some() {
            return false;
        }
    }
    true
}

fn table(py: Python<'_>, columns: Vec<(&str, ArrayRef)>) -> PyResult<PyArrowType<PyTable>> {
    let batch = RecordBatch::try_from_iter(columns);
    let table = batch.and_then(|batch| PyTable::try_new(vec![batch.clone()], batch.schema()));
    table.map(PyArrowType).map_err(|error| exception(py, "OutputError", &error.to_string()))
}

/// Returns the state of each physical address (0 free, 1 valid, 2 invalid), and its mapping unit or -1.
fn units(ftl: &Ftl) -> (Vec<u8>, Vec<i64>) {
    let blocks = &ftl.blocks;
    let places = (blocks.first_unit(BlockId(blocks.all().len() as u32)).0) as usize;
    let (mut states, mut owners) = (vec![0; places], vec![-1; places]);
    let current = current(ftl);
    for (index, block) in blocks.all().iter().enumerate() {
        let id = BlockId(index as u32);
        let first = blocks.first_unit(id).0;
        let units = blocks.size_of(id).data_units;
        let written = match block.state {
            BlockState::Free | BlockState::Bad => 0,
            BlockState::Logical => current[index],
            BlockState::Open => blocks.frontier_in(id).map_or(units, |at| units - blocks.room(at)),
            _ => units,
        };
        for place in first..first + written {
            states[place as usize] = if blocks.is_valid(Ppn(place)) { 1 } else { 2 };
            let owner = ftl.map.owner(Ppn(place));
            // Other numbers are padding or parts of the map.
            owners[place as usize] = if owner < ftl.map.len() { i64::from(owner) } else { -1 };
        }
    }
    (states, owners)
}

/// Returns the number of units written to each block to which the mapping scheme continues to write. For all other
/// blocks, returns the size of the block, because their missing units count as invalid.
fn current(ftl: &Ftl) -> Vec<u32> {
    let mut written = vec![ftl.blocks.data_units(); ftl.blocks.all().len()];
    ftl.scheme().blocks(ftl, &mut |kept| written[kept.block.index()] = kept.units);
    written
}
