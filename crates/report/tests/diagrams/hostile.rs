//! Robustness of timing diagrams: invalid files are refused with the reason and a remedy. No file causes a panic or
//! unbounded memory use.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use floatgate_core::device_file::Duration;
use floatgate_core::sim::rng::Rng;
use floatgate_core::sim::time::Time;
use floatgate_report::diagram::{MAX_PHASES, MAX_PLANES, Requested, draw};
use floatgate_report::timeline::packets::{
    BEGIN, DebugAnnotation, END, INSTANT, Interned, InternedData, Trace, TracePacket, Track, TrackDescriptor,
    TrackEvent,
};
use prost::Message;

use super::figures::{Figure, US, figures};

const WHOLE: (Time, Time) = (Time::ZERO, Time::NEVER);

fn drawn(bytes: &[u8], span: (Time, Time)) -> Result<String, String> {
    let requested = Requested { span, title: None };
    draw(bytes, "there.pftrace.gz", &requested).map_err(|error| format!("{error:#}"))
}

#[track_caller]
fn refused(bytes: &[u8]) -> String {
    match drawn(bytes, WHOLE) {
        Err(said) => said,
        Ok(_) => panic!("an invalid file was drawn"),
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut unpacked).unwrap();
    unpacked
}

fn packets(bytes: &[u8]) -> Vec<TracePacket> {
    Trace::decode(&unpacked(bytes)[..]).unwrap().packet
}

fn file(packet: Vec<TracePacket>) -> Vec<u8> {
    packed(&Trace { packet }.encode_to_vec())
}

/// Returns the figure with the most kinds of events.
fn example() -> Figure {
    figures().into_iter().find(|figure| figure.name == "suspended-erase").unwrap()
}

fn text(name: &str, text: &str) -> DebugAnnotation {
    let (name, string_value) = (Some(name.to_owned()), Some(text.to_owned()));
    DebugAnnotation { name, string_value, ..Default::default() }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), uint_value: Some(value), ..Default::default() }
}

fn of_event(timestamp: u64, track_event: TrackEvent) -> TracePacket {
    TracePacket { timestamp: Some(timestamp), track_event: Some(track_event), ..Default::default() }
}

