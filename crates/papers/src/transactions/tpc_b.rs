//! TPC-B: a bank.
//!
//! ```text
//!   branch 1 --- 10 teller          AccountUpdate(account, teller, branch, delta)
//!      |   +---- 100 000 account      account.balance += delta     history += (account, teller, branch, delta)
//!      +-------- history              teller.balance  += delta     branch.balance += delta
//! ```
//!
//! Source: TPC Benchmark B, standard specification, revision 2.0, clauses 1.2 (the transaction), 3 (the tables), 4.2 (their sizes),
//! 5.3.5 (the choice of the account: 85 of 100 at the teller's branch). Values of 512 bytes, as KAML (section V-D) has them; its
//! scaling of 100 is [`TpcBScale::specification`]`(100)`, with 10 million accounts.
//!
//! What it does not do: fewer tellers; and the specification's ten days of history.

use super::consistency::{Acknowledged, Consistency};
use super::program::{End, Loader, Program, Script, Stop, Table, Transaction, Workload};
use super::row::{Row, RowId, Rows, Stamp, rows};
use kvssd_sim::SimError;
use kvssd_types::Random;

/// Tellers of a branch.
const TELLERS: u64 = 10;
/// Of a hundred accounts, those of the teller's own branch.
const HOME_PERCENT: u64 = 85;
/// The largest change of a balance.
const DELTA_MAX: i64 = 999_999;

rows! {
    Branch: table 1, 512 bytes {
        /// The sum of all changes at its tellers.
        balance,
    }
    /// A teller: number / 10 is its branch.
    Teller: table 2, 512 bytes {
        /// The sum of all changes here.
        balance,
    }
    /// An account: its branch is the number divided by the accounts of a branch.
    Account: table 3, 512 bytes {
        /// The sum of all changes of this account.
        balance,
    }
    /// A change.
    History: table 4, 512 bytes {
        account,
        /// At which teller.
        teller,
        branch,
        /// By how much.
        delta,
    }
}

/// How large the bank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TpcBScale {
    /// Branches.
    pub branches: u64,
    /// Accounts of each: 100 000 by the specification. With fewer, conflicts at branches and tellers stay as they are, and an account
    /// is more often in a cache.
    pub accounts_per_branch: u64,
}

impl TpcBScale {
    /// The tables of so many branches.
    #[must_use]
    pub fn specification(branches: u64) -> Self {
        TpcBScale { branches, accounts_per_branch: 100_000 }
    }

    fn tellers(&self) -> u64 {
        self.branches * TELLERS
    }

    fn accounts(&self) -> u64 {
        self.branches * self.accounts_per_branch
    }
}

/// The workload.
pub struct TpcB {
    scale: TpcBScale,
    /// The changes that each terminal drew.
    changes: Vec<u64>,
}

impl TpcB {
    /// A bank for so many terminals.
    ///
    /// # Errors
    /// [`SimError::Setup`] when there is nothing in it.
    pub fn new(scale: TpcBScale, terminals: u32) -> Result<Self, SimError> {
        if scale.accounts() == 0 {
            return Err(SimError::Setup("a bank has a branch and an account at least".to_owned()));
        }
        Ok(TpcB { scale, changes: vec![0; terminals as usize] })
    }

    fn account(&self, branch: u64, random: &mut Random) -> u64 {
        let TpcBScale { branches, accounts_per_branch } = self.scale;
        let at_home = branches == 1 || random.below(100) < HOME_PERCENT;
        let branch = if at_home { branch } else { (branch + 1 + random.below(branches - 1)) % branches };
        branch * accounts_per_branch + random.below(accounts_per_branch)
    }
}

/// The number of a terminal's history row.
fn history(terminal: u32, change: u64) -> u64 {
    u64::from(terminal) << 32 | change
}

/// The transaction, with its input.
struct AccountUpdate {
    change: History,
    history: u64,
}

impl Program for AccountUpdate {
    fn run(&self, script: &mut Script<'_>) -> Result<End, Stop> {
        let History { account, teller, branch, delta } = self.change;
        let (account, teller, branch) = (account as u64, teller as u64, branch as u64);
        let Account { balance } = script.read_for_update(account)?;
        script.write(account, &Account { balance: balance + delta })?;
        script.write(self.history, &self.change)?;
        let Teller { balance } = script.read_for_update(teller)?;
        script.write(teller, &Teller { balance: balance + delta })?;
        let Branch { balance } = script.read_for_update(branch)?;
        script.write(branch, &Branch { balance: balance + delta })?;
        Ok(End::Commit)
    }
}

impl Workload for TpcB {
    fn name(&self) -> &str {
        "TPC-B"
    }

