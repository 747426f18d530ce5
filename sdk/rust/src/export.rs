//! Exports tools from a component: declares them, and calls them by name.

use serde_path_to_error::{Path, Segment};

use crate::{Declaration, Output, Tool, ToolError, schema};

/// Exports tools from this component. Use it once in a plugin:
/// `export_tools!(ReadFile, ListFiles);`
///
/// Expands to nothing on targets other than WebAssembly, where tests run.
#[macro_export]
macro_rules! export_tools {
    ($($tool:ty),+ $(,)?) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            struct Plugin;

            impl $crate::bindings::exports::cofferdam::plugin::tools::Guest for Plugin {
                fn list_tools() -> ::std::vec::Vec<$crate::Declaration> {
                    ::std::vec![$($crate::declare::<$tool>()),+]
                }

                fn call_tool(
                    name: ::std::string::String,
                    input: ::std::string::String,
                ) -> ::core::result::Result<$crate::Output, $crate::ToolError> {
                    $(
                        if name == <$tool as $crate::Tool>::NAME {
                            return $crate::call::<$tool>(&input);
                        }
                    )+
                    ::core::result::Result::Err($crate::unknown_tool(&name))
                }
            }

            $crate::bindings::export_component!(Plugin with_types_in $crate::bindings);
        };
    };
}

/// Returns the declaration of a tool, as the host sees it.
pub fn declare<T: Tool>() -> Declaration {
    Declaration {
        name: T::NAME.to_owned(),
        title: T::TITLE.map(str::to_owned),
        description: T::DESCRIPTION.to_owned(),
        input_schema: schema::of::<T::Input>(),
        output_schema: T::output_schema(),
        capabilities: T::capabilities().into_iter().map(Into::into).collect(),
        hints: T::hints().into_iter().map(Into::into).collect(),
        annotations: T::annotations(),
    }
}

/// Calls a tool with the JSON text of its input, as the host does.
pub fn call<T: Tool>(input: &str) -> Result<Output, ToolError> {
    let mut json = serde_json::Deserializer::from_str(input);
    let decoded = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| ToolError::invalid_input(pointer(error.path()), message(error.inner())))?;
    json.end().map_err(|error| ToolError::invalid_input("", error.to_string()))?;
    T::call(decoded)
}

/// Returns the error for a name that is not one of the exported tools.
#[doc(hidden)]
pub fn unknown_tool(name: &str) -> ToolError {
    ToolError::not_found(format!("this plugin has no tool `{name}`"))
}

/// Describes a decoding error. The position in the text is only used if the text is not JSON;
/// otherwise the pointer gives the place.
fn message(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    if let (true, Some(end)) = (error.is_data(), message.rfind(" at line ")) {
        message.truncate(end);
    }
    message
}

/// Returns the JSON pointer (RFC 6901) to the value that could not be decoded.
fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.push_str(&format!("/{index}")),
            Segment::Map { key } => {
                pointer.push_str(&format!("/{}", key.replace('~', "~0").replace('/', "~1")))
            }
            // The variant of an enum is not a step in the JSON text.
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::{Capability, Hint, json_schema};

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Input {
        #[serde(rename = "a/b")]
        numbers: Vec<u8>,
    }

    struct Sum;

    impl Tool for Sum {
        const NAME: &'static str = "sum";
        const DESCRIPTION: &'static str = "Adds numbers.";
        type Input = Input;

        const TITLE: Option<&'static str> = Some("Sum");

        fn capabilities() -> Vec<Capability> {
            vec![Capability::KeepState, Capability::Fetch(vec!["a.example".into()])]
        }

        fn output_schema() -> Option<String> {
            Some(json_schema::<Input>())
        }

        fn hints() -> Vec<Hint> {
            vec![Hint::Confirm]
        }

        fn call(input: Input) -> Result<Output, ToolError> {
            Ok(Output::text(input.numbers.iter().map(|&n| u32::from(n)).sum::<u32>().to_string()))
        }
    }

    #[test]
    fn a_tool_is_called_with_json() {
        assert_eq!(call::<Sum>(r#"{"a/b":[1,2]}"#), Ok(Output::text("3")));
    }

    #[test]
    fn r022_decoding_errors_say_what_is_wrong_and_where() {
        for (input, pointer, message) in [
            (r#"{"a/b":[1,"2"]}"#, "/a~1b/1", "invalid type: string \"2\", expected u8"),
            (r#"{"a/b":[1],"c":0}"#, "/c", "unknown field `c`, expected `a/b`"),
            ("{}", "", "missing field `a/b`"),
            (r#"{"a/b":[1]} {}"#, "", "trailing characters at line 1 column 13"),
        ] {
            assert_eq!(
                call::<Sum>(input),
                Err(ToolError::invalid_input(pointer, message)),
                "{input}"
            );
        }
    }

    #[test]
    fn a_declaration_has_what_the_tool_declares() {
        let declaration = declare::<Sum>();
        assert_eq!(declaration.name, "sum");
        assert_eq!(declaration.title.as_deref(), Some("Sum"));
        assert_eq!(declaration.output_schema, Some(declaration.input_schema));
        let names: Vec<_> = declaration.capabilities.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["keep-state", "fetch"]);
        assert_eq!(declaration.capabilities[1].parameters, ["a.example"]);
        assert_eq!(declaration.hints[0].name, "confirm");
    }
}
