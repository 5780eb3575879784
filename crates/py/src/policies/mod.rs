//! Python policies: calls policies that are written in Python.
//!
//! Policies that are called often read columns of the simulator without a copy (`columns`): victim policies,
//! allocations and schedulers. Their arrays are created once and are valid during a call. If the function is compiled,
//! it is called by its address (`compiled`). For the other policies, the data are copied to `bytes`, which the package
//! views as NumPy arrays. No policy can modify an array. A mapping scheme gets the device itself (`scheme`).

mod call;
mod columns;
mod compiled;
mod queue;
pub mod registered;
pub mod scheme;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use floatgate_core::mapping::ExternalMapping;
use floatgate_core::policies::{
    AllocationPolicy, BlockView, Built, Candidates, Cause, Class, Columns, EvictionPolicy, Externals, Index, LunQueue,
    Needs, Offer, Order, PlaneSet, Provider, RegionView, SchedulerPolicy, TemperaturePolicy, TriggerPolicy,
    VictimPolicy, Wanted, WearPolicy, Written, invalid, no_unit, position,
};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, TransactionId};
use floatgate_core::sim::time::Time;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use call::{Called, closed_at, missing, python};
pub use columns::Column;
use columns::{array, from_package, times};
use compiled::Compiled;
use queue::{Ranks, queued_at};

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
        maker.call1(py, (options, wanted.seed, scheme::Shape::of_device(wanted.device)))
    }
}

impl Provider for Policies {
    fn offers(&self) -> Vec<Offer> {
        self.others.offers()
    }

