//! Key spaces: the namespaces of a drive by their names.
//!
//! ```text
//!   key space "accounts", ascending     namespace "accounts", ordered
//!   key space "events", descending      namespace "events (descending)", ordered: a namespace itself is never walked backwards
//!   key space "1"                       namespace 1, which every drive begins with and which has no name
//! ```

use crate::abi::KvsKeySpaceName;
use crate::device::Device;
use crate::handle::Handle;
use crate::handles;
use crate::key_space::{KeySpace, none_such};
use crate::order::DESCENDING;
use crate::pointers::Place;
use crate::refusal::{KvsResult, Refusal};
use kvssd_host::{NamespaceAttributes, NamespaceInfo, Store};
use std::sync::Arc;

/// Bytes of a name in the API.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Opens a key space. It is not deleted before whoever deletes it finds it among the open ones.
pub(crate) fn open(device: &Arc<Device>, name: &str) -> Result<Handle, Refusal> {
    device.on_store(|store| {
        let info = store.namespace_at(find(store, name)?.id).info()?;
        handles::add_key_space(KeySpace::new(device, name, &info))
    })
}

/// Makes a key space.
pub(crate) fn create(device: &Device, name: &str, quota_bytes: u64, ordering: u32) -> Result<(), Refusal> {
    let (is_ordered, end) = match ordering {
        0 => (false, ""),
        1 => (true, ""),
        2 => (true, DESCENDING),
        other => return Err(Refusal::new(KvsResult::OptionInvalid, format!("there is no key order {other}"))),
    };
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    if name.is_empty() || is_number || name.ends_with(DESCENDING) || name.chars().any(char::is_control) {
        return Err(Refusal::new(KvsResult::KeySpaceName, format!("a key space cannot be called {name:?}")));
    }
    let attributes = NamespaceAttributes {
        name: Some(format!("{name}{end}")),
        quota_bytes: (quota_bytes > 0).then_some(quota_bytes),
        is_ordered,
        ..NamespaceAttributes::PLAIN
    };
    if attributes.name.as_ref().is_some_and(|name| name.len() > kvssd_host::NAME_BYTES_MAX) {
        let bytes_max = kvssd_host::NAME_BYTES_MAX - end.len();
        let why = format!("the name of such a key space has at most {bytes_max} bytes, unlike {name:?}");
        return Err(Refusal::new(KvsResult::KeySpaceName, why));
    }
    device.alone_on_store(|store| {
        if find(store, name).is_ok() {
            return Err(Refusal::new(KvsResult::KeySpaceExist, format!("there is a key space {name} already")));
        }
        let capacity_bytes = store.stats()?.capacity_bytes;
        if quota_bytes > capacity_bytes {
            let why = format!("a key space of {quota_bytes} bytes does not fit: the device has {capacity_bytes}");
            return Err(Refusal::new(KvsResult::DeviceCapacity, why));
        }
        store.create_namespace(attributes)?;
        Ok(())
    })
}

/// Deletes a key space. Who has it open is told so with the next call.
pub(crate) fn delete(device: &Arc<Device>, name: &str) -> Result<(), Refusal> {
    device.alone_on_store(|store| {
        let id = find(store, name)?.id;
        store.delete_namespace(&id.to_string())?;
        // Its number may be given to another one.
        handles::for_each_key_space_of(device, |open| {
            if open.id == id {
                open.note_deleted();
            }
        });
        device.iterators.end_all_of(id);
        Ok(())
    })
}

/// The names of all key spaces: those that were given one come first.
pub(crate) fn names(device: &Device) -> Result<Vec<String>, Refusal> {
    let mut infos = device.on_store(|store| Ok(store.namespaces()?))?;
    infos.sort_by_key(|info| info.attributes.name.is_none());
    Ok(infos.iter().map(name_of).collect())
}

fn find(store: &Store, name: &str) -> Result<NamespaceInfo, Refusal> {
    store.namespaces()?.into_iter().find(|info| name_of(info) == name).ok_or_else(|| none_such(name))
}

fn name_of(info: &NamespaceInfo) -> String {
    match &info.attributes.name {
        Some(name) => name.strip_suffix(DESCENDING).unwrap_or(name).to_owned(),
        None => info.id.to_string(),
    }
}

/// Writes a name to where C wants it.
pub(crate) fn write_name(name: &str, place: Place<KvsKeySpaceName>) -> Result<(), Refusal> {
    let wanted = place.get()?;
    let bytes = name.len() + 1;
    if (wanted.name_len as usize) < bytes {
        let why = format!("the name {name} takes {bytes} bytes with the null behind it, not {}", wanted.name_len);
        return Err(Refusal::new(KvsResult::BufferSmall, why));
    }
    wanted.name.cast::<u8>().change(bytes, |buffer| {
        buffer[..name.len()].copy_from_slice(name.as_bytes());
        buffer[name.len()] = 0;
    })?;
    place.set(KvsKeySpaceName { name_len: name.len() as u32, ..wanted })
}
