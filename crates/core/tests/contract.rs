//! Every policy of each family obeys the family's laws: nothing to add here for a new policy.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::device_config;
use floatgate_core::cache::eviction::EvictionConfig;
use floatgate_core::config::DeviceConfig;
use floatgate_core::ftl::allocation::{AllocationConfig, Level, LevelOrder, Order, PlaneSet};
use floatgate_core::ftl::gc::victim::{Victim, VictimConfig};
use floatgate_core::ftl::space::{Role, Space};
use floatgate_core::scheduler::{RANKS, SchedulerConfig};
use floatgate_core::sim::id::{BlockId, Lpn, PlaneId, Ppn};
use floatgate_core::sim::rng::Rng;
use floatgate_core::state::{Reader, Writer};
use floatgate_core::work::Class;

/// 3 channels, 2 chips, 5 dies, 4 planes: no two levels alike, so that a mistaken level shows.
fn uneven() -> DeviceConfig {
    device_config(&["geometry.channels=3", "geometry.chips=2", "geometry.dies=5", "geometry.planes=4"])
}

/// Brings, hits, cleans, removes and takes units at random; a model of what is there says what may be taken.
fn eviction_obeys(config: &EvictionConfig) {
    let eviction = format!("buffer.eviction={}", config.name());
    let device = device_config(&["geometry.pages=8", "buffer.capacity=256KiB", &eviction]);
    let mut policy = config.build(&device, 7).expect("defaults are valid");
    let units = device.buffer_units();
    let mut there: BTreeMap<u32, u32> = BTreeMap::new();
    let mut free: Vec<u32> = (0..units).collect();
    let (mut rng, mut victims, mut taken) = (Rng::new(3, "contract"), Vec::new(), 0);
    for _ in 0..50_000 {
        let unit = rng.below(200) as u32;
        match (rng.below(8), there.get(&unit).copied()) {
            (0, _) => {
                policy.take(&mut victims);
                assert_eq!(victims.is_empty(), there.is_empty(), "{}: nothing is taken of something", config.name());
                taken += victims.len();
                let held = |entry: u32| there.iter().find(|(_, held)| **held == entry).map(|(unit, _)| *unit);
                let units: Vec<u32> = victims.iter().map(|&entry| held(entry).expect("it is there")).collect();
                assert!(units.is_sorted(), "{}: {units:?} are not in order", config.name());
                for (unit, entry) in units.into_iter().zip(victims.drain(..)) {
                    assert!(there.remove(&unit).is_some(), "{}: taken twice", config.name());
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
    assert!(taken > 2_000, "{}: only {taken} taken", config.name());
}

#[test]
fn what_is_evicted_is_there_and_leaves_once() {
    EvictionConfig::all().iter().for_each(eviction_obeys);
}

/// Fills the next block of a plane and closes it with `valid` valid units.
fn close(space: &mut Space, plane: PlaneId, valid: u32) -> BlockId {
    let first = space.advance(space.host_frontier(plane, 0), space.data_units());
    (first.0..first.0 + valid).for_each(|unit| space.validate(Ppn(unit)));
    let block = space.block_of(first);
    space.close(block);
    block
}

/// The same victim policy, by way of a saved state.
fn saved_and_loaded(victim: &Victim, config: &VictimConfig, device: &DeviceConfig) -> Victim {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    writer.section("victim", |out| victim.save(out)).unwrap();
    writer.finish().unwrap();
    let mut loaded = config.build(device, 99).expect("defaults are valid");
    let mut input = &bytes[..];
    let mut reader = Reader::new(&mut input).unwrap();
    reader.section("victim", |input| loaded.load(input)).unwrap();
    reader.finish().unwrap();
    loaded
}

/// Closes, shrinks and takes blocks at random; a model of what is a candidate says what may be taken.
fn victim_obeys(config: &VictimConfig) {
    let mut device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}"]);
    device.gc.victim = config.clone();
    let mut space = Space::new(&device, 7, false).expect("defaults are valid");
    let mut twin = config.build(&device, 7).expect("defaults are valid");
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
                assert_eq!(chosen, expected, "{}: another one when loaded", config.name());
                assert_eq!(chosen.is_some(), any, "{}: a victim if some block would gain anything", config.name());
                let Some(chosen) = chosen else { continue };
                assert!(of_plane.contains(&chosen.0), "{}: not of the plane", config.name());
                assert!(candidates[chosen.index()].take().is_some(), "{}: no candidate", config.name());
                space.invalidate_all(chosen);
                space.doom(chosen);
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
            twin = saved_and_loaded(&twin, config, &device);
        }
    }
    space.recount().expect("the space counts right");
    assert!(taken > 1_000, "{}: only {taken} victims", config.name());
}

#[test]
fn victims_are_candidates_of_the_plane_and_taken_once() {
    assert_eq!(VictimConfig::all().len(), VictimConfig::NAMES.len());
    VictimConfig::all().iter().for_each(victim_obeys);
}

/// What each policy chooses of three closed blocks with 5, 2 and 9 valid units, closed in this order.
#[test]
fn victims_are_what_the_policies_say() {
    let choose = |name: &str| {
        let victim = format!("gc.victim={name}");
        let device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}", &victim]);
        let mut space = Space::new(&device, 1, false).expect("defaults are valid");
        for valid in [5, 2, 9] {
            close(&mut space, PlaneId(0), valid);
        }
        let region = space.region(PlaneId(0), Role::Data);
        std::iter::from_fn(|| space.take_victim(region, 0)).map(|block| block.0).collect::<Vec<u32>>()
    };
    assert_eq!(choose("greedy"), [1, 0, 2]);
    assert_eq!(choose("fifo"), [0, 1, 2]);
    assert_eq!(choose("cost-benefit"), [1, 0, 2], "of one age, the cheapest first");
    assert_eq!(BTreeSet::from_iter(choose("random")), BTreeSet::from([0, 1, 2]));
    assert_eq!(choose("d-choices").len(), 3);
}

