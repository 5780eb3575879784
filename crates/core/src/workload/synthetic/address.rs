//! Where requests go: sequential, random by any of fio's distributions, and in strides.
//!
//! All addresses here are counted in sectors from the start of the device.

use crate::sim::rng::Rng;

/// A bijection of `0..n`, chosen by a key, in constant memory.
///
/// A five-round Feistel network over the two digits of a number with `columns` columns, whose round functions are added
/// modulo the number of rows or columns (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
/// `rows * columns` exceeds `n` by less than a column, so that their cycle walking, which brings an image outside
/// `0..n` back, happens about once in `sqrt(n)` calls; a network over powers of two would walk up to half of the time.
/// Four rounds would leave numbers that are a row apart visibly correlated. The first round depends on the row alone,
/// so that numbers in order cost only four.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    rows: u64,
    columns: u64,
    keys: [u64; 5],
}

impl Permutation {
    /// A bijection of `0..n`, `n` from 1 to 2^55; the key is drawn from `rng`.
    pub fn new(n: u64, rng: &mut Rng) -> Permutation {
        debug_assert!(n > 0);
        let root = n.isqrt();
        let columns = root + u64::from(root * root < n);
        let mut permutation = Permutation { n, rows: n.div_ceil(columns), columns, keys: [0; 5] };
        permutation.rekey(rng);
        permutation
    }

    /// Becomes another bijection of the same numbers.
    pub fn rekey(&mut self, rng: &mut Rng) {
        for key in &mut self.keys {
            *key = rng.next_u64();
        }
    }

    /// The image of `i`.
    pub fn apply(&self, i: u64) -> u64 {
        let row = i / self.columns;
        self.image(row, i % self.columns, self.shift(row))
    }

    /// The first round: by how much it moves the columns of a row.
    #[inline]
    fn shift(&self, row: u64) -> u64 {
        hash_below(row, self.keys[0], self.columns)
    }

    /// The image of the number in this row and column, counted row by row; `shift` is the row's.
    #[inline]
    fn image(&self, mut row: u64, mut column: u64, mut shift: u64) -> u64 {
        loop {
            column = add_modulo(column, shift, self.columns);
            for pair in self.keys[1..].chunks_exact(2) {
                row = add_modulo(row, hash_below(column, pair[0], self.rows), self.rows);
                column = add_modulo(column, hash_below(row, pair[1], self.columns), self.columns);
            }
            let image = row * self.columns + column;
            if image < self.n {
                return image;
            }
            shift = self.shift(row);
        }
    }
}

/// `(a + b) % modulus` of two numbers below `modulus`.
#[inline]
fn add_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

/// A round function: a keyed hash of `x` in `0..bound`.
///
/// Two multiplications, with the upper bits brought down between them (the finalizer of MurmurHash3): with a single
/// one, equal steps of `x` become equal steps of the hash, and neighbours keep their distance.
#[inline]
fn hash_below(x: u64, key: u64, bound: u64) -> u64 {
    let hash = (x ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}

/// Every number of `0..n` once, in random order, then again in another: what fio's random map does, without the map.
#[derive(Clone, Debug)]
pub struct Passes {
    permutation: Permutation,
    /// Row and column of the next number to be permuted.
    row: u64,
    column: u64,
    /// [`Permutation::shift`] of the row.
    shift: u64,
    /// How many are left of this pass.
    left: u64,
}

impl Passes {
    /// Passes over `0..n`; the first one's key is drawn from `rng`.
    pub fn new(n: u64, rng: &mut Rng) -> Passes {
        let permutation = Permutation::new(n, rng);
        Passes { shift: permutation.shift(0), permutation, row: 0, column: 0, left: n }
    }

    /// The next number; at the end of a pass, `rng` gives the key of the next one.
    #[inline]
    pub fn next(&mut self, rng: &mut Rng) -> u64 {
        if self.left == 0 {
            self.restart(rng);
        }
        self.left -= 1;
        let image = self.permutation.image(self.row, self.column, self.shift);
        self.column += 1;
        if self.column == self.permutation.columns {
            (self.row, self.column) = (self.row + 1, 0);
            self.shift = self.permutation.shift(self.row);
        }
        image
    }

    /// Forgets what was covered and starts a new pass.
    fn restart(&mut self, rng: &mut Rng) {
        self.permutation.rekey(rng);
        (self.row, self.column, self.left) = (0, 0, self.permutation.n);
        self.shift = self.permutation.shift(0);
    }
}

/// Ranks `1..=n` with probability proportional to `rank^-theta`, exactly and without tables.
///
/// Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", ACM TOMACS 6(3), 1996. fio's own generator (Gray et al., "Quickly generating billion-record
/// synthetic databases", SIGMOD 1994) needs theta other than 1 and a sum over all blocks.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    /// The integral of the hat at 3/2 less the first probability, and at `n + 1/2`.
    ends: (f64, f64),
    /// Below this distance to the nearest integer a draw is accepted without computing the hat.
    sure: f64,
}

