//! What a guest says of itself, laid out in its memory.

use cofferdam::policy::Capability;

use super::module::Data;

/// A tool as a guest declares it; nothing of it has to make sense.
#[derive(Clone, Debug)]
pub struct Tool {
    /// As it stands there.
    pub name: String,
    /// As it stands there.
    pub description: String,
    /// As it stands there.
    pub schema: String,
    /// What it asks for.
    pub asks: Vec<Capability>,
    /// It wants to run alone.
    pub exclusive: bool,
    /// It wants to be confirmed.
    pub confirm: bool,
}

impl Tool {
    /// A tool that takes any object and asks for nothing.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            description: "A test.".into(),
            schema: r#"{"type":"object"}"#.into(),
            asks: Vec::new(),
            exclusive: false,
            confirm: false,
        }
    }

    /// With this description.
    pub fn described(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// With this schema.
    pub fn taking(self, schema: impl Into<String>) -> Self {
        Self { schema: schema.into(), ..self }
    }

    /// Asking for these.
    pub fn asking(self, asks: &[Capability]) -> Self {
        Self { asks: asks.to_vec(), ..self }
    }

    /// Wanting to run alone.
    pub fn exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }
}

/// Puts the answer of `list-tools` into a guest's data and returns its address.
pub(super) fn list_tools(tools: &[Tool], data: &mut Data) -> u32 {
    let mut records = Vec::new();
    for tool in tools {
        for text in [&tool.name, &tool.description, &tool.schema] {
            pair(&mut records, data.put(text.as_bytes()));
        }
        let mut capabilities = Vec::new();
        for capability in &tool.asks {
            let (number, list) = match capability {
                Capability::ReadFiles => (0, None),
                Capability::WriteFiles => (1, None),
                Capability::RunCommands => (2, None),
                Capability::Fetch(hosts) => (3, Some(hosts)),
                Capability::ReadEnvironment(names) => (4, Some(names)),
                Capability::Delegate => (5, None),
                Capability::KeepState => (6, None),
                Capability::PresentPlan => (7, None),
            };
            let mut items = Vec::new();
            for item in list.into_iter().flatten() {
                pair(&mut items, data.put(item.as_bytes()));
            }
            let count = list.map_or(0, Vec::len);
            capabilities.extend(u32::to_le_bytes(number));
            pair(&mut capabilities, (data.put(&items).0, length(count)));
        }
        pair(&mut records, (data.put(&capabilities).0, length(tool.asks.len())));
        records.extend(u32::to_le_bytes(u32::from(tool.exclusive) | u32::from(tool.confirm) << 1));
    }
    let mut list = Vec::new();
    pair(&mut list, (data.put(&records).0, length(tools.len())));
    data.put(&list).0
}

fn pair(bytes: &mut Vec<u8>, (at, len): (u32, u32)) {
    bytes.extend(at.to_le_bytes());
    bytes.extend(len.to_le_bytes());
}

fn length(count: usize) -> u32 {
    u32::try_from(count).expect("a guest is small")
}
