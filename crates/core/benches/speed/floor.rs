//! The floor: the least work for the events of `bench-32g`. One struct, constants for the times, no options, no
//! operations in flight with a state of their own, no order of the writes of a unit, no blocks that wait for reads. The
//! floor has the same times, queues, channels, garbage collection, look-ahead and histogram as the device, and the same
//! mean latencies, so the ratio of the two speeds is the price of everything else that the device can do.

use std::collections::VecDeque;

use floatgate_core::device_file::DeviceConfig;
use floatgate_core::sim::memory::{prefetch, zeroed};

/// Times in picoseconds: cell read, program and erase, and transfer of a page.
const READ: u64 = 50_000_000;
const PROGRAM: u64 = 500_000_000;
const ERASE: u64 = 3_000_000_000;
const TRANSFER: u64 = 5_120_000;
const NEVER: u64 = u64::MAX;
const PAGES: u32 = 256;
const DIES: usize = 64;
const CHANNELS: usize = 8;
const PLANES: u32 = 128;
/// Free blocks of a plane, with the open ones, below which the plane collects garbage.
const FREE: usize = 3;
const DEPTH: u32 = 32;
const AHEAD: usize = 16;
const NO_BLOCK: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    MoveRead,
    MoveWrite,
    Erase,
}

#[derive(Clone, Copy)]
struct Op {
    kind: Kind,
    plane: u8,
    /// Address that is moved, or block that is erased.
    from: u32,
    lpn: u32,
    arrival: u64,
}

/// Events by kind: releases of channels, transfers out, reads, programs and erases. All but the first are in order of
/// time when they are added, because all delays of a kind are equal.
#[derive(Default)]
struct Lanes {
    heads: [u64; 5],
    rest: [VecDeque<(u64, u32)>; 5],
}

impl Lanes {
    #[inline(always)]
    fn push(&mut self, lane: usize, at: u64, who: u32) {
        if lane == 0 {
            let later = self.rest[0].iter().rev().take_while(|event| event.0 > at).count();
            self.rest[0].insert(self.rest[0].len() - later, (at, who));
            self.heads[0] = self.rest[0][0].0;
            return;
        }
        if self.heads[lane] == NEVER {
            self.heads[lane] = at;
        }
        self.rest[lane].push_back((at, who));
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(usize, u64, u32)> {
        let mut first = 0;
        for lane in 1..5 {
            if self.heads[lane] < self.heads[first] {
                first = lane;
            }
        }
        let (at, who) = self.rest[first].pop_front()?;
        self.heads[first] = self.rest[first].front().map_or(NEVER, |event| event.0);
        Some((first, at, who))
    }
}

/// Result of a run.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub operations: u64,
    /// Mean latency in picoseconds.
    pub latency: f64,
}

pub struct Floor {
    map: Vec<u32>,
    owner: Vec<u32>,
    valid: Vec<u16>,
    closed: Vec<bool>,
    free: Vec<Vec<u32>>,
    frontiers: Vec<[u32; 2]>,
    victims: Vec<(u32, u32)>,
    queues: Vec<VecDeque<Op>>,
    running: Vec<Op>,
    is_busy: Vec<bool>,
    channel_free: Vec<u64>,
    channel_queues: Vec<VecDeque<u32>>,
    lanes: Lanes,
    blocks: u32,
    histogram: Vec<u64>,
    latencies: u64,
    done: u64,
    operations: u64,
    /// Number of programmed pages, with those of functional mode.
    pub programs: u64,
    ahead: [u32; AHEAD],
    issued: u64,
    random: u64,
    units: u32,
    is_write: bool,
}

impl Floor {
    /// Creates a floor for a device with the geometry of `bench-32g`, and any number of blocks.
    pub fn new(config: &DeviceConfig) -> Floor {
        let (blocks, units) = (config.geometry.blocks, config.logical_units() as u32);
        assert_eq!((config.total_planes(), config.units_per_block()), (PLANES, PAGES));
        let mut free: Vec<Vec<u32>> = (0..PLANES).map(|p| (p * blocks..(p + 1) * blocks).rev().collect()).collect();
        let mut open = |plane: usize| free[plane].pop().map_or(0, |block| block * PAGES);
        let frontiers = (0..PLANES as usize).map(|plane| [open(plane), open(plane)]).collect();
        let op = Op { kind: Kind::Read, plane: 0, from: 0, lpn: 0, arrival: 0 };
        Floor {
            map: zeroed(units as usize),
            owner: zeroed((PLANES * blocks * PAGES) as usize),
            valid: vec![0; (PLANES * blocks) as usize],
            closed: vec![false; (PLANES * blocks) as usize],
            free,
            frontiers,
            victims: vec![(NO_BLOCK, 0); PLANES as usize],
            queues: vec![VecDeque::with_capacity(64); DIES],
            running: vec![op; DIES],
            is_busy: vec![false; DIES],
            channel_free: vec![0; CHANNELS],
            channel_queues: vec![VecDeque::with_capacity(64); CHANNELS],
            lanes: Lanes { heads: [NEVER; 5], ..Lanes::default() },
            blocks,
            histogram: vec![0; 4096],
            latencies: 0,
            done: 0,
            operations: 0,
            programs: 0,
            ahead: [0; AHEAD],
            issued: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            units,
            is_write: false,
        }
    }

