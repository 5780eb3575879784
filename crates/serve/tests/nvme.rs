//! Tests of a server with NVMe hosts, over real sockets. `python/tests/test_nvme.py` has those of a second client.

use std::net::SocketAddr;

use floatgate_core::device_file;
use floatgate_core::preparation::{Precondition, precondition};
use floatgate_core::simulation::{Device, Options as DeviceOptions};
use floatgate_serve::client::Client as NbdClient;
use floatgate_serve::nvme::client::{Client, Shape};
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
    let folder = tempfile::tempdir().unwrap();
    let nbd = vec![Address::Unix(folder.path().join("nbd.sock"))];
    let nvme = vec!["127.0.0.1:0".parse().unwrap()];
    let sockets = Sockets::open(&SocketAddresses { nbd, nvme, ..SocketAddresses::default() }).unwrap();
    let mut options = options();
    change(&mut options);
    let server = Server::start(device(), sockets, options).unwrap();
    let Address::Tcp(address) = server.nvme()[0] else { unreachable!() };
    (server, address, folder)
}

#[test]
fn hosts_and_nbd_clients_see_the_same_data_and_their_recording_replays() {
    let shared = Shared::default();
    let recorder = Recorder::begin(Box::new(shared.clone()), &[]).unwrap();
    let (server, address, _folder) = start(|options| options.recorder = Some(recorder));
    let mut nbd = NbdClient::connect(&server.addresses()[0]).unwrap();
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
    let mut hosts: Vec<Client> = (0..3).map(|_| Client::connect(address, 64, Shape::default()).unwrap()).collect();
    let mut read = [0; 4096];
    hosts[2].read(0, &mut read).unwrap();
    assert_eq!(read, [1; 4096]);
    assert!(Client::connect(address, 65, Shape::default()).is_err());
    drop(hosts);
    server.stop(true).unwrap();
}
