//! Finds the arguments that a schema marks as workspace paths.

use std::collections::HashSet;

use serde_json::Value;

/// The largest depth of nested parts. References between parts of a schema may form a cycle.
const MAX_REFERENCE_DEPTH: usize = 32;

/// Returns the marked strings of a valid value, each with its JSON pointer, in the order of the
/// schema.
pub(super) fn find_marked<'v>(schema: &Value, value: &'v Value) -> Vec<(String, &'v str)> {
    let mut found = ResolvedToolPath::default();
    visit_schema(schema, schema, value, &mut String::new(), MAX_REFERENCE_DEPTH, &mut found);
    found.texts
}

#[derive(Default)]
struct ResolvedToolPath<'v> {
    texts: Vec<(String, &'v str)>,
    /// The pointers of the strings found so far. A schema may mark the same string many times, and
    /// there may be many strings.
    pointers: HashSet<String>,
}

fn visit_schema<'v>(
    root: &Value,
    schema: &Value,
    value: &'v Value,
    pointer: &mut String,
    depth: usize,
    found: &mut ResolvedToolPath<'v>,
) {
    let Some(depth) = depth.checked_sub(1) else { return };
    let Some(schema) = schema.as_object() else { return };
    if schema.get("format").and_then(Value::as_str) == Some("workspace-path")
        && let Some(text) = value.as_str()
        && found.pointers.insert(pointer.clone())
    {
        found.texts.push((pointer.clone(), text));
    }
    if let Some(target) = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|r| r.strip_prefix('#'))
        .and_then(|p| root.pointer(p))
    {
        visit_schema(root, target, value, pointer, depth, found);
    }
    for part in
        ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten()
    {
        visit_schema(root, part, value, pointer, depth, found);
    }
    if let (Some(properties), Some(fields)) =
        (schema.get("properties").and_then(Value::as_object), value.as_object())
    {
        for (name, part) in properties {
            if let Some(field) = fields.get(name) {
                let length = pointer.len();
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                visit_schema(root, part, field, pointer, depth, found);
                pointer.truncate(length);
            }
        }
    }
    if let (Some(part), Some(items)) = (schema.get("items"), value.as_array()) {
        for (index, item) in items.iter().enumerate() {
            let length = pointer.len();
            pointer.push_str(&format!("/{index}"));
            visit_schema(root, part, item, pointer, depth, found);
            pointer.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_found_wherever_the_schema_marks_them() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"$ref": "#/$defs/P"},
                "more": {"type": "array", "items": {"$ref": "#/$defs/P"}},
                "maybe": {"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]},
                "plain": {"type": "string"},
            },
            "$defs": {
                "P": {"type": "string", "format": "workspace-path"},
                "loop": {"$ref": "#/$defs/loop"},
            },
        });
        let value = json!({"path": "a", "more": ["b", "c"], "maybe": "d", "plain": "/etc"});
        let found: Vec<_> = find_marked(&schema, &value);
        let expected = [("/path", "a"), ("/more/0", "b"), ("/more/1", "c"), ("/maybe", "d")];
        assert_eq!(found.len(), expected.len());
        for pair in expected {
            assert!(
                found.iter().any(|(pointer, text)| (pointer.as_str(), *text) == pair),
                "{pair:?}"
            );
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_terminates() {
        let schema = json!({"$ref": "#"});
        assert!(find_marked(&schema, &json!({})).is_empty());
    }
}
