//! Loads an NVMe/TCP server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example nvme_load -- HOST:PORT [read|write] [DEPTH] [SECONDS] [BYTES] [QUEUES]`
//!
//! The depth is the total of all queues.

mod common;

use std::collections::VecDeque;
use std::error::Error;

use common::{Arguments, random_offsets, report};
use floatgate_serve::clock::Wall;
use floatgate_serve::nvme::client::{Client, Shape, done};
use floatgate_serve::nvme::wire::io;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_process();
    let number = |index, default| arguments.number(index, default);
    let address = arguments.text(0).ok_or("name the server: HOST:PORT")?.parse()?;
    let opcode = if arguments.text(1) == Some("write") { io::WRITE } else { io::READ };
    let (depth, seconds, bytes, queues) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?, number(5, 1)?.max(1));
    let shape = Shape { no_flow_control: true, ..Shape::default() };
    let mut client = Client::connect(address, queues as u16, shape)?;
    let each = depth.div_ceil(queues).max(1) as usize;
    let latencies = load(&mut client, opcode, each, seconds, bytes as u32)?;
    report(latencies, seconds);
    Ok(())
}

/// Keeps a number of commands of each queue outstanding for a time. Returns their latencies in ns.
fn load(client: &mut Client, opcode: u8, each: usize, seconds: u64, bytes: u32) -> std::io::Result<Vec<u64>> {
    let payload = vec![0x5a; if opcode == io::WRITE { bytes as usize } else { 0 }];
    let room = if opcode == io::READ { bytes } else { 0 };
    let mut next = random_offsets(client.bytes(), bytes);
    let mut outstanding: Vec<VecDeque<(u16, Wall)>> = client.queues.iter().map(|_| VecDeque::new()).collect();
    let mut latencies = Vec::new();
    let end = Wall::now().later(Wall(seconds * 1_000_000_000));
    loop {
        let is_over = Wall::now() >= end;
        for (number, requested) in outstanding.iter_mut().enumerate() {
            while requested.len() < each && !is_over {
                let command = client.on_range(opcode, next(), bytes);
                let id = client.queues[number].queue_command(command, &payload, room);
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
                let index = requested.iter().position(|(id, _)| *id == reply.id);
                let Some((_, start)) = index.and_then(|index| requested.remove(index)) else { continue };
                latencies.push(Wall::now().since(start).0);
                if !client.queues[number].has_reply() {
                    break;
                }
            }
        }
    }
    Ok(latencies)
}
