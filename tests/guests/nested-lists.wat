;; Answers with 500 pieces of content that are all the same mebibyte: small for the guest, half a gibibyte for the host.
(func $call (result i32)
  (local $i i32) (local $list i32) (local $buffer i32) (local $at i32)
  (local.set $buffer (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 1048576)))
  (local.set $list (call $realloc (i32.const 0) (i32.const 0) (i32.const 8) (i32.const 20000)))
  (loop $next
    (local.set $at (i32.add (local.get $list) (i32.mul (local.get $i) (i32.const 40))))
    (call $put-content (local.get $at) @"text/plain" (i32.const 0) (local.get $buffer) (i32.const 1048576))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 500))))
  (call $contents (local.get $list) (i32.const 500)))
