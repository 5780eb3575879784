//! Addresses of requests: sequential, random with fio's distributions, and in strides.
//!
//! All addresses are sectors, counted from the start of the device.

pub mod choice;
pub mod map;
pub mod permutation;
pub mod sprandom;
pub mod zipf;

use super::size::Sizes;
use crate::sim::rng::Rng;
use choice::Choice;
use map::Map;

/// Possible addresses for one direction of a random job: `positions` addresses at a distance of `align` sectors.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Distance between positions, in sectors.
    pub align: u64,
    /// Number of positions in the window.
    pub positions: u64,
    /// Choice of a position.
    pub choice: Choice,
}

/// Order of the addresses in the window.
#[derive(Clone, Debug)]
pub enum Order {
    /// Sequential. Each direction continues after its last request, and restarts at the end of the window.
    Sequential(Run),
    /// Random: the grids, and the index of the grid of each direction. Directions with the same grid share its passes.
    Random(Vec<Grid>, [usize; 3]),
    /// Random, with several sizes: each block of `align` sectors occurs once in a pass. A request ends before a block
    /// that occurred, as in fio.
    Mapped {
        /// Blocks of this pass.
        map: Map,
        /// Number of blocks.
        blocks: u64,
        /// Sectors of a block.
        align: u64,
    },
}

/// Positions of a sequential job in its window, in sectors, by direction.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// End of the last request.
    pub ends: [u64; 3],
    /// Distance from the end of a request to the next one. Negative for backward jobs.
    pub skip: i64,
    /// True if all requests have one size. As in fio, the last one may then extend beyond the window, up to the end of
    /// the file.
    pub fixed: [bool; 3],
    /// Value of `ends` at the start of a window.
    pub first: u64,
}

impl Run {
    /// Returns the start of the next request: `skip` after the last one, or at the other end of a window of `range`
    /// sectors. `room` is the number of sectors to the end of the file.
    fn next(&self, direction: usize, length: u64, range: u64, room: u64) -> u64 {
        let (end, skip) = (self.ends[direction], self.skip);
        let next = if end == 0 { Some(0) } else { end.checked_add_signed(skip) };
        let limit = if self.fixed[direction] { room } else { range };
        let fits = |next: &u64| *next < range && next.checked_add(length).is_some_and(|end| end <= limit);
        match next.filter(fits) {
            Some(next) => next,
            None if skip >= 0 => 0,
            // A backward job starts at a distance of one step before the end.
            None => range.saturating_sub(skip.unsigned_abs().max(length)),
        }
    }
}

/// The part of the device that requests use at a time, and its movement: fio's `zonemode=strided`. A job without zones
/// has one window that never moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First sector of the first window.
    pub first: u64,
    /// End of the file, in sectors. The first window must not extend beyond it; the last one may.
    pub end: u64,
    /// Sectors per window (`zonerange`).
    pub range: u64,
    /// Sectors between two windows (`zoneskip`).
    pub skip: u64,
    /// Sectors to transfer before the window moves (`zonesize`). `u64::MAX` means never.
    pub size: u64,
}

/// Non-random requests of a random job: fio's `rw=randread:8`, `rw_sequencer` and `percentage_random`.
#[derive(Clone, Debug)]
pub struct Follow {
    /// Number of requests per random address.
    pub run: u32,
    /// True if the other requests repeat the random address. Otherwise they follow it sequentially.
    pub identical: bool,
    /// Percentage of random requests among those that may be random, by direction.
    pub percent: [u32; 3],
    /// Random numbers for the percentage.
    pub rng: Rng,
    /// Number of requests until the next random one.
    left: u32,
    /// Start and end of the last request in the window, by direction.
    last: [(u64, u64); 3],
}

impl Follow {
    /// Creates the state at the start of a window.
    pub fn new(run: u32, identical: bool, percent: [u32; 3], rng: Rng) -> Follow {
        Follow { run, identical, percent, rng, left: 0, last: [(0, 0); 3] }
    }

