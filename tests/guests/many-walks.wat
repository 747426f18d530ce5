;; Opens walks until it is told to stop, and asks for walks that it has not.
(func $call (result i32)
  (local $i i32)
  (loop $next
    (call $workspace.open-walk @"" (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (global.get $ret))
    (if (i32.eqz (i32.load8_u (global.get $ret)))
      (then
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const 100000))))))
  (call $say-number (local.get $i)) (call $say @" open, then ")
  (call $say-walk-error (global.get $ret))
  (call $workspace.next-entries (i32.const 4000000000) (i32.const 1) (global.get $ret))
  (call $say-walk-error (global.get $ret))
  (call $workspace.close-walk (i32.const 4000000000))
  (call $workspace.next-entries (i32.const 0) (i32.const 1) (global.get $ret))
  (call $workspace.next-files (i32.const 0) (i32.const 1) (global.get $ret))
  (call $say-walk-error (global.get $ret))
  (call $answer))