    /// Returns the number of logical units.
    pub fn units(&self) -> u32 {
        self.units
    }

    /// Writes every unit once, in order.
    pub fn fill(&mut self) {
        (0..self.units).for_each(|lpn| self.write_now(lpn));
    }

    /// Overwrites `count` units at random, without time.
    pub fn overwrite(&mut self, count: u32) {
        for _ in 0..count {
            let lpn = self.next_random();
            self.write_now(lpn);
        }
    }

    #[inline(always)]
    fn next_random(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (((self.random >> 32) * u64::from(self.units)) >> 32) as u32
    }

    #[inline(always)]
    fn place(&mut self, plane: u32, stream: usize, lpn: u32) {
        let ppn = self.frontiers[plane as usize][stream];
        let old = std::mem::replace(&mut self.map[lpn as usize], ppn + 1);
        if old != 0 {
            self.valid[((old - 1) / PAGES) as usize] -= 1;
        }
        self.programs += 1;
        self.owner[ppn as usize] = lpn;
        self.valid[(ppn / PAGES) as usize] += 1;
        self.frontiers[plane as usize][stream] = ppn + 1;
        if ppn % PAGES == PAGES - 1 {
            self.closed[(ppn / PAGES) as usize] = true;
            self.frontiers[plane as usize][stream] = self.free[plane as usize].pop().expect("a free block") * PAGES;
        }
    }

    fn victim(&mut self, plane: u32) -> u32 {
        let blocks = plane * self.blocks..(plane + 1) * self.blocks;
        let closed = blocks.filter(|&block| self.closed[block as usize]);
        let victim = closed.min_by_key(|&block| self.valid[block as usize]).expect("a closed block");
        self.closed[victim as usize] = false;
        victim
    }

    fn write_now(&mut self, lpn: u32) {
        let plane = lpn % PLANES;
        self.place(plane, 0, lpn);
        while self.free[plane as usize].len() < FREE {
            let victim = self.victim(plane);
            for ppn in victim * PAGES..(victim + 1) * PAGES {
                let lpn = self.owner[ppn as usize];
                if self.map[lpn as usize] == ppn + 1 {
                    self.place(plane, 1, lpn);
                }
            }
            self.free[plane as usize].push(victim);
        }
    }

    #[inline(always)]
    fn submit(&mut self, now: u64, op: Op) {
        let die = usize::from(op.plane >> 1);
        if self.is_busy[die] { self.queues[die].push_back(op) } else { self.start(now, die, op) }
    }

    #[inline(always)]
    fn start(&mut self, now: u64, die: usize, op: Op) {
        self.is_busy[die] = true;
        self.running[die] = op;
        match op.kind {
            Kind::Read | Kind::MoveRead => self.lanes.push(2, now + READ, die as u32),
            Kind::Erase => self.lanes.push(4, now + ERASE, die as u32),
            Kind::Write | Kind::MoveWrite => self.request(now, die),
        }
    }

    #[inline(always)]
    fn request(&mut self, now: u64, die: usize) {
        let channel = die % CHANNELS;
        if self.channel_free[channel] <= now && self.channel_queues[channel].is_empty() {
            return self.grant(now, die);
        }
        if self.channel_queues[channel].is_empty() {
            self.lanes.push(0, self.channel_free[channel], (DIES + channel) as u32);
        }
        self.channel_queues[channel].push_back(die as u32);
    }

    #[inline(always)]
    fn grant(&mut self, now: u64, die: usize) {
        self.channel_free[die % CHANNELS] = now + TRANSFER;
        match self.running[die].kind {
            Kind::Write | Kind::MoveWrite => self.lanes.push(3, now + TRANSFER + PROGRAM, die as u32),
            _ => self.lanes.push(1, now + TRANSFER, die as u32),
        }
    }

