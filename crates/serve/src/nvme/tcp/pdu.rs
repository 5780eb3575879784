//! Messages of the transport (PDUs).
//!
//! Source: NVM Express TCP Transport Specification 1.1.

use crate::nvme::wire::{COMPLETION, get, put};

/// Bytes of the header that all PDUs have.
pub const COMMON: usize = 8;

/// Bytes of the PDUs that initialize a connection.
pub const INITIALIZE: usize = 128;

/// Bytes of the header of a command capsule.
pub const COMMAND: usize = 72;

/// Bytes of the header of other PDUs.
pub const HEADER: usize = 24;

/// Bytes of a digest.
pub const DIGEST: usize = 4;

/// Types of PDUs.
pub mod kind {
    /// Initialize connection request.
    pub const INITIALIZE_REQUEST: u8 = 0x00;
    /// Initialize connection response.
    pub const INITIALIZE_RESPONSE: u8 = 0x01;
    /// Termination by the host.
    pub const HOST_TERMINATES: u8 = 0x02;
    /// Termination by the controller.
    pub const CONTROLLER_TERMINATES: u8 = 0x03;
    /// Command capsule.
    pub const COMMAND: u8 = 0x04;
    /// Response capsule.
    pub const RESPONSE: u8 = 0x05;
    /// Data from the host.
    pub const FROM_HOST: u8 = 0x06;
    /// Data to the host.
    pub const TO_HOST: u8 = 0x07;
    /// Ready to transfer.
    pub const READY: u8 = 0x09;
}

/// Flags of a PDU.
pub mod flag {
    /// The header has a digest.
    pub const HEADER_DIGEST: u8 = 1;
    /// The data has a digest.
    pub const DATA_DIGEST: u8 = 1 << 1;
    /// Last data of a command.
    pub const LAST: u8 = 1 << 2;
    /// The command has succeeded: no response follows.
    pub const SUCCESS: u8 = 1 << 3;
}

/// Reasons to terminate a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fatal {
    /// Invalid field, at an offset in the header.
    Header(u32),
    /// PDU out of sequence.
    Sequence,
    /// Digest of a header.
    Digest(u32),
    /// Data outside the requested range.
    Range,
    /// More data than allowed.
    Limit,
    /// Unsupported parameter, at an offset in the header.
    Unsupported(u32),
}

impl Fatal {
    /// Returns the code, and the additional information.
    fn parts(self) -> (u16, u32) {
        match self {
            Fatal::Header(at) => (1, at),
            Fatal::Sequence => (2, 0),
            Fatal::Digest(found) => (3, found),
            Fatal::Range => (4, 0),
            Fatal::Limit => (5, 0),
            Fatal::Unsupported(at) => (6, at),
        }
    }
}

/// Header that all PDUs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    /// Type.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Bytes of the header, without digest.
    pub header: u8,
    /// Offset of the data. 0 without data.
    pub data: u8,
    /// Bytes of the PDU.
    pub length: u32,
}

impl Common {
    /// Reads a header of at least [`COMMON`] bytes.
    pub fn of(bytes: &[u8]) -> Common {
        let [kind, flags, header, data] = get(bytes, 0);
        Common { kind, flags, header, data, length: u32::from_le_bytes(get(bytes, 4)) }
    }

    /// Writes the header.
    pub fn write(self, bytes: &mut [u8]) {
        put(bytes, 0, [self.kind, self.flags, self.header, self.data]);
        put(bytes, 4, self.length.to_le_bytes());
    }
}

/// Returns the response to an initialize request.
pub fn initialize(digests: u8, longest_data: u32) -> [u8; INITIALIZE] {
    let mut pdu = [0; INITIALIZE];
    let length = INITIALIZE as u32;
    Common { kind: kind::INITIALIZE_RESPONSE, flags: 0, header: length as u8, data: 0, length }.write(&mut pdu);
    pdu[11] = digests;
    put(&mut pdu, 12, longest_data.to_le_bytes());
    pdu
}

