//! Tests of controllers and sessions without sockets, and with random input.

use floatgate_core::device_file;
use floatgate_core::sim::request::Operation;
use floatgate_core::simulation::{Device, Options};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::connection::{Buffers, QueueState, Services};
use super::pdu::{self, COMMON, Common, HEADER, INITIALIZE, flag, kind};
use super::session::LONGEST_PDU;
use crate::budget::Budget;
use crate::clock::Wall;
use crate::engine::{Engine, Pace, Port};
use crate::lateness::Requesting;
use crate::nvme::client::{command, identify, log_page, on_blocks};
use crate::nvme::identify::Drive;
use crate::nvme::in_flight::{InFlight, Origin, Submission};
use crate::nvme::io::Io;
use crate::nvme::target::{Queue, Target};
use crate::nvme::wire::{
    Command, DISCOVERY_NQN, Status, admin, fabrics, feature, get, io, log, property, put, put_text,
};
use crate::nvme::{self, MAX_QUEUES, supported};
use crate::payload::memory::Memory;

/// A server without sockets, and its connections.
struct Bench {
    target: Target,
    engine: Engine,
    in_flight: InFlight,
    buffers: Buffers,
    port: Port,
    queues: Vec<QueueState>,
    now: Wall,
}

/// A PDU of the server.
#[derive(Clone, Debug, PartialEq)]
struct Reply {
    kind: u8,
    bytes: Vec<u8>,
}

impl Reply {
    fn status(&self) -> Status {
        assert_eq!(self.kind, kind::RESPONSE, "{self:?}");
        Status::of_bits(u16::from_le_bytes(get(&self.bytes, 22)))
    }

    fn id(&self) -> u16 {
        u16::from_le_bytes(get(&self.bytes, 20))
    }

    fn result(&self) -> u64 {
        u64::from_le_bytes(get(&self.bytes, 8))
    }
}

impl Bench {
    fn new(hosts: &[&str]) -> Bench {
        Bench::of(&[], hosts)
    }

    /// Creates a server of a device with options.
    fn of(options: &[&str], hosts: &[&str]) -> Bench {
        let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let config = device_file::load("tiny", &options).unwrap();
        let drive = Drive::new(&config, 1, None);
        let device = Device::new(config, Options { attribution: true, ..Options::default() }).unwrap();
        let memory = Memory::new(drive.blocks * 512, 4096, u64::MAX);
        let mut engine = Engine::new(device, Box::new(memory), Pace::AtOnce, None);
        let port = engine.add_port("test", std::sync::Arc::new(|| ()));
        let target = Target::new(drive, hosts.iter().map(|host| (*host).to_owned()).collect());
        let (in_flight, buffers, queues) = Default::default();
        Bench { target, engine, in_flight, buffers, port, queues, now: Wall(0) }
    }

    /// Adds a connection.
    fn open(&mut self) -> usize {
        self.queues.push(QueueState::new(Queue::new("127.0.0.1:4420".parse().ok())));
        self.queues.len() - 1
    }

    /// Adds a connection that is initialized with these digests, and with data to the host that is aligned to 4 bytes
    /// times `align` plus 1.
    fn initialized(&mut self, digests: u8, align: u8) -> usize {
        let at = self.open();
        let mut request = [0; INITIALIZE];
        let common = Common { kind: kind::INITIALIZE_REQUEST, flags: 0, header: 128, data: 0, length: 128 };
        common.write(&mut request);
        request[10..12].copy_from_slice(&[align, digests]);
        let replies = self.send(at, &request);
        assert_eq!((replies.len(), replies[0].kind, replies[0].bytes[11]), (1, kind::INITIALIZE_RESPONSE, digests));
        at
    }

    /// Passes bytes to a connection. Commands stay in the device. All complete PDUs have to be processed, unless the
    /// connection has ended.
    fn feed(&mut self, at: usize, input: &[u8]) {
        let Bench { target, engine, in_flight, buffers, port, queues, now } = self;
        let mut budget = Budget::beside(queues.iter().map(QueueState::used));
        let mut services = Services { target, engine, in_flight, buffers, port: *port, now: *now };
        let (queue, mut taken) = (&mut queues[at], 0);
        let needed = loop {
            match queue.take((at, 0), &input[taken..], &mut services, &mut budget) {
                Ok(count) => taken += count,
                Err(needed) => break needed,
            }
        };
        while !queue.ending && queue.resume((at, 0), &mut services, &mut budget) {}
        assert!(queue.ending || input.len() - taken < needed, "a PDU was not processed");
        assert!(needed <= LONGEST_PDU);
        if queue.ending {
            queue.end(&self.target);
        }
    }

    /// Completes the requests that are in the device, and replies to their commands. Returns the number of requests.
    fn complete(&mut self) -> usize {
        let Bench { target, engine, in_flight, port, queues, now, .. } = self;
        let mut answers = Vec::new();
        engine.take(*port, *now, true, &mut answers);
        for answer in &mut answers {
            let requesting = Requesting::default();
            let mut submission = Submission { engine, port: *port, now: *now, requesting, headroom: 0 };
            let Some(outstanding) = in_flight.complete(&mut submission, answer) else { continue };
            match outstanding.origin {
                Origin::Host(index, _) => queues[index].complete(target, &outstanding, answer, *now),
                Origin::Shutdown(controller) => target.end_shutdown(controller),
            }
        }
        for finished in self.target.take_finished() {
            let is_admin = |queue: &&mut QueueState| queue.session.queue.link == Some((finished.controller, 0));
            if let Some(queue) = self.queues.iter_mut().find(is_admin) {
                queue.finish(&finished);
            }
        }
        answers.len()
    }

    /// Continues the commands that wait for memory. Returns `true` if there were any that could continue.
    fn resume(&mut self) -> bool {
        let Bench { target, engine, in_flight, buffers, port, queues, now } = self;
        let mut budget = Budget::beside(queues.iter().map(QueueState::used));
        let mut services = Services { target, engine, in_flight, buffers, port: *port, now: *now };
        let mut any = false;
        for (at, queue) in queues.iter_mut().enumerate() {
            while !queue.ending && queue.resume((at, 0), &mut services, &mut budget) {
                any = true;
            }
        }
        any
    }

