;; Leaves in the middle of a call, as if it were a program.
(func $call (result i32)
  (call $exit.exit (i32.const {{status}}))
  (call $text @"still here"))
