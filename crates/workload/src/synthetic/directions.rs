//! Directions of requests.

use super::options::Kind;
use crate::sim::request::Operation;

/// The directions, as fio counts them: reads, writes, trims; the same as [`Operation::index`].
pub(super) const READ: usize = Operation::Read.index();
pub(super) const WRITE: usize = Operation::Write.index();
pub(super) const TRIM: usize = Operation::Trim.index();

/// The directions that a job's addresses and sizes are drawn for; the write of a pair takes those of its trim.
pub(super) fn directions(kind: Kind) -> &'static [usize] {
    match kind {
        Kind::Read => &[READ],
        Kind::Write => &[WRITE],
        Kind::Mixed => &[READ, WRITE],
        Kind::Trim | Kind::TrimWrite => &[TRIM],
    }
}
