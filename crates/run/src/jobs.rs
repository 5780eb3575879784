//! Parallel runs: each is simulated by one thread, and several threads simulate different runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Calls `work` with each item, on up to `jobs` threads, and `done` with the index and the result of each, in order of
/// completion. If `done` returns `false`, no further items start.
#[expect(clippy::disallowed_methods, reason = "whole runs go in parallel")]
pub fn each<T: Sync, R: Send>(
    jobs: usize,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut done: impl FnMut(usize, R) -> bool,
) {
    let (next, is_ended) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(items.len()) {
            let (sender, work, next, is_ended) = (sender.clone(), &work, &next, &is_ended);
            scope.spawn(move || {
                while !is_ended.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    // The receiver exists as long as the threads.
                    let _ = sender.send((index, work(item)));
                }
            });
        }
        drop(sender);
        for (index, result) in results {
            if !done(index, result) {
                is_ended.store(true, Ordering::Relaxed);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_done_once_with_any_number_of_threads() {
        let items: Vec<u64> = (0..50).collect();
        for jobs in [1, 3, 100] {
            let mut found = Vec::new();
            each(
                jobs,
                &items,
                |item| item * 2,
                |index, result| {
                    found.push((index as u64, result));
                    true
                },
            );
            found.sort_unstable();
            assert_eq!(found, items.iter().map(|item| (*item, item * 2)).collect::<Vec<_>>());
        }
    }
}
