//! Bare loops: the minimum of work for any simulator of this kind, as a measure of the machine.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use floatgate_core::config::DeviceConfig;
use floatgate_core::sim::rng::Rng;

/// Arrays of a page-mapped device with greedy garbage collection in pools, and nothing else.
struct Arrays {
    map: Vec<u32>,
    owner: Vec<u32>,
    valid: Vec<u16>,
    free: Vec<Vec<u32>>,
    /// Open block and next page, for the host and for moved units. Indexed by pool.
    open: Vec<[(u32, u32); 2]>,
    pages: u32,
    blocks: u32,
    /// True if the block is closed.
    closed: Vec<bool>,
    programs: u64,
}

const UNMAPPED: u32 = u32::MAX;

impl Arrays {
    fn new(config: &DeviceConfig, pools: u32) -> Arrays {
        let (pages, blocks) = (config.units_per_block(), config.total_blocks());
        let per_pool = blocks / pools;
        let mut free: Vec<Vec<u32>> = (0..pools).map(|p| (p * per_pool..(p + 1) * per_pool).collect()).collect();
        let open = free.iter_mut().map(|f| [(f.pop().unwrap_or(0), 0), (f.pop().unwrap_or(0), 0)]).collect();
        Arrays {
            map: vec![UNMAPPED; config.logical_units() as usize],
            owner: vec![0; (blocks * pages) as usize],
            valid: vec![0; blocks as usize],
            free,
            open,
            pages,
            blocks: per_pool,
            closed: vec![false; blocks as usize],
            programs: 0,
        }
    }

    /// Programs a unit at a frontier of a pool.
    fn place(&mut self, pool: usize, stream: usize, lpn: u32) {
        let (block, page) = self.open[pool][stream];
        let ppn = block * self.pages + page;
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn);
        if old != UNMAPPED {
            self.valid[(old / self.pages) as usize] -= 1;
        }
        self.owner[ppn as usize] = lpn;
        self.programs += 1;
        self.valid[block as usize] += 1;
        self.open[pool][stream].1 += 1;
        if page + 1 == self.pages {
            self.closed[block as usize] = true;
            self.open[pool][stream] = (self.free[pool].pop().unwrap_or(0), 0);
        }
    }

    /// Returns the closed block of a pool with the fewest valid pages.
    fn victim(&mut self, pool: usize) -> u32 {
        let first = pool as u32 * self.blocks;
        let least =
            (first..first + self.blocks).filter(|&b| self.closed[b as usize]).min_by_key(|&b| self.valid[b as usize]);
        let victim = least.unwrap_or(first);
        self.closed[victim as usize] = false;
        victim
    }

    /// Returns the valid pages of a block.
    fn contents(&self, block: u32) -> Vec<u32> {
        let range = block * self.pages..(block + 1) * self.pages;
        range
            .filter(|&ppn| self.map[self.owner[ppn as usize] as usize] == ppn)
            .map(|ppn| self.owner[ppn as usize])
            .collect()
    }

    fn write(&mut self, pool: usize, lpn: u32) {
        self.place(pool, 0, lpn);
        while self.free[pool].len() < 3 {
            let victim = self.victim(pool);
            for lpn in self.contents(victim) {
                self.place(pool, 1, lpn);
            }
            self.free[pool].push(victim);
        }
    }
}

/// Returns a full device after two drive writes in random order, the random numbers, and the number of units.
fn steady(config: &DeviceConfig, pools: u32) -> (Arrays, Rng, u32) {
    let mut arrays = Arrays::new(config, pools);
    let units = config.logical_units() as u32;
    let mut rng = Rng::new(1, "bare");
    (0..units).for_each(|lpn| arrays.write((lpn % pools) as usize, lpn));
    for _ in 0..2 * units {
        let lpn = rng.below(u64::from(units)) as u32;
        arrays.write((lpn % pools) as usize, lpn);
    }
    (arrays, rng, units)
}

/// Overwrites at random without time. Returns page programs per CPU second.
pub fn functional(config: &DeviceConfig, cpu_seconds: impl Fn() -> f64) -> f64 {
    let pools = config.total_planes();
    let (mut arrays, mut rng, units) = steady(config, pools);
    let (before, start) = (arrays.programs, cpu_seconds());
    for _ in 0..units / 2 {
        let lpn = rng.below(u64::from(units)) as u32;
        arrays.write((lpn % pools) as usize, lpn);
    }
    (arrays.programs - before) as f64 / (cpu_seconds() - start)
}

/// An operation of a die.
#[derive(Clone, Copy)]
enum Work {
    Write(u32),
    CopyRead(u32),
    CopyWrite(u32),
    Erase(u32),
}

/// State of a die: current operation, queue, and pages of the victim that are still to be moved.
#[derive(Default)]
struct Die {
    now: Option<Work>,
    waiting: VecDeque<Work>,
    copies: Vec<u32>,
    victim: Option<u32>,
}

