//! The limits of a tool call, by their names in configuration and policy files.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The name of a limit of a call. The name includes the unit.
///
/// This enum is closed: each limit has to be enforced where calls run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapName {
    /// Running time in seconds of the guest and its host calls, without approvals and commands.
    Seconds,
    /// Total size of all linear memories, in MiB.
    MemoryMib,
    /// Number of elements in each table.
    TableElements,
    /// Number of core instances, of memories and of tables, each.
    Instances,
    /// Data that one host call, or the result, may pass from the guest to the host, in KiB.
    CrossingKib,
    /// Total size of all parts of a result, in KiB.
    OutputKib,
    /// Size of the logged standard output and of the logged standard error, each, in KiB.
    LogKib,
    /// Open files, streams and other host resources at the same time.
    Handles,
    /// Random data that one call may request, in KiB.
    RandomKib,
    /// Bytes of a result that the model receives.
    ShownBytes,
}

impl CapName {
    /// All limits, in the order of the enum.
    pub const ALL: [Self; 10] = [
        Self::Seconds,
        Self::MemoryMib,
        Self::TableElements,
        Self::Instances,
        Self::CrossingKib,
        Self::OutputKib,
        Self::LogKib,
        Self::Handles,
        Self::RandomKib,
        Self::ShownBytes,
    ];

    /// Returns the key in configuration and policy files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::MemoryMib => "memory_mib",
            Self::TableElements => "table_elements",
            Self::Instances => "instances",
            Self::CrossingKib => "crossing_kib",
            Self::OutputKib => "output_kib",
            Self::LogKib => "log_kib",
            Self::Handles => "handles",
            Self::RandomKib => "random_kib",
            Self::ShownBytes => "shown_bytes",
        }
    }

    /// Returns the valid values. The minimum is enough for ordinary tools. The maximum is the limit
    /// of the engine, or the capacity of a typical machine.
    pub fn range(self) -> RangeInclusive<u64> {
        match self {
            Self::Seconds => 1..=3600,
            // The runtimes of Python and JavaScript start with less than 20 MiB.
            Self::MemoryMib => 1..=4095,
            Self::TableElements => 1000..=100_000,
            Self::Instances => 1..=64,
            Self::CrossingKib => 64..=65_536,
            Self::OutputKib => 1..=65_536,
            Self::LogKib => 0..=16_384,
            Self::Handles => 16..=65_536,
            Self::RandomKib => 1..=16_384,
            Self::ShownBytes => 1000..=16_777_216,
        }
    }

    /// Returns the value that applies if none is configured.
    pub fn default_value(self) -> u64 {
        match self {
            Self::Seconds => 60,
            Self::MemoryMib => 256,
            Self::TableElements => 100_000,
            Self::Instances => 64,
            Self::CrossingKib => 4096,
            Self::OutputKib => 1024,
            Self::LogKib => 64,
            Self::Handles => 4096,
            Self::RandomKib => 1024,
            // About 25,000 tokens: large for one result, and small enough for every context window
            // in use.
            Self::ShownBytes => 100 << 10,
        }
    }
}

impl fmt::Display for CapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The configured limits. An absent limit is not configured.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caps(BTreeMap<CapName, u64>);

/// The error for a limit outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{cap} = {value} is out of range: use {} to {}",
    cap.range().start(),
    cap.range().end()
)]
pub struct CapOutOfRange {
    cap: CapName,
    value: u64,
}

impl Caps {
    /// Returns all limits at their default values.
    pub fn defaults() -> Self {
        Self(CapName::ALL.into_iter().map(|cap| (cap, cap.default_value())).collect())
    }

    /// Returns the configured value of a limit, if there is one.
    pub fn get(&self, cap: CapName) -> Option<u64> {
        self.0.get(&cap).copied()
    }

    /// Returns the effective value: the configured one, or the default.
    pub fn value(&self, cap: CapName) -> u64 {
        self.get(cap).unwrap_or_else(|| cap.default_value())
    }

    /// Sets the value of a limit.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is outside [`CapName::range`].
    pub fn set(&mut self, cap: CapName, value: u64) -> Result<(), CapOutOfRange> {
        if !cap.range().contains(&value) {
            return Err(CapOutOfRange { cap, value });
        }
        self.0.insert(cap, value);
        Ok(())
    }

