//! Fuzzes the NBD session with any bytes from a client, before and after it has chosen an export.
//!
//! The first byte selects the phase, and the size of the pieces in which the other bytes arrive. The session must
//! consume whole messages, all requests must be within the device, and it must never wait for more than the longest
//! message.
#![no_main]

use floatgate_serve::nbd::session::{Export, Kind, LONGEST_PAYLOAD, Session, Taken};
use floatgate_serve::nbd::wire::{self, option};
use floatgate_serve::payload::Extent;
use libfuzzer_sys::fuzz_target;

const BYTES: u64 = 1 << 20;

fn requested(option: u32, data: &[u8]) -> Vec<u8> {
    [&wire::OPTION.to_be_bytes()[..], &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

fn opening() -> Vec<u8> {
    let context = [&0u32.to_be_bytes()[..], &1u32.to_be_bytes(), &15u32.to_be_bytes(), b"base:allocation"].concat();
    let options = [
        requested(option::STRUCTURED_REPLY, &[]),
        requested(option::SET_META_CONTEXT, &context),
        requested(option::GO, &[0; 6]),
    ];
    [3u32.to_be_bytes().to_vec(), options.concat()].concat()
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let piece = usize::from(first >> 1) + 1;
    let input = if first & 1 == 1 { [opening(), rest.to_vec()].concat() } else { rest.to_vec() };
    let export = Export {
        name: "ssd".to_owned(),
        description: String::new(),
        bytes: BYTES,
        sector: 512,
        unit: 4096,
        read_only: false,
    };
    let mut said = Vec::new();
    let mut session = Session::new(export, &mut said);
    let (mut taken, mut there) = (0, 0);
    loop {
        match session.take(&input[taken..there], &mut said) {
            Taken::Bytes(used) => taken += used,
            Taken::Command(used, command) => {
                taken += used;
                let end = command.offset.checked_add(u64::from(command.length));
                assert!(end.is_some_and(|end| end <= BYTES));
                if let Kind::Status { one } = command.kind {
                    session.status(&command, one, |range| (Extent::Hole, range.end), &mut said);
                }
            }
            Taken::Needs(count) => {
                assert!(count > there - taken && count <= wire::REQUEST_HEAD + LONGEST_PAYLOAD as usize);
                if there == input.len() {
                    return;
                }
                there = (there + piece).min(input.len());
            }
            Taken::End => return,
        }
        assert!(taken <= there);
        said.clear();
    }
});
