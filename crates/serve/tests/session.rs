//! Tests of the NBD session with invalid bytes, with almost valid messages, and with input in pieces of any size.

use floatgate_serve::nbd::session::{Export, Kind, LONGEST_PAYLOAD, Session, Taken};
use floatgate_serve::nbd::wire::{self, Errno, command, flag, option, reply};
use floatgate_serve::payload::Extent;
use proptest::prelude::*;

const BYTES: u64 = 1 << 20;

fn export() -> Export {
    Export {
        name: "ssd".to_owned(),
        description: "a test".to_owned(),
        bytes: BYTES,
        sector: 512,
        unit: 4096,
        read_only: false,
    }
}

/// Results of a session.
#[derive(Debug, Default, PartialEq)]
struct Received {
    said: Vec<u8>,
    /// Cookie, operation, offset and length of each request.
    requests: Vec<(u64, String, u64, u32)>,
    ended: bool,
}

/// Passes bytes to a server in pieces of these sizes, repeatedly.
fn converse(bytes: &[u8], pieces: &[usize]) -> Received {
    converse_with(export(), bytes, pieces)
}

fn converse_with(export: Export, bytes: &[u8], pieces: &[usize]) -> Received {
    let mut received = Received::default();
    let mut session = Session::new(export, &mut received.said);
    let mut input = Vec::new();
    let mut rest = bytes;
    let mut sizes = pieces.iter().cycle();
    let mut needs = 1;
    loop {
        if input.len() < needs {
            if rest.is_empty() {
                return received;
            }
            let size = (*sizes.next().unwrap()).clamp(1, rest.len());
            input.extend_from_slice(&rest[..size]);
            rest = &rest[size..];
            continue;
        }
        needs = 1;
        let used = match session.take(&input, &mut received.said) {
            Taken::Bytes(used) => used,
            Taken::Command(used, command) => {
                if let Kind::Status { one } = command.kind {
                    session.status(&command, one, |range| (Extent::Hole, range.end), &mut received.said);
                }
                let kind = match command.kind {
                    Kind::Write(data) => format!("write of {}", data.len()),
                    kind => format!("{kind:?} fua {}", command.fua),
                };
                received.requests.push((command.cookie, kind, command.offset, command.length));
                used
            }
            Taken::Needs(count) => {
                assert!(count > input.len(), "it needs what it has");
                assert!(count <= wire::REQUEST_HEAD + LONGEST_PAYLOAD as usize, "more than any message");
                needs = count;
                0
            }
            Taken::End => {
                received.ended = true;
                return received;
            }
        };
        assert!(used <= input.len());
        input.drain(..used);
    }
}

fn requested(option: u32, data: &[u8]) -> Vec<u8> {
    [&wire::OPTION.to_be_bytes()[..], &option.to_be_bytes(), &(data.len() as u32).to_be_bytes(), data].concat()
}

fn request(kind: u16, flags: u16, cookie: u64, offset: u64, length: u32, data: &[u8]) -> Vec<u8> {
    let head = [&wire::REQUEST.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes(), &cookie.to_be_bytes()];
    [&head.concat()[..], &offset.to_be_bytes(), &length.to_be_bytes(), data].concat()
}

/// Returns the client's flags, and the options for structured replies, block status and the export.
fn opening() -> Vec<u8> {
    let context = [&0u32.to_be_bytes()[..], &1u32.to_be_bytes(), &15u32.to_be_bytes(), b"base:allocation"].concat();
    let mut bytes = 3u32.to_be_bytes().to_vec();
    bytes.extend(requested(option::STRUCTURED_REPLY, &[]));
    bytes.extend(requested(option::SET_META_CONTEXT, &context));
    bytes.extend(requested(option::GO, &[0; 6]));
    bytes
}

/// Returns the kinds of the replies to options.
fn answers(mut said: &[u8]) -> Vec<u32> {
    let mut kinds = Vec::new();
    said = &said[18..];
    while said.len() >= wire::OPTION_REPLY_HEAD && said[..8] == wire::OPTION_REPLY.to_be_bytes() {
        let word = |at: usize| u32::from_be_bytes(said[at..at + 4].try_into().unwrap());
        kinds.push(word(12));
        said = &said[wire::OPTION_REPLY_HEAD + word(16) as usize..];
    }
    kinds
}

fn errors(said: &[u8]) -> Vec<u32> {
    let begun = converse(&opening(), &[usize::MAX]).said.len();
    let mut said = &said[begun..];
    let mut errors = Vec::new();
    while said.len() >= wire::CHUNK_HEAD {
        let length = u32::from_be_bytes(said[16..20].try_into().unwrap()) as usize;
        if said[6] >> 7 == 1 {
            errors.push(u32::from_be_bytes(said[20..24].try_into().unwrap()));
        }
        said = &said[wire::CHUNK_HEAD + length..];
    }
    errors
}

