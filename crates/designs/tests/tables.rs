//! A design is described by a table, and built from one.

use kvssd_designs::{all, from_table};
use kvssd_ftl::CollectionPace;

/// What a design is called of which this program has no preset.
const OTHER: &str = "other";

#[test]
fn a_design_is_what_its_table_says_whatever_the_presets_are() {
    for preset in all() {
        let table = preset.table();
        let read = from_table(table.clone()).unwrap();
        if !preset.takes_keys() {
            // No image holds one.
            assert_eq!(read.name, OTHER);
            continue;
        }
        assert_eq!(read, preset);
        let mut renamed = table.clone();
        renamed.insert("name".to_owned(), "a name of another program".to_owned());
        let renamed = from_table(renamed).unwrap();
        assert_eq!((renamed.name, renamed.table().len()), (OTHER, table.len()));
        assert_eq!(renamed.index, preset.index);
        for key in table.keys() {
            let mut less = table.clone();
            less.remove(key);
            match from_table(less) {
                Err(error) => assert!(error.to_string().contains(key.as_str()), "{key}"),
                // Tables of older programs do not have it.
                Ok(less) => match key.as_str() {
                    "stores_behind_max" => assert_eq!(less.stores_behind_max, 0),
                    "gc_victims_max" => assert_eq!(less.gc_victims_max, 1),
                    "gc_pace" => assert_eq!(less.gc_pace, CollectionPace::Room),
                    "gathered_blocks_max" => assert_eq!(less.gathered_blocks_max, 0),
                    key => assert!(key == "compares_later" && !less.compares_later, "{key}"),
                },
            }
            let mut other = table.clone();
            other.insert(key.clone(), "cabbages".to_owned());
            assert!(key == "name" || from_table(other).is_err(), "{key}");
        }
    }
}
