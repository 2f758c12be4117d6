//! Each format reads what its documentation shows, refuses what is none of it, and no bytes make it panic.

use super::super::{Action, BadLines, Framing, Request, Requests, TraceError, TraceName, TraceReader};
use proptest::prelude::*;

const TWITTER: &str = "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n5,a,b,c,5,9,1,set,3600\n5,k,4,1,1,incr,0\n";
const META_2022: &str = "key,op,size,op_count,key_size\n1668597650,GET,82,3,27\n7,SET,100,1,5\n";
const META_2024: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
                         10,23,4,GET_LEASE,1,0,0,0,9,1\n11,23,4,SET,1,77,,300,9,1\n12,23,4,DELETE,2,,,,9,1\n";
const IBM: &str = "1219008 REST.PUT.OBJECT 8d4fcda3d675bac9 1056\n1221974 REST.HEAD.OBJECT 39d177fb735ac5df 528\n\
                   1232437 REST.GET.OBJECT 3b8255e0609a700d 1456 10 19\n1232488 REST.DELETE.OBJECT 8d4fcda3d675bac9\n";
const MOONCAKE: &str = "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, 47]}\n\
                        {\"hash_ids\": [], \"timestamp\": 30535.5}\n";
const CSV: &str = "Timestamp_ms,op,Key,Value_Size\r\n1.5,PUT,\"a,b\",10\r\n\r\n2,read,c,\r\n";

/// The requests of a text: action, key, size of the value, time in milliseconds and times.
type Seen = (Action, Vec<u8>, u64, Option<u64>, u32);

fn read(name: TraceName, mut bytes: &[u8], bad_lines: BadLines) -> Result<(Vec<Seen>, u64, u64), TraceError> {
    let mut reader = TraceReader::new(&mut bytes, b"", name.format(5), bad_lines);
    let mut requests = Requests::new();
    let mut before = usize::MAX;
    while before != requests.len() {
        before = requests.len();
        reader.fill(&mut requests, before + 1)?;
    }
    let seen = |request: &Request| {
        let key = requests.key(request).bytes().to_vec();
        let at_ms = request.at_ns.map(|at_ns| at_ns / 1_000_000);
        (request.action, key, request.value_bytes, at_ms, request.times)
    };
    Ok((requests.list().iter().map(seen).collect(), reader.lines(), reader.bad_lines()))
}

fn seen(action: Action, key: &[u8], value_bytes: u64, at_ms: impl Into<Option<u64>>, times: u32) -> Seen {
    (action, key.to_vec(), value_bytes, at_ms.into(), times)
}

fn oracle_general(records: &[(u32, u64, u32)]) -> Vec<u8> {
    let record = |&(time, object, bytes): &(u32, u64, u32)| {
        [&time.to_le_bytes()[..], &object.to_le_bytes(), &bytes.to_le_bytes(), &(-1i64).to_le_bytes()].concat()
    };
    records.iter().flat_map(record).collect()
}

#[test]
fn what_the_documentation_shows_is_read() {
    let samples = [
        (
            TraceName::Twitter,
            TWITTER.as_bytes().to_vec(),
            vec![
                seen(Action::Get, b"q:q:1:8WTfjZU14ee", 213, 0, 1),
                seen(Action::Set, b"a,b,c", 9, 5000, 1),
                seen(Action::Touch, b"k...", 1, 5000, 1),
            ],
        ),
        (
            TraceName::Meta,
            META_2022.as_bytes().to_vec(),
            vec![
                seen(Action::Get, b"1668597650.................", 82, None, 3),
                seen(Action::Set, b"7....", 100, None, 1),
            ],
        ),
        (
            TraceName::Meta,
            META_2024.as_bytes().to_vec(),
            vec![
                seen(Action::Get, b"23..", 0, 10_000, 1),
                seen(Action::Set, b"23..", 77, 11_000, 1),
                seen(Action::Delete, b"23..", 0, 12_000, 2),
            ],
        ),
        (
            TraceName::Ibm,
            IBM.as_bytes().to_vec(),
            vec![
                seen(Action::Set, b"8d4fcda3d675bac9", 1056, 1_219_008, 1),
                seen(Action::Exist, b"39d177fb735ac5df", 528, 1_221_974, 1),
                seen(Action::Fetch, b"3b8255e0609a700d", 1456, 1_232_437, 1),
                seen(Action::Delete, b"8d4fcda3d675bac9", 0, 1_232_488, 1),
            ],
        ),
        (
            TraceName::OracleGeneral,
            oracle_general(&[(7, 258, 4096), (8, u64::MAX, 0)]),
            vec![
                seen(Action::Fetch, &[0, 0, 0, 0, 0, 0, 1, 2], 4096, 7000, 1),
                seen(Action::Fetch, &[255; 8], 0, 8000, 1),
            ],
        ),
        (
            TraceName::Mooncake,
            MOONCAKE.as_bytes().to_vec(),
            vec![
                seen(Action::Probe, &46u64.to_be_bytes(), 5, 27_482, 1),
                seen(Action::Probe, &47u64.to_be_bytes(), 5, 27_482, 1),
            ],
        ),
        (
            TraceName::Csv,
            CSV.as_bytes().to_vec(),
            vec![seen(Action::Set, b"a,b", 10, 1, 1), seen(Action::Get, b"c", 5, 2, 1)],
        ),
    ];
    for (name, bytes, expected) in samples {
        assert_eq!(read(name, &bytes, BadLines::Stop).unwrap().0, expected, "{name}");
        let told = TraceName::of_content(&bytes);
        assert_eq!(told, Some(name).filter(|name| *name != TraceName::OracleGeneral), "{name}");
    }
}

