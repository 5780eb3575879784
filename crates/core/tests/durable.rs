//! Contents of flash at random instants with many outstanding requests. Flash contains every write that a flush, FUA,
//! write-through or the absence of a buffer guarantees. It also contains every completed write of the units that the
//! device does not report as volatile.

use crate::common::{build, device_config, submit};
use floatgate_core::internals::BufferCounts;
use floatgate_core::sim::id::{Lpn, Ppn};
use floatgate_core::sim::request::{Completion, Operation, Request};
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_core::simulation::{Device, Options, Ssd};

const US: u64 = 1_000_000;
/// Number of units that are written, and sectors of each.
const UNITS: u32 = 48;
const SECTORS: usize = 8;

/// The newest write of each sector, by tag. Writes of a sector take effect in the order of their tags.
type Versions = Vec<[u32; SECTORS]>;

/// State of the host.
struct Host {
    requests: Vec<Request>,
    submitted: Versions,
    completed: Versions,
    /// Versions that must be in flash from now on.
    promised: Versions,
    /// Outstanding flushes: the tag, and the versions that were complete when the flush was submitted.
    flushes: Vec<(u64, Versions)>,
    /// True if the completion of any write guarantees that it is durable.
    through: bool,
}

fn raise(versions: &mut Versions, request: &Request) {
    for sector in request.lba..request.lba + u64::from(request.sectors) {
        let version = &mut versions[sector as usize / SECTORS][sector as usize % SECTORS];
        *version = (*version).max(request.tag as u32);
    }
}

impl Host {
    fn new(through: bool) -> Host {
        let none = vec![[0; SECTORS]; UNITS as usize];
        let requests = vec![Request::new(Time::ZERO, Operation::Flush, 0, 0)];
        let (submitted, completed, promised) = (none.clone(), none.clone(), none);
        Host { requests, submitted, completed, promised, flushes: Vec::new(), through }
    }

    fn submit(&mut self, request: Request) {
        self.requests.push(request);
        match request.operation {
            Operation::Write => raise(&mut self.submitted, &request),
            Operation::Flush => self.flushes.push((request.tag, self.completed.clone())),
            _ => {}
        }
    }

    fn complete(&mut self, request: &Request) {
        match request.operation {
            Operation::Write => {
                raise(&mut self.completed, request);
                if request.fua || self.through {
                    raise(&mut self.promised, request);
                }
            }
            Operation::Flush => {
                let index = self.flushes.iter().position(|flush| flush.0 == request.tag).expect("an outstanding flush");
                for (promised, flushed) in self.promised.iter_mut().zip(self.flushes.remove(index).1) {
                    promised.iter_mut().zip(flushed).for_each(|(a, b)| *a = (*a).max(b));
                }
            }
            _ => {}
        }
    }
}

/// Returns the contents of flash, found by reading every physical address. A newer copy of a unit contains all versions
/// of the one before it, so the copy with the highest versions is the newest.
fn in_flash(device: &Device) -> Versions {
    let mut found = vec![[0; SECTORS]; UNITS as usize];
    let media = device.ftl().media.as_ref().expect("verification is enabled");
    let config = device.config();
    let sum = |versions: &[u32]| versions.iter().map(|&version| u64::from(version)).sum::<u64>();
    for place in (0..config.total_blocks() * config.units_per_block()).map(Ppn) {
        let owner = device.ftl().map.owner(place);
        let held = media.read(place);
        if owner < UNITS && sum(held) > sum(&found[owner as usize]) {
            found[owner as usize].copy_from_slice(held);
        }
    }
    found
}

/// Asserts what must hold if the power was cut now. Returns the number of units that would lose a completed write.
fn cut(device: &Device, host: &Host, what: &str) -> usize {
    let flash = in_flash(device);
    let buffer = device.buffer();
    let (mut lost, mut volatile) = (0, 0);
    for unit in 0..UNITS as usize {
        let lpn = Lpn(unit as u32);
        let [held, promised, completed, submitted] =
            [&flash, &host.promised, &host.completed, &host.submitted].map(|versions| &versions[unit]);
        for sector in 0..SECTORS {
            let version = held[sector];
            let lba = (unit * SECTORS + sector) as u64;
            let write = &host.requests[version as usize];
            let is_its = version == 0 || (lba >= write.lba && lba < write.lba + u64::from(write.sectors));
            assert!(is_its, "{what}: sector {lba} holds version {version} of another sector");
            let kept = match buffer.filter(|buffer| buffer.is_protected()) {
                // A protected buffer survives the cut.
                Some(buffer) => match buffer.entry_of(lpn).filter(|&entry| buffer.holds(entry, sector as u32)) {
                    Some(entry) => version.max(buffer.versions(entry)[sector]),
                    None => version,
                },
                None => version,
            };
            assert!(kept >= promised[sector], "{what}: sector {lba} has {kept}, guaranteed was {}", promised[sector]);
        }
        let behind = |than: &[u32; SECTORS]| held.iter().zip(than).any(|(held, than)| held < than);
        let is_volatile = buffer.is_some_and(|buffer| buffer.is_volatile(lpn));
        let is_protected = buffer.is_some_and(|buffer| buffer.is_protected());
        assert!(
            is_volatile || is_protected || !behind(completed),
            "{what}: unit {unit} would lose a write and is not volatile"
        );
        // A write that arrives while a core allocates a slot for its unit joins that write-back. The unit stays dirty.
        let on_core = device.config().controller.firmware.is_some();
        assert!(
            !is_volatile || on_core || behind(submitted),
            "{what}: unit {unit} is volatile, but flash has all of it"
        );
        volatile += u64::from(is_volatile);
        lost += usize::from(is_volatile && behind(completed));
    }
    assert_eq!(buffer.map_or(0, |buffer| buffer.volatile_units().0), volatile, "{what}");
    lost
}

