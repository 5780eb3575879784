//! Tests of requests in a client's memory, without a client: valid ones in every framing, and invalid ones.

use floatgate_serve::vhost::Memory;
use floatgate_serve::vhost::blk::{Disk, Kind, LONGEST_PAYLOAD, Refused, Request, Requested, request};
use floatgate_serve::vhost::chain::{Broken, Chain, Table};
use floatgate_serve::vhost::client::range;
use proptest::prelude::*;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress};

const SIZE: usize = 1 << 20;
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const ID: u32 = 8;
const DISCARD: u32 = 11;
const ZEROES: u32 = 13;

fn memory() -> Memory {
    Memory::from_ranges(&[(GuestAddress(0), SIZE)]).unwrap()
}

fn disk() -> Disk {
    Disk {
        name: "a disk of a name that is too long".to_owned(),
        bytes: 64 << 20,
        sector: 512,
        unit: 4096,
        queues: 2,
        read_only: false,
    }
}

fn put(memory: &Memory, table: u64, descriptors: &[(u64, u32, u16, u16)]) {
    for (index, (at, bytes, flags, next)) in descriptors.iter().enumerate() {
        let place = GuestAddress(table + 16 * index as u64);
        memory.write_obj(Descriptor::new(*at, *bytes, *flags, *next), place).unwrap();
    }
}

/// Parses the chain at 0 in a table at 0. Returns the request and its payload.
fn requested(memory: &Memory, size: u16) -> Result<(Requested, Vec<u8>), Broken> {
    requested_of(&disk(), memory, size)
}

fn requested_of(disk: &Disk, memory: &Memory, size: u16) -> Result<(Requested, Vec<u8>), Broken> {
    let mut chain = Chain::default();
    let mut payload = Vec::new();
    chain.read(memory, Table { at: GuestAddress(0), size }, 0)?;
    let requested = request(memory, disk, &mut chain, &mut payload)?;
    assert!(requested.what.is_ok() || payload.is_empty());
    Ok((requested, payload))
}

fn head(kind: u32, sector: u64) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat()
}

/// Parses a request with a header of 16 bytes, `out` bytes to read, `into` bytes to write, and a status.
fn simple(kind: u32, sector: u64, out: &[u8], into: u32) -> Result<Request, Refused> {
    simple_of(&disk(), kind, sector, out, into)
}

fn simple_of(disk: &Disk, kind: u32, sector: u64, out: &[u8], into: u32) -> Result<Request, Refused> {
    let memory = memory();
    memory.write_slice(&[head(kind, sector), out.to_vec()].concat(), GuestAddress(0x1000)).unwrap();
    let readable = 16 + out.len() as u32;
    put(&memory, 0, &[(0x1000, readable, NEXT, 1), (0x8000, into + 1, WRITE, 0)]);
    let (requested, payload) = requested_of(disk, &memory, 4).unwrap();
    assert_eq!(requested.status, GuestAddress(0x8000 + u64::from(into)));
    let writes = requested.what.is_ok_and(|request| request.kind == Kind::Write);
    assert_eq!(payload, if writes { out } else { &[] });
    requested.what
}

#[test]
fn each_type_is_parsed() {
    let request = |kind, sector, sectors| Ok(Request { kind, sector, sectors });
    let last = (64 << 20) / 512;
    assert_eq!(simple(IN, 7, &[], 4096), request(Kind::Read, 7, 8));
    assert_eq!(simple(OUT, last - 1, &[9; 512], 0), request(Kind::Write, last - 1, 1));
    assert_eq!(simple(FLUSH, 0, &[], 0), request(Kind::Flush, 0, 0));
    assert_eq!(simple(DISCARD, 0, &range(4096, 8192, 0), 0), request(Kind::Discard, 8, 16));
    assert_eq!(simple(ZEROES, 0, &range(4096, 8192, 1), 0), request(Kind::Zero, 8, 16));
    assert_eq!(simple(ZEROES, 0, &range(4096, 8192, 0), 0), request(Kind::ZeroAllocated, 8, 16));
    assert_eq!(simple(ID, 0, &[], 20), request(Kind::Id(*b"a disk of a name tha"), 0, 0));
}

