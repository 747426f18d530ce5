;; Answers with 48 MiB.
(func $call (result i32)
  (drop (memory.grow (i32.const 800)))
  (call $text (i32.const 65536) (i32.const 50331648)))
