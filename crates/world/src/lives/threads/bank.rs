//! Accounts that transactions of several threads change, and whether a serial order explains what all of them have seen, over all lives.
//!
//! ```text
//!   account = balance, version: the transaction that wrote it          a transfer reads two and writes both; a sum reads all
//!   before: who wrote what I read -> me;   I read what -> who wrote over it;   who had ended -> who began after that
//! ```
//!
//! Whether a transaction in doubt was committed shows when another has read what it wrote, and does not matter where none has.

use crate::lives::book::SharedBook;
use crate::lives::caller::ACCOUNT;
use kvssd_host::tx::{Isolation, TransactionError, Transactions};
use kvssd_host::{Error, NamespaceId, Store};
use kvssd_types::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

const ACCOUNTS: usize = 4;
const MONEY: i64 = 1000;
/// Transactions of a teller at the most.
const TRANSACTIONS: u64 = 20;
/// The version of what is there in the beginning.
const FIRST: usize = 0;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InDoubt,
    Committed,
    Aborted,
}

/// A transaction.
#[derive(Clone, Debug)]
struct Seen {
    began: u64,
    ended: u64,
    fate: Fate,
    /// Accounts, and by whom they were written.
    reads: BTreeMap<usize, usize>,
    writes: bool,
}

/// All transactions.
#[derive(Debug)]
pub struct Bank {
    clock: u64,
    seen: Vec<Seen>,
    /// There are accounts.
    is_open: bool,
}

type Books = Transactions<Arc<Store>>;

impl Default for Bank {
    fn default() -> Self {
        let first = Seen { began: 0, ended: 0, fate: Fate::Committed, reads: BTreeMap::new(), writes: true };
        Bank { clock: 0, seen: vec![first], is_open: false }
    }
}

fn account(number: usize) -> Vec<u8> {
    [ACCOUNT, &[b'0' + number as u8]].concat()
}

fn content(balance: i64, version: usize) -> Vec<u8> {
    [balance.to_le_bytes(), (version as u64).to_le_bytes()].concat()
}

/// The balance and version of an account.
fn read(value: &[u8]) -> Option<(i64, usize)> {
    let (balance, version) = value.split_first_chunk::<8>()?;
    Some((i64::from_le_bytes(*balance), usize::try_from(u64::from_le_bytes(version.try_into().ok()?)).ok()?))
}

impl Bank {
    /// How many were committed, and aborted.
    #[must_use]
    pub fn ends(&self) -> (u64, u64) {
        let count = |fate| self.seen.iter().filter(|seen| seen.fate == fate).count() as u64;
        (count(Fate::Committed), count(Fate::Aborted))
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn begin(&mut self, writes: bool) -> usize {
        let began = self.tick();
        self.seen.push(Seen { began, ended: u64::MAX, fate: Fate::InDoubt, reads: BTreeMap::new(), writes });
        self.seen.len() - 1
    }

    fn end(&mut self, number: usize, fate: Fate) {
        let ended = self.tick();
        let seen = &mut self.seen[number];
        (seen.ended, seen.fate) = (ended, fate);
    }

    /// Opens the accounts, or looks at all of them: a transaction of its own.
    pub fn open(&mut self, books: &Books, book: &SharedBook) {
        if let Err(words) = self.try_open(books) {
            book.borrow_mut().fail(words);
        }
    }

    fn try_open(&mut self, books: &Books) -> Result<(), String> {
        let store = books.port();
        let number = self.begin(false);
        let (mut sum, mut missing) = (0, 0);
        for account_number in 0..ACCOUNTS {
            match store.retrieve(&account(account_number)).map_err(|error| error.to_string())? {
                Some(value) => {
                    let (balance, version) = read(&value).ok_or("an account is none")?;
                    sum += balance;
                    self.seen[number].reads.insert(account_number, version);
                }
                None => missing += 1,
            }
        }
        if missing == ACCOUNTS && self.seen.len() <= 2 {
            self.seen.pop();
            let mut batch = kvssd_host::Batch::new();
            for number in 0..ACCOUNTS {
                batch.store(&account(number), &content(MONEY, FIRST));
            }
            return match store.batch(&batch) {
                Err(Error::Full) => Ok(()),
                made => made.map(|()| self.is_open = true).map_err(|error| error.to_string()),
            };
        }
        self.end(number, Fate::Committed);
        self.is_open = true;
        if missing > 0 || sum != MONEY * ACCOUNTS as i64 {
            return Err(format!("{missing} accounts are missing, and the others have {sum} together"));
        }
        Ok(())
    }

    /// A teller: transfers and sums.
    pub fn work(bank: &RefCell<Bank>, books: &Books, book: &SharedBook, seed: u64) {
        let mut random = Random::new(seed);
        let is_open = bank.borrow().is_open;
        for _ in 0..random.below(TRANSACTIONS) * u64::from(is_open) {
            let isolation =
                [Isolation::TwoPhaseLocking, Isolation::Optimistic, Isolation::Snapshot][random.below(3) as usize];
            let is_transfer = isolation != Isolation::Snapshot && random.below(3) > 0;
            let number = bank.borrow_mut().begin(is_transfer);
            let done = if is_transfer {
                transfer(bank, books, number, isolation, &mut random)
            } else {
                sum(bank, books, number, isolation)
            };
            let fate = match done {
                Ok(()) => Fate::Committed,
                Err(TransactionError::Aborted(_) | TransactionError::Drive(Error::Refused { .. } | Error::Full)) => {
                    Fate::Aborted
                }
                Err(error) => return book.borrow_mut().fail(format!("a transaction is told: {error}")),
            };
            bank.borrow_mut().end(number, fate);
        }
    }

    /// Whether a serial order explains all.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), String> {
        // Those whose answer was lost were committed if anybody has seen what they wrote.
        let mut is_in = vec![false; self.seen.len()];
        let mut open: Vec<usize> =
            (0..self.seen.len()).filter(|number| self.seen[*number].fate == Fate::Committed).collect();
        while let Some(number) = open.pop() {
            if std::mem::replace(&mut is_in[number], true) {
                continue;
            }
            for &version in self.seen[number].reads.values() {
                match self.seen.get(version).map(|seen| (seen.fate, seen.writes)) {
                    Some((Fate::Committed | Fate::InDoubt, true)) => open.push(version),
                    _ => return Err(format!("transaction {number} has read what {version} wrote, which was aborted")),
                }
            }
        }
        let mut next = BTreeMap::new();
        for number in (0..self.seen.len()).filter(|number| is_in[*number] && self.seen[*number].writes) {
            for (&account, &version) in &self.seen[number].reads {
                if let Some(other) = next.insert((account, version), number) {
                    return Err(format!("{other} and {number} have both written over {version} of account {account}"));
                }
            }
        }
        self.order(&is_in, &next)
    }