    /// Passes bytes to a connection, and runs the device until all commands have completed. Returns the PDUs that the
    /// server sends to it.
    fn send(&mut self, at: usize, input: &[u8]) -> Vec<Reply> {
        self.feed(at, input);
        while self.complete() > 0 || self.resume() {}
        self.replies(at)
    }

    /// Takes the PDUs that the server has sent to a connection.
    fn replies(&mut self, at: usize) -> Vec<Reply> {
        let mut bytes = self.queues[at].output.take();
        let mut replies = Vec::new();
        while !bytes.is_empty() {
            let common = Common::of(&bytes);
            let rest = bytes.split_off(common.length as usize);
            replies.push(Reply { kind: common.kind, bytes: std::mem::replace(&mut bytes, rest) });
        }
        replies
    }

    /// Sends a command with data in its capsule. Returns the PDUs of the server.
    fn call(&mut self, at: usize, command: Command, data: &[u8], room: u32) -> Vec<Reply> {
        self.send(at, &capsule(command, data, room))
    }

    /// Connects a queue.
    fn connect(&mut self, at: usize, number: u16, controller: u16, names: [&str; 2]) -> Reply {
        let (command, data) = connecting(number, controller, names);
        self.call(at, command, &data, 0).remove(0)
    }

    /// Returns a connection with an enabled controller, and its number.
    fn admin(&mut self) -> (usize, u16) {
        let (at, nqn) = (self.initialized(0, 0), self.target.drive().nqn.clone());
        let reply = self.connect(at, 0, u16::MAX, [&nqn, "nqn.host"]);
        assert_eq!(reply.status(), Status::OK);
        let set = property_set(0x46_0001);
        assert_eq!(self.call(at, set, &[], 0)[0].status(), Status::OK);
        (at, reply.result() as u16)
    }

    /// Returns an I/O queue, after its admin queue.
    fn io(&mut self) -> (usize, usize) {
        let (admin, controller) = self.admin();
        let (at, nqn) = (self.initialized(0, 0), self.target.drive().nqn.clone());
        assert_eq!(self.connect(at, 1, controller, [&nqn, "nqn.host"]).status(), Status::OK);
        (admin, at)
    }
}

fn connecting(number: u16, controller: u16, [subsystem, host]: [&str; 2]) -> (Command, Vec<u8>) {
    let mut connect = command(admin::FABRICS);
    connect.0[4] = fabrics::CONNECT;
    put(&mut connect.0, 42, number.to_le_bytes());
    put(&mut connect.0, 44, 127_u16.to_le_bytes());
    let mut data = vec![0; 1024];
    put(&mut data, 16, controller.to_le_bytes());
    put_text(&mut data, 256, 256, subsystem, 0);
    put_text(&mut data, 512, 256, host, 0);
    (connect, data)
}

fn property_set(configuration: u64) -> Command {
    let mut set = command(admin::FABRICS);
    set.0[4] = fabrics::PROPERTY_SET;
    put(&mut set.0, 44, property::CONFIGURATION.to_le_bytes());
    put(&mut set.0, 48, configuration.to_le_bytes());
    set
}

/// Returns a capsule. Without data, its descriptor names `room` bytes in the memory of the host.
fn capsule(mut command: Command, data: &[u8], room: u32) -> Vec<u8> {
    let length = if data.is_empty() { room } else { data.len() as u32 };
    put(&mut command.0, 32, length.to_le_bytes());
    command.0[39] = if data.is_empty() { 0x5a } else { 0x01 };
    let mut pdu = vec![0; pdu::COMMAND];
    let data_at = if data.is_empty() { 0 } else { pdu::COMMAND as u8 };
    let length = (pdu::COMMAND + data.len()) as u32;
    Common { kind: kind::COMMAND, flags: 0, header: pdu::COMMAND as u8, data: data_at, length }.write(&mut pdu);
    put(&mut pdu, COMMON, command.0);
    pdu.extend_from_slice(data);
    pdu
}

/// Returns data of the host.
fn data_pdu(id: u16, tag: u16, offset: u32, data: &[u8], is_last: bool) -> Vec<u8> {
    let mut pdu = vec![0; HEADER];
    let flags = if is_last { flag::LAST } else { 0 };
    let length = (HEADER + data.len()) as u32;
    Common { kind: kind::FROM_HOST, flags, header: HEADER as u8, data: HEADER as u8, length }.write(&mut pdu);
    put(&mut pdu, 8, id.to_le_bytes());
    put(&mut pdu, 10, tag.to_le_bytes());
    put(&mut pdu, 12, offset.to_le_bytes());
    put(&mut pdu, 16, (data.len() as u32).to_le_bytes());
    pdu.extend_from_slice(data);
    pdu
}

#[test]
fn data_is_read_while_commands_wait_for_memory() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    // More than the 64 MiB of a connection.
    const LENGTH: u32 = 1 << 20;
    let commands = (0..100_u16).map(|id| {
        let mut write = on_blocks(io::WRITE, 2048 * u64::from(id % 50), 2048);
        put(&mut write.0, 2, id.to_le_bytes());
        capsule(write, &[], LENGTH)
    });
    let mut replies = bench.send(at, &commands.collect::<Vec<_>>().concat());
    // The R2T PDUs that were not sent take some bytes, too.
    assert_eq!((replies.len(), bench.queues[at].session.deferred.len(), bench.queues[at].is_held), (63, 37, true));
    assert_eq!(bench.queues[at].used(), 63 << 20);
    let mut ids = Vec::new();
    while !replies.is_empty() {
        let reply = replies.remove(0);
        if reply.kind == kind::RESPONSE {
            assert_eq!(reply.status(), Status::OK);
            ids.push(reply.id());
            continue;
        }
        assert_eq!(reply.kind, kind::READY);
        let [id, tag] = [8, 10].map(|at| u16::from_le_bytes(get(&reply.bytes, at)));
        let data = vec![id as u8; LENGTH as usize];
        for (index, part) in data.chunks(128 << 10).enumerate() {
            replies.extend(bench.send(at, &data_pdu(id, tag, (index << 17) as u32, part, index == 7)));
            assert!(bench.queues[at].used() <= 64 << 20);
        }
    }
    assert_eq!(ids, (0..100).collect::<Vec<_>>(), "in the order of their R2T");
    assert_eq!((bench.queues[at].used(), bench.queues[at].outstanding()), (0, 0));
    let read = bench.call(at, on_blocks(io::READ, 2048 * 49, 1), &[], 512).remove(0);
    assert_eq!(read.bytes[HEADER..], [99; 512]);
}

