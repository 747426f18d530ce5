//! Components that hold another component and pass everything on to it.

/// What an outer component can pass on, with its types.
const IMPORTS: [(&str, &str); 2] = [
    (
        "cofferdam:plugin/types@0.1.0",
        r#"(import "cofferdam:plugin/types@0.1.0" (instance $types
             (type $d (record (field "code" string) (field "reason" string)
               (field "remedy" (option string))))
             (export "denial" (type (eq $d)))))
           (alias export $types "denial" (type $denial))"#,
    ),
    (
        "cofferdam:plugin/commands@0.1.0",
        r#"(import "cofferdam:plugin/commands@0.1.0" (instance
             (alias outer 1 $denial (type $d))
             (export "denial" (type $denial-here (eq $d)))
             (type $command' (record (field "line" string) (field "directory" string)
               (field "timeout" u32)))
             (export "command" (type $command (eq $command')))
             (type $ending' (variant (case "exited" s32) (case "killed" s32) (case "timed-out")))
             (export "ending" (type $ending (eq $ending')))
             (type $finished' (record (field "ending" $ending) (field "stdout" string)
               (field "stderr" string) (field "duration" f64)))
             (export "finished" (type $finished (eq $finished')))
             (type $error' (variant (case "denied" $denial-here) (case "invalid" string)
               (case "failed" string)))
             (export "command-error" (type $error (eq $error')))
             (export "run" (func (param "command" $command)
               (result (result $finished (error $error)))))))"#,
    ),
];

const TOOLS: &str = "cofferdam:plugin/tools@0.1.0";

/// A component around another one, with these definitions of its own before it.
pub fn wrap_component(inner: &[u8], definitions: &str) -> Vec<u8> {
    let holds = |name: &str| inner.windows(name.len()).any(|window| window == name.as_bytes());
    let imports: Vec<_> = IMPORTS.iter().filter(|(name, _)| holds(name)).collect();
    let texts: String = imports.iter().map(|(_, text)| *text).collect();
    let mut outer = wat::parse_str(format!("(component {texts}\n{definitions})"))
        .unwrap_or_else(|error| panic!("{error}"));
    push_section(&mut outer, 4, inner);
    // Instantiates component 0 with the imported instances by their names.
    let mut instance = vec![1, 0, 0];
    push_leb128(&mut instance, imports.len());
    for (at, (import, _)) in imports.iter().enumerate() {
        push_name(&mut instance, import);
        instance.push(5);
        push_leb128(&mut instance, at);
    }
    push_section(&mut outer, 5, &instance);
    // Takes its tools, and exports them under the same name.
    let mut alias = vec![1, 5, 0];
    push_leb128(&mut alias, imports.len());
    push_name(&mut alias, TOOLS);
    push_section(&mut outer, 6, &alias);
    let mut export = vec![1, 0];
    push_name(&mut export, TOOLS);
    export.push(5);
    push_leb128(&mut export, imports.len() + 1);
    export.push(0);
    push_section(&mut outer, 11, &export);
    outer
}

fn push_section(component: &mut Vec<u8>, id: u8, content: &[u8]) {
    component.push(id);
    push_leb128(component, content.len());
    component.extend_from_slice(content);
}

fn push_name(bytes: &mut Vec<u8>, name: &str) {
    push_leb128(bytes, name.len());
    bytes.extend_from_slice(name.as_bytes());
}

/// In LEB128.
fn push_leb128(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits");
        number >>= 7;
        bytes.push(if number == 0 { low } else { low | 0x80 });
        if number == 0 {
            return;
        }
    }
}
