//! A page is whole, well formed, of one file, and says what the reports say.

use kvssd_measure::Latencies;
use kvssd_report::{Study, StudyError, html};
use kvssd_types::Nanos;
use roxmltree::Document;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const DESIGNS: [&str; 3] = ["original", "plus", "rhik"];
const SIZES: [u64; 4] = [250, 500, 1000, 4000];
const SEEDS: u64 = 5;

/// A run with all that a page shows. Its throughput is 1000 for each byte of a value, and 10 more for each seed.
fn run(design: &str, value_bytes: u64, seed: u64) -> Value {
    let mut latencies = Latencies::new();
    (0..20_000).for_each(|number| latencies.add(Nanos(10_000 + number * number / 100 * value_bytes / 100 + seed)));
    let took = latencies.summary();
    let ends: Vec<u64> = (1..=1000).map(|number| number * 1_000_000).collect();
    let parts: BTreeMap<String, u64> = (1..=10).map(|part| (format!("part_{part}"), part * 1_000_000)).collect();
    json!({
        "design": design, "workload": "ycsb-a", "seed": seed, "simulated_ns": 7,
        "throughput_ops_s": 1000 * value_bytes + 10 * seed, "write_amplification": 2.5 + seed as f64,
        "latency_ns": { "retrieve": took, "store": took },
        "latency_histograms": { "retrieve": latencies.to_base64(), "store": latencies.to_base64() },
        "spent_ns": { "retrieve": parts, "store": parts, "other": {} },
        "dram": { "used_bytes": 55_000_000, "parts": parts },
        "series": { "end_ns": ends, "throughput_ops_s": ends, "retrieve_p99_ns": ends },
    })
}

/// The index of a sweep over all of them, and one point that is impossible.
fn index() -> Value {
    let mut points =
        vec![json!({ "at": { "design": "plus", "value-bytes": 9, "seed": 1 }, "impossible": "too <small>" })];
    for design in DESIGNS {
        for (size, seed) in SIZES.iter().flat_map(|size| (1..=SEEDS).map(move |seed| (size, seed))) {
            let at = json!({ "design": design, "value-bytes": size, "seed": seed });
            points.push(json!({ "at": at, "report": format!("{design}/{size}/{seed}") }));
        }
    }
    let axes = json!([{ "design": DESIGNS }, { "value-bytes": SIZES }, { "seed": [1, 2, 3, 4, 5] }]);
    json!({ "program": { "version": "1" }, "options": { "scale": "1/64" }, "axes": axes, "points": points })
}

fn report(path: &str) -> Option<Value> {
    let parts: Vec<&str> = path.split('/').collect();
    Some(json!({ "runs": [run(parts[0], parts[1].parse().ok()?, parts[2].parse().ok()?)] }))
}

fn page() -> String {
    html("a sweep", &Study::of_sweep(&index(), report).unwrap())
}

/// Every part of a text from one word to another, both with it.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    text.match_indices(from)
        .map(|(begin, _)| &text[begin..begin + text[begin..].find(to).unwrap() + to.len()])
        .collect()
}

#[test]
fn a_page_is_one_file_of_a_size_that_can_be_sent() {
    let page = page();
    assert!((100_000..5_000_000).contains(&page.len()), "{} bytes", page.len());
    let addresses = page.matches("http").count();
    assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count(), "the namespace alone");
    for other in [" src=", "@import", "url(", "fetch("] {
        assert!(!page.contains(other), "{other}");
    }
    assert_eq!(page, self::page(), "the same bytes again");
}

#[test]
fn every_figure_is_a_well_formed_svg_with_its_data() {
    let page = page();
    let figures = between(&page, "<figure ", "</figure>");
    // Four figures by axis (two of them latencies); for each size two CDFs and two over time; two of latency and one of DRAM.
    assert_eq!(figures.len(), 4 + 4 * 2 + 4 * 2 + 3);
    for figure in figures {
        let svg = Document::parse(between(figure, "<svg", "</svg>")[0]).unwrap();
        let marks = ["polyline", "rect", "circle"];
        let drawn = svg.descendants().filter(|node| marks.contains(&node.tag_name().name())).count();
        assert!(drawn > 3, "{figure}");
        let text: Vec<&str> = svg.descendants().filter_map(|node| node.text()).map(str::trim).collect();
        assert!(text.iter().any(|text| DESIGNS.iter().any(|design| text.contains(design))), "{text:?}");
        assert!(between(figure, "<pre>", "</pre>")[0].lines().count() > DESIGNS.len(), "{figure}");
    }
}

