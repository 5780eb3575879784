//! Python policies: calls policies that are written in Python.
//!
//! Policies that are called often read columns of the simulator without a copy (`columns`): victim policies,
//! allocations and schedulers. Their arrays are created once and are valid during a call. If the function is compiled,
//! it is called by its address (`compiled`). For the other policies, the data are copied to `bytes`, which the package
//! views as NumPy arrays. No policy can modify an array.

mod call;
mod columns;
mod compiled;
mod queue;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floatgate_core::config::DeviceConfig;
use floatgate_core::external::{
    Cause, ExternalAllocation, ExternalClassifier, ExternalEviction, ExternalMapping, ExternalScheduler,
    ExternalTrigger, ExternalVictim, ExternalWear, Externals, Placing, Provider, Wanted, Written,
};
use floatgate_core::ftl::space::{BlockView, Candidates, Columns, RegionView};
use floatgate_core::sim::id::BlockId;
use floatgate_core::sim::time::Time;
use floatgate_core::work::{Class, LunQueue};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use call::{fork, missing, python};
pub use columns::Column;
use columns::{array, from_package, times};
use compiled::Compiled;

/// Policies of a device: those in Python, and those of the extension module.
pub struct Policies {
    /// Functions that build policies in Python, indexed by the path of their key.
    pub makers: BTreeMap<String, Py<PyAny>>,
    /// Provider of the other policies.
    pub others: Externals,
}

impl Policies {
    /// Returns the provider of the wanted policy if the policy is not in Python.
    fn other(&self, wanted: Wanted) -> Option<&dyn Provider> {
        if self.makers.contains_key(wanted.path) { None } else { self.others.provider(wanted).ok() }
    }

    /// Builds the wanted policy.
    fn make(&self, py: Python<'_>, wanted: Wanted) -> PyResult<Py<PyAny>> {
        let maker = self.makers.get(wanted.path).ok_or_else(|| {
            PyTypeError::new_err(format!("{} `{}` is not a policy of this device", wanted.path, wanted.config.name))
        })?;
        let options = serde_json::Value::from(wanted.config.options.clone()).to_string();
        maker.call1(py, (options, wanted.seed))
    }
}

impl Provider for Policies {
    fn victim(&self, wanted: Wanted) -> Result<Box<dyn ExternalVictim>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.victim(wanted);
        }
        python(|py| {
            let policy = self.make(py, wanted)?;
            Ok(match Compiled::of(py, &policy)? {
                Some(compiled) => Box::new(compiled::Victim(compiled)) as Box<dyn ExternalVictim>,
                None => Box::new(Victim::new(py, policy)?),
            })
        })
    }

    fn trigger(&self, wanted: Wanted) -> Result<Box<dyn ExternalTrigger>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.trigger(wanted);
        }
        python(|py| Ok(Box::new(Trigger(self.make(py, wanted)?)) as Box<dyn ExternalTrigger>))
    }

    fn wear(&self, wanted: Wanted) -> Result<Box<dyn ExternalWear>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.wear(wanted);
        }
        python(|py| {
            let policy = self.make(py, wanted)?;
            let (picks, refuses, migrates) = policy.call_method0(py, "_does")?.extract(py)?;
            Ok(Box::new(Wear { policy, picks, refuses, migrates }) as Box<dyn ExternalWear>)
        })
    }

    fn allocation(&self, wanted: Wanted, pages: u32) -> Result<Placing, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.allocation(wanted, pages);
        }
        python(|py| {
            let policy = self.make(py, wanted)?;
            if !policy.getattr(py, "_is_static")?.extract::<bool>(py)? {
                return Ok(Placing::Choice(match Compiled::of(py, &policy)? {
                    Some(compiled) => Box::new(compiled::Allocation(compiled)),
                    None => Box::new(Allocation::new(py, policy)?),
                }));
            }
            let table = policy.call_method1(py, "_table", (pages,))?;
            let bytes = table.bind(py).cast::<PyBytes>()?.as_bytes().chunks_exact(4);
            Ok(Placing::Table(
                bytes.map(|plane| u32::from_ne_bytes([plane[0], plane[1], plane[2], plane[3]])).collect(),
            ))
        })
    }

    fn classifier(&self, wanted: Wanted) -> Result<Box<dyn ExternalClassifier>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.classifier(wanted);
        }
        python(|py| Ok(Box::new(Classifier(self.make(py, wanted)?)) as Box<dyn ExternalClassifier>))
    }

    fn eviction(&self, wanted: Wanted, entries: u32) -> Result<Box<dyn ExternalEviction>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.eviction(wanted, entries);
        }
        python(|py| {
            let units = Units(Mutex::new(Table { clock: 0, units: vec![None; entries as usize] }));
            let eviction = Eviction::new(py, self.make(py, wanted)?, Py::new(py, units)?)?;
            Ok(Box::new(eviction) as Box<dyn ExternalEviction>)
        })
    }

    /// A mapping scheme moves data, and cannot be written in Python.
    fn mapping(&self, wanted: Wanted, device: &DeviceConfig) -> Result<Box<dyn ExternalMapping>, Cause> {
        match self.other(wanted) {
            Some(other) => other.mapping(wanted, device),
            None => Err(wanted.unknown()),
        }
    }

    fn scheduler(&self, wanted: Wanted) -> Result<Box<dyn ExternalScheduler>, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.scheduler(wanted);
        }
        python(|py| {
            let policy = self.make(py, wanted)?;
            let (picks, reconsiders) = policy.call_method0(py, "_picks")?.extract(py)?;
            Ok(match Compiled::of(py, &policy)? {
                Some(pick) => {
                    let queue = Arc::new(queue::Queue::new(64));
                    Box::new(compiled::Scheduler { pick, reconsiders, queue }) as Box<dyn ExternalScheduler>
                }
                None => Box::new(Scheduler::new(py, policy, picks, reconsiders)?),
            })
        })
    }
}

