//! Tournament tree: finds the member whose next event is the earliest.
//!
//! A change of one time takes a comparison for each level of the tree. At equal times, the member with the lower number
//! wins, so that the order of events is reproducible.

use floatgate_core::sim::time::Time;

/// Times of the next events of the members.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Number of leaves, a power of two.
    leaves: usize,
    /// Winner of each node: its time and member. The root is 1, the children of node n are 2n and 2n + 1.
    nodes: Vec<(Time, u32)>,
}

impl Tournament {
    /// Creates the tree for `members` without events.
    pub fn new(members: u32) -> Tournament {
        let leaves = (members as usize).next_power_of_two();
        let mut tree = Tournament { leaves, nodes: vec![(Time::NEVER, 0); 2 * leaves] };
        (0..leaves).for_each(|leaf| tree.nodes[leaves + leaf].1 = leaf as u32);
        (0..members).for_each(|member| tree.set(member, Time::NEVER));
        tree
    }

    /// Returns the earliest event and its member, or [`Time::NEVER`].
    #[inline]
    pub fn first(&self) -> (Time, u32) {
        self.nodes[1]
    }

    /// Changes the time of the next event of a member.
    #[inline]
    pub fn set(&mut self, member: u32, at: Time) {
        let mut node = self.leaves + member as usize;
        self.nodes[node].0 = at;
        while node > 1 {
            let (left, right) = (self.nodes[node & !1], self.nodes[node | 1]);
            node /= 2;
            self.nodes[node] = if right.0 < left.0 { right } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use floatgate_core::sim::rng::Rng;

    use super::*;

    #[test]
    fn the_first_is_the_minimum() {
        for members in 2..20 {
            let mut tree = Tournament::new(members);
            let mut rng = Rng::new(3, "tournament");
            let mut times = vec![Time::NEVER; members as usize];
            for _ in 0..1000 {
                let member = rng.below(u64::from(members)) as u32;
                let at = Time(rng.below(8));
                times[member as usize] = at;
                tree.set(member, at);
                let expected = times.iter().copied().zip(0..).min().unwrap();
                assert_eq!(tree.first(), expected);
            }
        }
    }
}
