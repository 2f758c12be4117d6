//! The functions by their names in C. `include/kvs_api.h` says what each does.
//!
//! Arguments that are addresses come as [`Place`]s, which are looked at in `pointers.rs` alone.

#![expect(unsafe_code, reason = "a name that C can link is an unsafe attribute; there is no other unsafe code here")]
#![expect(missing_docs, reason = "the header says what each does")]

use crate::abi::*;
use crate::device::Device;
use crate::group::KeyGroup;
use crate::handle::Handle;
use crate::handles;
use crate::key_space::KeySpace;
use crate::key_spaces;
use crate::operation::{self, Operation};
use crate::pointers::{Place, allocate, allocated, free};
use crate::postprocess::Postprocess;
use crate::queue;
use crate::refusal::{KvsResult, Refusal, given, last_line};
use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Bytes of the longest path or URL.
const DRIVE_BYTES_MAX: usize = 4096;

/// Does something for C: a panic is a refusal.
pub(crate) fn call(work: impl FnOnce() -> Result<(), Refusal>) -> KvsResult {
    given(caught(work))
}

fn caught(work: impl FnOnce() -> Result<(), Refusal>) -> Result<(), Refusal> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Refusal::new(KvsResult::SysIo, "the call has panicked")))
}

/// Does an operation at once.
fn call_now(ks_hd: Handle, operation: impl FnOnce(&KeySpace) -> Result<Operation, Refusal>) -> KvsResult {
    call(|| {
        let key_space = handles::key_space(ks_hd)?;
        operation(&key_space)?.run(&key_space)
    })
}

/// Puts an operation into the queue, and calls the function once with what became of it.
fn call_later(
    context: KvsPostprocessContext,
    post_fn: Postprocess,
    operation: impl FnOnce(&KeySpace) -> Result<Operation, Refusal>,
) -> KvsResult {
    call(|| {
        let key_space = handles::key_space(context.ks_hd)?;
        if post_fn.is_null() {
            return Err(Refusal::new(KvsResult::ParamInvalid, "there is no function to call back"));
        }
        let operation = operation(&key_space)?;
        let device = Arc::clone(&key_space.device);
        device.queue.submit(Box::new(move || {
            let result = call(|| operation.run(&key_space));
            // The function may close the key space.
            drop(key_space);
            post_fn.call(KvsPostprocessContext { result: result as u32, ..context });
        }))
    })
}

/// A context of a call of which no more is known.
fn context(of: KvsContext, ks_hd: Handle, private1: Place<c_void>, private2: Place<c_void>) -> KvsPostprocessContext {
    KvsPostprocessContext {
        context: of,
        ks_hd,
        key: Place::NULL,
        value: Place::NULL,
        option: Place::NULL,
        private1,
        private2,
        result: KvsResult::Success as u32,
        iter_hd: 0,
        result_buffer: Place::NULL,
    }
}

