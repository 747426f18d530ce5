;; Hands over the task that it is given, {{times}} times.
(func $call (result i32)
  (local $i i32)
  (loop $next
    (call $agents.delegate (call $argument) (global.get $ret))
    (if (i32.load8_u (global.get $ret))
      (then
        (if (i32.eq (i32.load8_u offset=4 (global.get $ret)) (i32.const 2))
          (then
            (call $say @"failed ") (call $say-pair (i32.add (global.get $ret) (i32.const 8)))
            (call $say @": ") (call $say-pair (i32.add (global.get $ret) (i32.const 16))) (call $say @"\n"))
          (else (call $say-refusal (global.get $ret)))))
      (else
        (call $say @"complete ") (call $say-number (i32.load8_u offset=12 (global.get $ret)))
        (call $say @" turns ") (call $say-number (i32.load offset=16 (global.get $ret)))
        (call $say @": ") (call $say-pair (i32.add (global.get $ret) (i32.const 4))) (call $say @"\n")))
    (local.set $i (i32.add (local.get $i) (i32.const 1)))
    (br_if $next (i32.lt_u (local.get $i) (i32.const {{times}}))))
  (call $answer))
