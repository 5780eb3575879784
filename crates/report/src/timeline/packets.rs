//! Packets of a timeline: the messages of Perfetto's trace format that a timeline uses, and its tracks.
//!
//! The numbers of messages and fields are those of Perfetto's `protos/perfetto/trace/`. scripts/check_timeline.py reads
//! a timeline with the complete definitions, from Perfetto's Python package.

use floatgate_core::device_file::DeviceConfig;

/// A trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// All packets. The format is a sequence of them, so that files that follow one another are a trace.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// A packet of a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// Time in nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Sequence of packets that share interned data. There is one.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// An event.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// Texts that later packets refer to by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// [`STATE_CLEARED`] and [`NEEDS_STATE`].
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// Flag of the first packet of a sequence.
pub const STATE_CLEARED: u32 = 1;
/// Flag of packets that refer to interned data.
pub const NEEDS_STATE: u32 = 2;

/// Type of events that begin a slice of their track.
pub const BEGIN: i32 = 1;
/// Type of events that end the slice.
pub const END: i32 = 2;
/// Type of events without a length.
pub const INSTANT: i32 = 3;

/// An event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Number of its category.
    #[prost(uint64, repeated, tag = "3")]
    pub category_iids: Vec<u64>,
    /// Arguments.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// [`BEGIN`], [`END`] or [`INSTANT`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Number of its name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Number of the track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Name, if it is not interned.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Arrows through it.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
}

/// An argument of an event.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Number of its name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// A number.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// A number with decimal places.
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
    /// A text.
    #[prost(string, optional, tag = "6")]
    pub string_value: Option<String>,
    /// Name, if it is not interned.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
    /// A list.
    #[prost(message, repeated, tag = "12")]
    pub array_values: Vec<DebugAnnotation>,
    /// Number of a text.
    #[prost(uint64, optional, tag = "17")]
    pub string_value_iid: Option<u64>,
}

/// Texts with numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Categories of events.
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<Interned>,
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Interned>,
    /// Names of arguments.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Interned>,
    /// Texts in arguments. Perfetto declares them as bytes, which are encoded alike.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<Interned>,
}

/// A text with its number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Interned {
    /// The number, from 1 on.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The text.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A track.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Number of the track.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Name of the track.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// Number of the track that it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Order of the tracks that belong to it: [`EXPLICIT`].
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Position among the tracks of its parent.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// Order of tracks by their rank.
pub const EXPLICIT: i32 = 3;

/// A track of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The device, to which all tracks belong.
    Device,
    /// The host, to which requests belong.
    Host,
    /// The controller, to which its cores belong.
    Controller,
    /// A channel, to which its bus and its planes belong.
    Channel(u64),
    /// Transfers of a channel.
    Bus(u64),
    /// Operations of the cells of a plane.
    Plane(u64),
    /// Waits of a plane, which do not overlap within a lane.
    Wait {
        /// The plane.
        plane: u64,
        /// Number of the lane.
        lane: u64,
    },
    /// Requests that do not overlap.
    Requests(u64),
    /// Work of a core.
    Core(u64),
}

impl Track {
    /// Returns the number of the track. `planes` is the number of planes of the device. Numbers are small, because
    /// every event contains one, and do not depend on the events before, because old events of a live device are
    /// dropped.
    pub fn uuid(self, planes: u64) -> u64 {
        let (kind, index) = match self {
            Track::Device => (1, 0),
            Track::Host => (1, 1),
            Track::Controller => (1, 2),
            Track::Channel(channel) => (2, channel),
            Track::Bus(channel) => (3, channel),
            Track::Plane(plane) => (4, plane),
            Track::Wait { plane, lane } => (5, lane * planes + plane),
            Track::Requests(lane) => (6, lane),
            Track::Core(core) => (7, core),
        };
        index << 3 | kind
    }

    /// Returns the track with this number.
    pub fn of(uuid: u64, planes: u64) -> Option<Track> {
        let index = uuid >> 3;
        Some(match (uuid & 7, index) {
            (1, 0) => Track::Device,
            (1, 1) => Track::Host,
            (1, 2) => Track::Controller,
            (2, channel) => Track::Channel(channel),
            (3, channel) => Track::Bus(channel),
            (4, plane) => Track::Plane(plane),
            (5, index) if planes > 0 => Track::Wait { plane: index % planes, lane: index / planes },
            (6, lane) => Track::Requests(lane),
            (7, core) => Track::Core(core),
            _ => return None,
        })
    }

    /// Returns the track that this one belongs to. `planes_per_channel` is a property of the device.
    pub fn parent(self, planes_per_channel: u64) -> Option<Track> {
        Some(match self {
            Track::Device => return None,
            Track::Host | Track::Controller | Track::Channel(_) => Track::Device,
            Track::Bus(channel) => Track::Channel(channel),
            Track::Plane(plane) => Track::Channel(plane / planes_per_channel),
            Track::Wait { plane, .. } => Track::Plane(plane),
            Track::Requests(_) => Track::Host,
            Track::Core(_) => Track::Controller,
        })
    }

    /// Returns the name and the position among the tracks of its parent.
    pub fn name(self, config: &DeviceConfig) -> (String, u64) {
        let g = &config.geometry;
        let per_channel = u64::from(config.physical_planes() / config.buses());
        let per_chip = u64::from(g.dies * g.planes);
        match self {
            Track::Device => (config.name.clone(), 0),
            Track::Host => ("host".to_owned(), 0),
            Track::Controller => ("controller".to_owned(), 1),
            Track::Channel(channel) => (format!("channel {channel}"), channel + 2),
            Track::Bus(_) => ("bus".to_owned(), 0),
            Track::Plane(plane) => {
                let (chip, rest) = (plane % per_channel / per_chip, plane % per_chip);
                let (die, inner) = (rest / u64::from(g.planes), rest % u64::from(g.planes));
                (format!("chip {chip} die {die} plane {inner}"), plane % per_channel + 1)
            }
            // Perfetto draws tracks of one name and parent as one.
            Track::Wait { .. } => ("waits".to_owned(), 0),
            Track::Requests(lane) => (format!("requests {lane}"), lane),
            Track::Core(core) => (format!("core {core}"), core),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tracks_are_unique() {
        let mut seen = Vec::new();
        let many = (0..5).flat_map(|n| {
            let waits = (0..3).map(move |plane| Track::Wait { plane, lane: n });
            [Track::Channel(n), Track::Bus(n), Track::Plane(n), Track::Requests(n), Track::Core(n)]
                .into_iter()
                .chain(waits)
        });
        for track in [Track::Device, Track::Host, Track::Controller].into_iter().chain(many) {
            let uuid = track.uuid(3);
            assert_eq!(Track::of(uuid, 3), Some(track));
            assert!(uuid > 0 && !seen.contains(&uuid), "{track:?}");
            seen.push(uuid);
        }
        assert_eq!((Track::of(0, 3), Track::of(5, 0)), (None, None));
    }
}