#[test]
fn a_table_without_operations_is_fetched() {
    let (requests, ..) = read(TraceName::Csv, b"size,key\n3,k", BadLines::Stop).unwrap();
    assert_eq!(requests, [seen(Action::Fetch, b"k", 3, None, 1)]);
}

#[test]
fn a_part_of_an_object_is_counted_from_its_first_to_its_last_byte() {
    let mut requests = Requests::new();
    let line = IBM.lines().nth(2).unwrap();
    TraceName::Ibm.format(0).parse(line.as_bytes(), &mut requests).unwrap();
    assert_eq!(requests.list()[0].part, Some((10, 10)));
}

#[test]
fn bad_lines_are_named_with_their_number_or_skipped_and_counted() {
    let cut = &oracle_general(&[(1, 2, 3), (1, 2, 3)])[..40];
    for (name, text, said) in [
        (TraceName::Twitter, &b"0,k,1,2,3,get,0\n0,k,1,2,3,got,0\n"[..], "line 2: operation"),
        (TraceName::Twitter, b"0,k,1,2,3,get,0\n0,k,1\n", "line 2: the line has fewer"),
        (TraceName::Twitter, b"0,k,1,2,3,get,0\nsoon,k,1,2,3,get,0\n", "line 2: timestamp"),
        (TraceName::Meta, b"key,op,op_count\nk,get,0\n", "line 2: op_count"),
        (TraceName::Meta, b"key,op,op_count\nk,get,1\nk,get\n", "line 3: the line has too few"),
        (TraceName::Ibm, b"1 REST.GET.OBJECT a 9 7 3\n", "line 1: range"),
        (TraceName::Mooncake, b"{\"timestamp\": 1, \"hash_ids\": [1]} x\n", "line 1: the line is no JSON"),
        (TraceName::Mooncake, b"{\"timestamp\": 1}\n", "line 1: hash_ids"),
        (TraceName::Mooncake, b"{\"timestamp\": 1e300, \"hash_ids\": [1]}\n", "line 1: timestamp"),
        (TraceName::Csv, b"key,size\n\na,1\nb,many\n", "line 4: value size"),
        (TraceName::OracleGeneral, cut, "record 2: the record has fewer than 24"),
    ] {
        let message = read(name, text, BadLines::Stop).unwrap_err().to_string();
        assert!(message.starts_with(said), "{name}: {message}");
        assert_eq!(read(name, text, BadLines::Skip).unwrap().2, 1, "{name}");
    }
}

#[test]
fn a_header_without_what_must_be_there_is_never_skipped() {
    for (name, text) in [(TraceName::Meta, "key,size\nk,1\n"), (TraceName::Csv, "id,size\nk,1\n")] {
        let message = read(name, text.as_bytes(), BadLines::Skip).unwrap_err().to_string();
        assert!(message.contains("header"), "{message}");
    }
}

#[test]
fn nothing_is_told_of_what_could_be_anything() {
    for sample in [&b""[..], b"\n\n", b"a,b,c\n1,2,3\n", b"0,1,2,3,4,5,6\n", &oracle_general(&[(1, 2, 3)])] {
        assert_eq!(TraceName::of_content(sample), None, "{sample:?}");
    }
}

#[test]
fn a_line_without_an_end_is_refused() {
    let endless = vec![b'x'; 5 << 20];
    let message = read(TraceName::Twitter, &endless, BadLines::Skip).unwrap_err().to_string();
    assert!(message.starts_with("line 1 has more than"), "{message}");
}

/// Bytes that are nearly a trace: a sample with pieces put over it.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let samples = prop::sample::select(vec![TWITTER, META_2022, META_2024, IBM, MOONCAKE, CSV]);
    let pieces = prop::collection::vec((any::<prop::sample::Index>(), "[0-9,\"\\[\\]{}.: \n\r-]{0,6}|\\PC{0,3}"), 0..6);
    (samples, pieces).prop_map(|(sample, pieces)| {
        let mut bytes = sample.as_bytes().to_vec();
        for (at, piece) in pieces {
            let at = at.index(bytes.len());
            let end = (at + piece.len()).min(bytes.len());
            bytes.splice(at..end, piece.bytes());
        }
        bytes
    })
}

proptest! {
    #[test]
    fn no_bytes_make_a_format_panic(
        bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..300), nearly()], cut in any::<prop::sample::Index>()
    ) {
        prop_assert!(TraceName::ALL.len() == 6);
        let _ = TraceName::of_content(&bytes);
        for name in TraceName::ALL {
            let whole = read(name, &bytes, BadLines::Skip);
            // A piece that was read before the reader began makes no difference.
            let (sample, mut rest) = bytes.split_at(cut.index(bytes.len() + 1));
            let mut reader = TraceReader::new(&mut rest, sample, name.format(5), BadLines::Skip);
            let mut requests = Requests::new();
            let in_pieces = reader.fill(&mut requests, usize::MAX);
            prop_assert_eq!(whole.is_ok(), in_pieces.is_ok());
            if let Ok((seen, lines, bad)) = whole {
                prop_assert_eq!((seen.len(), lines, bad), (requests.len(), reader.lines(), reader.bad_lines()));
                let is_lines = name.format(0).framing() == Framing::Lines;
                prop_assert!(!is_lines || lines as usize >= bytes.split(|&byte| byte == b'\n').count() - 1);
            }
        }
    }
}