#[test]
fn reads_wait_until_earlier_replies_were_sent() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    let reads = vec![capsule(on_blocks(io::READ, 0, 2048), &[], 1 << 20); 128].concat();
    bench.feed(at, &reads);
    while bench.complete() > 0 || bench.resume() {}
    assert_eq!((bench.queues[at].outstanding(), bench.queues[at].session.deferred.len()), (64, 64));
    assert_eq!(bench.replies(at).len(), 128, "data and completions");
    while bench.complete() > 0 || bench.resume() {}
    assert_eq!(bench.replies(at).len(), 128);
    assert_eq!(bench.queues[at].used(), 0);
}

#[test]
fn hosts_share_a_pool_of_memory() {
    let mut bench = Bench::new(&[]);
    let reads = vec![capsule(on_blocks(io::READ, 0, 2048), &[], 1 << 20); 128].concat();
    // The pool is 128 MiB. Two hosts take 63 MiB each, and their shares. The third one gets the rest, and its share.
    let hosts = [(); 3].map(|()| bench.io().1);
    for (at, expected) in hosts.into_iter().zip([64, 64, 3]) {
        bench.feed(at, &reads);
        let QueueState { session, is_held, .. } = &bench.queues[at];
        assert_eq!((session.deferred.len(), *is_held, bench.queues[at].used()), (128 - expected, true, expected << 20));
    }
    // All commands complete if the hosts collect their replies.
    let mut counts = [0; 3];
    while bench.complete() > 0 || bench.resume() {
        for (count, at) in counts.iter_mut().zip(hosts) {
            *count += bench.replies(at).iter().filter(|reply| reply.kind == kind::TO_HOST).count();
        }
    }
    assert_eq!(counts, [128; 3]);
}

#[test]
fn requests_for_events_take_no_memory() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    // The length of a Verify, in the same dword.
    let mut event = command(admin::ASYNC_EVENT);
    put(&mut event.0, 48, 2047_u32.to_le_bytes());
    for (queue, command, expected) in [(admin, event, 0), (at, on_blocks(io::VERIFY, 0, 2048), 1 << 20)] {
        assert_eq!(bench.queues[queue].memory(&command, 0, &bench.target), expected);
    }
}

#[test]
fn a_host_may_not_exceed_its_queue() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    let read = capsule(on_blocks(io::READ, 0, 1), &[], 512);
    bench.feed(at, &vec![read.clone(); 128].concat());
    assert_eq!((bench.queues[at].outstanding(), bench.queues[at].ending), (128, false));
    bench.feed(at, &read);
    assert!(bench.queues[at].ending);
    let replies = bench.replies(at);
    assert_eq!((replies.len(), replies[0].kind, replies[0].bytes[8]), (1, kind::CONTROLLER_TERMINATES, 2));
    assert!(bench.complete() > 0 && bench.replies(at).is_empty(), "nothing follows a termination");
    assert!(bench.in_flight.is_empty());
}

#[test]
fn nothing_follows_a_termination_and_other_queues_continue() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let nqn = bench.target.drive().nqn.clone();
    let other = bench.initialized(0, 0);
    assert_eq!(bench.connect(other, 2, 1, [&nqn, "nqn.host"]).status(), Status::OK);
    let read = capsule(on_blocks(io::READ, 0, 8), &[], 4096);
    let write = capsule(on_blocks(io::WRITE, 0, 32), &[], 16384);
    for queue in [at, other] {
        bench.feed(queue, &[&read[..], &read, &write].concat());
    }
    bench.feed(at, &[0xff; 64]);
    while bench.complete() > 0 || bench.resume() {}
    let kinds = |replies: Vec<Reply>| replies.iter().map(|reply| reply.kind).collect::<Vec<_>>();
    assert_eq!(kinds(bench.replies(at)), [kind::READY, kind::CONTROLLER_TERMINATES]);
    assert_eq!(
        kinds(bench.replies(other)),
        [kind::READY, kind::TO_HOST, kind::RESPONSE, kind::TO_HOST, kind::RESPONSE]
    );
    assert_eq!((bench.queues[at].used(), bench.queues[at].outstanding()), (0, 0));
    assert_eq!(bench.call(admin, identify(1, 0), &[], 4096)[0].kind, kind::TO_HOST);
}

#[test]
fn a_queue_disconnects_after_its_outstanding_commands() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let mut disconnect = command(admin::FABRICS);
    disconnect.0[4] = fabrics::DISCONNECT;
    assert_eq!(bench.call(admin, disconnect, &[], 0)[0].status(), Status::DISCONNECT_QUEUE);
    bench.feed(at, &[capsule(on_blocks(io::READ, 0, 8), &[], 4096), capsule(disconnect, &[], 0)].concat());
    assert!(bench.queues[at].ending && bench.queues[at].outstanding() == 1);
    bench.complete();
    let replies = bench.replies(at);
    assert_eq!(
        replies.iter().map(|reply| reply.kind).collect::<Vec<_>>(),
        [kind::RESPONSE, kind::TO_HOST, kind::RESPONSE]
    );
    assert_eq!(bench.queues[at].outstanding(), 0);
}

