//! Loads an NBD server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example nbd_load -- unix:PATH [read|write] [DEPTH] [SECONDS] [BYTES]`

use std::collections::VecDeque;
use std::error::Error;

use floatgate_serve::Address;
use floatgate_serve::client::Client;
use floatgate_serve::clock::Wall;
use floatgate_serve::nbd::wire::command;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let address: Address = arguments.first().ok_or("name the server: unix:PATH or HOST:PORT")?.parse()?;
    let kind = if arguments.get(1).is_some_and(|what| what == "write") { command::WRITE } else { command::READ };
    let (depth, seconds, bytes) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?);
    let mut client = Client::connect(&address)?;
    let latencies = load(&mut client, kind, depth.max(1) as usize, seconds, bytes as u32)?;
    client.disconnect()?;
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

/// Keeps a number of requests outstanding for a time. Returns their latencies in ns, in ascending order.
fn load(client: &mut Client, kind: u16, depth: usize, seconds: u64, bytes: u32) -> std::io::Result<Vec<u64>> {
    let payload = vec![0x5a; if kind == command::WRITE { bytes as usize } else { 0 }];
    let places = client.bytes() / u64::from(bytes);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % places * u64::from(bytes)
    };
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
            let place = requested.iter().position(|(cookie, _)| *cookie == reply.cookie);
            let Some((_, start)) = place.and_then(|place| requested.remove(place)) else { continue };
            latencies.push(Wall::now().since(start).0);
            open += 1;
            if !client.has_reply() {
                break;
            }
        }
    }
    latencies.sort_unstable();
    Ok(latencies)
}
