//! I/O commands: their checks, and their translation to requests of the device.

use floatgate_core::sim::request::{Operation, SECTOR};

use super::identify::Drive;
use super::wire::{ALL_NAMESPACES, Command, Status, get, io};
use super::{LONGEST_TRANSFER, LONGEST_ZEROES};

/// Bytes of a range of Dataset Management.
const RANGE: usize = 16;

/// Effect of an I/O command on its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The command has no data, or the device stores it.
    None,
    /// The host receives the data that is read.
    Return,
    /// The data that is read is compared with that of the host.
    Compare,
    /// The data that is read is dropped.
    Verify,
}

/// An I/O command, as requests of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Io {
    /// Operation of all requests.
    pub operation: Operation,
    /// First sector, and number of sectors.
    pub range: (u64, u32),
    /// Ranges that Dataset Management deallocates: the first sector, and the number of sectors.
    pub trims: Vec<(u64, u64)>,
    /// True if the requests may complete only when they are durable.
    pub fua: bool,
    /// True if the request writes the data of the command. Otherwise a write writes zeros.
    pub has_data: bool,
    /// Use of the data that is read.
    pub uses: Use,
}

impl Io {
    /// Creates the request for an operation, with defaults for all other fields.
    pub fn of(operation: Operation, range: (u64, u32)) -> Io {
        Io { operation, range, trims: Vec::new(), fua: false, has_data: false, uses: Use::None }
    }

    /// Returns the bytes of memory that the command takes until it completes.
    pub fn memory(&self) -> usize {
        let bytes = self.range.1 as usize * SECTOR as usize;
        match self.uses {
            Use::None => 0,
            Use::Return | Use::Verify => bytes,
            // The data of the host is kept as well.
            Use::Compare => 2 * bytes,
        }
    }
}

/// Returns the number of bytes that a command reads without transferring them.
pub fn verified(command: &Command, drive: &Drive) -> u64 {
    let blocks = u64::from(command.dword(12) as u16) + 1;
    if command.opcode() == io::VERIFY { blocks * u64::from(drive.block) } else { 0 }
}

/// Returns the number of bytes that a command transfers, at most. `None` if its opcode is unknown.
fn transfer(command: &Command, drive: &Drive) -> Option<u64> {
    let blocks = u64::from(command.dword(12) as u16) + 1;
    Some(match command.opcode() {
        io::READ | io::WRITE | io::COMPARE => blocks * u64::from(drive.block),
        io::DATASET_MANAGEMENT => (u64::from(command.dword(10) as u8) + 1) * RANGE as u64,
        io::FLUSH | io::WRITE_ZEROES | io::VERIFY => 0,
        _ => return None,
    })
}

/// Returns the requests of a command. `None` if there is nothing to do.
pub fn requests(command: &Command, data: &[u8], length: u32, drive: &Drive) -> Result<Option<Io>, Status> {
    let Some(bytes) = transfer(command, drive) else { return Err(Status::INVALID_OPCODE) };
    let opcode = command.opcode();
    let is_all = opcode == io::FLUSH && command.namespace() == ALL_NAMESPACES;
    if command.namespace() != 1 && !is_all {
        return Err(Status::INVALID_NAMESPACE);
    }
    if opcode == io::DATASET_MANAGEMENT {
        return deallocate(command, data, bytes as usize, drive);
    }
    let blocks = u64::from(command.dword(12) as u16) + 1;
    let is_too_long = opcode == io::WRITE_ZEROES && blocks * u64::from(drive.block) > LONGEST_ZEROES;
    if is_too_long || bytes.max(verified(command, drive)) > LONGEST_TRANSFER as u64 {
        return Err(Status::INVALID_FIELD);
    }
    if bytes != 0 && bytes != u64::from(length) {
        return Err(Status::DATA_LENGTH);
    }
    let mut fua = command.dword(12) >> 30 & 1 != 0;
    // Blocks have no protection information.
    if opcode != io::FLUSH && command.dword(12) >> 26 & 0xf != 0 {
        return Err(Status::INVALID_FIELD);
    }
    let deallocates = command.dword(12) >> 25 & 1 != 0;
    let (operation, has_data, uses) = match opcode {
        io::READ => (Operation::Read, false, Use::Return),
        io::COMPARE => (Operation::Read, false, Use::Compare),
        io::VERIFY => (Operation::Read, false, Use::Verify),
        io::WRITE => (Operation::Write, true, Use::None),
        io::WRITE_ZEROES if deallocates => (Operation::WriteZeroes, false, Use::None),
        io::WRITE_ZEROES => (Operation::Write, false, Use::None),
        _ => (Operation::Flush, false, Use::None),
    };
    fua &= operation != Operation::Read;
    let range = if opcode == io::FLUSH { (0, 0) } else { sectors(command.qword(10), blocks, drive)? };
    Ok(Some(Io { fua, has_data, uses, ..Io::of(operation, (range.0, range.1 as u32)) }))
}

/// Returns the sectors of a range of logical blocks.
fn sectors(first: u64, blocks: u64, drive: &Drive) -> Result<(u64, u64), Status> {
    if first.checked_add(blocks).is_none_or(|end| end > drive.blocks) {
        return Err(Status::LBA_RANGE);
    }
    let each = u64::from(drive.block) / SECTOR;
    Ok((first * each, blocks * each))
}