#[test]
fn controllers_are_limited_and_numbered() {
    let mut bench = Bench::new(&[]);
    let nqn = bench.target.drive().nqn.clone();
    let connected: Vec<(usize, u16)> = (0..32).map(|_| bench.admin()).collect();
    assert_eq!(connected.iter().map(|(_, id)| *id).collect::<Vec<_>>(), (1..=32).collect::<Vec<_>>());
    let at = bench.initialized(0, 0);
    assert_eq!(bench.connect(at, 0, u16::MAX, [&nqn, "nqn.host"]).status(), Status::CONNECT_BUSY);
    bench.target.end(&bench.queues[connected[5].0].session.queue.clone());
    assert_eq!(bench.connect(at, 0, u16::MAX, [&nqn, "nqn.host"]).result(), 33, "numbers are not reused at once");
}

#[test]
fn the_number_of_queues_is_limited_by_the_request_of_the_host() {
    let mut bench = Bench::new(&[]);
    let (admin, controller) = bench.admin();
    let mut set = command(admin::SET_FEATURES);
    set.0[40] = feature::QUEUES;
    put(&mut set.0, 44, 0x0001_0001_u32.to_le_bytes());
    assert_eq!(bench.call(admin, set, &[], 0)[0].result(), 0x0001_0001);
    let nqn = bench.target.drive().nqn.clone();
    let [one, other] = [bench.initialized(0, 0), bench.initialized(0, 0)];
    let refused = bench.connect(one, 3, controller, [&nqn, "nqn.host"]);
    assert_eq!((refused.status(), refused.result()), (Status::CONNECT_INVALID, 42));
    assert_eq!(bench.connect(other, 2, controller, [&nqn, "nqn.host"]).status(), Status::OK);
    assert_eq!(bench.call(admin, set, &[], 0)[0].status(), Status::SEQUENCE);
}

#[test]
fn flow_control_reports_the_head_of_the_queue() {
    let mut bench = Bench::new(&[]);
    let head = |reply: &Reply| u16::from_le_bytes(get(&reply.bytes, 16));
    let (_, at) = bench.io();
    let verify = || on_blocks(io::VERIFY, 0, 1);
    // The Connect was in the first entry.
    assert_eq!([(); 3].map(|()| head(&bench.call(at, verify(), &[], 0)[0])), [2, 3, 4]);
    (0..123).for_each(|_| drop(bench.call(at, verify(), &[], 0)));
    assert_eq!([(); 2].map(|()| head(&bench.call(at, verify(), &[], 0)[0])), [0, 1]);
    let (at, nqn) = (bench.initialized(0, 0), bench.target.drive().nqn.clone());
    let (mut connect, data) = connecting(0, u16::MAX, [&nqn, "nqn.host"]);
    connect.0[46] = 1 << 2;
    let reply = bench.call(at, connect, &data, 0).remove(0);
    assert_eq!((reply.status(), head(&reply)), (Status::OK, u16::MAX), "flow control is disabled");
}

#[test]
fn digests_are_checked_and_sent() {
    let mut bench = Bench::new(&[]);
    let (_, controller) = bench.admin();
    let nqn = bench.target.drive().nqn.clone();
    let with_digests = |pdu: &[u8], header: usize| {
        let mut with = pdu[..header].to_vec();
        let has_data = pdu.len() > header;
        with[1] |= flag::HEADER_DIGEST | if has_data { flag::DATA_DIGEST } else { 0 };
        with[3] = if has_data { header as u8 + 4 } else { 0 };
        let length = (pdu.len() + if has_data { 8 } else { 4 }) as u32;
        put(&mut with, 4, length.to_le_bytes());
        with.extend(crc32c::crc32c(&with).to_le_bytes());
        with.extend(&pdu[header..]);
        if has_data {
            with.extend(crc32c::crc32c(&pdu[header..]).to_le_bytes());
        }
        with
    };
    // An alignment of 32 bytes.
    let at = bench.initialized(3, 7);
    let (connect, data) = connecting(1, controller, [&nqn, "nqn.host"]);
    let reply = bench.send(at, &with_digests(&capsule(connect, &data, 0), pdu::COMMAND)).remove(0);
    assert_eq!((reply.status(), reply.bytes.len()), (Status::OK, HEADER + 4));
    let write = with_digests(&capsule(on_blocks(io::WRITE, 0, 1), &[5; 512], 0), pdu::COMMAND);
    let mut damaged = write.clone();
    damaged[100] ^= 1;
    assert_eq!(bench.send(at, &damaged)[0].status(), Status::TRANSPORT);
    assert_eq!(bench.send(at, &write)[0].status(), Status::OK);
    let large = with_digests(&capsule(on_blocks(io::WRITE, 8, 2), &[], 1024), pdu::COMMAND);
    for (flipped, status) in [(40, Status::TRANSPORT), (0, Status::OK)] {
        let ready = bench.send(at, &large).remove(0);
        let mut data =
            with_digests(&data_pdu(0, u16::from_le_bytes(get(&ready.bytes, 10)), 0, &[6; 512], false), HEADER);
        let rest = with_digests(&data_pdu(0, u16::from_le_bytes(get(&ready.bytes, 10)), 512, &[6; 512], true), HEADER);
        data[40] ^= u8::from(flipped == 40);
        assert_eq!(bench.send(at, &data), []);
        assert_eq!(bench.send(at, &rest)[0].status(), status);
        assert_eq!(bench.queues[at].used(), 0);
    }
    let replies = bench.send(at, &with_digests(&capsule(on_blocks(io::READ, 0, 1), &[], 512), pdu::COMMAND));
    let data = &replies[0].bytes;
    assert_eq!((data.len(), data[1], data[3]), (32 + 512 + 4, 0b111, 32));
    assert_eq!(data[24..28], crc32c::crc32c(&data[..24]).to_le_bytes());
    assert_eq!((&data[28..32], &data[32..544]), (&[0; 4][..], &[5; 512][..]));
    assert_eq!(data[544..], crc32c::crc32c(&[5; 512]).to_le_bytes());
    let mut damaged = with_digests(&capsule(on_blocks(io::READ, 0, 1), &[], 512), pdu::COMMAND);
    damaged[60] ^= 1;
    let found = get::<4>(&damaged, pdu::COMMAND);
    let replies = bench.send(at, &damaged);
    assert_eq!((replies[0].kind, replies[0].bytes[8], get::<4>(&replies[0].bytes, 10)), (3, 3, found));
}

