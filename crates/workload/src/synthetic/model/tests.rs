use super::compare::Moment;
use super::moments::KNOWN;
use super::*;
use crate::synthetic;
use crate::trace::profile::Profile;

fn all(model: &Model, device: u64, seed: u64) -> Vec<Request> {
    let mut source = Modeled::new(model, "model", device, seed).unwrap();
    std::iter::from_fn(|| source.next_request().unwrap()).collect()
}

fn close(found: Option<f64>, wanted: f64, part: f64) {
    let found = found.unwrap();
    assert!((found - wanted).abs() <= part * wanted, "{found}, wanted {wanted}");
}

#[test]
fn the_workloads_of_the_papers_have_their_moments() {
    for known in KNOWN {
        let moments = moments::read(&format!("{} footprint=4GiB requests=100000", known.name)).unwrap();
        let profile = fit::profile(&moments.model(known.title), 1).unwrap();
        let (read, write) = (profile.operation("read").unwrap(), profile.operation("write").unwrap());
        assert!((read.share - moments.read).abs() < 0.006, "{}: {}", known.name, read.share);
        close(read.size_kib.mean, moments.sectors[0] / 2.0, 0.005);
        // Websearch has only about a hundred writes.
        close(write.size_kib.mean, moments.sectors[1] / 2.0, 0.03);
        close(profile.arrivals.gap_us.mean, moments.gap_ps as f64 / 1e6, 0.015);
        close(profile.arrivals.gap_us.variation, 1.0, 0.02);
        assert_eq!((read.aligned, write.aligned), (1.0, 1.0));
    }
}

#[test]
fn mean_sizes_between_sectors_are_exact() {
    let moments = moments::read("read=1 read_size=2.25KiB interarrival=1ms").unwrap();
    let model = moments.model("");
    assert_eq!(model.operations.len(), 1);
    assert_eq!(model.operations[0].sizes, [(4, 500_000), (5, 500_000)]);
    let whole = moments::read("read=0 write_size=4KiB interarrival=1ms").unwrap().model("");
    assert_eq!((whole.operations[0].sizes.clone(), whole.operations[0].weight), (vec![(8, 1_000_000)], 1_000_000));
}

#[test]
fn gaps_have_the_requested_variation() {
    for cv in ["0", "0.5", "1", "2.5"] {
        let text = format!("read=1 read_size=4k interarrival=3ms cv={cv} footprint=1GiB requests=300000");
        let profile = fit::profile(&moments::read(&text).unwrap().model(""), 1).unwrap();
        let wanted: f64 = cv.parse().unwrap();
        close(profile.arrivals.gap_us.mean, 3000.0, 0.015);
        let found = profile.arrivals.gap_us.variation.unwrap();
        assert!((found - wanted).abs() <= 0.06 * wanted, "{found}, wanted {wanted}");
    }
}

#[test]
fn invalid_moments_are_rejected() {
    let error = |text: &str| moments::read(text).unwrap_err();
    assert!(error("financial3").contains("financial1, financial2"));
    assert!(error("read=1 read_size=4k").contains("`interarrival` is needed"));
    assert!(error("read=50% read_size=4k interarrival=1ms").contains("`write_size` is needed"));
    assert!(error("financial1 read=150%").contains("`read=150%`"));
    assert!(error("financial1 cv=x").contains("coefficient of variation"));
    assert!(error("financial1 color=red").contains("no such moment"));
    assert!(error("financial1 read_size=100").contains("from 512 B"));
}

/// Returns a workload with everything that a fit has to find.
fn known() -> Model {
    let mut model = moments::read("read=60% read_size=4KiB write_size=8KiB interarrival=2ms cv=2 requests=60000")
        .unwrap()
        .model("known");
    let [read, write] = &mut model.operations[..] else { panic!() };
    read.sizes = vec![(8, 70), (32, 30)];
    (read.extents, read.sequential) = (vec![(0, 20_000)], 0.1);
    read.zones = vec![Zone { part: 0.1, weight: 0.7 }, Zone { part: 0.9, weight: 0.3 }];
    (write.extents, write.sequential) = (vec![(0, 5_000), (20_000, 5_000)], 0.3);
    write.zones = vec![Zone { part: 0.2, weight: 0.8 }, Zone { part: 0.8, weight: 0.2 }];
    model
}

fn fitted(profile: &Profile) -> fit::Fitted {
    fit::fit(profile, 7, &mut |_| true).unwrap().unwrap()
}