impl Zipf {
    /// For `n` ranks and `theta` above 0.
    pub fn new(n: u64, theta: f64) -> Zipf {
        let mut zipf = Zipf { n, theta, ends: (0.0, 0.0), sure: 0.0 };
        zipf.ends = (zipf.integral(1.5) - 1.0, zipf.integral(n as f64 + 0.5));
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// The next rank, from 1.
    #[inline]
    pub fn next(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.ends.1 + rng.unit() * (self.ends.0 - self.ends.1);
            let x = self.inverse(u);
            // The cast cuts off, and takes what is negative to 0.
            let rank = ((x + 0.5) as u64).clamp(1, self.n);
            let k = rank as f64;
            if k - x <= self.sure || u >= self.integral(k + 0.5) - self.density(k) {
                return rank;
            }
        }
    }

    /// `x^-theta`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// The integral of [`Zipf::density`] from 1: `(x^(1 - theta) - 1) / (1 - theta)`, and `log(x)` for theta 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        log * over_argument(libm::expm1, (1.0 - self.theta) * log)
    }

    /// The `x` at which [`Zipf::integral`] is `y`.
    fn inverse(&self, y: f64) -> f64 {
        // Rounding may carry the argument of the logarithm below 0 where theta is large.
        let t = (y * (1.0 - self.theta)).max(-1.0);
        libm::exp(y * over_argument(libm::log1p, t))
    }
}

/// `f(x) / x` for `expm1` and `log1p`, both of which are `x` to first order.
#[inline]
fn over_argument(f: fn(f64) -> f64, x: f64) -> f64 {
    if x.abs() > 1e-300 { f(x) / x } else { 1.0 }
}

/// From ranks to positions: a permutation, turned so that the first rank is where it should be.
#[derive(Clone, Debug)]
pub struct Scatter {
    permutation: Permutation,
    turn: u64,
}

impl Scatter {
    /// Over `0..n`; the first rank at `centre`, in parts of one, or anywhere.
    pub fn new(n: u64, centre: Option<f64>, rng: &mut Rng) -> Scatter {
        let permutation = Permutation::new(n, rng);
        let turn = centre.map_or(0, |centre| {
            let place = ((centre * n as f64) as u64).min(n - 1);
            (place + n - permutation.apply(0)) % n
        });
        Scatter { permutation, turn }
    }

    /// The position of a rank, from 0.
    #[inline]
    pub fn apply(&self, rank: u64) -> u64 {
        add_modulo(self.permutation.apply(rank), self.turn, self.permutation.n)
    }
}

