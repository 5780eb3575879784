//! Fuzzes the reader of saved states, with any bytes as the file and as the body after a valid header. The first byte
//! selects the mapping scheme.
#![no_main]

use floatgate_core::device_file;
use floatgate_core::saved_state::Head;
use floatgate_core::simulation::{Device, Options};
use floatgate_core::summary::{Precondition, Reached};
use libfuzzer_sys::fuzz_target;

/// Mapping schemes of the devices.
const SCHEMES: [&str; 6] = ["page", "dftl", "block", "bast", "fast", "last"];

fuzz_target!(|bytes: &[u8]| {
    let _ = Head::inspect_state(bytes);
    let scheme = SCHEMES[usize::from(bytes.first().copied().unwrap_or(0)) % SCHEMES.len()];
    let overrides = [format!("mapping.scheme={scheme}"), "faults={}".to_owned()];
    let Ok(device) = device_file::load("tiny", &overrides) else { return };
    let Ok(new) = Device::new(device.clone(), Options::default()) else { return };
    let origin = Precondition { requested: String::new(), reached: Reached::default() };
    let mut good = Vec::new();
    let _ = new.save(&origin, &mut good);
    let head = 24 + u32::from_le_bytes([good[12], good[13], good[14], good[15]]) as usize;
    let forged = [&good[..head], bytes].concat();
    let _ = Device::load(device, Options::default(), &forged[..]);
});
