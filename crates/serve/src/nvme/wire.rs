//! Constants and message formats of NVMe.
//!
//! Source: NVM Express Base Specification 2.1 and NVM Command Set Specification 1.1. All numbers are little-endian.

/// Bytes of a submission queue entry.
pub const COMMAND: usize = 64;

/// Bytes of a completion queue entry.
pub const COMPLETION: usize = 16;

/// Bytes of an Identify data structure.
pub const PAGE: usize = 4096;

/// Version of the base specification: 2.1.
pub const VERSION: u32 = 0x0002_0100;

/// NQN of the discovery subsystem of every server.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// Maximum length of an NQN in bytes, and the length of its field.
pub const NQN: usize = 223;
/// Length of a field with an NQN.
pub const NQN_FIELD: usize = 256;

/// Namespace ID that stands for all namespaces.
pub const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// Admin commands.
pub mod admin {
    /// Get Log Page.
    pub const GET_LOG_PAGE: u8 = 0x02;
    /// Identify.
    pub const IDENTIFY: u8 = 0x06;
    /// Abort.
    pub const ABORT: u8 = 0x08;
    /// Set Features.
    pub const SET_FEATURES: u8 = 0x09;
    /// Get Features.
    pub const GET_FEATURES: u8 = 0x0a;
    /// Asynchronous Event Request.
    pub const ASYNC_EVENT: u8 = 0x0c;
    /// Keep Alive.
    pub const KEEP_ALIVE: u8 = 0x18;
    /// Commands of fabrics, on any queue.
    pub const FABRICS: u8 = 0x7f;
}

/// Types of fabrics commands.
pub mod fabrics {
    /// Property Set.
    pub const PROPERTY_SET: u8 = 0x00;
    /// Connect.
    pub const CONNECT: u8 = 0x01;
    /// Property Get.
    pub const PROPERTY_GET: u8 = 0x04;
    /// Disconnect, of an I/O queue.
    pub const DISCONNECT: u8 = 0x08;
}

/// I/O commands.
pub mod io {
    /// Flush.
    pub const FLUSH: u8 = 0x00;
    /// Write.
    pub const WRITE: u8 = 0x01;
    /// Read.
    pub const READ: u8 = 0x02;
    /// Compare.
    pub const COMPARE: u8 = 0x05;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u8 = 0x08;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u8 = 0x09;
    /// Verify.
    pub const VERIFY: u8 = 0x0c;
}

/// Properties of a controller, by offset.
pub mod property {
    /// Capabilities, of 8 bytes.
    pub const CAPABILITIES: u32 = 0x00;
    /// Version.
    pub const VERSION: u32 = 0x08;
    /// Configuration.
    pub const CONFIGURATION: u32 = 0x14;
    /// Status.
    pub const STATUS: u32 = 0x1c;
    /// NVM subsystem reset.
    pub const SUBSYSTEM_RESET: u32 = 0x20;
    /// Timeouts until the controller is ready.
    pub const READY_TIMEOUTS: u32 = 0x68;
}

/// Log pages.
pub mod log {
    /// Supported log pages.
    pub const SUPPORTED: u8 = 0x00;
    /// Errors.
    pub const ERRORS: u8 = 0x01;
    /// SMART / Health Information.
    pub const HEALTH: u8 = 0x02;
    /// Firmware slots.
    pub const FIRMWARE: u8 = 0x03;
    /// Namespaces that have changed.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands supported and their effects.
    pub const EFFECTS: u8 = 0x05;
    /// Features supported and their effects.
    pub const FEATURES: u8 = 0x12;
    /// Discovery.
    pub const DISCOVERY: u8 = 0x70;
}

/// Features.
pub mod feature {
    /// Arbitration.
    pub const ARBITRATION: u8 = 0x01;
    /// Power management.
    pub const POWER: u8 = 0x02;
    /// Temperature threshold.
    pub const TEMPERATURE: u8 = 0x04;
    /// Error recovery.
    pub const ERROR_RECOVERY: u8 = 0x05;
    /// Volatile write cache.
    pub const WRITE_CACHE: u8 = 0x06;
    /// Number of queues.
    pub const QUEUES: u8 = 0x07;
    /// Write atomicity.
    pub const ATOMICITY: u8 = 0x0a;
    /// Asynchronous events.
    pub const EVENTS: u8 = 0x0b;
    /// Keep alive timer.
    pub const KEEP_ALIVE: u8 = 0x0f;
}