#[test]
fn options_follow_the_protocol() {
    let greeted = |options: &[Vec<u8>]| {
        let received = converse(&[&3u32.to_be_bytes()[..], &options.concat()].concat(), &[usize::MAX]);
        (answers(&received.said), received.ended)
    };
    let unknown_name = [&3u32.to_be_bytes()[..], b"abc", &[0; 2]].concat();
    assert_eq!(greeted(&[requested(option::LIST, &[])]), (vec![reply::SERVER, reply::ACK], false));
    assert_eq!(greeted(&[requested(option::LIST, &[1])]), (vec![reply::ERR_INVALID], false));
    assert_eq!(greeted(&[requested(option::STARTTLS, &[])]), (vec![reply::ERR_UNSUP], false));
    assert_eq!(greeted(&[requested(77, b"data")]), (vec![reply::ERR_UNSUP], false));
    assert_eq!(greeted(&[requested(option::INFO, &unknown_name)]), (vec![reply::ERR_UNKNOWN], false));
    assert_eq!(greeted(&[requested(option::INFO, &[0; 5])]), (vec![reply::ERR_INVALID], false));
    assert_eq!(greeted(&[requested(option::LIST_META_CONTEXT, &[0; 8])]), (vec![reply::ERR_INVALID], false));
    assert_eq!(greeted(&[requested(option::ABORT, &[])]), (vec![reply::ACK], true));
    // A message that is too long is skipped, and the next one is understood.
    let long = requested(option::INFO, &vec![0; 100_000]);
    let (kinds, ended) = greeted(&[long, requested(option::LIST, &[])]);
    assert_eq!((kinds, ended), (vec![reply::ERR_TOO_BIG, reply::SERVER, reply::ACK], false));
    // All four kinds of information, in one reply each.
    let all = [&0u32.to_be_bytes()[..], &4u16.to_be_bytes(), &[0, 0, 0, 1, 0, 2, 0, 3]].concat();
    assert_eq!(greeted(&[requested(option::INFO, &all)]).0, [[reply::INFO; 4].to_vec(), vec![reply::ACK]].concat());
    // Unknown contexts are not an error, and are not selected.
    let other = [&0u32.to_be_bytes()[..], &1u32.to_be_bytes(), &6u32.to_be_bytes(), b"qemu:x"].concat();
    let structured = requested(option::STRUCTURED_REPLY, &[]);
    assert_eq!(greeted(&[structured, requested(option::SET_META_CONTEXT, &other)]).0, [reply::ACK; 2]);
}

#[test]
fn endless_negotiation_ends_the_session() {
    let many = requested(option::LIST, &[]).repeat(300);
    assert!(converse(&[&3u32.to_be_bytes()[..], &many].concat(), &[usize::MAX]).ended);
}

#[test]
fn export_name_works() {
    for (flags, zeros) in [(1u32, 124), (3, 0)] {
        for name in ["", "ssd"] {
            let bytes = [&flags.to_be_bytes()[..], &requested(option::EXPORT_NAME, name.as_bytes())].concat();
            let received = converse(&[bytes, request(command::READ, 0, 5, 0, 512, &[])].concat(), &[usize::MAX]);
            assert_eq!(received.said.len(), 18 + 10 + zeros);
            assert_eq!(received.said[18..26], BYTES.to_be_bytes());
            assert_eq!(received.requests.len(), 1);
        }
        assert!(converse(&[&flags.to_be_bytes()[..], &requested(option::EXPORT_NAME, b"x")].concat(), &[64]).ended);
    }
    assert!(converse(&0u32.to_be_bytes(), &[64]).ended, "without fixed newstyle errors could not be told");
    assert!(converse(&7u32.to_be_bytes(), &[64]).ended, "unknown flags");
}

#[test]
fn invalid_requests_get_errors_and_others_continue() {
    let longest = LONGEST_PAYLOAD;
    let wrong = [
        (request(command::READ, 0, 1, BYTES, 512, &[]), Errno::Invalid),
        (request(command::READ, 0, 1, u64::MAX, 512, &[]), Errno::Invalid),
        (request(command::READ, 0, 1, BYTES - 511, 512, &[]), Errno::Invalid),
        (request(command::READ, 0, 1, 0, 0, &[]), Errno::Invalid),
        (request(command::READ, flag::NO_HOLE, 1, 0, 512, &[]), Errno::Invalid),
        (request(command::WRITE, 0, 1, BYTES - 512, 1024, &[7; 1024]), Errno::NoSpace),
        (request(command::WRITE, 0, 1, 0, 0, &[]), Errno::Invalid),
        (request(command::WRITE, 0, 1, BYTES - 99, 100, &[7; 100]), Errno::NoSpace),
        (request(command::WRITE, 0, 1, 0, longest + 512, &vec![7; longest as usize + 512]), Errno::NoSpace),
        (request(command::TRIM, 0, 1, 0, 2 << 20, &[]), Errno::Invalid),
        (request(command::WRITE_ZEROES, 0, 1, BYTES, 512, &[]), Errno::NoSpace),
        (request(command::WRITE_ZEROES, flag::FAST_ZERO, 1, 0, 512, &[]), Errno::NotSupported),
        (request(command::WRITE_ZEROES, flag::FAST_ZERO | flag::NO_HOLE, 1, 0, 4096, &[]), Errno::NotSupported),
        (request(99, 0, 1, 0, 512, &[]), Errno::Invalid),
    ];
    for (bytes, error) in wrong {
        let after = request(command::FLUSH, 0, 9, 0, 0, &[]);
        let received = converse(&[opening(), bytes, after].concat(), &[100_000]);
        assert_eq!(errors(&received.said), [error as u32]);
        assert_eq!(received.requests.len(), 1, "the next one is served");
        assert!(!received.ended);
    }
    let fast = request(command::WRITE_ZEROES, flag::FAST_ZERO, 1, 4096, 8192, &[]);
    assert_eq!(converse(&[opening(), fast].concat(), &[64]).requests[0].1, "Zero fua false");
}

