;; Calls the host from within its own allocator, which the host called to hand over a result.
(global $armed (mut i32) (i32.const 0))
(func $realloc (param i32 i32 i32 i32) (result i32)
  (if (global.get $armed) (then (call $progress.report @"from within")))
  (i32.const 2048))
(func $call (result i32)
  (global.set $armed (i32.const 1))
  (call $random.get-random-bytes (i64.const 8) (global.get $ret))
  (call $text @"got through"))
