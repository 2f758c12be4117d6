//! Terminals that move money between accounts, in virtual time.

use super::*;
use kvssd_flash::RopeBacking;
use kvssd_types::{Key, Random, mix64};

const ACCOUNTS: u64 = 40;
const MONEY: u64 = 1000;
const TERMINALS: u64 = 12;

/// A drive that comes up with accounts on it, and when that is.
fn bank(isolation: Isolation, cache_bytes: u64) -> (CachedDrive, Nanos) {
    let design = kvssd_designs::named("plus").unwrap();
    let profile = design.tiny_profile(&[]).unwrap();
    let device = Device::new(&design, &profile, Box::new(RopeBacking::new(profile.geometry))).unwrap();
    let transactions = TransactionOptions { cache_bytes, ..TransactionOptions::default() };
    let mut drive =
        CachedDrive::new(device, CachedDriveOptions { isolation, transactions, value_bytes_max: 512 }).unwrap();
    let mut clock = Nanos::ZERO;
    for number in 0..ACCOUNTS {
        let key = number.to_be_bytes();
        clock = drive.load(account(&key), Value::from(&MONEY.to_be_bytes()[..]), clock).unwrap();
    }
    clock = drive.end_load(clock).unwrap();
    (drive, clock)
}

fn account(key: &[u8; 8]) -> RecordId<'_> {
    RecordId { table: NamespaceId::FIRST, key: Key::new(key).unwrap() }
}

fn money(value: &Value) -> u64 {
    u64::from_be_bytes(value.to_vec().try_into().unwrap())
}

/// A transfer: two reads, two writes, a commit.
#[derive(Default)]
struct Transfer {
    accounts: [[u8; 8]; 2],
    balances: Vec<u64>,
    done: usize,
}

impl Transfer {
    fn draw(random: &mut Random) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        Transfer { accounts: [from.to_be_bytes(), to.to_be_bytes()], ..Transfer::default() }
    }

    fn request(&self) -> Request<'_> {
        let write = |index: usize, balance: u64| Request::Write {
            record: account(&self.accounts[index]),
            value: Value::from(&balance.to_be_bytes()[..]),
        };
        match self.done {
            0 | 1 => Request::Read { record: account(&self.accounts[self.done]), for_update: false },
            2 => write(0, self.balances[0].wrapping_sub(1)),
            3 => write(1, self.balances[1].wrapping_add(1)),
            _ => Request::Commit,
        }
    }
}

struct Terminal {
    transaction: Option<TransactionId>,
    transfer: Transfer,
    turn: Option<Nanos>,
}

/// Runs transfers until so many are committed; gives when that was, and all answers mixed.
fn run(drive: &mut CachedDrive, start: Nanos, commits: u64) -> (Nanos, u64) {
    let mut random = Random::new(3);
    let mut terminals: Vec<Terminal> = (0..TERMINALS)
        .map(|_| Terminal { transaction: None, transfer: Transfer::draw(&mut random), turn: Some(start) })
        .collect();
    let (mut left, mut sum, mut clock) = (commits, 0, start);
    // Those that are under way in the end are seen to their end.
    while let Some(index) = (0..terminals.len())
        .filter(|&index| terminals[index].turn.is_some() && (left > 0 || terminals[index].transaction.is_some()))
        .min_by_key(|&index| terminals[index].turn)
    {
        let terminal = &mut terminals[index];
        let at = terminal.turn.take().unwrap();
        assert!(clock <= at, "time does not go back");
        clock = at;
        let transaction = *terminal.transaction.get_or_insert_with(|| drive.begin(at));
        match drive.step(transaction, &terminal.transfer.request(), at).unwrap() {
            Step::Again(later) => terminal.turn = Some(later),
            Step::Wait => {}
            Step::Done(done, value) => {
                assert!(done > at, "everything takes time");
                terminal.turn = Some(done);
                terminal.transfer.done += 1;
                if let Some(value) = value {
                    sum = mix64(sum ^ money(&value));
                    terminal.transfer.balances.push(money(&value));
                }
                if terminal.transfer.done > 4 {
                    terminal.transaction = None;
                    terminal.transfer = Transfer::draw(&mut random);
                    left = left.saturating_sub(1);
                }
            }
            Step::Aborted(done) => {
                terminal.turn = Some(done);
                terminal.transaction = None;
                terminal.transfer = Transfer { accounts: terminal.transfer.accounts, ..Transfer::default() };
            }
        }
        for (woken, at) in drive.woken() {
            let waiting = terminals.iter_mut().find(|terminal| terminal.transaction == Some(woken));
            let turn = &mut waiting.expect("who is woken is under way").turn;
            assert!(turn.is_none(), "who is woken has waited");
            *turn = Some(at);
        }
    }
    assert!(terminals.iter().all(|terminal| terminal.transaction.is_none()), "somebody waits for ever");
    (clock, sum)
}

#[test]
fn transfers_keep_the_sum_and_a_seed_names_one_run() {
    for isolation in [Isolation::TwoPhaseLocking, Isolation::Optimistic] {
        for cache_bytes in [0, 2500, 1 << 20] {
            let life = || {
                let (mut drive, start) = bank(isolation, cache_bytes);
                let (end, sum) = run(&mut drive, start, 2000);
                let counters = drive.counters();
                let mut all = 0;
                for number in 0..ACCOUNTS {
                    let key = number.to_be_bytes();
                    all += money(&drive.retrieve(account(&key), end + Nanos(1)).unwrap().1.unwrap());
                }
                assert_eq!(all, ACCOUNTS * MONEY, "{isolation:?}, {cache_bytes}");
                assert!(counters.committed >= 2000 && counters.cache.misses >= ACCOUNTS, "{counters:?}");
                assert_eq!(counters.cache.hits > 0, cache_bytes > 0, "{counters:?}");
                let aborts = if isolation == Isolation::Optimistic { counters.conflicts } else { counters.deadlocks };
                assert!(aborts > 0, "{counters:?}");
                (end, sum, counters)
            };
            assert_eq!(life(), life());
        }
    }
}

#[test]
fn a_hit_takes_a_processor_and_a_miss_the_drive() {
    let (mut drive, start) = bank(Isolation::TwoPhaseLocking, 1 << 20);
    let mut read = |at: Nanos| {
        let transaction = drive.begin(at);
        let key = 7u64.to_be_bytes();
        let request = Request::Read { record: account(&key), for_update: false };
        let mut clock = at;
        loop {
            match drive.step(transaction, &request, clock).unwrap() {
                Step::Again(later) => clock = later,
                Step::Done(done, value) => {
                    assert_eq!(money(&value.unwrap()), MONEY);
                    drive.step(transaction, &Request::Abort, done).unwrap();
                    break done - at;
                }
                other => panic!("nobody else is there: {other:?}"),
            }
        }
    };
    let (miss, hit) = (read(start + Nanos(1_000_000)), read(start + Nanos(2_000_000)));
    let processor = CALL_NS + LOCK_NS + INDEX_NS;
    assert_eq!(hit, Nanos(processor) + passes(8, 1));
    assert!(miss > Nanos(processor + KEY_COMMAND_NS + INDEX_NS) && miss > hit + Nanos(10_000), "{miss}");
}