/// The server completes requests that are not whole logical blocks, so its minimum is 1, as that of qemu-nbd. Larger
/// logical blocks are an option of the device, and reported.
#[test]
fn requests_of_any_alignment_are_accepted() {
    for (sector, least) in [(512u32, 1u32), (4096, 4096)] {
        let export = Export { sector, unit: 4096, ..export() };
        let requests = [
            request(command::READ, 0, 1, 1, 4097, &[]),
            request(command::WRITE, 0, 2, 4095, 3, &[7; 3]),
            request(command::TRIM, 0, 3, 7, 6144, &[]),
            request(command::WRITE_ZEROES, 0, 4, 100, 1, &[]),
        ];
        let received = converse_with(export, &[opening(), requests.concat()].concat(), &[usize::MAX]);
        assert!(errors(&received.said).is_empty());
        assert_eq!(received.requests.len(), 4);
        assert_eq!(received.requests[1], (2, "write of 3".to_owned(), 4095, 3));
        // The smallest and the preferred size.
        let sizes = [&3u16.to_be_bytes()[..], &least.to_be_bytes(), &4096u32.to_be_bytes()].concat();
        assert!(received.said.windows(sizes.len()).any(|bytes| bytes == sizes), "no block sizes");
    }
}

#[test]
fn a_malformed_request_or_a_disconnect_ends_the_session() {
    let ends = |bytes: Vec<u8>| converse(&[opening(), bytes].concat(), &[64]).ended;
    assert!(ends(request(command::DISCONNECT, 0, 1, 0, 0, &[])));
    assert!(ends(vec![0; 28]));
    assert!(!ends(request(command::FLUSH, 0, 1, 0, 0, &[])));
}

fn any_request() -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![(0..2 * BYTES / 512).prop_map(|sector| sector * 512), any::<u64>()];
    let length = prop_oneof![(0..64u32).prop_map(|sectors| sectors * 512), any::<u16>().prop_map(u32::from)];
    (0..9u16, 0..32u16, any::<u64>(), offset, length).prop_map(|(kind, flags, cookie, offset, length)| {
        let data = vec![0xab; if kind == command::WRITE { length as usize } else { 0 }];
        request(kind, flags, cookie, offset, length, &data)
    })
}

fn any_option() -> impl Strategy<Value = Vec<u8>> {
    (0..13u32, prop::collection::vec(any::<u8>(), 0..40)).prop_map(|(option, data)| requested(option, &data))
}

proptest! {
    #[test]
    fn random_bytes_break_nothing(bytes in prop::collection::vec(any::<u8>(), 0..400), piece in 1..50usize) {
        converse(&bytes, &[piece]);
        converse(&[opening(), bytes].concat(), &[piece]);
    }

    #[test]
    fn random_options_break_nothing(options in prop::collection::vec(any_option(), 0..12), piece in 1..64usize) {
        let bytes = [&3u32.to_be_bytes()[..], &options.concat()].concat();
        let whole = converse(&bytes, &[usize::MAX]);
        prop_assert_eq!(&converse(&bytes, &[piece]), &whole);
    }

    /// The replies do not depend on how the input is split, and each request is either served or replied to, once.
    #[test]
    fn pieces_do_not_matter(
        requests in prop::collection::vec(any_request(), 0..12),
        pieces in prop::collection::vec(1..5000usize, 1..8),
    ) {
        let bytes = [opening(), requests.concat()].concat();
        let whole = converse(&bytes, &[usize::MAX]);
        prop_assert_eq!(&converse(&bytes, &pieces), &whole);
        if !whole.ended {
            let begun = converse(&opening(), &[usize::MAX]).said.len();
            let replies = if whole.said.len() > begun { errors(&whole.said).len() } else { 0 };
            prop_assert_eq!(whole.requests.len() + replies, requests.len());
        }
        for (_, _, offset, length) in &whole.requests {
            prop_assert!(offset + u64::from(*length) <= BYTES, "within the device");
        }
    }
}
