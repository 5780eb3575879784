//! Policy contracts: checks for tests that a policy obeys the laws of its family.
//!
//! `tests/contract.rs` checks the built-in policies. A program with external policies calls [`offers`] in a test, which
//! checks all policies that its provider offers. Each function panics with the name of a policy that breaks a law.

use std::collections::BTreeMap;

use crate::config::{DeviceConfig, load_with};
use crate::device::{Device, Options};
use crate::durability::flash::Keep;
use crate::external::Externals;
use crate::ftl::space::{BlockState, Role, Space};
use crate::ftl::temperature::written::Written;
use crate::scheduler::RANKS;
use crate::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use crate::sim::request::{Completion, Operation, Request};
use crate::sim::rng::Rng;
use crate::sim::time::Time;
use crate::ssd::Ssd;
use crate::state::{Reader, StateError, Writer};
use crate::work::Class;

/// Checks all policies that a program offers. Device files must be able to name them, they must obey their laws, and a
/// device with them must complete all requests, with the same result in two runs.
///
/// # Panics
///
/// Panics if a policy breaks a law.
pub fn offers(makers: &Externals) {
    for offer in makers.offers() {
        let (path, name) = (offer.path(), offer.name());
        let is_buffered = path.starts_with("buffer.");
        let small = ["geometry.blocks=16", "capacity={ spare = 0.5 }"].map(str::to_owned).into_iter();
        let buffer = is_buffered.then(|| "buffer.capacity=256KiB".to_owned());
        let overrides: Vec<String> = small.chain(buffer).chain([format!("{path}={name}")]).collect();
        let device =
            load_with(&makers.offers(), "tiny", &overrides).unwrap_or_else(|error| panic!("{path}={name}: {error}"));
        let is_named = device.externals().iter().any(|(key, config)| (*key, config.name.as_str()) == (path, name));
        assert!(
            is_named,
            "{path}={name} does not name this policy: its name is in use, or its key is not the key of a policy"
        );
        policies(&device, makers);
    }
}

/// Checks the external policies of a small device. They must obey the laws of their families, and the device must
/// complete all requests, with the same result in two runs.
///
/// # Panics
///
/// Panics if a policy breaks a law.
pub fn policies(device: &DeviceConfig, makers: &Externals) {
    for (path, config) in device.externals() {
        match path {
            "gc.victim" => victim(device, makers),
            "gc.trigger" => trigger(device, makers),
            "temperature" => temperature(device, makers),
            "buffer.eviction" => eviction(device, makers),
            "allocation" => allocation(device, makers),
            "scheduler" => scheduler(device, makers),
            "mapping.scheme" => {
                mapping(device, makers);
                power_cuts(device, makers);
            }
            _ => {}
        }
        let name = &config.name;
        assert_eq!(work(device, makers), work(device, makers), "{path}={name}: two runs have different results");
    }
}

/// Fills a small device, then writes and reads randomly. Returns the time of the last completion.
fn work(config: &DeviceConfig, externals: &Externals) -> Time {
    let mut device = Device::new(config.clone(), Options { externals: externals.clone(), ..Options::default() })
        .unwrap_or_else(|error| panic!("{error}"));
    let (units, per_unit) = (config.logical_units(), config.sectors_per_unit());
    (0..units as u32).for_each(|lpn| device.ftl_mut().write_whole(Lpn(lpn)));
    device.ftl_mut().seal();
    let mut rng = Rng::new(5, "contract");
    let mut completions = Vec::new();
    let requests = 4_000;
    for tag in 0..requests {
        let operation = if rng.below(3) == 0 { Operation::Read } else { Operation::Write };
        let lba = rng.below(units) * u64::from(per_unit);
        let now = device.now();
        device.submit(now, Request { tag, ..Request::new(now, operation, lba, per_unit) });
        while device.outstanding() >= 16 {
            let Some(at) = device.next_event() else { break };
            device.advance(at);
        }
    }
    while let Some(at) = device.next_event() {
        device.advance(at);
    }
    device.take_completions(&mut completions);
    check_fault(&device);
    assert_eq!(completions.len() as u64, requests, "{}", device.explain_stall());
    device.check_invariants().unwrap_or_else(|what| panic!("{what}"));
    completions.iter().map(|completion| completion.finish).max().unwrap_or_default()
}

