;; Opens walks until the host refuses one, drops one and opens another, and mixes the two kinds of requests.
(func $open
  (call $workspace.open-walk @"" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $ret)))
(func $call (result i32)
  (local $i i32) (local $walk i32)
  (loop $next
    (call $open)
    (if (i32.eqz (i32.load8_u (global.get $ret)))
      (then
        (local.set $walk (i32.load offset=4 (global.get $ret)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const 100000))))))
  (call $say-number (local.get $i)) (call $say @" open, then ")
  (call $say-walk-error (global.get $ret))
  (call $workspace.drop-walk (local.get $walk))
  (call $open)
  (call $say @"after a drop ") (call $say-result (global.get $ret)) (call $say @"\n")
  (local.set $walk (i32.load offset=4 (global.get $ret)))
  (call $workspace.next-entries (local.get $walk) (i32.const 1) (global.get $ret))
  (call $workspace.next-files (local.get $walk) (i32.const 1) (global.get $ret))
  (call $say-walk-error (global.get $ret))
  (call $answer))