/// Returns a Dataset Management command that deallocates ranges of blocks, and its data.
fn deallocating(ranges: &[(u64, u32)]) -> (Command, Vec<u8>) {
    let mut deallocate = on_blocks(io::DATASET_MANAGEMENT, ranges.len() as u64 - 1, 1);
    put(&mut deallocate.0, 44, 4_u32.to_le_bytes());
    let mut data = vec![0; 16 * ranges.len()];
    for (range, (first, blocks)) in data.chunks_exact_mut(16).zip(ranges) {
        put(range, 4, blocks.to_le_bytes());
        put(range, 8, first.to_le_bytes());
    }
    (deallocate, data)
}

#[test]
fn ranges_are_deallocated_a_few_at_a_time() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    let blocks = bench.target.drive().blocks as u32;
    let (command, data) = deallocating(&[(0, blocks); 256]);
    bench.feed(at, &capsule(command, &data, 0));
    let rounds: Vec<usize> = std::iter::from_fn(|| Some(bench.complete()).filter(|count| *count > 0)).collect();
    assert_eq!(rounds, [4; 64]);
    let replies = bench.replies(at);
    assert_eq!((replies.len(), replies[0].status(), bench.in_flight.is_empty()), (1, Status::OK, true));
    // Each range was deallocated once.
    assert_eq!(bench.engine.served()[Operation::Trim.index()].count, 256);
}

#[test]
fn a_controller_is_flushed_before_its_shutdown_is_complete() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let mut status = command(admin::FABRICS);
    status.0[4] = fabrics::PROPERTY_GET;
    put(&mut status.0, 44, property::STATUS.to_le_bytes());
    bench.feed(at, &capsule(on_blocks(io::WRITE, 0, 16), &[1; 8192], 0));
    bench.feed(admin, &capsule(property_set(0x46_0001 | 1 << 14), &[], 0));
    bench.feed(admin, &capsule(status, &[], 0));
    let replies = bench.replies(admin);
    assert_eq!((replies[0].status(), replies[1].result()), (Status::OK, 1 | 1 << 2), "in progress");
    assert!(!bench.target.has(&bench.queues[at].session.queue), "I/O queues end");
    bench.complete();
    assert_eq!(bench.engine.served()[Operation::Flush.index()].count, 1);
    assert_eq!(bench.call(admin, status, &[], 0)[0].result(), 1 | 2 << 2);
}

#[test]
fn writes_are_durable_while_the_write_cache_is_disabled() {
    let buffer = "buffer.capacity=1MiB";
    let mut bench = Bench::of(&[buffer], &[]);
    let (admin, at) = bench.io();
    let queue = bench.queues[at].session.queue.clone();
    let mut zeroes = on_blocks(io::WRITE_ZEROES, 0, 8);
    zeroes.0[51] = 1 << 1;
    for is_enabled in [true, false] {
        let mut set = command(admin::SET_FEATURES);
        set.0[40] = feature::WRITE_CACHE;
        put(&mut set.0, 44, u32::from(is_enabled).to_le_bytes());
        assert_eq!(bench.call(admin, set, &[], 0)[0].status(), Status::OK);
        for (command, length) in
            [(on_blocks(io::WRITE, 0, 8), 4096), (on_blocks(io::WRITE_ZEROES, 0, 8), 0), (zeroes, 0)]
        {
            let data = vec![0; length as usize];
            let reply = bench.target.execute(&mut queue.clone(), &command, &data, length, &bench.engine, Wall(0));
            let nvme::target::Reply::Device(requested) = reply else { panic!("{reply:?}") };
            assert_eq!(requested.fua, !is_enabled, "{requested:?}");
        }
        let reply =
            bench.target.execute(&mut queue.clone(), &on_blocks(io::READ, 0, 8), &[], 4096, &bench.engine, Wall(0));
        assert!(matches!(reply, nvme::target::Reply::Device(Io { fua: false, .. })));
    }
}

#[test]
fn the_tables_list_exactly_what_is_supported() {
    let mut bench = Bench::of(&["buffer.capacity=1MiB"], &[]);
    let (admin, at) = bench.io();
    let listed = |rows: &[supported::Row], number: u8| rows.iter().any(|row| row.0 == number);
    for number in 0..=u8::MAX {
        let queue = |bench: &Bench, at: usize| bench.queues[at].session.queue.clone();
        let mut execute = |at: usize, command: Command, length: u32| {
            let mut queue = queue(&bench, at);
            let reply = bench.target.execute(&mut queue, &command, &[], length, &bench.engine, Wall(0));
            if let nvme::target::Reply::Done(status, _) = reply { status } else { Status::OK }
        };
        if number != admin::FABRICS {
            let status = execute(admin, command(number), 0);
            assert_eq!(
                status != Status::INVALID_OPCODE,
                listed(&supported::ADMIN, number),
                "admin command {number:#x}"
            );
            let status = execute(at, on_blocks(number, 0, 1), 512);
            assert_eq!(status != Status::INVALID_OPCODE, listed(&supported::IO, number), "I/O command {number:#x}");
        }
        let status = execute(admin, log_page(number, 512), 512);
        assert_eq!(status != Status::INVALID_LOG, listed(&supported::LOGS, number), "log page {number:#x}");
        let mut get = command(admin::GET_FEATURES);
        get.0[40] = number;
        let status = execute(admin, get, 0);
        assert_eq!(status == Status::OK, listed(&supported::FEATURES, number), "feature {number:#x}");
    }
}

#[test]
fn a_host_is_alive_while_messages_or_replies_pass() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let mut keep_alive = command(admin::SET_FEATURES);
    keep_alive.0[40] = feature::KEEP_ALIVE;
    put(&mut keep_alive.0, 44, 1000_u32.to_le_bytes());
    bench.call(admin, keep_alive, &[], 0);
    let is_alive = |bench: &mut Bench, ms: u64| {
        bench.target.expire(Wall(ms * 1_000_000));
        bench.target.has(&bench.queues[admin].session.queue)
    };
    let ready = bench.call(at, on_blocks(io::WRITE, 0, 2), &[], 1024).remove(0);
    let tag = u16::from_le_bytes(get(&ready.bytes, 10));
    bench.now = Wall(900_000_000);
    bench.feed(at, &data_pdu(0, tag, 0, &[1; 512], false));
    assert!(is_alive(&mut bench, 1899), "data arrives");
    bench.feed(at, &data_pdu(0, tag, 512, &[1; 512], true));
    bench.now = Wall(1_800_000_000);
    bench.complete();
    assert!(is_alive(&mut bench, 2799), "a command has completed");
    assert!(!is_alive(&mut bench, 2800));
}