    /// Finds an order, one after the other: who has none before it that is left.
    fn order(&self, is_in: &[bool], next: &BTreeMap<(usize, usize), usize>) -> Result<(), String> {
        let mut left: Vec<usize> = (0..self.seen.len()).filter(|number| is_in[*number]).collect();
        left.sort_by_key(|number| self.seen[*number].began);
        let mut is_left = is_in.to_vec();
        while !left.is_empty() {
            let ended = left.iter().map(|number| self.seen[*number].ended).min().unwrap_or(u64::MAX);
            let is_first = |number: usize| {
                let seen = &self.seen[number];
                // Who wrote what it has read is before it; so are those that have read what it writes over.
                let has_read = seen.reads.values().all(|version| !is_left[*version] || *version == number);
                let before = |other: usize| {
                    other != number
                        && self.seen[other]
                            .reads
                            .iter()
                            .any(|(account, version)| next.get(&(*account, *version)) == Some(&number))
                };
                has_read && seen.began <= ended && !left.iter().any(|other| before(*other))
            };
            let Some(place) = left.iter().position(|number| is_first(*number)) else {
                let some: Vec<_> = left.iter().take(4).map(|number| (number, &self.seen[*number])).collect();
                return Err(format!("no serial order explains {} transactions, such as {some:?}", left.len()));
            };
            is_left[left.remove(place)] = false;
        }
        Ok(())
    }
}

fn transfer(
    bank: &RefCell<Bank>,
    books: &Books,
    number: usize,
    isolation: Isolation,
    random: &mut Random,
) -> Result<(), TransactionError> {
    let from = random.below(ACCOUNTS as u64) as usize;
    let to = (from + 1 + random.below(ACCOUNTS as u64 - 1) as usize) % ACCOUNTS;
    let (amount, is_for_update) = (random.below(50) as i64, random.below(2) == 0);
    let mut transaction = books.begin(isolation)?;
    for (which, sign) in [(from, -1), (to, 1)] {
        let key = account(which);
        let value = if is_for_update {
            transaction.read_for_update(NamespaceId::FIRST, &key)?
        } else {
            transaction.read(NamespaceId::FIRST, &key)?
        };
        let (balance, version) = known(value.as_deref())?;
        bank.borrow_mut().seen[number].reads.insert(which, version);
        transaction.update(NamespaceId::FIRST, &key, &content(balance + sign * amount, number))?;
    }
    transaction.commit()
}

/// Reads all accounts; what they have together never changes.
fn sum(bank: &RefCell<Bank>, books: &Books, number: usize, isolation: Isolation) -> Result<(), TransactionError> {
    let mut transaction = books.begin(isolation)?;
    let mut sum = 0;
    for which in 0..ACCOUNTS {
        let (balance, version) = known(transaction.read(NamespaceId::FIRST, &account(which))?.as_deref())?;
        bank.borrow_mut().seen[number].reads.insert(which, version);
        sum += balance;
    }
    transaction.commit()?;
    if sum == MONEY * ACCOUNTS as i64 {
        return Ok(());
    }
    Err(TransactionError::Drive(Error::Failed { why: format!("a sum is {sum}") }))
}

fn known(value: Option<&[u8]>) -> Result<(i64, usize), TransactionError> {
    let known = value.and_then(read);
    known.ok_or(TransactionError::Drive(Error::Failed { why: "an account is none".to_owned() }))
}
