//! The pages of the program's own memory.

/// Keeps the system from giving this program huge pages.
///
/// A simulation that goes through all of a large device is faster with them. A device that is served empty is touched
/// here and there: of `bench-1t` the first 2 MiB that a client wrote brought 2 GiB of maps into being, 2 MiB at a time,
/// for 5.7 s in which nobody was answered (0.02 s without).
pub fn forgo_huge_pages() {
    // Where the system cannot be asked it is slower for a moment, and not wrong.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
