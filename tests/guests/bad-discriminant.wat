;; Answers with a variant that does not exist.
(func $call (result i32)
  (local $answer i32)
  (local.set $answer (call $text @"x"))
  (i32.store8 (i32.add (local.get $answer) (i32.const {{where}})) (i32.const 77))
  (local.get $answer))
