use super::*;
use proptest::prelude::*;

const FILE: &str = "
# A comment
[document]
ndocs = 2000      ; another
[threads]
readers = 3
writers = 1
[KVS]
write_mode = async
queue_depth = 64
[key_length]
distribution = fixed
fixed_size = 16
[body_length]
distribution = ratio
value_size = 512,2048,4096
value_size_ratio = 10:50:40
[operation]
nops = 3000
batch_distribution = zipfian
read_write_insert_delete = 50:30:15:5
[blobfs]
spdk_cache_size = 4096
";

#[test]
fn a_file_is_read_as_kvbench_reads_it() {
    let expected = KvBench {
        records: 2000,
        is_population_measured: true,
        population_threads: 1,
        threads: 4,
        queue_depth: 64,
        key_lengths: Lengths::fixed(16),
        value_sizes: Lengths::mix(&[512, 2048, 4096], &[10, 50, 40]).unwrap(),
        distribution: Distribution::Zipfian,
        percents: Percents { reads: 50, updates: 30, inserts: 15, deletes: 5 },
        length: RunLength::Operations(3000),
        warmup_seconds: 0,
    };
    assert_eq!(KvBench::parse(FILE), Ok(expected));
}

#[test]
fn what_is_not_said_is_kvbenchs_default() {
    let bench = KvBench::parse("[threads]\nreaders=1\nwriters=3").unwrap();
    assert_eq!((bench.records, bench.queue_depth), (10_000, 1));
    assert_eq!(bench.percents, Percents { reads: 25, updates: 75, ..Percents::READS });
    assert_eq!(bench.key_lengths, Lengths::normal(64, 8, 4, 255));
    assert_eq!((bench.distribution, bench.length), (Distribution::Uniform, RunLength::Seconds(60)));
}

#[test]
fn what_cannot_be_is_named_with_its_line() {
    for (text, said) in [
        ("ndocs", "line 1: it is neither"),
        ("[threads]\nreaders=1\n[document]\nndocs = many", "line 4: [document] ndocs is of whole numbers"),
        ("[document]\nndocs = 0\n[threads]\nreaders=1", "line 2: [document] ndocs is above 0"),
        ("", "[threads] readers"),
        ("[threads]\nreaders = 0", "line 2: [threads] readers"),
        ("[threads]\nreaders = 1\n[operation]\nread_write_insert_delete = 50:40:0:0", "line 4: [operation] read_write"),
        ("[threads]\nreaders = 1\n[operation]\nread_write_insert_delete = 50:50", "line 4: [operation] read_write"),
        (
            "[threads]\nreaders = 1\n[body_length]\ndistribution = ratio\nvalue_size = 1,2",
            "[body_length] value_size_ratio",
        ),
        ("[threads]\nreaders = 1\n[body_length]\ndistribution = odd", "line 4: [body_length] distribution is fixed"),
        ("[threads]\nreaders = 1\n[key_length]\ndistribution = fixed\nfixed_size = 256", "line 4: [key_length]"),
        ("[threads]\nreaders = 1\n[kvs]\nwith_iterator = alone", "line 4: [kvs] with_iterator"),
        ("[threads]\nreaders = 1\niterators = 2", "line 3: [threads] iterators"),
        (
            "[threads]\nreaders = 1\n[operation]\nbatch_distribution = zipfian\nbatch_parameter1 = 0.5",
            "line 5: [operation] batch_parameter1",
        ),
    ] {
        let message = KvBench::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(said) && message.lines().count() == 1, "{text:?}: {message}");
    }
}

#[test]
fn operations_have_their_shares_and_inserts_come_in_order() {
    let bench = KvBench::parse(FILE).unwrap();
    let mut operations = bench.operations(2000, 20_000);
    let mut random = Random::new(1);
    let (mut counts, mut records) = ([0; 4], 2000);
    for _ in 0..100_000 {
        let operation = operations.next(&mut random);
        match operation {
            Operation::Insert { record } => {
                assert_eq!(record, records);
                records += 1;
            }
            other => assert!(other.record() < records),
        }
        let kind = match operation {
            Operation::Read { .. } => 0,
            Operation::Update { .. } => 1,
            Operation::Insert { .. } => 2,
            Operation::Delete { .. } => 3,
            other => panic!("{other:?}"),
        };
        counts[kind] += 1;
    }
    let Percents { reads, updates, inserts, deletes } = bench.percents;
    for (count, percent) in counts.into_iter().zip([reads, updates, inserts, deletes]) {
        assert!((f64::from(count) / 1000.0 - f64::from(percent)).abs() < 0.8, "{counts:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        text in "(\\[(document|threads|kvs|key_length|body_length|operation)\\]|[a-z_]{1,12} *= *[0-9a-z:,.]{0,12}|\\PC{0,9}|\n){0,30}"
    ) {
        let _ = KvBench::parse(&text);
        if let Ok(bench) = KvBench::parse(&format!("{FILE}\n{text}")) {
            let Percents { reads, updates, inserts, deletes } = bench.percents;
            prop_assert_eq!(reads + updates + inserts + deletes, 100);
        }
    }
}
