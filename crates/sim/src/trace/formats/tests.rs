//! Each format reads what its documentation shows, refuses what is none of it, and no bytes make it panic.

use super::super::{
    Action, BadLines, ColumnName, Framing, Request, Requests, TraceError, TraceFormat, TraceName, TraceReader, table,
};
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

const MLPERF: &str = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase\r\n\
                      1740553426.194021,Write,131072,Tier-0,layer0/user0,Prefill\r\n\
                      1740553426.194521,Write,131072,Tier-2,layer0/user0,Evict\r\n\
                      1740553426.194590,Read,131072,Tier-2,layer0/user0,Decode\r\n\
                      1740553426.194600,Read,131072,Tier-1,layer0/user1,Decode\r\n";

/// What LMCache 0.5.6 writes by `encode_record` of a prefetch and a write of two keys, and of the calls that end them.
const LMCACHE: &[u8] = include_bytes!("samples/lmcache.lmct");

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

/// A file of libCacheSim's with fields of 4, 8, 4, 2 and 1 bytes: time, object, size, operation, TTL.
fn lcs(records: &[(u32, u64, u32, u16, u8)]) -> Vec<u8> {
    let mut bytes = vec![0; 1024];
    let magic = 0x1234_5678_9abc_def0u64.to_le_bytes();
    bytes[..8].copy_from_slice(&magic);
    bytes[8..14].copy_from_slice(b"<IQIHB");
    (bytes[248], bytes[249], bytes[250], bytes[253], bytes[254]) = (2, 3, 1, 4, 5);
    (bytes[1000], bytes[1004]) = (5, 19);
    bytes[1016..].copy_from_slice(&magic);
    for (time, object, size, operation, ttl) in records {
        bytes.extend([&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes()].concat());
        bytes.extend([&operation.to_le_bytes()[..], &[*ttl]].concat());
    }
    bytes
}

/// Records of VMware's: command, bytes, block, time in microseconds.
fn vscsi(version: u16, records: &[(u16, u32, u64, u64)]) -> Vec<u8> {
    let record = |&(command, bytes, block, time): &(u16, u32, u64, u64)| {
        let kind = [command.to_le_bytes(), (version << 8).to_le_bytes()].concat();
        let numbers = [7u32.to_le_bytes(), bytes.to_le_bytes(), 1u32.to_le_bytes()].concat();
        let places = [block.to_le_bytes(), time.to_le_bytes()].concat();
        if version == 1 { [numbers, kind, places].concat() } else { [kind, numbers, places, vec![0; 8]].concat() }
    };
    records.iter().flat_map(record).collect()
}

