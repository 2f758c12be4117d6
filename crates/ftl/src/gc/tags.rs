//! Tags that do not lie out of band: computed from the keys in a page.

use crate::layout::oob::{Oob, OobFormat};
use crate::layout::packing::Packing;
use crate::namespace::Namespaces;
use kvssd_flash::rope::RopeRef;
use kvssd_types::Key;

/// Completes the tags of a page's pairs from the keys in its data, where `format` has none of them; returns how many
/// these are. Where there is no record, or nobody whose it is, the tag stays as it is: nothing is found by it.
pub(crate) fn complete(
    oob: &mut Oob,
    data: RopeRef<'_>,
    namespaces: &Namespaces,
    format: OobFormat,
    packing: &Packing,
) -> usize {
    if !format.lacks_tags(oob.kind) {
        return 0;
    }
    for entry in &mut oob.entries {
        let start = entry.grain as usize * packing.grain_bytes as usize;
        let Ok(head) = packing.head(data, start) else { continue };
        let tag = Key::new(head.key(data, start, &mut [0; 255])).ok().and_then(|key| {
            let namespace = namespaces.get(entry.namespace)?;
            namespace.index.tag_of(key)
        });
        entry.tag = tag.unwrap_or(entry.tag);
    }
    oob.entries.len()
}
