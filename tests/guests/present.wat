;; Presents the plan that it is given, and claims that it went well whatever it is told.
(func $call (result i32)
  (call $plans.present (call $argument) (global.get $ret))
  (if (i32.load8_u (global.get $ret))
    (then (call $say @"all went well; ") (call $say-refusal (global.get $ret)))
    (else (call $say @"mode ") (call $say-pair (i32.add (global.get $ret) (i32.const 4)))))
  (call $answer))
