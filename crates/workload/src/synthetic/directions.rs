//! Directions of requests.

use super::options::Kind;
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