    /// Checks that each value is within its range.
    ///
    /// # Errors
    ///
    /// Returns an error for the first value outside [`CapName::range`].
    pub fn check(&self) -> Result<(), CapOutOfRange> {
        self.iter().try_for_each(|(cap, value)| {
            if cap.range().contains(&value) { Ok(()) } else { Err(CapOutOfRange { cap, value }) }
        })
    }

    /// Iterates over the configured limits, in the order of the enum.
    pub fn iter(&self) -> impl Iterator<Item = (CapName, u64)> {
        self.0.iter().map(|(cap, value)| (*cap, *value))
    }

    /// Returns these limits, completed by those of `other` that are not configured here.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut all = other.0.clone();
        all.extend(&self.0);
        Self(all)
    }

    /// Returns these limits, lowered to `maxima`. A maximum for a limit that is not configured
    /// becomes its value only if the default is larger.
    #[must_use]
    pub fn limited_to(&self, maxima: &Self) -> Self {
        let mut lowered = self.clone();
        for (cap, maximum) in maxima.iter() {
            if lowered.value(cap) > maximum {
                lowered.0.insert(cap, maximum);
            }
        }
        lowered
    }

    /// Combines both sets. If both configure a limit, the smaller value applies.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        for (cap, value) in other.iter() {
            all.entry(cap).and_modify(|ours| *ours = (*ours).min(value)).or_insert(value);
        }
        Self(all)
    }

    /// Returns whether no limit is configured.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(chosen: &[(CapName, u64)]) -> Caps {
        let mut caps = Caps::default();
        chosen.iter().for_each(|(cap, value)| caps.set(*cap, *value).expect("it is in range"));
        caps
    }

    #[test]
    fn every_default_is_in_its_range() {
        for cap in CapName::ALL {
            assert!(cap.range().contains(&cap.default_value()), "{cap}");
        }
    }

    #[test]
    fn r098_a_maximum_lowers_what_is_chosen_and_raises_nothing() {
        let maxima = caps(&[(CapName::Seconds, 30), (CapName::MemoryMib, 512)]);
        assert_eq!(
            caps(&[(CapName::Seconds, 600)]).limited_to(&maxima).value(CapName::Seconds),
            30
        );
        assert_eq!(caps(&[(CapName::Seconds, 5)]).limited_to(&maxima).value(CapName::Seconds), 5);
        // The maximum lowers the default of 60 s. The default of 256 MiB is below its maximum.
        assert_eq!(Caps::default().limited_to(&maxima).value(CapName::Seconds), 30);
        assert_eq!(Caps::default().limited_to(&maxima).value(CapName::MemoryMib), 256);
    }

    #[test]
    fn a_value_out_of_range_is_an_error_with_the_range() {
        let problem = Caps::default().set(CapName::Seconds, 0).unwrap_err().to_string();
        assert_eq!(problem, "seconds = 0 is out of range: use 1 to 3600");
    }

    #[test]
    fn the_defaults_configure_every_limit() {
        let defaults = Caps::defaults();
        for cap in CapName::ALL {
            assert_eq!(defaults.get(cap), Some(cap.default_value()), "{cap}");
        }
        assert!(!defaults.is_empty());
        assert!(Caps::default().is_empty());
    }

    #[test]
    fn a_check_finds_a_value_that_was_read_without_one() {
        let read = |text: &str| serde_json::from_str::<Caps>(text).expect("limits");
        assert_eq!(read(r#"{"seconds": 3600}"#).check(), Ok(()));
        let problem = read(r#"{"seconds": 3601, "handles": 16}"#).check().unwrap_err();
        assert_eq!(problem.to_string(), "seconds = 3601 is out of range: use 1 to 3600");
    }

    #[test]
    fn limits_are_completed_by_those_of_another_set() {
        let ours = caps(&[(CapName::Seconds, 5)]);
        let others = caps(&[(CapName::Seconds, 600), (CapName::Handles, 20)]);
        assert_eq!(ours.or(&others), caps(&[(CapName::Seconds, 5), (CapName::Handles, 20)]));
    }

    #[test]
    fn a_maximum_equal_to_the_default_configures_nothing() {
        let maxima = caps(&[(CapName::Seconds, 60)]);
        assert!(Caps::default().limited_to(&maxima).is_empty());
    }
}
