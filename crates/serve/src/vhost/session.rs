//! State that a client has set up: memory, rings and features.
//!
//! The `vhost` crate receives messages and checks their format. This module applies them. An invalid message ends the
//! connection.

use std::fs::File;
use std::io;

use rustix::fs::{SealFlags, fcntl_add_seals};
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight, VhostUserLog,
    VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVirtioFeatures, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use virtio_queue::QueueT;
use vm_memory::{GuestAddress, GuestMemoryRegion, GuestRegionMmap};

use super::Memory;
use super::blk::Disk;
use super::inflight::{self, Inflight};
use super::ring::{LARGEST, Lost, Ring};

/// Maximum number of memory regions of a client. Each takes a file descriptor of the server.
const MAX_REGIONS: usize = 32;

/// Feature bit for the negotiation of protocol features.
const PROTOCOL: u64 = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();

/// A region of the client's memory.
#[derive(Clone, Copy, Debug)]
struct Region {
    /// Address in the client.
    client: u64,
    /// Address in the client's guest.
    guest: u64,
    bytes: u64,
}

/// State of a client.
#[derive(Debug)]
pub struct Session {
    disk: Disk,
    features: u64,
    regions: Vec<Region>,
    /// Memory of the client.
    pub memory: Memory,
    /// Rings of the client.
    pub rings: Vec<Ring>,
    /// Record of outstanding requests, which the client keeps for the next server.
    pub inflight: Option<Inflight>,
}

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(Error::ReqHandlerError(io::Error::new(io::ErrorKind::InvalidData, why.into())))
}

impl Session {
    /// Creates the state of a new client.
    pub fn new(disk: Disk) -> Session {
        let rings = (0..disk.queues).map(|_| Ring::new()).collect();
        Session { disk, features: 0, regions: Vec::new(), memory: Memory::new(), rings, inflight: None }
    }

    fn ring(&mut self, index: u32) -> Result<&mut Ring> {
        self.rings.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// Returns a ring for a change of its layout. Fails if the ring is running.
    fn stopped_ring(&mut self, index: u32) -> Result<&mut Ring> {
        let ring = self.ring(index)?;
        if ring.queue.ready() { refuse("the ring is in use") } else { Ok(ring) }
    }

    /// Converts an address of the client to an address of its guest.
    fn guest_address(&self, address: u64) -> Result<u64> {
        let within = |region: &&Region| address >= region.client && address - region.client < region.bytes;
        let region = self.regions.iter().find(within).ok_or(Error::InvalidParam)?;
        region.guest.checked_add(address - region.client).ok_or(Error::InvalidParam)
    }

    /// Takes a request from a ring. Returns the head of its chain.
    pub fn take(&mut self, ring: u16) -> std::result::Result<Option<u16>, Lost> {
        let Session { rings, inflight, memory, .. } = self;
        let place = rings.get_mut(usize::from(ring)).ok_or(Lost)?;
        let Some(head) = place.take(memory)? else { return Ok(None) };
        if head >= place.queue.size() {
            return Err(Lost);
        }
        if let Some(inflight) = inflight.as_mut().filter(|inflight| inflight.fits(ring, place.queue.size())) {
            inflight.begin(ring, head).map_err(|_| Lost)?;
        }
        Ok(Some(head))
    }

    /// Adds a reply to its ring.
    pub fn answer(&mut self, ring: u16, head: u16, bytes: u32) -> std::result::Result<(), Lost> {
        let Session { rings, inflight, memory, .. } = self;
        let place = rings.get_mut(usize::from(ring)).ok_or(Lost)?;
        let noted = inflight.as_ref().filter(|inflight| inflight.fits(ring, place.queue.size()));
        if let Some(inflight) = noted {
            inflight.ending(ring, head).map_err(|_| Lost)?;
        }
        place.answer(memory, head, bytes)?;
        if let Some(inflight) = noted {
            inflight.ended(ring, head, place.queue.next_used()).map_err(|_| Lost)?;
        }
        Ok(())
    }
}

/// Maps a region of the client's memory.
fn map(region: &VhostUserMemoryRegion, file: File) -> Result<GuestRegionMmap<()>> {
    let length = file.metadata().map_err(Error::ReqHandlerError)?.len();
    let end = region.mmap_offset.checked_add(region.memory_size);
    // Accessing memory beyond the end of its file would terminate this process.
    if end.is_none_or(|end| end > length) {
        return refuse("a memory region is longer than its file");
    }
    // The same applies if the file shrinks. If that cannot be prevented by a seal, the client is trusted not to do it.
    let _ = fcntl_add_seals(&file, SealFlags::SHRINK);
    let mapped = region.mmap_region(file)?;
    GuestRegionMmap::new(mapped, GuestAddress(region.guest_phys_addr)).ok_or(Error::InvalidParam)
}

impl From<&VhostUserMemoryRegion> for Region {
    fn from(region: &VhostUserMemoryRegion) -> Region {
        Region { client: region.user_addr, guest: region.guest_phys_addr, bytes: region.memory_size }
    }
}

impl VhostUserBackendReqHandlerMut for Session {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.reset_device()
    }

