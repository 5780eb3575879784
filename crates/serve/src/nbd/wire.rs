//! Constants and message formats of the NBD protocol.
//!
//! Source: the description of the protocol, `doc/proto.md` of the NBD project. All numbers are big-endian.

/// "NBDMAGIC": the start of the server's greeting.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": newstyle negotiation, and the header of each option.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// Magic number of the reply to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Magic number of a request.
pub const REQUEST: u32 = 0x2560_9513;
/// Magic number of a simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Magic number of a chunk of a structured reply.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Bytes of an option header.
pub const OPTION_HEAD: usize = 16;
/// Bytes of the header of a reply to an option.
pub const OPTION_REPLY_HEAD: usize = 20;
/// Bytes of a request without payload.
pub const REQUEST_HEAD: usize = 28;
/// Bytes of a simple reply without payload.
pub const SIMPLE_HEAD: usize = 16;
/// Bytes of a chunk header.
pub const CHUNK_HEAD: usize = 20;
/// Bytes before the data of a read in a structured reply: the chunk header and the offset.
pub const DATA_HEAD: usize = CHUNK_HEAD + 8;

/// Handshake flags, of both sides.
pub mod handshake {
    /// Fixed newstyle: replies to options may be errors.
    pub const FIXED: u16 = 1;
    /// Omits the 124 zeros after the reply to `EXPORT_NAME`.
    pub const NO_ZEROES: u16 = 2;
}

/// Transmission flags, which describe the features of an export.
pub mod export {
    /// The other flags are valid.
    pub const HAS_FLAGS: u16 = 1;
    /// The export is read-only.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Flush.
    pub const FLUSH: u16 = 1 << 2;
    /// Force unit access.
    pub const FUA: u16 = 1 << 3;
    /// Trim.
    pub const TRIM: u16 = 1 << 5;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// Supports reads with a reply in a single chunk.
    pub const DF: u16 = 1 << 7;
    /// A flush on one connection covers all connections.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// Supports zeroing only if it is fast.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// Options, which a client negotiates before it chooses an export.
pub mod option {
    /// Choose an export, the obsolete way.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Start encryption.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export, and choose it.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List the metadata contexts.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub mod reply {
    /// Success.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// Information about an export.
    pub const INFO: u32 = 3;
    /// A metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Unknown option.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// Not allowed by the server at this time.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// Invalid data.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// Unknown export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// Data too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Kinds of information about an export.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// The name.
    pub const NAME: u16 = 1;
    /// Description for people.
    pub const DESCRIPTION: u16 = 2;
    /// Block sizes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write. The payload follows.
    pub const WRITE: u16 = 1;
    /// End the session.
    pub const DISCONNECT: u16 = 2;
    /// Flush.
    pub const FLUSH: u16 = 3;
    /// Trim.
    pub const TRIM: u16 = 4;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Query the allocation status.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Command flags.
pub mod flag {
    /// Force unit access.
    pub const FUA: u16 = 1;
    /// Zero without leaving a hole.
    pub const NO_HOLE: u16 = 1 << 1;
    /// Reply to a read in one chunk.
    pub const DF: u16 = 1 << 2;
    /// Query only the first extent.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zero only if it is fast.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunk flags and types.
pub mod chunk {
    /// Flag: last chunk of the reply.
    pub const DONE: u16 = 1;
    /// No content.
    pub const NONE: u16 = 0;
    /// Data.
    pub const OFFSET_DATA: u16 = 1;
    /// Block status.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Status flags of `base:allocation`.
pub mod allocation {
    /// The extent is not allocated.
    pub const HOLE: u32 = 1;
    /// The extent reads as zeros.
    pub const ZERO: u32 = 2;
}

/// Errors of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// Not permitted: the device is read-only.
    Perm = 1,
    /// Data are lost.
    Io = 5,
    /// Invalid request.
    Invalid = 22,
    /// Beyond the end of the device, or no space left.
    NoSpace = 28,
    /// Not supported as requested.
    NotSupported = 95,
    /// The server is shutting down.
    Shutdown = 108,
}

impl Errno {
    /// Returns a message for clients that show it.
    pub const fn message(self) -> &'static str {
        match self {
            Errno::Perm => "the device is read-only",
            Errno::Io => "the data are uncorrectable",
            Errno::Invalid => "the request is malformed, not of whole logical blocks, or out of range",
            Errno::NoSpace => "the request exceeds the device, or there is no room for its payload",
            Errno::NotSupported => "these zeroes cannot be written faster than data",
            Errno::Shutdown => "the server is shutting down",
        }
    }
}

/// Appends the reply to an option.
pub fn option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[u8]) {
    out.extend_from_slice(&OPTION_REPLY.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(data);
}

/// Appends a simple reply, without payload.
pub fn simple_reply(out: &mut Vec<u8>, error: u32, cookie: u64) {
    out.extend_from_slice(&simple_head(error, cookie));
}

/// Returns a simple reply without payload.
pub fn simple_head(error: u32, cookie: u64) -> [u8; SIMPLE_HEAD] {
    let mut head = [0; SIMPLE_HEAD];
    head[..4].copy_from_slice(&SIMPLE_REPLY.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    head
}

/// Returns the header of the last chunk of a reply.
pub fn chunk_head(kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_HEAD] {
    let mut head = [0; CHUNK_HEAD];
    head[..4].copy_from_slice(&STRUCTURED_REPLY.to_be_bytes());
    head[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&length.to_be_bytes());
    head
}

/// Returns the bytes before the data of a read in a structured reply.
pub fn data_head(cookie: u64, offset: u64, bytes: u32) -> [u8; DATA_HEAD] {
    let mut head = [0; DATA_HEAD];
    head[..CHUNK_HEAD].copy_from_slice(&chunk_head(chunk::OFFSET_DATA, cookie, bytes + 8));
    head[CHUNK_HEAD..].copy_from_slice(&offset.to_be_bytes());
    head
}

/// Appends the reply to a failed request, structured if the client negotiated that.
pub fn error_reply(out: &mut Vec<u8>, structured: bool, error: Errno, cookie: u64) {
    if !structured {
        return simple_reply(out, error as u32, cookie);
    }
    let message = error.message().as_bytes();
    out.extend_from_slice(&chunk_head(chunk::ERROR, cookie, 6 + message.len() as u32));
    out.extend_from_slice(&(error as u32).to_be_bytes());
    out.extend_from_slice(&(message.len() as u16).to_be_bytes());
    out.extend_from_slice(message);
}

/// Reads values from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Takes `count` bytes. `None` if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (now, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(now)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (now, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*now)
    }

    /// Takes a 16-bit number.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes a 32-bit number.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes a 64-bit number.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Takes a string that follows its length in 32 bits.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(length as usize)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_their_declared_lengths() {
        assert_eq!(simple_head(22, 7), *b"\x67\x44\x66\x98\0\0\0\x16\0\0\0\0\0\0\0\x07");
        let head = data_head(9, 4096, 512);
        let mut reader = Reader(&head);
        assert_eq!((reader.u32(), reader.u16(), reader.u16()), (Some(STRUCTURED_REPLY), Some(1), Some(1)));
        assert_eq!((reader.u64(), reader.u32(), reader.u64()), (Some(9), Some(520), Some(4096)));
        assert_eq!((reader.0.len(), reader.u16()), (0, None));
        let mut out = Vec::new();
        error_reply(&mut out, true, Errno::NoSpace, 3);
        let length = u32::from_be_bytes(out[16..20].try_into().unwrap()) as usize;
        assert_eq!(out.len(), CHUNK_HEAD + length);
    }
}
