;; Says a word to the model and three mebibytes to the user.
(func $call (result i32)
  (local $answer i32)
  (drop (memory.grow (i32.const 128)))
  (local.set $answer (call $text @"short"))
  (call $view @"text/plain" (i32.const 0) (i32.const 1048576) (i32.const 3145728))
  (local.get $answer))
