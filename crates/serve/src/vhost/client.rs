//! A small vhost-user-blk client, for calibration, tests and load generation (`examples/vhost_load.rs`).
//!
//! The client does in a few lines what QEMU and its guest do together: it shares memory, creates rings in it, and
//! implements the driver's side of the rings. Each request slot has its own memory and three descriptors: header,
//! payload, status.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use floatgate_core::sim::request::SECTOR;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_ID_BYTES, VIRTIO_BLK_S_OK, VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_FLUSH, VIRTIO_BLK_T_GET_ID,
    VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT, VIRTIO_BLK_T_WRITE_ZEROES,
};
use virtio_bindings::virtio_ring::{VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestRegionMmap};
use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::Memory;
use super::blk::{CONFIG, FEATURES, HEAD};

/// Guest address of the memory.
const BASE: u64 = 1 << 32;

/// Bytes for the rings of a queue, enough for 1024 descriptors.
const RINGS: u64 = 64 << 10;

/// Bytes before the payload of a request, for the header and the status.
const FRONT: u64 = 64;

/// Epoll data of the socket.
const SOCKET: u64 = 1;

/// Parameters of a client.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of queues.
    pub queues: u16,
    /// Number of descriptors per queue, a power of two up to 1024.
    pub size: u16,
    /// Maximum payload of a request in bytes.
    pub bytes: u32,
    /// True to busy-wait for replies instead of sleeping.
    pub looks: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Shape { queues: 1, size: 128, bytes: 256 << 10, looks: false }
    }
}

impl Shape {
    fn slots(&self) -> u16 {
        self.size / 3
    }

    fn slot_bytes(&self) -> u64 {
        FRONT + u64::from(self.bytes).next_multiple_of(4096)
    }

    fn queue_bytes(&self) -> u64 {
        RINGS + u64::from(self.slots()) * self.slot_bytes()
    }
}

/// Driver's side of a ring.
#[derive(Debug)]
struct Queue {
    table: u64,
    available: u64,
    used: u64,
    kick: EventFd,
    call: EventFd,
    /// Number of requests added to the ring, and number of these that were made visible to the device.
    offered: u16,
    reported: u16,
    /// Number of replies taken.
    seen: u16,
    free: Vec<u16>,
}

/// A reply from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Slot of the request.
    pub slot: u16,
    /// Status, 0 for success.
    pub status: u8,
    /// Number of bytes that the device reports as written.
    pub bytes: u32,
}

/// A connected client.
pub struct Client {
    frontend: Frontend,
    shape: Shape,
    memory: Memory,
    region: VhostUserMemoryRegionInfo,
    _file: File,
    queues: Vec<Queue>,
    /// Waits for replies, or for the end of the connection. Indexed by queue.
    epolls: Vec<Epoll>,
    config: Vec<u8>,
    inflight: Option<(VhostUserInflight, File)>,
}

fn reported(error: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{error:?}"))
}

impl Client {
    /// Connects, shares memory, and starts the queues.
    pub fn connect(path: &Path, shape: Shape) -> io::Result<Client> {
        Client::over(UnixStream::connect(path)?, shape)
    }

    /// Starts a session over a connected socket.
    pub fn over(socket: UnixStream, shape: Shape) -> io::Result<Client> {
        let bytes = u64::from(shape.queues) * shape.queue_bytes();
        let file = File::from(memfd_create("floatgate-client", MemfdFlags::CLOEXEC)?);
        ftruncate(&file, bytes)?;
        let offset = FileOffset::new(file.try_clone()?, 0);
        let region = GuestRegionMmap::from_range(GuestAddress(BASE), bytes as usize, Some(offset)).map_err(reported)?;
        let memory = Memory::from_regions(vec![region]).map_err(reported)?;
        let first = memory.iter().next().ok_or_else(|| reported("no memory"))?;
        let mut region = VhostUserMemoryRegionInfo::from_guest_region(first).map_err(reported)?;
        region.mmap_handle = file.as_raw_fd();
        let queues = (0..shape.queues).map(|index| Queue::new(index, &shape)).collect::<io::Result<Vec<_>>>()?;
        let frontend = Frontend::from_stream(socket.try_clone()?, u64::from(shape.queues));
        let (epolls, config) = (Vec::new(), Vec::new());
        let mut client =
            Client { frontend, shape, memory, region, _file: file, queues, epolls, config, inflight: None };
        client.attach(&socket)?;
        Ok(client)
    }

