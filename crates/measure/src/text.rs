//! Text for people: columns, numbers and sizes.

/// Rows of as many cells as the first has, with columns as wide as they must be: the first to the left, the others to the right.
#[must_use]
pub fn columns(rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len))
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let first = format!("{:<width$}", row[0], width = widths[0]);
        let others = row[1..].iter().zip(&widths[1..]).map(|(cell, width)| format!("  {cell:>width$}"));
        text.push_str(format!("{first}{}", others.collect::<String>()).trim_end());
        text.push('\n');
    }
    text
}

/// A number with its thousands apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes in the largest binary unit that leaves at least 1.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes < 1 << 10 => format!("{bytes} B"),
        bytes if bytes < 1 << 20 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        bytes if bytes < 1 << 30 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        assert_eq!([0, 12, 123, 1234, 1_234_567].map(grouped), ["0", "12", "123", "1 234", "1 234 567"]);
    }

    #[test]
    fn sizes_keep_their_magnitude() {
        assert_eq!([512, 1536, 3 << 20].map(size), ["512 B", "1.5 KiB", "3.0 MiB"]);
    }
}
