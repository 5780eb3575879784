//! Tests with an independent client: `virtio-driver`, which is the vhost-user and virtio-blk part of libblkio.

#![allow(unsafe_code)] // Requests of the driver are slices of memory that it shares with the server.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::common::options::{options, sockets};
use floatgate_core::device_file;
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::{Options, Server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use tempfile::TempDir;
use virtio_driver::{
    VhostUser, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkTransport, VirtioFeatureFlags, virtio_blk_max_queues,
};
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{FileOffset, MmapRegion};

const QUEUES: usize = 3;
const DEPTH: usize = 64;
/// Descriptors of a queue. A request takes three.
const RING: u16 = 256;

/// The driver, its queues, and the memory shared with the server, which has a slot of 4 KiB for each request.
struct Blkio {
    transport: Box<VirtioBlkTransport>,
    queues: Vec<VirtioBlkQueue<'static, usize>>,
    memory: File,
    mapped: MmapRegion,
}

impl Blkio {
    fn connect(path: &str) -> io::Result<Blkio> {
        let wanted = VirtioBlkFeatureFlags::FLUSH
            | VirtioBlkFeatureFlags::DISCARD
            | VirtioBlkFeatureFlags::WRITE_ZEROES
            | VirtioBlkFeatureFlags::MQ
            | VirtioBlkFeatureFlags::BLK_SIZE;
        let features = VirtioFeatureFlags::VERSION_1.bits() | wanted.bits();
        let mut transport: Box<VirtioBlkTransport> = Box::new(VhostUser::new(path, features)?);
        assert_eq!(transport.get_features() & features, features, "all that is asked for is offered");
        assert_eq!(virtio_blk_max_queues(&*transport)?, QUEUES);
        let memory = File::from(memfd_create("blkio", MemfdFlags::CLOEXEC)?);
        let size = QUEUES * DEPTH * 4096;
        memory.set_len(size as u64)?;
        let builder = MmapRegionBuilder::new(size).with_file_offset(FileOffset::new(memory.try_clone()?, 0));
        let mapped = builder.with_mmap_prot(3).with_mmap_flags(1).build().map_err(io::Error::other)?;
        transport.map_mem_region(mapped.as_ptr() as usize, size, memory.as_raw_fd(), 0)?;
        let queues = VirtioBlkQueue::setup_queues(&mut *transport, QUEUES, RING)?;
        Ok(Blkio { transport, queues, memory, mapped })
    }

    /// Returns the slot of a request.
    fn slot(&self, queue: usize, slot: usize) -> (&'static mut [u8], u64) {
        let at = (queue * DEPTH + slot) * 4096;
        // SAFETY: the slot is within the region, which outlives its use by the server, and belongs to one request.
        (unsafe { std::slice::from_raw_parts_mut(self.mapped.as_ptr().add(at), 4096) }, at as u64)
    }

    /// Waits for `count` replies of a queue. Returns the requests with their status.
    fn answers(&mut self, queue: usize, count: usize) -> Vec<(usize, i32)> {
        let bell = self.transport.get_completion_fd(queue);
        let mut answers = Vec::new();
        loop {
            answers.extend(self.queues[queue].completions().map(|answer| (answer.context, answer.ret)));
            if answers.len() >= count {
                answers.sort_unstable();
                return answers;
            }
            let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
            let fd = bell.as_raw_fd();
            // SAFETY: the eventfd is open as long as `bell` exists.
            let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
            let woken = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)).unwrap();
            assert!(woken > 0, "{} of {count} answers within 20 s", answers.len());
            bell.read().unwrap();
        }
    }

    fn send(&self, queue: usize) {
        self.transport.get_submission_notifier(queue).notify().unwrap();
    }
}

fn server() -> (Server, TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("vhost.sock");
    let device =
        Device::new(device_file::load("tiny", &[]).unwrap(), DeviceOptions { attribution: true, ..Default::default() });
    let sockets = sockets(None, Some(&path));
    let options = Options { vhost_queues: QUEUES as u16, ..options() };
    (Server::start(device.unwrap(), sockets, options).unwrap(), folder, path.to_str().unwrap().to_owned())
}

#[test]
fn libblkio_writes_reads_trims_and_flushes() {
    let (server, _folder, path) = server();
    let mut blkio = Blkio::connect(&path).unwrap();
    let config = blkio.transport.get_config().unwrap();
    assert_eq!(config.capacity.to_native() * 512, 53_686_272);
    let all: Vec<(usize, i32)> = (0..48).map(|slot| (slot, 0)).collect();
    for queue in 0..QUEUES {
        for slot in 0..48 {
            let (buffer, _) = blkio.slot(queue, slot);
            buffer.fill(1 + (queue * 48 + slot) as u8);
            blkio.queues[queue].write(((queue * 48 + slot) * 4096) as u64, buffer, slot).unwrap();
        }
        blkio.send(queue);
    }
    (0..QUEUES).for_each(|queue| assert_eq!(blkio.answers(queue, 48), all, "queue {queue}"));
    blkio.queues[0].flush(7).unwrap();
    blkio.queues[0].discard(4096, 8192, 8).unwrap();
    blkio.queues[0].write_zeroes(5 * 4096, 4096, true, 9).unwrap();
    blkio.send(0);
    assert_eq!(blkio.answers(0, 3), [(7, 0), (8, 0), (9, 0)]);
    // Each queue reads what another one has written.
    for queue in 0..QUEUES {
        let other = (queue + 1) % QUEUES;
        for slot in 0..48 {
            let (buffer, _) = blkio.slot(queue, slot);
            buffer.fill(0xee);
            blkio.queues[queue].read(((other * 48 + slot) * 4096) as u64, buffer, slot).unwrap();
        }
        blkio.send(queue);
    }
    for queue in 0..QUEUES {
        assert_eq!(blkio.answers(queue, 48), all, "queue {queue}");
        for slot in 0..48 {
            let unit = (queue + 1) % QUEUES * 48 + slot;
            let wanted = if [1, 2, 5].contains(&unit) { 0 } else { 1 + unit as u8 };
            let mut read = [0; 4096];
            blkio.memory.read_exact_at(&mut read, blkio.slot(queue, slot).1).unwrap();
            assert!(read.iter().all(|byte| *byte == wanted), "unit {unit}: {} instead of {wanted}", read[0]);
        }
    }
    // A read beyond the end fails. Later requests are served.
    let (buffer, _) = blkio.slot(1, 0);
    blkio.queues[1].read(53_686_272, buffer, 3).unwrap();
    blkio.send(1);
    let ended = blkio.answers(1, 1);
    assert!(ended[0].0 == 3 && ended[0].1 < 0, "{ended:?}");
    let (buffer, _) = blkio.slot(1, 0);
    blkio.queues[1].read(0, buffer, 4).unwrap();
    blkio.send(1);
    assert_eq!(blkio.answers(1, 1), [(4, 0)]);
    drop(blkio);
    let finished = server.stop(true).unwrap();
    let results = finished.outcome.results.all();
    assert_eq!(results.count(), 2 * 48 * QUEUES as u64 + 4, "all but the one beyond the end came to the device");
    finished.device.check_invariants().unwrap();
}
