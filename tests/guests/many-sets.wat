;; Keeps a million texts under a million keys, counts how many were taken, and then does the same with one key.
(global $taken (mut i32) (i32.const 0))
(func $set
  (call $state.set (global.get $said) (global.get $said-len) @"a value" (global.get $ret))
  (global.set $said-len (i32.const 0))
  (if (i32.eqz (i32.load8_u (global.get $ret)))
    (then (global.set $taken (i32.add (global.get $taken) (i32.const 1))))))
(func $call (result i32)
  (local $i i32) (local $many i32)
  (loop $next
    (call $say-number (local.get $i))
    (call $set)
    ;; What the host hands over is not to fill the memory.
    (global.set $heap (i32.const {{heap}}))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 500000))))
  (local.set $many (global.get $taken))
  (global.set $taken (i32.const 0))
  (local.set $i (i32.const 0))
  (loop $next
    (call $say @"7")
    (call $set)
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 500000))))
  (call $state.keys (global.get $ret))
  (call $say @"taken ") (call $say-number (local.get $many))
  (call $say @", again ") (call $say-number (global.get $taken))
  (call $say @", keys ") (call $say-number (i32.load offset=8 (global.get $ret)))
  (call $answer))
