//! Where requests go: sequential, random by any of fio's distributions, and in strides.
//!
//! All addresses here are counted in sectors from the start of the device.

pub mod choice;
pub mod permutation;
pub mod zipf;

use crate::sim::rng::Rng;
use choice::Choice;

/// How one direction of a random job finds its addresses: one of `positions` every `align` sectors.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Distance of the positions, in sectors.
    pub align: u64,
    /// How many there are in the window.
    pub positions: u64,
    /// How one is chosen.
    pub choice: Choice,
}

/// The order of addresses in the window.
#[derive(Clone, Debug)]
pub enum Order {
    /// Each direction continues where it was, and at the end of the window from its start: by direction, the next
    /// request's distance from the start of the window, in sectors; and how many sectors are left out between two
    /// requests, negative for going back.
    Sequential([u64; 3], i64),
    /// Random: the grids, and by direction which of them it uses. Directions that share a grid share its passes.
    Random(Vec<Grid>, [usize; 3]),
}

/// The part of the device where requests go at a time, and how it moves: fio's `zonemode=strided`. A job without
/// zones has one window that never moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// First sector of the first window.
    pub first: u64,
    /// The sector after the last that a window may hold.
    pub end: u64,
    /// Sectors in a window (`zonerange`).
    pub range: u64,
    /// Sectors between two windows (`zoneskip`).
    pub skip: u64,
    /// Move on after so many sectors (`zonesize`); `u64::MAX` for never.
    pub size: u64,
}

/// Requests of a random job that follow others instead: fio's `rw=randread:8`, `rw_sequencer`, `percentage_random`.
#[derive(Clone, Debug)]
pub struct Follow {
    /// A new random address every so many requests.
    pub run: u32,
    /// Those between have the same address, instead of one after the other.
    pub identical: bool,
    /// By direction, percent of the requests that are at random where they may be.
    pub percent: [u32; 3],
    /// What the percentage is drawn from.
    pub rng: Rng,
    /// Requests until the next random one.
    left: u32,
    /// By direction, start and end of the last request in the window.
    last: [(u64, u64); 3],
}

impl Follow {
    /// At the start of a window.
    pub fn new(run: u32, identical: bool, percent: [u32; 3], rng: Rng) -> Follow {
        Follow { run, identical, percent, rng, left: 0, last: [(0, 0); 3] }
    }

    /// Where the next request of this direction goes, if not to a random place.
    fn next(&mut self, direction: usize, length: u64, range: u64) -> Option<u64> {
        let (start, end) = self.last[direction];
        if self.left > 0 {
            self.left -= 1;
            let next = if self.identical { start } else { end };
            // As in fio, what would reach beyond the end goes to a random place.
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

/// The start of a sequential request: `skip` behind the `end` of the last one, or from the window's other end.
fn after(end: u64, skip: i64, length: u64, range: u64) -> u64 {
    let next = if end == 0 { Some(0) } else { end.checked_add_signed(skip) };
    match next.filter(|next| next.checked_add(length).is_some_and(|end| end <= range)) {
        Some(next) => next,
        None if skip >= 0 => 0,
        // Going back begins as far before the end as it goes.
        None => range.saturating_sub(skip.unsigned_abs().max(length)),
    }
}

/// The addresses of a job.
#[derive(Clone, Debug)]
pub struct Addresses {
    window: Window,
    /// The current window's first sector.
    start: u64,
    /// Sectors requested in the current window.
    done: u64,
    order: Order,
    /// Of a random job.
    follow: Option<Box<Follow>>,
    rng: Rng,
}

impl Addresses {
    /// Addresses in `window`; the random ones are drawn from `rng`.
    pub fn new(window: Window, order: Order, follow: Option<Follow>, rng: Rng) -> Addresses {
        Addresses { start: window.first, window, done: 0, order, follow: follow.map(Box::new), rng }
    }

    /// The first sector of the next request: `sectors` long, which must not exceed the window, in the direction of
    /// this index.
    #[inline]
    pub fn next(&mut self, direction: usize, sectors: u32) -> u64 {
        let length = u64::from(sectors);
        if self.done >= self.window.size {
            self.move_on();
        }
        self.done += length;
        let offset = match &mut self.order {
            Order::Sequential(next, skip) => {
                let offset = after(next[direction], *skip, length, self.window.range);
                next[direction] = offset + length;
                offset
            }
            Order::Random(grids, by_direction) => {
                if let Some(follow) = &mut self.follow
                    && let Some(offset) = follow.next(direction, length, self.window.range)
                {
                    follow.last[direction] = (offset, offset + length);
                    return self.start + offset;
                }
                let grid = &mut grids[by_direction[direction]];
                let mut offset = grid.choice.next(grid.positions, &mut self.rng) * grid.align;
                if offset + length > self.window.range {
                    // A large block near the end: moved back to the last position where it fits, so that the shares
                    // of the sizes stay exact.
                    offset = (self.window.range - length) / grid.align * grid.align;
                }
                if let Some(follow) = &mut self.follow {
                    follow.last[direction] = (offset, offset + length);
                }
                offset
            }
        };
        self.start + offset
    }

    /// On to the next window, or back to the first where the next one does not fit; passes and positions start anew.
    #[cold]
    fn move_on(&mut self) {
        let Window { first, end, range, skip, .. } = self.window;
        self.done = 0;
        self.start += range + skip;
        if self.start + range > end {
            self.start = first;
        }
        if let Some(follow) = &mut self.follow {
            follow.restart();
        }
        match &mut self.order {
            Order::Sequential(next, _) => *next = [0; 3],
            Order::Random(grids, _) => {
                for grid in grids {
                    if let Choice::Passes(passes) = &mut grid.choice {
                        passes.restart(&mut self.rng);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn rng() -> Rng {
        Rng::new(1, "test")
    }

    /// Pearson's statistic, less its mean and in units of its standard deviation: below 5 where the counts fit.
    pub(super) fn misfit(counts: &[u64], expected: &[f64]) -> f64 {
        let chi: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e) * (c as f64 - e) / e).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi - freedom) / libm::sqrt(2.0 * freedom)
    }

    #[test]
    fn skips_lead_on_and_back() {
        let starts = |skip, count: usize| {
            let mut end = 0;
            let mut next = || {
                let start = after(end, skip, 8, 64);
                end = start + 8;
                start
            };
            (0..count).map(|_| next()).collect::<Vec<u64>>()
        };
        assert_eq!(starts(0, 9), [0, 8, 16, 24, 32, 40, 48, 56, 0]);
        assert_eq!(starts(8, 5), [0, 16, 32, 48, 0]);
        // As fio 3.33 goes for rw=read:-8k and bs=4k.
        assert_eq!(starts(-16, 9), [0, 48, 40, 32, 24, 16, 8, 0, 48]);
        assert_eq!(starts(i64::MAX, 3), [0, 0, 0]);
        assert_eq!(starts(i64::MIN, 3), [0, 0, 0]);
    }

    #[test]
    fn windows_move_by_range_and_skip_and_wrap() {
        let window = Window { first: 100, end: 165, range: 20, skip: 5, size: 24 };
        let mut addresses = Addresses::new(window, Order::Sequential([0; 3], 0), None, rng());
        let lbas: Vec<u64> = (0..10).map(|_| addresses.next(0, 8)).collect();
        // Two blocks of 8 fit a window of 20; the third starts again. After 24 sectors comes the window at 125; the
        // one at 150 would reach beyond 165.
        assert_eq!(lbas, [100, 108, 100, 125, 133, 125, 100, 108, 100, 125]);
    }
}
