//! Real time, and its conversion to simulated time.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use floatgate_core::sim::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// A point in real time, or a span of it, in nanoseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(pub u64);

impl Wall {
    /// A time that is never reached.
    pub const NEVER: Wall = Wall(u64::MAX);

    /// Returns the current time.
    #[inline]
    pub fn now() -> Wall {
        let now = clock_gettime(ClockId::Monotonic);
        Wall(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// Creates a span of whole microseconds.
    pub const fn from_us(us: u64) -> Wall {
        Wall(us * 1000)
    }

    /// Returns the span from `earlier` to `self`, or zero if it would be negative.
    #[inline]
    pub fn since(self, earlier: Wall) -> Wall {
        Wall(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time `span` later.
    #[inline]
    pub fn later(self, span: Wall) -> Wall {
        Wall(self.0.saturating_add(span.0))
    }

    /// Returns the time `span` earlier, or 0 if the result would be negative.
    #[inline]
    pub fn earlier(self, span: Wall) -> Wall {
        Wall(self.0.saturating_sub(span.0))
    }

    /// Converts to microseconds, for reports only.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Converts to the unit of simulated time, for distributions.
    pub fn as_time(self) -> Time {
        Time(self.0.saturating_mul(1000))
    }
}

/// Returns the processor time used by this thread.
pub fn thread_time() -> Wall {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Wall(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Makes the kernel end this thread's waits on time. By default, it may end them up to 50 us late.
pub fn set_timer_slack() {
    // If the system refuses, waits end later, and calibration measures that.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Simulated time that passes per unit of real time, as an exact fraction.
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
    /// Converts to a number, for reports only.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl FromStr for Speed {
    type Err = String;
    fn from_str(text: &str) -> Result<Speed, String> {
        let wrong = || format!("invalid speed `{text}`: expected a decimal number from 0.0001 to 100, such as 0.1");
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

/// A linear function from real time to simulated time.
#[derive(Clone, Copy, Debug)]
struct Line {
    wall: Wall,
    time: Time,
    speed: Speed,
}

impl Line {
    #[inline]
    fn simulated(&self, wall: Wall) -> Time {
        let ps = wall.since(self.wall).0.saturating_mul(1000);
        if self.speed.numerator == self.speed.denominator {
            return self.time.later(Time(ps));
        }
        let scaled = u128::from(ps) * u128::from(self.speed.numerator) / u128::from(self.speed.denominator);
        self.time.later(Time(u64::try_from(scaled).unwrap_or(u64::MAX)))
    }

    #[inline]
    fn wall(&self, time: Time) -> Wall {
        self.wall.later(self.span(time.since(self.time)))
    }

    #[inline]
    fn span(&self, span: Time) -> Wall {
        if self.speed.numerator == self.speed.denominator {
            return Wall(span.0.div_ceil(1000));
        }
        let ps = u128::from(span.0) * u128::from(self.speed.denominator);
        Wall(u64::try_from(ps.div_ceil(u128::from(self.speed.numerator) * 1000)).unwrap_or(u64::MAX))
    }
}

/// Clock of simulated time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    line: Line,
    /// The function before the last change of speed, for times before that change.
    before: Line,
}

impl Clock {
    /// Creates a clock whose simulated time 0 is at `start`.
    pub fn new(start: Wall, speed: Speed) -> Clock {
        let line = Line { wall: start, time: Time::ZERO, speed };
        Clock { line, before: line }
    }

    /// Returns a clock that changes to another speed at `now`. Simulated time does not jump.
    pub fn at_speed(&self, now: Wall, speed: Speed) -> Clock {
        let now = now.max(self.line.wall);
        Clock { line: Line { wall: now, time: self.simulated(now), speed }, before: self.line }
    }

    /// Returns the current speed.
    pub fn speed(&self) -> Speed {
        self.line.speed
    }

    /// Converts real time to simulated time, rounded down: the simulation never runs ahead.
    #[inline]
    pub fn simulated(&self, wall: Wall) -> Time {
        if wall < self.line.wall { self.before.simulated(wall) } else { self.line.simulated(wall) }
    }

    /// Returns the first real time at which a simulated time is reached.
    #[inline]
    pub fn wall(&self, time: Time) -> Wall {
        if time < self.line.time { self.before.wall(time) } else { self.line.wall(time) }
    }

    /// Returns the real span in which a simulated span passes at the current speed, rounded up.
    #[inline]
    pub fn span(&self, span: Time) -> Wall {
        self.line.span(span)
    }

    /// Returns the real span between two simulated times across changes of speed, rounded up.
    #[inline]
    pub fn between(&self, from: Time, to: Time) -> Wall {
        if from >= self.line.time { self.line.span(to.since(from)) } else { self.wall(to).since(self.wall(from)) }
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
                assert!(clock.simulated(wall) >= Time(ps), "{text} {ps}: the time must have passed");
                assert!(wall == Wall(1_000_007) || clock.simulated(wall.earlier(Wall(1))) < Time(ps), "{text} {ps}");
            }
        }
        let clock = Clock::new(Wall(5000), Speed::default());
        assert_eq!(clock.simulated(Wall(65_000)), Time::from_us(60));
        assert_eq!(clock.simulated(Wall(0)), Time::ZERO);
        let slow = Clock::new(Wall(0), "0.1".parse().unwrap());
        assert_eq!(slow.wall(Time::from_us(60)), Wall::from_us(600));
    }

    #[test]
    fn a_change_of_speed_makes_no_jump() {
        let speed = |text: &str| text.parse::<Speed>().unwrap();
        let clock = Clock::new(Wall(1000), speed("1"));
        // 60 us at full speed, then a tenth: the next 60 us of simulated time take 600 us.
        let slow = clock.at_speed(Wall(61_000), speed("0.1"));
        assert_eq!(slow.simulated(Wall(61_000)), Time::from_us(60));
        assert_eq!(slow.wall(Time::from_us(120)), Wall(661_000));
        assert_eq!(slow.between(Time::from_us(30), Time::from_us(120)), Wall(630_000));
        // Times before the change do not move.
        assert_eq!((slow.simulated(Wall(31_000)), slow.wall(Time::from_us(30))), (Time::from_us(30), Wall(31_000)));
        assert_eq!(slow.between(Time::from_us(10), Time::from_us(30)), Wall(20_000));
        let fast = slow.at_speed(Wall(661_000), speed("10"));
        assert_eq!(fast.wall(Time::from_us(1120)), Wall(761_000));
        assert_eq!(fast.simulated(Wall(361_000)), Time::from_us(90));
        assert_eq!(fast.speed(), speed("10"));
    }

    proptest::proptest! {
        #[test]
        fn time_runs_forward_and_never_ahead_across_speed_changes(
            changes in proptest::collection::vec((0..5_000_000_u64, 1..1_000_000_u64), 1..12)
        ) {
            let mut clock = Clock::new(Wall(77), Speed::default());
            let mut now = Wall(77);
            let mut time = Time::ZERO;
            // Upper limit of simulated time, without any rounding, in units of a millionth of a picosecond.
            let mut most = 0u128;
            let mut speed = 10_000u64;
            for (span, next) in changes {
                now = now.later(Wall(span));
                most += u128::from(span) * 1000 * u128::from(speed) * 100;
                let next = next.clamp(1, 1_000_000);
                let found = clock.simulated(now);
                proptest::prop_assert!(found >= time, "{found:?} after {time:?}");
                proptest::prop_assert!(u128::from(found.ps()) * 1_000_000 <= most);
                clock = clock.at_speed(now, format!("{}.{:04}", next / 10_000, next % 10_000).parse().unwrap());
                proptest::prop_assert_eq!(clock.simulated(now), found);
                // The real time computed for a future event is never too early.
                let later = found + Time(123_457);
                proptest::prop_assert!(clock.simulated(clock.wall(later)) >= later);
                proptest::prop_assert!(clock.simulated(Wall(clock.wall(later).0 - 1)) < later);
                (time, speed) = (found, next);
            }
        }
    }
}
