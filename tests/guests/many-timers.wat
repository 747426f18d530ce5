;; Makes a hundred thousand things to wait for and waits for none.
(func $call (result i32)
  (local $i i32)
  (loop $next
    (drop (call $monotonic-clock.subscribe-duration (i64.const 3600000000000)))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 100000))))
  (call $text @"made"))
