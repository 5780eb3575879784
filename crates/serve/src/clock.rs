//! The clock on the wall, and what simulated time it is by it.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use floatgate_core::sim::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// A point in real time, or a span of it, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(pub u64);

impl Wall {
    /// Later than anything.
    pub const NEVER: Wall = Wall(u64::MAX);

    /// The clock now.
    #[inline]
    pub fn now() -> Wall {
        let now = clock_gettime(ClockId::Monotonic);
        Wall(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// A span of whole microseconds.
    pub const fn from_us(us: u64) -> Wall {
        Wall(us * 1000)
    }

    /// The span from `earlier` to `self`, zero if it would be negative.
    #[inline]
    pub fn since(self, earlier: Wall) -> Wall {
        Wall(self.0.saturating_sub(earlier.0))
    }

    /// `span` later.
    #[inline]
    pub fn later(self, span: Wall) -> Wall {
        Wall(self.0.saturating_add(span.0))
    }

    /// `span` earlier, or the start of the clock.
    #[inline]
    pub fn earlier(self, span: Wall) -> Wall {
        Wall(self.0.saturating_sub(span.0))
    }

    /// In microseconds, for reports only.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// As a span in the unit of simulated time, for distributions.
    pub fn as_time(self) -> Time {
        Time(self.0.saturating_mul(1000))
    }
}

/// The processor time that this thread has used.
pub fn thread_time() -> Wall {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Wall(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Has the kernel end this thread's waits at their time, and not up to 50 us later, as it may by default.
pub fn set_timer_slack() {
    // A refusal leaves the waits as they are, which calibration finds out.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Simulated time that passes in a unit of real time, as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    numerator: u64,
    denominator: u64,
}

impl Default for Speed {
    fn default() -> Self {
        Speed { numerator: 1, denominator: 1 }
    }
}

impl Speed {
    /// As a number, for reports only.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl FromStr for Speed {
    type Err = String;
    fn from_str(text: &str) -> Result<Speed, String> {
        let wrong = || format!("`{text}` is no speed: a decimal number from 0.0001 to 100, like 0.1");
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}");
        let is_number = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let numerator = digits.parse::<u64>().ok().filter(|_| is_number).ok_or_else(wrong)?;
        let denominator = 10_u64.pow(fraction.len() as u32);
        let in_range = numerator * 10_000 >= denominator && numerator <= 100 * denominator;
        if in_range { Ok(Speed { numerator, denominator }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// Which simulated time it is.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Wall,
    speed: Speed,
}

impl Clock {
    /// Simulated time 0 is at `start`.
    pub fn new(start: Wall, speed: Speed) -> Clock {
        Clock { start, speed }
    }

    /// The simulated time at a real one, rounded down: the simulation never runs ahead.
    #[inline]
    pub fn simulated(&self, wall: Wall) -> Time {
        let ps = wall.since(self.start).0.saturating_mul(1000);
        if self.speed.numerator == self.speed.denominator {
            return Time(ps);
        }
        let scaled = u128::from(ps) * u128::from(self.speed.numerator) / u128::from(self.speed.denominator);
        Time(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// The first real time at which a simulated one has come.
    #[inline]
    pub fn wall(&self, time: Time) -> Wall {
        self.start.later(self.span(time))
    }

    /// The real span in which a simulated one passes, rounded up.
    #[inline]
    pub fn span(&self, span: Time) -> Wall {
        if self.speed.numerator == self.speed.denominator {
            return Wall(span.0.div_ceil(1000));
        }
        let ps = u128::from(span.0) * u128::from(self.speed.denominator);
        Wall(u64::try_from(ps.div_ceil(u128::from(self.speed.numerator) * 1000)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_exact() {
        let speed = |text: &str| text.parse::<Speed>();
        assert_eq!(speed("0.1"), Ok(Speed { numerator: 1, denominator: 10 }));
        assert_eq!(speed("1").map(Speed::as_f64), Ok(1.0));
        assert_eq!(speed("2.50").map(Speed::as_f64), Ok(2.5));
        for wrong in ["", ".", "0", "-1", "1e3", "0.00001", "101", "1.2.3", "0.1234567890", "x"] {
            assert!(speed(wrong).is_err_and(|text| text.contains("from 0.0001 to 100")), "{wrong}");
        }
    }

    #[test]
    fn the_simulation_never_runs_ahead() {
        for text in ["1", "0.1", "0.3", "7", "0.0001", "99.99"] {
            let clock = Clock::new(Wall(1_000_007), text.parse().unwrap());
            for ps in [0, 1, 999, 1000, 1001, 60_000_000, 123_456_789_012_345] {
                let wall = clock.wall(Time(ps));
                assert!(clock.simulated(wall) >= Time(ps), "{text} {ps}: it has come");
                assert!(wall == Wall(1_000_007) || clock.simulated(wall.earlier(Wall(1))) < Time(ps), "{text} {ps}");
            }
        }
        let clock = Clock::new(Wall(5000), Speed::default());
        assert_eq!(clock.simulated(Wall(65_000)), Time::from_us(60));
        assert_eq!(clock.simulated(Wall(0)), Time::ZERO);
        let slow = Clock::new(Wall(0), "0.1".parse().unwrap());
        assert_eq!(slow.wall(Time::from_us(60)), Wall::from_us(600));
    }
}
