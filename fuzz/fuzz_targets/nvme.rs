//! Fuzzes the NVMe/TCP session with any bytes from a host, before and after it is initialized.
//!
//! The first byte selects the phase, the digests, and the size of the pieces in which the other bytes arrive. The
//! session must consume whole PDUs, it must never wait for more than the longest one, and all data must have the length
//! that its command names.
#![no_main]

use floatgate_serve::nvme::LONGEST_TRANSFER;
use floatgate_serve::nvme::target::Queue;
use floatgate_serve::nvme::tcp::session::{LONGEST_PDU, Payload, Request, Session, Taken};
use libfuzzer_sys::fuzz_target;

/// Returns the request to initialize, with these digests.
fn opening(digests: u8) -> Vec<u8> {
    let mut pdu = vec![0; 128];
    pdu[2] = 128;
    pdu[4] = 128;
    pdu[11] = digests;
    pdu
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let piece = usize::from(first >> 3) + 1;
    let input = if first & 1 == 1 { [opening(first >> 1 & 0b11), rest.to_vec()].concat() } else { rest.to_vec() };
    let mut queue = Queue::new(None);
    queue.connect(1, 1, 8, first & 0b10 != 0);
    let mut session = Session::new(queue);
    let (mut taken, mut arrived, mut said) = (0, 0, Vec::new());
    loop {
        match session.take(&input[taken..arrived], &mut said) {
            Taken::Bytes(used) => taken += used,
            Taken::Command(used, Request { command, length, payload }) => {
                taken += used;
                match payload {
                    Payload::Capsule(data) => assert_eq!(data.len(), length as usize),
                    Payload::Transferred(data) | Payload::Damaged(data) => assert_eq!(data.len(), length as usize),
                    Payload::Missing => {
                        assert!((1..=LONGEST_TRANSFER).contains(&(length as usize)));
                        session.transfer(command, length, Vec::new(), &mut said);
                        continue;
                    }
                    Payload::None | Payload::Invalid(_) => {}
                }
                session.queue.outstanding -= 1;
            }
            Taken::Needs(count) => {
                assert!(count > arrived - taken && count <= LONGEST_PDU);
                if arrived == input.len() {
                    return;
                }
                arrived = (arrived + piece).min(input.len());
            }
            Taken::End => return,
        }
        assert!(taken <= arrived && session.queue.outstanding <= 8);
        said.clear();
    }
});
