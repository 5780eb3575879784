//! Fuzzes the readers of flash images, which may be untrusted files.
#![no_main]

use floatgate_core::config::load;
use floatgate_serve::image::header::Header;
use floatgate_serve::image::layout::{Slot, anchor, entry, read_anchor, read_entry};
use floatgate_serve::image::saved::Entry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let (Ok(header), Ok(device)) = (Header::parse(data), load("tiny", &[])) {
        let _ = header.check(&device);
    }
    if let Some(slot) = Slot::parse(7, data) {
        assert_eq!(Slot::parse(7, &slot.bytes(7)), Some(slot));
    }
    if let Some(entry) = Entry::parse(7, data) {
        assert_eq!(Entry::parse(7, &entry.head(7)), Some(entry));
    }
    if let Some(bytes) = data.first_chunk() {
        let read = read_entry(7, *bytes);
        assert!(read.is_none_or(|(erases, mark)| *bytes == [0; 8] || entry(7, erases, mark) == *bytes));
        assert!(read_anchor(7, *bytes).is_none_or(|place| anchor(7, place) == *bytes));
    }
});
