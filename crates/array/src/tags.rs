//! Verification: the contents of all sectors, and the parity that follows from them.
//!
//! A member in verification mode returns the version of each sector, which is the serial number of a write. The array
//! remembers the tags that each write stored, computes parity from the tags that were read, and returns tags to the
//! host. A tag is 32 bits: P is the exclusive or of the tags of a stripe, and Q is their sum in GF(2^8), byte by byte,
//! with the generator 2 and the polynomial 0x11d (Anvin, "The mathematics of RAID-6").

use std::collections::BTreeMap;

/// Multiplies two elements of GF(2^8).
fn multiply(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b > 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1d };
        b >>= 1;
    }
    product
}

fn power(exponent: u32) -> u8 {
    (0..exponent % 255).fold(1, |value, _| multiply(value, 2))
}

fn inverse(a: u8) -> u8 {
    (0..253).fold(a, |value, _| multiply(value, a))
}

/// Multiplies each byte of a tag.
fn scale(tag: u32, by: u8) -> u32 {
    u32::from_le_bytes(tag.to_le_bytes().map(|byte| multiply(byte, by)))
}

/// Returns the parity `index` of the data of a stripe: P is 0, Q is 1.
pub fn parity(data: &[u32], index: u32) -> u32 {
    let weight = |at: u32| if index == 0 { 1 } else { power(at) };
    data.iter().zip(0..).fold(0, |sum, (tag, at)| sum ^ scale(*tag, weight(at)))
}

/// Returns the change of a parity when data chunk `at` changes by `difference`, the exclusive or of old and new.
pub fn change(difference: u32, at: u32, index: u32) -> u32 {
    scale(difference, if index == 0 { 1 } else { power(at) })
}

/// Computes the missing data of a stripe from the rest and its parity. There are as many parities as missing data.
pub fn solve(data: &[Option<u32>], parities: [Option<u32>; 2]) -> Vec<u32> {
    let known: Vec<u32> = data.iter().map(|tag| tag.unwrap_or(0)).collect();
    let missing: Vec<u32> = data.iter().zip(0..).filter(|(tag, _)| tag.is_none()).map(|(_, at)| at).collect();
    let rest = [0, 1].map(|index| parities[index as usize].map(|tag| tag ^ parity(&known, index)));
    let mut solved = known;
    match (&missing[..], rest) {
        ([], _) => {}
        (&[x], [Some(p), _]) => solved[x as usize] = p,
        (&[x], [None, Some(q)]) => solved[x as usize] = scale(q, inverse(power(x))),
        (&[x, y], [Some(p), Some(q)]) => {
            // d_x + d_y = p and g^x d_x + g^y d_y = q.
            let (gx, gy) = (power(x), power(y));
            let first = scale(q ^ scale(p, gy), inverse(gx ^ gy));
            (solved[x as usize], solved[y as usize]) = (first, p ^ first);
        }
        _ => unreachable!("{} chunks are missing, and the parities are {rest:?}", missing.len()),
    }
    solved
}

/// Contents of an array in verification mode.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Tags that each write stored, by its serial number: the first sector, and a tag for each.
    written: BTreeMap<u32, (u64, Vec<u32>)>,
    /// Tags that stripe operations have read, by operation and member.
    reads: BTreeMap<(u32, u32), Vec<u32>>,
    /// Replies to reads, by request.
    replies: BTreeMap<u32, Vec<u32>>,
    /// Replies to completed reads, with the tags of their requests.
    done: Vec<(u64, Vec<u32>)>,
}

impl Contents {
    /// Stores the tags of a write to a member.
    pub fn store(&mut self, serial: u32, lba: u64, tags: Vec<u32>) {
        self.written.insert(serial, (lba, tags));
    }

    /// Returns the tags of sectors whose versions a member has returned.
    pub fn tags(&self, lba: u64, versions: &[u32]) -> Vec<u32> {
        let tag = |(version, lba): (&u32, u64)| match *version {
            0 => 0,
            version => {
                let (first, tags) = &self.written[&version];
                tags[(lba - first) as usize]
            }
        };
        versions.iter().zip(lba..).map(tag).collect()
    }

    /// Notes the first sector of a read of a member.
    pub fn note_read(&mut self, serial: u32, lba: u64) {
        self.written.insert(serial, (lba, Vec::new()));
    }

    /// Returns the first sector of the request to a member with this serial number.
    pub fn lba_of(&self, serial: u32) -> u64 {
        self.written.get(&serial).map_or(0, |(lba, _)| *lba)
    }

    /// Keeps the tags that a stripe operation has read from a member.
    pub fn keep(&mut self, operation: u32, member: u32, tags: Vec<u32>) {
        self.reads.insert((operation, member), tags);
    }

    /// Returns the tags that a stripe operation has read from a member.
    pub fn read(&self, operation: u32, member: u32) -> Option<&[u32]> {
        self.reads.get(&(operation, member)).map(Vec::as_slice)
    }

    /// Drops the tags that a stripe operation has read.
    pub fn forget(&mut self, operation: u32) {
        self.reads.retain(|(other, _), _| *other != operation);
    }

    /// Starts the reply to a read.
    pub fn enter(&mut self, request: u32, sectors: u32) {
        self.replies.insert(request, vec![0; sectors as usize]);
    }

    /// Adds a part to the reply to a read.
    pub fn fill(&mut self, request: u32, offset: usize, tags: &[u32]) {
        if let Some(reply) = self.replies.get_mut(&request) {
            reply[offset..offset + tags.len()].copy_from_slice(tags);
        }
    }

    /// Completes the reply to a read.
    pub fn complete(&mut self, request: u32, tag: u64) {
        self.done.extend(self.replies.remove(&request).map(|reply| (tag, reply)));
    }

    /// Removes and returns the replies to completed reads.
    pub fn take_done(&mut self) -> Vec<(u64, Vec<u32>)> {
        std::mem::take(&mut self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_two_chunks_can_be_solved() {
        let data: Vec<u32> = (0..6).map(|at| 0x0123_4567_u32.wrapping_mul(at * 7 + 3)).collect();
        let [p, q] = [0, 1].map(|index| parity(&data, index));
        for x in 0..6 {
            for y in 0..6 {
                let mut known: Vec<Option<u32>> = data.iter().copied().map(Some).collect();
                (known[x], known[y]) = (None, None);
                assert_eq!(solve(&known, [Some(p), Some(q)]), data);
            }
            let mut known: Vec<Option<u32>> = data.iter().copied().map(Some).collect();
            known[x] = None;
            assert_eq!(solve(&known, [None, Some(q)]), data, "from Q alone");
            assert_eq!(solve(&known, [Some(p), None]), data, "from P alone");
        }
    }

    #[test]
    fn changes_add_up() {
        let (mut data, new) = (vec![7, 0x8000_0001, 99], 0xdead_beef);
        let old = [0, 1].map(|index| parity(&data, index));
        let difference = data[1] ^ new;
        data[1] = new;
        for index in [0, 1] {
            assert_eq!(old[index as usize] ^ change(difference, 1, index), parity(&data, index));
        }
    }

    /// Values of the table in Anvin's paper: 2 generates the field, and 2^8 is 0x1d.
    #[test]
    fn the_field_is_that_of_raid_6() {
        assert_eq!([0, 1, 7, 8, 9].map(power), [1, 2, 128, 0x1d, 0x3a]);
        assert!((1..=255).all(|a| multiply(a, inverse(a)) == 1));
    }
}
