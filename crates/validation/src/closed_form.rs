//! Closed forms: formulas from papers, which share no code with the simulator.

use floatgate_core::device_file::{DeviceConfig, Frontiers};
use serde::Deserialize;

/// Closed form, with its parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClosedForm {
    /// Write amplification of the greedy victim policy, [`greedy`], at the device's [`effective_spare`].
    Greedy,
    /// Write amplification of [`fifo`] at the device's [`effective_spare`].
    Fifo,
    /// Write amplification of [`random`] at the device's [`effective_spare`].
    Random,
    /// Write amplification of [`d_choices`] at the device's [`effective_spare`].
    DChoices {
        /// Number of blocks that are drawn for each choice.
        d: u32,
    },
    /// Share of the time during which a channel transfers data, [`channel_utilization`].
    ChannelUtilization {
        /// Transfer time of a page, in microseconds.
        transfer_us: f64,
        /// Cell time of an operation, in microseconds.
        cell_us: f64,
        /// Number of dies on the channel, each with queued work.
        dies: u32,
        /// Number of pages per command.
        #[serde(default = "one")]
        pages: u32,
    },
    /// Mean response time of an M/D/1 queue, [`m_d_1`].
    MD1 {
        /// Service time, in microseconds.
        service_us: f64,
        /// Arrivals per second.
        rate: f64,
    },
    /// Minimum of several rates: those of the link, the channels and the dies.
    LeastOf(Vec<f64>),
}

fn one() -> u32 {
    1
}

