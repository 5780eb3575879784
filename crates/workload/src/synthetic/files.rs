//! Several files of a job: the choice of the file of each request, fio's `file_service_type`.

use super::address::Addresses;
use super::options::{FileOrder, FileService};
use crate::sim::rng::Rng;

/// A file of a job.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Addresses in the file.
    pub(super) addresses: Addresses,
    /// Bytes to request in a pass.
    pub(super) once: u64,
    /// Bytes requested in this pass.
    pub(super) done: u64,
}

/// Files of a job.
#[derive(Clone, Debug)]
pub(super) struct Files {
    files: Vec<File>,
    service: FileService,
    current: usize,
    /// Number of requests until another file is chosen.
    left: u32,
    rng: Rng,
}

impl Files {
    /// Creates the files, at least one.
    pub(super) fn new(files: Vec<File>, service: FileService, rng: Rng) -> Files {
        // The first request of a round robin advances to the first file.
        let current = if service.order == FileOrder::Sequential { 0 } else { files.len() - 1 };
        Files { files, service, current, left: 0, rng }
    }

    /// Returns the addresses of the file of the next request. A file whose pass is complete is left out until those of
    /// the others are complete.
    pub(super) fn next(&mut self) -> &mut File {
        let open = |file: &File| file.done < file.once;
        if !self.files.iter().any(open) {
            self.files.iter_mut().for_each(|file| file.done = 0);
            self.left = 0;
        }
        let stays = self.service.order == FileOrder::Sequential || self.left > 0;
        if !(stays && open(&self.files[self.current])) {
            self.left = self.service.requests;
            loop {
                self.current = match self.service.order {
                    FileOrder::Random => self.rng.below(self.files.len() as u64) as usize,
                    FileOrder::RoundRobin | FileOrder::Sequential => (self.current + 1) % self.files.len(),
                };
                if open(&self.files[self.current]) {
                    break;
                }
            }
        }
        self.left = self.left.saturating_sub(1);
        &mut self.files[self.current]
    }
}