#[test]
fn commands_before_connect_or_before_enabling_are_out_of_sequence() {
    let mut bench = Bench::new(&[]);
    let at = bench.initialized(0, 0);
    assert_eq!(bench.call(at, identify(1, 0), &[], 4096)[0].status(), Status::SEQUENCE);
    let nqn = bench.target.drive().nqn.clone();
    let controller = bench.connect(at, 0, u16::MAX, [&nqn, "nqn.host"]).result() as u16;
    assert_eq!(bench.call(at, identify(1, 0), &[], 4096)[0].status(), Status::SEQUENCE);
    let other = bench.initialized(0, 0);
    assert_eq!(bench.connect(other, 1, controller, [&nqn, "nqn.host"]).status(), Status::SEQUENCE);
    assert_eq!(bench.connect(at, 0, u16::MAX, [&nqn, "nqn.host"]).status(), Status::SEQUENCE);
    bench.call(at, property_set(0x46_0001), &[], 0);
    let page = bench.call(at, identify(1, 0), &[], 4096).remove(0);
    assert_eq!((page.kind, page.bytes.len()), (kind::TO_HOST, HEADER + 4096));
    assert_eq!(bench.call(at, identify(1, 0), &[], 4092)[0].status(), Status::DATA_LENGTH);
}

#[test]
fn a_connect_with_wrong_parameters_names_them() {
    let mut bench = Bench::new(&["nqn.friend"]);
    let nqn = bench.target.drive().nqn.clone();
    let at = bench.initialized(0, 0);
    let mut connect = |number, controller, names| {
        let reply = bench.connect(at, number, controller, names);
        (reply.status(), reply.result())
    };
    let invalid = |at: u64| (Status::CONNECT_INVALID, at);
    assert_eq!(connect(0, u16::MAX, ["nqn.other", "nqn.friend"]), invalid(1 << 16 | 256));
    assert_eq!(connect(0, u16::MAX, [&nqn, ""]), invalid(1 << 16 | 512));
    assert_eq!(connect(0, 7, [&nqn, "nqn.friend"]), invalid(1 << 16 | 16));
    assert_eq!(connect(1, 7, [&nqn, "nqn.friend"]), invalid(1 << 16 | 16));
    assert_eq!(connect(MAX_QUEUES + 1, 7, [&nqn, "nqn.friend"]), invalid(42));
    assert_eq!(connect(0, u16::MAX, [&nqn, "nqn.stranger"]), (Status::CONNECT_HOST, 0));
    assert_eq!(connect(0, u16::MAX, [&nqn, "nqn.friend"]), (Status::OK, 1));
}

#[test]
fn a_queue_is_connected_once_and_by_its_own_host() {
    let mut bench = Bench::new(&[]);
    let (_, controller) = bench.admin();
    let nqn = bench.target.drive().nqn.clone();
    let [one, other] = [bench.initialized(0, 0), bench.initialized(0, 0)];
    assert_eq!(bench.connect(one, 1, controller, [&nqn, "nqn.thief"]).status(), Status::CONNECT_INVALID);
    assert_eq!(bench.connect(one, 1, controller, [&nqn, "nqn.host"]).status(), Status::OK);
    assert_eq!(bench.connect(other, 1, controller, [&nqn, "nqn.host"]).status(), Status::CONNECT_BUSY);
    bench.target.end(&bench.queues[one].session.queue.clone());
    assert_eq!(bench.connect(other, 1, controller, [&nqn, "nqn.host"]).status(), Status::OK);
}

#[test]
fn data_in_capsules_and_transferred_data_are_written_and_read() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    let small = vec![3; 8192];
    assert_eq!(bench.call(at, on_blocks(io::WRITE, 0, 16), &small, 0)[0].status(), Status::OK);
    let large: Vec<u8> = (0..200 << 10).map(|byte: u32| (byte % 251) as u8).collect();
    let mut write = on_blocks(io::WRITE, 16, 400);
    put(&mut write.0, 2, 9_u16.to_le_bytes());
    let ready = bench.call(at, write, &[], 200 << 10).remove(0);
    let [id, tag] = [8, 10].map(|at| u16::from_le_bytes(get(&ready.bytes, at)));
    assert_eq!((ready.kind, id, get(&ready.bytes, 16)), (kind::READY, 9, (200_u32 << 10).to_le_bytes()));
    assert_eq!(bench.send(at, &data_pdu(9, tag, 0, &large[..128 << 10], false)), []);
    let done = bench.send(at, &data_pdu(9, tag, 128 << 10, &large[128 << 10..], true));
    assert_eq!(done[0].status(), Status::OK);
    let read = bench.call(at, on_blocks(io::READ, 0, 416), &[], 208 << 10);
    assert!(read[0].bytes[HEADER..] == [small, large].concat() && read[1].status() == Status::OK);
}

