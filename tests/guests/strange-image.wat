;; Answers with a PNG that is none.
(func $call (result i32)
  (call $bytes @"image/png" (i32.const 512) (i32.const 4)))