#[test]
fn invalid_requests_are_refused() {
    let last = (64 << 20) / 512;
    for (kind, sector, out, into) in [
        (IN, 0, vec![], 0),
        (IN, 0, vec![], 100),
        (IN, last, vec![], 512),
        (IN, u64::MAX, vec![], 512),
        (OUT, last - 1, vec![0; 1024], 0),
        (OUT, 0, vec![0; 513], 0),
        (OUT, 0, vec![], 0),
        (ID, 0, vec![], 19),
        (DISCARD, 0, vec![0; 16], 0),
        (DISCARD, 0, range(0, 4096, 0)[..15].to_vec(), 0),
        (DISCARD, 0, [range(0, 4096, 0), range(0, 4096, 0)].concat(), 0),
        (DISCARD, 0, range(64 << 20, 512, 0).to_vec(), 0),
        (ZEROES, 0, range(0, (32 << 20) + 512, 0).to_vec(), 0),
    ] {
        assert_eq!(simple(kind, sector, &out, into), Err(Refused::Error), "{kind} {sector} {} {into}", out.len());
    }
    assert_eq!(simple(DISCARD, 0, &range(0, 4096, 1), 0), Err(Refused::Unsupported), "a discard has no flags");
    assert_eq!(simple(ZEROES, 0, &range(0, 4096, 2), 0), Err(Refused::Unsupported));
    assert_eq!(simple(99, 0, &[], 0), Err(Refused::Unsupported));
}

#[test]
fn logical_blocks_of_4_kib_are_reported_and_required() {
    let disk = Disk { sector: 4096, unit: 16384, ..disk() };
    let config = disk.config();
    let number = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
    // The capacity and the alignment of discards count 512 B. A unit has 2^2 logical blocks.
    assert_eq!((number(0), number(20), config[24], number(28), number(44)), (64 << 11, 4096, 2, 4, 32));
    assert!(simple_of(&disk, IN, 8, &[], 4096).is_ok() && simple_of(&disk, OUT, 0, &[9; 8192], 0).is_ok());
    assert!(simple_of(&disk, DISCARD, 0, &range(4096, 4096, 0), 0).is_ok());
    for (kind, sector, out, into) in [
        (IN, 1, vec![], 4096),
        (IN, 0, vec![], 512),
        (OUT, 7, vec![0; 4096], 0),
        (OUT, 0, vec![0; 4608], 0),
        (DISCARD, 0, range(512, 4096, 0).to_vec(), 0),
        (ZEROES, 0, range(4096, 512, 0).to_vec(), 0),
    ] {
        assert_eq!(simple_of(&disk, kind, sector, &out, into), Err(Refused::Error), "{kind} {sector} {}", out.len());
    }
}

/// Hostile chains in a table of four, and the resulting errors.
#[test]
fn hostile_chains_are_rejected() {
    let memory = memory();
    memory.write_slice(&head(IN, 0), GuestAddress(0x1000)).unwrap();
    let far = 1 << 40;
    type Case<'a> = (&'a str, &'a [(u64, u32, u16, u16)], Result<Refused, Broken>);
    let cases: [Case; 12] = [
        ("a loop", &[(0x1000, 16, NEXT, 1), (0x2000, 512, NEXT | WRITE, 0)], Err(Broken::Loop)),
        ("outside of the table", &[(0x1000, 16, NEXT, 4)], Err(Broken::Outside)),
        ("nothing to write", &[(0x1000, 16, 0, 0)], Err(Broken::NoStatus)),
        ("a status outside", &[(0x1000, 16, NEXT, 1), (far, 513, WRITE, 0)], Err(Broken::NoStatus)),
        ("a status at the end", &[(0x1000, 16, NEXT, 1), (u64::MAX - 10, 500, WRITE, 0)], Err(Broken::NoStatus)),
        ("a table in a table", &[(0x4000, 16, INDIRECT, 0)], Err(Broken::Table)),
        ("a table of an odd size", &[(0x4000, 17, INDIRECT, 0)], Err(Broken::Table)),
        ("a table of nothing", &[(0x4000, 0, INDIRECT, 0)], Err(Broken::Table)),
        ("a table outside", &[(far, 32, INDIRECT, 0)], Err(Broken::Memory)),
        (
            "payload outside",
            &[(0x1000, 16, NEXT, 1), (far, 512, NEXT | WRITE, 2), (0x2000, 1, WRITE, 0)],
            Ok(Refused::Error),
        ),
        (
            "to write before to read",
            &[(0x2000, 512, NEXT | WRITE, 1), (0x1000, 16, NEXT, 2), (0x3000, 1, WRITE, 0)],
            Ok(Refused::Error),
        ),
        ("a head too short", &[(0x1000, 15, NEXT, 1), (0x2000, 513, WRITE, 0)], Ok(Refused::Error)),
    ];
    put(&memory, 0x4000, &[(0x4000, 16, INDIRECT, 0)]);
    for (name, descriptors, expected) in cases {
        put(&memory, 0, descriptors);
        let found = requested(&memory, 4).map(|(requested, _)| requested.what.unwrap_err());
        assert_eq!(found, expected, "{name}");
    }
    // A request larger than allowed, as far as a chain can describe it.
    put(&memory, 0, &[(0x1000, 16, NEXT, 1), (0x2000, LONGEST_PAYLOAD as u32 + 513, WRITE, 0)]);
    assert!(requested(&memory, 4).is_err(), "its end lies outside of the memory");
}