    /// Returns the offset of the next request of a direction, or `None` if it is random.
    fn next(&mut self, direction: usize, length: u64, range: u64) -> Option<u64> {
        let (start, end) = self.last[direction];
        if self.left > 0 {
            self.left -= 1;
            let next = if self.identical { start } else { end };
            // A request that would extend beyond the end gets a random address, as in fio.
            return (next + length <= range).then_some(next);
        }
        self.left = self.run - 1;
        let percent = self.percent[direction];
        let follows = percent < 100 && self.rng.below(100) as u32 >= percent;
        (follows && end + length <= range).then_some(end)
    }

    fn restart(&mut self) {
        (self.left, self.last) = (0, [(0, 0); 3]);
    }
}

/// Addresses of a job.
#[derive(Clone, Debug)]
pub struct Addresses {
    window: Window,
    /// First sector of the current window.
    start: u64,
    /// Sectors requested in the current window.
    done: u64,
    order: Order,
    /// Non-random requests of a random job.
    follow: Option<Box<Follow>>,
    rng: Rng,
}

impl Addresses {
    /// Creates the addresses in `window`. Random addresses are drawn from `rng`.
    pub fn new(window: Window, order: Order, follow: Option<Follow>, rng: Rng) -> Addresses {
        Addresses { start: window.first, window, done: 0, order, follow: follow.map(Box::new), rng }
    }

    /// Returns the first sector of the next request of a direction. Its length, `sectors`, must not exceed the window.
    #[inline]
    pub fn next(&mut self, direction: usize, sectors: u32) -> u64 {
        let length = u64::from(sectors);
        if self.done >= self.window.size {
            self.move_on();
        }
        let mut offset = self.offset(direction, length);
        if self.start + offset + length > self.window.end {
            self.begin(self.window.first);
            offset = self.offset(direction, length);
        }
        self.done += length;
        self.start + offset
    }

    /// Returns the offset of the next request in the window.
    #[inline(always)]
    fn offset(&mut self, direction: usize, length: u64) -> u64 {
        let range = self.window.range;
        match &mut self.order {
            Order::Sequential(run) => {
                let room = self.window.end - self.start;
                // Beyond the end of the file, the first window follows.
                let offset = run.next(direction, length, range, if room < range { u64::MAX } else { room });
                run.ends[direction] = offset + length;
                offset
            }
            Order::Random(grids, by_direction) => {
                let next = self.follow.as_mut().and_then(|follow| follow.next(direction, length, range));
                let offset = next.unwrap_or_else(|| {
                    let grid = &mut grids[by_direction[direction]];
                    let offset = grid.choice.next(grid.positions, &mut self.rng) * grid.align;
                    // Move a large block near the end back to the last position where it fits, so that the shares of
                    // the sizes stay exact.
                    if offset + length > range { (range - length) / grid.align * grid.align } else { offset }
                });
                if let Some(follow) = &mut self.follow {
                    follow.last[direction] = (offset, offset + length);
                }
                offset
            }
            // `next_mapped` chooses addresses and sizes together.
            Order::Mapped { .. } => 0,
        }
    }

    /// Draws the address and the size of the next request. `None` if the address does not affect the size.
    ///
    /// The size is drawn again until it fits into the window, and is cut at the next block that occurred. Both follow
    /// fio.
    #[inline]
    pub fn next_mapped(&mut self, sizes: &Sizes, size_rng: &mut Rng) -> Option<(u64, u32)> {
        if !matches!(self.order, Order::Mapped { .. }) {
            return None;
        }
        if self.done >= self.window.size {
            self.move_on();
        }
        let (block, left) = loop {
            let Order::Mapped { map, blocks, align } = &mut self.order else { return None };
            let drawn = self.rng.below(*blocks);
            let block = map.next_unused(drawn).unwrap_or_else(|| {
                map.clear();
                drawn
            });
            let room = (self.window.end - self.start).checked_sub(block * *align);
            if let Some(room) = room.filter(|room| *room >= *align) {
                break (block, ((*blocks - block) * *align).min(room));
            }
            self.begin(self.window.first);
        };
        let Order::Mapped { map, align, .. } = &mut self.order else { return None };
        let length = loop {
            let length = u64::from(sizes.next(size_rng));
            if length <= left {
                break length;
            }
        };
        let length = length.min(map.take(block, length.div_ceil(*align)) * *align);
        self.done += length;
        Some((self.start + block * *align, length as u32))
    }

