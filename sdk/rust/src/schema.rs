//! JSON Schemas of types, without details that do not help a model.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// Returns the JSON Schema of `T` as JSON text.
///
/// Each token of an input schema is sent with every request to the model. So the schema has no
/// names of Rust types, no integer widths, no `$schema` or `$id` and no empty defaults. It has no
/// documentation of the struct either, because the tool has a description.
pub fn of<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .with_transform(RecursiveTransform(strip))
        .into_generator()
        .into_root_schema_for::<T>();
    schema.remove("description");
    schema.to_value().to_string()
}

fn strip(schema: &mut Schema) {
    schema.remove("title");
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(is_width) {
        schema.remove("format");
    }
    if schema.get("default").is_some_and(is_nothing) {
        schema.remove("default");
    }
}

fn is_width(format: &str) -> bool {
    matches!(format, "float" | "double") || format.starts_with("int") || format.starts_with("uint")
}

/// Returns whether a default is the usual one.
fn is_nothing(default: &Value) -> bool {
    match default {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Array(values) => values.is_empty(),
        Value::String(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkspacePath;

    /// Not for the model.
    #[derive(JsonSchema)]
    #[schemars(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema matters")]
    struct Input {
        /// Where.
        path: WorkspacePath,
        /// Elsewhere.
        #[schemars(default)]
        other: Option<WorkspacePath>,
        #[schemars(default)]
        flag: bool,
        #[schemars(default, range(min = 1, max = 9))]
        title: u32,
    }

    #[test]
    fn a_schema_has_no_noise_and_marks_paths() {
        assert_eq!(
            of::<Input>(),
            concat!(
                r#"{"type":"object","additionalProperties":false,"properties":{"#,
                r#""path":{"type":"string","format":"workspace-path","description":"Where."},"#,
                r#""other":{"type":["string","null"],"format":"workspace-path","#,
                r#""description":"Elsewhere."},"#,
                r#""flag":{"type":"boolean"},"#,
                r#""title":{"type":"integer","default":0,"minimum":1,"maximum":9}},"#,
                r#""required":["path"]}"#,
            )
        );
    }
}