    /// Continues with another server, like QEMU after a restart of its server. The contents of the rings stay.
    pub fn reconnect(&mut self, path: &Path) -> io::Result<()> {
        let socket = UnixStream::connect(path)?;
        self.frontend = Frontend::from_stream(socket.try_clone()?, u64::from(self.shape.queues));
        self.attach(&socket)
    }

    /// Negotiates features, and sets up the memory and the rings.
    fn attach(&mut self, socket: &UnixStream) -> io::Result<()> {
        self.epolls.clear();
        for queue in &self.queues {
            let epoll = Epoll::new()?;
            epoll.ctl(ControlOperation::Add, queue.call.as_raw_fd(), EpollEvent::new(EventSet::IN, 0))?;
            let hung_up = EpollEvent::new(EventSet::READ_HANG_UP, SOCKET);
            epoll.ctl(ControlOperation::Add, socket.as_raw_fd(), hung_up)?;
            self.epolls.push(epoll);
        }
        let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        let features = self.frontend.get_features().map_err(reported)?;
        self.frontend.set_owner().map_err(reported)?;
        // The library negotiates protocol features only after the features were set.
        self.frontend.set_features(features & (FEATURES | protocol)).map_err(reported)?;
        let can = self.frontend.get_protocol_features().map_err(reported)?;
        let wanted = VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD;
        self.frontend.set_protocol_features(can & wanted).map_err(reported)?;
        self.frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        let most = self.frontend.get_queue_num().map_err(reported)?;
        if most < u64::from(self.shape.queues) {
            return Err(reported(format!("the server has {most} queues, see its --vhost-queues")));
        }
        let flags = VhostUserConfigFlags::empty();
        self.config = self.frontend.get_config(0, CONFIG as u32, flags, &[0; CONFIG]).map_err(reported)?.1;
        self.frontend.set_mem_table(std::slice::from_ref(&self.region)).map_err(reported)?;
        if self.inflight.is_none() {
            let requested = VhostUserInflight::new(0, 0, self.shape.queues, self.shape.size);
            self.inflight = Some(self.frontend.get_inflight_fd(&requested).map_err(reported)?);
        }
        if let Some((inflight, file)) = &self.inflight {
            self.frontend.set_inflight_fd(inflight, file.as_raw_fd()).map_err(reported)?;
        }
        for index in 0..self.queues.len() {
            self.start(index)?;
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> io::Result<()> {
        let queue = &self.queues[index];
        let base: u16 = self.memory.load(GuestAddress(queue.used + 2), Ordering::Acquire).map_err(reported)?;
        // The library expects addresses of this process.
        let here = |at: u64| at - BASE + self.region.userspace_addr;
        let rings = VringConfigData {
            queue_max_size: self.shape.size,
            queue_size: self.shape.size,
            flags: 0,
            desc_table_addr: here(queue.table),
            used_ring_addr: here(queue.used),
            avail_ring_addr: here(queue.available),
            log_addr: None,
        };
        self.frontend.set_vring_num(index, self.shape.size).map_err(reported)?;
        self.frontend.set_vring_base(index, base).map_err(reported)?;
        self.frontend.set_vring_addr(index, &rings).map_err(reported)?;
        self.frontend.set_vring_call(index, &queue.call).map_err(reported)?;
        self.frontend.set_vring_kick(index, &queue.kick).map_err(reported)?;
        self.frontend.set_vring_enable(index, true).map_err(reported)
    }

    /// Stops a queue. Returns the number of requests that the device has taken from it, modulo 65536.
    pub fn stop(&mut self, queue: usize) -> io::Result<u32> {
        self.frontend.get_vring_base(queue).map_err(reported)
    }

    /// Returns the configuration space.
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// Returns the number of queues.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// Returns the capacity of the device in bytes.
    pub fn bytes(&self) -> u64 {
        self.config.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) * SECTOR
    }

    /// Returns the shared memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Returns the address of a request header. The status follows at offset 16, the payload at offset 64.
    pub fn slot(&self, queue: usize, slot: u16) -> u64 {
        self.queues[queue].table + RINGS + u64::from(slot) * self.shape.slot_bytes()
    }

    /// Adds a request to the ring, to be sent by [`Client::send`]. Returns `None` if all slots are in use. `length` is
    /// the number of bytes to read, `data` is the payload of other requests.
    pub fn ask(&mut self, queue: usize, kind: u32, sector: u64, length: u32, data: &[u8]) -> io::Result<Option<u16>> {
        let Some(slot) = self.queues[queue].free.pop() else { return Ok(None) };
        let at = self.slot(queue, slot);
        let mut head = [0; HEAD as usize];
        head[..4].copy_from_slice(&kind.to_le_bytes());
        head[8..].copy_from_slice(&sector.to_le_bytes());
        self.memory.write_slice(&head, GuestAddress(at)).map_err(reported)?;
        self.memory.write_obj(0xff_u8, GuestAddress(at + HEAD)).map_err(reported)?;
        self.memory.write_slice(data, GuestAddress(at + FRONT)).map_err(reported)?;
        let (next, write) = (VRING_DESC_F_NEXT as u16, VRING_DESC_F_WRITE as u16);
        let first = slot * 3;
        let (bytes, flags) = if length > 0 { (length, next | write) } else { (data.len() as u32, next) };
        let after_head = if bytes > 0 { first + 1 } else { first + 2 };
        self.describe(queue, first, at, HEAD as u32, next, after_head)?;
        self.describe(queue, first + 1, at + FRONT, bytes, flags, first + 2)?;
        self.describe(queue, first + 2, at + HEAD, 1, write, 0)?;
        self.offer(queue, first)?;
        Ok(Some(slot))
    }

    /// Writes a descriptor.
    pub fn describe(&self, queue: usize, index: u16, at: u64, bytes: u32, flags: u16, next: u16) -> io::Result<()> {
        let place = GuestAddress(self.queues[queue].table + 16 * u64::from(index));
        self.memory.write_obj(Descriptor::new(at, bytes, flags, next), place).map_err(reported)
    }

    /// Adds the head of a chain to the ring.
    pub fn offer(&mut self, queue: usize, head: u16) -> io::Result<()> {
        let queue = &mut self.queues[queue];
        let place = queue.available + 4 + 2 * u64::from(queue.offered % self.shape.size);
        self.memory.store(head, GuestAddress(place), Ordering::Relaxed).map_err(reported)?;
        queue.offered = queue.offered.wrapping_add(1);
        Ok(())
    }

    /// Makes the added requests visible to the device, and notifies it if it has asked for that.
    pub fn send(&mut self, queue: usize) -> io::Result<()> {
        let size = u64::from(self.shape.size);
        let queue = &mut self.queues[queue];
        let (old, new) = (std::mem::replace(&mut queue.reported, queue.offered), queue.offered);
        self.memory.store(new, GuestAddress(queue.available + 2), Ordering::Release).map_err(reported)?;
        fence(Ordering::SeqCst);
        let event: u16 =
            self.memory.load(GuestAddress(queue.used + 4 + 8 * size), Ordering::Relaxed).map_err(reported)?;
        if new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old) {
            queue.kick.write(1)?;
        }
        Ok(())
    }

