;; Reports a line of three mebibytes.
(func $call (result i32)
  (drop (memory.grow (i32.const 64)))
  (memory.fill (i32.const 262144) (i32.const 120) (i32.const 3145728))
  (call $progress.report (i32.const 262144) (i32.const 3145728))
  (call $text @"reported"))