/// Returns the first packet of a timeline.
fn about(schema: &str, planes: u64) -> TracePacket {
    let debug_annotations = vec![text("device", "d"), text("config_digest", "0"), number("planes", planes)];
    let (name, r#type) = (Some(schema.to_owned()), Some(INSTANT));
    of_event(0, TrackEvent { name, r#type, debug_annotations, ..Default::default() })
}

/// Returns a timeline of planes of one channel, with `programs` consecutive programs in each.
fn timeline(planes: u64, programs: u64) -> Vec<u8> {
    let mut all = vec![about("floatgate-timeline-2", planes)];
    let named = vec![Interned { iid: Some(1), name: Some("host write".to_owned()) }];
    let interned_data = InternedData { event_categories: named.clone(), event_names: named, ..Default::default() };
    all.push(TracePacket { interned_data: Some(interned_data), ..Default::default() });
    for plane in 0..planes {
        let track_descriptor = TrackDescriptor {
            uuid: Some(Track::Plane(plane).uuid(planes)),
            parent_uuid: Some(Track::Channel(0).uuid(planes)),
            name: Some(format!("chip 0 die 0 plane {plane}")),
            ..Default::default()
        };
        all.push(TracePacket { track_descriptor: Some(track_descriptor), ..Default::default() });
    }
    for program in 0..programs {
        for plane in 0..planes {
            let op = program * planes + plane;
            let track_uuid = Some(Track::Plane(plane).uuid(planes));
            let values = [("op", op), ("plane", plane), ("lun", 0), ("block", 0), ("page", program)];
            let debug_annotations = values.iter().map(|(name, value)| number(name, *value)).collect();
            let (category_iids, name_iid, r#type) = (vec![1], Some(1), Some(BEGIN));
            let begun =
                TrackEvent { track_uuid, debug_annotations, category_iids, name_iid, r#type, ..Default::default() };
            all.push(of_event(program * 100_000, begun));
            let ended = TrackEvent { track_uuid, r#type: Some(END), ..Default::default() };
            all.push(of_event(program * 100_000 + 50_000, ended));
        }
    }
    let name = Some("end of the timeline".to_owned());
    all.push(of_event(0, TrackEvent { name, r#type: Some(INSTANT), ..Default::default() }));
    file(all)
}

#[test]
fn files_that_are_not_timelines_are_refused() {
    for bytes in [&b""[..], b"no gzip", &packed(b""), &packed(b"[1, 2]"), &packed(b"\x0a\x01"), &packed(&[0xff; 9])] {
        let said = refused(bytes);
        assert!(
            said.starts_with("there.pftrace.gz is not a timeline: `floatgate run ... --out DIR --timeline`"),
            "{said}"
        );
    }
    let mut longer = packets(&example().timeline());
    longer.push(about("x", 1));
    assert!(refused(&file(longer)).contains("has data after its end"));
    let other = refused(&file(vec![about("floatgate-timeline-9", 1)]));
    assert!(other.contains("does not have schema floatgate-timeline-2"), "{other}");
}

#[test]
fn truncated_files_are_refused() {
    let whole = example().timeline();
    assert!(drawn(&whole, WHOLE).is_ok());
    for length in 0..whole.len() {
        let said = refused(&whole[..length]);
        assert!(said.contains("there.pftrace.gz"), "{length}: {said}");
    }
    let all = packets(&whole);
    for length in 0..all.len() {
        let said = refused(&file(all[..length].to_vec()));
        assert!(said.contains("is truncated") || said.contains("is not a timeline"), "{said}");
    }
}

#[test]
fn an_endless_packet_does_not_exhaust_memory() {
    // A packet of 2^42 bytes.
    let endless = [0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
    for start in [Vec::new(), Trace { packet: vec![about("floatgate-timeline-2", 1)] }.encode_to_vec()] {
        let said = refused(&packed(&[&start[..], &endless].concat()));
        assert!(said.contains("a packet is longer than 1 MiB"), "{said}");
    }
}

#[test]
fn invalid_events_are_shown() {
    let all = packets(&example().timeline());
    let planes = 1;
    let in_plane = |event: &TrackEvent| event.track_uuid == Some(Track::Plane(0).uuid(planes));
    let is_request = |event: &TrackEvent| event.track_uuid == Some(Track::Requests(0).uuid(planes));
    // Changes the first event that fits.
    let spoiled = |fits: &dyn Fn(&TrackEvent) -> bool, change: &dyn Fn(&mut TrackEvent)| {
        let mut all = all.clone();
        let begun = |event: &&mut TrackEvent| event.r#type == Some(BEGIN) && fits(event);
        change(all.iter_mut().filter_map(|packet| packet.track_event.as_mut()).find(begun).expect("an event"));
        refused(&file(all))
    };
    let cases: [(String, &str); 5] = [
        (spoiled(&in_plane, &|event| event.category_iids = vec![999]), "an unknown operation"),
        (
            spoiled(&in_plane, &|event| event.track_uuid = Some(Track::Plane(77).uuid(planes))),
            "a slice has an invalid end",
        ),
        (spoiled(&is_request, &|event| event.name_iid = None), "an unknown request operation"),
        (spoiled(&in_plane, &|event| event.debug_annotations.clear()), "a number is missing"),
        (spoiled(&in_plane, &|event| event.r#type = Some(END)), "a slice ends that has not begun"),
    ];
    for (said, expected) in cases {
        assert!(said.contains("there.pftrace.gz") && said.ends_with(expected), "{expected}: {said}");
    }
    let mut unnamed = all.clone();
    let names = unnamed.iter_mut().filter_map(|packet| packet.track_descriptor.as_mut());
    names.for_each(|track| track.name = track.name.take().map(|name| name.replace("chip 0", "chip x")));
    assert!(refused(&file(unnamed)).contains("invalid digit"));
}

/// Returns the span that an error message proposes.
fn proposed(said: &str) -> (Time, Time) {
    let (from, to) = said.rsplit_once("such as ").unwrap().1.split_once("..").unwrap();
    let time = |text: &str| text.parse::<Duration>().unwrap().time();
    (if from.is_empty() { Time::ZERO } else { time(from) }, time(to))
}

#[test]
fn too_many_phases_are_refused_with_a_shorter_span() {
    let many = timeline(2, 400);
    let said = refused(&many);
    assert!(said.contains("has 800 phases in this span, but a diagram shows at most 300"), "{said}");
    assert_eq!(proposed(&said), (Time::ZERO, Time(MAX_PHASES as u64 / 2 * 100 * US)));
    let boxes = |svg: &str| svg.matches("class=\"box program\"").count();
    assert_eq!(boxes(&drawn(&many, proposed(&said)).unwrap()), MAX_PHASES);
    // A span from the middle on includes operations that are in flight there.
    let middle = (Time(10_020 * US), Time::NEVER);
    let said = drawn(&many, middle).unwrap_err();
    assert_eq!(proposed(&said), (middle.0, Time(25_000 * US)), "{said}");
    assert_eq!(boxes(&drawn(&many, proposed(&said)).unwrap()), MAX_PHASES);
}

#[test]
fn too_many_planes_are_refused() {
    let said = refused(&timeline(MAX_PLANES as u64 + 1, 2));
    assert!(
        said.contains("activity on more planes in this span than a diagram can show (48)")
            && said.ends_with("a smaller device"),
        "{said}"
    );
    assert!(drawn(&timeline(MAX_PLANES as u64, 2), WHOLE).is_ok());
}

#[test]
fn a_span_without_activity_is_refused_with_the_span_of_activity() {
    let some = timeline(1, 3);
    let said = drawn(&some, (Time(60 * US), Time(90 * US))).unwrap_err();
    assert!(said.contains("no channel or cell activity in this span") && said.ends_with("0ps and 250us"), "{said}");
    assert!(refused(&timeline(1, 0)).ends_with("nothing happened in the recorded span"));
}

/// Changes bytes and numbers at random. Each file must be drawn or refused.
#[test]
fn any_file_is_drawn_or_refused() {
    let (bytes, all) = (unpacked(&example().timeline()), packets(&example().timeline()));
    let numbers = [0, 1, 999, u64::from(u32::MAX), u64::MAX / 1000, u64::MAX];
    let mut rng = Rng::new(1, "hostile");
    let mut drawings = 0;
    for case in 0..3000 {
        let spoiled = if case % 2 == 0 {
            let mut all = all.clone();
            let at = rng.below(all.len() as u64) as usize;
            let packet = &mut all[at];
            let number = Some(numbers[rng.below(numbers.len() as u64) as usize]);
            let event = packet.track_event.get_or_insert_default();
            match rng.below(4) {
                0 => packet.timestamp = number,
                1 => event.track_uuid = number,
                2 => event.name_iid = number,
                _ => event.debug_annotations.iter_mut().for_each(|one| one.uint_value = number),
            }
            file(all)
        } else {
            let mut bytes = bytes.clone();
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
            packed(&bytes)
        };
        if let Ok(svg) = drawn(&spoiled, WHOLE) {
            roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("case {case}: {error}"));
            drawings += 1;
        }
    }
    assert!(drawings > 100, "{drawings}");
}
