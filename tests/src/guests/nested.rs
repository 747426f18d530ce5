//! Components that contain another component and pass all imports to it.

/// The imports that an outer component can pass on, with their types.
const IMPORTS: [(&str, &str); 3] = [
    (
        "cofferdam:plugin/types@0.2.0",
        r#"(import "cofferdam:plugin/types@0.2.0" (instance $types
             (type $d (record (field "code" string) (field "reason" string)
               (field "remedy" (option string))))
             (export "denial" (type (eq $d)))))
           (alias export $types "denial" (type $denial))"#,
    ),
    (
        "wasi:clocks/monotonic-clock@0.2.0",
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
             (type $u u64)
             (export "duration" (type (eq $u)))))
           (alias export $clock "duration" (type $duration))"#,
    ),
    (
        "cofferdam:plugin/commands@0.2.0",
        r#"(import "cofferdam:plugin/commands@0.2.0" (instance
             (alias outer 1 $denial (type $d))
             (export "denial" (type $denial-here (eq $d)))
             (alias outer 1 $duration (type $u))
             (export "duration" (type $duration-here (eq $u)))
             (type $command' (record (field "line" string) (field "directory" string)
               (field "timeout" $duration-here)))
             (export "command" (type $command (eq $command')))
             (type $status' (variant (case "exited" s32) (case "signaled" s32) (case "timed-out")))
             (export "exit-status" (type $status (eq $status')))
             (type $output' (record (field "status" $status) (field "stdout" string)
               (field "stderr" string) (field "elapsed" $duration-here)))
             (export "command-output" (type $output (eq $output')))
             (type $error' (variant (case "denied" $denial-here) (case "invalid" string)
               (case "failed" string)))
             (export "command-error" (type $error (eq $error')))
             (export "run" (func (param "command" $command)
               (result (result $output (error $error)))))))"#,
    ),
];

const TOOLS: &str = "cofferdam:plugin/tools@0.2.0";

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