#[test]
fn means_have_intervals_over_seeds() {
    let page = page();
    // Student's t of four degrees of freedom, 2.7764, times the root of the variance 250 over five.
    let half_width = 2.7764 * (250_f64 / 5.0).sqrt();
    let line = page.lines().find(|line| line.starts_with("&quot;plus, 500&quot;,5,500030")).expect("the data has it");
    let found: f64 = line.rsplit(',').next().unwrap().parse().unwrap();
    assert!((found - half_width).abs() < 1e-6, "{line}");
    assert!(page.contains("500 030 <small>± 20</small>"));
    assert!(page.contains("impossible: design=plus value-bytes=9 seed=1: too &lt;small&gt;"));
}

/// A replay counts retrieves that find nothing apart, and a drive that keeps a value in segments spends the time of several commands on it.
#[test]
fn the_parts_of_a_latency_add_up_to_its_mean() {
    let mut replay = run("plus", 100, 0);
    let (count, mean) = ("/latency_ns/retrieve/count", "/latency_ns/retrieve/mean");
    let [count, mean] = [count, mean].map(|pointer| replay.pointer(pointer).unwrap().as_f64().unwrap());
    replay["latency_ns"]["miss"] = json!({ "count": count, "mean": mean / 2.0 });
    let page = html("misses", &Study::of_report(&json!({ "runs": [replay] })).unwrap());
    let shown: Vec<f64> = between(&page, "at,part,mean_ns", "</pre>")
        .iter()
        .map(|data| data.lines().filter_map(|line| line.rsplit_once(',')?.1.parse::<f64>().ok()).sum())
        .collect();
    assert_eq!(shown.len(), 2);
    for (shown, expected) in shown.into_iter().zip([0.75 * mean, mean]) {
        assert!((shown / expected - 1.0).abs() < 1e-9, "{shown}, and not {expected}");
    }
}

/// What is done once more on the same drive is no second seed of the first.
#[test]
fn benchmarks_that_are_named_twice_are_two_and_have_no_interval() {
    let runs = [100, 200].map(|rate| run("plus", rate, 0));
    let of_report = json!({ "runs": runs });
    let index = json!({ "axes": [{ "row": ["one"] }], "points": [{ "at": { "row": "one" }, "report": "x" }] });
    let of_sweep = Study::of_sweep(&index, |_| Some(of_report.clone())).unwrap();
    for study in [Study::of_report(&of_report).unwrap(), of_sweep] {
        let page = html("twice", &study);
        assert!(page.contains("100 000") && page.contains("200 000") && page.contains("ycsb-a 2"));
        assert!(!page.contains("150 000") && !page.contains("± "), "a mean of both");
    }
}

#[test]
fn a_sweep_over_names_and_more_has_a_heat_map_for_each_place_on_the_other_axes() {
    let mut points = Vec::new();
    for row in ["reads", "writes", "ranges", "batches"] {
        for (design, size) in DESIGNS.iter().flat_map(|design| SIZES.iter().map(move |size| (design, size))) {
            let at = json!({ "row": row, "design": design, "distribution": "zipfian", "value-bytes": size });
            let mut uniform = at.clone();
            uniform["distribution"] = json!("uniform");
            points.extend([at, uniform].map(|at| json!({ "at": at, "report": format!("{design}/{size}/1") })));
        }
    }
    let axes = json!([{ "row": ["reads"] }, { "design": DESIGNS }, { "distribution": ["zipfian", "uniform"] }, { "value-bytes": SIZES }]);
    let index = json!({ "program": {}, "options": {}, "axes": axes, "points": points });
    let page = html("names", &Study::of_sweep(&index, report).unwrap());
    let maps = between(&page, "<h2>throughput", "</table>");
    assert_eq!(maps.len(), 2 * SIZES.len());
    for map in maps {
        assert!(map.contains("by row: distribution ") && map.contains(", value-bytes "), "{map}");
        assert_eq!((map.matches("<tr").count(), map.matches("--heat").count()), (1 + 4, 4 * DESIGNS.len()));
    }
    assert!(!self::page().contains("--heat: "), "one axis of names is none");
}

