//! Metadata in WASI's terms.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::UNIX_EPOCH;

use cap_std::fs::{Metadata, MetadataExt as _};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, MetadataHashValue};

use crate::sandbox::below::Kind;

pub(super) fn kind(kind: Kind) -> DescriptorType {
    match kind {
        Kind::File => DescriptorType::RegularFile,
        Kind::Directory => DescriptorType::Directory,
        Kind::Link => DescriptorType::SymbolicLink,
        Kind::Special => DescriptorType::Unknown,
    }
}

pub(super) fn of(metadata: &Metadata) -> DescriptorStat {
    DescriptorStat {
        type_: kind(Kind::of(metadata)),
        link_count: metadata.nlink(),
        size: metadata.len(),
        data_access_timestamp: metadata.accessed().ok().and_then(|time| moment(time.into_std())),
        data_modification_timestamp: metadata.modified().ok().and_then(|time| moment(time.into_std())),
        status_change_timestamp: seconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// A link that is only in the stage.
pub(super) fn of_link(target: &str) -> DescriptorStat {
    DescriptorStat {
        type_: DescriptorType::SymbolicLink,
        link_count: 1,
        size: target.len() as u64,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

/// Tells two files apart.
pub(super) fn hash(metadata: &Metadata) -> MetadataHashValue {
    hash_of(&(metadata.dev(), metadata.ino()))
}

pub(super) fn hash_of(identity: &impl std::hash::Hash) -> MetadataHashValue {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, identity).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: half(0), upper: half(1) }
}

fn moment(time: std::time::SystemTime) -> Option<Datetime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
}

fn seconds(seconds: i64, nanoseconds: i64) -> Option<Datetime> {
    Some(Datetime { seconds: seconds.try_into().ok()?, nanoseconds: nanoseconds.try_into().ok()? })
}
