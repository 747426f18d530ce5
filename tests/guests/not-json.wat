;; Calls something JSON that is none.
(func $call (result i32) (call $json @"{\"a\": "))
