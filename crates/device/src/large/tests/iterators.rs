//! What iterators show of large values.

use super::*;

#[test]
fn an_iterator_shows_what_was_there_however_large_and_it_is_deleted_behind_it() {
    let mut drive = drive("iter");
    let mut large = open(&mut drive);
    let values: Vec<Value> =
        [10, 3 << 20, 20, 5 << 20, 1 << 20].into_iter().map(|length| value(length.into(), length)).collect();
    for (name, value) in values.iter().enumerate() {
        large.execute(&mut drive, FIRST, store(&[name as u8], value)).unwrap();
    }
    let options = IteratorOptions::default();
    let Ok(Reply::IteratorCreated(iterator)) = large.execute(&mut drive, FIRST, Command::CreateIterator { options })
    else {
        panic!("there is no iterator");
    };
    let before = segments(&drive, &large);
    large.execute(&mut drive, FIRST, store(&[1], &value(7, 4 << 20))).unwrap();
    large.execute(&mut drive, FIRST, Command::Delete { key: key(&[3]) }).unwrap();
    assert!(segments(&drive, &large) > before, "nothing was deleted that it has to show");
    let mut shown = Vec::new();
    let mut command = Command::Seek { iterator, key: None, pairs_max: 2 };
    loop {
        match large.execute(&mut drive, FIRST, command).unwrap() {
            Reply::Pairs(pairs) if pairs.is_empty() => break,
            Reply::Pairs(pairs) => shown.extend(pairs),
            other => panic!("{other:?}"),
        }
        command = Command::Next { iterator, pairs_max: 3 };
    }
    assert_eq!(shown.len(), values.len());
    for (name, ((shown_key, shown), value)) in shown.iter().zip(&values).enumerate() {
        assert!(**shown_key == [name as u8] && shown.as_ref() == Some(value), "key {name}");
    }
    large.execute(&mut drive, FIRST, Command::DestroyIterator { iterator }).unwrap();
    let owned = (4u32 << 20).div_ceil(large.segment_bytes) + (1u32 << 20).div_ceil(large.segment_bytes);
    assert_eq!(segments(&drive, &large), owned.into());
}

/// What an iterator of one namespace has left is not what one of another gives, nor one of a later namespace.
#[test]
fn iterators_of_two_namespaces_give_each_its_own() {
    let mut drive = drive("iter");
    let mut large = open(&mut drive);
    let second = large.create_namespace(&mut drive, None, &NamespaceAttributes::PLAIN).unwrap();
    let names = [&b"a"[..], b"b", b"c"];
    let begin = |large: &mut LargeValues, drive: &mut Clocked, namespace| {
        let command = Command::CreateIterator { options: IteratorOptions::default() };
        let Ok(Reply::IteratorCreated(iterator)) = large.execute(drive, namespace, command) else {
            panic!("there is no iterator");
        };
        iterator
    };
    let pairs = |reply| match reply {
        Ok(Reply::Pairs(pairs)) => pairs,
        other => panic!("{other:?}"),
    };
    let mut iterators = Vec::new();
    for namespace in [FIRST, second] {
        for name in names {
            let stored = value(u64::from(namespace.0) * 1000 + u64::from(name[0]), 2 << 20);
            large.execute(&mut drive, namespace, store(name, &stored)).unwrap();
        }
        iterators.push(begin(&mut large, &mut drive, namespace));
    }
    assert!(iterators[0] != iterators[1], "an iterator's number is the drive's");
    let both = [(FIRST, iterators[0]), (second, iterators[1])];
    let mut shown: BTreeMap<u32, Vec<IteratedPair>> = BTreeMap::new();
    for (namespace, iterator) in both {
        let reply = large.execute(&mut drive, namespace, Command::Seek { iterator, key: None, pairs_max: 3 });
        shown.entry(namespace.0).or_default().extend(pairs(reply));
    }
    for _ in 0..3 {
        for (namespace, iterator) in both {
            let reply = large.execute(&mut drive, namespace, Command::Next { iterator, pairs_max: 1 });
            shown.entry(namespace.0).or_default().extend(pairs(reply));
        }
    }
    for (namespace, shown) in shown {
        assert_eq!(shown.len(), names.len(), "namespace {namespace}");
        for ((shown_key, shown), name) in shown.iter().zip(names) {
            let stored = value(u64::from(namespace) * 1000 + u64::from(name[0]), 2 << 20);
            assert!(**shown_key == *name && shown.as_ref() == Some(&stored), "namespace {namespace}");
        }
    }
    // One is deleted in the middle; another one may have its number some day.
    let iterator = iterators[1];
    pairs(large.execute(&mut drive, second, Command::Seek { iterator, key: None, pairs_max: 3 }));
    assert!(!large.left.is_empty(), "else this test shows nothing");
    large.delete_namespace(&mut drive, second).unwrap();
    assert!(large.left.is_empty());
}

/// As those of records do: what cannot be read is told when it is its turn, and nothing is passed over.
#[test]
fn an_iterator_that_could_not_read_goes_on_where_it_was() {
    let mut drive = drive("iter");
    let mut large = open(&mut drive);
    let names = [&b"a"[..], b"b", b"c", b"d"];
    for name in names {
        let stored = value(name[0].into(), large.inline_bytes_max() + 1);
        large.execute(&mut drive, FIRST, store(name, &stored)).unwrap();
    }
    let shadow = large.shadow(FIRST).unwrap().id;
    for left in 0..names.len() {
        let options = IteratorOptions::default();
        let Ok(Reply::IteratorCreated(iterator)) =
            large.execute(&mut drive, FIRST, Command::CreateIterator { options })
        else {
            panic!("there is no iterator");
        };
        // One segment cannot be read, once.
        let mut through = Some(left);
        let fail = |namespace, command: &Command<'_>| match through {
            Some(count) if namespace == shadow && matches!(command, Command::Retrieve { .. }) => {
                through = count.checked_sub(1);
                if count == 0 { Err(damaged()) } else { Ok(()) }
            }
            _ => Ok(()),
        };
        let mut failing = Meddled { drive: &mut drive, fail };
        let (mut shown, mut errors) = (Vec::new(), 0);
        let mut command = Command::Seek { iterator, key: None, pairs_max: 3 };
        loop {
            match large.execute(&mut failing, FIRST, command) {
                Ok(Reply::Pairs(pairs)) if pairs.is_empty() => break,
                Ok(Reply::Pairs(pairs)) => shown.extend(pairs),
                Err(KvError::Unrecovered(_)) => errors += 1,
                other => panic!("{other:?}"),
            }
            command = Command::Next { iterator, pairs_max: 3 };
        }
        let keys: Vec<&[u8]> = shown.iter().map(|(key, _)| key.as_ref()).collect();
        assert_eq!((&keys[..], errors <= 1), (&names[..], true), "segment {left}");
        large.execute(&mut drive, FIRST, Command::DestroyIterator { iterator }).unwrap();
    }
}
