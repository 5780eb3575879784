//! Random permutations of the numbers from 0 to n in constant memory, and orders based on them.

use crate::sim::rng::Rng;

/// A bijection of `0..n` that is chosen by a key, in constant memory.
///
/// A five-round Feistel network over the two digits of a number with `columns` columns. Its round functions are added
/// modulo the number of rows or columns (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
/// `rows * columns` exceeds `n` by less than a column. Cycle walking, which repeats the network for an image outside
/// `0..n`, is therefore needed about once in `sqrt(n)` calls. A network over powers of two would need it up to half of
/// the time. With four rounds, numbers at a distance of one row would be visibly correlated. The first round depends
/// only on the row, so that consecutive numbers need only four.
#[derive(Clone, Debug)]
pub struct Permutation {
    n: u64,
    rows: u64,
    columns: u64,
    keys: [u64; 5],
}

impl Permutation {
    /// Creates a bijection of `0..n`, with `n` from 1 to 2^55. Draws the key from `rng`.
    pub fn new(n: u64, rng: &mut Rng) -> Permutation {
        debug_assert!(n > 0);
        let root = n.isqrt();
        let columns = root + u64::from(root * root < n);
        let mut permutation = Permutation { n, rows: n.div_ceil(columns), columns, keys: [0; 5] };
        permutation.rekey(rng);
        permutation
    }

    /// Changes to another bijection of the same numbers.
    pub fn rekey(&mut self, rng: &mut Rng) {
        for key in &mut self.keys {
            *key = rng.next_u64();
        }
    }

    /// Returns the image of `i`.
    pub fn apply(&self, i: u64) -> u64 {
        let row = i / self.columns;
        self.image(row, i % self.columns, self.shift(row))
    }

    /// Computes the first round: the amount by which the columns of a row are shifted.
    #[inline]
    fn shift(&self, row: u64) -> u64 {
        hash_below(row, self.keys[0], self.columns)
    }

    /// Returns the image of the number in this row and column, counted row by row. `shift` is the shift of the row.
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

/// Returns `(a + b) % modulus` for two numbers below `modulus`.
#[inline]
fn add_modulo(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

/// Round function: a keyed hash of `x` in `0..bound`.
///
/// Uses two multiplications, and mixes the upper bits down between them (the finalizer of MurmurHash3). With a single
/// multiplication, equal steps of `x` would give equal steps of the hash, and neighbors would keep their distance.
#[inline]
fn hash_below(x: u64, key: u64, bound: u64) -> u64 {
    let hash = (x ^ key).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}

/// Passes over `0..n`: each number once in random order, then again in another order. Works like fio's random map, but
/// needs no map.
#[derive(Clone, Debug)]
pub struct Passes {
    permutation: Permutation,
    /// Row and column of the next input of the permutation.
    row: u64,
    column: u64,
    /// [`Permutation::shift`] of the row.
    shift: u64,
    /// Remaining numbers of this pass.
    left: u64,
}

impl Passes {
    /// Creates passes over `0..n`. Draws the key of the first pass from `rng`.
    pub fn new(n: u64, rng: &mut Rng) -> Passes {
        let permutation = Permutation::new(n, rng);
        Passes { shift: permutation.shift(0), permutation, row: 0, column: 0, left: n }
    }

    /// Returns the next number. Draws the key of a new pass from `rng`.
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

    /// Returns how many numbers of this pass are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Starts a new pass.
    pub fn restart(&mut self, rng: &mut Rng) {
        self.permutation.rekey(rng);
        (self.row, self.column, self.left) = (0, 0, self.permutation.n);
        self.shift = self.permutation.shift(0);
    }
}

/// Mapping of ranks to positions: a permutation, rotated so that the first rank has a given position.
#[derive(Clone, Debug)]
pub struct Scatter {
    permutation: Permutation,
    turn: u64,
}

impl Scatter {
    /// Creates a mapping over `0..n`. The first rank is at `center`, from 0 to 1, or at a random position.
    pub fn new(n: u64, center: Option<f64>, rng: &mut Rng) -> Scatter {
        let permutation = Permutation::new(n, rng);
        let turn = center.map_or(0, |center| {
            let place = ((center * n as f64) as u64).min(n - 1);
            (place + n - permutation.apply(0)) % n
        });
        Scatter { permutation, turn }
    }

    /// Returns the position of a rank, counted from 0.
    #[inline]
    pub fn apply(&self, rank: u64) -> u64 {
        add_modulo(self.permutation.apply(rank), self.turn, self.permutation.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::address::tests::{misfit, rng};

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
    fn neighbors_are_scattered() {
        // Compares two values with independent uniform draws, in 64 classes: the distance between an address of a pass
        // and one soon after it, and the position of the addresses. A step of about 1000 is one row down.
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
    fn the_hottest_block_is_at_the_center() {
        for (n, center, place) in [(1000, 0.25, 250), (1000, 0.0, 0), (1000, 1.0, 999), (7, 0.5, 3), (1, 0.5, 0)] {
            let scatter = Scatter::new(n, Some(center), &mut rng());
            assert_eq!(scatter.apply(0), place);
            let places: std::collections::BTreeSet<u64> = (0..n).map(|rank| scatter.apply(rank)).collect();
            assert_eq!(places.len() as u64, n);
        }
    }
}