fn moment<'a>(moments: &'a [Moment], name: &str) -> &'a Moment {
    moments.iter().find(|moment| moment.name == name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn a_fit_recovers_known_parameters() {
    let fitted = fitted(&fit::profile(&known(), 3).unwrap());
    let off = |name: &str| moment(&fitted.moments, name).deviation.abs();
    for name in ["read share", "write share", "read sequential", "write sequential", "read starts at 4K"] {
        assert!(off(name) < 0.02, "{name}: {}", off(name));
    }
    for name in ["read KiB mean", "write KiB mean", "read KiB deviation", "gap mean ms", "footprint MiB"] {
        assert!(off(name) < 0.05, "{name}: {}", off(name));
    }
    for name in ["read hottest 10 %", "read hottest 20 %", "write hottest 10 %", "write hottest 20 %"] {
        assert!(off(name) < 0.08, "{name}: {}", off(name));
    }
    // Few gaps of a lognormal distribution cause most of its variance.
    assert!(off("gap CV") < 0.25, "{}", off("gap CV"));
    let sizes = &fitted.model.operations[0].sizes;
    assert_eq!(sizes.iter().map(|(sectors, _)| *sectors).collect::<Vec<_>>(), [8, 32]);
    assert!((fitted.model.operations[0].sequential - 0.1).abs() < 0.02);
    // The model is unchanged after a conversion to JSON and back.
    assert!(Model::parse(&fitted.model.to_json()) == Ok(fitted.model.clone()));
}

#[test]
fn gaps_that_come_in_bursts_stay_in_bursts() {
    // Nine of ten short gaps are followed by a short one.
    let mut model = known();
    let gap = |ps: u64| Gap { from_ps: ps, to_ps: ps + 1, mean_ps: ps as f64, weight: 1.0 };
    model.arrivals = ArrivalModel {
        gaps: vec![gap(1 << 20), gap(1 << 32)],
        transitions: vec![(21, 21, 9), (21, 33, 1), (33, 21, 1), (33, 33, 9)],
    };
    let profile = fit::profile(&model, 3).unwrap();
    close(profile.arrivals.correlation, 0.8, 0.03);
    let fitted = fitted(&profile);
    assert!(moment(&fitted.moments, "gap correlation").deviation.abs() < 0.03);
    assert!(moment(&fitted.moments, "dispersion in 0.1 s").deviation.abs() < 0.3);
}

#[test]
fn the_same_seed_makes_the_same_requests_inside_the_device() {
    let model = known();
    let device = model.end().unwrap();
    let requests = all(&model, device, 1);
    assert_eq!(requests.len(), 60_000);
    assert_eq!(requests, all(&model, device, 1));
    assert_ne!(requests, all(&model, device, 2));
    assert!(requests.iter().all(|request| request.lba + u64::from(request.sectors) <= device));
    assert_eq!(requests[0].arrival, Time::ZERO);
    assert!(requests.windows(2).all(|pair| pair[0].arrival <= pair[1].arrival));
    let error = Modeled::new(&model, "model", device - 1, 1).err().unwrap().0;
    assert!(error.contains("--scale-footprint"), "{error}");
}

#[test]
fn invalid_models_are_rejected() {
    let broken = |change: fn(&mut Model)| {
        let mut model = known();
        change(&mut model);
        Model::parse(&model.to_json()).unwrap_err()
    };
    assert!(broken(|model| model.model = "other".into()).contains("this version reads"));
    assert!(broken(|model| model.requests = 0).contains("`requests`"));
    assert!(broken(|model| model.operations.clear()).contains("`operations`"));
    assert!(broken(|model| model.operations[0].operation = "erase".into()).contains("must be one of read"));
    assert!(broken(|model| model.operations[0].sizes = vec![(0, 1)]).contains("flushes only"));
    assert!(broken(|model| model.operations[0].sizes = vec![(8, u64::MAX), (9, 1)]).contains("2^64"));
    assert!(broken(|model| model.operations[0].sequential = 1.5).contains("probability"));
    assert!(broken(|model| model.operations[0].zones[0].part = 0.5).contains("not to 1"));
    assert!(broken(|model| model.operations[0].extents = vec![(1 << 60, 1)]).contains("16 EiB"));
    assert!(broken(|model| model.arrivals.gaps.clear()).contains("`gaps`"));
    assert!(broken(|model| model.arrivals.gaps[0].mean_ps = 1e18).contains("`gaps`"));
    assert!(broken(|model| model.arrivals.transitions = vec![(0, 63, 1)]).contains("`transitions`"));
    assert!(Model::parse("{\"color\": 1}").unwrap_err().contains("not a model"));
}

#[test]
fn scaling_changes_rate_footprint_and_number() {
    let profile = fit::profile(&known(), 3).unwrap();
    let mut model = fitted(&profile).model;
    let pages = model.end().unwrap();
    fit::scale(&mut model, Some(30_000), Some(3.0), Some(0.5)).unwrap();
    assert!(model.end().unwrap().abs_diff(pages / 2) <= 16);
    let scaled = fit::profile(&model, 3).unwrap();
    assert_eq!(scaled.requests, 30_000);
    close(scaled.arrivals.gap_us.mean, profile.arrivals.gap_us.mean.unwrap() / 3.0, 0.05);
    assert!(fit::scale(&mut model, None, Some(0.0), None).is_err());
    assert!(fit::fit(&Profile::default(), 1, &mut |_| true).is_err());
    assert!(fit::fit(&profile, 1, &mut |_| false).unwrap().is_none());
}

#[test]
fn models_convert_to_jobs() {
    let mut model = known();
    let words = words::words(&model).unwrap();
    let text = words::line(&words);
    assert!(text.starts_with("rw=randrw rwmixread=60 bssplit=4096/70:16384/30,8192/100 "), "{text}");
    let mut jobs = synthetic::parse(&text, 1 << 40, 1).unwrap();
    let profile = fit::profile_of(jobs[0].source.as_mut()).unwrap();
    assert_eq!(profile.requests, 60_000);
    assert!((profile.operation("read").unwrap().share - 0.6).abs() < 0.01);
    close(profile.arrivals.gap_us.mean, 2000.0, 0.02);
    close(profile.operation("read").unwrap().size_kib.mean, 7.6, 0.02);
    assert!(words::file(&words, "db", "source").starts_with("; source\n[db]\nioengine=libaio\nrw=randrw\n"));
    model.operations[0].operation = "trim".to_owned();
    assert!(words::words(&model).unwrap_err().0.contains("cannot mix trims"));
}
