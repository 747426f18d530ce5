;; Answers with an address that it does not have.
(func $call (result i32) (call $text (i32.const {{address}}) (i32.const {{length}})))
