;; Says what it kept at its last call, and keeps what it is given.
(func $call (result i32)
  (call $state.get @"last" (global.get $ret))
  (if (i32.load8_u (global.get $ret))
    (then (call $say-refusal (global.get $ret)))
    (else
      (if (i32.load8_u offset=4 (global.get $ret))
        (then (call $say @"kept ") (call $say-pair (i32.add (global.get $ret) (i32.const 8))))
        (else (call $say @"nothing")))
      (call $say @"\n")))
  (call $state.set @"last" (call $argument) (global.get $ret))
  (if (i32.load8_u (global.get $ret)) (then (call $say-refusal (global.get $ret))))
  (call $answer))
