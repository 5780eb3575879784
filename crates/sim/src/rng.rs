//! Reproducible random numbers: xoshiro256++ with named streams.
//!
//! Results for a seed must be identical in every version (design decision 14). The streams of the `rand` crate may
//! change between its versions, so the generator is implemented here. Algorithms: Blackman and Vigna, "Scrambled linear
//! pseudorandom number generators", ACM TOMS 47(4), 2021, seeded by splitmix64 as they recommend. Bounded integers:
//! Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the stream `name` of `seed`. Different names give independent streams, so that an additional draw in one
    /// part of the model does not affect another part.
    pub fn new(seed: u64, name: &str) -> Rng {
        // FNV-1a: stable, and sufficient to distinguish a few names.
        let hash =
            name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut x = seed ^ hash;
        let mut splitmix = || {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Rng { state: [splitmix(), splitmix(), splitmix(), splitmix()] }
    }

    /// Returns the state of the stream.
    #[inline]
    pub fn words(&self) -> [u64; 4] {
        self.state
    }

    /// Creates a stream from a state. `None` for all zeros, which the generator could never leave.
    pub fn from_words(state: [u64; 4]) -> Option<Rng> {
        (state != [0; 4]).then_some(Rng { state })
    }

    /// Returns 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// Returns a uniform number in `0..bound`, without bias. `bound` must not be 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let mut wide = u128::from(self.next_u64()) * u128::from(bound);
        if (wide as u64) < bound {
            let reject = bound.wrapping_neg() % bound;
            while (wide as u64) < reject {
                wide = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (wide >> 64) as u64
    }

    /// Returns a uniform number in [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a normal number with mean 0 and standard deviation 1, by the method of Box and Muller (Annals of
    /// Mathematical Statistics 29(2), 1958).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// Returns an exponential number with the given mean. Uses `libm`, whose results do not depend on the machine.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_reference_generator() {
        // State 1, 2, 3, 4: first outputs of the authors' xoshiro256plusplus.c.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [41943041, 58720359, 3588806011781223, 3591011842654386]);
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut rng = Rng::new(1, "test");
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[rng.below(7) as usize] += 1;
        }
        // The standard deviation of each count is about 93.
        assert!(counts.iter().all(|&c| c.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn streams_differ_by_name_and_seed() {
        let first = |seed, name| Rng::new(seed, name).next_u64();
        assert_ne!(first(1, "gc"), first(1, "workload"));
        assert_ne!(first(1, "gc"), first(2, "gc"));
        assert_eq!(first(1, "gc"), first(1, "gc"));
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut rng = Rng::new(3, "test");
        let mean = (0..200_000).map(|_| rng.exponential(5.0)).sum::<f64>() / 200_000.0;
        assert!((mean - 5.0).abs() < 0.05, "{mean}");
    }
}
