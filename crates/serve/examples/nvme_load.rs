//! Loads an NVMe/TCP server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example nvme_load -- HOST:PORT [read|write] [DEPTH] [SECONDS] [BYTES] [QUEUES]`
//!
//! The depth is the total of all queues.

use std::collections::VecDeque;
use std::error::Error;

use floatgate_serve::clock::Wall;
use floatgate_serve::nvme::client::{Client, Shape, done};
use floatgate_serve::nvme::wire::io;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let address = arguments.first().ok_or("name the server: HOST:PORT")?.parse()?;
    let opcode = if arguments.get(1).is_some_and(|what| what == "write") { io::WRITE } else { io::READ };
    let (depth, seconds, bytes, queues) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?, number(5, 1)?.max(1));
    let shape = Shape { no_flow_control: true, ..Shape::default() };
    let mut client = Client::connect(address, queues as u16, shape)?;
    let each = depth.div_ceil(queues).max(1) as usize;
    let latencies = load(&mut client, opcode, each, seconds, bytes as u32)?;
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64 / 1e3;
    println!(
        "{:.0} IOPS, mean {mean:.1} us, p50 {:.1} us, p90 {:.1} us, p99 {:.1} us, max {:.1} us",
        latencies.len() as f64 / seconds as f64,
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

/// Keeps a number of commands of each queue outstanding for a time. Returns their latencies in ns, in ascending order.
fn load(client: &mut Client, opcode: u8, each: usize, seconds: u64, bytes: u32) -> std::io::Result<Vec<u64>> {
    let payload = vec![0x5a; if opcode == io::WRITE { bytes as usize } else { 0 }];
    let room = if opcode == io::READ { bytes } else { 0 };
    let places = client.bytes() / u64::from(bytes);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % places * u64::from(bytes)
    };
    let mut outstanding: Vec<VecDeque<(u16, Wall)>> = client.queues.iter().map(|_| VecDeque::new()).collect();
    let mut latencies = Vec::new();
    let end = Wall::now().later(Wall(seconds * 1_000_000_000));
    loop {
        let is_over = Wall::now() >= end;
        for (number, requested) in outstanding.iter_mut().enumerate() {
            while requested.len() < each && !is_over {
                let command = client.on_range(opcode, next(), bytes);
                let id = client.queues[number].ask(command, &payload, room);
                requested.push_back((id, Wall::now()));
            }
            client.queues[number].send()?;
        }
        if outstanding.iter().all(VecDeque::is_empty) {
            break;
        }
        for (number, requested) in outstanding.iter_mut().enumerate() {
            // Take all replies that have arrived before sending more, so that commands are sent together.
            while !requested.is_empty() {
                let reply = client.queues[number].reply()?;
                done(&reply)?;
                let place = requested.iter().position(|(id, _)| *id == reply.id);
                let Some((_, start)) = place.and_then(|place| requested.remove(place)) else { continue };
                latencies.push(Wall::now().since(start).0);
                if !client.queues[number].has_reply() {
                    break;
                }
            }
        }
    }
    latencies.sort_unstable();
    Ok(latencies)
}
