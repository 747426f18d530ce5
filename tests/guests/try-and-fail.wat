;; Remembers how often it was tried, with an `x` for each time, and fails in the way that its argument says. For `tell` it says
;; what it remembers.
(func $begins-with (param $byte i32) (result i32)
  (local $at i32)
  (call $argument) (drop) (local.set $at)
  (i32.eq (i32.load8_u (local.get $at)) (local.get $byte)))
(func $call (result i32)
  (call $state.get @"tried" (global.get $ret))
  (if (i32.load8_u (global.get $ret)) (then unreachable))
  (if (i32.load8_u offset=4 (global.get $ret)) (then (call $say-pair (i32.add (global.get $ret) (i32.const 8)))))
  ;; tell
  (if (call $begins-with (i32.const 116)) (then (return (call $answer))))
  (call $say @"x")
  (call $state.set @"tried" (global.get $said) (global.get $said-len) (global.get $ret))
  ;; invalid, missing, refused, slow, crash, endless
  (if (call $begins-with (i32.const 105)) (then (return (call $invalid-input @"/text" @"no"))))
  (if (call $begins-with (i32.const 109)) (then (return (call $not-found @"no"))))
  (if (call $begins-with (i32.const 114)) (then (return (call $denied @"house-rule" @"no"))))
  (if (call $begins-with (i32.const 115)) (then (return (call $timed-out @"no"))))
  (if (call $begins-with (i32.const 99)) (then unreachable))
  (if (call $begins-with (i32.const 101)) (then (loop $again (br $again))))
  (call $failed @"no"))
