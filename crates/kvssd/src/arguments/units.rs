//! Numbers as people write them (1e6, 4KiB, 1/64, 10ms), and choices by their names.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use kvssd_device::LARGE_VALUE_BYTES_MAX;
use kvssd_sim::TraceWindow;
use kvssd_text::Bytes;
use kvssd_types::{Key, Nanos};

const BYTES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
];
const COUNTS: [(&str, u64); 4] = [("k", 1_000), ("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
const TIMES: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// A whole number of something, perhaps as 1e6, 2.5e5, 1_000_000 or in one of the units; else what is wrong with it.
fn whole(text: &str, units: &[(&str, u64)], examples: &str) -> Result<u64, String> {
    let wrong = || format!("write it as {examples}");
    let unit = units.iter().find_map(|(name, factor)| Some((text.strip_suffix(name)?, *factor)));
    let (number, factor) = unit.unwrap_or((text, 1));
    let number = number.trim().replace('_', "");
    if let Ok(number) = number.parse::<u64>() {
        return number.checked_mul(factor).ok_or_else(too_large);
    }
    // Up to here a float has every whole number.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    let is_number = number.starts_with(|letter: char| letter.is_ascii_digit());
    let number = number.parse::<f64>().ok().filter(|_| is_number).ok_or_else(wrong)? * factor as f64;
    match number.fract() == 0.0 {
        true if number <= EXACT_MAX => Ok(number as u64),
        true => Err(too_large()),
        false => Err(wrong()),
    }
}

fn too_large() -> String {
    "it is too large".to_owned()
}

/// A number of things such as 1e6, 250k, 2M or 100000.
pub fn count(text: &str) -> Result<u64, String> {
    whole(text, &COUNTS, "1e6, 250k, 2M or 100000")
}

/// The same of things that 32 bits count.
pub fn small_count(text: &str) -> Result<u32, String> {
    count(text)?.try_into().map_err(|_| too_large())
}

/// The same where none will not do.
pub fn some(text: &str) -> Result<u32, String> {
    some_count(text)?.try_into().map_err(|_| too_large())
}

/// A number of things, of which there is one at the least.
pub fn some_count(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("it is 1 at the least".to_owned()),
        count => Ok(count),
    }
}

/// A number of bytes such as 4GiB, 500MB or 4096.
pub fn size(text: &str) -> Result<u64, String> {
    whole(text, &BYTES, "4GiB, 500MB or 67108864")
}

/// A number of bytes such as 4KiB or 1000, of less than 4 GiB.
pub fn small_size(text: &str) -> Result<u32, String> {
    whole(text, &BYTES, "4KiB or 1000")?.try_into().map_err(|_| too_large())
}

/// A key: text, or hex: and its bytes.
pub fn key(text: &str) -> Result<Bytes, String> {
    let bytes: Bytes = text.parse()?;
    Key::new(&bytes.0).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// Bytes of a value in an image.
pub fn value_bytes(text: &str) -> Result<u32, String> {
    let bytes = at_least_4kib(size(text)?)?;
    let most = u64::from(LARGE_VALUE_BYTES_MAX);
    u32::try_from(bytes.min(most + 1))
        .ok()
        .filter(|bytes| *bytes <= LARGE_VALUE_BYTES_MAX)
        .ok_or_else(|| format!("a value has {} MiB at the most", most >> 20))
}

/// Bytes of the largest value where values are large, and of a cache.
pub fn at_least_4kib(bytes: u64) -> Result<u64, String> {
    if bytes < 4 << 10 { Err("it is 4KiB at the least".to_owned()) } else { Ok(bytes) }
}

/// Bytes of a cache.
pub fn cache_bytes(text: &str) -> Result<u64, String> {
    at_least_4kib(size(text)?)
}

/// One of several that have names: help, manual and completions list them.
pub fn named<T: Copy + Send + Sync + 'static>(
    all: impl Into<Vec<T>>,
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let all = all.into();
    let names: Vec<&str> = all.iter().copied().map(name).collect();
    let of_name = move |given: String| all.iter().copied().find(|one| name(*one) == given);
    PossibleValuesParser::new(names).map(move |given| of_name(given).expect("it is among the possible values"))
}

/// A fraction such as 1/64, or a number.
pub fn scale(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| format!("{text:?} is not a number"));
    let factor = match text.split_once('/') {
        Some((over, under)) => number(over)? / number(under)?,
        None => number(text)?,
    };
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err("a scale is above 0, such as 1/64".to_owned()) }
}

/// A span of virtual time such as 10ms, 500us or 2s.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let has_unit = TIMES.iter().any(|(unit, _)| text.ends_with(unit));
    let examples = "10ms, 500us or 2s";
    if !has_unit {
        return Err(format!("write {text:?} as {examples}"));
    }
    whole(text, &TIMES, examples).map(Nanos)
}

/// Virtual time such as 20ms..25ms.
pub fn window(text: &str) -> Result<TraceWindow, String> {
    let (from, until) = text.split_once("..").ok_or_else(|| format!("write {text:?} as 20ms..25ms"))?;
    let window = TraceWindow { from: duration(from)?, until: duration(until)? };
    if window.from < window.until { Ok(window) } else { Err("a window ends after it begins, as 20ms..25ms".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(
            (count("1e6"), count("250k"), count("1_000"), count("2.5e5")),
            (Ok(1_000_000), Ok(250_000), Ok(1000), Ok(250_000))
        );
        assert_eq!((count("1.5M"), count("18446744073709551615")), (Ok(1_500_000), Ok(u64::MAX)));
        for wrong in
            ["", "-1", "1.5", "1e-3", "inf", "nan", "k", "1e17", "1e300", "4KiB", "+1e3", "18446744073709551616"]
        {
            assert!(count(wrong).is_err(), "{wrong}");
        }
        for large in ["1e17", "1e300", "18446744073709551616", "18446744073709551615k"] {
            assert_eq!(count(large), Err("it is too large".to_owned()), "{large}");
        }
        assert_eq!((small_count("1e9"), some("0").is_err(), some("5e9").is_err()), (Ok(1_000_000_000), true, true));
        assert_eq!((scale("1/64"), scale("0.5"), scale("1")), (Ok(1.0 / 64.0), Ok(0.5), Ok(1.0)));
        assert!(["0", "-1", "1/0", "0/0", "x"].iter().all(|text| scale(text).is_err()));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            (size("4GiB"), size("64 MiB"), size("5kB"), size("7"), size("1.5KiB")),
            (Ok(4 << 30), Ok(64 << 20), Ok(5000), Ok(7), Ok(1536))
        );
        assert!(size("").is_err() && size("4 gigs").is_err() && size("-1").is_err() && size("99999999TiB").is_err());
        assert_eq!((small_size("4KiB"), small_size("4GiB").is_err()), (Ok(4096), true));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(
            (duration("10ms"), duration("7 us"), duration("2s"), duration("1.5ms")),
            (Ok(Nanos(10_000_000)), Ok(Nanos(7_000)), Ok(Nanos(2_000_000_000)), Ok(Nanos(1_500_000)))
        );
        assert!(["", "10", "ms", "-1ms", "0.5ns", "99999999999999s"].iter().all(|text| duration(text).is_err()));
        assert_eq!(window("1ms..2s"), Ok(TraceWindow { from: Nanos(1_000_000), until: Nanos(2_000_000_000) }));
        assert!(["1ms", "2ms..1ms", "1ms..1ms", "..1ms", "1ms.."].iter().all(|text| window(text).is_err()));
    }
}
