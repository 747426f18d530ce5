;; Answers with the text that it is given.
(func $call (result i32) (call $text (call $argument)))