#[test]
fn compare_verify_zeroes_and_deallocation() {
    let mut bench = Bench::new(&[]);
    let (_, at) = bench.io();
    let data = [7; 4096];
    bench.call(at, on_blocks(io::WRITE, 8, 8), &data, 0);
    assert_eq!(bench.call(at, on_blocks(io::COMPARE, 8, 8), &data, 0)[0].status(), Status::OK);
    assert_eq!(bench.call(at, on_blocks(io::COMPARE, 0, 8), &data, 0)[0].status(), Status::COMPARE_FAILURE);
    assert_eq!(bench.call(at, on_blocks(io::VERIFY, 8, 8), &[], 0)[0].status(), Status::OK);
    assert_eq!(bench.call(at, on_blocks(io::VERIFY, 0, 2049), &[], 0)[0].status(), Status::INVALID_FIELD);
    assert_eq!(bench.call(at, on_blocks(io::WRITE_ZEROES, 8, 1), &[], 0)[0].status(), Status::OK);
    let expected = [vec![0; 512], vec![7; 3584]].concat();
    assert_eq!(bench.call(at, on_blocks(io::READ, 8, 8), &[], 4096)[0].bytes[HEADER..], expected);
    let mut range = [0; 16];
    put(&mut range, 4, 8_u32.to_le_bytes());
    put(&mut range, 8, 8_u64.to_le_bytes());
    let mut deallocate = on_blocks(io::DATASET_MANAGEMENT, 0, 1);
    put(&mut deallocate.0, 44, 4_u32.to_le_bytes());
    assert_eq!(bench.call(at, deallocate, &range, 0)[0].status(), Status::OK);
    assert_eq!(bench.call(at, on_blocks(io::READ, 8, 8), &[], 4096)[0].bytes[HEADER..], [0; 4096]);
    let blocks = bench.target.drive().blocks;
    assert_eq!(bench.call(at, on_blocks(io::READ, blocks, 1), &[], 512)[0].status(), Status::LBA_RANGE);
}

#[test]
fn refused_commands_are_in_the_error_log() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    // Format, Sanitize, and a reservation.
    for opcode in [0x80, 0x84] {
        assert_eq!(bench.call(admin, command(opcode), &[], 0)[0].status(), Status::INVALID_OPCODE);
    }
    assert_eq!(bench.call(at, on_blocks(0x0d, 5, 1), &[0; 16], 0)[0].status(), Status::INVALID_OPCODE);
    let page = bench.call(admin, log_page(log::ERRORS, 4096), &[], 4096).remove(0).bytes.split_off(HEADER);
    assert_eq!((u64::from_le_bytes(get(&page, 0)), page[8], page[31]), (3, 1, 0x0d));
    assert_eq!((u64::from_le_bytes(get(&page, 16)), page[64 + 31], page[128 + 31]), (5, 0x84, 0x80));
    let health = bench.call(admin, log_page(log::HEALTH, 512), &[], 512).remove(0).bytes.split_off(HEADER);
    assert_eq!(u64::from_le_bytes(get(&health, 176)), 3);
}

#[test]
fn health_has_the_counters_of_the_device() {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let data = vec![1; 8192];
    (0..126).for_each(|index| drop(bench.call(at, on_blocks(io::WRITE, 16 * index, 16), &data, 0)));
    bench.call(at, on_blocks(io::READ, 0, 1), &[], 512);
    let page = bench.call(admin, log_page(log::HEALTH, 512), &[], 512).remove(0).bytes.split_off(HEADER);
    let of = |at| u64::from_le_bytes(get(&page, at));
    // 2,016 sectors are written: three units of 1,000, rounded up.
    assert_eq!([of(32), of(48), of(64), of(80), of(112), of(144)], [1, 3, 1, 126, 1, 0]);
    assert_eq!(page[..6], [0, 42, 1, 100, 10, 0]);
}

#[test]
fn requests_for_events_wait_until_they_are_aborted_or_the_host_is_lost() {
    let mut bench = Bench::new(&[]);
    let (at, _) = bench.admin();
    let mut event = command(admin::ASYNC_EVENT);
    put(&mut event.0, 2, 77_u16.to_le_bytes());
    assert_eq!(bench.call(at, event, &[], 0), []);
    let mut abort = command(admin::ABORT);
    put(&mut abort.0, 42, 77_u16.to_le_bytes());
    let replies = bench.call(at, abort, &[], 0);
    // The aborted request completes before the Abort.
    assert_eq!((replies[0].status(), replies[0].id()), (Status::ABORTED, 77));
    assert_eq!((replies[1].status(), replies[1].id(), replies[1].result()), (Status::OK, 0, 0));
    assert_eq!(bench.call(at, abort, &[], 0)[0].result(), 1);
    let mut keep_alive = command(admin::SET_FEATURES);
    keep_alive.0[40] = feature::KEEP_ALIVE;
    put(&mut keep_alive.0, 44, 1000_u32.to_le_bytes());
    bench.call(at, keep_alive, &[], 0);
    bench.target.expire(Wall(999_999_999));
    assert!(bench.target.has(&bench.queues[at].session.queue));
    bench.target.expire(Wall(1_000_000_000));
    assert!(!bench.target.has(&bench.queues[at].session.queue));
}

#[test]
fn discovery_lists_the_drive_to_hosts_that_may_connect() {
    for (host, records) in [("nqn.friend", 1_u64), ("nqn.stranger", 0)] {
        let mut bench = Bench::new(&["nqn.friend"]);
        let at = bench.initialized(0, 0);
        assert_eq!(bench.connect(at, 0, u16::MAX, [DISCOVERY_NQN, host]).status(), Status::OK);
        bench.call(at, property_set(0x46_0001), &[], 0);
        let page = bench.call(at, log_page(log::DISCOVERY, 2048), &[], 2048).remove(0).bytes.split_off(HEADER);
        assert_eq!(u64::from_le_bytes(get(&page, 8)), records);
        let record = &page[1024..];
        let is_named = record[256..].starts_with(bench.target.drive().nqn.as_bytes());
        assert_eq!((is_named, record.starts_with(&[3, 1, 2])), (records == 1, records == 1));
        assert_eq!(record[32..36] == *b"4420", records == 1);
        assert_eq!(bench.call(at, log_page(log::HEALTH, 512), &[], 512)[0].status(), Status::INVALID_LOG);
        assert_eq!(bench.call(at, identify(0, 1), &[], 4096)[0].status(), Status::INVALID_FIELD);
    }
}

