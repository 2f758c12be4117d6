//! Ropes against plain bytes.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Run {
    Literal(Vec<u8>),
    Pattern(u64, u32, u32),
    Zeros(usize),
    Blob(Vec<u8>),
}

fn run() -> impl Strategy<Value = Run> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300).prop_map(Run::Literal),
        (any::<u64>(), any::<bool>(), 0u32..5000, 0u32..700).prop_map(|(seed, wide, offset, length)| {
            Run::Pattern(if wide { seed } else { seed >> 16 }, offset, length)
        }),
        (0usize..300).prop_map(Run::Zeros),
        prop::collection::vec(any::<u8>(), 0..700).prop_map(Run::Blob),
    ]
}

fn build(runs: &[Run]) -> (Rope, Vec<u8>) {
    let (mut rope, mut bytes) = (Rope::default(), Vec::new());
    for run in runs {
        match run {
            Run::Literal(literal) => {
                rope.push_literal(literal);
                bytes.extend(literal);
            }
            &Run::Pattern(seed, offset, length) => {
                let pattern = Pattern { seed, offset, length };
                rope.push_pattern(pattern);
                bytes.extend(Value::Pattern(pattern).to_vec());
            }
            &Run::Zeros(count) => {
                rope.push_zeros(count);
                bytes.resize(bytes.len() + count, 0);
            }
            Run::Blob(blob) => {
                rope.push_blob(Blob::with_steps(blob, 100));
                bytes.extend(blob);
            }
        }
    }
    (rope, bytes)
}

proptest! {
    #[test]
    fn a_rope_is_its_bytes(runs in prop::collection::vec(run(), 0..12), cut in any::<(prop::sample::Index, prop::sample::Index)>()) {
        let (rope, bytes) = build(&runs);
        prop_assert_eq!(rope.len(), bytes.len());
        let (a, b) = (cut.0.index(bytes.len() + 1), cut.1.index(bytes.len() + 1));
        let range = a.min(b)..a.max(b);

        let mut copied = vec![1; range.len()];
        rope.as_ref().copy_to(range.start, &mut copied);
        prop_assert_eq!(&copied, &bytes[range.clone()]);

        let mut again = Rope::default();
        again.push_slice(rope.as_ref(), range.clone());
        prop_assert_eq!(again.len(), range.len());
        prop_assert_eq!(&*again.as_ref().blob(0..range.len()), &bytes[range.clone()]);

        let mut moved = Rope::default();
        moved.push_zeros(5);
        moved.push_rope(&mut again);
        prop_assert!(again.is_empty());
        prop_assert_eq!(moved.len(), range.len() + 5);
        prop_assert_eq!(&*moved.as_ref().blob(5..5 + range.len()), &bytes[range.clone()]);

        let mut value = ValueBuilder::default();
        rope.as_ref().push_to(range.clone(), &mut value);
        prop_assert_eq!(value.build().to_vec(), &bytes[range]);
    }
}

#[test]
fn a_blob_is_shared_not_copied() {
    let blob: Blob = vec![7; 4096].into();
    let mut rope = Rope::default();
    rope.push_zeros(64);
    rope.push_blob(blob.clone());
    assert_eq!(rope.as_ref().blob(64..64 + 4096).as_ptr(), blob.as_ptr());
    assert_eq!(rope.as_ref().blob_number_at(64), Some(0));
    assert_eq!(rope.as_ref().blob_number_at(0), None);
    assert_eq!(rope.as_ref().blob_number_at(64 + 4096), None);
}

#[test]
fn what_is_shown_is_what_is_copied() {
    let mut rope = Rope::default();
    rope.push_literal(b"head");
    rope.push_pattern(Pattern { seed: 3, offset: 5, length: 3000 });
    rope.push_zeros(2049);
    rope.push_blob(vec![9; 1000].into());
    let mut copied = vec![0; rope.len()];
    rope.as_ref().copy_to(0, &mut copied);
    let mut shown = Vec::new();
    rope.as_ref().show(|bytes| shown.extend_from_slice(bytes));
    assert!(shown == copied);
    Rope::default().as_ref().show(|_| panic!("there is nothing"));
}
