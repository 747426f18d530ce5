;; Crashes.
(func $call (result i32) (i32.div_u (i32.const 1) (i32.const 0)))