    fn collect(&mut self, now: u64, plane: u32) {
        if self.victims[plane as usize].0 == NO_BLOCK {
            if self.free[plane as usize].len() > FREE {
                return;
            }
            self.victims[plane as usize] = (self.victim(plane), 0);
        }
        let (victim, first) = self.victims[plane as usize];
        for page in first..PAGES {
            let from = victim * PAGES + page;
            let lpn = self.owner[from as usize];
            if self.map[lpn as usize] == from + 1 {
                self.victims[plane as usize].1 = page + 1;
                if let Some(&later) = self.owner.get(from as usize + 6) {
                    prefetch(&self.map, later as usize);
                }
                let op = Op { kind: Kind::MoveRead, plane: plane as u8, from, lpn, arrival: now };
                return self.submit(now, op);
            }
        }
        self.victims[plane as usize].1 = PAGES;
        self.submit(now, Op { kind: Kind::Erase, plane: plane as u8, from: victim, lpn: 0, arrival: now });
    }

    #[inline(always)]
    fn record(&mut self, latency: u64) {
        let exponent = 63 - u64::from((latency | 64).leading_zeros());
        self.histogram[(exponent << 6 | (latency >> (exponent - 6)) & 63) as usize] += 1;
        self.latencies += latency;
        self.done += 1;
    }

    #[inline(always)]
    fn end(&mut self, now: u64, die: usize) {
        let op = self.running[die];
        let plane = u32::from(op.plane);
        let mut is_host = false;
        self.operations += 1;
        match op.kind {
            Kind::Read | Kind::Write => {
                if op.kind == Kind::Write {
                    self.place(plane, 0, op.lpn);
                    if self.victims[plane as usize].0 == NO_BLOCK {
                        self.collect(now, plane);
                    }
                }
                self.record(now - op.arrival);
                is_host = true;
            }
            Kind::MoveRead => self.submit(now, Op { kind: Kind::MoveWrite, ..op }),
            Kind::MoveWrite => {
                if self.map[op.lpn as usize] == op.from + 1 {
                    self.place(plane, 1, op.lpn);
                }
                self.collect(now, plane);
            }
            Kind::Erase => {
                self.valid[op.from as usize] = 0;
                self.free[plane as usize].push(op.from);
                self.victims[plane as usize].0 = NO_BLOCK;
                self.collect(now, plane);
            }
        }
        match self.queues[die].pop_front() {
            Some(op) => self.start(now, die, op),
            None => self.is_busy[die] = false,
        }
        if is_host {
            self.issue(now);
        }
    }

    #[inline(always)]
    fn issue(&mut self, now: u64) {
        let next = self.next_random();
        prefetch(&self.map, next as usize);
        let lpn = std::mem::replace(&mut self.ahead[self.issued as usize % AHEAD], next);
        self.issued += 1;
        let read_from = || (self.map[lpn as usize] - 1) / PAGES / self.blocks;
        let (kind, plane) = if self.is_write { (Kind::Write, lpn % PLANES) } else { (Kind::Read, read_from()) };
        self.submit(now, Op { kind, plane: plane as u8, from: 0, lpn, arrival: now });
    }

    /// Performs random requests of one unit at depth 32, and counts from zero. Drops what the previous run left in
    /// flight.
    pub fn run(&mut self, is_write: bool, requests: u64) -> Done {
        for (victim, _) in &mut self.victims {
            if *victim != NO_BLOCK {
                self.closed[*victim as usize] = true;
                *victim = NO_BLOCK;
            }
        }
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.channel_queues.iter_mut().for_each(VecDeque::clear);
        self.is_busy.fill(false);
        self.channel_free.fill(0);
        self.lanes = Lanes { heads: [NEVER; 5], ..Lanes::default() };
        (self.done, self.operations, self.latencies) = (0, 0, 0);
        self.is_write = is_write;
        for index in 0..AHEAD {
            self.ahead[index] = self.next_random();
        }
        self.measured(requests);
        Done { operations: self.operations, latency: self.latencies as f64 / self.done as f64 }
    }

    #[inline(never)]
    fn measured(&mut self, requests: u64) {
        (0..DEPTH).for_each(|_| self.issue(0));
        while self.done < requests {
            let Some((lane, at, who)) = self.lanes.pop() else { return };
            let who = who as usize;
            if who >= DIES {
                let channel = who - DIES;
                let Some(die) = self.channel_queues[channel].pop_front() else { continue };
                self.grant(at, die as usize);
                if !self.channel_queues[channel].is_empty() {
                    self.lanes.push(0, self.channel_free[channel], who as u32);
                }
            } else if lane == 2 {
                self.request(at, who);
            } else {
                self.end(at, who);
            }
        }
    }
}
