;; Presents a plan of 70,000 bytes, and one of none.
(func $call (result i32)
  (drop (memory.grow (i32.const 16)))
  (memory.fill (i32.const 262144) (i32.const 120) (i32.const 70000))
  (call $plans.present (i32.const 262144) (i32.const 70000) (global.get $ret))
  (call $say-refusal (global.get $ret))
  (call $plans.present @" \n" (global.get $ret))
  (call $say-refusal (global.get $ret))
  (call $answer))
