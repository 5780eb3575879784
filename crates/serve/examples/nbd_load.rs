//! Loads an NBD server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example nbd_load -- unix:PATH [read|write] [DEPTH] [SECONDS] [BYTES]`

mod common;

use std::collections::VecDeque;
use std::error::Error;

use common::{Arguments, random_offsets, report};
use floatgate_serve::Address;
use floatgate_serve::client::Client;
use floatgate_serve::clock::Wall;
use floatgate_serve::nbd::wire::command;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_process();
    let number = |index, default| arguments.number(index, default);
    let address: Address = arguments.text(0).ok_or("name the server: unix:PATH or HOST:PORT")?.parse()?;
    let kind = if arguments.text(1) == Some("write") { command::WRITE } else { command::READ };
    let (depth, seconds, bytes) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?);
    let mut client = Client::connect(&address)?;
    let latencies = load(&mut client, kind, depth.max(1) as usize, seconds, bytes as u32)?;
    client.disconnect()?;
    report(latencies, seconds);
    Ok(())
}

/// Keeps a number of requests outstanding for a time. Returns their latencies in ns.
fn load(client: &mut Client, kind: u16, depth: usize, seconds: u64, bytes: u32) -> std::io::Result<Vec<u64>> {
    let payload = vec![0x5a; if kind == command::WRITE { bytes as usize } else { 0 }];
    let mut next = random_offsets(client.bytes(), bytes);
    let mut requested = VecDeque::with_capacity(depth);
    let mut latencies = Vec::new();
    let end = Wall::now().later(Wall(seconds * 1_000_000_000));
    let mut open = depth;
    while Wall::now() < end || !requested.is_empty() {
        while open > 0 && Wall::now() < end {
            let cookie = client.ask(kind, 0, next(), bytes, &payload);
            requested.push_back((cookie, Wall::now()));
            open -= 1;
        }
        client.send()?;
        // Take all replies that have arrived before sending more, so that requests are sent together.
        while !requested.is_empty() {
            // The reply to a write has no payload.
            let reply = client.reply(|_| if kind == command::READ { bytes as usize } else { 0 })?;
            if reply.error != 0 {
                return Err(std::io::Error::from_raw_os_error(reply.error as i32));
            }
            let index = requested.iter().position(|(cookie, _)| *cookie == reply.cookie);
            let Some((_, start)) = index.and_then(|index| requested.remove(index)) else { continue };
            latencies.push(Wall::now().since(start).0);
            open += 1;
            if !client.has_reply() {
                break;
            }
        }
    }
    Ok(latencies)
}
