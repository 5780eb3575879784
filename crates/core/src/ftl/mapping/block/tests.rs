use crate::ftl::mapping::stub::Bench;
use crate::ftl::mapping::{Location, PADDING, Place, Program};
use crate::metrics::counters::MergeKind;
use crate::sim::id::{Lpn, Ppn};
use crate::work::Kind;

/// Units of a block. A program holds two.
const UNITS: u32 = 8;

/// Builds a scheme with blocks of eight units. With `merges`, the two blocks of a logical block are merged at once.
fn bench(merges: bool) -> Bench {
    let soft = format!("gc.soft_threshold={}", if merges { 30 } else { 2 });
    let shape = ["geometry.page_size=8KiB", "geometry.mapping_unit=4KiB", "geometry.pages=4"];
    Bench::new(&[&shape[..], &["mapping.scheme=block", "capacity.spare=0.95", &soft]].concat())
}

/// Writes units, which wait for their addresses at the same time. Returns the reads and programs, with their offsets.
fn write(bench: &mut Bench, lpns: impl IntoIterator<Item = u32>) -> Vec<(Kind, u32)> {
    bench.write(lpns);
    let ended = bench.end_all().into_iter();
    ended.map(|(kind, ppn)| (kind, bench.cx.ftl.blocks.offset_in_block(ppn))).collect()
}

/// Returns the owners of all programmed addresses in the current block of logical block 0.
fn owners(bench: &Bench) -> Vec<u32> {
    let Place::At(end) = bench.scheme.target(&bench.cx.ftl, Program::Copies(0)).place else { panic!("no block") };
    let first = end.0 - bench.cx.ftl.blocks.offset_in_block(Ppn(end.0 - 1)) - 1;
    (first..end.0).map(|ppn| bench.cx.ftl.map.owner(Ppn(ppn))).collect()
}

/// Asserts that the units of logical block 0 are at their offsets in one block, after one merge of this kind.
fn assert_merged(bench: &Bench, kind: MergeKind) {
    assert_eq!(owners(bench), (0..UNITS).collect::<Vec<_>>());
    let block = |lpn| match bench.cx.ftl.map.get(Lpn(lpn)) {
        Location::Flash(ppn) if bench.cx.ftl.blocks.offset_in_block(ppn) == lpn => bench.cx.ftl.blocks.block_of(ppn),
        other => panic!("unit {lpn} is at {other:?}"),
    };
    assert!((1..UNITS).all(|lpn| block(lpn) == block(0)));
    let merges = [MergeKind::Switch, MergeKind::Partial, MergeKind::Full]
        .map(|kind| bench.cx.ftl.counters.merges[kind as usize]);
    let mut expected = [0; 3];
    expected[kind as usize] = 1;
    assert_eq!(merges, expected);
    assert_eq!(bench.cx.erases.len(), 1);
    bench.scheme.recount(&bench.cx.ftl).unwrap();
}

#[test]
fn offsets_before_a_write_are_padded() {
    let mut bench = bench(false);
    assert_eq!(write(&mut bench, [3]), [(Kind::MergeWrite, 0), (Kind::Write, 2)]);
    assert_eq!(owners(&bench), [PADDING, PADDING, PADDING, 3]);
    // A write below the frontier takes a new block. The old block has no units to copy before it.
    assert_eq!(write(&mut bench, [1]), [(Kind::Write, 0)]);
    assert_eq!(owners(&bench), [PADDING, 1]);
    assert_eq!(bench.cx.erases, [], "the old block holds a unit");
}

#[test]
fn copies_keep_their_offsets_and_writes_join_them() {
    let mut bench = bench(false);
    write(&mut bench, 0..UNITS);
    let steps = [
        (Kind::MergeRead, 0),
        (Kind::MergeWrite, 0),
        (Kind::MergeRead, 2),
        (Kind::MergeWrite, 2),
        // Unit 5 is copied into the program of the write.
        (Kind::MergeRead, 5),
        (Kind::Write, 4),
    ];
    assert_eq!(write(&mut bench, [4]), steps);
    assert_eq!(owners(&bench), [0, 1, 2, 3, 4, 5]);
    assert_eq!(bench.cx.erases, [], "units 6 and 7 are still in the old block");
}

#[test]
fn a_switch_copies_nothing() {
    let mut bench = bench(true);
    write(&mut bench, 0..UNITS);
    assert!(write(&mut bench, 0..UNITS).iter().all(|&(kind, _)| kind == Kind::Write));
    assert_merged(&bench, MergeKind::Switch);
}

#[test]
fn a_partial_merge_copies_the_units_after_the_writes() {
    let mut bench = bench(true);
    write(&mut bench, 0..UNITS);
    let steps = [
        (Kind::Write, 0),
        (Kind::Write, 2),
        (Kind::MergeRead, 4),
        (Kind::MergeWrite, 4),
        (Kind::MergeRead, 6),
        (Kind::MergeWrite, 6),
    ];
    assert_eq!(write(&mut bench, 0..4), steps);
    assert_merged(&bench, MergeKind::Partial);
}

#[test]
fn a_full_merge_copies_units_before_and_after_a_write() {
    let mut bench = bench(true);
    write(&mut bench, 0..UNITS);
    let steps = write(&mut bench, [4]);
    assert_eq!(steps[5..], [(Kind::Write, 4), (Kind::MergeRead, 6), (Kind::MergeWrite, 6)]);
    assert_merged(&bench, MergeKind::Full);
}
