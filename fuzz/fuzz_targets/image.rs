//! What is read of a flash image, which may be anybody's file.
#![no_main]

use floatgate_core::config::load;
use floatgate_serve::image::header::Header;
use floatgate_serve::image::layout::{Slot, read_entry};
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
    let _ = read_entry(7, data);
});