/// Checks that a mapping scheme loses no data. Writes units wholly and partly, trims them and writes them again at
/// random, in functional mode and in timed mode. Then the last version of each sector must be readable, and all counts
/// must be right.
///
/// # Panics
///
/// Panics if the scheme breaks a law.
pub fn mapping(config: &DeviceConfig, externals: &Externals) {
    let name = config.mapping.scheme.name();
    let mut device =
        Device::new(config.clone(), Options { verify: true, externals: externals.clone(), ..Options::default() })
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    let (units, per_unit) = (config.logical_units(), config.sectors_per_unit());
    let mut expected = vec![0; (units * u64::from(per_unit)) as usize];
    let mut rng = Rng::new(11, "contract");
    let mut version = 0;
    for _ in 0..4 * units {
        let (lpn, first) = (rng.below(units), rng.below(2) as u32 * (per_unit / 2));
        version += 1;
        device.ftl_mut().write(Lpn(lpn as u32), first, per_unit, version);
        let unit = lpn as usize * per_unit as usize;
        expected[unit + first as usize..unit + per_unit as usize].fill(version);
    }
    device.ftl_mut().seal();
    check_fault(&device);
    device.check_invariants().unwrap_or_else(|what| panic!("{name}, without time: {what}"));
    for tag in u64::from(version) + 1..u64::from(version) + 6_000 {
        let (lpn, count) = (rng.below(units), 1 + rng.below(4));
        let lpn = lpn.min(units - count);
        let count = count as u32;
        let first = rng.below(2) as u32 * (per_unit / 2);
        let (operation, lba, sectors) = match rng.below(8) {
            0 => (Operation::Trim, lpn * u64::from(per_unit), count * per_unit),
            _ => (Operation::Write, lpn * u64::from(per_unit) + u64::from(first), count * per_unit - first),
        };
        let now = device.now();
        device.submit(now, Request { tag, ..Request::new(now, operation, lba, sectors) });
        let held = if operation == Operation::Trim { 0 } else { tag as u32 };
        expected[lba as usize..lba as usize + sectors as usize].fill(held);
        while device.outstanding() >= 16 {
            let Some(at) = device.next_event() else { break };
            device.advance(at);
        }
    }
    let finish = |device: &mut Device| {
        while let Some(at) = device.next_event() {
            device.advance(at);
        }
        check_fault(device);
        assert_eq!(device.outstanding(), 0, "{name}: {}", device.explain_stall());
    };
    finish(&mut device);
    device.check_invariants().unwrap_or_else(|what| panic!("{name}: {what}"));
    device.take_contents();
    for lpn in 0..units {
        let now = device.now();
        let lba = lpn * u64::from(per_unit);
        device.submit(now, Request { tag: lpn, ..Request::new(now, Operation::Read, lba, per_unit) });
        finish(&mut device);
    }
    let read = device.take_contents();
    assert_eq!(read.len() as u64, units, "{name}: each read must return its data");
    for (lpn, held) in read {
        let unit = lpn as usize * per_unit as usize;
        assert_eq!(held, expected[unit..unit + per_unit as usize], "{name}: unit {lpn}");
    }
}

/// Checks that a device recovers from power cuts: each unit has the version of its last completed write, or of a later
/// one.
///
/// # Panics
///
/// Panics if a write was lost.
pub fn power_cuts(config: &DeviceConfig, externals: &Externals) {
    let name = config.mapping.scheme.name();
    let failed = |error: String| -> ! { panic!("{name}, after a power cut: {error}") };
    let options = || Options { verify: true, externals: externals.clone(), ..Options::default() };
    let (units, per_unit) = (config.logical_units(), config.sectors_per_unit());
    let mut device = Device::new(config.clone(), options()).unwrap_or_else(|error| panic!("{name}: {error}"));
    device.make_durable(Keep::Memory, None).unwrap_or_else(|error| panic!("{name}: {error}"));
    let (mut rng, mut least) = (Rng::new(7, "contract"), vec![0; units as usize]);
    let mut completions = Vec::new();
    for round in 0..6 {
        for tag in round * 10_000 + 1..round * 10_000 + 2_000 {
            let (now, lba) = (device.now(), rng.below(units) * u64::from(per_unit));
            device.submit(now, Request { tag, ..Request::new(now, Operation::Write, lba, per_unit) });
            while device.outstanding() >= 8 {
                let Some(at) = device.next_event() else { break };
                device.advance(at);
            }
        }
        device.take_completions(&mut completions);
        for Completion { request, .. } in completions.drain(..) {
            let least = &mut least[(request.lba / u64::from(per_unit)) as usize];
            *least = request.tag.max(*least);
        }
        check_fault(&device);
        let flash = device.power_cut(round).expect("the device is durable");
        let recovered = Device::recover_in_memory(config.clone(), options(), flash, None);
        (device, _) = match recovered {
            Ok(recovered) => recovered.expect("the recovery is not cut"),
            Err(error) => failed(error.to_string()),
        };
        device.check_invariants().unwrap_or_else(|what| failed(what));
        for (unit, &least) in least.iter().enumerate() {
            let found = u64::from(device.ftl().read_contents(Lpn(unit as u32), 0, 1)[0]);
            assert!(found >= least, "{name}: after a power cut, unit {unit} has version {found}, not {least}");
        }
    }
}

