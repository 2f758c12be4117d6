//! `kvssd namespace`: the namespaces of a drive are made, deleted and listed.

use crate::Outcome;
use crate::arguments::namespace::{CreateNamespaceOptions, DeleteNamespaceOptions, NamespaceAction, SetCacheOptions};
use crate::fail::{Failure, is_url};
use crate::output::print;
use crate::pairs::open_to_read;
use kvssd_host::{Missing, NamespaceAttributes, NamespaceInfo, Options, Store};
use kvssd_measure::columns;
use std::path::Path;

/// Does what is asked for.
pub fn run(action: &NamespaceAction) -> Outcome {
    match action {
        NamespaceAction::Create(options) => create(options),
        NamespaceAction::Delete(options) => delete(options),
        NamespaceAction::Cache(options) => set_cache(options),
        NamespaceAction::List(options) => list(&options.image),
    }
}

/// Makes a namespace and prints its number.
fn create(options: &CreateNamespaceOptions) -> Outcome {
    let CreateNamespaceOptions { image, name, index, set, quota, ordered, cache } = options;
    let attributes = NamespaceAttributes {
        name: name.clone(),
        index: index.clone(),
        parameters: set.clone(),
        quota_bytes: *quota,
        is_ordered: *ordered,
        cache: cache.attributes(),
        ..NamespaceAttributes::PLAIN
    };
    let store = open(image)?;
    let number = store.create_namespace(attributes).map_err(Failure::of_store(image))?.id();
    store.close().map_err(Failure::of_store(image))?;
    print(&format!("{number}\n")).map_err(|why| Failure::Untold { why: why.into(), number })
}

/// Deletes a namespace. All that was in it is gone when this is done.
fn delete(options: &DeleteNamespaceOptions) -> Outcome {
    let DeleteNamespaceOptions { image, namespace } = options;
    let store = open(image)?;
    store.delete_namespace(namespace).map_err(Failure::of_store(image))?;
    store.close().map_err(Failure::of_store(image))
}

/// Makes a namespace another cache, or none.
fn set_cache(options: &SetCacheOptions) -> Outcome {
    let SetCacheOptions { image, namespace, cache } = options;
    let store = open(image)?;
    let set = store.namespace(namespace).and_then(|found| found.set_cache(cache.attributes().as_ref()));
    set.map_err(Failure::of_store(image))?;
    store.close().map_err(Failure::of_store(image))
}

/// Prints the namespaces.
fn list(image: &Path) -> Outcome {
    let namespaces = open_to_read(image)?.namespaces().map_err(Failure::of_store(image))?;
    let head =
        ["number", "name", "index", "keys", "pairs", "pairs max", "pair bytes", "live bytes", "quota bytes", "cache"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(namespaces.iter().map(row));
    print(&columns(&rows))
}

fn row(info: &NamespaceInfo) -> Vec<String> {
    let NamespaceAttributes { name, parameters, quota_bytes, cache, .. } = &info.attributes;
    let parameters = parameters.iter().map(|(key, value)| format!(" {key}={value}"));
    let nothing = || "-".to_owned();
    let number = |number: Option<u64>| number.map_or_else(nothing, |number| number.to_string());
    // A drive of another make does not say what its indexes are, nor how many pairs a namespace has.
    let told = |text: String| if info.index.is_empty() { nothing() } else { text };
    vec![
        info.id.to_string(),
        name.clone().unwrap_or_else(nothing),
        told(format!("{}{}", info.index, parameters.collect::<String>())),
        told(if info.is_ordered { "ordered" } else { "hashed" }.to_owned()),
        told(info.utilization.pairs.to_string()),
        number(info.pairs_max),
        told(info.utilization.pair_bytes.to_string()),
        info.utilization.live_bytes.to_string(),
        number(*quota_bytes),
        cache.as_ref().map_or_else(nothing, ToString::to_string),
    ]
}

/// The store in an image that must be there. That a name is known outlives the machine.
fn open(image: &Path) -> Result<Store, Failure> {
    let sync = !is_url(image);
    let options = Options { missing: Missing::Fail, sync, ..Options::default() };
    kvssd_host::open(image, options).map_err(Failure::of_store(image))
}
