;; Takes no for no answer: presents a plan a hundred times, and another one in the end.
(func $call (result i32)
  (local $i i32)
  (loop $next
    (call $plans.present @"1. Nothing." (global.get $ret))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const 100))))
  (call $plans.present @"1. Everything." (global.get $ret))
  (call $text @"presented"))