/// Writes numbers one after another.
fn write(into: &mut [u8], numbers: &[&[u8]]) {
    let mut at = 0;
    for number in numbers {
        into[at..at + number.len()].copy_from_slice(number);
        at += number.len();
    }
}

/// Number of bytes per block. `floatgate.policies` uses the same layout.
const BLOCK: usize = 32;

/// Returns the closed blocks of a region, one row per block.
fn closed_blocks<'py>(py: Python<'py>, view: &RegionView) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, view.closed_count() as usize * BLOCK, |bytes| {
        bytes.chunks_exact_mut(BLOCK).zip(view.closed_blocks()).for_each(|(row, block)| write_block(row, view, block));
        Ok(())
    })
}

fn write_block(row: &mut [u8], view: &RegionView, block: BlockId) {
    let BlockView { block, valid, erases, age } = view.block(block);
    let (closed, changed) = (age.closed.to_ne_bytes(), age.changed.to_ne_bytes());
    let (block, valid, erases) = (block.0.to_ne_bytes(), valid.to_ne_bytes(), erases.to_ne_bytes());
    write(row, &[&closed, &changed, &block, &valid, &erases]);
}

/// Returns a block of a region, as a row.
fn one_block<'py>(py: Python<'py>, view: &RegionView, block: BlockId) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, BLOCK, |bytes| {
        write_block(bytes, view, block);
        Ok(())
    })
}

/// Victim policy, with its bound method `choose`.
struct Victim {
    policy: Py<PyAny>,
    choose: Py<PyAny>,
    seen: Option<Seen>,
}

/// Columns of a device, and the views that were made of them: one for each region and number of closed blocks.
struct Seen {
    columns: Arc<Columns>,
    views: BTreeMap<(usize, usize), Py<PyAny>>,
}

/// Maximum number of views that are kept. A region has few numbers of closed blocks once a device is full.
const MAX_VIEWS: usize = 1 << 14;

impl Victim {
    fn new(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Victim> {
        let choose = policy.getattr(py, "choose")?;
        Ok(Victim { policy, choose, seen: None })
    }

    /// Returns a view of the closed blocks of a region.
    fn view<'py>(&mut self, py: Python<'py>, candidates: Candidates) -> PyResult<Bound<'py, PyAny>> {
        let Candidates { columns, first, count } = candidates;
        if self.seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(&seen.columns, columns)) {
            self.seen = None;
        }
        let seen = self.seen.get_or_insert_with(|| Seen { columns: Arc::clone(columns), views: BTreeMap::new() });
        if let Some(view) = seen.views.get(&(first, count)) {
            return Ok(view.bind(py).clone());
        }
        if seen.views.len() >= MAX_VIEWS {
            seen.views.clear();
        }
        let at = first..first + count;
        let view = from_package(py, "Blocks")?.call1((
            array(py, columns, &columns.block[at.clone()])?,
            array(py, columns, &columns.valid[at.clone()])?,
            array(py, columns, &columns.erases[at.clone()])?,
            times(py, columns, &columns.closed[at.clone()])?,
            times(py, columns, &columns.changed[at.clone()])?,
            array(py, columns, &columns.order[at])?,
        ))?;
        seen.views.insert((first, count), view.clone().unbind());
        Ok(view)
    }
}

