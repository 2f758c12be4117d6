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
fn who_wants_other_sectors_of_a_page_that_is_sensed_waits_for_their_transfer_alone() {
    let (mut flash, page, at) = written();
    let mut read = |range, at| flash.read_parts(&[(page, sectors(range))], Cause::User, at);
    let first = read(0..1, at);
    let second = read(1..2, at + Nanos(1000));
    let alone = first - at;
    assert!(second > first && second - first < Nanos(alone.0 / 2), "{second:?} behind {first:?}");
    assert!(read(2..3, second) - second >= Nanos(alone.0 * 9 / 10), "the page is sensed anew");
    assert_eq!((flash.counters().reads[Cause::User], flash.counters().shared_reads[Cause::User]), (2, 1));
}
