//! Memory pages of this process.

/// Disables transparent huge pages for this process.
///
/// Huge pages speed up a simulation that accesses all of a large device. A live device that starts empty is accessed
/// only here and there. When a client wrote the first 2 MiB to `bench-1t`, huge pages allocated 2 GiB of maps, in
/// pieces of 2 MiB. This took 5.7 s, without any reply in that time (0.02 s without huge pages).
pub fn forgo_huge_pages() {
    // If the system refuses, the server is slow for a moment, but still correct.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