impl ExternalVictim for Victim {
    fn reads_columns(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Result<i64, Cause> {
        let candidates = view.candidates().ok_or_else(missing)?;
        python(|py| {
            let blocks = self.view(py, candidates)?;
            self.choose.call1(py, (view.plane().0, blocks, view.clock()))?.extract(py)
        })
    }

    fn fork(&self) -> Result<Box<dyn ExternalVictim>, Cause> {
        python(|py| Ok(Box::new(Victim::new(py, fork(py, &self.policy)?)?) as Box<dyn ExternalVictim>))
    }
}

struct Trigger(Py<PyAny>);

impl ExternalTrigger for Trigger {
    fn wants(&mut self, view: &RegionView) -> Result<bool, Cause> {
        python(|py| self.0.call_method1(py, "_wants", (region(py, view)?,))?.extract(py))
    }

    fn fork(&self) -> Result<Box<dyn ExternalTrigger>, Cause> {
        python(|py| Ok(Box::new(Trigger(fork(py, &self.0)?)) as Box<dyn ExternalTrigger>))
    }
}

/// Plane as a policy sees it: its number, counts, clock and closed blocks.
type Plane<'py> = (u32, (u32, u32, u32), u64, Bound<'py, PyBytes>);

fn region<'py>(py: Python<'py>, view: &RegionView) -> PyResult<Plane<'py>> {
    let counts = (view.free_blocks(), view.closed_count(), view.invalid_units());
    Ok((view.plane().0, counts, view.clock(), closed_blocks(py, view)?))
}

/// Wear-leveling policy, with the methods that it overrides. The other methods are not called.
struct Wear {
    policy: Py<PyAny>,
    picks: bool,
    refuses: bool,
    migrates: bool,
}

/// Number of bytes per free block. `floatgate.policies` uses the same layout.
const FREE: usize = 8;

impl ExternalWear for Wear {
    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> Result<i64, Cause> {
        if !self.picks {
            return Ok(0);
        }
        python(|py| {
            let free = PyBytes::new_with(py, oldest.len() * FREE, |bytes| {
                for (row, &block) in bytes.chunks_exact_mut(FREE).zip(oldest) {
                    write(row, &[&block.0.to_ne_bytes(), &view.block(block).erases.to_ne_bytes()]);
                }
                Ok(())
            })?;
            self.policy.call_method1(py, "_pick_free", (region(py, view)?, free))?.extract(py)
        })
    }

    fn allows(&mut self, view: &RegionView, victim: BlockId) -> Result<bool, Cause> {
        if !self.refuses {
            return Ok(true);
        }
        python(|py| {
            let seen = (region(py, view)?, one_block(py, view, victim)?);
            self.policy.call_method1(py, "_allows", seen)?.extract(py)
        })
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Result<Option<BlockId>, Cause> {
        if !self.migrates {
            return Ok(None);
        }
        let chosen: Option<u32> = python(|py| {
            let seen = (region(py, view)?, one_block(py, view, block)?);
            self.policy.call_method1(py, "_erased", seen)?.extract(py)
        })?;
        Ok(chosen.map(BlockId))
    }

    fn fork(&self) -> Result<Box<dyn ExternalWear>, Cause> {
        let Wear { picks, refuses, migrates, .. } = *self;
        python(|py| {
            let policy = fork(py, &self.policy)?;
            Ok(Box::new(Wear { policy, picks, refuses, migrates }) as Box<dyn ExternalWear>)
        })
    }
}

struct Classifier(Py<PyAny>);

impl ExternalClassifier for Classifier {
    fn classify(&mut self, written: Written) -> Result<i64, Cause> {
        let Written { lpn, sectors, stream, placement, again, clock } = written;
        python(|py| self.0.call_method1(py, "_classify", (lpn, sectors, stream, placement, again, clock))?.extract(py))
    }

