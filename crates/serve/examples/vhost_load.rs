//! Loads a vhost-user server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example vhost_load -- PATH [read|write] [DEPTH] [SECONDS] [BYTES] [QUEUES] [poll|block]`
//!
//! The depth is the total of all queues. `poll` polls the rings continuously, like programs with a dedicated processor.
//! `block` sleeps until a notification.

use std::error::Error;

use floatgate_serve::clock::Wall;
use floatgate_serve::vhost::client::{Client, Shape};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: u64| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let is = |place: usize, text: &str| arguments.get(place).is_some_and(|given| given == text);
    let path = arguments.first().ok_or("name the server's socket")?;
    let (depth, seconds, bytes, queues) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?, number(5, 1)?.max(1));
    let each = depth.div_ceil(queues).max(1);
    let size = (each * 3).next_power_of_two().clamp(4, 1024) as u16;
    let looks = !is(6, "block");
    let shape = Shape { queues: queues as u16, size, bytes: bytes as u32, looks };
    let mut client = Client::connect(path.as_ref(), shape)?;
    let mut load = Load { each: each as usize, seconds, bytes: bytes as u32, writes: is(1, "write"), polls: looks };
    let latencies = load.run(&mut client)?;
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

struct Load {
    /// Outstanding requests per queue.
    each: usize,
    seconds: u64,
    bytes: u32,
    writes: bool,
    polls: bool,
}

impl Load {
    /// Keeps a number of requests outstanding for a time. Returns their latencies in ns, in ascending order.
    fn run(&mut self, client: &mut Client) -> Result<Vec<u64>, Box<dyn Error>> {
        let queues = client.queues();
        let payload = vec![0x5a; if self.writes { self.bytes as usize } else { 0 }];
        let (kind, length) = if self.writes { (VIRTIO_BLK_T_OUT, 0) } else { (VIRTIO_BLK_T_IN, self.bytes) };
        let sectors = u64::from(self.bytes) / 512;
        let places = client.bytes() / u64::from(self.bytes);
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % places * sectors
        };
        let mut starts = vec![vec![Wall(0); 1024]; queues];
        let mut open = vec![self.each; queues];
        let mut latencies = Vec::new();
        let end = Wall::now().later(Wall(self.seconds * 1_000_000_000));
        let mut outstanding = 0;
        let mut now = Wall::now();
        while now < end || outstanding > 0 {
            for queue in 0..queues {
                while open[queue] > 0 && now < end {
                    let Some(slot) = client.ask(queue, kind, next(), length, &payload)? else { break };
                    starts[queue][usize::from(slot)] = Wall::now();
                    (open[queue], outstanding) = (open[queue] - 1, outstanding + 1);
                }
                client.send(queue)?;
                if !self.polls && queues == 1 && outstanding > 0 {
                    client.wait(queue)?;
                }
                while let Some(reply) = client.reply(queue)? {
                    if reply.status != 0 {
                        return Err(format!("a request ended with status {}", reply.status).into());
                    }
                    latencies.push(Wall::now().since(starts[queue][usize::from(reply.slot)]).0);
                    (open[queue], outstanding) = (open[queue] + 1, outstanding - 1);
                }
            }
            now = Wall::now();
        }
        latencies.sort_unstable();
        Ok(latencies)
    }
}