    /// Returns the largest size of the next request in sectors, if the job is sequential: up to the end of the window,
    /// or the whole window if fewer than `min` sectors are left.
    #[inline]
    pub fn largest(&self, direction: usize, min: u32) -> Option<u32> {
        let Order::Sequential(run) = &self.order else { return None };
        let (range, room) = (self.window.range, self.window.end - self.start);
        let start = if self.done >= self.window.size { 0 } else { run.next(direction, u64::from(min), range, range) };
        // The next request is in the first window if it does not fit into a last one that the end of the file cuts.
        let left = if start + u64::from(min) > room { range } else { range.min(room) - start };
        Some(u32::try_from(left).unwrap_or(u32::MAX))
    }

    /// Moves to the next window, or to the first one after the last.
    #[cold]
    fn move_on(&mut self) {
        let Window { first, end, range, skip, .. } = self.window;
        let next = self.start + range + skip;
        self.begin(if next < end { next } else { first });
    }

    /// Begins a window. Restarts passes and positions.
    #[cold]
    fn begin(&mut self, start: u64) {
        (self.start, self.done) = (start, 0);
        if let Some(follow) = &mut self.follow {
            follow.restart();
        }
        match &mut self.order {
            Order::Sequential(run) => run.ends = [run.first; 3],
            Order::Random(grids, _) => {
                for grid in grids {
                    if let Choice::Passes(passes) = &mut grid.choice {
                        passes.restart(&mut self.rng);
                    }
                }
            }
            Order::Mapped { map, .. } => map.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rng() -> Rng {
        Rng::new(1, "test")
    }

    /// Returns Pearson's statistic, minus its mean, in units of its standard deviation. Below 5 if the counts match.
    pub(super) fn misfit(counts: &[u64], expected: &[f64]) -> f64 {
        let chi: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e) * (c as f64 - e) / e).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi - freedom) / libm::sqrt(2.0 * freedom)
    }

    #[test]
    fn skips_lead_on_and_back() {
        let starts = |skip, count: usize| {
            let mut run = Run { ends: [0; 3], skip, fixed: [false; 3], first: 0 };
            let mut next = || {
                let start = run.next(0, 8, 64, 64);
                run.ends[0] = start + 8;
                start
            };
            (0..count).map(|_| next()).collect::<Vec<u64>>()
        };
        assert_eq!(starts(0, 9), [0, 8, 16, 24, 32, 40, 48, 56, 0]);
        assert_eq!(starts(8, 5), [0, 16, 32, 48, 0]);
        // Addresses of fio 3.33 for rw=read:-8k and bs=4k.
        assert_eq!(starts(-16, 9), [0, 48, 40, 32, 24, 16, 8, 0, 48]);
        assert_eq!(starts(i64::MAX, 3), [0, 0, 0]);
        assert_eq!(starts(i64::MIN, 3), [0, 0, 0]);
    }

    #[test]
    fn windows_move_by_range_and_skip_and_wrap() {
        let window = Window { first: 100, end: 162, range: 20, skip: 5, size: 24 };
        let run = Run { ends: [0; 3], skip: 0, fixed: [false; 3], first: 0 };
        let mut addresses = Addresses::new(window, Order::Sequential(run), None, rng());
        let lbas: Vec<u64> = (0..10).map(|_| addresses.next(0, 8)).collect();
        // Two blocks of 8 fit into a window of 20, and the third starts again. After 24 sectors, the window moves to
        // 125. The end of the file cuts the next one, at 150: a block fits, and the first window follows.
        assert_eq!(lbas, [100, 108, 100, 125, 133, 125, 150, 100, 108, 100]);
    }
}
