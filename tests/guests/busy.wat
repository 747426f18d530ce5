;; Sleeps for as many milliseconds as its argument says, and answers with its argument.
(func $call (result i32)
  (local $at i32) (local $len i32) (local $millis i64) (local $i i32)
  (call $argument) (local.set $len) (local.set $at)
  (loop $next
    (local.set $millis
      (i64.add
        (i64.mul (local.get $millis) (i64.const 10))
        (i64.extend_i32_u (i32.sub (i32.load8_u (i32.add (local.get $at) (local.get $i))) (i32.const 48)))))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (local.get $len))))
  (call $poll.block (call $monotonic-clock.subscribe-duration (i64.mul (local.get $millis) (i64.const 1000000))))
  (call $text (local.get $at) (local.get $len)))