impl ClosedForm {
    /// Returns the value for a device.
    pub fn value(&self, device: &DeviceConfig) -> f64 {
        let (pages, spare) = (device.data_units_per_block(), || effective_spare(device));
        match self {
            ClosedForm::Greedy => greedy(pages, spare()),
            ClosedForm::Fifo => fifo(spare()),
            ClosedForm::Random => random(spare()),
            ClosedForm::DChoices { d } => d_choices(pages, spare(), *d),
            ClosedForm::ChannelUtilization { transfer_us, cell_us, dies, pages } => {
                channel_utilization(*transfer_us, *cell_us, *dies, *pages)
            }
            ClosedForm::MD1 { service_us, rate } => m_d_1(*service_us, *rate),
            ClosedForm::LeastOf(rates) => rates.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }
}

/// Returns the over-provisioning of the space that can hold data when a timed run chooses a victim. This space excludes
/// the free blocks, the block that the host has just opened, and half of the block that garbage collection fills.
pub fn effective_spare(device: &DeviceConfig) -> f64 {
    let open = match device.gc.frontiers {
        Frontiers::Separate => 1.5,
        Frontiers::Single => 1.0,
    };
    let blocks = f64::from(device.geometry.blocks) - f64::from(device.soft_threshold()) - open;
    let space = f64::from(device.total_planes()) * blocks * f64::from(device.data_units_per_block());
    1.0 - device.logical_units() as f64 / space
}

/// Finds the root of `f` between `low` and `high`, where the sign of `f` changes.
fn bisect(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let rising = f(high) > 0.0;
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if (f(middle) > 0.0) == rising { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

/// Returns the write amplification of the greedy policy in the mean field (Van Houdt, "A mean field model for a class
/// of garbage collection algorithms in flash-based solid state drives", SIGMETRICS 2013), for blocks of `b` pages and
/// the spare share `sf`. A whole k and x in [0, 1] solve H_b - H_k + x / k = (b - k + x) / (b rho), and b - k + x pages
/// of a victim are invalid.
pub fn greedy(b: u32, sf: f64) -> f64 {
    let pages = f64::from(b);
    let rho = 1.0 - sf;
    let harmonic = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
    (1..b)
        .find_map(|k| {
            let kept = f64::from(k);
            let x = ((pages - kept) / (pages * rho) - (harmonic(b) - harmonic(k))) / (1.0 / kept - 1.0 / (pages * rho));
            (0.0..=1.0).contains(&x).then(|| pages / (pages - kept + x))
        })
        .expect("there is a k below b")
}

/// Returns the write amplification of d-choices in the mean field (Van Houdt 2013). Let s_i be the share of blocks with
/// at most i valid pages, and m_i the share of blocks with exactly i. Then phi i m_i = 1 - (1 - s_(i-1))^d, the shares
/// add up to 1, and the mean of i is b rho.
pub fn d_choices(b: u32, sf: f64, d: u32) -> f64 {
    let pages = f64::from(b);
    let rho = 1.0 - sf;
    // Returns the sum of the shares and the mean of i, for a given share of blocks without valid pages.
    let shares = |phi: f64, none: f64| {
        let mut sum = none;
        let mut mean = 0.0;
        for i in 1..=b {
            let chosen = if sum < 1.0 { -libm::expm1(f64::from(d) * libm::log1p(-sum)) } else { 1.0 };
            let share = chosen / (phi * f64::from(i));
            sum += share;
            mean += f64::from(i) * share;
        }
        (sum, mean)
    };
    let mean_of = |phi: f64| {
        let none = libm::exp(bisect(-700.0, 0.0, |log| shares(phi, libm::exp(log)).0 - 1.0));
        shares(phi, none).1
    };
    // A victim has phi b rho invalid pages, between a few and all.
    let phi = bisect(0.01 / rho, 1.0 / rho, |phi| pages * rho - mean_of(phi));
    1.0 / (phi * rho)
}

/// Returns the write amplification of FIFO: alpha / (alpha + W(-alpha e^-alpha)), where alpha = T / U, and W is the
/// principal branch of Lambert's function (Desnoyers, "Analytic models of SSD write performance", ACM TOS 2014). W is
/// found by Newton's method.
pub fn fifo(sf: f64) -> f64 {
    let alpha = 1.0 / (1.0 - sf);
    let z = -alpha * libm::exp(-alpha);
    let mut w = -0.1;
    for _ in 0..100 {
        let e = libm::exp(w);
        w -= (w * e - z) / (e * (w + 1.0));
    }
    alpha / (alpha + w)
}

/// Returns the write amplification of FIFO under writes of several classes, each uniform over its own data: `(share of
/// the data, share of the writes)` of each class. A block is reclaimed T host writes after it was written. A unit is
/// then still valid with the probability q = e^(-w T / (d U)), and is appended again. So a class appends w / (1 - q)
/// units per host write, and T is the value at which the classes fill the space in T host writes. With one class, this
/// is [`fifo`].
pub fn fifo_of_classes(classes: &[(f64, f64)], sf: f64) -> f64 {
    // T is in units of U. The space is 1 / (1 - sf) units.
    let appended = |t: f64| classes.iter().map(|(data, writes)| writes / -libm::expm1(-writes * t / data)).sum::<f64>();
    let t = bisect(1e-9, 100.0, |t| t * appended(t) - 1.0 / (1.0 - sf));
    appended(t)
}

/// Returns the write amplification of random victims, which have the mean share of invalid pages.
pub fn random(sf: f64) -> f64 {
    1.0 / sf
}

/// Returns the share of the time during which a channel transfers data. Each of n dies transfers k pages of X
/// microseconds one after another, and then its cells work for C microseconds: n k X / (k X + C), at most 1 (Hu et al.
/// 2013, Section 5.1).
pub fn channel_utilization(transfer_us: f64, cell_us: f64, dies: u32, pages: u32) -> f64 {
    let moved = f64::from(pages) * transfer_us;
    (f64::from(dies) * moved / (moved + cell_us)).min(1.0)
}

/// Returns the mean response time of one server with constant service time and Poisson arrivals (Pollaczek-Khinchine).
pub fn m_d_1(service_us: f64, rate: f64) -> f64 {
    let load = rate * service_us / 1e6;
    service_us * (1.0 + load / (2.0 * (1.0 - load)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independently computed values: pages per block, spare share, and write amplifications of greedy, d = 10, d = 2,
    /// FIFO and random.
    #[rustfmt::skip]
    const TABLE: [(u32, f64, [f64; 5]); 14] = [
        (64,  0.05, [8.8501, 9.2842, 13.2662, 10.1724, 20.0000]),
        (64,  0.07, [6.6155, 6.8939,  9.6354,  7.3177, 14.2857]),
        (64,  0.10, [4.8213, 5.0002,  6.8516,  5.1787, 10.0000]),
        (64,  0.15, [3.3536, 3.4636,  4.6475,  3.5187,  6.6667]),
        (64,  0.20, [2.5993, 2.6754,  3.5330,  2.6927,  5.0000]),
        (64,  0.28, [1.9425, 1.9932,  2.5732,  1.9916,  3.5714]),
        (64,  0.40, [1.4550, 1.4867,  1.8555,  1.4798,  2.5000]),
        (128, 0.05, [9.4605, 9.8161, 13.5874, 10.1724, 20.0000]),
        (128, 0.07, [6.9450, 7.1821,  9.8100,  7.3177, 14.2857]),
        (128, 0.10, [4.9922, 5.1479,  6.9409,  5.1787, 10.0000]),
        (128, 0.15, [3.4344, 3.5314,  4.6881,  3.5187,  6.6667]),
        (128, 0.20, [2.6449, 2.7141,  3.5559,  2.6927,  5.0000]),
        (128, 0.28, [1.9667, 2.0131,  2.5847,  1.9916,  3.5714]),
        (128, 0.40, [1.4674, 1.4964,  1.8609,  1.4798,  2.5000]),
    ];

    #[test]
    fn the_formulas_agree_with_independent_values() {
        for (b, sf, expected) in TABLE {
            let computed = [greedy(b, sf), d_choices(b, sf, 10), d_choices(b, sf, 2), fifo(sf), random(sf)];
            for (computed, expected) in computed.into_iter().zip(expected) {
                assert!((computed - expected).abs() < 1e-4, "b = {b}, Sf = {sf}: {computed}, the table has {expected}");
            }
        }
        // Hu et al. 2013, Section 5.1: 72.5 and 69.1 percent. M/D/1 of 130.6 us at half the load: 195.9 us.
        assert!((channel_utilization(52.8, 20.0, 1, 1) - 0.7253).abs() < 1e-4);
        assert!((channel_utilization(52.8, 200.0, 2, 2) - 0.6911).abs() < 1e-4);
        assert!((m_d_1(130.6, 3828.484) - 195.9).abs() < 1e-3);
    }
}