fn lmcache_key(chunk: u8) -> Vec<u8> {
    [&[chunk; 16][..], &(3 + u64::from(chunk)).to_be_bytes(), &[0; 4], b"m/7b"].concat()
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
            TraceName::Lcs,
            lcs(&[(7, 258, 4096, 1, 0), (8, 259, 9, 3, 60), (8, 1, 1, 0, 0), (9, 258, 0, 9, 0)]),
            vec![
                seen(Action::Get, &258u64.to_be_bytes(), 4096, 7000, 1),
                seen(Action::Set, &259u64.to_be_bytes(), 9, 8000, 1),
                seen(Action::Delete, &258u64.to_be_bytes(), 0, 9000, 1),
            ],
        ),
        (
            TraceName::LmCache,
            LMCACHE.to_vec(),
            vec![
                seen(Action::Get, &lmcache_key(0), 0, 500, 1),
                seen(Action::Get, &lmcache_key(1), 0, 500, 1),
                // 2 x 4 x 8 bfloat16, and 3 float8.
                seen(Action::Add, &lmcache_key(0), 131, 1250, 1),
                seen(Action::Add, &lmcache_key(1), 131, 1250, 1),
            ],
        ),
        (
            TraceName::MlPerf,
            MLPERF.as_bytes().to_vec(),
            // The tier of drives alone.
            vec![
                seen(Action::Set, b"layer0/user0", 131_072, 1_740_553_426_194, 1),
                seen(Action::Get, b"layer0/user0", 131_072, 1_740_553_426_194, 1),
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
fn both_versions_of_vscsi_are_read() {
    let records = [(0x28, 4096, 77, 1_500_000), (0x35, 0, 0, 1_500_001), (0x8a, 512, 78, 2_000_000)];
    let expected = [
        seen(Action::Fetch, &77u64.to_be_bytes(), 4096, 1500, 1),
        seen(Action::Set, &78u64.to_be_bytes(), 512, 2000, 1),
    ];
    for version in [1, 2] {
        let bytes = vscsi(version, &records);
        assert_eq!(read(TraceName::Vscsi, &bytes, BadLines::Stop).unwrap().0, expected, "{version}");
        let cut = read(TraceName::Vscsi, &bytes[..bytes.len() - 1], BadLines::Stop).unwrap_err().to_string();
        assert!(cut.contains("the record has too few bytes"), "{cut}");
    }
    let other = read(TraceName::Vscsi, &vscsi(3, &records), BadLines::Skip).unwrap_err().to_string();
    assert_eq!(other, "record 1: the first record is of no version of vscsi");
}

#[test]
fn a_header_of_lcs_that_cannot_be_is_refused() {
    let plain = lcs(&[(7, 258, 4096, 1, 0)]);
    for (at, byte, said) in [
        (0, 0, "is none of libCacheSim's lcs"),
        (1016, 0, "is none of libCacheSim's lcs"),
        (8, b'>', "does not say that its fields are low end first"),
        (9, b'd', "has a field that is no whole number"),
        (1004, 20, "says another size of records than its fields have"),
        (248, 0, "names no field for objects"),
        (250, 6, "names a field that is not there"),
    ] {
        let mut bytes = plain.clone();
        bytes[at] = byte;
        let message = read(TraceName::Lcs, &bytes, BadLines::Skip).unwrap_err().to_string();
        assert_eq!(message, format!("record 1: the header {said}"));
    }
}

#[test]
fn a_time_that_no_clock_reaches_is_refused() {
    let mut bytes = lcs(&[(7, 258, 4096, 1, 0)]);
    // The field of the object, with 8 bytes, is that of the time as well.
    bytes[250] = 2;
    bytes[1024 + 4..1024 + 12].fill(0xff);
    let message = read(TraceName::Lcs, &bytes, BadLines::Stop).unwrap_err().to_string();
    assert_eq!(message, "record 2: the time is no number that can be");
}

#[test]
fn spaces_around_fields_are_no_part_of_them() {
    let text = b"Timestamp, key , op, value_size\n 1, user 1 , SET , 10 \n2,user 1,get,\n 3 ,\"user 1\", get, 7\n";
    let (requests, ..) = read(TraceName::Csv, text, BadLines::Stop).unwrap();
    let (set, get) = (Action::Set, Action::Get);
    let expected = [(set, 10, 1000), (get, 5, 2000), (get, 7, 3000)];
    assert_eq!(requests, expected.map(|(action, bytes, ms)| seen(action, b"user 1", bytes, ms, 1)));
}

#[test]
fn a_table_without_operations_is_fetched() {
    let (requests, ..) = read(TraceName::Csv, b"size,key\n3,k", BadLines::Stop).unwrap();
    assert_eq!(requests, [seen(Action::Fetch, b"k", 3, None, 1)]);
}

#[test]
fn columns_are_called_as_is_said() {
    let names = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<ColumnName>>();
    let read = |columns: &[&str], text: &str| {
        let (mut format, mut requests) = (table(5, names(columns)), Requests::new());
        let read = text.lines().try_for_each(|line| format.parse(line.as_bytes(), &mut requests));
        read.map(|()| {
            let request = &requests.list()[0];
            (requests.key(request).bytes().to_vec(), request.value_bytes, request.at_ns)
        })
    };
    // What is said goes before what a column is called.
    let text = "clock,obj_id,key,bytes,time\n3,a,b,7,9";
    assert_eq!(read(&[], text), Ok((b"b".to_vec(), 5, Some(9_000_000_000))));
    let all = ["key=obj_id", "value_size=bytes", "timestamp_ms=clock"];
    assert_eq!(read(&all, text), Ok((b"a".to_vec(), 7, Some(3_000_000))));
    assert_eq!(
        read(&["ttl=nowhere"], text).unwrap_err().to_string(),
        "ttl has no column in the header, neither by its own name nor by that of --column"
    );
    for (text, said) in [("key", "write it as"), ("colour=red", "there are key, op, value_size")] {
        assert!(text.parse::<ColumnName>().unwrap_err().contains(said));
    }
}

#[test]
fn streams_are_told_by_a_column_or_the_model() {
    let streams = |mut format: Box<dyn TraceFormat>, text: &str| {
        let mut requests = Requests::new();
        text.lines().try_for_each(|line| format.parse(line.as_bytes(), &mut requests)).unwrap();
        requests.list().iter().map(|request| request.stream).collect::<Vec<_>>()
    };
    let text = "key,tenant,job\na,x,1\nb,y,1\nc,x,2\n";
    let by_tenant = streams(table(5, Vec::new()), text);
    assert!(by_tenant[0] == by_tenant[2] && by_tenant[0] != by_tenant[1] && by_tenant[0].is_some());
    let by_job = streams(table(5, vec!["stream=job".parse().unwrap()]), text);
    assert!(by_job[0] == by_job[1] && by_job[0] != by_job[2]);
    assert_eq!(streams(table(5, Vec::new()), "key\na\n"), [None]);
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
        (TraceName::Twitter, &b"0,k,1,2,3,get,0\n0,k,1,2,3,got,0\n"[..], "line 2: operation \"got\" is none"),
        (TraceName::Twitter, b"0,k,1,2,3,get,0\n0,k,1\n", "line 2: the line has fewer"),
        (TraceName::Twitter, b"0,k,1,2,3,get,0\nsoon,k,1,2,3,get,0\n", "line 2: timestamp"),
        (TraceName::Meta, b"key,op,op_count\nk,get,0\n", "line 2: op_count"),
        (TraceName::Meta, b"key,op,op_count\nk,get,1\nk,get\n", "line 3: the line has too few"),
        (TraceName::Ibm, b"1 REST.GET.OBJECT a 9 7 3\n", "line 1: range"),
        (TraceName::Mooncake, b"{\"timestamp\": 1, \"hash_ids\": [1]} x\n", "line 1: the line is no JSON"),
        (TraceName::Mooncake, b"{\"timestamp\": 1}\n", "line 1: hash_ids"),
        (TraceName::Mooncake, b"{\"timestamp\": 1e300, \"hash_ids\": [1]}\n", "line 1: timestamp"),
        (TraceName::Csv, b"key,size\n\na,1\nb,many\n", "line 4: value size \"many\" is no"),
        (
            TraceName::Csv,
            b"key,op\na,get\na,fetch all\n",
            "line 3: op \"fetch all\" is none that is known, which are get,",
        ),
        (TraceName::Csv, b"key,op,size\na,get,1,\na,b,get,1\n", "line 3: the field \"1\" is behind the last column"),
        (TraceName::Csv, b"key,timestamp\na,1\nb,now\n", "line 3: timestamp \"now\" is no number"),
        (TraceName::Meta, b"key,op,op_count\nk,get,1\nk,got,1\n", "line 3: op \"got\" is none that is known"),
        (TraceName::Meta, b"key,op,op_count\nk,get,1\nk,get,1,2\n", "line 3: the field \"2\" is behind"),
        (
            TraceName::MlPerf,
            &[MLPERF.as_bytes(), b"1,Move,2,Tier-2,k,Evict\n"].concat(),
            "line 6: Operation \"Move\" is neither",
        ),
        (
            TraceName::MlPerf,
            &[MLPERF.as_bytes(), b"1,Read,2,Tier-3,k,Evict\n"].concat(),
            "line 6: Tier \"Tier-3\" is none",
        ),
        (TraceName::OracleGeneral, cut, "record 2: the record has fewer than 24"),
        (TraceName::Lcs, &lcs(&[(1, 2, 3, 1, 0), (1, 2, 3, 77, 0)]), "record 3: the operation is none"),
        (TraceName::LmCache, &LMCACHE[..LMCACHE.len() - 1], "record 10: the frame has too few bytes"),
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
fn a_header_with_a_column_twice_is_never_skipped() {
    for (name, text, twice) in [
        (TraceName::Csv, "key,KEY,op\na,b,get\n", "key"),
        (TraceName::Csv, "key,operation, operation\na,get,set\n", "op"),
        (TraceName::Meta, "key,op,op_count,size,size\nk,GET,1,2,3\n", "size"),
    ] {
        let message = read(name, text.as_bytes(), BadLines::Skip).unwrap_err().to_string();
        assert!(TraceName::of_content(text.as_bytes()).is_some(), "{text}");
        assert_eq!(message, format!("line 1: {twice} has two columns of one name in the header: rename one of them"));
    }
    // Quotes that quote nothing.
    let message = read(TraceName::Csv, b"key, \"op\"\na,get\n", BadLines::Skip).unwrap_err().to_string();
    assert!(message.starts_with("line 1: the field \" \\\"op\\\"\" has a space"), "{message}");
    // What is not looked at may be there as often as it likes.
    assert!(read(TraceName::Csv, b"key,x,x,\na,1,2,\n", BadLines::Stop).is_ok());
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
    let texts = [TWITTER, META_2022, META_2024, IBM, MOONCAKE, MLPERF, CSV].map(|text| text.as_bytes().to_vec());
    let binary = [lcs(&[(7, 258, 4096, 1, 0)]), vscsi(2, &[(0x28, 1, 2, 3); 2]), LMCACHE.to_vec()];
    let samples = prop::sample::select(texts.into_iter().chain(binary).collect::<Vec<_>>());
    let pieces = prop::collection::vec((any::<prop::sample::Index>(), "[0-9,\"\\[\\]{}.: \n\r-]{0,6}|\\PC{0,3}"), 0..6);
    (samples, pieces).prop_map(|(sample, pieces)| {
        let mut bytes = sample;
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
        prop_assert!(TraceName::ALL.len() == 10);
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