    fn fork(&self) -> Result<Box<dyn ExternalClassifier>, Cause> {
        python(|py| Ok(Box::new(Classifier(fork(py, &self.0)?)) as Box<dyn ExternalClassifier>))
    }
}

/// Allocation, with its bound method `choose`.
struct Allocation {
    policy: Py<PyAny>,
    choose: Py<PyAny>,
    /// Planes of the latest call.
    planes: Arc<Vec<AtomicU32>>,
    /// Arrays of the first planes. Indexed by their number.
    views: Vec<Option<Py<PyAny>>>,
}

impl Allocation {
    fn new(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Allocation> {
        let choose = policy.getattr(py, "choose")?;
        Ok(Allocation { policy, choose, planes: Arc::default(), views: Vec::new() })
    }

    /// Returns an array of the planes.
    fn view(&mut self, py: Python<'_>, planes: &[u32]) -> PyResult<&Py<PyAny>> {
        let count = planes.len();
        if count > self.planes.len() {
            self.planes = Arc::new((0..count.next_power_of_two()).map(|_| AtomicU32::new(0)).collect());
            self.views = (0..=self.planes.len()).map(|_| None).collect();
        }
        self.planes.iter().zip(planes).for_each(|(row, plane)| row.store(*plane, Relaxed));
        let view = &mut self.views[count];
        if view.is_none() {
            *view = Some(array(py, &self.planes, &self.planes[..count])?.unbind());
        }
        Ok(view.as_ref().unwrap_or_else(|| unreachable!("it was made")))
    }
}

impl ExternalAllocation for Allocation {
    fn choose(&mut self, planes: &[u32]) -> Result<i64, Cause> {
        python(|py| {
            let planes = self.view(py, planes)?.clone_ref(py);
            self.choose.call1(py, (planes,))?.extract(py)
        })
    }

    fn fork(&self) -> Result<Box<dyn ExternalAllocation>, Cause> {
        python(|py| Ok(Box::new(Allocation::new(py, fork(py, &self.policy)?)?) as Box<dyn ExternalAllocation>))
    }
}

/// Scheduler, with the methods that it overrides.
struct Scheduler {
    policy: Py<PyAny>,
    pick: Py<PyAny>,
    picks: bool,
    reconsiders: bool,
    views: queue::Views,
}

impl Scheduler {
    fn new(py: Python<'_>, policy: Py<PyAny>, picks: bool, reconsiders: bool) -> PyResult<Scheduler> {
        let pick = policy.getattr(py, "pick")?;
        Ok(Scheduler { policy, pick, picks, reconsiders, views: queue::Views::new() })
    }
}

impl ExternalScheduler for Scheduler {
    fn rank(&mut self, class: Class) -> Result<i64, Cause> {
        python(|py| self.policy.call_method1(py, "_rank", (class as u8,))?.extract(py))
    }

    fn reconsiders(&self) -> bool {
        self.reconsiders
    }

    fn picks(&self) -> bool {
        self.picks
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Result<Option<i64>, Cause> {
        python(|py| {
            let queue = self.views.of(py, queue)?.clone_ref(py);
            self.pick.call1(py, (queue, now.0))?.extract(py)
        })
    }

    fn fork(&self) -> Result<Box<dyn ExternalScheduler>, Cause> {
        python(|py| {
            let policy = fork(py, &self.policy)?;
            Ok(Box::new(Scheduler::new(py, policy, self.picks, self.reconsiders)?) as Box<dyn ExternalScheduler>)
        })
    }
}

/// Unit in the buffer. Times are counted in inserts and accesses.
#[derive(Clone, Copy)]
struct Unit {
    lpn: u32,
    inserted: u64,
    used: u64,
    written: u64,
    dirty: bool,
}

#[derive(Clone)]
struct Table {
    clock: u64,
    /// Indexed by entry.
    units: Vec<Option<Unit>>,
}

impl Table {
    fn insert(&mut self, entry: u32, lpn: u32, dirty: bool, read: bool) {
        self.clock += 1;
        let now = self.clock;
        let unit = Unit { lpn, inserted: now, used: now, written: if read { 0 } else { now }, dirty };
        self.units[entry as usize] = Some(unit);
    }

