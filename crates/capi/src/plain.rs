//! Types of the header of which all bytes are a value.

#![expect(unsafe_code, reason = "the compiler cannot check it")]

use crate::abi::*;
use crate::handle::Handle;
use crate::pointers::plain;

plain!(Handle);
plain!(KvsKey, KvsValue, KvsKvpInfo, KvsKeySpace, KvsKeySpaceName, KvsDevice, KvsExistList, KvsIteratorList);
plain!(KvssdCompletion, KvssdDeviceStats);
plain!(KvsOptionDelete, KvsOptionIterator, KvsOptionRetrieve, KvsOptionStore, KvsKeyGroupFilter);