/// Times of `bench-32g` in nanoseconds: cell read, program, erase, and transfer of a page.
const TIMES: [u64; 4] = [50_000, 500_000, 3_000_000, 5_120];

/// The event loop: dies, channels, and a heap of (time, die, true for the second event).
struct Loop {
    arrays: Arrays,
    dies: Vec<Die>,
    channel_free: Vec<u64>,
    events: BinaryHeap<Reverse<(u64, u32, bool)>>,
    operations: u64,
}

impl Loop {
    /// Starts the first waiting operation of an idle die, and adds the first of its two events.
    fn start(&mut self, die: u32, now: u64) {
        let state = &mut self.dies[die as usize];
        if state.now.is_some() {
            return;
        }
        let Some(work) = state.waiting.pop_front() else { return };
        state.now = Some(work);
        let [read, _, erase, transfer] = TIMES;
        let first = match work {
            Work::CopyRead(_) => now + read,
            Work::Erase(_) => now + erase,
            Work::Write(_) | Work::CopyWrite(_) => self.transfer(die, now, transfer),
        };
        self.events.push(Reverse((first, die, false)));
    }

    fn transfer(&mut self, die: u32, now: u64, transfer: u64) -> u64 {
        let channel = die as usize % self.channel_free.len();
        let free = &mut self.channel_free[channel];
        *free = now.max(*free) + transfer;
        *free
    }

    /// Handles the first event of an operation, and adds the second: end of the data transfer, or of the cells.
    fn second(&mut self, die: u32, now: u64) {
        let at = match self.dies[die as usize].now {
            Some(Work::CopyRead(_)) => self.transfer(die, now, TIMES[3]),
            Some(Work::Write(_) | Work::CopyWrite(_)) => now + TIMES[1],
            _ => now,
        };
        self.events.push(Reverse((at, die, true)));
    }

    /// Ends an operation. Returns `true` if it was a host write.
    fn end(&mut self, die: u32) -> bool {
        self.operations += 1;
        let pool = die as usize;
        let state = &mut self.dies[pool];
        let host = match state.now.take() {
            Some(Work::Write(lpn)) => {
                self.arrays.place(pool, 0, lpn);
                true
            }
            Some(Work::CopyRead(lpn)) => {
                state.waiting.push_back(Work::CopyWrite(lpn));
                return false;
            }
            Some(Work::CopyWrite(lpn)) => {
                if self.arrays.map[lpn as usize] / self.arrays.pages == state.victim.unwrap_or(UNMAPPED) {
                    self.arrays.place(pool, 1, lpn);
                }
                false
            }
            Some(Work::Erase(block)) => {
                self.arrays.free[pool].push(block);
                state.victim = None;
                false
            }
            None => false,
        };
        self.clean(pool, host);
        host
    }

    /// Queues the next step of the garbage collection of a die.
    fn clean(&mut self, pool: usize, host: bool) {
        let state = &mut self.dies[pool];
        if state.victim.is_some() {
            if !host {
                let next = state.copies.pop().map(Work::CopyRead);
                state.waiting.push_back(next.unwrap_or(Work::Erase(state.victim.unwrap_or(UNMAPPED))));
            }
        } else if self.arrays.free[pool].len() < 7 {
            let victim = self.arrays.victim(pool);
            state.copies = self.arrays.contents(victim);
            state.victim = Some(victim);
            let next = state.copies.pop().map_or(Work::Erase(victim), Work::CopyRead);
            state.waiting.push_back(next);
        }
    }
}

/// Writes at random at depth 32 with garbage collection, two events per operation. Returns flash operations per CPU
/// second.
pub fn timed(config: &DeviceConfig, cpu_seconds: impl Fn() -> f64) -> f64 {
    let dies = config.total_planes() / config.geometry.planes;
    let (arrays, mut rng, units) = steady(config, dies);
    let channel_free = vec![0; config.geometry.channels as usize];
    let mut state = Loop {
        arrays,
        dies: (0..dies).map(|_| Die::default()).collect(),
        channel_free,
        events: BinaryHeap::new(),
        operations: 0,
    };
    let start = cpu_seconds();
    let mut submit = |state: &mut Loop, now: u64| {
        let lpn = rng.below(u64::from(units)) as u32;
        state.dies[(lpn % dies) as usize].waiting.push_back(Work::Write(lpn));
        state.start(lpn % dies, now);
    };
    (0..32).for_each(|_| submit(&mut state, 0));
    let mut left = 500_000;
    while left > 0 {
        let Some(Reverse((now, die, second))) = state.events.pop() else { break };
        if !second {
            state.second(die, now);
        } else {
            if state.end(die) {
                left -= 1;
                submit(&mut state, now);
            }
            state.start(die, now);
        }
    }
    state.operations as f64 / (cpu_seconds() - start)
}
