//! Parity of bytes: sums in GF(2^8) with the generator 2 and the polynomial 0x11d (Anvin, "The mathematics of RAID-6").
//!
//! P is the exclusive or of the data of a stripe. Q is their sum, after chunk k was multiplied by the k-th power of 2.

/// Multiplies two elements of GF(2^8).
const fn multiply(mut a: u8, mut b: u8) -> u8 {
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

/// Multiplies each byte.
fn scale(bytes: &mut [u8], by: u8) {
    let products: [u8; 256] = std::array::from_fn(|byte| multiply(byte as u8, by));
    bytes.iter_mut().for_each(|byte| *byte = products[usize::from(*byte)]);
}

/// Adds bytes to others, which is the exclusive or. It is its own inverse.
pub fn add(into: &mut [u8], bytes: &[u8]) {
    into.iter_mut().zip(bytes).for_each(|(into, byte)| *into ^= byte);
}

/// Adds data chunk `at`, or a change of it, to a parity: P has `index` 0, Q has 1.
pub fn add_chunk(parity: &mut [u8], chunk: &[u8], at: u32, index: u32) {
    if index == 0 || at == 0 {
        return add(parity, chunk);
    }
    let mut scaled = chunk.to_vec();
    scale(&mut scaled, power(at));
    add(parity, &scaled);
}

/// Returns the parity `index` of the data of a stripe, of `length` bytes each. Missing chunks count as zeros.
pub fn parity(data: &[Option<Vec<u8>>], index: u32, length: usize) -> Vec<u8> {
    let mut sum = vec![0; length];
    for (chunk, at) in data.iter().zip(0..) {
        chunk.iter().for_each(|chunk| add_chunk(&mut sum, chunk, at, index));
    }
    sum
}

/// Computes the missing data of a stripe from the rest and its parity. There are at least as many parities as missing
/// data.
pub fn solve(data: &mut [Option<Vec<u8>>], parities: [Option<Vec<u8>>; 2], length: usize) {
    let missing: Vec<u32> = data.iter().zip(0..).filter(|(chunk, _)| chunk.is_none()).map(|(_, at)| at).collect();
    if missing.is_empty() {
        return;
    }
    let [p, q] = [0, 1].map(|index: u32| {
        let mut rest = parities[index as usize].clone()?;
        add(&mut rest, &parity(data, index, length));
        Some(rest)
    });
    match (&missing[..], p, q) {
        (&[x], Some(p), _) => data[x as usize] = Some(p),
        (&[x], None, Some(mut q)) => {
            scale(&mut q, inverse(power(x)));
            data[x as usize] = Some(q);
        }
        (&[x, y], Some(p), Some(mut q)) => {
            // d_x + d_y = p and g^x d_x + g^y d_y = q.
            let (gx, gy) = (power(x), power(y));
            let mut scaled = p.clone();
            scale(&mut scaled, gy);
            add(&mut q, &scaled);
            scale(&mut q, inverse(gx ^ gy));
            let mut last = p;
            add(&mut last, &q);
            (data[x as usize], data[y as usize]) = (Some(q), Some(last));
        }
        (missing, ..) => unreachable!("{} chunks are missing", missing.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(count: u32) -> Vec<Option<Vec<u8>>> {
        (0..count).map(|at| Some((0..40).map(|byte: u32| (byte * 37 + at * 101 + 3) as u8).collect())).collect()
    }

    #[test]
    fn any_two_chunks_can_be_solved() {
        let data = chunks(6);
        let [p, q] = [0, 1].map(|index| Some(parity(&data, index, 40)));
        for x in 0..6 {
            for y in 0..6 {
                let mut known = data.clone();
                (known[x], known[y]) = (None, None);
                solve(&mut known, [p.clone(), q.clone()], 40);
                assert_eq!(known, data);
            }
            for parities in [[None, q.clone()], [p.clone(), None]] {
                let mut known = data.clone();
                known[x] = None;
                solve(&mut known, parities, 40);
                assert_eq!(known, data, "from one parity");
            }
        }
    }

    #[test]
    fn changes_add_up() {
        let mut data = chunks(3);
        let old = [0, 1].map(|index| parity(&data, index, 40));
        let new = vec![0x5a; 40];
        let mut change = data[1].replace(new.clone()).unwrap();
        add(&mut change, &new);
        for (mut changed, index) in old.into_iter().zip(0..) {
            add_chunk(&mut changed, &change, 1, index);
            assert_eq!(changed, parity(&data, index, 40));
        }
    }

    /// Values of the table in Anvin's paper: 2 generates the field, and 2^8 is 0x1d.
    #[test]
    fn the_field_is_that_of_raid_6() {
        assert_eq!([0, 1, 7, 8, 9].map(power), [1, 2, 128, 0x1d, 0x3a]);
        assert!((1..=255).all(|a| multiply(a, inverse(a)) == 1));
    }
}