/// Panics if an external policy of a device has failed.
fn check_fault(device: &Device) {
    assert!(device.fault().is_none(), "{}", device.fault().map(ToString::to_string).unwrap_or_default());
}

/// Checks that a scheduler ranks every class, and that host programs do not take priority over operations that free
/// space.
///
/// # Panics
///
/// Panics if the scheduler breaks a law.
pub fn scheduler(device: &DeviceConfig, externals: &Externals) {
    let name = device.scheduler.name();
    let scheduler = device.scheduler.build(device, 1, externals).expect("defaults are valid");
    for class in Class::ALL {
        assert!(usize::from(scheduler.rank(class)) < RANKS, "{name}: {class:?}");
    }
    // Without these operations, no more blocks become free.
    assert!(scheduler.rank(Class::UrgentGc) <= scheduler.rank(Class::HostProgram), "{name}");
    assert!(scheduler.rank(Class::Summary) <= scheduler.rank(Class::HostProgram), "{name}");
}

/// Checks that an allocation scheme has a home plane for all pages or for none.
///
/// # Panics
///
/// Panics if the scheme breaks a law.
pub fn allocation(device: &DeviceConfig, externals: &Externals) {
    let name = device.allocation.name();
    let scheme = device.allocation.build(device, 1, externals).expect("defaults are valid");
    let pages = (device.logical_units() / u64::from(device.units_per_page())).min(1_000) as u32;
    let homes = (0..pages).filter(|&stripe| scheme.home(stripe).is_some()).count() as u32;
    assert!(homes == 0 || homes == pages, "{name}");
    assert_eq!(scheme.order().len(), device.total_planes(), "{name}");
}

/// Checks an eviction policy: inserts, accesses, writes back, removes and evicts units at random. A model of the
/// contents determines which units may be evicted.
///
/// # Panics
///
/// Panics if the policy breaks a law, or if the device has no buffer.
pub fn eviction(device: &DeviceConfig, externals: &Externals) {
    let config = &device.buffer.as_ref().expect("a device with a buffer").eviction;
    let mut policy = config.build(device, 7, externals).expect("defaults are valid");
    let units = device.buffer_units();
    let mut there: BTreeMap<u32, u32> = BTreeMap::new();
    let mut free: Vec<u32> = (0..units).collect();
    let mut rng = Rng::new(3, "contract");
    let mut victims = Vec::new();
    let mut taken = 0;
    for _ in 0..50_000 {
        let unit = rng.below(200) as u32;
        match (rng.below(8), there.get(&unit).copied()) {
            (0, _) => {
                policy.take(&mut victims);
                assert_eq!(
                    victims.is_empty(),
                    there.is_empty(),
                    "{}: units must be evicted if and only if there are any",
                    config.name()
                );
                taken += victims.len();
                let held = |entry: u32| there.iter().find(|(_, held)| **held == entry).map(|(unit, _)| *unit);
                let units: Vec<u32> =
                    victims.iter().map(|&entry| held(entry).expect("evicted entries must hold a unit")).collect();
                assert!(units.is_sorted(), "{}: {units:?} are not in order", config.name());
                for (unit, entry) in units.into_iter().zip(victims.drain(..)) {
                    assert!(there.remove(&unit).is_some(), "{}: a unit was evicted twice", config.name());
                    free.push(entry);
                }
            }
            (1, Some(entry)) => {
                policy.on_remove(entry);
                there.remove(&unit);
                free.push(entry);
            }
            (2, Some(entry)) => policy.on_clean(entry),
            (3..5, Some(entry)) => policy.on_access(entry, true, true),
            (_, Some(entry)) => policy.on_access(entry, false, false),
            (kind, None) => {
                let Some(entry) = free.pop() else { continue };
                policy.on_insert(entry, Lpn(unit), kind % 2 == 0, kind % 2 == 1);
                there.insert(unit, entry);
            }
        }
    }
    assert!(taken > 2_000, "{}: only {taken} units were evicted", config.name());
}

