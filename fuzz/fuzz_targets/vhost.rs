//! Fuzzes the vhost-user server with any bytes as the memory of a client, with a descriptor table at its start.
//!
//! The first two bytes select the head of the chain and the size of the table. The server must reach the end of the
//! chain, and an accepted request must be within the disk and the maximum length.
#![no_main]

use floatgate_serve::vhost::Memory;
use floatgate_serve::vhost::blk::{Disk, Kind, LONGEST_PAYLOAD, request};
use floatgate_serve::vhost::chain::{Chain, Table};
use libfuzzer_sys::fuzz_target;
use vm_memory::{Bytes, GuestAddress};

const SIZE: usize = 64 << 10;

fuzz_target!(|bytes: &[u8]| {
    let Some(([head, size], rest)) = bytes.split_first_chunk() else { return };
    let Ok(memory) = Memory::from_ranges(&[(GuestAddress(0), SIZE)]) else { return };
    let there = rest.len().min(SIZE);
    memory.write_slice(&rest[..there], GuestAddress(0)).expect("it fits");
    let disk = Disk { name: "ssd".to_owned(), bytes: 1 << 20, sector: 512, unit: 4096, queues: 1, read_only: false };
    let table = Table { at: GuestAddress(0), size: 1 << (size % 8) };
    let (mut chain, mut payload) = (Chain::default(), Vec::new());
    if chain.read(&memory, table, u16::from(*head)).is_err() {
        return;
    }
    let Ok(requested) = request(&memory, &disk, &mut chain, &mut payload) else { return };
    assert!(requested.status.0 < SIZE as u64);
    let Ok(found) = requested.what else { return };
    let bytes = u64::from(found.sectors) * 512;
    assert!(found.sector * 512 + bytes <= disk.bytes);
    assert!(found.kind != Kind::Write || (payload.len() as u64 == bytes && bytes <= LONGEST_PAYLOAD));
    assert!(found.kind != Kind::Read || chain.bytes().1 == bytes);
});
