;; Answers with a picture that is a web page.
(func $call (result i32)
  (local $answer i32)
  (local.set $answer (call $content (i32.const 2) @"text/html"))
  (i32.store (i32.const 140) (i32.const 512))
  (i32.store (i32.const 144) (i32.const 4))
  (local.get $answer))
