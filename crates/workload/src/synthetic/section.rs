//! Jobs as they are written.

use std::collections::BTreeMap;

use super::options::Options;
use crate::sim::source::SourceError;

/// How many jobs run at once, clones included: as many as in fio (its `REAL_MAX_JOBS`).
pub const MAX_JOBS: usize = 4096;

/// The error for more jobs than that.
pub(super) fn too_many() -> String {
    format!("there are more than {MAX_JOBS} jobs, clones by numjobs included; that is the most, as in fio")
}

/// One job as it is written.
pub(super) struct Section {
    pub(super) options: Options,
    /// What it is called where it has no `name`.
    pub(super) name: String,
    /// Where it stands, for errors.
    pub(super) place: String,
    /// Where its keys stand, by their names, where that is not all in one line.
    pub(super) keys: BTreeMap<&'static str, String>,
    /// What was noticed while it was read.
    pub(super) warnings: Vec<String>,
}

impl Section {
    /// An error of the job; where it begins with a key between backticks, at the place of that key.
    pub(super) fn error(&self, why: impl std::fmt::Display) -> SourceError {
        let why = why.to_string();
        let key = why.strip_prefix('`').and_then(|rest| rest.split(['=', '`']).next());
        let place = key.and_then(|key| self.keys.get(key)).unwrap_or(&self.place);
        SourceError(format!("{place}: {why}"))
    }
}

/// A file that the requests of a job are to be written to when they are issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its path.
    pub path: String,
    /// Where the job asks for it, for errors.
    pub place: String,
}
