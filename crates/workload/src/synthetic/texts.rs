//! Sizes in words.

use crate::quantity::readable;

pub(super) fn bytes_text(bytes: u64) -> String {
    readable(u128::from(bytes))
}

/// Two numbers of bytes that are not the same, exactly where they would look it.
pub(super) fn two_texts(first: u64, second: u64) -> (String, String) {
    let texts = (bytes_text(first), bytes_text(second));
    if texts.0 == texts.1 { (format!("{first} B"), format!("{second} B")) } else { texts }
}
