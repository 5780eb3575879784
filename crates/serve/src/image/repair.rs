//! Repair of damaged records: restores a record in which one or two bits have changed.
//!
//! Every record in the file carries a digest. If one bit of a record was read wrong, inverting that bit makes the
//! record match its digest again. A false match is practically impossible: of the 130,816 records that differ from a
//! damaged one of 64 bytes in two bits, one matches a 64-bit digest by chance once in 10^14 times.

/// Inverts one bit of `bytes`, or two bits if `tries_pairs`, so that `is_valid` accepts them. Returns `false` and
/// leaves `bytes` unchanged if there is no such bit.
pub fn repair(bytes: &mut [u8], tries_pairs: bool, is_valid: impl Fn(&[u8]) -> bool) -> bool {
    let bits = bytes.len() * 8;
    let invert = |bytes: &mut [u8], bit: usize| bytes[bit / 8] ^= 1 << (bit % 8);
    for first in 0..bits {
        invert(bytes, first);
        if is_valid(bytes) {
            return true;
        }
        for second in first + 1..if tries_pairs { bits } else { 0 } {
            invert(bytes, second);
            if is_valid(bytes) {
                return true;
            }
            invert(bytes, second);
        }
        invert(bytes, first);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_64;

    #[test]
    fn one_or_two_bits_are_restored_and_no_more() {
        let whole: Vec<u8> = (0..64).map(|byte| byte * 3).collect();
        let digest = xxh3_64(&whole);
        let is_valid = |bytes: &[u8]| xxh3_64(bytes) == digest;
        for (bits, singly, in_pairs) in [(&[77][..], true, true), (&[5, 500], false, true), (&[5, 6, 7], false, false)]
        {
            let mut damaged = whole.clone();
            bits.iter().for_each(|bit| damaged[bit / 8] ^= 1 << (bit % 8));
            for (tries_pairs, is_restored) in [(false, singly), (true, in_pairs)] {
                let mut bytes = damaged.clone();
                assert_eq!(repair(&mut bytes, tries_pairs, is_valid), is_restored, "{bits:?}");
                assert_eq!(bytes, if is_restored { &whole[..] } else { &damaged[..] });
            }
        }
    }
}
