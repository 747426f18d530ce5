;; Hands over a task of {{bytes}} bytes.
(func $call (result i32)
  (drop (memory.grow (i32.const 16)))
  (memory.fill (i32.const 262144) (i32.const 120) (i32.const {{bytes}}))
  (call $agents.delegate (i32.const 262144) (i32.const {{bytes}}) (global.get $ret))
  (call $say-refusal (global.get $ret))
  (call $answer))
