//! Directions of requests.

use super::options::{Kind, Options};
use crate::sim::request::Operation;

/// Directions, numbered as in fio: reads, writes, trims. Equal to [`Operation::index`].
pub(super) const READ: usize = Operation::Read.index();
pub(super) const WRITE: usize = Operation::Write.index();
pub(super) const TRIM: usize = Operation::Trim.index();

/// Returns the directions for which a job draws addresses and sizes. The write of a pair uses those of its trim.
pub(super) fn directions(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Read => &[READ],
        Kind::Write => &[WRITE],
        Kind::Mixed => &[READ, WRITE],
        Kind::Trim | Kind::TrimWrite => &[TRIM],
    }
}

/// Default of fio for `bs`.
pub(super) const DEFAULT_BLOCK: u64 = 4096;

/// Returns the smallest block of a job in bytes.
pub(super) fn smallest_block(options: &Options) -> u64 {
    let least = |d: usize| {
        let split = options.bssplit.as_ref().and_then(|split| split[d].as_ref()?.iter().map(|part| part.0).min());
        let range = || options.bsrange.and_then(|range| range[d]).map(|(min, _)| min);
        split.or_else(range).or_else(|| options.bs.and_then(|bs| bs[d])).unwrap_or(DEFAULT_BLOCK)
    };
    let kind = options.rw.map_or(Kind::Read, |rw| rw.pattern.kind);
    directions(kind).iter().map(|&d| least(d)).min().unwrap_or(DEFAULT_BLOCK)
}
