;; Asks a walk for more after its end.
(func $call (result i32)
  (local $i i32) (local $walk i32)
  (call $workspace.open-walk @"" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $ret))
  (local.set $walk (i32.load offset=4 (global.get $ret)))
  (loop $next
    (call $workspace.next-entries (local.get $walk) (i32.const 4096) (global.get $ret))
    (if (i32.load8_u (global.get $ret)) (then unreachable))
    (call $say-number (i32.load offset=8 (global.get $ret))) (call $say @" ")
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 4))))
  (call $answer))