/// Fills the next block of a plane and closes it with `valid` valid units.
pub fn close(space: &mut Space, plane: PlaneId, valid: u32) -> BlockId {
    let first = space.advance(space.host_frontier(plane, 0), space.data_units());
    (first.0..first.0 + valid).for_each(|unit| space.validate(Ppn(unit)));
    let block = space.block_of(first);
    space.close(block);
    block
}

/// Saves a policy and loads it into a `new` one. Returns a clone instead if the policy cannot be saved.
fn saved_and_loaded<P: Clone>(
    policy: &P,
    new: impl FnOnce() -> P,
    save: impl FnOnce(&P, &mut Writer) -> Result<(), StateError>,
    load: impl FnOnce(&mut P, &mut Reader) -> Result<(), StateError>,
) -> P {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).expect("it is in memory");
    match writer.section("policy", |out| save(policy, out)) {
        Err(StateError::Policy(_)) => return policy.clone(),
        saved => saved.expect("it is in memory"),
    }
    writer.finish().expect("it is in memory");
    let mut loaded = new();
    let mut input = &bytes[..];
    let mut reader = Reader::new(&mut input).expect("it was just saved");
    reader.section("policy", |input| load(&mut loaded, input)).expect("it was just saved");
    reader.finish().expect("it was just saved");
    loaded
}

/// Checks a victim policy: closes blocks, invalidates units and takes victims at random. A model of the closed blocks
/// determines which blocks may be taken. A twin that is saved and loaded, or cloned, must make the same choices.
///
/// # Panics
///
/// Panics if the policy breaks a law.
pub fn victim(device: &DeviceConfig, externals: &Externals) {
    let name = device.gc.victim.name();
    let mut space = Space::new(device, 7, false, externals).expect("defaults are valid");
    let mut twin = device.gc.victim.build(device, 7, externals).expect("defaults are valid");
    let full = device.data_units_per_block();
    let mut candidates: Vec<Option<u32>> = vec![None; device.total_blocks() as usize];
    let mut rng = Rng::new(3, "contract");
    let mut taken = 0;
    for clock in 0..20_000 {
        space.clock = clock;
        let block = BlockId(rng.below(u64::from(device.total_blocks())) as u32);
        let plane = space.plane_of(block);
        let region = space.region(plane, Role::Data);
        match (rng.below(4), candidates[block.index()]) {
            (0, _) => {
                let of_plane = plane.0 * device.geometry.blocks..(plane.0 + 1) * device.geometry.blocks;
                let any = of_plane.clone().any(|b| candidates[b as usize].is_some_and(|valid| valid < full));
                let expected = any.then(|| twin.choose(&space.view(region))).flatten();
                let chosen = space.take_victim(region, 0);
                assert_eq!(chosen, expected, "{name}: the twin chose another block");
                assert_eq!(
                    chosen.is_some(),
                    any,
                    "{name}: must choose a victim if and only if some block has invalid units"
                );
                let Some(chosen) = chosen else { continue };
                assert!(of_plane.contains(&chosen.0), "{name}: the victim is not in the plane");
                assert!(candidates[chosen.index()].take().is_some(), "{name}: the victim is not a closed block");
                space.invalidate_all(chosen);
                space.await_erase(chosen);
                space.erased(chosen);
                taken += 1;
            }
            (1, _) if space.free_blocks(plane, Role::Data) > 0 => {
                let valid = rng.below(u64::from(full) + 1) as u32;
                candidates[close(&mut space, plane, valid).index()] = Some(valid);
            }
            (_, Some(valid)) if valid > 0 => {
                candidates[block.index()] = Some(valid - 1);
                space.invalidate(Ppn(space.first_unit(block).0 + valid - 1));
            }
            _ => {}
        }
        if clock % 2_000 == 1_999 {
            let new = || device.gc.victim.build(device, 99, externals).expect("defaults are valid");
            twin = saved_and_loaded(&twin, new, |policy, out| policy.save(out), |policy, input| policy.load(input));
        }
    }
    space.recount().expect("the counts of the space must be right");
    assert!(space.fault().is_none(), "{name}: {}", space.fault().map(ToString::to_string).unwrap_or_default());
    assert!(taken > 1_000, "{name}: only {taken} victims");
}

