;; Counts its calls in its own memory.
(global $calls (mut i32) (i32.const 0))
(func $call (result i32)
  (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
  (call $say-number (global.get $calls))
  (call $answer))