/// Kawaguchi et al. 1995: age * (1 - u) / 2u. With 64 units, a block with 32 valid that is 100 writes old has
/// 100 * 32 / 64 = 50; one with 16 valid has 48 / 32 = 1.5 for each write of its age, so it wins from 34 writes on.
#[test]
fn cost_benefit_weighs_age() {
    let device = device_config(&["geometry.blocks=16", "capacity={spare=0.5}", "gc.victim=cost-benefit"]);
    let first = |age_of_second: u64| {
        let mut space = Space::new(&device, 1, false).expect("valid");
        let now = 1_000;
        space.clock = now - 99;
        close(&mut space, PlaneId(0), 32);
        space.clock = now - (age_of_second - 1);
        close(&mut space, PlaneId(0), 16);
        space.clock = now;
        space.take_victim(space.region(PlaneId(0), Role::Data), 0).expect("two candidates").0
    };
    assert_eq!(first(33), 0, "33 * 1.5 = 49.5 is below 50");
    assert_eq!(first(34), 1, "34 * 1.5 = 51 is over 50");
}

#[test]
fn static_orders_are_permutations_of_the_planes() {
    let device = uneven();
    assert_eq!(LevelOrder::all().iter().map(ToString::to_string).collect::<BTreeSet<_>>().len(), 24);
    for order in LevelOrder::all() {
        let planes = Order::new(&device, order);
        let seen: BTreeSet<u32> = (0..planes.len()).map(|position| planes.plane(position).0).collect();
        assert_eq!(seen.len(), device.total_planes() as usize, "{order}");
        (0..planes.len()).for_each(|position| assert_eq!(planes.position(planes.plane(position)), position));
    }
}

/// Channels, chips, dies and planes of [`uneven`].
const C: u32 = 3;
const W: u32 = 2;
const D: u32 = 5;
const P: u32 = 4;

