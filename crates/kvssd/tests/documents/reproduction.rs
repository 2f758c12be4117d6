//! `docs/REPRODUCTION.md` keeps to `docs/REPRODUCTION.txt`, which is what `kvssd reproduce all` printed.

use crate::{read, root};
use std::collections::BTreeMap;

/// The papers' 56 claims are all but these.
const OURS: [&str; 3] = ["iter.10", "fdp.1", "fdp.2"];
/// Judged by the worst of five seeds, as it is at the edge. One of them was printed.
const OF_SEEDS: &str = "plus.2";

/// What became of a claim.
struct Found {
    verdict: String,
    /// Every number of ours, under assumptions too.
    numbers: Vec<f64>,
}

/// A number as it is written: decimals say how near it is.
struct Written {
    number: f64,
    decimals: i32,
}

#[test]
fn verdicts_and_figures_are_those_that_were_printed() {
    let (printed, told) = (printed(), read(&root().join("docs/REPRODUCTION.md")));
    let mut faults = Vec::new();
    let rows = rows(&told);
    for (id, ours, verdict) in &rows {
        let Some(found) = printed.get(id) else {
            faults.push(format!("{id} is not printed"));
            continue;
        };
        if found.verdict != *verdict && id != OF_SEEDS {
            faults.push(format!("{id} is {}, not {verdict}", found.verdict));
        }
        let unknown = numbers(ours).into_iter().filter(|written| !written.is_of(&found.numbers));
        faults
            .extend(unknown.map(|Written { number, .. }| format!("{id}: nothing that was found is {number}: {ours}")));
    }
    assert!(faults.is_empty(), "docs/REPRODUCTION.md: {faults:#?}");
    assert_eq!(rows.len(), printed.len(), "every claim has a row");
}

#[test]
fn the_sum_of_verdicts_is_that_of_the_table() {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let told = read(&root().join("docs/REPRODUCTION.md"));
    for (_, _, verdict) in rows(&told).into_iter().filter(|(id, ..)| !OURS.contains(&id.as_str())) {
        *counts.entry(verdict).or_default() += 1;
    }
    let of = |verdict: &str| counts.get(verdict).copied().unwrap_or_default();
    let sentence = format!(
        "Of the papers' 56 claims (iter.10 is ours) {} are reproduced, {} proven, {} true by construction; {} show the direction, {} are not reproduced.",
        of("reproduced"),
        of("proven"),
        of("by construction"),
        of("direction"),
        of("not reproduced"),
    );
    assert!(
        read(&root().join("docs/REPRODUCTION.md")).contains(&sentence),
        "docs/REPRODUCTION.md must say: {sentence}"
    );
}

#[test]
fn numbers_are_read_with_their_decimals() {
    let read: Vec<(f64, i32)> =
        numbers("0.97x; 1 799 918 of 25 M, -82 %").iter().map(|written| (written.number, written.decimals)).collect();
    assert_eq!(read, [(0.97, 2), (1_799_918.0, 0), (25.0, 0), (82.0, 0)]);
    let near = Written { number: 1.2, decimals: 1 };
    assert!(near.is_of(&[3.0, 1.249]) && !near.is_of(&[1.26, 12.0]));
}

impl Written {
    /// Whether one of these, rounded so, is this one.
    fn is_of(&self, numbers: &[f64]) -> bool {
        let half = 0.5 * f64::powi(10.0, -self.decimals);
        numbers.iter().any(|number| (number - self.number).abs() <= half + 1e-9)
    }
}

/// Each claim: a line that begins with its number, and those behind it that are set in.
fn printed() -> BTreeMap<String, Found> {
    let mut printed: BTreeMap<String, Found> = BTreeMap::new();
    let mut id = String::new();
    for line in read(&root().join("docs/REPRODUCTION.txt")).lines() {
        if !line.starts_with(' ') {
            line.split(' ').next().unwrap_or_default().clone_into(&mut id);
        } else if let Some((_, ours)) = line.split_once("; ours ") {
            let (ours, verdict) = ours.rsplit_once("): ").expect("a verdict stands at the end");
            let ours = ours.rsplit_once(" (scale ").expect("and the scale before it").0;
            let numbers = numbers(ours).iter().map(|written| written.number).collect();
            printed.insert(id.clone(), Found { verdict: verdict.to_owned(), numbers });
        } else if let (Some(ablation), Some(found)) = (line.trim_start().strip_prefix("with "), printed.get_mut(&id)) {
            found.numbers.extend(numbers(ablation).iter().map(|written| written.number));
        }
    }
    printed
}

/// The rows of the document's tables: number, ours, verdict.
fn rows(document: &str) -> Vec<(String, String, String)> {
    let mut rows = Vec::new();
    let mut paper = "";
    for line in document.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, _, _, ours, verdict] = cells[..] else { continue };
        match number.parse::<u32>() {
            Ok(number) => {
                let verdict = verdict.trim_end_matches('†');
                rows.push((format!("{paper}.{number}"), ours.to_owned(), verdict.to_owned()));
            }
            Err(_) if number.starts_with('-') => {}
            Err(_) => paper = number,
        }
    }
    rows
}

/// All numbers of a text. Spaces may stand between thousands.
fn numbers(text: &str) -> Vec<Written> {
    let mut numbers = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let end = end_of_number(&rest[begin..]);
        let digits = rest[begin..begin + end].replace(' ', "");
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len()) as i32;
        numbers.push(Written { number: digits.parse().expect("it is a number"), decimals });
        rest = &rest[begin + end..];
    }
    numbers
}

/// How far a number goes that a text begins with.
fn end_of_number(text: &str) -> usize {
    let digits = |text: &str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let mut end = digits(text);
    while text[end..].starts_with(' ') && digits(&text[end + 1..]) == 3 {
        end += 4;
    }
    match text[end..].strip_prefix('.').map(digits) {
        Some(decimals) if decimals > 0 => end + 1 + decimals,
        _ => end,
    }
}