#[test]
fn violations_of_the_protocol_end_the_connection_with_their_reason() {
    let with = |pdu: &[u8], at: usize, byte: u8| {
        let mut changed = pdu.to_vec();
        changed[at] = byte;
        changed
    };
    let read = capsule(on_blocks(io::READ, 0, 1), &[], 512);
    let small = data_pdu(0, 0, 0, &[0; 512], true);
    for (input, reason) in [
        (with(&read, 0, 0x05), 1),                // a type that only the controller sends
        (with(&read, 2, 71), 1),                  // length of the header
        (with(&read, 6, 0xff), 1),                // length of the PDU
        (with(&read, 1, flag::HEADER_DIGEST), 1), // a digest that was not agreed
        (with(&read, 3, 2), 1),                   // offset of the data
        (vec![0, 0, 128, 0, 128, 0, 0, 0], 2),    // a second request to initialize
        (small.clone(), 1),                       // data without an R2T
        (capsule(on_blocks(io::WRITE, 0, 16), &[0; 8196], 0), 5),
    ] {
        let mut bench = Bench::new(&[]);
        let (_, at) = bench.io();
        let replies = bench.send(at, &input);
        let [Reply { kind: kind::CONTROLLER_TERMINATES, bytes }] = &replies[..] else { panic!("{replies:?}") };
        assert_eq!((bytes[8], &bytes[HEADER..HEADER + 8]), (reason, &input[..8]), "{input:?}");
        assert!(bench.queues[at].ending);
    }
    // Data out of order, too many, and a last part that is missing.
    let part = [0; 1024];
    for (offset, data, is_last, reason) in
        [(512, &part[..512], false, 4), (0, &part[..], true, 1), (0, &part[..], false, 1), (0, &part[..512], true, 1)]
    {
        let mut bench = Bench::new(&[]);
        let (_, at) = bench.io();
        let ready = bench.call(at, on_blocks(io::WRITE, 0, 2), &[], 1024).remove(0);
        assert_eq!(ready.kind, kind::READY);
        let replies = bench.send(at, &data_pdu(0, 0, offset, data, is_last));
        let is_complete = offset == 0 && data.len() == 1024 && is_last;
        assert_eq!(replies[0].kind == kind::RESPONSE, is_complete);
        assert!(is_complete || replies[0].bytes[8] == reason, "{replies:?}");
    }
}

/// Returns random steps: bytes, or PDUs that are mostly valid.
fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8, u64, u32, u16)>> {
    vec((any::<u8>(), any::<u8>(), any::<u8>(), any::<u64>(), any::<u32>(), any::<u16>()), 1..24)
}

/// Returns the input of a step.
fn input((kind, one, other, long, middle, short): (u8, u8, u8, u64, u32, u16)) -> Vec<u8> {
    const ADMIN: [u8; 10] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18, 0x7f, 0x00, 0x80];
    const IO: [u8; 9] = [0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c, 0x7f, 0x0d];
    let opcode = if kind & 1 == 0 { ADMIN[usize::from(one) % 10] } else { IO[usize::from(one) % 9] };
    let mut command = on_blocks(opcode, long % 4096, 1 + u32::from(short % 64));
    put(&mut command.0, 2, (short % 8).to_le_bytes());
    let data = vec![other; 512 * (usize::from(other) % 16)];
    match kind >> 1 & 7 {
        0 => long.to_le_bytes().iter().chain(&middle.to_le_bytes()).copied().collect(),
        1 => {
            put(&mut command.0, 40, long.to_le_bytes());
            put(&mut command.0, 48, middle.to_le_bytes());
            capsule(command, &data, middle % (2 << 20))
        }
        2 => data_pdu(short % 8, other.into(), middle % 4096 / 512 * 512, &data, one & 1 != 0),
        3 => {
            let mut pdu = capsule(command, &data, 4096);
            let at = usize::from(short) % pdu.len();
            pdu[at] ^= one;
            pdu
        }
        4 => {
            put(&mut command.0, 40, [one % 0x20, 0, other, 0]);
            capsule(command, &[], 4096)
        }
        5 => capsule(command, &[], 512 * (1 + u32::from(short % 64))),
        _ => capsule(command, &data, 0),
    }
}

/// Passes random steps to queues of all kinds. Commands stay in the device for some steps. Nothing panics, the memory
/// of a queue is bounded, and a connection that has ended sends nothing more.
fn run(steps: &[(u8, u8, u8, u64, u32, u16)]) {
    let mut bench = Bench::new(&[]);
    let (admin, at) = bench.io();
    let [raw, plain] = [bench.open(), bench.initialized(3, 0)];
    let queues = [admin, at, at, at, raw, plain];
    for step in steps {
        let queue = queues[step.5 as usize % queues.len()];
        let was_over = bench.queues[queue].ending && bench.queues[queue].outstanding() == 0;
        bench.feed(queue, &input(*step));
        if step.2 & 0b11 == 0 {
            while bench.complete() > 0 || bench.resume() {}
            assert!(bench.in_flight.is_empty());
        }
        let replies = bench.replies(queue);
        let is_terminated = |reply: &Reply| reply.kind == kind::CONTROLLER_TERMINATES;
        assert!(!was_over || replies.is_empty(), "{replies:?}");
        assert!(!replies.iter().rev().skip(1).any(is_terminated), "{replies:?}");
        let QueueState { session, .. } = &bench.queues[queue];
        assert!(bench.queues[queue].outstanding() <= u32::from(session.queue.entries.max(1)));
        assert!(bench.queues[queue].used() <= 64 << 20);
    }
    while bench.complete() > 0 || bench.resume() {}
    for queue in &mut bench.queues {
        queue.output.take();
        // Memory is held for data that the host still has to send, and for nothing else.
        assert!(queue.session.is_transferring() || queue.used() == 0, "{queue:?}");
    }
    bench.engine.device().devices().for_each(|device| device.check_invariants().unwrap());
}

#[test]
fn random_input_ends_at_most_its_connection() {
    TestRunner::new(Config::default())
        .run(&steps(), |steps| {
            run(&steps);
            Ok(())
        })
        .unwrap();
}

#[test]
#[ignore = "ten million PDUs; `make soak` runs it"]
fn ten_million_random_pdus_end_at_most_their_connections() {
    // 11.5 PDUs each on average.
    let config = Config { cases: 870_000, ..Config::default() };
    TestRunner::new(config)
        .run(&steps(), |steps| {
            run(&steps);
            Ok(())
        })
        .unwrap();
}
