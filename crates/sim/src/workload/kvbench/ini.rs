//! Ini files as KVbench reads them (iniparser 3): sections in brackets, `key = value`, comments from `#` or `;` on, names in any case.

use crate::workload::WorkloadError;

/// The values of a file, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Ini<'a>(Vec<Entry<'a>>);

#[derive(Clone, Copy, Debug)]
struct Entry<'a> {
    line: u64,
    section: &'a str,
    key: &'a str,
    value: &'a str,
}

impl<'a> Ini<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, WorkloadError> {
        let (mut entries, mut section) = (Vec::new(), "");
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split(['#', ';']).next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                section = name.trim();
            } else if let Some((key, value)) = line.split_once('=') {
                let value = value.trim().trim_matches('"');
                entries.push(Entry { line: number, section, key: key.trim(), value });
            } else {
                let why = format!("line {number}: it is neither [section] nor key = value");
                return Err(WorkloadError::KvBench { why });
            }
        }
        Ok(Ini(entries))
    }

    /// The value of a key, the last one if there are several, and what to call it when it is wrong.
    fn find(&self, section: &str, key: &str) -> Option<Entry<'a>> {
        let is_it =
            |entry: &&Entry<'_>| entry.section.eq_ignore_ascii_case(section) && entry.key.eq_ignore_ascii_case(key);
        self.0.iter().rev().find(is_it).copied()
    }

    pub(super) fn text(&self, section: &str, key: &str, otherwise: &'static str) -> &'a str {
        self.find(section, key).map_or(otherwise, |entry| entry.value)
    }

    /// The first letter of a value, small: all that KVbench looks at where there is a choice.
    pub(super) fn letter(&self, section: &str, key: &str, otherwise: char) -> char {
        self.text(section, key, "").chars().next().map_or(otherwise, |letter| letter.to_ascii_lowercase())
    }

    pub(super) fn number(&self, section: &str, key: &str, otherwise: u32) -> Result<u32, WorkloadError> {
        let numbers = self.numbers(section, key, ',')?;
        match numbers.as_deref() {
            None => Ok(otherwise),
            Some([number]) => Ok(*number),
            Some(_) => Err(self.wrong(section, key, "is one number")),
        }
    }

    /// The numbers of a list, if it is there.
    pub(super) fn numbers(&self, section: &str, key: &str, separator: char) -> Result<Option<Vec<u32>>, WorkloadError> {
        let Some(entry) = self.find(section, key) else { return Ok(None) };
        let numbers = entry.value.split(separator).map(|number| number.trim().parse().ok()).collect::<Option<_>>();
        numbers.map(Some).ok_or_else(|| self.wrong(section, key, "is of whole numbers from 0 on"))
    }

    /// That a value cannot be as it is.
    pub(super) fn wrong(&self, section: &str, key: &str, rule: &str) -> WorkloadError {
        WorkloadError::KvBench {
            why: match self.find(section, key) {
                Some(Entry { line, value, .. }) => {
                    format!("line {line}: [{section}] {key} {rule}, and not \"{value}\"")
                }
                None => format!("[{section}] {key} {rule}, and is not given"),
            },
        }
    }
}
