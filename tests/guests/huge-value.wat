;; Wants to keep a text of {{bytes}} bytes, whatever the memory there holds.
(func $call (result i32)
  (drop (memory.grow (i32.const 128)))
  (call $state.set @"k" (i32.const 262144) (i32.const {{bytes}}) (global.get $ret))
  (if (i32.load8_u (global.get $ret))
    (then (call $say-refusal (global.get $ret)))
    (else (call $say @"kept")))
  (call $answer))