/// Status of a completion: its code type and code, and whether a retry is useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u16);

impl Status {
    /// Success.
    pub const OK: Status = Status(0);
    /// Invalid command opcode.
    pub const INVALID_OPCODE: Status = Status::final_of(0, 0x01);
    /// Invalid field in a command.
    pub const INVALID_FIELD: Status = Status::final_of(0, 0x02);
    /// Internal error.
    pub const INTERNAL: Status = Status::of(0, 0x06);
    /// Aborted by an Abort command.
    pub const ABORTED: Status = Status::of(0, 0x07);
    /// Invalid namespace.
    pub const INVALID_NAMESPACE: Status = Status::final_of(0, 0x0b);
    /// Command out of sequence.
    pub const SEQUENCE: Status = Status::final_of(0, 0x0c);
    /// Length of the data differs from what the command transfers.
    pub const DATA_LENGTH: Status = Status::final_of(0, 0x0f);
    /// Unsupported type of the data descriptor.
    pub const DESCRIPTOR_TYPE: Status = Status::final_of(0, 0x11);
    /// Offset of the data outside of the capsule.
    pub const DATA_OFFSET: Status = Status::final_of(0, 0x16);
    /// Keep alive timeout out of range.
    pub const KEEP_ALIVE_INVALID: Status = Status::final_of(0, 0x1a);
    /// The device no longer accepts writes.
    pub const WRITE_PROTECTED: Status = Status::final_of(0, 0x20);
    /// Data was damaged during the transfer. A retry may succeed.
    pub const TRANSPORT: Status = Status::of(0, 0x22);
    /// Beyond the end of the namespace.
    pub const LBA_RANGE: Status = Status::final_of(0, 0x80);
    /// No space for the data of a write.
    pub const CAPACITY: Status = Status::final_of(0, 0x81);
    /// More outstanding requests for asynchronous events than supported.
    pub const EVENT_LIMIT: Status = Status::final_of(1, 0x05);
    /// Unsupported log page.
    pub const INVALID_LOG: Status = Status::final_of(1, 0x09);
    /// Feature that cannot be saved.
    pub const NOT_SAVEABLE: Status = Status::final_of(1, 0x0d);
    /// Command set that is not supported.
    pub const COMMAND_SET: Status = Status::final_of(1, 0x2c);
    /// Invalid format of a Connect.
    pub const CONNECT_FORMAT: Status = Status::final_of(1, 0x80);
    /// No room for a controller, or the queue is in use.
    pub const CONNECT_BUSY: Status = Status::of(1, 0x81);
    /// Invalid parameter of a Connect.
    pub const CONNECT_INVALID: Status = Status::final_of(1, 0x82);
    /// The host may not connect.
    pub const CONNECT_HOST: Status = Status::final_of(1, 0x84);
    /// Disconnect of an admin queue.
    pub const DISCONNECT_QUEUE: Status = Status::final_of(1, 0x85);
    /// A write failed.
    pub const WRITE_FAULT: Status = Status::final_of(2, 0x80);
    /// Data is lost.
    pub const UNRECOVERED_READ: Status = Status::final_of(2, 0x81);
    /// Data differs in a Compare.
    pub const COMPARE_FAILURE: Status = Status::final_of(2, 0x85);

    const fn of(kind: u16, code: u16) -> Status {
        Status((kind << 8 | code) << 1)
    }

    const fn final_of(kind: u16, code: u16) -> Status {
        Status(Status::of(kind, code).0 | 1 << 15)
    }

    /// Returns the status as in a completion, with a phase of 0.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the status of a completion.
    pub const fn of_bits(bits: u16) -> Status {
        Status(bits & !1)
    }
}

/// Returns the bytes of a field.
///
/// # Panics
///
/// If the field is not within `bytes`.
pub fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Sets the bytes of a field.
///
/// # Panics
///
/// If the field is not within `bytes`.
pub fn put<const N: usize>(bytes: &mut [u8], at: usize, field: [u8; N]) {
    bytes[at..at + N].copy_from_slice(&field);
}

/// Sets a field of text, which is padded with `pad` or cut.
pub fn put_text(bytes: &mut [u8], at: usize, length: usize, text: &str, pad: u8) {
    let field = &mut bytes[at..at + length];
    field.fill(pad);
    let count = text.len().min(length);
    field[..count].copy_from_slice(&text.as_bytes()[..count]);
}