    fn access(&mut self, entry: u32, write: bool, dirty: bool) {
        self.clock += 1;
        let now = self.clock;
        if let Some(unit) = &mut self.units[entry as usize] {
            unit.used = now;
            if write {
                unit.written = now;
            }
            unit.dirty |= dirty;
        }
    }
}

/// Contents of the buffer, for an eviction policy.
#[pyclass(frozen, module = "floatgate._floatgate")]
pub struct Units(Mutex<Table>);

/// Number of bytes per unit. `floatgate.policies` uses the same layout.
const UNIT: usize = 40;

impl Units {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Units {
    /// Returns the number of entries of the buffer. An entry holds at most one unit.
    fn entries(&self) -> usize {
        self.table().units.len()
    }

    /// Returns one row per unit, in the order of the entries.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let table = self.table();
        let there = table.units.iter().filter(|unit| unit.is_some()).count();
        PyBytes::new_with(py, there * UNIT, |bytes| {
            let units = table.units.iter().enumerate().filter_map(|(entry, unit)| Some((entry as u32, (*unit)?)));
            for (row, (entry, of)) in bytes.chunks_exact_mut(UNIT).zip(units) {
                let (inserted, used, written) =
                    (of.inserted.to_ne_bytes(), of.used.to_ne_bytes(), of.written.to_ne_bytes());
                let (entry, lpn, dirty) = (entry.to_ne_bytes(), of.lpn.to_ne_bytes(), [u8::from(of.dirty)]);
                write(row, &[&inserted, &used, &written, &entry, &lpn, &dirty]);
            }
            Ok(())
        })
    }
}

/// Eviction policy, with the notifications that it wants.
struct Eviction {
    policy: Py<PyAny>,
    units: Py<Units>,
    insert: bool,
    access: bool,
    clean: bool,
    remove: bool,
}

impl Eviction {
    fn new(py: Python<'_>, policy: Py<PyAny>, units: Py<Units>) -> PyResult<Eviction> {
        policy.setattr(py, "_units", units.clone_ref(py))?;
        let (insert, access, clean, remove) = policy.call_method0(py, "_hooks")?.extract(py)?;
        Ok(Eviction { policy, units, insert, access, clean, remove })
    }

    /// Notifies the policy of a change, if it wants this notification.
    fn notify<'py, A>(&self, wanted: bool, method: &str, arguments: A) -> Result<(), Cause>
    where
        A: for<'a> pyo3::call::PyCallArgs<'a>,
    {
        if wanted { python(|py| self.policy.call_method1(py, method, arguments).map(|_| ())) } else { Ok(()) }
    }
}

impl ExternalEviction for Eviction {
    fn on_insert(&mut self, entry: u32, lpn: u32, dirty: bool, read: bool) -> Result<(), Cause> {
        self.units.get().table().insert(entry, lpn, dirty, read);
        self.notify(self.insert, "on_insert", (entry, lpn, dirty, read))
    }

    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) -> Result<(), Cause> {
        self.units.get().table().access(entry, write, dirty);
        self.notify(self.access, "on_access", (entry, write, dirty))
    }

    fn on_clean(&mut self, entry: u32) -> Result<(), Cause> {
        if let Some(unit) = &mut self.units.get().table().units[entry as usize] {
            unit.dirty = false;
        }
        self.notify(self.clean, "on_clean", (entry,))
    }

    fn on_remove(&mut self, entry: u32) -> Result<(), Cause> {
        self.units.get().table().units[entry as usize] = None;
        self.notify(self.remove, "on_remove", (entry,))
    }

    fn choose(&mut self, chosen: &mut Vec<i64>) -> Result<(), Cause> {
        *chosen = python(|py| self.policy.call_method0(py, "_choose")?.extract(py))?;
        let mut table = self.units.get().table();
        for &entry in &*chosen {
            // The simulator refuses invalid entries.
            if let Some(unit) = usize::try_from(entry).ok().and_then(|entry| table.units.get_mut(entry)) {
                *unit = None;
            }
        }
        Ok(())
    }

    fn fork(&self) -> Result<Box<dyn ExternalEviction>, Cause> {
        let table = self.units.get().table().clone();
        python(|py| {
            let units = Py::new(py, Units(Mutex::new(table)))?;
            Ok(Box::new(Eviction::new(py, fork(py, &self.policy)?, units)?) as Box<dyn ExternalEviction>)
        })
    }
}
