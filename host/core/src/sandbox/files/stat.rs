//! Converts file metadata to WASI's types.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::UNIX_EPOCH;

use cap_std::fs::{Metadata, MetadataExt as _};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, MetadataHashValue,
};

use crate::sandbox::rooted_fs::FileKind;

pub(super) fn descriptor_type(kind: FileKind) -> DescriptorType {
    match kind {
        FileKind::File => DescriptorType::RegularFile,
        FileKind::Directory => DescriptorType::Directory,
        FileKind::Link => DescriptorType::SymbolicLink,
        FileKind::Special => DescriptorType::Unknown,
    }
}

pub(super) fn descriptor_stat(metadata: &Metadata) -> DescriptorStat {
    DescriptorStat {
        type_: descriptor_type(FileKind::from_metadata(metadata)),
        link_count: metadata.nlink(),
        size: metadata.len(),
        data_access_timestamp: metadata
            .accessed()
            .ok()
            .and_then(|time| datetime_from_system_time(time.into_std())),
        data_modification_timestamp: metadata
            .modified()
            .ok()
            .and_then(|time| datetime_from_system_time(time.into_std())),
        status_change_timestamp: datetime_from_timespec(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// Returns the metadata of a link that exists only in the overlay.
pub(super) fn link_stat(target: &str) -> DescriptorStat {
    DescriptorStat {
        type_: DescriptorType::SymbolicLink,
        link_count: 1,
        size: target.len() as u64,
        data_access_timestamp: None,
        data_modification_timestamp: None,
        status_change_timestamp: None,
    }
}

/// Returns a hash that identifies a file by device and inode.
pub(super) fn metadata_hash(metadata: &Metadata) -> MetadataHashValue {
    identity_hash(&(metadata.dev(), metadata.ino()))
}

pub(super) fn identity_hash(identity: &impl std::hash::Hash) -> MetadataHashValue {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, identity).hash(&mut hasher);
        hasher.finish()
    };
    MetadataHashValue { lower: half(0), upper: half(1) }
}

fn datetime_from_system_time(time: std::time::SystemTime) -> Option<Datetime> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    Some(Datetime { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() })
}

fn datetime_from_timespec(seconds: i64, nanoseconds: i64) -> Option<Datetime> {
    Some(Datetime { seconds: seconds.try_into().ok()?, nanoseconds: nanoseconds.try_into().ok()? })
}