    fn reset_device(&mut self) -> Result<()> {
        self.rings.iter_mut().for_each(Ring::reset);
        self.features = 0;
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.disk.features() | PROTOCOL)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !(self.disk.features() | PROTOCOL) != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.features = features;
        for ring in &mut self.rings {
            ring.queue.set_event_idx(features >> VIRTIO_RING_F_EVENT_IDX & 1 == 1);
            // Without protocol features, all rings are enabled.
            ring.enabled |= features & PROTOCOL == 0;
        }
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        if regions.len() > MAX_REGIONS {
            return refuse("too many memory regions");
        }
        let mut mapped = Vec::with_capacity(regions.len());
        for (region, file) in regions.iter().zip(files) {
            mapped.push(map(region, file)?);
        }
        mapped.sort_by_key(GuestRegionMmap::start_addr);
        self.memory = Memory::from_regions(mapped).map_err(|_| Error::InvalidParam)?;
        self.regions = regions.iter().map(Region::from).collect();
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let size = u16::try_from(num).map_err(|_| Error::InvalidParam)?;
        let ring = self.stopped_ring(index)?;
        ring.queue.try_set_size(size).map_err(|_| Error::InvalidParam)
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let [descriptor, used, available] =
            [self.guest_address(descriptor)?, self.guest_address(used)?, self.guest_address(available)?];
        let queue = &mut self.stopped_ring(index)?.queue;
        let set = queue
            .try_set_desc_table_address(GuestAddress(descriptor))
            .and_then(|()| queue.try_set_used_ring_address(GuestAddress(used)))
            .and_then(|()| queue.try_set_avail_ring_address(GuestAddress(available)));
        set.map_err(|_| Error::InvalidParam)
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        let base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        self.stopped_ring(index)?.queue.set_next_avail(base);
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        // No request is outstanding, because the connection has delayed the message until then.
        let next = self.ring(index)?.stop();
        Ok(VhostUserVringState::new(index, u32::from(next)))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let Some(kick) = fd else {
            return refuse("virtqueue without a kick eventfd: polled queues are not supported");
        };
        let Session { rings, memory, inflight, .. } = self;
        let ring = rings.get_mut(usize::from(index)).ok_or(Error::InvalidParam)?;
        let place = u16::from(index);
        let again = match inflight.as_ref().filter(|inflight| inflight.fits(place, ring.queue.size())) {
            Some(inflight) if !ring.queue.ready() => {
                let used = ring.used(memory).map_err(|_| Error::InvalidParam)?;
                inflight.left(place, ring.queue.size(), used).map_err(|_| Error::InvalidParam)?
            }
            _ => Vec::new(),
        };
        ring.start(memory, kick, again).map_err(|_| Error::InvalidParam)
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        self.ring(u32::from(index))?.set_call(fd);
        Ok(())
    }

    fn set_vring_err(&mut self, _index: u8, _fd: Option<File>) -> Result<()> {
        // The event is not needed: an invalid ring ends the connection.
        Ok(())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
            | VhostUserProtocolFeatures::RESET_DEVICE)
    }

    fn set_protocol_features(&mut self, features: u64) -> Result<()> {
        let unknown = features & !self.get_protocol_features()?.bits();
        if unknown == 0 { Ok(()) } else { Err(Error::FeatureMismatch) }
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(u64::from(self.disk.queues))
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.ring(index)?.enabled = enable;
        Ok(())
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        // Fields beyond the known ones read as zeros, because their features are not offered.
        let mut space = self.disk.config().to_vec();
        let (start, end) = (offset as usize, (offset as usize).saturating_add(size as usize));
        if end > vhost::vhost_user::message::VHOST_USER_CONFIG_SIZE as usize {
            return Err(Error::InvalidParam);
        }
        space.resize(space.len().max(end), 0);
        Ok(space[start..end].to_vec())
    }

    fn set_config(&mut self, _offset: u32, _buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        refuse("the configuration is read-only")
    }

    fn set_gpu_socket(&mut self, _gpu_backend: GpuBackend) -> Result<()> {
        refuse("this is a disk")
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        refuse("shared objects are not supported")
    }

    fn get_inflight_fd(&mut self, requested: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        if requested.num_queues > self.disk.queues || requested.queue_size > LARGEST {
            return Err(Error::InvalidParam);
        }
        let bytes = inflight::bytes(requested.num_queues, requested.queue_size);
        let file = inflight::memory(bytes).map_err(Error::ReqHandlerError)?;
        Ok((VhostUserInflight::new(bytes as u64, 0, requested.num_queues, requested.queue_size), file))
    }

    fn set_inflight_fd(&mut self, reported: &VhostUserInflight, file: File) -> Result<()> {
        if reported.num_queues > self.disk.queues || reported.queue_size > LARGEST {
            return Err(Error::InvalidParam);
        }
        let _ = fcntl_add_seals(&file, SealFlags::SHRINK);
        let opened =
            Inflight::open(file, reported.mmap_offset, reported.mmap_size, reported.num_queues, reported.queue_size);
        self.inflight = Some(opened.map_err(|_| Error::InvalidParam)?);
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(MAX_REGIONS as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        fd: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<u64>> {
        if self.regions.len() >= MAX_REGIONS {
            return refuse("too many memory regions");
        }
        let mapped = map(region, fd)?;
        self.memory = self.memory.insert_region(mapped.into()).map_err(|_| Error::InvalidParam)?;
        self.regions.push(Region::from(&**region));
        Ok(None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        let removed = self.memory.remove_region(GuestAddress(region.guest_phys_addr), region.memory_size);
        let (memory, _) = removed.map_err(|_| Error::InvalidParam)?;
        self.memory = memory;
        self.regions.retain(|known| known.guest != region.guest_phys_addr);
        Ok(())
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        refuse("live migration is not supported")
    }

    fn check_device_state(&mut self) -> Result<()> {
        refuse("live migration is not supported")
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        refuse("shared memory regions of the device are not supported")
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        refuse("live migration is not supported")
    }
}
