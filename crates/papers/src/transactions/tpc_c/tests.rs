//! Orders and payments on the reference engine.

use super::new_order::PlaceOrder;
use super::payment::{Payer, Payment};
use super::rows::{Customer, CustomerName};
use super::*;
use crate::transactions::reference::{Planted, Reference};
use crate::transactions::tests::{Life, live, live_until};
use crate::transactions::{Row, RowId, Stamp};
use kvssd_types::{Nanos, Value};
use std::collections::BTreeMap;

fn small() -> TpcCScale {
    TpcCScale::specification(2).thinned(100)
}

fn life(planted: Planted, payments_percent: u64) -> Life {
    let mut workload = TpcC::new(small(), payments_percent, 8, 5).unwrap();
    live(&mut workload, &mut Reference::quick(planted), 8, 2_000)
}

#[test]
fn orders_and_payments_leave_every_condition_whole() {
    for payments_percent in [0, 50, 100] {
        let life = life(Planted::Nothing, payments_percent);
        assert!(life.consistency.holds(), "{:?}", life.consistency);
        let [orders, payments] = &life.report.kinds[..] else { panic!("two kinds") };
        assert_eq!(orders.committed == 0, payments_percent == 100);
        assert_eq!(payments.committed == 0, payments_percent == 0);
        assert_eq!(payments.rolled_back, 0);
    }
}

#[test]
fn engines_that_lose_updates_or_commits_are_found() {
    for planted in [Planted::LastWriteLost, Planted::ReadsForUpdateUnlocked, Planted::WritesSeenEarly] {
        assert!(!life(planted, 50).consistency.holds(), "{planted:?}");
    }
}

#[test]
fn the_supplier_is_whole_when_all_is_stopped_at_any_time() {
    for stop in (0..20).map(|step| Nanos(1_000_000 + step * 7_777)) {
        let mut workload = TpcC::new(small(), 50, 8, 5).unwrap();
        let found = live_until(&mut workload, &mut Reference::quick(Planted::Nothing), 8, stop);
        assert!(found.holds(), "{stop}: {found:?}");
    }
}

#[test]
fn the_shares_are_those_of_the_specification() {
    let scale = TpcCScale::specification(3);
    let constants = Constants::new(&scale, &mut Random::new(1));
    let mut random = Random::new(2);
    let orders: Vec<_> = (0..20_000).map(|_| PlaceOrder::draw(&scale, &constants, 1, &mut random)).collect();
    let lines: Vec<_> = orders.iter().flat_map(|order| &order.lines).collect();
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let remote = lines.iter().filter(|line| line.supply_warehouse != 1).count();
    assert!((share(remote, lines.len()) - 0.01).abs() < 0.001);
    assert!((share(lines.len(), orders.len()) - 10.0).abs() < 0.1);
    let unused = orders.iter().filter(|order| order.lines.iter().any(|line| line.item == scale.items)).count();
    assert!((share(unused, orders.len()) - 0.01).abs() < 0.003);

    let payments: Vec<_> = (0..20_000).map(|_| Payment::draw(&scale, &constants, 1, 0, &mut random)).collect();
    let by_name = payments.iter().filter(|payment| matches!(payment.payer, Payer::Name(_))).count();
    assert!((share(by_name, payments.len()) - 0.6).abs() < 0.02);
    let remote = |payment: &&Payment| match payment.payer {
        Payer::Name(number) | Payer::Number(number) => number >> 20 != 1,
    };
    assert!((share(payments.iter().filter(remote).count(), payments.len()) - 0.15).abs() < 0.01);
}

#[test]
fn the_population_has_the_rows_of_the_tables_and_names_find_their_customers() {
    let workload = TpcC::new(small(), 0, 1, 9).unwrap();
    let mut loaded: BTreeMap<RowId, Value> = BTreeMap::new();
    workload
        .load(&mut |row, value| {
            assert_eq!(Stamp::of(&value), Some(Stamp::loaded(row)));
            assert!(loaded.insert(row, value).is_none());
            Ok(())
        })
        .unwrap();
    for table in workload.tables() {
        let rows: Vec<_> = loaded.iter().filter(|(row, _)| row.table == table.id).collect();
        assert!(rows.iter().all(|(_, value)| value.len() == table.value_bytes as usize), "{table:?}");
        // Of lines it is the average.
        let tolerance = if table.name == "order_line" { table.rows / 20 } else { 0 };
        assert!((rows.len() as u64).abs_diff(table.rows) <= tolerance, "{table:?}: {}", rows.len());
    }
    for (row, value) in loaded.iter().filter(|(row, _)| row.table == CustomerName::TABLE) {
        let names = CustomerName::of_value(value).unwrap();
        let customer = Customer::of_value(&loaded[&RowId::of::<Customer>(names.middle().unwrap())]).unwrap();
        assert_eq!(customer.name as u64, row.number & 0xffff);
    }
}

#[test]
fn the_specifications_size_is_that_of_the_paper() {
    let rows: u64 = TpcCScale::specification(100).tables().iter().map(|table| table.rows).sum();
    // The paper has 60 million values.
    assert!((50_000_000..60_000_000).contains(&rows), "{rows}");
    assert_eq!(TpcCScale::specification(1).first_new_order(), 2101);
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(TpcC::new(TpcCScale { warehouses: 0, ..small() }, 0, 1, 1).is_err());
    assert!(TpcC::new(small(), 101, 1, 1).is_err());
}
