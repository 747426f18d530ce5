//! What a guest says of itself, laid out in its memory.

use cofferdam::policy::Capability;

use super::module::GuestData;

/// A tool as a guest declares it; nothing of it has to make sense.
#[derive(Clone, Debug)]
pub struct GuestTool {
    /// As it stands there.
    pub name: String,
    /// As it stands there.
    pub description: String,
    /// As it stands there.
    pub schema: String,
    /// What it asks for.
    pub requested: Vec<Capability>,
    /// It wants to run alone.
    pub exclusive: bool,
    /// It wants to be confirmed.
    pub confirm: bool,
}

impl GuestTool {
    /// A tool that takes any object and asks for nothing.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            description: "A test.".into(),
            schema: r#"{"type":"object"}"#.into(),
            requested: Vec::new(),
            exclusive: false,
            confirm: false,
        }
    }

    /// With this description.
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: description.into(), ..self }
    }

    /// With this schema.
    pub fn with_schema(self, schema: impl Into<String>) -> Self {
        Self { schema: schema.into(), ..self }
    }

    /// Asking for these.
    pub fn with_requested(self, asks: &[Capability]) -> Self {
        Self { requested: asks.to_vec(), ..self }
    }

    /// Wanting to run alone.
    pub fn with_exclusive(self) -> Self {
        Self { exclusive: true, ..self }
    }
}

/// Puts the answer of `list-tools` into a guest's data and returns its address.
pub(super) fn write_tool_list(tools: &[GuestTool], data: &mut GuestData) -> u32 {
    let mut records = Vec::new();
    for tool in tools {
        for text in [&tool.name, &tool.description, &tool.schema] {
            push_pair(&mut records, data.push(text.as_bytes()));
        }
        let mut capabilities = Vec::new();
        for capability in &tool.requested {
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
                push_pair(&mut items, data.push(item.as_bytes()));
            }
            let count = list.map_or(0, Vec::len);
            capabilities.extend(u32::to_le_bytes(number));
            push_pair(&mut capabilities, (data.push(&items).0, to_u32(count)));
        }
        push_pair(&mut records, (data.push(&capabilities).0, to_u32(tool.requested.len())));
        records.extend(u32::to_le_bytes(u32::from(tool.exclusive) | u32::from(tool.confirm) << 1));
    }
    let mut list = Vec::new();
    push_pair(&mut list, (data.push(&records).0, to_u32(tools.len())));
    data.push(&list).0
}

fn push_pair(bytes: &mut Vec<u8>, (at, len): (u32, u32)) {
    bytes.extend(at.to_le_bytes());
    bytes.extend(len.to_le_bytes());
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a guest is small")
}
