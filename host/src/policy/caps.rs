//! The caps of a call by name, as configuration and policy write them down.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// A cap of a call. Its unit is part of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapName {
    /// Time in the guest and in what it calls, without approvals and commands.
    Seconds,
    /// All linear memories together.
    MemoryMib,
    /// Elements of each table.
    TableElements,
    /// Core instances, memories and tables, each.
    Instances,
    /// What one host call, or the result, may carry from the guest to the host.
    CrossingKib,
    /// All pieces of a result together.
    OutputKib,
    /// Of standard output and standard error, each, that is kept for the log.
    LogKib,
    /// Open files, streams and other things of the host at a time.
    Handles,
    /// What one call for random numbers may ask for.
    RandomKib,
    /// Bytes of a result that the model is shown.
    ShownBytes,
}

impl CapName {
    /// All of them.
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

    /// Its key.
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

    /// What may be chosen. The least is what honest tools need; the most is what the engine is set
    /// up for, or what a machine can be expected to have.
    pub fn range(self) -> RangeInclusive<u64> {
        match self {
            Self::Seconds => 1..=3600,
            // Python and JavaScript begin with less than 20.
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

    /// Where nothing is chosen.
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
            // About 25,000 tokens: much for one result, and little enough for every window in use.
            Self::ShownBytes => 100 << 10,
        }
    }
}

impl fmt::Display for CapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Chosen caps. One that is absent is not chosen.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Caps(BTreeMap<CapName, u64>);

/// A cap out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cap} = {value} is out of its range: use {} to {}", cap.range().start(), cap.range().end())]
pub struct CapOutOfRange {
    cap: CapName,
    value: u64,
}

impl Caps {
    /// Each at its default.
    pub fn defaults() -> Self {
        Self(CapName::ALL.into_iter().map(|cap| (cap, cap.default_value())).collect())
    }

    /// The chosen value of a cap.
    pub fn get(&self, cap: CapName) -> Option<u64> {
        self.0.get(&cap).copied()
    }

    /// The value in force: the chosen one, or the default.
    pub fn value(&self, cap: CapName) -> u64 {
        self.get(cap).unwrap_or_else(|| cap.default_value())
    }

    /// Chooses a cap.
    pub fn set(&mut self, cap: CapName, value: u64) -> Result<(), CapOutOfRange> {
        if !cap.range().contains(&value) {
            return Err(CapOutOfRange { cap, value });
        }
        self.0.insert(cap, value);
        Ok(())
    }

    /// Whether each is within its range.
    pub fn check(&self) -> Result<(), CapOutOfRange> {
        self.iter().try_for_each(|(cap, value)| {
            if cap.range().contains(&value) { Ok(()) } else { Err(CapOutOfRange { cap, value }) }
        })
    }

    /// The chosen ones, in order.
    pub fn iter(&self) -> impl Iterator<Item = (CapName, u64)> {
        self.0.iter().map(|(cap, value)| (*cap, *value))
    }

    /// These, and where nothing is chosen those.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut all = other.0.clone();
        all.extend(&self.0);
        Self(all)
    }

    /// These, and no more than those: a maximum that stands alone becomes the value only if the
    /// default is above it.
    #[must_use]
    pub fn limited_to(&self, maxima: &Self) -> Self {
        let mut lowered = self.clone();
        for (cap, most) in maxima.iter() {
            if lowered.value(cap) > most {
                lowered.0.insert(cap, most);
            }
        }
        lowered
    }

    /// The smaller of both, where both choose.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        for (cap, value) in other.iter() {
            all.entry(cap).and_modify(|ours| *ours = (*ours).min(value)).or_insert(value);
        }
        Self(all)
    }

    /// Whether nothing is chosen.
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
        // The default of 60 s is too much, that of 256 MiB is not.
        assert_eq!(Caps::default().limited_to(&maxima).value(CapName::Seconds), 30);
        assert_eq!(Caps::default().limited_to(&maxima).value(CapName::MemoryMib), 256);
    }

    #[test]
    fn a_value_out_of_range_says_what_is_in_it() {
        let problem = Caps::default().set(CapName::Seconds, 0).unwrap_err().to_string();
        assert_eq!(problem, "seconds = 0 is out of its range: use 1 to 3600");
    }
}
