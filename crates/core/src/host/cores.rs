//! Controller cores: run the work of the firmware, which waits in one queue.

use std::collections::VecDeque;

use crate::config::{DeviceConfig, Firmware, WritePolicy};
use crate::sim::id::{PlaneId, RequestId};
use crate::sim::rng::Rng;
use crate::sim::time::Time;

/// Piece of work for a core, named after the step that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Receive a request that has arrived.
    Receive(RequestId),
    /// Admit this many units of a write.
    Admit(RequestId, u32),
    /// Search the buffer for units of a read: index of the first one, and number of units.
    Search(RequestId, u32, u32),
    /// Look up units of a read in the map: index of the first one, and number of units.
    LookUp(RequestId, u32, u32),
    /// Look up this many units of a trim.
    Trim(RequestId, u32),
    /// Write back this many units of the buffer.
    WriteOut(u32),
    /// Choose a victim for garbage collection in a plane.
    Clean(PlaneId),
    /// Complete a request.
    Answer(RequestId),
}

impl Work {
    /// Returns the request that the work belongs to, or `NONE`.
    pub fn request(self) -> RequestId {
        match self {
            Work::Receive(id)
            | Work::Admit(id, _)
            | Work::Search(id, ..)
            | Work::LookUp(id, ..)
            | Work::Trim(id, _)
            | Work::Answer(id) => id,
            Work::WriteOut(_) | Work::Clean(_) => RequestId::NONE,
        }
    }
}

/// Piece of work that a core has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// The core.
    pub core: u32,
    /// The work.
    pub work: Work,
    /// Start of the work.
    pub start: Time,
    /// End of the work.
    pub end: Time,
    /// Time that the work has waited for a core.
    pub waited: Time,
}

/// Result of queueing a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    /// The work takes no time, and was not queued.
    AtOnce,
    /// A core has started the work.
    Started(Started),
    /// The work waits for a core.
    Waits,
}

/// Core of the controller.
#[derive(Clone, Copy, Debug, Default)]
struct Core {
    work: Option<Work>,
    /// End of its latest work.
    until: Time,
    /// Total working time, including the latest work.
    worked: Time,
}

/// Time that each kind of work takes, per mapping unit or per request.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    interrupt: Time,
    lookup: Time,
    admission: Time,
    placement: Time,
    gc: Time,
    buffer: Time,
}

/// Cores, and the work that waits for them.
#[derive(Clone, Debug)]
pub struct Cores {
    cores: Vec<Core>,
    /// Work, the time that it takes, and when it was queued.
    queue: VecDeque<(Work, Time, Time)>,
    costs: Costs,
    /// `None` if each piece of work takes exactly its cost.
    jitter: Option<Jitter>,
}

/// Variation of the times of work: a log-normal distribution around the cost.
#[derive(Clone, Debug)]
struct Jitter {
    /// Standard deviation of the logarithm of the time.
    sigma: f64,
    rng: Rng,
}

impl Jitter {
    /// Returns the time of a piece of work that takes `mean` on average. With a standard normal Z, exp(sigma Z) has the
    /// mean exp(sigma^2 / 2).
    fn draw(&mut self, mean: Time) -> Time {
        let exponent = self.sigma * self.rng.normal() - self.sigma * self.sigma / 2.0;
        Time((mean.0 as f64 * libm::exp(exponent)).round_ties_even() as u64)
    }
}

impl Cores {
    /// Creates idle cores. Returns `None` if the device has no firmware model.
    pub fn new(config: &DeviceConfig, seed: u64) -> Option<Cores> {
        let firmware = config.controller.firmware.as_ref()?;
        let buffer = config.active_buffer();
        Some(Cores {
            cores: vec![Core::default(); firmware.cores as usize],
            queue: VecDeque::new(),
            costs: Costs::new(
                firmware,
                buffer.is_some(),
                buffer.is_some_and(|buffer| buffer.write == WritePolicy::WriteBack),
            ),
            jitter: (firmware.jitter > 0.0)
                .then(|| Jitter { sigma: firmware.jitter, rng: Rng::new(seed, "firmware-jitter") }),
        })
    }

    /// Returns the time that a piece of work takes, or its mean if the time varies.
    pub fn cost(&self, work: Work) -> Time {
        let times = |count: u32, each: Time| Time(u64::from(count) * each.0);
        match work {
            Work::Receive(_) | Work::Answer(_) => self.costs.interrupt,
            Work::Admit(_, units) => times(units, self.costs.admission),
            Work::Search(_, _, units) => times(units, self.costs.buffer),
            Work::LookUp(_, _, units) | Work::Trim(_, units) => times(units, self.costs.lookup),
            Work::WriteOut(units) => times(units, self.costs.placement),
            Work::Clean(_) => self.costs.gc,
        }
    }

    /// Starts a piece of work on an idle core, or queues it.
    #[inline(never)]
    pub fn queue(&mut self, work: Work, now: Time) -> Queued {
        let cost = self.cost(work);
        if cost == Time::ZERO {
            return Queued::AtOnce;
        }
        let cost = self.jitter.as_mut().map_or(cost, |jitter| jitter.draw(cost));
        match self.cores.iter().position(|core| core.work.is_none()) {
            Some(core) => Queued::Started(self.start(core, work, cost, now, now)),
            None => {
                self.queue.push_back((work, cost, now));
                Queued::Waits
            }
        }
    }