/// Returns the text of a field that ends with a zero, or `None` if it is not valid.
pub fn text(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&field[..end]).ok()
}

/// Kind of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Discovery controller.
    Discovery,
    /// I/O controller.
    Drive,
}

/// Location of the data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataLocation {
    /// Data in the capsule, at this offset.
    Capsule(u64),
    /// Memory of the host: the transport transfers the data.
    Host,
    /// Descriptor that is not supported.
    Unsupported,
}

/// Direction of the data of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// Data from the host.
    FromHost,
    /// Data to the host.
    ToHost,
}

/// A submission queue entry.
#[derive(Clone, Copy, Debug)]
pub struct Command(pub [u8; COMMAND]);

impl Default for Command {
    fn default() -> Command {
        Command([0; COMMAND])
    }
}

impl Command {
    /// Returns the opcode.
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// Returns `true` if the command is part of a fused operation, or uses descriptors other than SGLs.
    pub fn has_unsupported_flags(&self) -> bool {
        self.0[1] & 0b11 != 0 || self.0[1] >> 6 != 1
    }

    /// Returns the identifier of the command.
    pub fn id(&self) -> u16 {
        u16::from_le_bytes(get(&self.0, 2))
    }

    /// Returns the type of a fabrics command.
    pub fn fabrics_type(&self) -> u8 {
        self.0[4]
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> u32 {
        u32::from_le_bytes(get(&self.0, 4))
    }

    /// Returns a double word, counted from the start of the entry.
    pub fn dword(&self, index: usize) -> u32 {
        u32::from_le_bytes(get(&self.0, 4 * index))
    }

    /// Returns two double words.
    pub fn qword(&self, index: usize) -> u64 {
        u64::from_le_bytes(get(&self.0, 4 * index))
    }

    /// Returns the location and length of the data.
    pub fn data(&self) -> (DataLocation, u32) {
        let length = u32::from_le_bytes(get(&self.0, 32));
        let location = match self.0[39] {
            // Data block with an offset, and the data block of the transport.
            0x01 => DataLocation::Capsule(u64::from_le_bytes(get(&self.0, 24))),
            0x5a => DataLocation::Host,
            _ => DataLocation::Unsupported,
        };
        (location, length)
    }

    /// Returns the direction of the data, which the low bits of the opcode encode.
    pub fn direction(&self) -> Direction {
        let bits = if self.opcode() == admin::FABRICS { self.fabrics_type() } else { self.opcode() };
        match bits & 0b11 {
            0b01 => Direction::FromHost,
            0b10 => Direction::ToHost,
            _ => Direction::None,
        }
    }
}

/// Builds a completion queue entry.
pub fn completion(id: u16, status: Status, result: u64, head: u16, queue: u16) -> [u8; COMPLETION] {
    let mut entry = [0; COMPLETION];
    put(&mut entry, 0, result.to_le_bytes());
    put(&mut entry, 8, head.to_le_bytes());
    put(&mut entry, 10, queue.to_le_bytes());
    put(&mut entry, 12, id.to_le_bytes());
    put(&mut entry, 14, status.bits().to_le_bytes());
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_completion_has_its_fields_at_their_offsets() {
        let entry = completion(0x1234, Status::UNRECOVERED_READ, 7, 3, 1);
        assert_eq!(entry, *b"\x07\0\0\0\0\0\0\0\x03\0\x01\0\x34\x12\x02\x85");
        assert_eq!(Status::of_bits(0x8503), Status::UNRECOVERED_READ);
    }

    #[test]
    fn the_direction_is_in_the_opcode_or_in_the_type_of_a_fabrics_command() {
        let mut command = Command([0; COMMAND]);
        let of = |command: &mut Command, opcode, kind| {
            (command.0[0], command.0[4]) = (opcode, kind);
            command.direction()
        };
        assert_eq!(of(&mut command, io::WRITE, 0), Direction::FromHost);
        assert_eq!(of(&mut command, admin::IDENTIFY, 1), Direction::ToHost);
        assert_eq!(of(&mut command, io::WRITE_ZEROES, 1), Direction::None);
        assert_eq!(of(&mut command, admin::FABRICS, fabrics::CONNECT), Direction::FromHost);
        assert_eq!(of(&mut command, admin::FABRICS, fabrics::PROPERTY_GET), Direction::None);
    }
}
