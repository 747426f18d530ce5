//! From a guest's file to a whole core module in text form.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wit_parser::abi::{AbiVariant, WasmType};
use wit_parser::{Function, FunctionKind, Resolve, TypeDefKind, World, WorldItem};

use super::declaration::{self, GuestTool};

const GUEST_KIT: &str = include_str!("kit.wat");
const FILE_FUNCTIONS: &str = include_str!("files.wat");

/// The first address of texts; what is below belongs to the kit.
const DATA_START: u32 = 4096;
/// What a guest can say bit by bit.
const OUTPUT_BYTES: u32 = 64 << 10;

/// The texts of a guest.
#[derive(Default)]
pub(super) struct GuestData {
    bytes: Vec<u8>,
}

impl GuestData {
    /// Adds bytes and returns their address, a multiple of 8, and their length.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (u32, u32) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.end();
        self.bytes.extend_from_slice(bytes);
        (at, u32::try_from(bytes.len()).expect("a guest is small"))
    }

    fn end(&self) -> u32 {
        DATA_START + u32::try_from(self.bytes.len()).expect("a guest is small")
    }

    fn segment(&self) -> String {
        self.bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "\\{byte:02x}");
            text
        })
    }
}

/// The module of a guest with these tools, for a contract of this version.
pub(super) fn module_text(
    source: &str,
    tools: &[GuestTool],
    version: &str,
    resolve: &Resolve,
    world: &World,
) -> String {
    let mut data = GuestData::default();
    let tools = declaration::write_tool_list(tools, &mut data);
    let mut body = source.to_owned();
    if referenced_names(source).contains("$root") {
        body.push_str(FILE_FUNCTIONS);
    }
    for part in GUEST_KIT.split("\n;;; ").skip(1) {
        let (name, text) = part.split_once('\n').expect("a part has lines");
        let defined =
            ["func", "memory"].iter().any(|kind| source.contains(&format!("({kind} {name} ")));
        if !defined {
            body.push_str(text);
            body.push('\n');
        }
    }
    for export in ["list-tools", "call-tool"] {
        if source.contains(&format!("(func $post-{export} ")) {
            let _ = writeln!(
                body,
                "  (export \"cabi_post_cofferdam:plugin/tools@{version}#{export}\" (func \
                    $post-{export}))"
            );
        }
    }
    let body = place_texts(&body, &mut data);
    let said = data.end().next_multiple_of(65536);
    let heap = said + OUTPUT_BYTES;
    let body = body
        .replace("{{version}}", version)
        .replace("{{tools}}", &tools.to_string())
        .replace("{{said}}", &said.to_string())
        .replace("{{heap}}", &heap.to_string())
        .replace("{{pages}}", &(heap / 65536 + 4).to_string());
    let imports = imports(&referenced_names(&body), resolve, world);
    format!("(module\n{imports}{body}  (data (i32.const {DATA_START}) \"{}\")\n)\n", data.segment())
}

/// Replaces each `@"text"` by its address and length.
fn place_texts(source: &str, data: &mut GuestData) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("@\"") {
        out.push_str(before);
        let mut bytes = Vec::new();
        let mut chars = after.char_indices();
        let end = loop {
            let (at, c) = chars.next().expect("a text has an end");
            match c {
                '"' => break at,
                '\\' => match chars.next().expect("an escape has an end").1 {
                    'n' => bytes.push(b'\n'),
                    'r' => bytes.push(b'\r'),
                    '0' => bytes.push(0),
                    'e' => bytes.push(0x1b),
                    c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
                },
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        };
        let (at, len) = data.push(&bytes);
        let _ = write!(out, "(i32.const {at}) (i32.const {len})");
        rest = &after[end + 1..];
    }
    out.push_str(rest);
    out
}

/// All words of a text that begin with a dollar sign, without those in comments.
fn referenced_names(source: &str) -> BTreeSet<String> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || "$-_.".contains(c);
    let code = source.lines().map(|line| line.split(";;").next().unwrap_or_default());
    code.flat_map(|line| line.split(|c| !in_name(c)))
        .filter(|word| word.starts_with('$'))
        .map(str::to_owned)
        .collect()
}

/// Imports everything of the world that is named.
fn imports(names: &BTreeSet<String>, resolve: &Resolve, world: &World) -> String {
    let mut text = String::new();
    for (key, item) in &world.imports {
        let WorldItem::Interface { id, .. } = item else { continue };
        let interface = &resolve.interfaces[*id];
        let package = interface.package.map(|id| resolve.packages[id].name.name.clone());
        let room = match interface.name.as_deref() {
            Some("types") => package.unwrap_or_default(),
            name => name.unwrap_or_default().to_owned(),
        };
        let module = resolve.name_world_key(key);
        for (name, function) in &interface.functions {
            let alias = match function.kind {
                FunctionKind::Constructor(_) => {
                    format!("${room}.new-{}", name.trim_start_matches("[constructor]"))
                }
                _ => format!("${room}.{}", function.item_name()),
            };
            if names.contains(&alias) {
                let _ = writeln!(
                    text,
                    "  (import \"{module}\" \"{name}\" (func {alias}{}))",
                    signature(resolve, function)
                );
            }
        }
        for (name, id) in &interface.types {
            let alias = format!("${room}.drop-{name}");
            if matches!(resolve.types[*id].kind, TypeDefKind::Resource) && names.contains(&alias) {
                let _ = writeln!(
                    text,
                    "  (import \"{module}\" \"[resource-drop]{name}\" (func {alias} (param i32)))"
                );
            }
        }
    }
    text
}

fn signature(resolve: &Resolve, function: &Function) -> String {
    let flat = resolve.wasm_signature(AbiVariant::GuestImport, function);
    let list = |word: &str, types: &[WasmType]| {
        types.iter().fold(String::new(), |mut text, wasm| {
            let name = match wasm {
                WasmType::I64 | WasmType::PointerOrI64 => "i64",
                WasmType::F32 => "f32",
                WasmType::F64 => "f64",
                WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
            };
            let _ = write!(text, " ({word} {name})");
            text
        })
    };
    list("param", &flat.params) + &list("result", &flat.results)
}
