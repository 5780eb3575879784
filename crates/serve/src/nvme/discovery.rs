//! Log page of the discovery controller: where hosts connect to the drive.

use std::net::SocketAddr;

use super::identify::Drive;
use super::wire::{put, put_text};

/// Bytes of the start of the page, and of each record.
const RECORD: usize = 1024;

/// Returns the log page: one record for the address at which the host has reached the server. A host that may not
/// connect sees none.
pub fn page(drive: &Drive, local: Option<SocketAddr>, is_allowed: bool) -> Vec<u8> {
    let records = local.filter(|_| is_allowed);
    let mut page = vec![0; RECORD * (1 + usize::from(records.is_some()))];
    put(&mut page, 0, 1_u64.to_le_bytes());
    put(&mut page, 8, u64::from(records.is_some()).to_le_bytes());
    if let Some(address) = records {
        let record = &mut page[RECORD..];
        // TCP, IPv4 or IPv6, and an NVM subsystem. A secure channel is not required, and flow control can be disabled.
        record[..4].copy_from_slice(&[3, if address.is_ipv4() { 1 } else { 2 }, 2, 0b110]);
        put(record, 4, 1_u16.to_le_bytes());
        // Controllers are created for each host.
        put(record, 6, u16::MAX.to_le_bytes());
        put(record, 8, super::controller::MAX_ENTRIES.to_le_bytes());
        put_text(record, 32, 32, &address.port().to_string(), b' ');
        put_text(record, 256, 256, &drive.nqn, 0);
        put_text(record, 512, 256, &address.ip().to_string(), b' ');
    }
    page
}