    /// Returns the next entry of the used ring: the head of the chain and the number of bytes written. `None` if there
    /// is none.
    pub fn used(&mut self, queue: usize) -> io::Result<Option<(u32, u32)>> {
        let queue = &mut self.queues[queue];
        let index: u16 = self.memory.load(GuestAddress(queue.used + 2), Ordering::Acquire).map_err(reported)?;
        if index == queue.seen {
            return Ok(None);
        }
        let place = queue.used + 4 + 8 * u64::from(queue.seen % self.shape.size);
        let head: u32 = self.memory.read_obj(GuestAddress(place)).map_err(reported)?;
        let bytes: u32 = self.memory.read_obj(GuestAddress(place + 4)).map_err(reported)?;
        queue.seen = queue.seen.wrapping_add(1);
        Ok(Some((head, bytes)))
    }

    /// Returns the next reply, if there is one, and frees its slot.
    pub fn reply(&mut self, queue: usize) -> io::Result<Option<Reply>> {
        let Some((head, bytes)) = self.used(queue)? else { return Ok(None) };
        let slot = (head / 3) as u16;
        let status = self.memory.read_obj(GuestAddress(self.slot(queue, slot) + HEAD)).map_err(reported)?;
        self.queues[queue].free.push(slot);
        Ok(Some(Reply { slot, status, bytes }))
    }