/// Returns a random device: its options, and the queue depth of the host.
fn draw(rng: &mut Rng, seed: u64) -> (Vec<String>, usize) {
    let policies = ["lru", "fifo", "clock", "cflru", "bplru", "{ bplru = { padding = false } }", "fab"];
    let (page, per_program) = [(4, 1), (8, 1), (16, 1), (4, 3)][rng.below(4) as usize];
    let capacity = if rng.below(8) == 0 { 0 } else { 4 * (1 + rng.below(40)) };
    let mut overrides = vec![
        "geometry.blocks=12".to_owned(),
        "geometry.pages=12".to_owned(),
        "gc.soft_threshold=1".to_owned(),
        format!("geometry.page_size={page}KiB"),
        "geometry.mapping_unit=4KiB".to_owned(),
        format!("geometry.pages_per_program={per_program}"),
        format!("capacity.logical={}KiB", UNITS * 4),
        // At least the units of a program.
        format!("controller.write_slots={}", u64::max(3, page / 4 * per_program) + rng.below(20)),
        format!("buffer.capacity={capacity}KiB"),
        format!("buffer.eviction={}", policies[seed as usize % policies.len()]),
        format!("buffer.power_loss_protection={}", rng.below(5) == 0),
    ];
    match rng.below(4) {
        0 => overrides.extend(["buffer.write=write-through", "buffer.read=true"].map(str::to_owned)),
        _ => overrides.push(format!("buffer.read={}", rng.below(2) == 0)),
    }
    if rng.below(3) == 0 {
        overrides.extend(["buffer.high_water=0.6", "buffer.low_water=0.3"].map(str::to_owned));
    }
    if rng.below(3) == 0 {
        overrides.push(format!("buffer.latency={}ns", rng.below(9000)));
        overrides.push("controller.firmware.allocation=3000".to_owned());
    }
    if rng.below(3) == 0 {
        overrides.push("mapping.scheme={ dftl = { cache = \"64B\", entry = \"64B\" } }".to_owned());
        overrides.push("geometry.blocks=24".to_owned());
    }
    if rng.below(3) == 0 {
        overrides.push("allocation={ dynamic = {} }".to_owned());
    }
    if per_program > 1 && rng.below(2) == 0 {
        overrides.push("controller.fill_timeout=300us".to_owned());
    }
    (overrides, [1, 2, 4, 8, 32][rng.below(5) as usize])
}

/// Runs a case. Returns the highest number of outstanding requests, the number of units that power cuts would lose, and
/// the counts of the buffer.
fn run(seed: u64) -> (usize, usize, BufferCounts) {
    let rng = &mut Rng::new(seed, "power");
    let (overrides, depth) = draw(rng, seed);
    let what = format!("seed {seed}, depth {depth}, {overrides:?}");
    let mut device = build(device_config(&overrides), Options { seed, verify: true, ..Options::default() });
    let through = device.buffer().is_none_or(|buffer| !buffer.writes_back() || buffer.is_protected());
    let mut host = Host::new(through);
    let hot = 1 + rng.below(u64::from(UNITS));
    let flushes = [3, 10, 40][rng.below(3) as usize];
    let (mut most, mut lost, mut done) = (0, 0, Vec::<Completion>::new());
    let mut tag = 0;
    while tag < 500 || device.outstanding() > 0 {
        if tag < 500 && device.outstanding() < depth && (rng.below(3) > 0 || device.next_event().is_none()) {
            tag += 1;
            let operation = match rng.below(flushes) {
                0 => Operation::Flush,
                1 => Operation::Read,
                _ => Operation::Write,
            };
            let first = rng.below(hot * SECTORS as u64);
            let max_sectors = (u64::from(UNITS) * SECTORS as u64 - first).min(28);
            let sectors = if operation == Operation::Flush { 0 } else { 1 + rng.below(max_sectors) as u32 };
            let fua = operation == Operation::Write && rng.below(10) == 0;
            let request = Request { tag, fua, ..Request::new(device.now(), operation, first, sectors) };
            host.submit(request);
            let now = device.now();
            submit(&mut device, now, request);
        } else {
            let pause = if rng.below(30) == 0 { Time(rng.below(3000 * US)) } else { Time::ZERO };
            let next = device.next_event().unwrap_or_else(|| panic!("{what}: {}", device.explain_stall()));
            let until = next.max(device.now() + pause);
            device.advance_to_completion(until);
        }
        most = most.max(device.outstanding());
        device.take_completions(&mut done);
        let answered = done.iter().any(|done| done.request.fua || done.request.operation == Operation::Flush);
        for completion in done.drain(..) {
            assert_eq!(completion.finish, device.now(), "a completion without link takes no time");
            host.complete(&completion.request);
        }
        if answered || rng.below(12) == 0 {
            lost += cut(&device, &host, &what);
        }
    }
    (most, lost, device.buffer().map_or_else(Default::default, |buffer| buffer.counts))
}

#[test]
fn flash_has_all_guaranteed_writes_at_any_instant() {
    let cases = std::env::var("FLOATGATE_POWER_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(140);
    let (mut deep, mut lost, mut waited, mut forced) = (0, 0, 0, 0);
    for seed in 0..cases {
        let (most, taken, counts) = run(seed);
        deep += u64::from(most >= 8);
        lost += taken;
        waited += counts.flushes_waited;
        forced += counts.fua_waited;
    }
    // Without these cases, the test would show nothing.
    assert!(deep > cases / 4, "{deep} cases with 8 outstanding requests or more");
    assert!(lost > 1000, "{lost} units would have been lost");
    assert!(waited > 1000 && forced > 1000, "{waited} flushes and {forced} forced writes waited");
}