/// Appends the termination of a connection, with the header of the PDU that caused it.
pub fn terminate(out: &mut Vec<u8>, fatal: Fatal, cause: &[u8]) {
    let mut pdu = [0; HEADER];
    let cause = &cause[..cause.len().min(INITIALIZE)];
    let length = (HEADER + cause.len()) as u32;
    Common { kind: kind::CONTROLLER_TERMINATES, flags: 0, header: HEADER as u8, data: 0, length }.write(&mut pdu);
    let (code, information) = fatal.parts();
    put(&mut pdu, 8, code.to_le_bytes());
    put(&mut pdu, 10, information.to_le_bytes());
    out.extend_from_slice(&pdu);
    out.extend_from_slice(cause);
}

/// Appends a header with its digest, if digests are used.
fn push(out: &mut Vec<u8>, mut pdu: [u8; HEADER], kind: u8, digest: bool) {
    let flags = if digest { flag::HEADER_DIGEST } else { 0 };
    let length = (HEADER + if digest { DIGEST } else { 0 }) as u32;
    Common { kind, flags, header: HEADER as u8, data: 0, length }.write(&mut pdu);
    out.extend_from_slice(&pdu);
    if digest {
        out.extend_from_slice(&crc32c::crc32c(&pdu).to_le_bytes());
    }
}

/// Appends a response capsule.
pub fn response(out: &mut Vec<u8>, completion: [u8; COMPLETION], digest: bool) {
    let mut pdu = [0; HEADER];
    put(&mut pdu, 8, completion);
    push(out, pdu, kind::RESPONSE, digest);
}

/// Appends a request for all data of a command.
pub fn ready(out: &mut Vec<u8>, id: u16, tag: u16, length: u32, digest: bool) {
    let mut pdu = [0; HEADER];
    put(&mut pdu, 8, id.to_le_bytes());
    put(&mut pdu, 10, tag.to_le_bytes());
    put(&mut pdu, 16, length.to_le_bytes());
    push(out, pdu, kind::READY, digest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::target::Queue;
    use crate::nvme::tcp::session::{Session, Taken};
    use crate::nvme::wire::{Status, completion};

    #[test]
    fn messages_have_their_bytes() {
        let mut expected = [0; 128];
        expected[..5].copy_from_slice(&[1, 0, 128, 0, 128]);
        expected[11..16].copy_from_slice(&[3, 0, 0, 2, 0]);
        assert_eq!(initialize(3, 128 << 10), expected);
        let mut out = Vec::new();
        response(&mut out, completion(0x1234, Status::OK, 7, 3, 1), true);
        assert_eq!(out, *b"\x05\x01\x18\0\x1c\0\0\0\x07\0\0\0\0\0\0\0\x03\0\x01\0\x34\x12\0\0\x31\x89\x25\x12");
        out.clear();
        ready(&mut out, 0x1234, 5, 0x0002_0000, false);
        assert_eq!(out, *b"\x09\0\x18\0\x18\0\0\0\x34\x12\x05\0\0\0\0\0\0\0\x02\0\0\0\0\0");
        out.clear();
        terminate(&mut out, Fatal::Header(2), b"\x04\0\x47\0\x48\0\0\0");
        assert_eq!(out, *b"\x03\0\x18\0\x20\0\0\0\x01\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\x04\0\x47\0\x48\0\0\0");
    }

    #[test]
    fn data_to_the_host_has_its_digests_and_its_alignment() {
        let mut session = Session::new(Queue::default());
        session.queue.no_flow_control = true;
        let mut request = [0; INITIALIZE];
        request[..12].copy_from_slice(&[0, 0, 128, 0, 128, 0, 0, 0, 0, 0, 7, 3]);
        assert_eq!(session.take(&request, &mut Vec::new()), Taken::Bytes(128));
        let mut out = Vec::new();
        session.reply(&mut out, 9, b"abcd");
        let header = b"\x07\x0f\x18\x20\x28\0\0\0\x09\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x90\x39\x9b\xcc\0\0\0\0";
        assert_eq!(out, [&header[..], b"abcd\x31\x0a\xc8\x92"].concat());
    }
}
