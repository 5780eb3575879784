//! Memory for the requests and replies of the clients of a frontend: one budget for all of them.
//!
//! Each client has a share that no other client can use, so that small requests can always proceed. Memory beyond the
//! share comes from a pool. A request that does not fit waits until other requests have completed: with NBD in its
//! socket, with NVMe in its session.

/// Bytes that a client may always use.
pub const SHARE: usize = 1 << 20;

/// Bytes that all clients together may use beyond their shares: four requests of the maximum payload.
const POOL: usize = 128 << 20;

/// Remaining bytes in the pool.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    left: usize,
}

impl Budget {
    /// Returns the remaining budget, given the bytes that each client uses.
    pub fn beside(used: impl Iterator<Item = usize>) -> Budget {
        Budget { left: POOL.saturating_sub(used.map(beyond_share).sum()) }
    }

    /// Takes `bytes` more for a client that uses `used` bytes. Returns `false` if they do not fit.
    pub fn take(&mut self, used: usize, bytes: usize) -> bool {
        let more = beyond_share(used + bytes) - beyond_share(used);
        let fits = more <= self.left;
        if fits {
            self.left -= more;
        }
        fits
    }
}

fn beyond_share(used: usize) -> usize {
    used.saturating_sub(SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_guaranteed_and_the_pool_is_shared() {
        let mut budget = Budget::beside([POOL + SHARE - 100, 5].into_iter());
        assert!(budget.take(0, SHARE) && budget.take(0, SHARE), "shares must not use the pool");
        assert!(!budget.take(SHARE, 101));
        assert!(budget.take(SHARE - 10, 110) && !budget.take(SHARE, 1));
        let mut budget = Budget::beside([usize::MAX / 2].into_iter());
        assert!(budget.take(3, SHARE - 3) && !budget.take(4, SHARE - 3));
    }
}