#[test]
fn requests_with_too_many_segments_fail() {
    let memory = memory();
    memory.write_slice(&head(IN, 0), GuestAddress(0x8000)).unwrap();
    for (pieces, fits) in [(126u16, true), (127, true), (128, false)] {
        let mut chain = vec![(0x8000, 16, NEXT, 1)];
        chain.extend((0..pieces).map(|index| (0x9000, 512, NEXT | WRITE, index + 2)));
        chain.push((0x8800, 1, WRITE, 0));
        put(&memory, 0, &chain);
        assert_eq!(requested(&memory, 256).unwrap().0.what.is_ok(), fits, "{pieces}");
    }
}

proptest! {
    /// A write is parsed equally for any segmentation, in the ring's table or in an indirect one.
    #[test]
    fn segmentation_does_not_matter(
        sectors in 1..20u32,
        cuts in prop::collection::vec(0..11_000usize, 0..12),
        is_indirect: bool,
        byte: u8,
    ) {
        let memory = memory();
        let payload: Vec<u8> = (0..sectors * 512).map(|index| byte.wrapping_add((index / 7) as u8)).collect();
        let bytes = [head(OUT, 11), payload.clone()].concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut chain = Vec::new();
        for (index, pair) in cuts.windows(2).enumerate() {
            // The segments are not adjacent.
            let at = 0x1_0000 + 0x4000 * index as u64;
            memory.write_slice(&bytes[pair[0]..pair[1]], GuestAddress(at)).unwrap();
            chain.push((at, (pair[1] - pair[0]) as u32, NEXT, index as u16 + 1));
        }
        chain.push((0x8000, 1, WRITE, 0));
        if is_indirect {
            put(&memory, 0x4000, &chain);
            put(&memory, 0, &[(0x4000, 16 * chain.len() as u32, INDIRECT, 0)]);
        } else {
            put(&memory, 0, &chain);
        }
        let (requested, found) = requested(&memory, 16).unwrap();
        prop_assert_eq!(requested.what, Ok(Request { kind: Kind::Write, sector: 11, sectors }));
        prop_assert_eq!((found, requested.status), (payload, GuestAddress(0x8000)));
    }

    /// An accepted request, for any contents of memory, lies within the device and the memory, and within the length
    /// limit.
    #[test]
    fn arbitrary_memory_is_a_valid_request_or_is_refused(
        descriptors in prop::collection::vec(
            (
                prop_oneof![0..SIZE as u64 + 100, any::<u64>()],
                prop_oneof![Just(1u32), Just(16), Just(512), Just(4097), any::<u32>()],
                0..8u16,
                0..9u16,
            ),
            8,
        ),
        heads in prop::collection::vec((0..14u32, prop_oneof![0..200_000u64, any::<u64>()]), 64),
    ) {
        let memory = memory();
        for (index, (kind, sector)) in heads.iter().enumerate() {
            memory.write_slice(&head(*kind, *sector), GuestAddress(0x1000 + 16 * index as u64)).unwrap();
        }
        put(&memory, 0, &descriptors);
        let mut chain = Chain::default();
        let mut payload = vec![1, 2, 3];
        let table = Table { at: GuestAddress(0), size: 8 };
        let found = chain.read(&memory, table, 0).and_then(|()| request(&memory, &disk(), &mut chain, &mut payload));
        let taken = found.ok().and_then(|requested| requested.what.ok());
        prop_assert_eq!(&payload[..3], &[1, 2, 3]);
        let is_write = taken.is_some_and(|request| request.kind == Kind::Write);
        prop_assert!(is_write || payload.len() == 3);
        if let Some(Request { kind, sector, sectors }) = taken {
            prop_assert!(sector + u64::from(sectors) <= disk().bytes / 512);
            let bytes = u64::from(sectors) * 512;
            prop_assert!(kind != Kind::Write || payload.len() as u64 - 3 == bytes);
            prop_assert!(kind != Kind::Read || chain.bytes().1 == bytes);
            prop_assert!(!matches!(kind, Kind::Read | Kind::Write) || bytes <= LONGEST_PAYLOAD);
        }
    }
}

#[test]
fn a_read_only_device_offers_the_read_only_feature() {
    let offered = |read_only| Disk { read_only, ..disk() }.features() >> 5 & 1; // VIRTIO_BLK_F_RO
    assert_eq!((offered(false), offered(true)), (0, 1));
}
