//! Allocation: chooses the plane of a written unit, early from its address (static), or when a plane is idle (dynamic).

pub mod active;
pub mod external;
mod order;

pub use fixed::StaticConfig;
pub use order::{Level, LevelOrder, Order};

use crate::external::Cause;
use crate::policy_family;
use crate::sim::id::PlaneId;
use crate::state::{Reader, StateError, Writer};

/// Chooses the plane of a host write.
pub trait AllocationPolicy {
    /// Returns the plane of a stripe of the host's address space, or `None` if any plane will do. A stripe is as many
    /// units as a flash page holds, or those of `allocation.static.stripe`.
    fn home(&self, stripe: u32) -> Option<PlaneId>;

    /// Returns the number of pools. A write without a fixed plane waits in one pool, and goes to a plane of this pool.
    fn pools(&self) -> u32 {
        1
    }

    /// Returns the pool of a stripe.
    fn pool(&self, _stripe: u32) -> u32 {
        0
    }

    /// Returns the pool that a plane takes writes from. The planes of a pool are consecutive. They are those of one or
    /// more LUNs, or some planes of one LUN.
    fn pool_of(&self, _plane: PlaneId) -> u32 {
        0
    }

    /// Chooses the next plane of a pool among `candidates`, if the scheme does not fix planes. `candidates` is a set of
    /// positions in the scheme's order.
    fn choose(&mut self, pool: u32, candidates: &PlaneSet) -> Option<PlaneId>;

    /// Notes that a plane has taken a write of its pool without being chosen, because it was granted its channel first.
    fn took(&mut self, _plane: PlaneId) {}

    /// Returns `true` if only candidates whose next free block has the fewest erases may be chosen. The caller removes
    /// the others.
    fn by_erases(&self) -> bool {
        false
    }

    /// Returns the position of each plane in the scheme's order.
    fn order(&self) -> &Order;

    /// Writes the internal state of the policy to a saved state.
    ///
    /// # Errors
    ///
    /// [`StateError::Policy`] if the policy cannot be saved.
    fn save(&self, _out: &mut Writer) -> Result<(), StateError> {
        Ok(())
    }

    /// Reads what [`AllocationPolicy::save`] wrote, into a new policy.
    ///
    /// # Errors
    ///
    /// [`StateError`] if the file is damaged.
    fn load(&mut self, _input: &mut Reader) -> Result<(), StateError> {
        Ok(())
    }

    /// Returns the error of an external policy that has failed. The policy is not called again.
    fn error(&self) -> Option<&Cause> {
        None
    }
}

policy_family! {
    /// Choice of the planes that host writes go to.
    Allocation / AllocationConfig: dyn AllocationPolicy, or external {
        /// The plane follows from the address, by an order of channel, chip, die and plane.
        fixed::Static = "static",
        /// Any idle plane, by a priority order of channel, chip, die and plane.
        dynamic::Dynamic = "dynamic",
    }
}

impl Default for AllocationConfig {
    fn default() -> Self {
        AllocationConfig::Static(Default::default())
    }
}

/// Set of planes, by their position in an order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaneSet {
    words: Vec<u64>,
}

impl PlaneSet {
    /// Creates an empty set for `planes` planes.
    pub fn new(planes: u32) -> PlaneSet {
        PlaneSet { words: vec![0; planes.div_ceil(64) as usize] }
    }

    /// Adds or removes a position.
    #[inline]
    pub fn set(&mut self, position: u32, member: bool) {
        let word = &mut self.words[(position / 64) as usize];
        let bit = 1 << (position % 64);
        *word = if member { *word | bit } else { *word & !bit };
    }

    /// Returns `true` if a position is in the set.
    #[inline]
    pub fn contains(&self, position: u32) -> bool {
        self.words[(position / 64) as usize] >> (position % 64) & 1 == 1
    }

    /// Returns the positions in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).step_by(64).zip(&self.words).flat_map(|(first, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(first + bit)
            })
        })
    }

    /// Removes all positions.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Copies `other`, without allocating.
    pub fn copy_from(&mut self, other: &PlaneSet) {
        self.words.copy_from_slice(&other.words);
    }

    /// Adds all positions of `other`.
    pub fn union_with(&mut self, other: &PlaneSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a |= b);
    }

    /// Keeps only the positions with the lowest cost among those that are `allowed`.
    pub fn keep_least(&mut self, allowed: impl Fn(u32) -> bool, cost: impl Fn(u32) -> u32) {
        let positions = || (0..self.words.len() as u32 * 64).filter(|&p| self.contains(p) && allowed(p));
        let least = positions().map(&cost).min();
        for position in 0..self.words.len() as u32 * 64 {
            if self.contains(position) && !(allowed(position) && Some(cost(position)) == least) {
                self.set(position, false);
            }
        }
    }

    /// Keeps only the positions that are also in `other`.
    pub fn intersect_with(&mut self, other: &PlaneSet) {
        self.words.iter_mut().zip(&other.words).for_each(|(a, b)| *a &= b);
    }

    /// Returns the first position from `from` on, wrapping around.
    pub fn next_from(&self, from: u32) -> Option<u32> {
        self.search(from, |word| self.words[word])
    }

    /// Returns the first position from `from` on that is also in `other`, wrapping around.
    pub fn next_common(&self, other: &PlaneSet, from: u32) -> Option<u32> {
        self.search(from, |word| self.words[word] & other.words[word])
    }

    /// Returns the first bit from `from` on, wrapping around. `bits` returns a word by its number.
    #[inline]
    fn search(&self, from: u32, bits: impl Fn(usize) -> u64) -> Option<u32> {
        let (first_word, first_bit) = ((from / 64) as usize, from % 64);
        let at = |word: usize, bits: u64| (bits != 0).then(|| word as u32 * 64 + bits.trailing_zeros());
        at(first_word, bits(first_word) & (!0 << first_bit))
            .or_else(|| (first_word + 1..self.words.len()).find_map(|w| at(w, bits(w))))
            .or_else(|| (0..=first_word).find_map(|w| at(w, bits(w))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_of_a_set_wrap_around() {
        let mut set = PlaneSet::new(130);
        assert_eq!(set.next_from(0), None);
        for position in [3, 64, 129] {
            set.set(position, true);
        }
        let found: Vec<_> = [0, 3, 4, 64, 65, 129].iter().map(|&from| set.next_from(from).unwrap()).collect();
        assert_eq!(found, [3, 3, 64, 64, 129, 129]);
        set.set(129, false);
        assert_eq!(set.next_from(65), Some(3));
        assert!(set.contains(64) && !set.contains(129));
        let mut other = PlaneSet::new(130);
        other.set(3, true);
        other.set(65, true);
        let common: Vec<_> = [0, 3, 4, 129].iter().map(|&from| set.next_common(&other, from)).collect();
        assert_eq!(common, [Some(3); 4]);
        set.set(3, false);
        assert_eq!(set.next_common(&other, 0), None);
    }
}