    fn tables(&self) -> Vec<Table> {
        vec![
            Table::of::<Branch>("branch", self.scale.branches),
            Table::of::<Teller>("teller", self.scale.tellers()),
            Table::of::<Account>("account", self.scale.accounts()),
            Table::of::<History>("history", 0),
        ]
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<(), SimError> {
        fn table<R: Row + Default>(rows: u64, loader: &mut Loader<'_>) -> Result<(), SimError> {
            (0..rows).map(RowId::of::<R>).try_for_each(|row| loader(row, R::default().to_value(Stamp::loaded(row))))
        }
        table::<Branch>(self.scale.branches, loader)?;
        table::<Teller>(self.scale.tellers(), loader)?;
        table::<Account>(self.scale.accounts(), loader)
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["AccountUpdate"]
    }

    fn next(&mut self, terminal: u32, random: &mut Random) -> Transaction {
        let teller = random.below(self.scale.tellers());
        let branch = teller / TELLERS;
        let account = self.account(branch, random);
        let delta = random.below(2 * DELTA_MAX as u64 + 1) as i64 - DELTA_MAX;
        let change = &mut self.changes[terminal as usize];
        let history = history(terminal, *change);
        *change += 1;
        let change = History { account: account as i64, teller: teller as i64, branch: branch as i64, delta };
        Transaction { kind: 0, program: Box::new(AccountUpdate { change, history }) }
    }

    /// Every balance is the sum of its history, so that the sums over accounts, tellers and branches are the same (clause 2.3); a
    /// terminal's history has no gaps and holds all that it was promised.
    fn check(&self, rows: &mut Rows<'_>, acknowledged: &Acknowledged) -> Result<Consistency, SimError> {
        let mut found = Consistency::default();
        let [mut accounts, mut tellers, mut branches] =
            [self.scale.accounts(), self.scale.tellers(), self.scale.branches].map(|rows| vec![0; rows as usize]);
        for terminal in 0..acknowledged.terminals() {
            let mut changes = 0;
            while let Some(History { account, teller, branch, delta }) = rows.find(history(terminal, changes))? {
                accounts[account as usize] += delta;
                tellers[teller as usize] += delta;
                branches[branch as usize] += delta;
                changes += 1;
            }
            let promised = acknowledged.commits(terminal, 0);
            // One more may have been under way.
            found.verify((promised..=promised + 1).contains(&changes), || {
                format!("terminal {terminal} has {changes} changes in the history, and {promised} were acknowledged")
            });
        }
        for (number, expected) in accounts.into_iter().enumerate() {
            let balance = rows.find::<Account>(number as u64)?.map(|row| row.balance);
            found.verify(balance == Some(expected), || wrong("account", number, balance, expected));
        }
        for (number, expected) in tellers.into_iter().enumerate() {
            let balance = rows.find::<Teller>(number as u64)?.map(|row| row.balance);
            found.verify(balance == Some(expected), || wrong("teller", number, balance, expected));
        }
        for (number, expected) in branches.into_iter().enumerate() {
            let balance = rows.find::<Branch>(number as u64)?.map(|row| row.balance);
            found.verify(balance == Some(expected), || wrong("branch", number, balance, expected));
        }
        Ok(found)
    }

    fn resume(&mut self, rows: &mut Rows<'_>, acknowledged: &mut Acknowledged) -> Result<(), SimError> {
        for terminal in 0..acknowledged.terminals() {
            let promised = acknowledged.commits(terminal, 0);
            let is_more = rows.find::<History>(history(terminal, promised))?.is_some();
            acknowledged.add(terminal, 0, is_more.into());
            self.changes[terminal as usize] = acknowledged.commits(terminal, 0);
        }
        Ok(())
    }
}

fn wrong(table: &str, number: usize, balance: Option<i64>, expected: i64) -> String {
    match balance {
        Some(balance) => format!("{table} {number} has {balance}, and the sum of its history is {expected}"),
        None => format!("{table} {number} is gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::{Planted, Reference};
    use super::super::tests::{Life, live, live_until};
    use super::*;
    use kvssd_types::Nanos;

    const SCALE: TpcBScale = TpcBScale { branches: 3, accounts_per_branch: 200 };

    fn life(planted: Planted) -> Life {
        let mut workload = TpcB::new(SCALE, 8).unwrap();
        live(&mut workload, &mut Reference::quick(planted), 8, 3_000)
    }

    #[test]
    fn balances_are_the_sums_of_the_history_and_all_commits_are_there() {
        let life = life(Planted::Nothing);
        assert!(life.consistency.holds(), "{:?}", life.consistency);
        assert_eq!(life.report.kinds[0].committed, 3_000);
        assert_eq!(life.consistency.conditions, 8 + 3 + 30 + 600);
        assert!(life.report.transactions_per_s > 0.0);
    }

    #[test]
    fn engines_that_lose_updates_or_commits_are_found() {
        for planted in [Planted::LastWriteLost, Planted::ReadsForUpdateUnlocked] {
            assert!(!life(planted).consistency.holds(), "{planted:?}");
        }
    }

    #[test]
    fn a_bank_is_whole_when_all_is_stopped_at_any_time() {
        for stop in (0..40).map(|step| Nanos(1_000_000 + step * 777)) {
            let mut workload = TpcB::new(SCALE, 8).unwrap();
            let found = live_until(&mut workload, &mut Reference::quick(Planted::Nothing), 8, stop);
            assert!(found.holds(), "{stop}: {found:?}");
        }
    }

    #[test]
    fn accounts_are_of_the_tellers_branch_85_times_in_a_hundred() {
        let bank = TpcB::new(TpcBScale::specification(4), 1).unwrap();
        let mut random = Random::new(1);
        let accounts: Vec<u64> = (0..100_000).map(|_| bank.account(2, &mut random)).collect();
        let mut at = [0u64; 4];
        accounts.iter().for_each(|account| at[(account / 100_000) as usize] += 1);
        assert!((84_500..85_500).contains(&at[2]), "{at:?}");
        assert!([0, 1, 3].iter().all(|&branch| (4_700..5_300).contains(&at[branch])), "{at:?}");
    }
}
