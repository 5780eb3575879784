use crate::ftl::mapping::stub::Bench;
use crate::ftl::mapping::{Change, Location, LookUp};
use crate::sim::id::{Lpn, Ppn};
use crate::work::Kind;

/// Entries of a translation page.
const PER_PAGE: u32 = 1024;

/// Builds the scheme with a cache of `entries` entries. Returns the addresses of its first two translation pages, which
/// are in flash.
fn bench(entries: u32) -> (Bench, [Ppn; 2]) {
    let scheme = format!("mapping.scheme={{ dftl = {{ cache = \"{}B\", cached_entry = \"8B\" }} }}", 8 * entries);
    let mut bench = Bench::new(&[&scheme, "capacity.spare=0.3"]);
    let mut places = Vec::new();
    bench.without_time(|ftl| {
        [0, PER_PAGE].into_iter().for_each(|lpn| ftl.changed_now(Lpn(lpn), Change::Entry));
        ftl.seal_kept(&mut |_, _, ppn| places.push(ppn));
    });
    (bench, places.try_into().unwrap())
}

/// Returns the kinds and translation pages of the queued operations.
fn queued(bench: &Bench) -> Vec<(Kind, u32)> {
    let page = |&id| (bench.cx.ops[id].kind, bench.cx.ops[id].map_page());
    bench.cx.queued.iter().map(page).collect()
}

#[test]
fn a_missing_page_is_fetched_once_for_all_that_wait() {
    let (mut bench, [ppn, _]) = bench(2);
    let waiting = [5, 6, 5].map(|lpn| bench.await_entry(lpn));
    assert_eq!((queued(&bench), bench.resumed.len()), (vec![(Kind::MapRead, 0)], 0));
    assert_eq!(bench.scheme.report(&bench.cx.ftl).outstanding, "1 translation pages in use, 0 without room");
    assert_eq!(bench.end_all(), [(Kind::MapRead, ppn)]);
    assert_eq!(bench.resumed, waiting);
    let mut is_cached = |lpn| bench.call(|scheme, cx| scheme.look_up(cx, Lpn(lpn), LookUp::Write));
    assert!(is_cached(5) && is_cached(6) && !is_cached(7));
    assert_eq!(bench.scheme.report(&bench.cx.ftl).outstanding, "0 translation pages in use, 0 without room");
}

#[test]
fn an_operation_without_a_cache_entry_waits_for_one_that_is_loaded() {
    let (mut bench, [first, second]) = bench(1);
    let waiting = [5, PER_PAGE].map(|lpn| bench.await_entry(lpn));
    assert_eq!(queued(&bench), [(Kind::MapRead, 0)], "the only entry is being loaded");
    assert_eq!(bench.end_all(), [(Kind::MapRead, first), (Kind::MapRead, second)]);
    assert_eq!(bench.resumed, waiting);
}

#[test]
fn the_eviction_of_a_dirty_entry_writes_its_page_first() {
    let (mut bench, [first, second]) = bench(1);
    bench.call(|scheme, cx| scheme.changed(cx, Lpn(5), Change::Entry));
    assert_eq!(queued(&bench), [], "the changed entry is in the cache only");

    // The page is read as a whole, because the cache does not hold all of it, and written elsewhere.
    let waiting = bench.await_entry(PER_PAGE);
    assert_eq!(bench.end_next(), (Kind::MapRead, first));
    assert_eq!(queued(&bench), [(Kind::MapWrite, 0)]);
    let (_, moved) = bench.end_next();
    assert_ne!(moved, first);
    let blocks = &bench.cx.ftl.blocks;
    assert_eq!([blocks.is_valid(first), blocks.is_valid(moved)], [false, true]);
    assert_eq!((queued(&bench), bench.resumed.len()), (vec![(Kind::MapRead, 1)], 0));
    assert_eq!(bench.end_all(), [(Kind::MapRead, second)]);
    assert_eq!(bench.resumed, [waiting]);

    // The entry that replaced it is clean: its eviction writes nothing.
    bench.await_entry(5);
    assert_eq!(bench.end_all(), [(Kind::MapRead, moved)]);
    let map = &bench.cx.ftl.counters.map;
    assert_eq!([map.evictions_dirty, map.evictions_clean], [1, 1]);
}

#[test]
fn pages_that_are_not_in_flash_need_no_read() {
    let (mut bench, _) = bench(2);
    let waiting = bench.await_entry(2 * PER_PAGE);
    assert_eq!((queued(&bench), bench.resumed.clone()), (vec![], vec![waiting]));
    assert_eq!(bench.cx.ftl.map.get(Lpn(2 * PER_PAGE)), Location::Unmapped);
}
