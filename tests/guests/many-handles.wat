;; Opens the workspace a hundred thousand times and closes nothing.
(func $call (result i32)
  (local $i i32) (local $root i32)
  (local.set $root (call $root))
  (loop $next
    (call $filesystem.open-at (local.get $root) (i32.const 0) @"." (i32.const 2) (i32.const 1) (global.get $ret))
    (if (i32.load8_u (global.get $ret)) (then (call $say-result (global.get $ret)) (return (call $answer))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 100000))))
  (call $text @"opened"))