    /// Builds a policy in Python.
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        if let Some(other) = self.other(wanted) {
            return other.build(wanted);
        }
        python(|py| {
            let policy = self.make(py, wanted)?;
            Ok(match wanted.path {
                "gc.victim" => match Compiled::of(py, &policy)? {
                    Some(compiled) => Built::new::<dyn VictimPolicy>(compiled::Victim(compiled)),
                    None => Built::new::<dyn VictimPolicy>(Victim::new(Called::new(py, policy, "choose")?)),
                },
                "gc.trigger" => Built::new::<dyn TriggerPolicy>(Trigger(Called::new(py, policy, "_wants")?)),
                "gc.wear" => Built::new::<dyn WearPolicy>(Wear::new(py, policy)?),
                "allocation" => allocation(py, policy, wanted)?,
                "temperature" => {
                    let classes = wanted.device.temperature.classes();
                    let called = Called::new(py, policy, "_classify")?;
                    Built::new::<dyn TemperaturePolicy>(Classifier { called, classes })
                }
                "mapping.scheme" => Built::new::<dyn ExternalMapping>(scheme::Provided::new(py, policy)?),
                "buffer.eviction" => {
                    Built::new::<dyn EvictionPolicy>(Eviction::new(py, policy, wanted.device.buffer_units())?)
                }
                _ => scheduler(py, policy)?,
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

/// Victim policy.
struct Victim {
    called: Called,
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
    fn new(called: Called) -> Victim {
        Victim { called, seen: None }
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

impl Clone for Victim {
    fn clone(&self) -> Victim {
        Victim::new(self.called.clone())
    }
}

impl VictimPolicy for Victim {
    fn index(&self) -> Index {
        Index::Columns
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        let chosen = view.candidates().ok_or_else(missing).and_then(|candidates| {
            python(|py| {
                let blocks = self.view(py, candidates)?;
                self.called.method.call1(py, (view.plane().0, blocks, view.clock()))?.extract(py)
            })
        });
        self.called.keep(chosen.and_then(|chosen| closed_at(view, chosen)))
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}

#[derive(Clone)]
struct Trigger(Called);

impl TriggerPolicy for Trigger {
    fn wants(&mut self, view: &RegionView) -> bool {
        let wants = python(|py| self.0.method.call1(py, (region(py, view)?,))?.extract(py));
        self.0.keep(wants)
    }

    fn has_ages(&self) -> bool {
        true
    }

    fn error(&self) -> Option<&Cause> {
        self.0.error()
    }
}

/// Plane as a policy sees it: its number, counts, clock and closed blocks.
type Plane<'py> = (u32, (u32, u32, u32), u64, Bound<'py, PyBytes>);

fn region<'py>(py: Python<'py>, view: &RegionView) -> PyResult<Plane<'py>> {
    let counts = (view.free_blocks(), view.closed_count(), view.invalid_units());
    Ok((view.plane().0, counts, view.clock(), closed_blocks(py, view)?))
}

/// Wear-leveling policy, with the methods that it overrides. The other methods are not called.
#[derive(Clone)]
struct Wear {
    called: Called,
    picks: bool,
    refuses: bool,
    migrates: bool,
}

/// Number of bytes per free block. `floatgate.policies` uses the same layout.
const FREE: usize = 8;

impl Wear {
    fn new(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Wear> {
        let (picks, refuses, migrates) = policy.call_method0(py, "_does")?.extract(py)?;
        Ok(Wear { called: Called::new(py, policy, "_pick_free")?, picks, refuses, migrates })
    }
}

impl WearPolicy for Wear {
    fn needs(&self) -> Needs {
        Needs { picks: self.picks, ages: true, ..Needs::default() }
    }

    fn pick_free(&mut self, view: &RegionView, oldest: &[BlockId]) -> usize {
        let chosen = python(|py| {
            let free = PyBytes::new_with(py, oldest.len() * FREE, |bytes| {
                for (row, &block) in bytes.chunks_exact_mut(FREE).zip(oldest) {
                    write(row, &[&block.0.to_ne_bytes(), &view.block(block).erases.to_ne_bytes()]);
                }
                Ok(())
            })?;
            self.called.method.call1(py, (region(py, view)?, free))?.extract(py)
        });
        self.called.keep(chosen.and_then(|chosen| position(chosen, oldest.len(), "free blocks")))
    }

    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool {
        if !self.refuses {
            return true;
        }
        let allows = python(|py| {
            let seen = (region(py, view)?, one_block(py, view, victim)?);
            self.called.policy.call_method1(py, "_allows", seen)?.extract(py)
        });
        self.called.keep(allows)
    }

    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        if !self.migrates {
            return None;
        }
        let chosen = python(|py| {
            let seen = (region(py, view)?, one_block(py, view, block)?);
            self.called.policy.call_method1(py, "_erased", seen)?.extract::<Option<u32>>(py)
        });
        self.called.keep(chosen).map(BlockId)
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}

#[derive(Clone)]
struct Classifier {
    called: Called,
    classes: u32,
}

impl TemperaturePolicy for Classifier {
    fn classify(&mut self, written: Written) -> u8 {
        let Written { lpn, sectors, stream, placement, again, clock } = written;
        let seen = (lpn, sectors, stream, placement, again, clock);
        let class = python(|py| self.called.method.call1(py, seen)?.extract(py));
        let class = class.and_then(|class| position(class, self.classes as usize, "classes"));
        self.called.keep(class) as u8
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}

/// Builds an allocation.
fn allocation(py: Python<'_>, policy: Py<PyAny>, wanted: Wanted) -> PyResult<Built> {
    if policy.getattr(py, "_is_static")?.extract(py)? {
        return Ok(Built::new::<dyn AllocationPolicy>(Planes::new(py, policy, wanted)?));
    }
    let order = Order::by_number(wanted.device);
    Ok(match Compiled::of(py, &policy)? {
        Some(compiled) => Built::new::<dyn AllocationPolicy>(compiled::Allocation::new(compiled, order)),
        None => Built::new::<dyn AllocationPolicy>(Allocation::new(Called::new(py, policy, "choose")?, order)),
    })
}

/// Allocation by a table of planes.
#[derive(Clone)]
struct Planes {
    called: Called,
    /// Indexed by page.
    table: Vec<u32>,
    order: Order,
}

impl Planes {
    fn new(py: Python<'_>, policy: Py<PyAny>, wanted: Wanted) -> PyResult<Planes> {
        let mut called = Called::new(py, policy, "_table")?;
        let pages = wanted.device.stripes();
        let table = called.method.call1(py, (pages,))?;
        let bytes = table.bind(py).cast::<PyBytes>()?.as_bytes().chunks_exact(4);
        let table: Vec<u32> = bytes.map(|plane| u32::from_ne_bytes([plane[0], plane[1], plane[2], plane[3]])).collect();
        if table.len() != pages as usize {
            called.keep::<()>(Err(invalid(format!("gave {} planes for {pages} pages", table.len()))));
        }
        Ok(Planes { called, table, order: Order::by_number(wanted.device) })
    }
}

impl AllocationPolicy for Planes {
    fn home(&self, stripe: u32) -> Option<PlaneId> {
        self.table.get(stripe as usize).copied().map(PlaneId)
    }

    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        candidates.next_from(0).map(PlaneId)
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}

/// Allocation among idle planes.
struct Allocation {
    called: Called,
    order: Order,
    /// Planes of the latest call.
    planes: Arc<Vec<AtomicU32>>,
    /// Arrays of the first planes. Indexed by their number.
    views: Vec<Option<Py<PyAny>>>,
}

impl Allocation {
    fn new(called: Called, order: Order) -> Allocation {
        let rows = order.len() as usize;
        Allocation {
            called,
            order,
            planes: Arc::new((0..rows).map(|_| AtomicU32::new(0)).collect()),
            views: (0..=rows).map(|_| None).collect(),
        }
    }

    /// Returns an array of the candidates, whose positions are the numbers of their planes.
    fn view(&mut self, py: Python<'_>, candidates: &PlaneSet) -> PyResult<(&Py<PyAny>, usize)> {
        let count = self.planes.iter().zip(candidates.iter()).map(|(row, plane)| row.store(plane, Relaxed)).count();
        let view = &mut self.views[count];
        if view.is_none() {
            *view = Some(array(py, &self.planes, &self.planes[..count])?.unbind());
        }
        Ok((view.as_ref().unwrap_or_else(|| unreachable!("it was made")), count))
    }
}

impl Clone for Allocation {
    fn clone(&self) -> Allocation {
        Allocation::new(self.called.clone(), self.order.clone())
    }
}

impl AllocationPolicy for Allocation {
    fn home(&self, _: u32) -> Option<PlaneId> {
        None
    }

    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        let chosen = python(|py| {
            let (planes, count) = self.view(py, candidates)?;
            let planes = planes.clone_ref(py);
            Ok((self.called.method.call1(py, (planes,))?.extract(py)?, count))
        });
        let position = chosen.and_then(|(chosen, count)| position(chosen, count, "planes"));
        let plane = position.map(|position| Some(PlaneId(self.planes[position].load(Relaxed))));
        self.called.keep(plane)
    }

    fn order(&self) -> &Order {
        &self.order
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}

/// Builds a scheduler.
fn scheduler(py: Python<'_>, policy: Py<PyAny>) -> PyResult<Built> {
    let compiled = Compiled::of(py, &policy)?;
    let mut called = Called::new(py, policy, "pick")?;
    let ranks = Ranks::new(py, &mut called)?;
    Ok(match compiled {
        Some(mut pick) => {
            pick.called = called;
            Built::new::<dyn SchedulerPolicy>(compiled::Scheduler::new(pick, ranks))
        }
        None => Built::new::<dyn SchedulerPolicy>(Scheduler { called, ranks, views: queue::Views::new() }),
    })
}

/// Scheduler that chooses in Python.
struct Scheduler {
    called: Called,
    ranks: Ranks,
    views: queue::Views,
}

impl Clone for Scheduler {
    fn clone(&self) -> Scheduler {
        Scheduler { called: self.called.clone(), ranks: self.ranks.clone(), views: queue::Views::new() }
    }
}

impl SchedulerPolicy for Scheduler {
    fn rank(&self, class: Class) -> u8 {
        self.ranks.ranks[class as usize]
    }

    fn reconsiders(&self) -> bool {
        self.ranks.reconsiders
    }

    fn picks(&self) -> bool {
        self.ranks.picks
    }

    fn pick(&mut self, queue: &LunQueue, now: Time) -> Option<TransactionId> {
        let chosen = python(|py| {
            let queue = self.views.of(py, queue)?.clone_ref(py);
            self.called.method.call1(py, (queue, now.0))?.extract::<Option<i64>>(py)
        });
        let chosen = chosen.and_then(|chosen| chosen.map(|chosen| queued_at(queue, chosen)).transpose());
        self.called.keep(chosen)
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
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
    called: Called,
    units: Py<Units>,
    /// True for each of `on_insert`, `on_access`, `on_clean` and `on_remove` that the policy overrides.
    wants: [bool; 4],
}

impl Eviction {
    fn new(py: Python<'_>, policy: Py<PyAny>, entries: u32) -> PyResult<Eviction> {
        let table = Table { clock: 0, units: vec![None; entries as usize] };
        let called = Called::new(py, policy, "_choose")?;
        let units = Eviction::share(py, &called, table)?;
        let wants = called.policy.call_method0(py, "_hooks")?.extract(py)?;
        Ok(Eviction { called, units, wants })
    }

    /// Gives a policy access to the units in the buffer.
    fn share(py: Python<'_>, called: &Called, table: Table) -> PyResult<Py<Units>> {
        let units = Py::new(py, Units(Mutex::new(table)))?;
        called.policy.setattr(py, "_units", units.clone_ref(py))?;
        Ok(units)
    }

    /// Notifies the policy of a change, if it wants this notification.
    fn notify<A>(&mut self, wanted: bool, method: &str, arguments: A)
    where
        A: for<'a> pyo3::call::PyCallArgs<'a>,
    {
        if wanted {
            let called = python(|py| self.called.policy.call_method1(py, method, arguments).map(|_| ()));
            self.called.keep(called);
        }
    }
}

impl Clone for Eviction {
    fn clone(&self) -> Eviction {
        let table = self.units.get().table().clone();
        let mut called = self.called.clone();
        // The copy of a policy that could not be copied is the same policy, and keeps its units.
        let shared = if called.error().is_some() {
            None
        } else {
            let shared = python(|py| Eviction::share(py, &called, table).map(Some));
            called.keep(shared)
        };
        let units = shared.unwrap_or_else(|| Python::attach(|py| self.units.clone_ref(py)));
        Eviction { called, units, wants: self.wants }
    }
}

impl EvictionPolicy for Eviction {
    fn on_insert(&mut self, entry: u32, lpn: Lpn, dirty: bool, read: bool) {
        self.units.get().table().insert(entry, lpn.0, dirty, read);
        self.notify(self.wants[0], "on_insert", (entry, lpn.0, dirty, read));
    }

    fn on_access(&mut self, entry: u32, write: bool, dirty: bool) {
        self.units.get().table().access(entry, write, dirty);
        self.notify(self.wants[1], "on_access", (entry, write, dirty));
    }

    fn on_clean(&mut self, entry: u32) {
        if let Some(unit) = &mut self.units.get().table().units[entry as usize] {
            unit.dirty = false;
        }
        self.notify(self.wants[2], "on_clean", (entry,));
    }

    fn on_remove(&mut self, entry: u32) {
        self.units.get().table().units[entry as usize] = None;
        self.notify(self.wants[3], "on_remove", (entry,));
    }

    fn take(&mut self, victims: &mut Vec<u32>) {
        let chosen: Result<Vec<i64>, Cause> = python(|py| self.called.method.call0(py)?.extract(py));
        let mut table = self.units.get().table();
        let mut take = |entry: i64| {
            let number = u32::try_from(entry).ok().filter(|&number| (number as usize) < table.units.len());
            let number = number.ok_or_else(|| no_unit(entry, table.units.len()))?;
            table.units[number as usize] = None;
            victims.push(number);
            Ok(())
        };
        let taken = chosen.and_then(|chosen| chosen.into_iter().try_for_each(&mut take));
        drop(table);
        self.called.keep(taken);
    }

    fn error(&self) -> Option<&Cause> {
        self.called.error()
    }
}