#[test]
fn heat_maps_that_a_page_has_no_room_for_are_counted() {
    let point = |row: &str, design: &str, size: u64| json!({ "at": { "row": row, "design": design, "value-bytes": size }, "report": format!("{design}/{size}/1") });
    let of_size =
        |size: u64| ["a", "b"].into_iter().flat_map(move |row| ["plus", "rhik"].map(|design| point(row, design, size)));
    let index = json!({ "axes": [{ "row": [] }, { "design": [] }, { "value-bytes": [] }], "points": (1..=50).flat_map(of_size).collect::<Vec<_>>() });
    let page = html("many", &Study::of_sweep(&index, report).unwrap());
    assert_eq!(between(&page, "<h2>throughput", "</h2>").len(), 48);
    assert!(page.contains("2 more are not drawn"));
}

#[test]
fn what_a_report_says_is_text_in_the_page() {
    let nasty = "</script><script>alert('1')</script>";
    let report = json!({ "runs": [run(nasty, 9, 1), run("plus", 9, 1)] });
    let page = html(nasty, &Study::of_report(&report).unwrap());
    assert_eq!((page.matches("<script").count(), page.matches("alert('").count()), (1, 0));
    assert!(between(&page, "<svg", "</svg>").iter().all(|svg| Document::parse(svg).is_ok()));
}

#[test]
fn claims_have_their_verdicts() {
    let ablation = json!([{ "assumed": "no limits", "ours": "1.2x", "verdict": "reproduced" }]);
    let claim = json!({ "id": "plus.1", "claim": "less", "paper": "1.3x", "ours": "1.1x", "verdict": "direction",
        "scale": "1/64", "cause": null, "ablation": ablation });
    let page = html("claims", &Study::of_report(&json!({ "claims": [claim] })).unwrap());
    assert!(page.contains("<td class=\"half\">direction</td>") && page.contains("<td class=\"good\">reproduced</td>"));
    assert_eq!(page.matches("<table>").count(), 2);
}

/// A figure of a paper as `kvssd reproduce` writes it.
fn figure(number: &str, kind: &str, places: &Value, series: &[(&str, &str, Value)]) -> Value {
    let series: Vec<Value> = series
        .iter()
        .map(|(name, source, values)| json!({ "name": name, "source": source, "values": values }))
        .collect();
    json!({ "paper": "plus", "number": number, "caption": "Faster <here>.", "claims": ["plus.1"], "kind": kind,
        "along": { "title": "place", "unit": "count", "places": places },
        "values": { "title": "latency", "unit": "ns", "scale": "log" }, "series": series })
}

#[test]
fn figures_of_papers_have_ours_and_hollow_marks_beside_them() {
    let figures = [
        figure(
            "2",
            "bars",
            &json!(["a", "b"]),
            &[("plus", "ours", json!([9, 8])), ("plus", "paper", json!([7, null]))],
        ),
        figure(
            "3",
            "lines",
            &json!([1, 20]),
            &[("plus", "ours", json!([9, 8])), ("plus", "paper, up to", json!([null, 7]))],
        ),
        figure("4", "lines", &json!(["a", "b", "c"]), &[("plus", "ours", json!([9, 8, null]))]),
        figure("5", "cdf", &json!([0.99, 0.995, 1.0]), &[("plus", "ours", json!([100, 200, 9000]))]),
        figure("6", "lines", &json!([7]), &[("plus", "ours", json!([9]))]),
    ];
    let page = html("claims", &Study::of_report(&json!({ "claims": [], "figures": figures })).unwrap());
    let figures = between(&page, "<figure ", "</figure>");
    let svgs: Vec<Document<'_>> =
        figures.iter().map(|figure| Document::parse(between(figure, "<svg", "</svg>")[0]).unwrap()).collect();
    // Of all, and of those beside legends and axes: filled bars and dots of ours, frames and rings of the paper's.
    let marks = |at: usize, tag: &str, fill: &str| {
        let is_mark = |node: &roxmltree::Node<'_, '_>| node.has_tag_name(tag) && node.attribute("fill") == Some(fill);
        svgs[at].descendants().filter(is_mark).count()
    };
    assert_eq!(marks(0, "rect", "#0072B2"), 2 + 1, "bars, and the legend");
    assert_eq!(
        svgs[0].descendants().filter(|node| node.attribute("stroke") == Some("#0072B2")).count(),
        1 + 1,
        "frames"
    );
    assert_eq!((marks(1, "circle", "#0072B2"), marks(1, "circle", "none")), (2, 1));
    assert_eq!((marks(2, "circle", "#0072B2"), marks(4, "circle", "#0072B2")), (2, 1));
    assert!(figures[0].contains("<p>Faster &lt;here&gt;. (plus.1)</p>") && page.contains("<h2>Figures of plus</h2>"));
    assert!(figures[0].contains("place,series,value_ns\na,plus,9\nb,plus,8\na,plus (paper),7\n"), "{}", figures[0]);
    assert!(figures[1].contains("plus (paper, up to)"));
}

