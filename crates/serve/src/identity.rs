//! Identities of drives: random numbers, so that no two drives have the same one.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use xxhash_rust::xxh3::xxh3_128;

/// Returns a new identity.
pub fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    // The system does not split requests of up to 256 bytes.
    let count = getrandom(&mut bytes, GetRandomFlags::empty())?;
    assert_eq!(count, bytes.len());
    Ok(u128::from_ne_bytes(bytes))
}

/// Returns the text of an identity: 32 hexadecimal digits.
pub fn text(identity: u128) -> String {
    format!("{identity:032x}")
}

/// Returns the identity that a file holds as text.
pub fn of_text(text: &str) -> u128 {
    // Another program may have written another text.
    u128::from_str_radix(text, 16).unwrap_or_else(|_| xxh3_128(text.as_bytes()))
}