/// Hu et al. 2013, Section 4.2: channel, chip, die and plane of logical page `l` by each of the six schemes, written
/// out one by one from the priority orders, without the loop of the implementation.
fn by_the_paper(scheme: &str, l: u32) -> [u32; 4] {
    match scheme {
        "s1" => [l / (W * D * P) % C, l % W, l / W % D, l / (W * D) % P],
        "s2" => [l % C, l / C % W, l / (C * W) % D, l / (C * W * D) % P],
        "s3" => [l % C, l / (C * P) % W, l / (C * P * W) % D, l / C % P],
        "s4" => [l % C, l / (C * D) % W, l / C % D, l / (C * D * W) % P],
        "s5" => [l % C, l / (C * P * D) % W, l / (C * P) % D, l / C % P],
        _ => [l % C, l / (C * D * P) % W, l / C % D, l / (C * D) % P],
    }
}

#[test]
fn the_papers_schemes_follow_their_formulas() {
    use Level::{Channel, Chip, Die, Plane};
    let device = uneven();
    let schemes = [
        ("s1", [Chip, Die, Plane, Channel]),
        ("s2", [Channel, Chip, Die, Plane]),
        ("s3", [Channel, Plane, Chip, Die]),
        ("s4", [Channel, Die, Chip, Plane]),
        ("s5", [Channel, Plane, Die, Chip]),
        ("s6", [Channel, Die, Plane, Chip]),
    ];
    for (name, levels) in schemes {
        let order: LevelOrder = name.parse().expect("a name of the papers");
        assert_eq!(order, LevelOrder(levels), "{name}");
        let placed = Order::new(&device, order);
        for lpn in 0..3 * device.total_planes() {
            let [channel, chip, die, plane] = by_the_paper(name, lpn);
            let expected = ((channel * W + chip) * D + die) * P + plane;
            assert_eq!(placed.plane(lpn).0, expected, "{name}, page {lpn}");
        }
    }
}

#[test]
fn a_scheme_has_a_home_for_all_pages_or_for_none() {
    for config in AllocationConfig::all() {
        let scheme = config.build(&uneven(), 1).expect("defaults are valid");
        let homes = (0..1_000).filter(|&stripe| scheme.home(stripe).is_some()).count();
        assert!(homes == 0 || homes == 1_000, "{}", config.name());
        assert_eq!(scheme.order().len(), uneven().total_planes(), "{}", config.name());
    }
}

#[test]
fn dynamic_allocation_takes_idle_planes_in_turn() {
    let device = uneven();
    let planes = device.total_planes();
    for order in LevelOrder::all() {
        let text = format!("allocation.dynamic.order={order}");
        let device =
            device_config(&["geometry.channels=3", "geometry.chips=2", "geometry.dies=5", "geometry.planes=4", &text]);
        let mut scheme = device.allocation.build(&device, 1).expect("valid");
        let mut idle = PlaneSet::new(planes);
        (0..planes).for_each(|position| idle.set(position, true));
        let round: Vec<u32> = (0..planes).map(|_| scheme.choose(0, &idle).expect("all are idle").0).collect();
        let expected: Vec<u32> = (0..planes).map(|position| scheme.order().plane(position).0).collect();
        assert_eq!(round, expected, "{order}: least recently used first, in the order");
        // Only what is idle is taken.
        idle.clear();
        idle.set(17, true);
        assert_eq!(scheme.choose(0, &idle), Some(scheme.order().plane(17)));
        idle.clear();
        assert_eq!(scheme.choose(0, &idle), None);
    }
}

#[test]
fn schedulers_rank_every_class() {
    for config in SchedulerConfig::all() {
        let scheduler = config.build(&uneven(), 1).expect("defaults are valid");
        for class in Class::ALL {
            assert!(usize::from(scheduler.rank(class)) < RANKS, "{}: {class:?}", config.name());
        }
        // Without these, nothing could be written any more.
        assert!(scheduler.rank(Class::UrgentGc) <= scheduler.rank(Class::HostProgram), "{}", config.name());
        assert!(scheduler.rank(Class::Summary) <= scheduler.rank(Class::HostProgram), "{}", config.name());
    }
}
