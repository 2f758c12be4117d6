//! The median of a command's time, from how many reads it makes and how often these wait.

use crate::commands::Command;
use crate::drive::Drive;
use crate::queues::Busy;

/// More reads one behind the other are not told apart.
const READS_MAX: usize = 64;

/// The time that half of these commands take at most, in nanoseconds.
pub(crate) fn median_ns(drive: &Drive, busy: &Busy, command: &Command) -> f64 {
    let crowd_ns = if command.index_reads > 0.0 { busy.crowd_wait_ns } else { 0.0 };
    let fixed_ns = command.fixed_ns + busy.core_wait_ns + crowd_ns;
    if command.reads() > READS_MAX as f64 / 2.0 {
        // Of so many the median is the mean.
        return fixed_ns + command.reads() * (command.read_ns(drive) + busy.read_wait_ns());
    }
    let reads = reads_of(command);
    // Waits for a channel are many and short, those for a die few and long.
    let read_ns = command.read_ns(drive) + busy.channel_wait_ns;
    let waiting = busy.dies.clamp(0.0, 0.99);
    let wait_ns = busy.die_wait_ns / waiting.max(1e-9);
    let share_within = |time_ns: f64| {
        let of =
            |(count, share): (usize, &f64)| share * within(time_ns - count as f64 * read_ns, count, waiting, wait_ns);
        reads.iter().enumerate().map(of).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, READS_MAX as f64 * (read_ns + 10.0 * wait_ns));
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if share_within(middle) < 0.5 { low = middle } else { high = middle }
    }
    fixed_ns + high
}

/// The share of commands with 0, 1, 2 ... reads: whole ones are always made, the rest by chance.
fn reads_of(command: &Command) -> [f64; READS_MAX + 1] {
    let mut shares = [0.0; READS_MAX + 1];
    shares[0] = 1.0;
    for mut left in [command.index_reads, command.record_reads] {
        while left > 1e-9 {
            let chance = left.min(1.0);
            left -= chance;
            for count in (0..READS_MAX).rev() {
                let more = shares[count] * chance;
                shares[count] -= more;
                shares[count + 1] += more;
            }
        }
    }
    shares
}

/// The chance that so many reads, each of which waits with that chance and then an exponential time, wait for `time_ns` at most.
fn within(time_ns: f64, reads: usize, waiting: f64, wait_ns: f64) -> f64 {
    if time_ns < 0.0 {
        return 0.0;
    }
    let x = time_ns / wait_ns.max(1e-9);
    let mut chance = (1.0 - waiting).powi(reads as i32);
    let mut sum = 0.0;
    for waits in 0..=reads {
        // Erlang's distribution of so many waits.
        let mut term = (-x).exp();
        let mut beyond = 0.0;
        for number in 0..waits {
            beyond += term;
            term *= x / (number + 1) as f64;
        }
        sum += chance * (1.0 - beyond);
        chance *= (reads - waits) as f64 / (waits + 1) as f64 * waiting / (1.0 - waiting);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_whole_or_by_chance() {
        let shares = reads_of(&Command { fixed_ns: 0.0, index_reads: 0.25, record_reads: 1.5 });
        assert_eq!(shares[..5], [0.0, 0.375, 0.5, 0.125, 0.0]);
    }

    #[test]
    fn who_never_waits_takes_his_time_and_who_always_does_waits_an_exponential_more() {
        assert_eq!((within(-1.0, 1, 0.0, 5.0), within(0.0, 1, 0.0, 5.0)), (0.0, 1.0));
        let median_ns = 5.0 * std::f64::consts::LN_2;
        assert!((within(median_ns, 1, 0.999_999, 5.0) - 0.5).abs() < 1e-3);
        assert!(within(median_ns, 2, 0.999_999, 5.0) < 0.2);
    }
}
