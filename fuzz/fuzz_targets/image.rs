//! Fuzzes the readers of flash images, which may be untrusted files.
#![no_main]

use floatgate_core::device_file::load;
use floatgate_serve::image::header::Header;
use floatgate_serve::image::layout::{Layout, SLOT};
use floatgate_serve::image::record::{SlotState, decode, encode};
use floatgate_serve::image::saved::Head;
use floatgate_serve::image::table::{BlockEntry, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(device) = load("tiny", &[]) else { return };
    if let Ok(header) = Header::parse(data) {
        let _ = header.check(&device);
    }
    let Some(bytes) = data.first_chunk::<SLOT>() else { return };
    let state = decode(7, 1, bytes);
    assert!(state == SlotState::Damaged || encode(state, 7, 1)[56..] == bytes[56..]);
    if let Some(head) = Head::decode(7, 1, bytes) {
        assert!(head.generation == 0 || head.encode(7, 1) == *bytes);
    }
    let (table, Some(entry)) = (Table::of_blocks(&Layout::of(&device)), data.first_chunk()) else { return };
    if let Some((value, generation)) = table.decode(7, 0, entry) {
        assert!(generation == 0 || table.encode(7, 0, &value, generation) == *entry);
        assert!(BlockEntry::parse(&value).is_none_or(|entry| entry.value()[..9] == value[..9]));
    }
});
