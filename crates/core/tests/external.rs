//! Policies of another program: with the same choices, results equal those of built-in policies, and invalid choices
//! are refused.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use crate::common::{Load, build, device_config, drain, fill, submit, units};
use floatgate_core::device_file::{DeviceConfig, load_with};
use floatgate_core::internals::ReadsBeforeWrites;
use floatgate_core::laws;
use floatgate_core::mapping::{
    Bound, Change, Context, Ended, ExternalMapping, Ftl, InHand, KeptBlock, LookUp, Mapping, Place,
    Program as ProgramOf, Recovering, SchemeReport, Step, Target,
};
use floatgate_core::policies::{
    AllocationPolicy, BlockView, Built, Candidates, Cause, Class, EvictionPolicy, Externals, Index, LunQueue, Needs,
    Offer, Order, Outside, PlaneSet, Provider, Queued, RegionView, SchedulerPolicy, TemperaturePolicy, TriggerPolicy,
    VictimPolicy, Wanted, WearPolicy, Written, position,
};
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::saved_state::{Reader, StateError, Writer};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, TransactionId};
use floatgate_core::sim::request::{Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::source::{Pace, Source};
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, NoWatcher, Options, RunError, Ssd, run};
use floatgate_core::summary::{Precondition as SavedFrom, Reached};

/// A policy whose name determines what it does.
struct Does {
    what: String,
    calls: u32,
    /// Entries of the buffer, from the least to the most recently used.
    used: Vec<u32>,
    order: Order,
    error: Option<Cause>,
}

fn failed(text: &str) -> Cause {
    Arc::new(std::io::Error::other(text.to_owned()))
}

impl Does {
    fn of(wanted: Wanted) -> Result<Does, Cause> {
        let what = wanted.config.name.clone();
        if what == "cannot be made" {
            return Err(failed("not made"));
        }
        let error = (what == "has no ranks").then(|| failed("not ranked"));
        Ok(Does { what, calls: 0, used: Vec::new(), order: Order::by_number(wanted.device), error })
    }

    /// Chooses a position, or fails and returns 0.
    fn position(&mut self, count: usize) -> usize {
        self.calls += 1;
        let chosen = match self.what.as_str() {
            "last" => Ok(count as i64 - 1),
            "behind" => Ok(count as i64),
            "negative" => Ok(-1),
            "fails later" if self.calls > 20 => Err(failed("that was enough")),
            _ => Ok(0),
        };
        let chosen = chosen.and_then(|chosen| position(chosen, count + 1, "things"));
        chosen.unwrap_or_else(|cause| {
            self.error = Some(cause);
            0
        })
    }

    fn touch(&mut self, entry: u32) {
        self.used.retain(|&other| other != entry);
        self.used.push(entry);
    }
}

impl Clone for Does {
    fn clone(&self) -> Does {
        let error = if self.what == "cannot be forked" { Some(failed("not forked")) } else { self.error.clone() };
        let (what, used, order) = (self.what.clone(), self.used.clone(), self.order.clone());
        Does { what, calls: self.calls, used, order, error }
    }
}

/// Chooses like `greedy` from the columns of closed blocks, after a comparison with the views of these blocks.
fn greedy_in_columns(view: &RegionView) -> BlockId {
    let Candidates { columns, first, count } = view.candidates().expect("columns");
    assert_eq!(count, view.closed_count() as usize);
    assert_eq!(view.closed_blocks().count(), count);
    for (row, block) in (first..).zip(view.closed_blocks()) {
        let of = view.block(block);
        assert_eq!(u32::from(columns.valid[row].load(Relaxed)), of.valid);
        let own = [&columns.block, &columns.erases].map(|column| column[row].load(Relaxed));
        assert_eq!(own, [block.0, of.erases]);
        let own = [&columns.closed, &columns.changed].map(|column| column[row].load(Relaxed));
        assert_eq!(own, [of.age.closed, of.age.changed]);
    }
    let order = (0..count).min_by_key(|row| columns.order[first + row].load(Relaxed));
    view.closed_at(order.expect("a closed block")).expect("a closed block")
}