#[test]
fn a_figure_that_cannot_be_drawn_is_refused_by_name() {
    let error =
        |figure: Value| Study::of_report(&json!({ "claims": [], "figures": [figure] })).unwrap_err().to_string();
    let short = error(figure("2", "bars", &json!(["a", "b"]), &[("plus", "ours", json!([9]))]));
    assert_eq!(short, "a figure in it cannot be drawn: plus figure 2: plus has 1 values for 2 places");
    assert!(error(figure("2", "pie", &json!(["a"]), &[("plus", "ours", json!([9]))])).contains("pie"));
    assert!(error(figure("2", "bars", &json!(["a"]), &[("plus", "ours", json!([0]))])).contains("0 cannot be drawn"));
    assert!(error(json!(7)).contains("cannot be drawn"));
}

#[test]
fn names_beside_bars_are_not_cut_off_at_the_left() {
    let name = "a rather long name of a workload, WWWWWWWW";
    let report = json!({ "runs": [run("plus", 9, 1), run(name, 9, 1)] });
    let page = html("a bench", &Study::of_report(&report).unwrap());
    let bars: Vec<&str> = between(&page, "<svg", "</svg>")
        .into_iter()
        .filter(|svg| svg.contains("text-anchor=\"end\"") && svg.contains(" of a workload"))
        .collect();
    assert!(!bars.is_empty());
    for svg in bars {
        let svg = Document::parse(svg).unwrap();
        let number = |node: &roxmltree::Node<'_, '_>, name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let labels = svg.descendants().filter(|node| node.attribute("text-anchor") == Some("end"));
        for label in labels.filter(|node| node.text().is_some_and(|text| text.contains(" of a workload"))) {
            let letters = label.text().unwrap().trim().chars().count() as f64;
            let wide = 0.6 * letters * number(&label, "font-size");
            assert!(number(&label, "x") > wide, "{label:?}");
        }
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let error = |document: Value| Study::of_report(&document).unwrap_err();
    assert_eq!(error(json!({})), StudyError::Unknown);
    assert_eq!(error(json!([1])), StudyError::Unknown);
    assert_eq!(error(json!({ "runs": [{ "wall_ns": 1 }] })), StudyError::WallClock);
    assert!(matches!(error(json!({ "runs": [], "failure": "full" })), StudyError::Empty(why) if why == "full"));
    let none = Study::of_sweep(&index(), |_| None).unwrap_err();
    assert!(matches!(none, StudyError::Empty(_)), "{none}");
    assert_eq!(Study::of_sweep(&json!({ "points": [] }), |_| None).unwrap_err(), StudyError::Unknown);
}

#[test]
fn broken_runs_break_no_page() {
    let figures = [json!(null), json!("x"), json!(-1), json!(1e308), json!([]), json!({}), json!(0)];
    for broken in &figures {
        let keys = [
            "throughput_ops_s",
            "write_amplification",
            "latency_ns",
            "latency_histograms",
            "spent_ns",
            "dram",
            "series",
        ];
        let mut runs = [run("plus", 9, 1), run("rhik", 9, 1)];
        for key in keys {
            runs[0][key] = broken.clone();
        }
        runs[1]["series"]["end_ns"] = broken.clone();
        runs[1]["latency_histograms"]["store"] = broken.clone();
        let page = html("broken", &Study::of_report(&json!({ "runs": runs })).unwrap());
        assert!(between(&page, "<svg", "</svg>").iter().all(|svg| Document::parse(svg).is_ok()));
    }
}