    /// Copies the data of a read.
    pub fn payload(&self, queue: usize, slot: u16, into: &mut [u8]) -> io::Result<()> {
        self.memory.read_slice(into, GuestAddress(self.slot(queue, slot) + FRONT)).map_err(reported)
    }

    /// Sleeps until there is a reply. Returns an error if the server disconnects.
    pub fn wait(&mut self, index: usize) -> io::Result<()> {
        let queue = &self.queues[index];
        loop {
            let event = queue.available + 4 + 2 * u64::from(self.shape.size);
            self.memory.store(queue.seen, GuestAddress(event), Ordering::Relaxed).map_err(reported)?;
            fence(Ordering::SeqCst);
            let used: u16 = self.memory.load(GuestAddress(queue.used + 2), Ordering::Acquire).map_err(reported)?;
            if used != queue.seen {
                return Ok(());
            }
            let mut called = [EpollEvent::default(); 2];
            let count = self.epolls[index].wait(-1, &mut called)?;
            if called[..count].iter().any(|event| event.data() == SOCKET) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // Another thread may have read the event first, which does no harm.
            let _ = queue.call.read();
        }
    }

    /// Sends a request, waits for its reply, and copies its data to `into`. Returns the status.
    pub fn call(&mut self, kind: u32, sector: u64, into: &mut [u8], data: &[u8]) -> io::Result<u8> {
        let slot =
            self.ask(0, kind, sector, into.len() as u32, data)?.ok_or_else(|| reported("no free slot is left"))?;
        self.send(0)?;
        loop {
            if !self.shape.looks {
                self.wait(0)?;
            }
            if let Some(reply) = self.reply(0)?.filter(|reply| reply.slot == slot) {
                self.payload(0, slot, into)?;
                return Ok(reply.status);
            }
        }
    }

    fn done(status: u8) -> io::Result<()> {
        if u32::from(status) == VIRTIO_BLK_S_OK { Ok(()) } else { Err(reported(format!("status {status}"))) }
    }

    /// Reads a range.
    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        Client::done(self.call(VIRTIO_BLK_T_IN, offset / SECTOR, into, &[])?)
    }

    /// Writes a range.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        Client::done(self.call(VIRTIO_BLK_T_OUT, offset / SECTOR, &mut [], data)?)
    }

    /// Flushes the device.
    pub fn flush(&mut self) -> io::Result<()> {
        Client::done(self.call(VIRTIO_BLK_T_FLUSH, 0, &mut [], &[])?)
    }

    /// Discards a range.
    pub fn discard(&mut self, offset: u64, length: u64) -> io::Result<()> {
        Client::done(self.call(VIRTIO_BLK_T_DISCARD, 0, &mut [], &range(offset, length, 0))?)
    }

    /// Writes zeroes to a range. With `unmap`, the device may unmap it.
    pub fn write_zeroes(&mut self, offset: u64, length: u64, unmap: bool) -> io::Result<()> {
        Client::done(self.call(VIRTIO_BLK_T_WRITE_ZEROES, 0, &mut [], &range(offset, length, u32::from(unmap)))?)
    }

    /// Returns the device ID.
    pub fn id(&mut self) -> io::Result<String> {
        let mut id = [0; VIRTIO_BLK_ID_BYTES as usize];
        Client::done(self.call(VIRTIO_BLK_T_GET_ID, 0, &mut id, &[])?)?;
        Ok(String::from_utf8_lossy(&id).trim_end_matches('\0').to_owned())
    }
}

impl Queue {
    fn new(index: u16, shape: &Shape) -> io::Result<Queue> {
        let table = BASE + u64::from(index) * shape.queue_bytes();
        let available = table + 16 * u64::from(shape.size);
        let used = (available + 6 + 2 * u64::from(shape.size)).next_multiple_of(4);
        let event = || EventFd::new(EFD_NONBLOCK);
        let (kick, call) = (event()?, event()?);
        let free = (0..shape.slots()).rev().collect();
        Ok(Queue { table, available, used, kick, call, offered: 0, reported: 0, seen: 0, free })
    }
}

/// Encodes a range to discard or to zero.
pub fn range(offset: u64, length: u64, flags: u32) -> [u8; 16] {
    let mut range = [0; 16];
    range[..8].copy_from_slice(&(offset / SECTOR).to_le_bytes());
    range[8..12].copy_from_slice(&((length / SECTOR) as u32).to_le_bytes());
    range[12..].copy_from_slice(&flags.to_le_bytes());
    range
}
