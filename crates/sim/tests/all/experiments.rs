//! Experiments: as text, what they need, and what is refused before they run.

use kvssd_measure::Quiet;
use kvssd_sim::workload::{PairShape, SizeDistribution};
use kvssd_sim::{Bench, Experiment};

fn experiments() -> Vec<Experiment> {
    let designs = kvssd_designs::all().iter().map(|design| design.name.to_owned()).collect();
    let victims = ("design.victims", "cost-benefit");
    let overrides = [("nand.erase_ns", "3800000"), ("design.gc_low_superblocks", "12"), victims];
    let overrides = overrides.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let (records, operations) = (Some(2000), Some(500));
    Bench { designs, scale: 0.3 / 128.0, records, operations, overrides, ..Bench::default() }
        .experiments(Experiment::check)
        .unwrap()
}

#[test]
fn an_experiment_that_was_written_and_read_is_the_same() {
    let experiments = experiments();
    assert!(experiments.len() > 7);
    for experiment in experiments {
        let text = serde_json::to_string(&experiment).unwrap();
        let read: Experiment = serde_json::from_str(&text).unwrap();
        assert_eq!(read, experiment);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let [first, again] = [&experiment, &read].map(|one| {
            let mut reports = serde_json::to_value(one.run(&mut Quiet).unwrap()).unwrap();
            reports[0].as_object_mut().unwrap().remove("host").unwrap();
            reports
        });
        assert_eq!(first, again);
    }
}

/// Hosts and pairs lie flat among the fields of the work: there too a field that nobody knows is refused, and the order is that of older reports.
#[test]
fn a_field_that_nobody_knows_is_refused() {
    let text = serde_json::to_string(&experiments()[0]).unwrap();
    let flat =
        "\"threads\":20,\"queue_depth\":1,\"rate_per_s\":null,\"batch_pairs\":1,\"key_bytes\":8,\"value_bytes\":1000,";
    assert!(text.contains(flat), "{text}");
    for known in ["\"threads\":", "\"key_bytes\":", "\"records\":"] {
        let more = text.replacen(known, &format!("\"cabbage\":1,{known}"), 1);
        let why = serde_json::from_str::<Experiment>(&more).unwrap_err().to_string();
        assert!(why.contains("unknown field `cabbage`"), "{why}");
        let less = text.replacen(known, "\"cabbage\":", 1);
        assert!(serde_json::from_str::<Experiment>(&less).is_err(), "{less}");
    }
}

#[test]
fn a_design_that_is_another_one_here_is_refused() {
    let mut experiment = experiments().swap_remove(0);
    let validity = experiment.design.insert("validity".to_owned(), "cabbage".to_owned()).unwrap();
    let why = experiment.check().unwrap_err().to_string();
    assert_eq!(why, "design.validity: original has grain-bitmap in this program, and cabbage in the experiment");
    experiment.design.insert("validity".to_owned(), validity);
    let index = experiment.design.insert("index".to_owned(), "cuckoo".to_owned()).unwrap();
    let why = experiment.check().unwrap_err().to_string();
    assert!(why.starts_with("design.index: there is no index \"cuckoo\""), "{why}");
    experiment.design.insert("index".to_owned(), "rhik".to_owned());
    assert!(experiment.check().unwrap_err().to_string().contains("none in the experiment"), "what is chosen of it");
    experiment.design.insert("index".to_owned(), index);
    experiment.check().unwrap();
    experiment.design.remove("index");
    assert!(experiment.check().unwrap_err().to_string().contains("none in the experiment"));
    experiment.design.insert("name".to_owned(), "nonsense".to_owned());
    assert!(experiment.check().unwrap_err().to_string().contains("there is no design"));
}

/// How many pairs fill a drive is reckoned from parameters: those that cannot be are refused before.
#[test]
fn parameters_that_cannot_be_are_refused_and_nothing_is_reckoned_from_them() {
    let mut refused = 0;
    for design in kvssd_designs::all() {
        for (key, value) in design.parameters() {
            for impossible in ["0", "99", "4294967295"].into_iter().filter(|_| value.parse::<u32>().is_ok()) {
                let designs = vec![design.name.to_owned()];
                let overrides = vec![(format!("design.{key}"), impossible.to_owned())];
                let bench = Bench { designs, scale: 1.0 / 512.0, overrides, ..Bench::default() };
                for experiments in [bench.experiments(Experiment::check), bench.experiments(Experiment::check_on_paper)]
                {
                    refused += u32::from(experiments.is_err_and(|error| error.to_string().contains("design")));
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

/// The most resident memory of processes that ran it at 1/256, filled by a half and overwritten.
const MEASURED: [(&str, u32, u64); 10] = [
    ("plus", 50, 301),
    ("plus", 1000, 62),
    ("plus", 65_536, 54),
    ("rhik", 50, 248),
    ("original", 50, 66),
    ("block", 4096, 50),
    ("multilevel", 16_384, 52),
    ("pink", 100, 290),
    ("iter", 1000, 72),
    ("kaml", 1000, 64),
];

#[test]
fn what_is_told_beforehand_is_enough_and_not_far_too_much() {
    for (design, value_bytes, mebibytes) in MEASURED {
        let designs = vec![design.to_owned()];
        let pairs = PairShape::constant(8, value_bytes);
        let bench = Bench { designs, scale: 1.0 / 256.0, fill: 0.5, pairs, ..Bench::default() };
        let told = bench.experiments(Experiment::check).unwrap()[0].memory_bytes().unwrap() >> 20;
        assert!((mebibytes..mebibytes * 3).contains(&told), "{design}, {value_bytes}: {told} MiB");
    }
}

#[test]
fn what_a_large_drive_lacks_is_told_by_a_small_one() {
    let bench = |dram_bytes: &str| Bench {
        designs: vec!["plus".to_owned()],
        scale: 1.0 / 16.0,
        overrides: vec![("memory.dram_bytes".to_owned(), dram_bytes.to_owned())],
        ..Bench::default()
    };
    let (lacks, has) = (bench("16777216"), bench("268435456"));
    for experiments in [lacks.experiments(Experiment::check), lacks.experiments(Experiment::check_on_paper)] {
        assert!(experiments.unwrap_err().to_string().contains("the design needs at least"));
    }
    assert_eq!(
        has.experiments(Experiment::check_on_paper).unwrap(),
        has.experiments(Experiment::check).unwrap(),
        "the drive that was asked for"
    );
}

/// `--fill` is of the flash, whatever sizes the values have.
#[test]
fn a_drive_is_filled_as_far_as_was_asked_for_with_values_of_any_sizes() {
    for design in ["plus", "tessera"] {
        for value_distribution in SizeDistribution::ALL {
            let bench = Bench {
                designs: vec![design.to_owned()],
                scale: 1.0 / 256.0,
                fill: 0.3,
                overwrites: Some(0),
                operations: Some(1),
                pairs: PairShape { key_bytes: 8, value_bytes: 8000, value_distribution },
                ..Bench::default()
            };
            let filled = bench.run(&mut Quiet).unwrap().swap_remove(0).fill;
            // With the index beside the pairs.
            assert!((0.295..0.33).contains(&filled), "{design} {value_distribution}: {filled}");
        }
    }
}