/// Returns the requests of Dataset Management. Attributes other than deallocation are hints without effect.
fn deallocate(command: &Command, data: &[u8], bytes: usize, drive: &Drive) -> Result<Option<Io>, Status> {
    if data.len() < bytes {
        return Err(Status::DATA_LENGTH);
    }
    let mut trims = Vec::new();
    for range in data[..bytes].chunks_exact(RANGE) {
        let (blocks, first) = (u32::from_le_bytes(get(range, 4)), u64::from_le_bytes(get(range, 8)));
        let sectors = sectors(first, u64::from(blocks), drive)?;
        if blocks > 0 {
            trims.push(sectors);
        }
    }
    let deallocates = command.dword(11) & 1 << 2 != 0;
    let is_needed = deallocates && !trims.is_empty();
    Ok(is_needed.then(|| Io { trims, ..Io::of(Operation::Trim, (0, 0)) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme::wire::{COMMAND, put};
    use floatgate_core::device_file;

    fn drive() -> Drive {
        Drive::new(&device_file::load("tiny", &["host.sector_size=4KiB".to_owned()]).unwrap(), 1, None)
    }

    fn command(opcode: u8, first: u64, blocks: u32) -> Command {
        let mut command = Command([0; COMMAND]);
        (command.0[0], command.0[4]) = (opcode, 1);
        put(&mut command.0, 40, first.to_le_bytes());
        put(&mut command.0, 48, (blocks - 1).to_le_bytes());
        command
    }

    #[test]
    fn ranges_are_checked_to_the_block() {
        let drive = drive();
        let of = |first, blocks| requests(&command(io::READ, first, blocks), &[], blocks * 4096, &drive);
        let read = of(drive.blocks - 2, 2).unwrap().unwrap();
        assert_eq!((read.operation, read.range), (Operation::Read, (8 * (drive.blocks - 2), 16)));
        assert_eq!(of(drive.blocks - 1, 2), Err(Status::LBA_RANGE));
        assert_eq!(of(u64::MAX, 2), Err(Status::LBA_RANGE));
        assert!(of(0, 256).is_ok());
        assert_eq!(of(0, 257), Err(Status::INVALID_FIELD));
        assert_eq!(requests(&command(io::READ, 0, 2), &[], 4096, &drive), Err(Status::DATA_LENGTH));
        let mut other = command(io::READ, 0, 1);
        other.0[4] = 2;
        assert_eq!(requests(&other, &[], 4096, &drive), Err(Status::INVALID_NAMESPACE));
        assert_eq!(requests(&command(0x0d, 0, 1), &[], 4096, &drive), Err(Status::INVALID_OPCODE));
    }

    #[test]
    fn zeroes_are_written_or_deallocated() {
        let mut zeroes = command(io::WRITE_ZEROES, 1, 1 << 12);
        let requested = requests(&zeroes, &[], 0, &drive()).unwrap().unwrap();
        assert_eq!((requested.operation, requested.has_data, requested.fua), (Operation::Write, false, false));
        zeroes.0[51] = 1 << 1 | 1 << 6;
        let requested = requests(&zeroes, &[], 0, &drive()).unwrap().unwrap();
        assert_eq!((requested.operation, requested.range, requested.fua), (Operation::WriteZeroes, (8, 1 << 15), true));
        // The limit that Identify reports: 32 MiB.
        assert!(requests(&command(io::WRITE_ZEROES, 0, 1 << 13), &[], 0, &drive()).is_ok());
        let too_long = command(io::WRITE_ZEROES, 0, (1 << 13) + 1);
        assert_eq!(requests(&too_long, &[], 0, &drive()), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn dataset_management_trims_all_its_ranges() {
        let drive = drive();
        let mut command = command(io::DATASET_MANAGEMENT, 0, 1);
        let mut data = vec![0; 48];
        for (index, (first, blocks)) in [(8_u64, 4_u32), (0, 0), (drive.blocks - 1, 1)].into_iter().enumerate() {
            put(&mut data, 16 * index + 4, blocks.to_le_bytes());
            put(&mut data, 16 * index + 8, first.to_le_bytes());
        }
        put(&mut command.0, 40, 2_u32.to_le_bytes());
        assert_eq!(requests(&command, &data, 48, &drive), Ok(None), "a hint");
        put(&mut command.0, 44, 4_u32.to_le_bytes());
        let requested = requests(&command, &data, 48, &drive).unwrap().unwrap();
        assert_eq!(requested.operation, Operation::Trim);
        assert_eq!(requested.trims, [(64, 32), (8 * (drive.blocks - 1), 8)]);
        assert_eq!(requests(&command, &data[..40], 40, &drive), Err(Status::DATA_LENGTH));
        put(&mut data, 36, 2_u32.to_le_bytes());
        assert_eq!(requests(&command, &data, 48, &drive), Err(Status::LBA_RANGE));
        // More than 2 TiB: 32 bits do not hold the number of sectors.
        let large = Drive { blocks: 1 << 30, ..drive };
        put(&mut command.0, 40, 0_u32.to_le_bytes());
        put(&mut data, 4, ((1_u32 << 29) + 1).to_le_bytes());
        let requested = requests(&command, &data, 48, &large).unwrap().unwrap();
        assert_eq!(requested.trims, [(64, (1 << 32) + 8)]);
    }
}
