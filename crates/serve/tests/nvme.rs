//! Tests of a server with NVMe hosts, over real sockets. `python/tests/test_nvme.py` has those of a second client.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client as NbdClient;
use floatgate_serve::image::{ImageAt, Opened};
use floatgate_serve::nvme::client::{Client, Shape, done, log_page};
use floatgate_serve::nvme::wire::log;
use floatgate_serve::record::Recorder;
use floatgate_serve::{Address, Options, Server, SocketAddresses, Sockets};

use crate::common::options::options;
use crate::common::replay::{Shared, assert_replays};

fn device() -> Device {
    let config = device_file::load("tiny", &[]).unwrap();
    let mut device = Device::new(config, DeviceOptions { attribution: true, ..DeviceOptions::default() }).unwrap();
    precondition(&mut device, Precondition::Fill, 1, &mut |_| true).unwrap();
    device
}

/// Starts a server for NBD clients and NVMe hosts.
fn start(change: impl FnOnce(&mut Options)) -> (Server, SocketAddr, tempfile::TempDir) {
    start_on(device(), change)
}

/// Starts a server whose device has an image.
fn start_with_image() -> (Server, SocketAddr, tempfile::TempDir) {
    let config = device_file::load("tiny", &["durability.trim_journal=true".to_owned()]).unwrap();
    let made_with = DeviceOptions { attribution: true, ..DeviceOptions::default() };
    let mut device = Device::new(config, made_with.clone()).unwrap();
    let opened = Opened::open(&ImageAt::Memory, device.config(), false).unwrap();
    let store = opened.begin(&mut device).unwrap();
    start_on(device, |options| options.image = Some((store, made_with)))
}

fn start_on(device: Device, change: impl FnOnce(&mut Options)) -> (Server, SocketAddr, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let nbd = vec![Address::Unix(folder.path().join("nbd.sock"))];
    let nvme = vec!["127.0.0.1:0".parse().unwrap()];
    let sockets = Sockets::open(&SocketAddresses { nbd, nvme, ..SocketAddresses::default() }).unwrap();
    let mut options = options();
    change(&mut options);
    let server = Server::start(device, sockets, options).unwrap();
    let Address::Tcp(address) = server.nvme()[0] else { unreachable!() };
    (server, address, folder)
}

#[test]
fn hosts_and_nbd_clients_see_the_same_data_and_their_recording_replays() {
    let shared = Shared::default();
    let recorder = Recorder::begin(Box::new(shared.clone()), &[]).unwrap();
    let (server, address, _folder) = start(|options| options.recorder = Some(recorder));
    let mut nbd = NbdClient::connect(&server.nbd()[0]).unwrap();
    for shape in [Shape::default(), Shape { digests: true, no_flow_control: true, align: 7, ..Shape::default() }] {
        let mut host = Client::connect(address, 2, shape).unwrap();
        assert_eq!(host.bytes(), nbd.bytes());
        let data: Vec<u8> = (0..300 << 10).map(|byte: u32| (byte % 253) as u8).collect();
        host.write(4096, &data).unwrap();
        host.write(1 << 20, &data[..4096]).unwrap();
        host.flush().unwrap();
        let mut read = vec![0; data.len()];
        nbd.read(4096, &mut read).unwrap();
        assert!(read == data);
        nbd.write(8192, &[9; 512], false).unwrap();
        host.read(4096, &mut read).unwrap();
        assert!(read[..4096] == data[..4096] && read[4096..4608] == [9; 512] && read[4608..] == data[4608..]);
    }
    drop(nbd);
    let finished = server.stop(true).unwrap();
    let names: Vec<_> = finished.live.frontends.iter().map(|frontend| &frontend.name[..]).collect();
    assert_eq!(names, ["nbd", "nvme-tcp"]);
    let requests = finished.recorded.unwrap().unwrap();
    assert_replays(&shared.text(), requests, finished.digest, &mut device());
}

#[test]
fn a_host_that_leaves_frees_its_controller() {
    let (server, address, _folder) = start(|_| {});
    // More associations than controllers.
    for _ in 0..80 {
        let mut host = Client::connect(address, 1, Shape::default()).unwrap();
        host.write(0, &[1; 4096]).unwrap();
    }
    let mut hosts: Vec<Client> = (0..2).map(|_| Client::connect(address, 64, Shape::default()).unwrap()).collect();
    let mut read = [0; 4096];
    hosts[1].read(0, &mut read).unwrap();
    assert_eq!(read, [1; 4096]);
    assert!(Client::connect(address, 65, Shape::default()).is_err());
    drop(hosts);
    server.stop(true).unwrap();
}

#[test]
fn a_power_cut_drops_all_hosts_and_keeps_the_drive() {
    let (server, address, _folder) = start_with_image();
    let nqn = server.nqn().unwrap().to_owned();
    let mut hosts = [(); 2].map(|()| Client::connect_to(address, &nqn, 2, Shape::default()).unwrap());
    hosts[0].write(0, &[7; 8192]).unwrap();
    hosts[0].flush().unwrap();
    let cut = server.power_cut().unwrap();
    assert_eq!(cut.requests_lost, 0);
    let mut read = [0; 8192];
    for host in &mut hosts {
        assert!(host.read(0, &mut read).is_err());
        assert!(host.admin.call(log_page(log::HEALTH, 512), &[], 512).is_err());
    }
    let mut host = Client::connect(address, 1, Shape::default()).unwrap();
    host.read(0, &mut read).unwrap();
    assert_eq!(read, [7; 8192]);
    let health = host.admin.call(log_page(log::HEALTH, 512), &[], 512).unwrap();
    done(&health).unwrap();
    // Power cycles and unsafe shutdowns.
    assert_eq!((health.data[112], health.data[144]), (2, 1));
    assert_eq!(server.nqn(), Some(&nqn[..]));
    assert_eq!(server.stop(true).unwrap().power_cuts, 1);
}

#[test]
fn connections_are_limited_and_end_with_the_server() {
    let (server, address, _folder) = start(|_| {});
    let nqn = server.nqn().unwrap().to_owned();
    let connect = || Client::connect_to(address, &nqn, 63, Shape::default());
    let mut hosts: Vec<Client> = (0..4).map(|_| connect().unwrap()).collect();
    let is_closed = || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.read(&mut [0]).map_or(true, |count| count == 0)
    };
    assert!(is_closed(), "256 connections");
    assert!(connect().is_err());
    hosts.pop();
    // The server notices the end of the connections before it accepts new ones.
    hosts.push(connect().unwrap());
    for host in &mut hosts {
        host.write(0, &[1; 512]).unwrap();
    }
    server.stop(true).unwrap();
    for host in &mut hosts {
        assert!(host.write(0, &[1; 512]).is_err());
    }
}
