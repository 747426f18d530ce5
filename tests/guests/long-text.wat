;; Answers with a text that is longer than its host takes, and short enough to cross over.
(func $call (result i32)
  (drop (memory.grow (i32.const 32)))
  (call $text (i32.const 262144) (i32.const 1500000)))