/// Closes a block of a region, invalidates a unit of a closed block, or takes and erases a victim.
fn change(space: &mut Space, plane: PlaneId, rng: &mut Rng) {
    let region = space.region(plane, Role::Data);
    let count = space.of_plane(plane).len() as u64;
    let block = BlockId(plane.0 * count as u32 + rng.below(count) as u32);
    let first = space.first_unit(block).0;
    match rng.below(8) {
        0 => {
            let Some(victim) = space.take_victim(region, 0) else { return };
            space.invalidate_all(victim);
            space.await_erase(victim);
            space.erased(victim);
        }
        1 if space.free_blocks(plane, Role::Data) > 0 => {
            let valid = rng.below(u64::from(space.data_units()) + 1) as u32;
            close(space, plane, valid);
        }
        _ if space.block(block).state == BlockState::Closed => {
            if let Some(unit) = space.first_valid(first..first + space.data_units()) {
                space.invalidate(unit);
            }
        }
        _ => {}
    }
}

/// Checks a trigger of garbage collection. A twin that is saved and loaded, or cloned, must make the same decisions in
/// a plane whose blocks are closed, invalidated and erased at random.
///
/// # Panics
///
/// Panics if the trigger breaks a law.
pub fn trigger(device: &DeviceConfig, externals: &Externals) {
    let name = device.gc.trigger.name();
    let new = |seed| device.gc.trigger.build(device, seed, externals).expect("defaults are valid");
    let (mut trigger, mut twin) = (new(7), new(7));
    let mut space = Space::new(device, 7, trigger.has_ages(), externals).expect("defaults are valid");
    let mut rng = Rng::new(3, "contract");
    let plane = PlaneId(0);
    let mut asked = 0;
    // With fewer free blocks, garbage collection starts without the trigger.
    let required = device.hard_threshold().max(space.reserve(plane, Role::Data));
    for clock in 0..20_000 {
        space.clock = clock;
        change(&mut space, plane, &mut rng);
        let view = space.view(space.region(plane, Role::Data));
        if view.free_blocks() > required {
            assert_eq!(trigger.wants(&view), twin.wants(&view), "{name}: the twin decided otherwise");
            asked += 1;
        }
        if clock % 2_000 == 1_999 {
            let fresh = || new(99);
            twin = saved_and_loaded(&twin, fresh, |policy, out| policy.save(out), |policy, input| policy.load(input));
        }
    }
    assert!(asked > 1_000, "{name}: only {asked} decisions");
    assert!(trigger.fault().is_none(), "{name}: {}", trigger.fault().map(ToString::to_string).unwrap_or_default());
}

/// Checks a temperature policy. Each unit must be of one of the classes. A twin that is saved and loaded, or cloned,
/// must find the same classes.
///
/// # Panics
///
/// Panics if the policy breaks a law.
pub fn temperature(device: &DeviceConfig, externals: &Externals) {
    let name = device.temperature.name();
    let new = |seed| device.temperature.build(device, seed, externals).expect("defaults are valid");
    let (mut policy, mut twin) = (new(7), new(7));
    let mut rng = Rng::new(3, "contract");
    let mut written = vec![false; device.logical_units() as usize];
    for clock in 0..50_000 {
        // Half of the writes go to a tenth of the units.
        let range = if rng.below(2) == 0 { written.len() } else { written.len().div_ceil(10) };
        let lpn = rng.below(range as u64) as usize;
        let again = std::mem::replace(&mut written[lpn], true);
        let [sectors, stream, placement] = [1 + rng.below(64), rng.below(3), rng.below(5)].map(|number| number as u32);
        let (stream, placement) = (stream as u16, placement as u16);
        let write = Written { lpn: lpn as u32, sectors, stream, placement, again, clock };
        let class = policy.classify(write);
        assert!(u32::from(class) < device.temperature.classes(), "{name}: class {class}");
        assert_eq!(class, twin.classify(write), "{name}: the twin found another class");
        if clock % 5_000 == 4_999 {
            let fresh = || new(99);
            twin = saved_and_loaded(&twin, fresh, |policy, out| policy.save(out), |policy, input| policy.load(input));
        }
    }
    assert!(policy.fault().is_none(), "{name}: {}", policy.fault().map(ToString::to_string).unwrap_or_default());
}
