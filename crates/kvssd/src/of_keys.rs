//! What an error says of the options of a command line, turned into words about the keys of a file.

use crate::arguments::bench::BenchOptions;
use clap::Args;

/// Turns what is wrong with options of `kvssd bench` into words about the keys of a file: `--scale <FACTOR>` becomes `scale`. All other words
/// stay as they are: they may be the user's own.
pub fn of_keys(why: &str) -> String {
    let command = BenchOptions::augment_args(clap::Command::new("bench"));
    let options: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let mut is_behind_option = false;
    let word = |word: &str| {
        let (quote, name) = word.split_at(usize::from(word.starts_with('\'')));
        // The parser quotes what it takes for an option.
        let is_option = |key: &&str| !quote.is_empty() || options.contains(&key.trim_end_matches([',', ':', '.']));
        let key = name.strip_prefix("--").filter(is_option);
        let value_name = name.split_once('>').filter(|(value_name, _)| value_name.starts_with('<') && is_behind_option);
        is_behind_option = key.is_some();
        match (key, value_name) {
            (Some(key), _) => format!(" {quote}{key}"),
            (None, Some((_, behind))) => behind.to_owned(),
            _ => format!(" {word}"),
        }
    };
    let words: String = why.split(' ').map(word).collect();
    words[1..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_options_is_said_of_keys() {
        for (of_options, of_file) in [
            ("--rounds 4: 5 rounds must be steady", "rounds 4: 5 rounds must be steady"),
            ("invalid value '0' for '--scale <FACTOR>': a scale", "invalid value '0' for 'scale': a scale"),
            (
                "the argument '--fill <SHARE>' cannot be used with '--records <N>'",
                "the argument 'fill' cannot be used with 'records'",
            ),
            ("profile a--b: 1 < 2 -> no such file", "profile a--b: 1 < 2 -> no such file"),
            ("profile --nope.toml: no such file", "profile --nope.toml: no such file"),
            ("my <a>b/x.ini: cannot be read", "my <a>b/x.ini: cannot be read"),
        ] {
            assert_eq!(of_keys(of_options), of_file);
        }
    }
}
