//! The declaration of a guest, laid out in its memory.

use cofferdam::policy::Capability;

use super::module::GuestData;

/// A tool as a guest declares it; nothing of it has to make sense.
#[derive(Clone, Debug)]
pub struct GuestTool {
    /// The name.
    pub name: String,
    /// The title.
    pub title: Option<String>,
    /// The description.
    pub description: String,
    /// The input schema.
    pub schema: String,
    /// The output schema.
    pub output_schema: Option<String>,
    /// The capabilities.
    pub requested: Vec<Capability>,
    /// Further capabilities, by name and parameters.
    pub named: Vec<(String, Vec<String>)>,
    /// Hints besides the two below, by name and parameters.
    pub hints: Vec<(String, Vec<String>)>,
    /// Annotations.
    pub annotations: Vec<(String, String)>,
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
            title: None,
            description: "A test.".into(),
            schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            requested: Vec::new(),
            named: Vec::new(),
            hints: Vec::new(),
            annotations: Vec::new(),
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

/// Puts the result of `list-tools` into a guest's data and returns its address.
pub(super) fn write_tool_list(tools: &[GuestTool], data: &mut GuestData) -> u32 {
    let mut records = Vec::new();
    for tool in tools {
        push_pair(&mut records, data.push(tool.name.as_bytes()));
        push_option(&mut records, tool.title.as_deref(), data);
        push_pair(&mut records, data.push(tool.description.as_bytes()));
        push_pair(&mut records, data.push(tool.schema.as_bytes()));
        push_option(&mut records, tool.output_schema.as_deref(), data);
        let capabilities: Vec<_> = tool
            .requested
            .iter()
            .map(|capability| {
                let parameters = match capability {
                    Capability::Fetch(patterns) => patterns.clone(),
                    _ => Vec::new(),
                };
                (capability.kind().name().to_owned(), parameters)
            })
            .chain(tool.named.iter().cloned())
            .collect();
        push_named(&mut records, &capabilities, data);
        let known = [(tool.exclusive, "exclusive"), (tool.confirm, "confirm")];
        let hints: Vec<_> = known
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, name)| ((*name).to_owned(), Vec::new()))
            .chain(tool.hints.iter().cloned())
            .collect();
        push_named(&mut records, &hints, data);
        let mut annotations = Vec::new();
        for (name, value) in &tool.annotations {
            push_pair(&mut annotations, data.push(name.as_bytes()));
            push_pair(&mut annotations, data.push(value.as_bytes()));
        }
        push_pair(&mut records, (data.push(&annotations).0, to_u32(tool.annotations.len())));
    }
    let mut list = Vec::new();
    push_pair(&mut list, (data.push(&records).0, to_u32(tools.len())));
    data.push(&list).0
}

/// Adds an `option<string>`.
fn push_option(bytes: &mut Vec<u8>, text: Option<&str>, data: &mut GuestData) {
    bytes.extend(u32::to_le_bytes(text.is_some().into()));
    push_pair(bytes, text.map_or((0, 0), |text| data.push(text.as_bytes())));
}

/// Adds a list of records with a name and parameters.
fn push_named(bytes: &mut Vec<u8>, named: &[(String, Vec<String>)], data: &mut GuestData) {
    let mut records = Vec::new();
    for (name, parameters) in named {
        push_pair(&mut records, data.push(name.as_bytes()));
        let mut items = Vec::new();
        for parameter in parameters {
            push_pair(&mut items, data.push(parameter.as_bytes()));
        }
        push_pair(&mut records, (data.push(&items).0, to_u32(parameters.len())));
    }
    push_pair(bytes, (data.push(&records).0, to_u32(named.len())));
}

fn push_pair(bytes: &mut Vec<u8>, (at, len): (u32, u32)) {
    bytes.extend(at.to_le_bytes());
    bytes.extend(len.to_le_bytes());
}

fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a guest is small")
}
