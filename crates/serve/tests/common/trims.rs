//! Contents after a trim.

/// Returns the part of a range of bytes that reads as zeros after a trim: mapping units of 4 KiB that it covers whole.
pub fn trimmed(range: std::ops::Range<usize>) -> std::ops::Range<usize> {
    let start = range.start.next_multiple_of(4096);
    start..(range.end / 4096 * 4096).max(start)
}