    fn start(&mut self, index: usize, work: Work, cost: Time, since: Time, now: Time) -> Started {
        let core = &mut self.cores[index];
        (core.work, core.until) = (Some(work), now.later(cost));
        core.worked += cost;
        Started { core: index as u32, work, start: now, end: core.until, waited: now - since }
    }

    /// Completes the work of a core. Returns this work, and the work that the core starts next.
    pub fn end(&mut self, core: u32, now: Time) -> (Option<Work>, Option<Started>) {
        let done = self.cores[core as usize].work.take();
        let next = self.queue.pop_front();
        (done, next.map(|(work, cost, since)| self.start(core as usize, work, cost, since, now)))
    }

    /// Returns the time for which each core has worked until `at`.
    pub fn worked(&self, at: Time) -> impl Iterator<Item = Time> + '_ {
        self.cores.iter().map(move |core| core.worked.since(core.until.since(at)))
    }

    /// Returns `true` if all cores are idle and no work is queued.
    pub fn are_idle(&self) -> bool {
        self.queue.is_empty() && self.cores.iter().all(|core| core.work.is_none())
    }
}

impl Costs {
    fn new(firmware: &Firmware, has_buffer: bool, writes_back: bool) -> Costs {
        let time = |cost: crate::config::units::FirmwareCost| cost.time(firmware.clock);
        let (lookup, buffer) = (time(firmware.lookup), time(firmware.buffer));
        let placement = lookup + time(firmware.allocation);
        Costs {
            interrupt: time(firmware.interrupt),
            lookup,
            admission: match (has_buffer, writes_back) {
                (_, true) => buffer,
                (true, false) => buffer + placement,
                (false, false) => placement,
            },
            placement,
            gc: time(firmware.gc),
            buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(count: u32) -> Cores {
        let options = [format!("controller.firmware.cores={count}"), "controller.firmware.lookup=1us".to_owned()];
        Cores::new(&crate::config::load("tiny", &options).unwrap(), 1).unwrap()
    }

    #[test]
    fn work_waits_for_a_core_in_the_order_of_arrival() {
        let mut cores = cores(1);
        let works = [1, 2, 3].map(|units| Work::LookUp(RequestId(0), 0, units));
        let us = |us: u64| Time(us * 1_000_000);
        let Queued::Started(first) = cores.queue(works[0], us(0)) else { panic!("an idle core must start the work") };
        assert_eq!((first.start, first.end, first.waited), (us(0), us(1), us(0)));
        assert_eq!([cores.queue(works[1], us(0)), cores.queue(works[2], us(0))], [Queued::Waits; 2]);

        let (done, next) = cores.end(0, us(1));
        let second = Started { core: 0, work: works[1], start: us(1), end: us(3), waited: us(1) };
        assert_eq!((done, next), (Some(works[0]), Some(second)));
        // The core has completed half of its second piece of work.
        assert_eq!(cores.worked(us(2)).collect::<Vec<_>>(), [us(2)]);
        assert_eq!(cores.end(0, us(3)).1.map(|third| (third.end, third.waited)), Some((us(6), us(3))));
        assert_eq!(cores.end(0, us(6)), (Some(works[2]), None));
        assert!(cores.are_idle());
    }

    /// Draws `count` times around 10 us.
    fn drawn(sigma: f64, seed: u64, count: usize) -> Vec<f64> {
        let mut jitter = Jitter { sigma, rng: Rng::new(seed, "firmware-jitter") };
        (0..count).map(|_| jitter.draw(Time(10_000_000)).0 as f64 / 10_000_000.0).collect()
    }

    /// The mean is the cost, and the logarithm has the mean -sigma^2 / 2 and the standard deviation sigma. The bounds
    /// are four standard errors: of the time, its standard deviation is sqrt(exp(sigma^2) - 1).
    #[test]
    fn jitter_keeps_the_mean_and_has_the_stated_deviation() {
        const COUNT: f64 = 100_000.0;
        for sigma in [0.01, 0.2, 1.0] {
            let times = drawn(sigma, 3, COUNT as usize);
            let mean = times.iter().sum::<f64>() / COUNT;
            let spread = (libm::exp(sigma * sigma) - 1.0).sqrt();
            assert!((mean - 1.0).abs() < 4.0 * spread / COUNT.sqrt(), "{sigma}: mean {mean}");
            let logs: Vec<f64> = times.iter().map(|&time| libm::log(time)).collect();
            let of_logs = logs.iter().sum::<f64>() / COUNT;
            assert!((of_logs + sigma * sigma / 2.0).abs() < 4.0 * sigma / COUNT.sqrt(), "{sigma}: {of_logs}");
            let variance = logs.iter().map(|log| (log - of_logs) * (log - of_logs)).sum::<f64>() / COUNT;
            let deviation = variance.sqrt();
            assert!((deviation / sigma - 1.0).abs() < 4.0 / (2.0 * COUNT).sqrt(), "{sigma}: {deviation}");
        }
    }

    #[test]
    fn jitter_depends_on_the_seed_alone() {
        assert_eq!(drawn(0.3, 1, 100), drawn(0.3, 1, 100));
        assert_ne!(drawn(0.3, 1, 100), drawn(0.3, 2, 100));
    }

    #[test]
    fn work_without_a_cost_needs_no_core() {
        let mut cores = cores(2);
        assert_eq!(cores.queue(Work::Receive(RequestId(0)), Time::ZERO), Queued::AtOnce);
        assert!(cores.are_idle());
    }
}
