//! Reads of what is being read already.

use kvssd_flash::{ByteBacking, Cause, Flash, Geometry, PageAddress, Profile, SuperblockId, UnitImage};
use kvssd_types::Nanos;
use std::ops::Range;

const SECTOR: usize = 4096;

/// A drive with pages of 16 KiB, whose first superblock is written.
fn written() -> (Flash, PageAddress, Nanos) {
    let profile = Profile::load("cosmos", &[]).unwrap().scaled(1.0 / 1024.0).unwrap();
    let geometry: Geometry = profile.geometry;
    let mut flash = Flash::new(&profile, Box::new(ByteBacking::new(geometry)));
    let first = geometry.first_page(SuperblockId(1));
    flash.buffer.take(Nanos::ZERO);
    let content = UnitImage::of_bytes(&[], &vec![7; geometry.page_bytes as usize]);
    assert_eq!(geometry.pages_per_program, 1, "a unit of the board is a page");
    let landed = flash.program(geometry.unit_of(first), content, &[Cause::User], Nanos::ZERO).unwrap();
    flash.advance(landed);
    (flash, first, landed)
}

fn sectors(numbers: Range<usize>) -> Range<usize> {
    numbers.start * SECTOR..numbers.end * SECTOR
}

#[test]
fn who_wants_the_same_sectors_gets_them_with_the_first() {
    let (mut flash, page, at) = written();
    let mut read = |range, at| flash.read_parts(&[(page, sectors(range))], Cause::User, at);
    let done = read(0..1, at);
    assert_eq!(read(0..1, at + Nanos(1000)), done);
    assert!(read(0..1, done) > done, "what is done is read again");
    assert_eq!((flash.counters().reads[Cause::User], flash.counters().shared_reads[Cause::User]), (2, 1));
}

#[test]
fn sectors_that_are_brought_one_by_one_take_what_they_take_together() {
    let one_by_one = |ranges: &[[usize; 2]]| {
        let (mut flash, page, at) = written();
        let mut read = |&[from, until]: &[usize; 2]| flash.read_parts(&[(page, sectors(from..until))], Cause::User, at);
        let done: Vec<Nanos> = ranges.iter().map(&mut read).collect();
        let other = PageAddress(page.0 + flash.geometry().dies());
        let (dies, channels) = flash.busy();
        let next = flash.read_parts(&[(other, sectors(0..1))], Cause::User, at);
        let counters = flash.counters();
        let counts = (counters.reads[Cause::User], counters.shared_reads[Cause::User]);
        (done[done.len() - 1], dies[0], channels[0], next, counts)
    };
    let together = one_by_one(&[[0, 4]]);
    let apart = one_by_one(&[[0, 1], [1, 2], [2, 3], [3, 4]]);
    assert_eq!((apart.0, apart.1, apart.2, apart.3), (together.0, together.1, together.2, together.3));
    assert_eq!((together.4, apart.4), ((2, 0), (2, 3)));
}

#[test]
fn a_die_that_has_gone_on_senses_the_page_again() {
    let (mut flash, page, at) = written();
    let other = PageAddress(page.0 + flash.geometry().dies());
    flash.read_parts(&[(page, sectors(0..1))], Cause::User, at);
    flash.read_parts(&[(other, sectors(0..1))], Cause::User, at);
    flash.read_parts(&[(page, sectors(1..2))], Cause::User, at);
    assert_eq!((flash.counters().reads[Cause::User], flash.counters().shared_reads[Cause::User]), (3, 0));
}

#[test]
fn parts_with_a_gap_are_not_those_without() {
    let profile = Profile::load("kvvirt", &[]).unwrap().scaled(1.0 / 1024.0).unwrap();
    let mut flash = Flash::new(&profile, Box::new(ByteBacking::new(profile.geometry)));
    let first = profile.geometry.first_page(SuperblockId(1));
    let mut read = |second: u32| {
        let parts = [first, PageAddress(first.0 + second)].map(|page| (page, sectors(0..1)));
        flash.read_parts(&parts, Cause::User, Nanos::ZERO)
    };
    for second in [1, 3, 2] {
        read(second);
    }
    assert_eq!((flash.counters().reads[Cause::User], flash.counters().shared_reads[Cause::User]), (6, 0));
}
