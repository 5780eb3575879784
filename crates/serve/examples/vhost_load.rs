//! Loads a vhost-user server with random requests of one size, and reports its performance.
//!
//! `cargo run --release --example vhost_load -- PATH [read|write] [DEPTH] [SECONDS] [BYTES] [QUEUES] [poll|block]`
//!
//! The depth is the total of all queues. `poll` polls the rings continuously, like programs with a dedicated processor.
//! `block` sleeps until a notification.

mod common;

use std::error::Error;

use common::{Arguments, random_offsets, report};
use floatgate_serve::clock::Wall;
use floatgate_serve::vhost::client::{Client, Shape};
use virtio_bindings::virtio_blk::{VIRTIO_BLK_T_IN, VIRTIO_BLK_T_OUT};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::of_process();
    let number = |index, default| arguments.number(index, default);
    let path = arguments.text(0).ok_or("name the server's socket")?;
    let (depth, seconds, bytes, queues) = (number(2, 1)?, number(3, 5)?, number(4, 4096)?, number(5, 1)?.max(1));
    let each = depth.div_ceil(queues).max(1);
    let size = (each * 3).next_power_of_two().clamp(4, 1024) as u16;
    let looks = arguments.text(6) != Some("block");
    let shape = Shape { queues: queues as u16, size, bytes: bytes as u32, looks };
    let mut client = Client::connect(path.as_ref(), shape)?;
    let mut load = Load {
        each: each as usize,
        seconds,
        bytes: bytes as u32,
        writes: arguments.text(1) == Some("write"),
        polls: looks,
    };
    let latencies = load.run(&mut client)?;
    report(latencies, seconds);
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
    /// Keeps a number of requests outstanding for a time. Returns their latencies in ns.
    fn run(&mut self, client: &mut Client) -> Result<Vec<u64>, Box<dyn Error>> {
        let queues = client.queues();
        let payload = vec![0x5a; if self.writes { self.bytes as usize } else { 0 }];
        let (kind, length) = if self.writes { (VIRTIO_BLK_T_OUT, 0) } else { (VIRTIO_BLK_T_IN, self.bytes) };
        let mut next = random_offsets(client.bytes(), self.bytes);
        let mut starts = vec![vec![Wall(0); 1024]; queues];
        let mut open = vec![self.each; queues];
        let mut latencies = Vec::new();
        let end = Wall::now().later(Wall(self.seconds * 1_000_000_000));
        let mut outstanding = 0;
        let mut now = Wall::now();
        while now < end || outstanding > 0 {
            for queue in 0..queues {
                while open[queue] > 0 && now < end {
                    let Some(slot) = client.ask(queue, kind, next() / 512, length, &payload)? else { break };
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
        Ok(latencies)
    }
}
