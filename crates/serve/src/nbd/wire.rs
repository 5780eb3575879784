//! The numbers of the NBD protocol, and how its messages lie in bytes.
//!
//! After the protocol's description, `doc/proto.md` of the NBD project. All numbers are big-endian.

/// "NBDMAGIC": the first thing that a server says.
pub const GREETING: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT": the newstyle negotiation, and the head of each option.
pub const OPTION: u64 = 0x4948_4156_454f_5054;
/// The head of each answer to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// The head of a request.
pub const REQUEST: u32 = 0x2560_9513;
/// The head of a simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// The head of a chunk of a structured reply.
pub const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Bytes of the head of an option.
pub const OPTION_HEAD: usize = 16;
/// Bytes of the head of an answer to an option.
pub const OPTION_REPLY_HEAD: usize = 20;
/// Bytes of a request without payload.
pub const REQUEST_HEAD: usize = 28;
/// Bytes of a simple reply without payload.
pub const SIMPLE_HEAD: usize = 16;
/// Bytes of the head of a chunk.
pub const CHUNK_HEAD: usize = 20;
/// Bytes before the data of a read, in a structured reply: the chunk's head and the offset.
pub const DATA_HEAD: usize = CHUNK_HEAD + 8;

/// Flags of the handshake, of both sides.
pub mod handshake {
    /// Fixed newstyle: errors in answer to options are understood.
    pub const FIXED: u16 = 1;
    /// No 124 zeros at the end of the old way to choose an export.
    pub const NO_ZEROES: u16 = 2;
}

/// What an export can.
pub mod export {
    /// The flags mean something.
    pub const HAS_FLAGS: u16 = 1;
    /// Writes are refused.
    pub const READ_ONLY: u16 = 1 << 1;
    /// Flush.
    pub const FLUSH: u16 = 1 << 2;
    /// Force unit access.
    pub const FUA: u16 = 1 << 3;
    /// Trim.
    pub const TRIM: u16 = 1 << 5;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 6;
    /// Reads that are not to be answered in several chunks.
    pub const DF: u16 = 1 << 7;
    /// A flush on one connection is one on all.
    pub const MULTI_CONN: u16 = 1 << 8;
    /// Zeroes that are only to be written where that is fast.
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// What a client asks for before it has chosen an export.
pub mod option {
    /// Choose an export, the old way.
    pub const EXPORT_NAME: u32 = 1;
    /// Leave.
    pub const ABORT: u32 = 2;
    /// Name the exports.
    pub const LIST: u32 = 3;
    /// Encrypt.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export, and choose it.
    pub const GO: u32 = 7;
    /// Answer in chunks.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Name the kinds of block status.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Choose kinds of block status.
    pub const SET_META_CONTEXT: u32 = 10;
}

/// How an option is answered.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// A description.
    pub const INFO: u32 = 3;
    /// A kind of block status.
    pub const META_CONTEXT: u32 = 4;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The server does not allow it now.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// Its data make no sense.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// Its data are too long.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
}

/// Kinds of description.
pub mod info {
    /// Size and flags.
    pub const EXPORT: u16 = 0;
    /// The name.
    pub const NAME: u16 = 1;
    /// Words for people.
    pub const DESCRIPTION: u16 = 2;
    /// Sizes of blocks.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What a client asks for.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write; its payload follows.
    pub const WRITE: u16 = 1;
    /// Leave.
    pub const DISCONNECT: u16 = 2;
    /// Flush.
    pub const FLUSH: u16 = 3;
    /// Trim.
    pub const TRIM: u16 = 4;
    /// Write zeroes.
    pub const WRITE_ZEROES: u16 = 6;
    /// Tell what is allocated.
    pub const BLOCK_STATUS: u16 = 7;
}

/// How a request is to be done.
pub mod flag {
    /// Force unit access.
    pub const FUA: u16 = 1;
    /// Zeroes that stay allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// A read in one chunk.
    pub const DF: u16 = 1 << 2;
    /// Block status of the first extent only.
    pub const REQ_ONE: u16 = 1 << 3;
    /// Zeroes only if that is fast.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Kinds of chunks.
pub mod chunk {
    /// The chunk is the last of its reply.
    pub const DONE: u16 = 1;
    /// Nothing.
    pub const NONE: u16 = 0;
    /// Data.
    pub const OFFSET_DATA: u16 = 1;
    /// Block status.
    pub const BLOCK_STATUS: u16 = 5;
    /// An error.
    pub const ERROR: u16 = 1 << 15 | 1;
}

/// Flags of block status in `base:allocation`.
pub mod allocation {
    /// Not allocated.
    pub const HOLE: u32 = 1;
    /// Reads as zeros.
    pub const ZERO: u32 = 2;
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Errno {
    /// Not allowed: the device is read-only.
    Perm = 1,
    /// The data are lost.
    Io = 5,
    /// The request makes no sense.
    Invalid = 22,
    /// It ends behind the device, or there is no room.
    NoSpace = 28,
    /// It cannot be done as asked.
    NotSupported = 95,
    /// The server ends.
    Shutdown = 108,
}

impl Errno {
    /// In words, for a client that shows them.
    pub const fn message(self) -> &'static str {
        match self {
            Errno::Perm => "the device takes no more writes",
            Errno::Io => "the data are lost beyond correction",
            Errno::Invalid => "the request is malformed, not of whole sectors, or out of range",
            Errno::NoSpace => "the request ends behind the device, or there is no room for its payload",
            Errno::NotSupported => "these zeroes cannot be written faster than data",
            Errno::Shutdown => "the server ends",
        }
    }
}

/// Appends the answer to an option.
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

/// A simple reply, without payload.
pub fn simple_head(error: u32, cookie: u64) -> [u8; SIMPLE_HEAD] {
    let mut head = [0; SIMPLE_HEAD];
    head[..4].copy_from_slice(&SIMPLE_REPLY.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    head
}

/// The head of the last chunk of a reply.
pub fn chunk_head(kind: u16, cookie: u64, length: u32) -> [u8; CHUNK_HEAD] {
    let mut head = [0; CHUNK_HEAD];
    head[..4].copy_from_slice(&STRUCTURED_REPLY.to_be_bytes());
    head[4..6].copy_from_slice(&chunk::DONE.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&length.to_be_bytes());
    head
}

/// What stands before the data of a read, in a structured reply.
pub fn data_head(cookie: u64, offset: u64, bytes: u32) -> [u8; DATA_HEAD] {
    let mut head = [0; DATA_HEAD];
    head[..CHUNK_HEAD].copy_from_slice(&chunk_head(chunk::OFFSET_DATA, cookie, bytes + 8));
    head[CHUNK_HEAD..].copy_from_slice(&offset.to_be_bytes());
    head
}

/// Appends the reply to a request that failed, as the client understands it.
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

/// Bytes that are read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// So many bytes, if there are.
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

    /// A number of 16 bits.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of 64 bits.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A text behind its length in 32 bits.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(length as usize)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_as_long_as_they_say() {
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