/// How one direction of a random job chooses among the positions `0..n`.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Every position once before any comes again.
    Passes(Passes),
    /// Each request for itself, all positions alike.
    Uniform,
    /// Zipf-distributed ranks, scattered over the positions.
    Zipf(Zipf, Scatter),
    /// Rank `n * u^power` for a uniform `u` (fio's `pareto_next`), scattered over the positions.
    Pareto {
        /// `log(h) / log(1 - h)`, with which the first `h * n` ranks get `1 - h` of the requests.
        power: f64,
        /// From ranks to positions.
        scatter: Scatter,
    },
    /// Normally distributed positions; those outside are drawn again.
    Normal {
        /// Mean and standard deviation, in positions.
        mean: f64,
        /// See above.
        deviation: f64,
    },
    /// By zones, each uniform in itself.
    Zoned(Vec<Zone>),
}

/// One zone of [`Choice::Zoned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// Percent of the requests that go to this zone or one before it; the last zone's is 100.
    pub up_to: u32,
    /// The zone's first position.
    pub start: u64,
    /// How many positions it has; not 0 where requests go.
    pub positions: u64,
}

impl Choice {
    #[inline]
    fn next(&mut self, positions: u64, rng: &mut Rng) -> u64 {
        match self {
            Choice::Passes(passes) => passes.next(rng),
            Choice::Uniform => rng.below(positions),
            Choice::Zipf(zipf, scatter) => scatter.apply(zipf.next(rng) - 1),
            Choice::Pareto { power, scatter } => {
                let rank = (positions as f64 * libm::pow(rng.unit(), *power)) as u64;
                scatter.apply(rank.min(positions - 1))
            }
            Choice::Normal { mean, deviation } => loop {
                let position = *mean + *deviation * rng.normal();
                if position >= 0.0 && position < positions as f64 {
                    return position as u64;
                }
            },
            Choice::Zoned(zones) => {
                let draw = rng.below(100) as u32;
                let zone = zones.iter().find(|zone| draw < zone.up_to).unwrap_or(&zones[zones.len() - 1]);
                zone.start + rng.below(zone.positions)
            }
        }
    }
}

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

    fn rng() -> Rng {
        Rng::new(1, "test")
    }

    /// Pearson's statistic, less its mean and in units of its standard deviation: below 5 where the counts fit.
    fn misfit(counts: &[u64], expected: &[f64]) -> f64 {
        let chi: f64 = counts.iter().zip(expected).map(|(&c, e)| (c as f64 - e) * (c as f64 - e) / e).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi - freedom) / libm::sqrt(2.0 * freedom)
    }

    #[test]
    fn permutations_are_bijections() {
        let mut rng = rng();
        for n in (1..=2000).chain([4095, 4096, 4097, 65_535, 65_536, 65_537, 1_000_003]) {
            let permutation = Permutation::new(n, &mut rng);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                assert!(!std::mem::replace(&mut seen[permutation.apply(i) as usize], true), "n = {n}");
            }
        }
    }

    #[test]
    fn permutations_of_large_domains_stay_inside_and_do_not_collide() {
        for n in [1 << 32, (1 << 32) + 1, 3_000_000_019, 1 << 55] {
            let permutation = Permutation::new(n, &mut rng());
            let images: std::collections::BTreeSet<u64> =
                (0..10_000).map(|i| permutation.apply(n / 10_000 * i)).inspect(|&image| assert!(image < n)).collect();
            assert_eq!(images.len(), 10_000);
        }
    }

    #[test]
    fn keys_place_a_number_anywhere() {
        let n = 100;
        for i in [0, 1, 57, 99] {
            let mut permutation = Permutation::new(n, &mut rng());
            let mut rng = Rng::new(i, "keys");
            let mut counts = vec![0; n as usize];
            for _ in 0..100_000 {
                permutation.rekey(&mut rng);
                counts[permutation.apply(i) as usize] += 1;
            }
            assert!(misfit(&counts, &[1000.0; 100]) < 5.0, "{counts:?}");
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        // The distance from an address of a pass to one soon after it, and the places of addresses, in 64 classes,
        // against independent uniform draws. A step of 1000 or so is one row down.
        for (n, step) in
            [(1 << 20, 1), (1 << 20, 2), (1 << 20, 1024), (1_000_003, 1), (1_000_003, 1001), (12_345, 1), (12_345, 112)]
        {
            let mut rng = rng();
            let mut passes = Passes::new(n, &mut rng);
            let pass: Vec<u64> = (0..n.min(200_000)).map(|_| passes.next(&mut rng)).collect();
            let (mut distances, mut places) = ([0; 64], [0; 64]);
            for (one, other) in pass.iter().zip(&pass[step..]) {
                distances[((other + n - one) % n * 64 / n) as usize] += 1;
                places[(one * 64 / n) as usize] += 1;
            }
            let expected = [(pass.len() - step) as f64 / 64.0; 64];
            assert!(misfit(&distances, &expected) < 5.0, "n = {n}, step {step}: {distances:?}");
            assert!(misfit(&places, &expected) < 5.0, "n = {n}, step {step}: {places:?}");
        }
    }

    #[test]
    fn every_pass_covers_all_once_in_another_order() {
        let mut rng = rng();
        for n in 1..=2000u64 {
            let mut passes = Passes::new(n, &mut rng);
            let pass = |passes: &mut Passes, rng: &mut Rng| -> Vec<u64> { (0..n).map(|_| passes.next(rng)).collect() };
            let (first, second) = (pass(&mut passes, &mut rng), pass(&mut passes, &mut rng));
            for order in [&first, &second] {
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..n), "n = {n}");
            }
            assert!(n < 20 || first != second, "n = {n}");
            let permutation = passes.permutation.clone();
            assert!(second.into_iter().eq((0..n).map(|i| permutation.apply(i))), "n = {n}");
        }
    }

    #[test]
    fn zipf_frequencies_follow_the_formula() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.000_000_1, 1.2, 2.5] {
            let n = 1000;
            let zipf = Zipf::new(n, theta);
            let weights: Vec<f64> = (1..=n).map(|k| libm::pow(k as f64, -theta)).collect();
            let sum: f64 = weights.iter().sum();
            let draws = 400_000;
            let mut rng = rng();
            let mut counts = vec![0u64; n as usize];
            for _ in 0..draws {
                counts[zipf.next(&mut rng) as usize - 1] += 1;
            }
            // Ranks that are expected fewer than ten times are one class.
            let expected: Vec<f64> = weights.iter().map(|w| w / sum * f64::from(draws)).collect();
            let top = expected.iter().take_while(|e| **e >= 10.0).count();
            let mut counts = [&counts[..top], &[counts[top..].iter().sum()]].concat();
            let mut expected = [&expected[..top], &[expected[top..].iter().sum()]].concat();
            if top == n as usize {
                counts.pop();
                expected.pop();
            }
            let misfit = misfit(&counts, &expected);
            assert!(misfit.abs() < 5.0, "theta {theta}: {misfit}");
        }
    }

    #[test]
    fn zipf_holds_for_four_thousand_million_ranks() {
        let n = 1u64 << 32;
        for theta in [0.5, 0.9, 1.0, 1.1, 3.0, 30.0] {
            let zipf = Zipf::new(n, theta);
            // The sum of k^-theta by Euler and Maclaurin, from 1000 on.
            let integral = |x: f64| if theta == 1.0 { libm::log(x) } else { libm::pow(x, 1.0 - theta) / (1.0 - theta) };
            let head: f64 = (1..1000).map(|k| libm::pow(f64::from(k), -theta)).sum();
            let tail = integral(n as f64) - integral(1000.0);
            let ends = (libm::pow(1000.0, -theta) + libm::pow(n as f64, -theta)) / 2.0;
            let sum = head + tail + ends;
            let draws = 200_000;
            let mut rng = rng();
            let (mut first, mut thousand) = (0u32, 0u32);
            for _ in 0..draws {
                let rank = zipf.next(&mut rng);
                assert!((1..=n).contains(&rank));
                first += u32::from(rank == 1);
                thousand += u32::from(rank < 1000);
            }
            for (count, share) in [(first, 1.0 / sum), (thousand, head / sum)] {
                let deviation = libm::sqrt(f64::from(draws) * share * (1.0 - share)).max(1.0);
                let expected = share * f64::from(draws);
                assert!((f64::from(count) - expected).abs() < 5.0 * deviation, "theta {theta}: {count}, {expected}");
            }
        }
    }

    #[test]
    fn zipf_of_a_single_rank() {
        for theta in [0.5, 1.0, 2.0] {
            assert!((0..100).all({
                let (zipf, mut rng) = (Zipf::new(1, theta), rng());
                move |_| zipf.next(&mut rng) == 1
            }));
        }
    }

    #[test]
    fn pareto_is_self_similar() {
        // h of the positions get 1 - h of the requests, h^2 of them get (1 - h)^2, and so on (fio's `pareto_init`).
        for h in [0.1, 0.2, 0.4] {
            let n = 1_000_000u64;
            let mut rng = rng();
            let scatter = Scatter::new(n, None, &mut rng);
            let mut rank_of = vec![0; n as usize];
            (0..n).for_each(|rank| rank_of[scatter.apply(rank) as usize] = rank);
            let mut choice = Choice::Pareto { power: libm::log(h) / libm::log(1.0 - h), scatter };
            let ranks: Vec<u64> = (0..100_000).map(|_| rank_of[choice.next(n, &mut rng) as usize]).collect();
            for exponent in [1.0, 2.0, 3.0] {
                let below = libm::pow(h, exponent) * n as f64;
                let share = ranks.iter().filter(|&&rank| (rank as f64) < below).count() as f64 / 1e5;
                let expected = libm::pow(1.0 - h, exponent);
                assert!((share - expected).abs() < 0.008, "h {h}, exponent {exponent}: {share}");
            }
        }
    }

    #[test]
    fn the_hottest_block_is_at_the_centre() {
        for (n, centre, place) in [(1000, 0.25, 250), (1000, 0.0, 0), (1000, 1.0, 999), (7, 0.5, 3), (1, 0.5, 0)] {
            let scatter = Scatter::new(n, Some(centre), &mut rng());
            assert_eq!(scatter.apply(0), place);
            let places: std::collections::BTreeSet<u64> = (0..n).map(|rank| scatter.apply(rank)).collect();
            assert_eq!(places.len() as u64, n);
        }
    }

    #[test]
    fn normal_positions_have_their_mean_and_deviation() {
        let mut choice = Choice::Normal { mean: 400.0, deviation: 50.0 };
        let mut rng = rng();
        let draws: Vec<f64> = (0..100_000).map(|_| choice.next(1000, &mut rng) as f64 + 0.5).collect();
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / 1e5;
        // Standard errors: 0.16 of the mean, 0.11 of the deviation.
        assert!((mean - 400.0).abs() < 0.8 && (libm::sqrt(variance) - 50.0).abs() < 0.6, "{mean} {variance}");
        // A deviation as large as the region, around its start: the half of it, cut off at the end.
        let mut choice = Choice::Normal { mean: 0.0, deviation: 1000.0 };
        assert!((0..10_000).all(|_| choice.next(1000, &mut rng) < 1000));
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
    fn zones_have_their_shares() {
        let zones = [(60, 0, 100), (90, 100, 200), (98, 300, 300), (100, 600, 400)];
        let zones = zones.map(|(up_to, start, positions)| Zone { up_to, start, positions });
        let mut choice = Choice::Zoned(zones.to_vec());
        let mut rng = rng();
        let mut counts = vec![0; 1000];
        for _ in 0..500_000 {
            counts[choice.next(1000, &mut rng) as usize] += 1;
        }
        let share = |percent: f64, positions: usize| vec![percent * 5000.0 / positions as f64; positions];
        let expected = [share(60.0, 100), share(30.0, 200), share(8.0, 300), share(2.0, 400)].concat();
        assert!(misfit(&counts, &expected) < 5.0);
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