/// Writes a number of a device to where C wants it.
fn tell<T: Copy>(
    dev_hd: Handle,
    set: impl FnOnce(T) -> Result<(), Refusal>,
    number: impl FnOnce(&Device) -> Result<T, Refusal>,
) -> KvsResult {
    call(|| set(number(&*handles::device(dev_hd)?)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvssd_last_error() -> *const c_char {
    last_line()
}

#[unsafe(no_mangle)]
pub extern "C" fn _kvs_malloc(size_bytes: usize, alignment: usize, _file: Place<c_char>) -> Place<c_void> {
    allocate(size_bytes, alignment)
}

#[unsafe(no_mangle)]
pub extern "C" fn _kvs_zalloc(size_bytes: usize, alignment: usize, _file: Place<c_char>) -> Place<c_void> {
    let memory = allocate(size_bytes, alignment);
    // Nothing is to be filled where there is no memory.
    let _ = memory.cast::<u8>().change(size_bytes, |bytes| bytes.fill(0));
    memory
}

#[unsafe(no_mangle)]
pub extern "C" fn _kvs_free(buf: Place<c_void>, _file: Place<c_char>) {
    free(buf);
}

#[unsafe(no_mangle)]
pub extern "C" fn _kvs_report_memstat() {
    use std::io::Write;
    // Where the line cannot go it is of no use.
    let _ = writeln!(std::io::stderr(), "kvssd: {} pieces of memory of kvs_malloc are not freed", allocated());
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_open_device(uri: Place<c_char>, dev_hd: Place<Handle>) -> KvsResult {
    call(|| {
        dev_hd.check()?;
        let device = Device::open(&uri.text(DRIVE_BYTES_MAX)?)?;
        dev_hd.set(handles::add_device(device))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_close_device(dev_hd: Handle) -> KvsResult {
    call(|| {
        if queue::is_in_callback() {
            return Err(Refusal::new(KvsResult::SysIo, "a callback cannot close a device: that waits for it"));
        }
        handles::remove_device(dev_hd)?.close()
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_device_info(dev_hd: Handle, dev_info: Place<KvsDevice>) -> KvsResult {
    tell(dev_hd, |info| dev_info.set(info), Device::info)
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_device_capacity(dev_hd: Handle, dev_capacity: Place<u64>) -> KvsResult {
    tell(dev_hd, |bytes| dev_capacity.set(bytes), |device| Ok(device.stats()?.capacity_bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_device_utilization(dev_hd: Handle, dev_utilization: Place<u32>) -> KvsResult {
    const WHOLE: u128 = 10_000;
    let utilization = |device: &Device| {
        let stats = device.stats()?;
        let part = u128::from(stats.live_bytes) * WHOLE / u128::from(stats.capacity_bytes.max(1));
        Ok(part.min(WHOLE) as u32)
    };
    tell(dev_hd, |part| dev_utilization.set(part), utilization)
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_min_key_length(dev_hd: Handle, min_key_length: Place<u32>) -> KvsResult {
    tell(dev_hd, |bytes| min_key_length.set(bytes), |_| Ok(KEY_BYTES_MIN.into()))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_max_key_length(dev_hd: Handle, max_key_length: Place<u32>) -> KvsResult {
    tell(dev_hd, |bytes| max_key_length.set(bytes), |device| Ok(device.key_bytes_max().into()))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_min_value_length(dev_hd: Handle, min_value_length: Place<u32>) -> KvsResult {
    tell(dev_hd, |bytes| min_value_length.set(bytes), |_| Ok(0))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_max_value_length(dev_hd: Handle, max_value_length: Place<u32>) -> KvsResult {
    tell(dev_hd, |bytes| max_value_length.set(bytes), |device| Ok(device.value_bytes_max()))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_optimal_value_length(dev_hd: Handle, opt_value_length: Place<u32>) -> KvsResult {
    tell(dev_hd, |bytes| opt_value_length.set(bytes), |_| Ok(VALUE_BYTES_OPTIMAL))
}

/// The name of a key space. Nothing behind its bytes is touched, not even to see whether a null ends it.
fn name_of(name: Place<KvsKeySpaceName>) -> Result<String, Refusal> {
    let name = name.get()?;
    let wrong = |why: String| Refusal::new(KvsResult::KeySpaceName, why);
    name.name.check()?;
    let bytes = name.name_len as usize;
    if bytes > key_spaces::NAME_BYTES_MAX {
        return Err(wrong(format!("a name has at most {} bytes, not {bytes}", key_spaces::NAME_BYTES_MAX)));
    }
    let text = name.name.cast::<u8>().read(bytes, |text| String::from_utf8(text.to_vec()))?;
    let text = text.map_err(|_| wrong("a name is not UTF-8".to_owned()))?;
    match text.find('\0') {
        None => Ok(text),
        Some(end) => Err(wrong(format!("the name {:?} has {end} bytes, not {bytes}", &text[..end]))),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_create_key_space(
    dev_hd: Handle,
    key_space_name: Place<KvsKeySpaceName>,
    size: u64,
    opt: KvsOptionKeySpace,
) -> KvsResult {
    call(|| key_spaces::create(&*handles::device(dev_hd)?, &name_of(key_space_name)?, size, opt.ordering))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_key_space(dev_hd: Handle, key_space_name: Place<KvsKeySpaceName>) -> KvsResult {
    call(|| key_spaces::delete(&handles::device(dev_hd)?, &name_of(key_space_name)?))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_list_key_spaces(
    dev_hd: Handle,
    index: u32,
    buffer_size: u32,
    names: Place<KvsKeySpaceName>,
    ks_cnt: Place<u32>,
) -> KvsResult {
    call(|| {
        names.check()?;
        ks_cnt.set(0)?;
        let all = key_spaces::names(&*handles::device(dev_hd)?)?;
        let wanted = all.get((index as usize).wrapping_sub(1)..).filter(|wanted| !wanted.is_empty());
        let Some(wanted) = wanted else {
            let why = format!("key spaces are counted from 1, and there are {}, not {index}", all.len());
            return Err(Refusal::new(KvsResult::KeySpaceIndex, why));
        };
        let room = buffer_size as usize / size_of::<KvsKeySpaceName>();
        if room == 0 {
            return Err(Refusal::new(KvsResult::BufferSmall, "the buffer has room for no name"));
        }
        for (count, name) in wanted.iter().take(room).enumerate() {
            key_spaces::write_name(name, names.at(count))?;
            ks_cnt.set(count as u32 + 1)?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_open_key_space(dev_hd: Handle, name: Place<c_char>, ks_hd: Place<Handle>) -> KvsResult {
    call(|| {
        ks_hd.check()?;
        name.check()?;
        let wrong = |refusal: Refusal| Refusal::new(KvsResult::KeySpaceName, refusal.why);
        let name = name.text(key_spaces::NAME_BYTES_MAX).map_err(wrong)?;
        if name.is_empty() {
            return Err(Refusal::new(KvsResult::KeySpaceName, "a name has at least a byte"));
        }
        ks_hd.set(key_spaces::open(&handles::device(dev_hd)?, &name)?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_close_key_space(ks_hd: Handle) -> KvsResult {
    call(|| {
        let key_space = handles::remove_key_space(ks_hd)?;
        key_space.device.iterators.end_all_of(key_space.id);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_key_space_info(ks_hd: Handle, ks: Place<KvsKeySpace>) -> KvsResult {
    call(|| {
        ks.check()?;
        let key_space = handles::key_space(ks_hd)?;
        let (info, count) = key_space.info()?;
        let name = ks.get()?.name;
        if !name.is_null() {
            key_spaces::write_name(&key_space.name, name)?;
        }
        ks.set(KvsKeySpace {
            opened: 1,
            capacity: info.utilization.capacity_bytes,
            free_size: key_space.free_bytes(&info)?,
            count,
            name,
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_get_kvp_info(ks_hd: Handle, key: Place<KvsKey>, info: Place<KvsKvpInfo>) -> KvsResult {
    call(|| operation::pair_info(&*handles::key_space(ks_hd)?, key, info))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_retrieve_kvp(
    ks_hd: Handle,
    key: Place<KvsKey>,
    opt: Place<KvsOptionRetrieve>,
    value: Place<KvsValue>,
) -> KvsResult {
    call_now(ks_hd, |key_space| Operation::retrieve(key_space, key, opt, value))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_retrieve_kvp_async(
    ks_hd: Handle,
    key: Place<KvsKey>,
    opt: Place<KvsOptionRetrieve>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    value: Place<KvsValue>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::Retrieve, ks_hd, private1, private2);
    let of = KvsPostprocessContext { key, value, option: opt.cast(), ..of };
    call_later(of, post_fn, |key_space| Operation::retrieve(key_space, key, opt, value))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_store_kvp(
    ks_hd: Handle,
    key: Place<KvsKey>,
    value: Place<KvsValue>,
    opt: Place<KvsOptionStore>,
) -> KvsResult {
    call_now(ks_hd, |key_space| Operation::store(key_space, key, value, opt))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_store_kvp_async(
    ks_hd: Handle,
    key: Place<KvsKey>,
    value: Place<KvsValue>,
    opt: Place<KvsOptionStore>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::Store, ks_hd, private1, private2);
    let of = KvsPostprocessContext { key, value, option: opt.cast(), ..of };
    call_later(of, post_fn, |key_space| Operation::store(key_space, key, value, opt))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_kvp(ks_hd: Handle, key: Place<KvsKey>, opt: Place<KvsOptionDelete>) -> KvsResult {
    call_now(ks_hd, |key_space| Operation::delete(key_space, key, opt))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_kvp_async(
    ks_hd: Handle,
    key: Place<KvsKey>,
    opt: Place<KvsOptionDelete>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::Delete, ks_hd, private1, private2);
    let of = KvsPostprocessContext { key, option: opt.cast(), ..of };
    call_later(of, post_fn, |key_space| Operation::delete(key_space, key, opt))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_key_group(ks_hd: Handle, grp_fltr: Place<KvsKeyGroupFilter>) -> KvsResult {
    call_now(ks_hd, |_| Operation::delete_group(grp_fltr))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_key_group_async(
    ks_hd: Handle,
    grp_fltr: Place<KvsKeyGroupFilter>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::DeleteGroup, ks_hd, private1, private2);
    call_later(of, post_fn, |_| Operation::delete_group(grp_fltr))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_exist_kv_pairs(
    ks_hd: Handle,
    key_cnt: u32,
    keys: Place<KvsKey>,
    list: Place<KvsExistList>,
) -> KvsResult {
    call_now(ks_hd, |key_space| Operation::exist(key_space, key_cnt, keys, list))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_exist_kv_pairs_async(
    ks_hd: Handle,
    key_cnt: u32,
    keys: Place<KvsKey>,
    list: Place<KvsExistList>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::Exist, ks_hd, private1, private2);
    let of = KvsPostprocessContext { key: keys, result_buffer: list.cast(), ..of };
    call_later(of, post_fn, |key_space| Operation::exist(key_space, key_cnt, keys, list))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_create_iterator(
    ks_hd: Handle,
    iter_op: Place<KvsOptionIterator>,
    iter_fltr: Place<KvsKeyGroupFilter>,
    iter_hd: Place<u8>,
) -> KvsResult {
    call(|| {
        let key_space = handles::key_space(ks_hd)?;
        iter_hd.check()?;
        let iter_type = iter_op.get_unless_null()?.map_or(0, |option| option.iter_type);
        let group = KeyGroup::of(&iter_fltr.get()?)?;
        let iterators = &key_space.device.iterators;
        iter_hd.set(key_space.on_pairs(|_| iterators.create(key_space.id, key_space.order, group, iter_type))?)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_delete_iterator(ks_hd: Handle, iter_hd: u8) -> KvsResult {
    call(|| {
        let key_space = handles::key_space(ks_hd)?;
        key_space.device.iterators.delete(key_space.id, iter_hd)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_iterate_next(ks_hd: Handle, iter_hd: u8, iter_list: Place<KvsIteratorList>) -> KvsResult {
    call_now(ks_hd, |_| Operation::next(iter_hd, iter_list))
}

#[unsafe(no_mangle)]
pub extern "C" fn kvs_iterate_next_async(
    ks_hd: Handle,
    iter_hd: u8,
    iter_list: Place<KvsIteratorList>,
    private1: Place<c_void>,
    private2: Place<c_void>,
    post_fn: Postprocess,
) -> KvsResult {
    let of = context(KvsContext::IterNext, ks_hd, private1, private2);
    let of = KvsPostprocessContext { iter_hd, result_buffer: iter_list.cast(), ..of };
    call_later(of, post_fn, |_| Operation::next(iter_hd, iter_list))
}
