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
        // A socket for both families reports the addresses of IPv4 hosts as mapped to IPv6.
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        let record = &mut page[RECORD..];
        // TCP, IPv4 or IPv6, and an NVM subsystem. A secure channel is not required, and flow control can be disabled.
        record[..4].copy_from_slice(&[3, if address.is_ipv4() { 1 } else { 2 }, 2, 0b110]);
        put(record, 4, 1_u16.to_le_bytes());
        // Controllers are created for each host.
        put(record, 6, u16::MAX.to_le_bytes());
        put(record, 8, super::MAX_ENTRIES.to_le_bytes());
        put_text(record, 32, 32, &address.port().to_string(), b' ');
        put_text(record, 256, 256, &drive.nqn, 0);
        put_text(record, 512, 256, &address.ip().to_string(), b' ');
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use floatgate_core::device_file;

    #[test]
    fn a_record_names_the_address_and_the_subsystem() {
        let nqn = "nqn.2026-01.example:drive";
        let drive = Drive::new(&device_file::load("tiny", &[]).unwrap(), 1, Some(nqn));
        for (address, family, text) in [
            ("127.0.0.1:4420", 1, "127.0.0.1"),
            ("[::ffff:192.0.2.1]:4420", 1, "192.0.2.1"),
            ("[2001:db8::1]:4420", 2, "2001:db8::1"),
        ] {
            let page = page(&drive, address.parse().ok(), true);
            assert_eq!((page.len(), &page[..16]), (2048, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..]));
            let record = &page[1024..];
            // TCP, the family, an NVM subsystem, TREQ, port ID 1, any controller, 128 entries.
            assert_eq!(record[..10], [3, family, 2, 6, 1, 0, 0xff, 0xff, 128, 0]);
            assert_eq!(record[32..64], *format!("{:<32}", 4420).as_bytes());
            assert_eq!(record[256..512], *[nqn.as_bytes(), &[0; 256 - 25]].concat());
            assert_eq!(record[512..768], *format!("{text:<256}").as_bytes());
            assert_eq!(record[768..], [0; 256], "no security");
        }
        let mut empty = [0; 1024];
        empty[0] = 1;
        assert_eq!(page(&drive, "127.0.0.1:4420".parse().ok(), false), empty);
    }
}