impl VictimPolicy for Does {
    fn index(&self) -> Index {
        match self.what.as_str() {
            what if what.starts_with("columns") => Index::Columns,
            "oldest" => Index::Closing,
            _ => Index::Valid,
        }
    }
    fn has_ages(&self) -> bool {
        true
    }
    fn choose(&mut self, view: &RegionView) -> Option<BlockId> {
        if self.index() == Index::Columns {
            self.calls += 1;
            if self.what == "columns until it fails" && self.calls > 20 {
                self.error = Some(failed("that was enough"));
            }
            return Some(greedy_in_columns(view));
        }
        let known: Vec<BlockView> = view.closed_blocks().map(|block| view.block(block)).collect();
        assert!(self.what == "oldest" || known.is_sorted_by_key(|block| block.valid));
        assert!(known.iter().all(|block| block.age.closed <= block.age.changed && block.age.changed <= view.clock()));
        assert_eq!(known.len(), view.closed_count() as usize);
        if self.what == "none" {
            return None;
        }
        let position = self.position(known.len());
        Some(known.get(position).map_or(BlockId(u32::MAX), |block| block.block))
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl TriggerPolicy for Does {
    fn wants(&mut self, view: &RegionView) -> bool {
        assert!(view.free_blocks() > 1, "called although garbage collection is required");
        let invalid = |block| view.units() - view.valid(block);
        assert_eq!(
            view.closed_blocks().map(invalid).sum::<u32>(),
            view.invalid_units(),
            "the view has all closed blocks"
        );
        self.position(1);
        self.what != "never"
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl WearPolicy for Does {
    fn needs(&self) -> Needs {
        Needs { picks: true, ..Needs::default() }
    }
    fn pick_free(&mut self, view: &RegionView, first: &[BlockId]) -> usize {
        let erases = |&position: &usize| view.erases(first[position]);
        match self.what.as_str() {
            "least worn" => (0..first.len()).min_by_key(erases).expect("a free block"),
            "most worn" => (0..first.len()).max_by_key(erases).expect("a free block"),
            _ => self.position(first.len()),
        }
    }
    fn allows(&mut self, view: &RegionView, victim: BlockId) -> bool {
        assert!(view.valid(victim) <= view.units(), "the view has the victim");
        self.what != "even blocks" || victim.0.is_multiple_of(2)
    }
    fn erased(&mut self, view: &RegionView, block: BlockId) -> Option<BlockId> {
        let is_worn = f64::from(view.erases(block)) > view.mean_erases();
        match self.what.as_str() {
            "migrates" if is_worn => view.closed_blocks().min_by_key(|&block| view.erases(block)),
            "no block" => Some(block),
            _ => None,
        }
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl AllocationPolicy for Does {
    fn home(&self, stripe: u32) -> Option<PlaneId> {
        let planes = self.order.len();
        match self.what.as_str() {
            "s1" => Some(PlaneId(stripe % planes)),
            "short" => (stripe == 0).then_some(PlaneId(0)),
            "one plane" => Some(PlaneId(0)),
            "no plane" => Some(PlaneId(planes)),
            _ => None,
        }
    }
    fn pools(&self) -> u32 {
        if self.what == "pools" { 2 } else { 1 }
    }
    fn choose(&mut self, _: u32, candidates: &PlaneSet) -> Option<PlaneId> {
        let planes: Vec<u32> = candidates.iter().collect();
        let position = self.position(planes.len());
        (self.what != "none").then(|| PlaneId(planes.get(position).copied().unwrap_or(u32::MAX)))
    }
    fn order(&self) -> &Order {
        &self.order
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl TemperaturePolicy for Does {
    fn classify(&mut self, written: Written) -> u8 {
        let class = self.position(2) as u8;
        if self.what == "odd" { (written.lpn / 4 % 2) as u8 } else { class }
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

impl EvictionPolicy for Does {
    fn on_insert(&mut self, entry: u32, _: Lpn, _: bool, _: bool) {
        self.touch(entry);
    }
    fn on_access(&mut self, entry: u32, _: bool, _: bool) {
        self.touch(entry);
    }
    fn on_clean(&mut self, _: u32) {}
    fn on_remove(&mut self, entry: u32) {
        self.used.retain(|&other| other != entry);
    }
    fn take(&mut self, victims: &mut Vec<u32>) {
        match self.what.as_str() {
            "nothing" => {}
            "twice" => victims.extend([self.used[0]; 2]),
            "no entry" => victims.push(u32::MAX),
            _ => victims.push(self.used.remove(0)),
        }
    }
}

impl SchedulerPolicy for Does {
    fn rank(&self, class: Class) -> u8 {
        match (self.what.as_str(), class) {
            ("no rank", Class::HostProgram) => 4,
            ("reads before writes", class) => ReadsBeforeWrites.rank(class),
            // The ranks of `read-first`.
            (_, Class::HostRead | Class::MapRead) => 0,
            (_, Class::UrgentGc | Class::Summary) => 1,
            _ => 2,
        }
    }
    fn reconsiders(&self) -> bool {
        self.what == "reads before writes"
    }
    fn picks(&self) -> bool {
        self.what != "ranks"
    }
    fn pick(&mut self, queue: &LunQueue, _: Time) -> Option<TransactionId> {
        assert_ne!(self.what, "ranks", "called although `picks` is false");
        let count = queue.len();
        assert!(!queue.is_empty() && queue.iter().count() == count);
        match self.what.as_str() {
            "leaves it" | "reads before writes" => None,
            "writes" => queue.first(Class::HostProgram).map(|queued| queued.id),
            _ => {
                let position = self.position(count);
                Some(queue.as_slice().get(position).map_or(TransactionId(u32::MAX), |queued| queued.id))
            }
        }
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
}

struct Program;

impl Provider for Program {
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        let does = Does::of(wanted)?;
        Ok(match wanted.path {
            "gc.victim" => Built::new::<dyn VictimPolicy>(does),
            "gc.trigger" => Built::new::<dyn TriggerPolicy>(does),
            "gc.wear" => Built::new::<dyn WearPolicy>(does),
            "temperature" => Built::new::<dyn TemperaturePolicy>(does),
            "allocation" => Built::new::<dyn AllocationPolicy>(does),
            "buffer.eviction" => Built::new::<dyn EvictionPolicy>(does),
            _ => Built::new::<dyn SchedulerPolicy>(does),
        })
    }
}

/// Returns the options of a device with the policies of a program.
fn with(provider: impl Provider + 'static) -> Options {
    Options { externals: Externals::by(Arc::new(provider)), ..Options::default() }
}

/// Spare for wear policies, which may migrate data and then have one more open block.
const SPARE: &str = "capacity.spare=0.3";
const SMALL: [&str; 4] = ["geometry.blocks=24", "geometry.pages=16", "gc.soft_threshold=3", "gc.hard_threshold=1"];

/// Returns the small device with a policy.
fn config(set: &[&str], path: &str, policy: &str) -> DeviceConfig {
    let chosen = format!("{path}={policy}");
    let overrides: Vec<&str> = SMALL.iter().chain(set).copied().chain([chosen.as_str()]).collect();
    device_config(&overrides)
}

fn external(name: &str) -> String {
    format!("{{ external = {{ name = \"{name}\" }} }}")
}

/// Runs random writes and reads on a full device. Returns the device, and its counters or the fault.
fn work(config: DeviceConfig) -> (Device, Result<String, RunError>) {
    let mut device = build(config, with(Program));
    let logical = device.config().logical_units() as u32;
    fill(&mut device, logical);
    let mut rng = Rng::new(1, "test");
    let made = units(&device, Operation::Write, 0, 1);
    let load = Load::closed(8, 6_000, move || {
        let unit = rng.below(u64::from(logical));
        let operation = if unit.is_multiple_of(3) { Operation::Read } else { Operation::Write };
        floatgate_core::sim::request::Request { operation, lba: unit * u64::from(made.sectors), ..made }
    });
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(load)];
    let outcome = run(&mut device, &mut sources, &mut NoWatcher);
    device.check_invariants().unwrap();
    let reported = outcome.map(|outcome| format!("{:?} {:?} {:?}", device.now(), outcome.counters, outcome.dies));
    (device, reported)
}

#[test]
fn equal_choices_give_equal_results() {
    let buffer = ["buffer.capacity=64KiB"];
    for (set, path, own, other) in [
        (&[][..], "gc.victim", "greedy", "first"),
        (&["allocation=dynamic"], "gc.victim", "greedy", "first"),
        (&[], "gc.victim", "greedy", "columns"),
        (&["gc.scope=pool", "allocation.dynamic.scope=chip"], "gc.victim", "greedy", "columns"),
        (&[], "gc.trigger", "threshold", "always"),
        (&[SPARE], "gc.wear", "none", "first"),
        (&[], "allocation", "{ static = { order = \"plane-die-chip-channel\" } }", "s1"),
        (&buffer, "buffer.eviction", "lru", "lru of another program"),
        (&[], "scheduler", "read-first", "ranks"),
        (&[], "scheduler", "read-first", "leaves it"),
        (&[], "scheduler", "reads-before-writes", "reads before writes"),
    ] {
        let (_, built_in) = work(config(set, path, own));
        let (device, its) = work(config(set, path, &external(other)));
        assert_eq!(its.unwrap(), built_in.unwrap(), "{path} = {other}");
        assert!(device.fault().is_none());
    }
}

#[test]
fn choices_of_external_policies_take_effect() {
    for (path, names) in [
        ("gc.victim", ["first", "last"]),
        ("gc.trigger", ["always", "never"]),
        ("allocation", ["first", "last"]),
        ("temperature", ["first", "odd"]),
        ("scheduler", ["first", "last"]),
        ("scheduler", ["leaves it", "writes"]),
    ] {
        let of = |name| {
            work(config(&["capacity.spare=0.4"], path, &external(name))).1.unwrap_or_else(|error| error.to_string())
        };
        assert_ne!(of(names[0]), of(names[1]), "{path}");
    }
}

#[test]
fn invalid_choices_are_refused_with_the_name_of_the_policy() {
    let (buffer, spare) = (["buffer.capacity=64KiB"], ["capacity.spare=0.4"]);
    for (set, path, name, says) in [
        (&[][..], "gc.victim", "behind", "chose block 4294967295, which is not a closed block of plane"),
        (&[], "gc.victim", "none", "chose no block of plane"),
        (&[], "gc.victim", "negative", "chose number -1 of"),
        (&[], "gc.victim", "fails later", "that was enough"),
        (&[], "gc.victim", "columns until it fails", "that was enough"),
        (&[], "gc.victim", "cannot be made", "not made"),
        (&["mapping.scheme.dftl.cache=4KiB", "capacity.spare=0.6"], "gc.victim", "behind", "not a closed block"),
        (&[], "gc.trigger", "fails later", "that was enough"),
        (&[SPARE], "gc.wear", "behind", "free blocks, which are counted from 0"),
        (&[SPARE], "gc.wear", "fails later", "that was enough"),
        (&[SPARE], "gc.wear", "cannot be made", "not made"),
        (&[SPARE], "gc.wear", "no block", "to migrate, which is not a closed block of the region"),
        (&spare, "temperature", "behind", "chose number 2 of 2 classes, which are counted from 0"),
        (&spare, "temperature", "negative", "chose number -1 of"),
        (&spare, "temperature", "fails later", "that was enough"),
        (&spare, "temperature", "cannot be made", "not made"),
        (&[], "allocation", "behind", "chose plane 4294967295: expected one of 4 idle planes"),
        (&[], "allocation", "none", "chose no plane: expected one of 4 idle planes"),
        (&[], "allocation", "pools", "has 2 pools: an external allocation has one"),
        (&[], "allocation", "short", "gave page 1 no plane"),
        (&[], "allocation", "one plane", "gave plane 0 1152 mapping units, of which it can hold"),
        (&[], "allocation", "no plane", "gave page 0 to plane 4: there are 4, counted from 0"),
        (&buffer, "buffer.eviction", "nothing", "chose nothing of 16 units"),
        (&buffer, "buffer.eviction", "twice", "which holds no unit or was chosen twice"),
        (&buffer, "buffer.eviction", "no entry", "chose entry 4294967295"),
        (&[], "scheduler", "behind", "chose transaction 4294967295, which is not in the queue"),
        (&[], "scheduler", "negative", "chose number -1 of"),
        (&[], "scheduler", "fails later", "that was enough"),
        (&[], "scheduler", "cannot be made", "not made"),
        (&[], "scheduler", "no rank", "ranked host-program 4: ranks are 0 to 3, and 0 goes first"),
        (&[], "scheduler", "has no ranks", "not ranked"),
    ] {
        let (device, done) = work(config(set, path, &external(name)));
        let error = done.expect_err(name).to_string();
        assert!(error.starts_with(&format!("{path} `{name}`: ")) && error.contains(says), "{error}");
        assert_eq!(device.fault().map(ToString::to_string), Some(error));
    }
}

/// Offers one policy: key and name.
struct Named(&'static str, &'static str);

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

impl Provider for Named {
    fn offers(&self) -> Vec<Offer> {
        vec![Offer::new::<NoOptions>(self.0, self.1, "The first block.")]
    }
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        Program.build(wanted)
    }
}

#[test]
fn an_offer_does_not_replace_a_built_in_policy() {
    let load = |path, name, set: &str| {
        load_with(&Named(path, name).offers(), "tiny", &[set.to_owned()]).map_err(|error| error.to_string())
    };
    let first = load("gc.victim", "first", "gc.victim=first").unwrap();
    assert_eq!((first.gc.victim.name(), first.externals().len()), ("first", 1));
    assert!(load("gc.victim", "fifo", "gc.victim=fifo").unwrap().externals().is_empty());
    assert!(load("gc", "first", "gc.victim=first").unwrap_err().contains("unknown name `first`"));
    assert!(load("gc.victim", "first", "gc.victim.first.one=1").unwrap_err().contains("`gc.victim.first` has no keys"));
}

#[test]
fn a_contract_checks_all_offered_policies() {
    for (path, name) in [("gc.victim", "first"), ("gc.trigger", "always"), ("temperature", "odd")] {
        laws::offers(&Externals::by(Arc::new(Named(path, name))));
    }
    let broken =
        |path, name| std::panic::catch_unwind(|| laws::offers(&Externals::by(Arc::new(Named(path, name))))).is_err();
    assert!(broken("gc.victim", "fifo"), "the name is taken");
    assert!(broken("gc.victim", "behind"), "it chooses a block that does not exist");
    assert!(broken("gc.trigger", "fails later"));
    assert!(broken("temperature", "behind"), "there is no such class");
}

/// A scheduler that prefers writes delays garbage collection until writes find no free page. These writes leave the
/// queue, so that only garbage collection is left.
#[test]
fn writes_without_room_leave_the_queue() {
    let few = ["gc.hard_threshold=0", "gc.soft_threshold=1"];
    for set in [&few[..], &["allocation=dynamic"], &["gc.pace=proportional"]] {
        let (device, done) = work(config(set, "scheduler", &external("writes")));
        done.unwrap();
        assert!(device.ftl().counters.blocks_erased > 100, "{set:?}");
    }
}

/// Records the queues that it receives, and chooses the operation that arrived last.
#[derive(Clone, Default)]
struct Newest(Arc<Mutex<Vec<Vec<Queued>>>>);

impl Provider for Newest {
    fn build(&self, _: Wanted) -> Result<Built, Cause> {
        Ok(Built::new::<dyn SchedulerPolicy>(self.clone()))
    }
}

impl SchedulerPolicy for Newest {
    fn rank(&self, _: Class) -> u8 {
        1
    }
    fn picks(&self) -> bool {
        true
    }
    fn pick(&mut self, queue: &LunQueue, _: Time) -> Option<TransactionId> {
        self.0.lock().unwrap().push(queue.iter().copied().collect());
        queue.as_slice().last().map(|queued| queued.id)
    }
}

/// Submits requests 10 us apart to a die that programs. Returns the queues that the scheduler received, and the tags in
/// the order of completion.
fn seen(set: &[&str], arriving: [Operation; 4]) -> (Vec<Vec<Queued>>, Vec<u64>) {
    let one_die = ["geometry.channels=1", "geometry.chips=1"];
    let config = config(&[&one_die[..], set].concat(), "scheduler", &external("newest"));
    let newest = Newest::default();
    let mut device = build(config, with(newest.clone()));
    fill(&mut device, 16);
    let start = device.now();
    for (number, operation) in (0..).zip(arriving) {
        let request = units(&device, operation, number, 1);
        submit(
            &mut device,
            start.later(Time(number * 10_000_000)),
            Request { tag: 100 + number, stream: 7, ..request },
        );
    }
    let order = drain(&mut device).iter().map(|completion| completion.request.tag).collect();
    let seen = newest.0.lock().unwrap().clone();
    (seen, order)
}

#[test]
fn a_scheduler_receives_waiting_operations_in_the_order_of_arrival() {
    use Operation::{Read, Write};
    let (seen, order) = seen(&[], [Write, Read, Write, Read]);
    assert_eq!(order, [100, 103, 102, 101], "the last to arrive starts first");
    assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2], "called while there is a choice");
    let classes = [Class::HostRead, Class::HostProgram, Class::HostRead];
    for (number, (queued, class)) in (1..).zip(seen[0].iter().zip(classes)) {
        assert_eq!((queued.class, queued.rank, queued.plane), (class, 1, PlaneId(0)));
        assert_eq!(queued.since, Time(number * 10_000_000));
        assert_eq!((queued.request, queued.stream), (Some(100 + number), Some(7)));
    }
    assert_eq!(seen[1], seen[0][..2], "the others are still queued");
}

/// The other writes of the pool wait for the first one.
#[test]
fn a_scheduler_receives_the_first_write_of_the_pool() {
    use Operation::{Read, Write};
    let (seen, order) = seen(&["allocation=dynamic"], [Write, Write, Read, Write]);
    let first: Vec<_> = seen[0].iter().map(|queued| (queued.class, queued.request, queued.plane)).collect();
    let pooled = (Class::HostProgram, Some(101), PlaneId::NONE);
    assert_eq!(first, [pooled, (Class::HostRead, Some(102), PlaneId(0))]);
    assert_eq!(order, [100, 102, 101, 103]);
}

/// The state of a scheduler is not saved, because an idle device has an empty queue.
#[test]
fn a_device_is_saved_without_its_scheduler() {
    let config = config(&[], "scheduler", &external("last"));
    let (device, done) = work(config.clone());
    done.unwrap();
    let origin = SavedFrom { requested: String::new(), reached: Reached::default() };
    let mut saved = Vec::new();
    device.save(&origin, &mut saved).unwrap();
    let (loaded, _) = Device::load(config, with(Program), &saved[..]).unwrap();
    loaded.check_invariants().unwrap();
}

/// Returns the erase count of each block after the work with a wear policy.
fn erases_with(wear: &str) -> Vec<u32> {
    let (device, done) = work(config(&[SPARE], "gc.wear", wear));
    done.unwrap();
    device.ftl().blocks.all().iter().map(|block| block.erases).collect()
}

/// Returns the variance of the erase counts.
fn spread(erases: &[u32]) -> f64 {
    let mean = erases.iter().sum::<u32>() as f64 / erases.len() as f64;
    erases.iter().map(|&erases| f64::from(erases) - mean).map(|distance| distance * distance).sum::<f64>()
        / erases.len() as f64
}

#[test]
fn choice_of_free_blocks_and_migration_level_wear() {
    let of = |wear| spread(&erases_with(&external(wear)));
    let (least, most, migrates) = (of("least worn"), of("most worn"), of("migrates"));
    assert!(1.2 * least < most, "{least}, and {most} if the most worn block is opened");
    assert!(1.5 * migrates < least, "{migrates} if the least worn blocks are migrated, and {least} if not");
}

#[test]
fn a_refused_victim_is_chosen_only_if_all_are_refused() {
    let erases = erases_with(&external("even blocks"));
    let of = |odd: usize| erases.iter().skip(odd).step_by(2).sum::<u32>();
    assert!(of(1) > 0 && of(0) > 4 * of(1), "{} erases of even blocks, {} of others", of(0), of(1));
}

/// The policy always chooses the block with the most valid units, which reclaims nothing.
#[test]
fn repeated_victims_without_gain_are_a_fault() {
    let error =
        work(config(&[], "gc.victim", &external("last"))).1.expect_err("a policy that reclaims nothing").to_string();
    assert!(error.contains("in succession that gain nothing"), "{error}");
}

#[test]
fn a_failed_fork_is_a_fault_of_the_clone() {
    let (device, done) = work(config(&[], "gc.victim", &external("cannot be forked")));
    done.unwrap();
    let fork = device.clone();
    assert!(device.fault().is_none());
    assert_eq!(fork.fault().map(ToString::to_string).as_deref(), Some("gc.victim `cannot be forked`: not forked"));
    let (device, _) = work(config(&[], "gc.victim", &external("first")));
    assert!(device.clone().fault().is_none());
}

#[test]
fn preconditioning_reports_faults() {
    let mut device = build(config(&[], "gc.victim", &external("fails later")), with(Program));
    let error = precondition(&mut device, Precondition::Steady, 1, &mut |_| true).unwrap_err();
    assert_eq!(error, "gc.victim `fails later`: that was enough");
}

/// A provider without policies.
struct NoPolicies;

impl Provider for NoPolicies {
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        Err(wanted.unknown())
    }
}

/// A provider of a scheduler for any key.
struct OnlySchedulers;

impl Provider for OnlySchedulers {
    fn build(&self, wanted: Wanted) -> Result<Built, Cause> {
        Does::of(wanted).map(Built::new::<dyn SchedulerPolicy>)
    }
}

#[test]
fn missing_policies_are_faults() {
    let paths = ["gc.victim", "gc.trigger", "gc.wear", "allocation", "temperature", "buffer.eviction", "scheduler"];
    for path in paths.into_iter().chain(["mapping.scheme"]) {
        let config = config(&["capacity.spare=0.4", "buffer.capacity=64KiB"], path, &external("mine"));
        let fault = build(config.clone(), with(NoPolicies)).fault().expect("a fault").to_string();
        let says = format!("{path} `mine`: the program that runs the device has no policy `mine` for `{path}`");
        assert_eq!(fault, says);
        let fault = build(config, with(OnlySchedulers)).fault().map(ToString::to_string);
        let says = format!("{path} `mine`: the program built a policy of another family");
        assert_eq!(fault, (path != "scheduler").then_some(says));
    }
}

#[test]
fn a_device_is_not_built_without_the_program_of_its_policy() {
    let config = device_config(&["gc.victim.external.name=mine"]);
    assert_eq!(config.externals().len(), 1);
    let error = Device::new(config, Options::default()).unwrap_err();
    assert!(error.contains("gc.victim: `mine` is not a built-in policy"), "{error}");
    let text = "the file says which, and its text is read again";
    let with = device_config(&["gc.victim={ external = { name = \"mine\", source = \"12\", options = { d = 4 } } }"]);
    let written = serde_json::to_value(&with.gc.victim).unwrap();
    assert_eq!(written.to_string(), r#"{"external":{"name":"mine","source":"12","options":{"d":4}}}"#, "{text}");
    assert_eq!(with.gc.victim.name(), "mine");
    let other = device_config(&["gc.victim={ external = { name = \"mine\", source = \"13\", options = { d = 4 } } }"]);
    assert_ne!(with.digest(), other.digest(), "another source changes the digest");
}

/// A mapping scheme that fails at the first call that changes it.
#[derive(Debug, Default)]
struct Broken {
    error: Option<Cause>,
}

impl<C: Context + ?Sized> Mapping<C> for Broken {
    fn look_up(&mut self, _: &mut C, _: Lpn, _: LookUp) -> bool {
        true
    }
    fn changed(&mut self, _: &mut C, _: Lpn, _: Change) {}
    fn place(&mut self, _: &mut C, _: TransactionId) {
        self.error = Some(failed("no place"));
    }
    fn target(&self, _: &Ftl, _: ProgramOf) -> Target {
        Target { plane: Some(PlaneId(0)), place: Place::Unknown }
    }
    fn bind(&mut self, _: &mut C, _: TransactionId) -> Option<Bound> {
        None
    }
    fn ended(&mut self, _: &mut C, _: Ended) -> bool {
        true
    }
    fn step(&mut self, _: &mut C, _: Step) {}
    fn make_room(&mut self, _: &mut C, _: PlaneId, _: bool) {}
    fn can_go_on(&self, _: &Ftl, _: PlaneId, _: InHand) -> bool {
        true
    }
    fn recover(&mut self, _: &mut dyn Recovering) -> Result<(), String> {
        Ok(())
    }
    fn save(&self, _: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }
    fn load(&mut self, _: &mut Ftl, _: &mut Reader, _: &mut [u16]) -> Result<(), StateError> {
        Ok(())
    }
    fn recount(&self, _: &Ftl) -> Result<(), String> {
        Ok(())
    }
    fn blocks(&self, _: &Ftl, _: &mut dyn FnMut(KeptBlock)) {}
    fn report(&self, _: &Ftl) -> SchemeReport {
        SchemeReport::default()
    }
}

impl Outside<dyn ExternalMapping> for Broken {
    fn policy(&self) -> &(dyn ExternalMapping + 'static) {
        self
    }
    fn policy_mut(&mut self) -> &mut (dyn ExternalMapping + 'static) {
        self
    }
    fn error(&self) -> Option<&Cause> {
        self.error.as_ref()
    }
    fn copy(&self) -> Box<dyn Outside<dyn ExternalMapping>> {
        Box::new(Broken { error: self.error.clone() })
    }
}

/// Builds [`Broken`].
struct Breaks;

impl Provider for Breaks {
    fn build(&self, _: Wanted) -> Result<Built, Cause> {
        Ok(Built::new::<dyn ExternalMapping>(Broken::default()))
    }
}

#[test]
fn a_mapping_scheme_that_fails_ends_the_run() {
    for think in [Time::ZERO, Time::from_ns(1)] {
        let config = config(&[], "mapping.scheme", &external("broken"));
        let mut device = build(config, with(Breaks));
        let write = units(&device, Operation::Write, 0, 1);
        let mut load = Load::closed(8, 6_000, move || write);
        load.pace = Pace::Depth { depth: 8, think };
        let mut sources: Vec<Box<dyn Source>> = vec![Box::new(load)];
        let error = run(&mut device, &mut sources, &mut NoWatcher).err().unwrap();
        assert!(matches!(error, RunError::Policy(_)), "{error}");
    }
}
